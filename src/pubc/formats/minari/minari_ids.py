"""Minari names datasets by ids such as `mujoco/hopper/expert-v0`; where those lie on this disk.

Only folders are looked up. Nothing is downloaded: that is what `minari download` is for.
"""

from __future__ import annotations

import os
import re
from pathlib import Path

__all__ = ["find", "is_id", "kept_id", "root"]

_ID = re.compile(r"(?:[\w-]+/)*[\w-]+-v\d+")


def root() -> Path:
    """Where Minari keeps datasets: $MINARI_DATASETS_PATH, or ~/.minari/datasets."""
    given = os.environ.get("MINARI_DATASETS_PATH")
    return Path(given) if given else Path.home() / ".minari" / "datasets"


def is_id(path: Path) -> bool:
    """Whether a relative path could be the id of a Minari dataset."""
    return _ID.fullmatch(path.as_posix()) is not None


def find(path: Path) -> Path:
    """The folder of a local Minari dataset where `path` is its id, else `path` itself.

    A file or folder of that name in the working directory comes first.
    """
    if path.exists() or not is_id(path):
        return path
    folder = root() / path
    return folder if (folder / "data").is_dir() else path


def kept_id(name: str) -> str:
    """The id of what was kept of a dataset: Minari finds a dataset by the folder of its id.

    Example:
        >>> kept_id("mujoco/hopper/medium-v0"), kept_id("my pile")
        ('mujoco/hopper/medium-kept-v0', 'my-pile-kept-v0')
    """
    plain = re.sub(r"[^-_/\w]+", "-", name).strip("-/") or "dataset"
    stem, _, version = plain.rpartition("-v")
    if not stem or not version.isdecimal():
        stem, version = plain, "0"
    return f"{stem}-kept-v{version}"
