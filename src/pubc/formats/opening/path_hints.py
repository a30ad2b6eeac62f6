"""What a user who named the wrong folder probably meant: the one above, below, or in a cache."""

from __future__ import annotations

import os
import re
from pathlib import Path

from pubc.formats.minari import minari_ids

__all__ = ["hint_for_unknown", "not_there"]

_VERSION = re.compile(r"\d+\.\d+\.\d+")
_REPOSITORY = re.compile(r"[\w.-]+/[\w.-]+")
_ABOVE = 4
"""Folders above a file of a LeRobot dataset that are looked at."""


def hint_for_unknown(path: Path) -> str:
    """A sentence for a file or folder that is no dataset, but part of one; else empty."""
    for folder in list(path.resolve().parents)[:_ABOVE]:
        if (folder / "meta" / "info.json").is_file():
            return f" It lies inside a LeRobot dataset: name the folder {folder}."
    if path.is_dir():
        for pattern in ("*/features.json", "*/*/features.json"):
            found = [file.parent for file in path.glob(pattern) if _is_version(file.parent)]
            if found:
                return f" A TFDS dataset is named with its version: {sorted(found)[-1]}."
    return ""


def _is_version(folder: Path) -> bool:
    return _VERSION.fullmatch(folder.name) is not None and any(folder.glob("*.tfrecord*"))


def not_there(path: Path) -> str:
    """What to say of a path that does not exist."""
    if minari_ids.is_id(path):
        return (
            f"{path} does not exist, and no Minari dataset of that name lies below "
            f"{minari_ids.root()}. pubc downloads nothing; `minari download {path}` does."
        )
    if path.is_absolute() or not _REPOSITORY.fullmatch(path.as_posix()) or path.suffix:
        return f"{path} does not exist."
    kept = _lerobot_home() / path
    if (kept / "meta" / "info.json").is_file():
        return f"{path} does not exist here, but LeRobot keeps a dataset of that name: {kept}."
    return (
        f"{path} does not exist. If it is a dataset of the Hugging Face Hub: pubc downloads "
        f"nothing; `hf download {path} --repo-type dataset --local-dir {path.name}` does."
    )


def _lerobot_home() -> Path:
    given = os.environ.get("HF_LEROBOT_HOME")
    home = os.environ.get("HF_HOME")
    base = Path(home) if home else Path.home() / ".cache" / "huggingface"
    return Path(given) if given else base / "lerobot"
