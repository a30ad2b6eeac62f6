"""`pubc formats`: the dataset formats, what each needs and can do."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from pubc import formats
from pubc.cli.console import say

__all__ = ["COMMAND", "Formats"]


@dataclass(frozen=True)
class Formats:
    """List the dataset formats: what pubc reads and writes, and which extra each needs."""

    json: bool = False
    """Print one JSON document instead of text."""

    def run(self) -> dict[str, Any]:
        """Describe every format."""
        document = {}
        for name, words in formats.FORMATS.items():
            module = formats.get(name)
            document[name] = {
                "description": words,
                "reads": True,
                "writes": hasattr(module, "write"),
                "extra": module.EXTRA,
            }
        if not self.json:
            for name, entry in document.items():
                verbs = "read, write" if entry["writes"] else "read"
                extra = f" (needs the extra {entry['extra']})" if entry["extra"] else ""
                say(f"{name:<10}  {verbs:<11}  {entry['description']}{extra}")
        return document


COMMAND = Formats
