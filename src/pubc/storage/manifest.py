"""What a folder should hold: sizes and SHA-256 of every file, and a seal on the list."""

from __future__ import annotations

import fnmatch
import hashlib
import json
import os
import re
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pubc.errors import DataError, EnvironmentFailure, UsageError
from pubc.storage.disk import LOCK, disk_words, flush, is_lock, remove, sweep, temporary
from pubc.storage.json_documents import read_json

__all__ = [
    "ADDED",
    "MANIFEST",
    "NEXT",
    "Fault",
    "agrees",
    "content_of",
    "file_entry",
    "file_manifest",
    "fits",
    "hash_file",
    "read_manifest",
    "read_sealed",
    "seal",
    "seal_file",
    "sidecar",
    "verify",
    "write_sealed",
]

MANIFEST = "manifest.json"
NEXT = "next"
"""Where the manifest of a file holds the one that comes after it, while the file is replaced."""
ADDED = "not in the manifest"
"""What is wrong with a file that came to a folder later."""
_BLOCK = 1 << 20
_BLANK = b"0" * 64
_SEAL = re.compile(rb'\n "seal": "([0-9a-f]{64})"\n}\n\Z')


@dataclass(frozen=True, slots=True)
class Fault:
    """One difference between a manifest and the files beside it."""

    file: str
    reason: str


def seal(folder: Path, *, kind: str, about: Mapping[str, Any] | None = None) -> None:
    """Write the manifest of a folder whose files are complete.

    Args:
        folder: The folder.
        kind: What it is.
        about: Further facts for the manifest.
    """
    with disk_words(folder):
        # What a process left that was killed here is no part of the folder.
        sweep(folder / MANIFEST)
    names = [name for name in sorted(content_of(folder)) if name != LOCK]
    files = {name: file_entry(folder / name) for name in names}
    write_sealed(folder / MANIFEST, {"kind": kind, "version": 1, **(about or {}), "files": files})


def seal_file(path: Path, *, kind: str, about: Mapping[str, Any] | None = None) -> None:
    """Write the manifest of a single file beside it, as NAME.manifest.json."""
    write_sealed(sidecar(path), file_manifest(path, kind=kind, about=about))


def file_manifest(
    path: Path, *, kind: str, about: Mapping[str, Any] | None = None
) -> dict[str, Any]:
    """What the manifest of a single file says."""
    return {"kind": kind, "version": 1, **(about or {}), "files": {path.name: file_entry(path)}}


def read_manifest(folder: Path, *, kind: str | None = None) -> dict[str, Any]:
    """Read a manifest and check that it is one, unaltered, and of the right kind.

    Args:
        folder: A sealed folder, or a sealed file.
        kind: What it must be; anything where omitted.

    Raises:
        DataError: There is no manifest, somebody changed it, or the kind is another.
    """
    path = folder / MANIFEST if not folder.is_file() else sidecar(folder)
    document = _read_unlinked(path)
    document = _settled(folder, document) if folder.is_file() else _merged(folder, document)
    files = document.get("files")
    if not isinstance(files, dict) or not isinstance(document.get("kind"), str):
        raise DataError(
            f"{path}: not a manifest of pubc (it has no 'kind' and 'files'). "
            "A run that was killed leaves none: write the folder anew.",
            code="bad_manifest",
        )
    if not _sealed(path.read_bytes()):
        raise DataError(
            f"{path}: the manifest is not as pubc wrote it (its seal does not fit). The "
            "folder is damaged: write it anew from its source.",
            code="bad_manifest",
            field="seal",
        )
    if kind is not None and document["kind"] != kind:
        raise DataError(
            f"{folder}: expected a folder of kind {kind!r}, found {document['kind']!r}.",
            code="wrong_kind",
            field="kind",
        )
    return document


def read_sealed(path: Path) -> dict[str, Any]:
    """Read what `write_sealed` wrote.

    Raises:
        DataError: There is no such file, or it is not as it was written.
    """
    document = _read_unlinked(path)
    if not _sealed(path.read_bytes()):
        raise DataError(
            f"{path}: not as pubc wrote it (its seal does not fit).",
            code="bad_manifest",
            field="seal",
        )
    return document


def verify(path: Path, *, under: str = "", digests: bool = True) -> list[Fault]:
    """Compare every file with its manifest; an empty list means intact.

    Args:
        path: A sealed folder, or a file with its manifest beside it.
        under: Only files of the folder whose names begin so.
        digests: Compare contents too, not only names and sizes.

    Raises:
        UsageError: There is no manifest to compare with.
        DataError: The manifest itself was changed.
    """
    alone = path.is_file()
    manifest = sidecar(path) if alone else path / MANIFEST
    if not manifest.exists():
        raise UsageError(
            f"{path} has no manifest ({manifest.name}), so there is nothing to verify it "
            "against. What `pubc convert` and `pubc collect` write has one."
        )
    entries: dict[str, Any] = read_manifest(path)["files"]
    listed = {name: entry for name, entry in entries.items() if name.startswith(under)}
    root = path.parent if alone else path
    there = [path.name] if alone else content_of(path)
    present = {name for name in there if name.startswith(under)}
    faults = [Fault(name, ADDED) for name in present - set(listed)]
    for name, entry in listed.items():
        if name not in present:
            faults.append(Fault(name, "missing"))
        else:
            faults += _compare(root / name, name, entry, digests=digests)
    return sorted(faults, key=lambda fault: fault.file)


def agrees(path: Path, entry: Any) -> bool:
    """Whether a file is the one that an entry of a manifest describes, by size and SHA-256."""
    return not _compare(path, path.name, entry)


def hash_file(path: Path) -> str:
    """SHA-256 of a file, read in blocks."""
    digest = hashlib.sha256()
    with path.open("rb", buffering=0) as file:
        while block := file.read(_BLOCK):
            digest.update(block)
    return digest.hexdigest()


def write_sealed(path: Path, document: Mapping[str, Any]) -> None:
    """Write a JSON object that ends with a digest of itself."""
    # The seal stands last, also where the document was read and has one already.
    facts = {name: value for name, value in document.items() if name != "seal"}
    text = json.dumps({**facts, "seal": _BLANK.decode()}, indent=1, allow_nan=False)
    data = text.encode() + b"\n"
    digest = hashlib.sha256(data).hexdigest().encode()
    data = data[: -len(_BLANK) - 4] + digest + data[-4:]
    with disk_words(path):
        new = temporary(path)
        try:
            new.write_bytes(data)
            flush(new)
            os.replace(new, path)
        finally:
            remove(new)


def _settled(path: Path, document: dict[str, Any]) -> dict[str, Any]:
    """Which of two manifests speaks, where a file was just being replaced: the one that fits."""
    coming = document.pop(NEXT, None)
    files = coming.get("files") if isinstance(coming, dict) else None
    if isinstance(files, dict) and not _compare(path, path.name, files.get(path.name)):
        return dict(coming)
    return document


def _merged(folder: Path, document: dict[str, Any]) -> dict[str, Any]:
    """What two manifests say together, where files were just being replaced: whichever fits."""
    coming = document.pop(NEXT, None)
    old, new = document.get("files"), coming.get("files") if isinstance(coming, dict) else None
    if not isinstance(old, dict) or not isinstance(new, dict):
        return document
    changed = [name for name in new if "/" not in name and old.get(name) != new[name]]
    fitting = {name: new[name] for name in changed if not _compare(folder / name, name, new[name])}
    return {**document, "files": {**old, **fitting}}


def _read_unlinked(path: Path) -> dict[str, Any]:
    if path.is_symlink():
        raise DataError(f"{path}: a link, where a manifest is a file.", code="link")
    return read_json(path)


def _sealed(data: bytes) -> bool:
    """Whether the manifest's own hash, taken over the rest of its bytes, fits."""
    found = _SEAL.search(data)
    if not found:
        return False
    blank = data[: found.start(1)] + _BLANK + data[found.end(1) :]
    return hashlib.sha256(blank).hexdigest().encode() == found.group(1)


def file_entry(path: Path) -> dict[str, Any]:
    """What a manifest says of a file, which the disk keeps from now on."""
    flush(path)
    return {"size": path.stat().st_size, "sha256": hash_file(path)}


def sidecar(path: Path) -> Path:
    """Where the manifest of a single file lies."""
    return path.with_name(f"{path.name}.{MANIFEST}")


def content_of(folder: Path) -> list[str]:
    """Every name below the folder that is not a folder, but the manifest and a lock of ours."""
    names = []
    for place, folders, files in os.walk(folder, onerror=_cannot_look):
        inside = Path(place).relative_to(folder)
        links = [name for name in folders if (Path(place) / name).is_symlink()]
        names += [(inside / name).as_posix() for name in files + links]
    ours = (MANIFEST, LOCK) if LOCK in names and is_lock(folder / LOCK) else (MANIFEST,)
    return [name for name in names if name not in ours]


def _cannot_look(error: OSError) -> None:
    if not isinstance(error, FileNotFoundError):
        raise EnvironmentFailure(f"Cannot look into {error.filename}: {error.strerror}.")


def fits(name: str, patterns: Collection[str]) -> bool:
    """Whether a name below a folder fits a pattern, folder by folder.

    `*` stands for a part of one name; a last part of `**` for everything below.
    """
    parts = name.split("/")
    for pattern in patterns:
        asked = pattern.split("/")
        if asked[-1] == "**":
            asked = asked[:-1] + ["*"] * (len(parts) - len(asked) + 1)
        if len(parts) == len(asked) and all(map(fnmatch.fnmatchcase, parts, asked)):
            return True
    return False


def _compare(path: Path, name: str, entry: Any, *, digests: bool = True) -> list[Fault]:
    if not isinstance(entry, dict):
        return [Fault(name, "its manifest entry is not an object")]
    if path.is_symlink() or not path.is_file():
        return [Fault(name, "not a plain file")]
    size = path.stat().st_size
    if size != entry.get("size"):
        return [Fault(name, f"{size} bytes, the manifest says {entry.get('size')}")]
    if digests and hash_file(path) != entry.get("sha256"):
        return [Fault(name, "its SHA-256 differs from the manifest's")]
    return []
