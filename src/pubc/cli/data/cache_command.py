"""`pubc cache`: which flat copies of datasets are kept, and a way to be rid of them."""

from __future__ import annotations

import contextlib
import time
from dataclasses import dataclass
from typing import Any

from pubc.cli.console import facts, say
from pubc.errors import PubcError
from pubc.formats.core.findings import plural
from pubc.formats.opening import cached_copies as copies
from pubc.storage import read_manifest

__all__ = ["COMMAND", "Cache"]


@dataclass(frozen=True)
class Cache:
    """Show the flat copies that make a second opening of slow formats fast, or remove them.

    They lie below $PUBC_CACHE (~/.cache/pubc) and take at most $PUBC_CACHE_GIB (10) GiB; those
    not used for the longest time go first. Nothing is lost with a copy but the time to read
    its dataset again.
    """

    clear: bool = False
    """Remove all copies; what pubc cannot prove to have written stays."""
    json: bool = False
    """Print one JSON document instead of text."""

    def run(self) -> dict[str, Any]:
        """List the copies; with `clear` those that were removed."""
        found = copies.copies()
        document: dict[str, Any] = {
            "folder": str(copies.folder()),
            "limit": copies.limit(),
            "bytes": sum(copy.size for copy in found),
            "copies": [_describe(copy) for copy in found],
            "others": copies.others(),
            "cleared": self.clear,
        }
        if self.clear:
            copies.clear()
        if not self.json:
            _show(document)
        return document


COMMAND = Cache


def _describe(copy: copies.Copy) -> dict[str, Any]:
    manifest: dict[str, Any] = {}
    with contextlib.suppress(PubcError, OSError):  # damaged: its dataset will be read again
        manifest = read_manifest(copy.path)
    return {
        "source": manifest.get("source"),
        "format": manifest.get("origin"),
        "bytes": copy.size,
        "used": copy.used,
    }


def _show(document: dict[str, Any]) -> None:
    count = plural(len(document["copies"]), "copy")
    if document["cleared"]:
        say(f"{count} removed, {_mebibytes(document['bytes'])} freed")
        _show_others(document)
        return
    share = f"{_mebibytes(document['bytes'])} of at most {_mebibytes(document['limit'])}"
    facts([("folder", document["folder"]), ("copies", f"{count}, {share}")])
    for copy in reversed(document["copies"]):
        used = time.strftime("%Y-%m-%d %H:%M", time.localtime(copy["used"]))
        source = copy["source"] or "a dataset that it does not name"
        say(f"{used}  {_mebibytes(copy['bytes']):>12}  {copy['format'] or '?':<10}  {source}")
    _show_others(document)


def _show_others(document: dict[str, Any]) -> None:
    if document["others"]:
        say(
            f"{document['others']:,} more in {document['folder']} without the marker of a copy "
            "(not written by pubc, or by an older version): never removed; delete by hand what "
            "you do not need"
        )


def _mebibytes(size: int) -> str:
    return f"{size / 2**20:,.1f} MiB"
