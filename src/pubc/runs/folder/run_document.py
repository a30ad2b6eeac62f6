"""run.json: how it begins, how a run is read back from it, how it ends."""

from __future__ import annotations

import dataclasses
import math
import platform
from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from pubc.errors import DataError, UsageError
from pubc.formats.opening.detect import detect
from pubc.metrics import confusion, roc_auc
from pubc.nets import pick_device
from pubc.pu.pile_statistics import survey
from pubc.pu.recipes import Recipe, recipe_to_json
from pubc.pu.second_opinion.opinion import Opinion
from pubc.runs.filter_config import FilterConfig
from pubc.runs.find_expert import Prepared, Result
from pubc.runs.folder.document_types import reading_options
from pubc.runs.folder.run_files import KIND, question_of
from pubc.runs.seeds import Seeds
from pubc.select import locate
from pubc.storage import check_settings
from pubc.trajectory import TrajectorySet
from pubc.version import __version__

__all__ = ["begin_document", "check_same", "finish_document", "restore"]

Mask = NDArray[np.bool_]
SEGMENT_SETTINGS = ("segments", "min_segment", "segment_margin", "drop_idle")


def begin_document(
    config: FilterConfig,
    data: Path | None,
    mixed: TrajectorySet,
    ready: Prepared,
    seeds: Seeds,
    recipe: Recipe,
) -> dict[str, Any]:
    """run.json at the start of a run: everything needed to do it again.

    Args:
        config: What was asked for.
        data: Where the data is; None where it was made in memory.
        mixed: The data.
        ready: The data as the recipe may see it.
        seeds: The seeds, and how they were named.
        recipe: How to filter.
    """
    return {
        "kind": KIND,
        "version": 1,
        "status": "running",
        **_versions(config.device),
        "data": {
            "path": None if data is None else str(data.resolve()),
            "format": None if data is None else config.reading.format or detect(data),
            "fingerprint": ready.facts.fingerprint,
            "trajectories": len(mixed),
            "steps": mixed.steps,
            "observation_size": mixed.observation_size,
            "action_size": mixed.action_size,
        },
        "reading": dataclasses.asdict(config.reading),
        "seed": _told_seeds(seeds, mixed),
        "bad": _bad(config, mixed, ready),
        "recipe": recipe_to_json(recipe),
        "settings": {
            "recipe": config.recipe,
            "classifiers": config.classifiers,
            "order": config.order,
            "max_rounds": config.max_rounds,
        },
        "random_seed": config.random_seed,
        "device": config.device,
        "labels": None if config.labels is None else str(config.labels.resolve()),
        "truth": config.truth,
        "to": config.to,
        "mask": config.mask,
        "unsure": config.unsure,
        "per_step": config.per_step,
        "segments": {name: getattr(config, name) for name in SEGMENT_SETTINGS},
        "steps": dataclasses.asdict(recipe.step_settings),
        "problems": [dataclasses.asdict(problem) for problem in (*mixed.problems, *ready.problems)],
    }


def _bad(config: FilterConfig, mixed: TrajectorySet, ready: Prepared) -> dict[str, Any]:
    stretches = [
        {"episode": str(mixed.ids[at]), "start": start, "stop": stop}
        for at, start, stop in ready.bad_stretches
    ]
    ids = [str(name) for name in mixed.ids[ready.known_bad]]
    return {"episodes": config.bad_episodes, "ids": ids, "stretches": stretches}


def _versions(asked: str) -> dict[str, Any]:
    """What computes: versions of what shapes the last digits, and the machine."""
    device = pick_device(asked)
    name = torch.cuda.get_device_name() if device.type == "cuda" else "cpu"
    return {
        "pubc": __version__,
        "python": platform.python_version(),
        "numpy": np.__version__,
        "torch": torch.__version__,
        "machine": {
            "platform": platform.platform(),
            "processor": torch.backends.cpu.get_cpu_capability(),
            "device": name,
        },
    }


def restore(document: Mapping[str, Any], given: FilterConfig) -> tuple[Path, FilterConfig]:
    """The data and the configuration that began a run, from its run.json.

    Args:
        document: run.json.
        given: Who works now; that changes no result, so the document does not say.

    Raises:
        DataError: The document does not describe a run that can go on.
    """
    try:
        seed = document["seed"]
        data = Path(document["data"]["path"])
        config = dataclasses.replace(
            given,
            seed_top=seed["top"] if seed["how"] == "top" else None,
            seed_episodes=seed["episodes"],
            seed_from=None if seed["from"] is None else Path(seed["from"]),
            seed_source=seed["source"],
            seed_steps_column=seed.get("steps_column"),
            seed_count=seed["count"] or 2,
            bad_episodes=(document.get("bad") or {}).get("episodes"),
            random_seed=document["random_seed"],
            device=document["device"],
            labels=None if document.get("labels") is None else Path(document["labels"]),
            truth=document["truth"],
            to=document["to"],
            mask=document["mask"],
            unsure=document.get("unsure", "drop"),
            per_step=document["per_step"],
            **document.get("segments", {}),
            reading=reading_options(document),
            **document["settings"],
        )
        check_settings(config)
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise DataError(f"run.json cannot be read back ({error}).", code="bad_json") from None
    return data, config


def check_same(
    before: Mapping[str, Any], now: Mapping[str, Any], warn: Callable[[str], None]
) -> None:
    """See that a run that goes on would do what it began; other versions are warned about.

    Args:
        before: run.json as the run began.
        now: run.json as it would begin now.
        warn: Told about other versions.

    Raises:
        UsageError: The data or the seeds are not those that it began with.
    """
    same = [
        ("the data", before["data"]["fingerprint"], now["data"]["fingerprint"]),
        ("the seeds", before["seed"]["ids"], now["seed"]["ids"]),
        ("what is known to be bad", before.get("bad"), now["bad"]),
        ("the marks", before.get("marks"), now.get("marks")),
        ("the recipe", question_of(before), question_of(now)),
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


def _told_seeds(seeds: Seeds, mixed: TrajectorySet) -> dict[str, Any]:
    """How the seeds were named, and which they are; those elsewhere are known by a digest."""
    positions = locate(mixed, seeds.trajectories)
    inside = np.asarray(list(dict.fromkeys(positions[positions >= 0].tolist())), dtype=np.int64)
    ids = [str(i) for i in mixed.ids[inside]]
    told = {**seeds.asked, "positions": inside.tolist(), "ids": ids}
    outside = np.flatnonzero(positions < 0)
    if seeds.asked["how"] == "from" and len(outside):
        digest = survey(seeds.trajectories[outside]).fingerprint
        told["outside"] = {"positions": outside.tolist(), "fingerprint": digest}
    return told


def finish_document(
    document: Mapping[str, Any],
    mixed: TrajectorySet,
    result: Result,
    kept: str | None,
    truth: Mask | None,
    started: float,
    seconds: Mapping[str, Any],
) -> dict[str, Any]:
    """run.json at the end of a run.

    Args:
        document: run.json at its start.
        mixed: The data.
        result: What was found.
        kept: Name of the file with the kept trajectories.
        truth: Which trajectories are the expert's, where that is known.
        started: When the run started, in seconds since 1970.
        seconds: How long reading, the rounds and writing took.
    """
    quality = {
        field.name: getattr(result.quality, field.name)
        for field in dataclasses.fields(result.quality)
    }
    quality["borderline"] = int(result.quality.borderline.sum())
    taken = {name: seconds[name] for name in ("read", "rounds", "steps", "write")}
    taken["total"] = datetime.now(UTC).timestamp() - started
    return {
        **document,
        "status": result.status,
        "sound": result.sound,
        "threshold": result.threshold,
        "network_threshold": result.network_threshold,
        "chance_wrong": result.weighed.chance_wrong,
        "kept": int(result.mask.sum()),
        "kept_steps": int(mixed.lengths[result.mask].sum()),
        "kept_path": kept,
        "round": result.round,
        "rounds": len(result.rounds),
        "quality": quality,
        "unsure_count": int(result.unsure.sum()),
        "second_opinion": None if result.opinion is None else _opinion(result.opinion, result),
        "controls": _controls(result),
        "advice": list(result.advice),
        "truth_report": None if truth is None else _truth_report(document["truth"], result, truth),
        "times": {
            "started": datetime.fromtimestamp(started, UTC).isoformat(),
            "seconds": taken,
        },
    }


def _opinion(opinion: Opinion, result: Result) -> dict[str, Any]:
    return {
        "looked_at": len(opinion.looked),
        "kept": int(opinion.kept.sum()),
        "decided": result.weighed.by_evidence,
        "agreement": result.weighed.agreement,
        "repeated": opinion.repeated,
        "support": opinion.support,
        "apart": opinion.apart,
        "divided": opinion.divided,
        "ways_agree": opinion.ways_agree,
        "dropped_closer": opinion.dropped_closer,
        "another": opinion.another,
        "seeds_found": opinion.seeds_found,
        "lonely_seeds": list(result.weighed.lonely_seeds),
    }


def _controls(result: Result) -> dict[str, float] | None:
    controls = result.weighed.controls
    return None if controls is None else dataclasses.asdict(controls)


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
