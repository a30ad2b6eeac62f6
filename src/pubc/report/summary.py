"""The facts of a run that every form of its report shows: page, Markdown and JSON."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from decimal import ROUND_HALF_UP, Decimal
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pubc.metrics import confusion
from pubc.runs.folder.run_reading import Run

__all__ = [
    "Tile",
    "confusions",
    "flat",
    "groups",
    "provenance",
    "settings",
    "sources",
    "tiles",
    "told",
    "truth_tiles",
]

Floats = NDArray[np.float64]

_SHOWN = ("recipe", "settings", "reading")


Fact = tuple[str, str, Any, str]
"""Where a value stands in the run, what it is called, the value, and how to print it."""


@dataclass(frozen=True, slots=True)
class Tile:
    """One number with its name and a few words on what it means."""

    label: str
    """What it is called."""
    key: str
    """Where it stands in the run, for example `run.quality.gap`."""
    value: Any
    """The number; None where it cannot be had."""
    kind: str
    """How to print it: `auto` or `share`."""
    hint: str
    """What it means."""


def told(value: Any, kind: str = "auto") -> str:
    """A value for people: digits in groups, as many decimals as matter, a dash for unknown."""
    if value is None or (isinstance(value, float) and not np.isfinite(value)):
        return "\N{EN DASH}"
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, int | float) and kind == "share":
        return f"{_fixed(100 * float(value), 1)} %"
    if isinstance(value, int) or (isinstance(value, float) and value.is_integer()):
        return f"{int(value):,}".replace("-", "\N{MINUS SIGN}")
    if isinstance(value, float):
        return _decimal(value).replace("-", "\N{MINUS SIGN}")
    if isinstance(value, list | tuple):
        return ", ".join(told(entry, kind) for entry in value)
    return str(value)


def _decimal(value: float) -> str:
    size = abs(value)
    if size >= 1e6 or size < 1e-4:
        mantissa, exponent = f"{value:.3e}".split("e")
        return f"{mantissa}e{int(exponent):+d}"
    if size >= 1000:
        return f"{Decimal(_fixed(value, 1)):,}"
    return _fixed(value, 2 if size >= 100 else 3 if size >= 1 else 4)


def _fixed(value: float, digits: int) -> str:
    # As browsers round: the exact value, halves away from zero.
    unit = Decimal(1).scaleb(-digits)
    return str(Decimal(value).quantize(unit, rounding=ROUND_HALF_UP))


def tiles(run: Run) -> list[Tile]:
    """The label-free estimate, as the top of the page shows it."""
    document, quality = run.document, run.document["quality"]
    return [
        Tile(
            "Kept",
            "run.kept_share",
            document["kept"] / max(len(run.scores), 1),
            "share",
            f"{told(document['kept_steps'])} of {told(document['data']['steps'])} steps",
        ),
        *_weighed(document),
        Tile(
            "Seeds kept",
            "run.quality.seeds_kept",
            quality["seeds_kept"],
            "share",
            "are above the cut; being the expert's, all should be",
        ),
        Tile(
            "Gap at the cut",
            "run.quality.gap",
            quality["gap"],
            "share",
            "empty stretch at the cut, as a share of the way between the groups",
        ),
        Tile(
            "Borderline",
            "run.quality.borderline",
            quality["borderline"],
            "auto",
            "trajectories whose label could go either way",
        ),
    ]


def _weighed(document: Mapping[str, Any]) -> list[Tile]:
    """What evidence and controls say; nothing for recipes that gather none."""
    opinion, controls = document.get("second_opinion"), document.get("controls")
    if opinion is None or controls is None:
        return []
    return [
        Tile(
            "Evidence agrees",
            "run.second_opinion.agreement",
            opinion["agreement"],
            "share",
            "of the labels are the same by other evidence; a sound run mostly has 96 % or more",
        ),
        Tile(
            "Chance wrong",
            "run.chance_wrong",
            document["chance_wrong"],
            "share",
            "of a label; there is no such number where the run is not sound",
        ),
        Tile(
            "Told by the start",
            "run.controls.start",
            controls["start"],
            "auto",
            "how well the first state alone tells kept from dropped: 0.5 not at all, 1 perfectly",
        ),
    ]


def truth_tiles(run: Run) -> list[Tile]:
    """How right the selection is, where the truth is known."""
    report = run.document.get("truth_report")
    if run.truth is None or not report:
        return []
    words = {
        "accuracy": ("Accuracy", "share of right labels"),
        "precision": ("Precision", "share of the kept that are the expert's"),
        "recall": ("Recall", "share of the expert's that were kept"),
        "auc": ("AUC", "chance that the expert's ranks above another's"),
        "auc_without_seeds": ("AUC without seeds", "the same, seeds left out"),
    }
    kinds = {"auc": "auto", "auc_without_seeds": "auto"}
    return [
        Tile(label, f"run.truth_report.{name}", report.get(name), kinds.get(name, "share"), hint)
        for name, (label, hint) in words.items()
    ]


def groups(run: Run) -> list[dict[str, Any]]:
    """Kept, dropped and seeds, with their lengths and returns."""
    scores = run.scores
    chosen = {"kept": scores.keep, "dropped": ~scores.keep, "seeds": scores.seed}
    return [
        {
            "name": name,
            "count": int(mask.sum()),
            "steps": int(scores.lengths[mask].sum()),
            "length": _median(scores.lengths[mask].astype(np.float64)),
            "median": _median(scores.returns[mask]),
            "mean": _mean(scores.returns[mask]),
        }
        for name, mask in chosen.items()
    ]


def sources(run: Run) -> list[dict[str, Any]]:
    """What became of the trajectories of each source; empty where none is known."""
    scores = run.scores
    if scores.sources is None:
        return []
    members: dict[str, list[int]] = {}
    for position, name in enumerate(scores.sources):
        members.setdefault(name, []).append(position)
    rows = []
    for name in sorted(members):
        at = np.array(members[name])
        kept = int(scores.keep[at].sum())
        rows.append(
            {
                "name": name,
                "count": len(at),
                "kept": kept,
                "share": kept / len(at),
                "confidence": _median(scores.confidence[at]),
                "median": _median(scores.returns[at]),
            }
        )
    return rows


def confusions(run: Run) -> list[dict[str, Any]]:
    """The paper's Table 3: right and wrong after each round."""
    if run.truth is None:
        return []
    rows = []
    for done in run.rounds:
        counted = confusion(done.selected, run.truth)
        rows.append({"round": done.number, **asdict(counted), "accuracy": counted.accuracy})
    return rows


def provenance(run: Run) -> list[Fact]:
    """Where the run comes from."""
    document = run.document
    data, machine = document["data"], document.get("machine") or {}
    times = document.get("times") or {}
    rows: list[Fact] = [
        ("run.status", "Status", document["status"], "auto"),
        ("run.data.path", "Data", data["path"], "auto"),
        ("run.data.format", "Format", data["format"], "auto"),
        ("run.data.fingerprint", "Fingerprint (SHA-256)", data["fingerprint"], "auto"),
        ("run.data.trajectories", "Trajectories", data["trajectories"], "auto"),
        ("run.data.steps", "Steps", data["steps"], "auto"),
        ("run.data.observation_size", "Observation dimensions", data["observation_size"], "auto"),
        ("run.data.action_size", "Action dimensions", data["action_size"], "auto"),
        ("run.seed.ids", "Seeds", _some(document["seed"]["ids"]), "auto"),
        ("run.random_seed", "Random seed", document["random_seed"], "auto"),
        ("run.threshold", "Threshold", document["threshold"], "auto"),
        ("run.rounds", "Rounds", document["rounds"], "auto"),
        ("run.times.started", "Started", times.get("started"), "auto"),
        ("run.times.seconds.total", "Seconds", (times.get("seconds") or {}).get("total"), "auto"),
    ]
    rows += [(f"run.{n}", n, document.get(n), "auto") for n in ("pubc", "python", "numpy", "torch")]
    rows += [(f"run.machine.{name}", name, value, "auto") for name, value in machine.items()]
    return rows


def settings(run: Run) -> list[Fact]:
    """Every setting of the run, given or by default."""
    return [
        (f"run.{name}", name, value, "auto")
        for part in _SHOWN
        for name, value in flat(part, run.document.get(part))
    ]


def flat(name: str, value: Any) -> list[tuple[str, Any]]:
    """Nested settings as dotted names; what was not set is left out."""
    if isinstance(value, dict):
        return [pair for key, entry in value.items() for pair in flat(f"{name}.{key}", entry)]
    return [] if value is None or value == [] else [(name, value)]


def _some(names: list[str], most: int = 20) -> list[str]:
    more = len(names) - most
    return names[:most] + ([f"and {more:,} more"] if more > 0 else [])


def _median(values: Floats) -> float | None:
    known = values[np.isfinite(values)]
    return float(np.median(known)) if known.size else None


def _mean(values: Floats) -> float | None:
    known = values[np.isfinite(values)]
    return float(known.mean()) if known.size else None
