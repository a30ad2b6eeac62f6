"""The films of a part of a LeRobot dataset: v2.1 keeps one per episode, v3.0 joins many in one.

A film is copied byte by byte where all of its episodes are kept. Otherwise the kept ones are cut
out where the extra `video` is installed and the film allows it without encoding again; else the
whole film is copied, and the list of episodes points to the kept parts of it. Either way the part
is a complete dataset.
"""

from __future__ import annotations

import shutil
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from pubc.errors import DataError
from pubc.formats.lerobot.lerobot_cut import Span, can_cut, cut
from pubc.formats.lerobot.lerobot_meta import Episodes, Info
from pubc.formats.lerobot.lerobot_paths import fill, inside

__all__ = ["copy_films", "copy_single_films"]

_TEMPLATE = "videos/{video_key}/chunk-{chunk_index:03d}/file-{file_index:03d}.mp4"
_PLACE = ("chunk_index", "file_index", "from_timestamp", "to_timestamp")
Row = dict[str, Any]


def copy_films(
    info: Info, episodes: Episodes | None, folder: Path, numbers: Sequence[int]
) -> tuple[dict[int, Row], tuple[str, ...]]:
    """Copy the films of the given episodes of a v3.0 dataset.

    Args:
        info: The source.
        episodes: Its list of episodes, with the places of the films.
        folder: The dataset to copy to.
        numbers: `episode_index` of each episode to keep.

    Returns:
        What the list of episodes says of the films of each, and remarks for the user.
    """
    rows: dict[int, Row] = {number: {} for number in numbers}
    if not info.videos:
        return rows, ()
    if episodes is None:
        raise DataError(
            f"{info.root}: meta/episodes is missing, so nobody knows where in the films the "
            "episodes are.",
            code="missing_file",
            field="meta/episodes",
        )
    whole = 0
    for key in info.videos:
        for place, held in sorted(_films(info, episodes, key).items()):
            kept = [number for number in held if number in rows]
            if kept:
                places = _copy(info, folder, key, place, held, kept)
                whole += len(kept) < len(held) and places is held
                for number in kept:
                    rows[number] |= _entry(key, place, places[number])
    return rows, _remarks(whole)


def _remarks(whole: int) -> tuple[str, ...]:
    if not whole:
        return ()
    films = "1 film was" if whole == 1 else f"{whole:,} films were"
    told = f"{films} copied whole, with the pictures of dropped episodes in it"
    if not can_cut():
        return (f"{told}; with the extra 'video' (PyAV) pubc cuts them out.",)
    return (f"{told}: some of its episodes do not begin with a whole picture.",)


def _films(info: Info, episodes: Episodes, key: str) -> dict[tuple[int, int], dict[int, Span]]:
    """Every film of a camera, with the place of each episode in it."""
    columns = [episodes.columns.get(f"videos/{key}/{name}") for name in _PLACE]
    films: dict[tuple[int, int], dict[int, Span]] = {}
    lengths = episodes.lengths.tolist()
    for row, number in enumerate(episodes.numbers.tolist()):
        match [None if column is None else column[row] for column in columns]:
            case [int(chunk), int(file), float(begin), float(end)]:
                film = films.setdefault((chunk, file), {})
                film[number] = Span(begin, end, lengths[row])
            case _:
                raise DataError(
                    f"{info.root}: {episodes.file}: does not say where the film of {key} for "
                    f"episode {number} is.",
                    code="missing_key",
                    field=f"videos/{key}",
                    index=number,
                )
    return films


def _copy(
    info: Info,
    folder: Path,
    key: str,
    place: tuple[int, int],
    held: dict[int, Span],
    kept: list[int],
) -> dict[int, Span]:
    """Copy one film, or the kept parts of it; where each episode is then."""
    template = str(info.document.get("video_path") or _TEMPLATE)
    values: dict[str, int | str] = {
        "video_key": key,
        "chunk_index": place[0],
        "file_index": place[1],
    }
    path = fill(template, values)
    source, target = inside(info.root, info.root / path), folder / path
    if not source.is_file():
        raise DataError(f"{source}: the film is missing.", code="missing_file", field=key)
    target.parent.mkdir(parents=True, exist_ok=True)
    if len(kept) < len(held) and can_cut():
        order = sorted(kept, key=lambda number: held[number].begin)
        begins = cut(source, target, [held[number] for number in order])
        if begins is not None:
            return {
                number: _moved(held[number], begin)
                for number, begin in zip(order, begins, strict=True)
            }
    shutil.copyfile(source, target)
    return held


def _moved(span: Span, begin: float) -> Span:
    return Span(begin, begin + span.end - span.begin, span.frames)


def _entry(key: str, place: tuple[int, int], span: Span) -> Row:
    values = (*place, span.begin, span.end)
    return {f"videos/{key}/{name}": value for name, value in zip(_PLACE, values, strict=True)}


def copy_single_films(info: Info, folder: Path, numbers: Sequence[int], chunk: int) -> None:
    """Copy the films of a v2.1 dataset, one per episode, under their new numbers.

    Args:
        info: The source.
        folder: The dataset to copy to.
        numbers: `episode_index` of each episode to keep.
        chunk: Episodes per folder of the copy.
    """
    template = str(info.document.get("video_path") or "")
    size = max(1, info.count("chunks_size") or chunk)
    for new, old in enumerate(numbers):
        for key in info.videos:
            there: dict[str, Any] = {
                "episode_index": old,
                "episode_chunk": old // size,
                "video_key": key,
            }
            here = there | {"episode_index": new, "episode_chunk": new // chunk}
            source = inside(info.root, info.root / fill(template, there))
            target = inside(folder, folder / fill(template, here))
            target.parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(source, target)
