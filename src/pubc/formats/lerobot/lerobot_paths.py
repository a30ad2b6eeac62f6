"""Paths that a LeRobot dataset names in its own words, and none that lead out of it."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from pubc.errors import DataError

__all__ = ["FIELD", "NAMES", "fill", "inside", "numbers_in"]

FIELD = re.compile(r"\{([a-z_]+)(?::0([1-9])d)?\}")
NAMES = {"chunk_index", "file_index", "episode_chunk", "episode_index", "video_key"}


def fill(template: str, values: Mapping[str, int | str]) -> str:
    """Fill a path template: only `{name}` and `{name:0Nd}` of known names.

    Raises:
        DataError: Anything else in braces, a wildcard, or a path that leads out.
    """

    def one(match: re.Match[str]) -> str:
        name, width = match.group(1), match.group(2)
        if name not in NAMES or name not in values:
            raise DataError(f"the template {template!r} uses {name!r}.", code="bad_template")
        value = values[name]
        if width is None:
            return str(value)
        if not isinstance(value, int) or value < 0:
            raise DataError(f"{name} = {value!r} is no place in a path.", code="bad_template")
        return f"{value:0{int(width)}d}"

    path = FIELD.sub(one, template)
    if re.search(r"[{}*?\[\]\\\x00]", path) or path.startswith("/") or ".." in path.split("/"):
        raise DataError(
            f"the path template {template!r} is not of the form "
            "'data/chunk-{chunk_index:03d}/file-{file_index:03d}.parquet'.",
            code="bad_template",
        )
    return path


def inside(root: Path, path: Path) -> Path:
    """The path itself, if it leads to a place inside the dataset."""
    if not path.resolve().is_relative_to(root.resolve()):
        raise DataError(
            f"{path}: leads out of the dataset folder. If it is a link into a download cache, "
            "download the dataset into a folder of its own.",
            code="outside",
        )
    return path


def numbers_in(file: Path) -> tuple[Any, ...]:
    """A key that sorts file-10 behind file-9, whatever folder they lie in."""
    return tuple(
        (0, int(part), "") if part.isdigit() else (1, 0, part)
        for part in re.split(r"(\d+)", file.as_posix())
    )
