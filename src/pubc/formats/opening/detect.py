"""Which format is this? By content first, by suffix where nothing is written yet."""

from __future__ import annotations

import os
from pathlib import Path

from pubc.errors import DataError, EnvironmentFailure, UsageError
from pubc.formats.core.findings import Findings
from pubc.formats.opening.path_hints import hint_for_unknown

__all__ = ["detect", "format_for_new", "is_hdf5", "refuse_links_out"]

_SUFFIXES = {
    ".npz": "npz",
    ".hdf5": "d4rl",
    ".h5": "d3rlpy",
    ".store": "store",
    "": "store",
}
_LMDB_MAGIC = (0xBEEFC0DE).to_bytes(4, "little")
_HDF5_MAGIC = b"\x89HDF\r\n\x1a\n"


def is_hdf5(path: Path) -> bool:
    """Whether a file starts like HDF5; only libhdf5 can tell which dataset it is."""
    if not path.is_file():
        return False
    with path.open("rb") as file:
        return file.read(len(_HDF5_MAGIC)) == _HDF5_MAGIC


def format_for_new(path: Path) -> str:
    """The format that a suffix asks for when a file is to be written."""
    if path.suffix.lower() in _SUFFIXES:
        return _SUFFIXES[path.suffix.lower()]
    raise UsageError(
        f"The suffix {path.suffix!r} of {path.name} names no format. Use one of "
        f"{', '.join(s for s in _SUFFIXES if s)}, or name the format with --to (`pubc formats` "
        "lists them)."
    )


def detect(path: Path) -> str:
    """The format of an existing file or folder, read from its content.

    Raises:
        UsageError: The path does not exist.
        DataError: Nothing pubc knows.
        EnvironmentFailure: The path may not be read.
    """
    try:
        if path.is_dir():
            found = _detect_folder(path)
        elif path.is_file():
            found = _detect_file(path)
        elif path.exists():
            raise DataError(f"{path} is neither a file nor a folder.", code="bad_path")
        else:
            raise UsageError(f"{path} does not exist.")
    except PermissionError:
        raise EnvironmentFailure(f"{path}: no permission to read it.") from None
    if found is None:
        raise DataError(
            f"{path}: no dataset format that pubc knows.{hint_for_unknown(path)} `pubc formats` "
            "lists them; if it is one of those, name it with --format.",
            code="unknown_format",
        )
    return found


def refuse_links_out(path: Path, findings: Findings) -> None:
    """Refuse a folder with a link to a place outside it: a dataset is what lies in it.

    Raises:
        DataError: Naming the link.
    """
    root = path.resolve()
    for place, folders, files in os.walk(path):
        for name in folders + files:
            entry = Path(place, name)
            if entry.is_symlink() and not entry.resolve().is_relative_to(root):
                findings.refuse(
                    "outside",
                    "a link out of the dataset, which is never followed. Copy what it points "
                    "to into the folder (cp -L).",
                    field=entry.relative_to(path).as_posix(),
                )


def _detect_folder(path: Path) -> str | None:
    if (path / "meta" / "info.json").is_file():
        return "lerobot"
    if (path / "data.mdb").is_file():
        return "trifinger"
    if (path / "data" / "metadata.json").is_file() or (path / "main_data.hdf5").is_file():
        return "minari"
    if (path / "features.json").is_file() and any(path.glob("*.tfrecord*")):
        return "rlds"
    if (path / ".zgroup").is_file() or (path / "zarr.json").is_file():
        return "trifinger" if (path / "episode_ends").is_dir() else "diffusion"
    if (path / "manifest.json").is_file():
        return "store"
    if (path / "metadata.json").is_file():
        return "minari"
    return None


def _detect_file(path: Path) -> str | None:
    with path.open("rb") as file:
        head = file.read(20)
    if head.startswith(_HDF5_MAGIC):
        return _detect_hdf5(path)
    if head.startswith(b"PK"):
        return "diffusion" if path.name.endswith(".zarr.zip") else "npz"
    if head[16:] == _LMDB_MAGIC:
        return "trifinger"
    if head.startswith(b"\x93NUMPY"):
        raise DataError(
            f"{path}: a single .npy file. The paper authors' datasets are pickles in such "
            "files, which can run code when opened. If you trust its origin: "
            f"pubc convert --i-trust-this-pickle {path} new.npz",
            code="pickle",
        )
    return None


def _detect_hdf5(path: Path) -> str:
    from pubc.formats.hdf5.hdf5_read import root_names

    names = root_names(path)
    if "data" in names and "observations" not in names:
        return "robomimic"
    if any(name.startswith("episode_") and name[8:].isdigit() for name in names):
        return "minari"
    if "columns" in names or any(n.startswith("observations_") for n in names):
        return "d3rlpy"
    if "episode_terminals" in names:
        return "d3rlpy"
    return "d4rl"
