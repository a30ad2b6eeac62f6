"""The datasets of the paper's tables, by the names of their rows."""

from __future__ import annotations

from collections.abc import Mapping

from pubc.experiments.cell import DatasetSpec, Scale, SeedSpec

__all__ = [
    "HUMANOID_W",
    "LOCOMOTION",
    "REAL",
    "ROBOT_DATA",
    "ROBOT_ROWS",
    "SIMULATED",
    "ZOO",
    "dataset",
    "seeds_for",
]

HUMANOID_W = (
    "W of Humanoid is pubc's humanoid/weak, SAC after 200,000 steps with a mean return of 1,495, "
    "where the paper's trained for 300,000 steps and earns 1,576."
)
"""What every table with a row of Humanoid W must say."""
ZOO = "The policies that acted are those of pubc's zoo, not the paper's."
"""What differs from the paper at every scale."""

_LETTERS = {
    "E+E": ("E+", "E-"),
    "E+W": ("E+", "W"),
    "E+N": ("E+", "N"),
    "E+E+W+N": ("E+", "E-", "W", "N"),
}
_OF_ITS_OWN = ("E+N",)
"""Mixtures whose noise lies in the range of fewer sources than that of E+E+W+N."""
LOCOMOTION: dict[str, tuple[str, tuple[str, ...]]] = {
    f"{body} {letters}": (
        f"{body.lower()}:{letters if letters in _OF_ITS_OWN else 'E+E+W+N'}",
        sources,
    )
    for body in ("Ant", "Humanoid")
    for letters, sources in _LETTERS.items()
}
"""Row to recipe and sources, for what pubc can collect from nothing. Mixtures share what was
collected for E+E+W+N, but for noise, which has the range of the sources of its own mixture."""
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
    return scale.seeds if row in LOCOMOTION else SeedSpec(top=0.004)
