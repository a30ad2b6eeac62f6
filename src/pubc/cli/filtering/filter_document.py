"""run.json of `pubc filter`: how it begins, how a run is read back from it, how it ends."""

from __future__ import annotations

import dataclasses
import math
import platform
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from pubc import formats
from pubc.cli.console import warn
from pubc.cli.filtering.filter_seeds import Seeds
from pubc.errors import DataError, UsageError
from pubc.formats.opening.detect import detect
from pubc.metrics import confusion, roc_auc
from pubc.select import locate
from pubc.trajectory import TrajectorySet
from pubc.version import __version__

if TYPE_CHECKING:
    from pubc.cli.filtering.filter_command import Filter
    from pubc.pu.recipes import Recipe
    from pubc.runs.find_expert import Prepared, Result

__all__ = ["begin_document", "check_same", "finish_document", "restore"]

Mask = NDArray[np.bool_]


def begin_document(
    command: Filter, mixed: TrajectorySet, ready: Prepared, seeds: Seeds, recipe: Recipe
) -> dict[str, Any]:
    """run.json at the start of a run: everything needed to do it again."""
    import torch

    from pubc.nets import pick_device
    from pubc.pu.recipes import recipe_to_json

    assert command.data is not None
    device = pick_device(command.device)
    name = torch.cuda.get_device_name() if device.type == "cuda" else "cpu"
    positions = locate(mixed, seeds.trajectories)
    inside = positions[positions >= 0]
    return {
        "kind": "filter",
        "version": 1,
        "status": "running",
        "pubc": __version__,
        "python": platform.python_version(),
        "numpy": np.__version__,
        "torch": torch.__version__,
        "machine": {
            "platform": platform.platform(),
            "processor": torch.backends.cpu.get_cpu_capability(),
            "device": name,
        },
        "data": {
            "path": str(command.data.resolve()),
            "format": command.reading.format or detect(command.data),
            "fingerprint": ready.facts.fingerprint,
            "trajectories": len(mixed),
            "steps": mixed.steps,
            "observation_size": mixed.observation_size,
            "action_size": mixed.action_size,
        },
        "reading": dataclasses.asdict(command.reading),
        "seed": {
            **seeds.asked,
            "positions": inside.tolist(),
            "ids": [str(i) for i in mixed.ids[inside]],
        },
        "recipe": recipe_to_json(recipe),
        "settings": {
            "recipe": command.recipe,
            "classifiers": command.classifiers,
            "order": command.order,
            "max_rounds": command.max_rounds,
        },
        "random_seed": command.random_seed,
        "device": command.device,
        "truth": command.truth,
        "to": command.to,
        "mask": command.mask,
        "per_step": command.per_step,
        "problems": [dataclasses.asdict(problem) for problem in (*mixed.problems, *ready.problems)],
    }


def restore(command: Filter, document: dict[str, Any]) -> Filter:
    """The command that began a run, from its run.json."""
    try:
        seed, reading = document["seed"], dict(document["reading"])
        reading["observation_keys"] = tuple(reading["observation_keys"])
        return dataclasses.replace(
            command,
            data=Path(document["data"]["path"]),
            resume=None,
            seed_top=seed["top"] if seed["how"] == "top" else None,
            seed_episodes=seed["episodes"],
            seed_from=None if seed["from"] is None else Path(seed["from"]),
            seed_source=seed["source"],
            seed_count=seed["count"] or 2,
            random_seed=document["random_seed"],
            device=document["device"],
            truth=document["truth"],
            to=document["to"],
            mask=document["mask"],
            per_step=document["per_step"],
            reading=formats.ReadOptions(**reading),
            **document["settings"],
        )
    except (KeyError, TypeError) as error:
        raise DataError(f"run.json cannot be read back ({error}).", code="bad_json") from None


def check_same(before: dict[str, Any], now: dict[str, Any]) -> None:
    """See that a run that goes on would do what it began; other versions are warned about.

    Raises:
        UsageError: The data or the seeds are not those that it began with.
    """
    same = [
        ("the data", before["data"]["fingerprint"], now["data"]["fingerprint"]),
        ("the seeds", before["seed"]["ids"], now["seed"]["ids"]),
    ]
    for what, old, new in same:
        if old != new:
            raise UsageError(
                f"{what} changed since the run began, so it cannot go on. Start it anew: "
                "pubc filter DATA --out RUN --force"
            )
    machine = ("torch", "numpy")
    changed = [name for name in machine if before.get(name) != now.get(name)]
    if changed:
        warn(
            f"the versions of {', '.join(changed)} changed since the run began; the result may "
            "differ in the last digits from an uninterrupted run."
        )


def finish_document(
    document: dict[str, Any],
    mixed: TrajectorySet,
    result: Result,
    kept: str | None,
    clock: dict[str, Any],
    truth: Mask | None,
) -> dict[str, Any]:
    """run.json at the end of a run."""
    quality = {
        field.name: getattr(result.quality, field.name)
        for field in dataclasses.fields(result.quality)
    }
    quality["borderline"] = int(result.quality.borderline.sum())
    seconds = {name: clock[name] for name in ("read", "rounds", "write")}
    seconds["total"] = datetime.now(UTC).timestamp() - clock["started"]
    return {
        **document,
        "status": result.status,
        "sound": result.sound,
        "threshold": result.threshold,
        "kept": int(result.mask.sum()),
        "kept_steps": int(mixed.lengths[result.mask].sum()),
        "kept_path": kept,
        "round": result.round,
        "rounds": len(result.rounds),
        "quality": quality,
        "advice": list(result.advice),
        "truth_report": None if truth is None else _truth_report(document["truth"], result, truth),
        "times": {
            "started": datetime.fromtimestamp(clock["started"], UTC).isoformat(),
            "seconds": seconds,
        },
    }


def _truth_report(expert: str, result: Result, truth: Mask) -> dict[str, Any]:
    counted = confusion(result.mask, truth)
    others = ~result.seeds
    numbers = {
        "accuracy": counted.accuracy,
        "precision": counted.precision,
        "recall": counted.recall,
        "auc": roc_auc(result.confidence, truth),
        "auc_without_seeds": roc_auc(result.confidence[others], truth[others]),
    }
    known = {name: value if math.isfinite(value) else None for name, value in numbers.items()}
    return {"expert": expert, **known, **dataclasses.asdict(counted)}
