"""Whose is it? The one test before anything that exists is replaced or removed.

`--force` means "replace my earlier result", never "replace whatever is there": a mistyped name
must not cost a thesis. So nothing goes unless it proves to be an earlier result of the same
kind. A folder proves it by its sealed manifest and by holding what that says and nothing else; a
file by its sealed manifest beside it, or by a mark inside it. All have a SHA-256 of every file: one
that was edited since holds somebody's work. Links are never followed and never replaced.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import re
import zlib
from collections.abc import Callable, Collection
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NoReturn

from pubc.errors import PubcError, UsageError
from pubc.storage.disk import is_temporary
from pubc.storage.manifest import (
    MANIFEST,
    Fault,
    agrees,
    content_of,
    fits,
    read_manifest,
    read_sealed,
    sidecar,
)
from pubc.storage.targets import check_target

__all__ = ["Draft", "claim", "mark", "strangers"]

_HASH = r"(?P<sha256>[0-9a-f]{64})"
_TEXT_MARKS = {
    ".md": ("[//]: # (pubc {kind} sha256:", ")\n"),
    ".html": ("<!-- pubc {kind} sha256:", " -->\n"),
    ".svg": ("<!-- pubc {kind} sha256:", " -->\n"),
}
_END = b"\x00\x00\x00\x00IEND\xaeB`\x82"
"""The last chunk of every PNG."""


@dataclass(frozen=True, slots=True)
class Draft:
    """What a folder looks like that was begun and not sealed yet."""

    file: str
    """The sealed JSON file in it whose `kind` says what it is to become."""
    faults: Callable[[Path], list[Fault]]
    """What in such a folder cannot be proven to be of our making, and why."""


def claim(
    path: Path,
    *kinds: str,
    force: bool,
    file: bool = False,
    proof: Callable[[Path], bool] | None = None,
    draft: Draft | None = None,
    sources: Collection[Path | None] = (),
) -> None:
    """See that a place may be written: it is free, or holds our own earlier result.

    Args:
        path: Where a result is to go.
        kinds: What the command writes there; only such a thing is replaced.
        force: Whether an earlier result may be replaced at all.
        file: Whether a file goes there that has its manifest beside it.
        proof: For files that prove themselves in another way, such as records.
        draft: How an unfinished folder of this kind is known, where it may be replaced.
        sources: What the result is made from, which must not lie there.

    Raises:
        UsageError: Something is there that must stay, or `check_target` says no.
    """
    check_target(path, *sources)
    if path.name in ("", ".."):
        raise UsageError(
            f"Where is {str(path)!r}? Name the place itself, such as {path.resolve()}."
        )
    if file and path.is_dir():
        raise UsageError(f"{path} is a folder, and a file is to go there. Choose another name.")
    if not os.path.lexists(path):
        _refuse_sidecar(path)
        return
    if not force:
        raise UsageError(f"{path} exists already. Choose another name, or pass --force.")
    if path.is_symlink():
        _refuse(path, "is a link")
    if path.is_dir():
        _claim_folder(path, kinds, draft)
    elif not path.is_file():
        _refuse(path, "is neither a file nor a folder")
    elif not ((proof is not None and proof(path)) or _is_marked(path, kinds)):
        _claim_sealed(path, kinds)


def strangers(folder: Path, patterns: Collection[str]) -> list[str]:
    """Names below a folder that fit no pattern; what a killed write left hidden is ours."""
    return [
        name
        for name in sorted(content_of(folder))
        if not any(map(is_temporary, name.split("/"))) and not fits(name, patterns)
    ]


def mark(content: bytes, kind: str, suffix: str) -> bytes:
    """The content of a .md, .html, .svg or .png file with a mark that proves it to be ours.

    The mark is invisible to readers of the file and holds the SHA-256 of everything else.
    """
    if suffix == ".png":
        if not content.endswith(_END):
            raise ValueError("not a PNG")
        return content[: -len(_END)] + _chunk(kind, content) + _END
    before, after = _TEXT_MARKS[suffix]
    if not content.endswith(b"\n"):
        content += b"\n"
    digest = hashlib.sha256(content).hexdigest()
    return content + f"{before.format(kind=kind)}{digest}{after}".encode()


def _claim_folder(path: Path, kinds: tuple[str, ...], draft: Draft | None) -> None:
    if not any(path.iterdir()):
        return
    if not os.path.lexists(path / MANIFEST):
        if draft is None or not _is_draft(path, kinds, draft):
            _refuse(path, f"is a folder that pubc did not write (it has no {MANIFEST})")
        for fault in draft.faults(path):
            _refuse(path, f"holds {fault.file}, which {fault.reason}")
        return
    files = _manifest(path, kinds)["files"]
    for name in strangers(path, ()):
        if name not in files:
            _refuse(path, f"holds {name}, which is not in its manifest")
        if not agrees(path / name, files[name]):
            _refuse(path, f"holds {name}, which is not as pubc wrote it")


def _claim_sealed(path: Path, kinds: tuple[str, ...]) -> None:
    beside = sidecar(path)
    if not os.path.lexists(beside):
        _refuse(
            path,
            f"is a file that pubc did not write or that was changed since (it has neither a mark "
            f"that fits nor a {beside.name})",
        )
    if not agrees(path, _manifest(path, kinds)["files"].get(path.name)):
        _refuse(path, f"is not the file that {beside.name} describes")


def _manifest(path: Path, kinds: tuple[str, ...]) -> dict[str, Any]:
    try:
        manifest = read_manifest(path)
    except PubcError as error:
        raise UsageError(
            f"{path} is not provably a result of pubc, so --force does not replace it: {error}"
        ) from None
    if manifest["kind"] not in kinds:
        told = " or ".join(repr(kind) for kind in kinds)
        _refuse(path, f"is of kind {manifest['kind']!r}, where this command writes {told}")
    return manifest


def _is_draft(path: Path, kinds: tuple[str, ...], draft: Draft) -> bool:
    try:
        return read_sealed(path / draft.file).get("kind") in kinds
    except PubcError:
        return False


def _is_marked(path: Path, kinds: tuple[str, ...]) -> bool:
    """Whether a file carries a mark of one of the kinds that fits the rest of it."""
    suffix = path.suffix
    if suffix != ".png" and suffix not in _TEXT_MARKS:
        return False
    content = path.read_bytes()
    for kind in kinds:
        if suffix == ".png":
            size = len(_chunk(kind, b""))
            rest = content[: -size - len(_END)] + _END
            if content.endswith(_chunk(kind, rest) + _END):
                return True
            continue
        before, after = (re.escape(part.format(kind=kind)) for part in _TEXT_MARKS[suffix])
        found = re.search(f"{before}{_HASH}{after}\\Z".encode(), content[-500:])
        if found is not None:
            rest = content[: -len(found.group())]
            if hashlib.sha256(rest).hexdigest().encode() == found["sha256"]:
                return True
    return False


def _chunk(kind: str, content: bytes) -> bytes:
    """A chunk of text for a PNG that says what it is, with the SHA-256 of the PNG without it."""
    words = f"tEXtpubc\0{kind} sha256:{hashlib.sha256(content).hexdigest()}".encode("latin-1")
    return (len(words) - 4).to_bytes(4, "big") + words + zlib.crc32(words).to_bytes(4, "big")


def _refuse_sidecar(path: Path) -> None:
    """Refuse a free name whose manifest would replace a file that is not a manifest of ours."""
    beside = sidecar(path)
    with contextlib.suppress(PubcError):
        if not os.path.lexists(beside) or path.name in read_sealed(beside).get("files", ()):
            return
    raise UsageError(
        f"{beside} exists and is not a manifest that pubc wrote. Choose another name than {path}."
    )


def _refuse(path: Path, why: str) -> NoReturn:
    raise UsageError(f"{path} {why}, so --force does not replace it. Choose another name.")
