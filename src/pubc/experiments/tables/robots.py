"""The datasets of the paper's tables, by the names of their rows."""

from __future__ import annotations

from collections.abc import Mapping

from pubc.experiments.cell import DatasetSpec, Scale, SeedSpec

__all__ = ["LOCOMOTION", "REAL", "ROBOT_DATA", "ROBOT_ROWS", "SIMULATED", "dataset", "seeds_for"]

_LETTERS = {
    "E+E": ("E+", "E-"),
    "E+W": ("E+", "W"),
    "E+N": ("E+", "N"),
    "E+E+W+N": ("E+", "E-", "W", "N"),
}
LOCOMOTION: dict[str, tuple[str, tuple[str, ...]]] = {
    f"{body} {letters}": (f"{body.lower()}:E+E+W+N", sources)
    for body in ("Ant", "Humanoid")
    for letters, sources in _LETTERS.items()
}
"""Row to recipe and sources, for what pubc can collect from nothing. Each source is collected
once, and all mixtures of a body share it."""
SIMULATED: dict[str, str] = {
    "TriFinger-Sim push": "trifinger-push",
    "TriFinger-Sim lift": "trifinger-lift",
}
"""Row to name of the user's file, in simulation."""
REAL: dict[str, str] = {
    "TriFinger-Real push": "trifinger-real-push",
    "TriFinger-Real lift": "trifinger-real-lift",
}
"""Row to name of the user's file, of the real robots."""
ROBOT_ROWS: dict[str, str] = {**SIMULATED, **REAL}
"""Every row that needs a file of the user."""

_LABELLED = (
    "a dataset in any format of `pubc formats` that says which policy acted in every trajectory "
    "(sources), the target expert called `expert`"
)
ROBOT_DATA: dict[str, str] = {
    "trifinger-push": f"{_LABELLED}; `pubc collect trifinger-push:mixed` makes one",
    "trifinger-lift": f"{_LABELLED}; `pubc collect trifinger-lift:mixed` makes one",
    "trifinger-real-push": f"{_LABELLED}, such as the real push/mixed set with its labels",
    "trifinger-real-lift": f"{_LABELLED}, such as the real lift/mixed set with its labels",
}
"""What `--data` takes, by name."""


def dataset(row: str, scale: Scale, data: Mapping[str, DatasetSpec]) -> DatasetSpec:
    """The dataset of a row; a file that the user has not given stays a name."""
    if row in LOCOMOTION:
        return scale.dataset(*LOCOMOTION[row])
    name = ROBOT_ROWS[row]
    return data.get(name, DatasetSpec(name=name))


def seeds_for(row: str, scale: Scale) -> SeedSpec:
    """How the seed positives of a row are drawn."""
    if row in LOCOMOTION:
        return scale.seeds
    return scale.robot_seeds if row in SIMULATED else SeedSpec(top=0.004)
