"""The parts of `pubc filter` that know files: seeds, documents, kept data, next commands."""

from __future__ import annotations

import dataclasses
import math
import platform
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from pubc import __version__, formats
from pubc.errors import DataError, UnknownNameError, UsageError
from pubc.formats.detect import detect
from pubc.metrics import confusion, roc_auc
from pubc.select import by_ids, by_source, locate, top_returns
from pubc.storage.disk import remove
from pubc.trajectory import TrajectorySet

if TYPE_CHECKING:
    from pubc.cli.filter import Filter
    from pubc.pu.find import Prepared, Result
    from pubc.pu.recipes import Recipe

__all__ = [
    "Seeds",
    "begin_document",
    "check_format",
    "choose_seeds",
    "finish_document",
    "most_unsure",
    "next_commands",
    "open_folder",
    "restore",
    "truth_mask",
    "write_kept",
    "write_masked",
]

Mask = NDArray[np.bool_]

SEED_TOP = 0.004
"""Share of highest returns that are seeds where nothing else is said."""
AT_LEAST = 2
"""Seeds by return: with a single one nothing could be held out."""
MASKED = "masked.hdf5"
_SUFFIX = {"diffusion": "zarr", "d3rlpy": "h5", "d4rl": "hdf5", "robomimic": "hdf5"}


@dataclass(frozen=True, slots=True, eq=False)
class Seeds:
    """The seeds that were asked for."""

    trajectories: TrajectorySet
    """The seed positives."""
    asked: dict[str, Any]
    """How they were named, for run.json."""


def choose_seeds(command: Filter, mixed: TrajectorySet) -> Seeds:
    """The seed positives that the flags name.

    Raises:
        UsageError: Two ways to name seeds were given, or one that leads nowhere.
        DataError: The data has no returns or sources to choose by.
    """
    given = {
        "top": command.seed_top,
        "episodes": command.seed_episodes,
        "from": None if command.seed_from is None else str(command.seed_from.resolve()),
        "source": command.seed_source,
    }
    ways = [name for name, value in given.items() if value is not None]
    if len(ways) > 1:
        raise UsageError(
            f"Name seeds in one way. Got {' and '.join(f'--seed-{way}' for way in ways)}."
        )
    how = ways[0] if ways else "top"
    asked: dict[str, Any] = {"how": how, **given, "count": None}
    if how == "episodes":
        words = [word.strip() for word in str(command.seed_episodes).split(",")]
        return Seeds(mixed[by_ids(mixed, [word for word in words if word])], asked)
    if how == "from":
        assert command.seed_from is not None
        options = dataclasses.replace(command.reading, format=None)
        return Seeds(formats.read(command.seed_from, options), asked)
    if how == "source":
        from pubc.streams import Key

        rng = Key(command.random_seed, ("seeds",)).rng()
        asked["count"] = command.seed_count
        chosen = by_source(mixed, str(command.seed_source), command.seed_count, rng)
        return Seeds(mixed[chosen], asked)
    asked["top"] = share = SEED_TOP if command.seed_top is None else command.seed_top
    if len(mixed) < 2 * AT_LEAST:
        raise DataError(
            f"{len(mixed)} trajectories are too few to take the {AT_LEAST} with the highest "
            "return as seeds. Name seeds with --seed-episodes or --seed-from.",
            code="too_few",
        )
    return Seeds(mixed[top_returns(mixed, share, at_least=AT_LEAST, shortest=2)], asked)


def truth_mask(mixed: TrajectorySet, name: str | None) -> Mask | None:
    """Which trajectories are by the named policy; None where none was named."""
    if name is None:
        return None
    if mixed.sources is None:
        raise DataError(
            "The dataset does not say which policy acted, so --truth has nothing to compare "
            "with. If it has a column that does, pass --source-key.",
            code="no_sources",
            field="sources",
        )
    if name not in mixed.sources:
        raise UnknownNameError("source", name, np.unique(mixed.sources).tolist())
    return np.asarray(mixed.sources == name)


def open_folder(path: Path, *, force: bool) -> None:
    """See that the folder for a new run is free, or make it so.

    Raises:
        UsageError: Something is there that must not be replaced.
    """
    # A run killed before its first word leaves hidden files at most.
    if not path.exists() or (path.is_dir() and all(p.name[0] == "." for p in path.iterdir())):
        return
    ours = (path / "run.json").is_file() and _is_run(path)
    if not ours:
        raise UsageError(f"{path} exists and is not the folder of a filter run. Choose another.")
    if not force:
        raise UsageError(
            f"{path} holds a run already. Go on with it (pubc filter --resume {path}), choose "
            "another folder, or pass --force to replace it."
        )
    from pubc.storage import lock

    with lock(path):
        for entry in path.iterdir():
            if entry.name != ".lock":
                remove(entry)


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


def write_kept(
    folder: Path, source: Path, mixed: TrajectorySet, mask: Mask, command: Filter
) -> str | None:
    """Write the kept trajectories, and return the name of what was written."""
    positions = np.flatnonzero(mask)
    if not len(positions):
        return None
    own = command.reading.format or detect(source)
    wanted = command.to or own
    if wanted == own and source.is_file():
        name = "kept" + "".join(source.suffixes[-2:] if wanted == "diffusion" else [source.suffix])
    else:
        name = f"kept.{_SUFFIX.get(wanted, wanted)}"
    if wanted == own:
        module = formats.get(own)
        if hasattr(module, "subset") or hasattr(module, "write"):
            formats.save_subset(
                source, folder / name, mixed, positions, command.reading, overwrite=True
            )
            return name
        wanted, name = "store", "kept.store"
    formats.save(folder / name, mixed[positions], format=wanted, overwrite=True)
    return name


def write_masked(folder: Path, source: Path, mask: Mask, reading: formats.ReadOptions) -> None:
    """Write a copy of a robomimic file with a mask that names what was kept."""
    from pubc.formats.robomimic import write_mask

    selection = formats.Selection(source, np.flatnonzero(mask), reading)
    write_mask(selection, folder / MASKED, overwrite=True)


def most_unsure(result: Result, most: int = 24) -> NDArray[np.int64]:
    """Positions of the borderline trajectories nearest to the threshold."""
    unsure = np.flatnonzero(result.quality.borderline & np.isfinite(result.confidence))
    middle = 0.0 if result.threshold is None else result.threshold
    near = np.argsort(np.abs(result.confidence[unsure] - middle), kind="stable")
    return np.sort(unsure[near[:most]]).astype(np.int64)


def check_format(command: Filter) -> None:
    """Refuse what cannot be written, before any work is done."""
    name = command.to
    if name is not None and not hasattr(formats.get(name), "write"):
        raise UsageError(f"pubc reads the {name} format but does not write it; see `pubc formats`.")
    assert command.data is not None
    if command.mask and (own := command.reading.format or detect(command.data)) != "robomimic":
        raise UsageError(f"--mask is for robomimic files, and {command.data} is {own}.")


def next_commands(folder: Path, command: Filter, mixed: TrajectorySet, mask: Mask) -> list[str]:
    """What users of other tools can type next."""
    assert command.data is not None
    name = command.reading.format or detect(command.data)
    if not mask.any():
        return []
    if name == "lerobot":
        from pubc.formats.lerobot import keep_command, numbers_of

        kept = numbers_of(command.data, mixed.ids[mask].tolist())
        return ["", "next", keep_command(command.data, kept)]
    if name == "robomimic":
        told = f"train.data={folder / 'kept.hdf5'}"
        if command.mask:
            told = f"train.data={folder / MASKED} train.hdf5_filter_key=pubc_keep"
        return ["", "next", f"in the configuration of robomimic: {told}"]
    return []


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


def _is_run(path: Path) -> bool:
    from pubc.pu.runfolder import RunFolder

    try:
        RunFolder(path).read()
    except DataError:
        return False
    return True
