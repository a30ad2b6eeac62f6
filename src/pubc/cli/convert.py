"""`pubc convert`: a dataset in another format."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

import tyro

from pubc import formats
from pubc.cli.console import say

__all__ = ["COMMAND", "Convert"]


@dataclass(frozen=True)
class Convert:
    """Write a dataset in another format. The source is never modified."""

    source: Annotated[Path, tyro.conf.Positional]
    """Dataset to read."""
    target: Annotated[Path, tyro.conf.Positional]
    """Where to write; its suffix picks the format unless --to names one."""
    to: str | None = None
    """Format to write, as `pubc formats` lists them."""
    force: bool = False
    """Replace the target if it exists."""
    reading: formats.ReadOptions = formats.FROM_COMMAND_LINE
    """How to read the source."""
    json: bool = False
    """Print one JSON document instead of text."""

    def run(self) -> dict[str, Any]:
        """Read, write, and say what went where."""
        trajectories = formats.read(self.source, self.reading)
        formats.save(self.target, trajectories, format=self.to, overwrite=self.force)
        if not self.json:
            say(f"{trajectories} -> {self.target}")
        return {
            "source": str(self.source),
            "target": str(self.target),
            "trajectories": len(trajectories),
            "steps": trajectories.steps,
        }


COMMAND = Convert
