"""A part of a LeRobot dataset as a dataset of its own, and the words that make lerobot use it.

Every column of the kept episodes is copied, also those that pubc does not understand, and so are
their films (`lerobot_films`).
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from pubc.formats.core.findings import Findings
from pubc.formats.lerobot.lerobot_films import copy_films, copy_single_films
from pubc.formats.lerobot.lerobot_meta import Info, read_episodes, read_info, read_lines, read_tasks
from pubc.formats.lerobot.lerobot_notes import read_notes
from pubc.formats.lerobot.lerobot_paths import inside
from pubc.formats.lerobot.lerobot_write import CHUNK, KIND, Writer
from pubc.formats.parquet.parquet_read import read_table, to_numpy
from pubc.formats.parquet.parquet_write import join, pick
from pubc.storage import atomic_folder

__all__ = ["has_pictures", "keep_command", "numbers_of", "subset_of", "train_command"]


def subset_of(
    info: Info, target: Path, numbers: Sequence[int], *, overwrite: bool
) -> tuple[str, ...]:
    """Copy the given episodes with every column, renumbered in the order given.

    Args:
        info: The source.
        target: Where to write.
        numbers: `episode_index` of each episode to keep.
        overwrite: Replace an existing target.

    Returns:
        Remarks for the user, where something could be better.
    """
    listed = read_episodes(info, Findings(info.root), stats=True)
    rows = {} if listed is None else {int(n): i for i, n in enumerate(listed.numbers)}
    facts = {} if listed is None else listed.columns
    image_stats = _image_stats(info, facts, rows)
    tasks = read_tasks(info) or {0: "unknown"}
    with atomic_folder(target, kind=KIND, overwrite=overwrite) as folder:
        writer = Writer(folder, info.version)
        films: dict[int, dict[str, Any]] = {}
        remarks: tuple[str, ...] = ()
        if info.version == "v3.0":
            films, remarks = copy_films(info, listed, folder, numbers)
        else:
            copy_single_films(info, folder, numbers, CHUNK)
        for number, table in _episode_tables(info, numbers):
            also = {
                name: values[rows[number]]
                for name, values in facts.items()
                if number in rows and not name.startswith(("stats/", "videos/"))
            }
            used = also.pop("tasks", None)
            used = used if isinstance(used, list) else []
            also |= films.get(number, {})
            writer.add(table, used, also=also, stats=image_stats.get(number))
        changed: dict[str, Any] = dict(info.document)
        if info.version == "v2.1":
            changed["total_videos"] = len(info.videos) * len(numbers)
        writer.close(changed, tasks)
        notes = read_notes(info, Findings(info.root))
        if notes is not None:
            order = sorted(rows) if rows else sorted(numbers)
            places = {number: place for place, number in enumerate(order)}
            notes.write(folder, [places[number] for number in numbers])
    return remarks


def _episode_tables(info: Info, numbers: Sequence[int]) -> Iterator[tuple[int, Any]]:
    """The frames of each episode with all columns, in order; one file in memory at a time."""
    where: dict[int, list[Path]] = {}
    for file in info.data_files():
        column = to_numpy(
            file, read_table(file, lambda n, _: n == "episode_index"), "episode_index"
        )
        for number in np.unique(column).tolist():
            where.setdefault(int(number), []).append(file)
    held: tuple[Path, Any, Any] | None = None
    for number in numbers:
        parts = []
        for file in where[number]:
            if held is None or held[0] != file:
                table = read_table(file)
                held = (file, table, to_numpy(file, table, "episode_index"))
            parts.append(pick(held[1], np.flatnonzero(held[2] == number)))
        table = parts[0] if len(parts) == 1 else join(parts)
        frame = to_numpy(where[number][0], table, "frame_index")
        if (np.diff(frame) < 0).any():
            table = pick(table, np.argsort(frame, kind="stable"))
        yield number, table.combine_chunks()


def _image_stats(
    info: Info, facts: dict[str, list[Any]], rows: dict[int, int]
) -> dict[int, dict[str, dict[str, Any]]]:
    """Statistics of features that are no columns of numbers, as the source has them."""
    images = {n for n, about in info.features.items() if about.get("dtype") in ("image", "video")}
    if info.version == "v2.1":
        path = info.root / "meta" / "episodes_stats.jsonl"
        lines = read_lines(inside(info.root, path)) if path.exists() else []
        return {
            int(line["episode_index"]): {n: s for n, s in line["stats"].items() if n in images}
            for line in lines
        }
    found: dict[int, dict[str, dict[str, Any]]] = {number: {} for number in rows}
    for column, values in facts.items():
        if column.startswith("stats/"):
            name, _, kind = column.removeprefix("stats/").rpartition("/")
            for number, row in rows.items():
                if name in images:
                    found[number].setdefault(name, {})[kind] = values[row]
    return found


def numbers_of(root: Path, ids: Sequence[str]) -> list[int]:
    """The `episode_index` behind each id; they differ in sets that pubc wrote."""
    info = read_info(root, Findings(root))
    notes = read_notes(info, Findings(info.root))
    listed = read_episodes(info, Findings(root))
    known = {}
    if notes is not None and listed is not None:
        order = np.argsort(listed.numbers)
        lengths = to_numpy(notes.path, notes.table, "length")
        if np.array_equal(lengths, listed.lengths[order]):
            names = notes.table.column("id").to_pylist()
            known = dict(zip(names, listed.numbers[order].tolist(), strict=True))
    return [int(known.get(str(name), name)) for name in ids]


def train_command(
    folder: Path, *, pictures: bool, quote: Callable[[str], str] = shlex.quote
) -> str:
    """The line that trains with lerobot on a dataset folder.

    Args:
        folder: A complete dataset, for example what a run kept.
        pictures: Whether it has images, films or `observation.environment_state`, one of which
            lerobot's policies need.
        quote: Makes one word of a text for the shell.
    """
    place = folder.resolve()
    if not pictures:
        return (
            "# lerobot's ACT and diffusion policies need images or observation.environment_state, "
            "and this set has neither; `pubc train` does not"
        )
    name = re.sub(r"[^-_.\w]+", "-", place.name).strip("-.") or "kept"
    return (
        "lerobot-train --policy.type=act --policy.push_to_hub=false "
        f"--dataset.repo_id=local/{name} --dataset.root={quote(str(place))} "
        f"--output_dir={quote(f'outputs/{name}')}"
    )


def has_pictures(root: Path) -> bool:
    """Whether a dataset has what lerobot's policies look at beside the state of the robot."""
    features = read_info(root, Findings(root)).features
    return "observation.environment_state" in features or any(
        about.get("dtype") in ("image", "video") for about in features.values()
    )


def keep_command(root: Path, kept: Sequence[int]) -> str:
    """The lerobot commands that use only some episodes of a dataset where it lies.

    Args:
        root: The dataset folder.
        kept: `episode_index` of each episode to keep.
    """
    info = read_info(root, Findings(root))
    total = info.count("total_episodes") or 0
    keep = sorted(int(number) for number in kept)
    drop = sorted(set(range(total)) - set(keep))
    train = train_command(root, pictures=has_pictures(root))
    if not train.startswith("#"):
        train += f' --dataset.episodes="{keep}"'
    # A whole path, for lerobot puts a bare name into the folder of the source.
    beside = shlex.quote(f"{root.resolve()}_kept")
    edit = (
        f"lerobot-edit-dataset --repo_id {shlex.quote(root.resolve().name)} "
        f"--root {shlex.quote(str(root.resolve()))} --new_repo_id {beside} "
        f'--operation.type delete_episodes --operation.episode_indices "{drop}"'
    )
    return f"{train}\n{edit}" if drop else train
