"""`pubc verify`: is every byte still what was written?"""

from __future__ import annotations

import dataclasses
import os
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

import tyro

from pubc.cli.console import say
from pubc.errors import DataError, UsageError
from pubc.formats.core.findings import plural
from pubc.storage import verify

__all__ = ["COMMAND", "Verify"]


@dataclass(frozen=True)
class Verify:
    """Check a store, a run, a policy or a converted file against its manifest.

    Reads every byte and compares sizes and SHA-256. Exit code 3 when anything differs.
    """

    path: Annotated[Path, tyro.conf.Positional]
    """Folder with a manifest.json, or a file with a manifest beside it."""
    json: bool = False
    """Print one JSON document instead of text."""

    def run(self) -> dict[str, Any]:
        """Compare, and refuse what differs."""
        if not os.path.lexists(self.path):
            raise UsageError(f"{self.path} does not exist.")
        faults = verify(self.path)
        if faults:
            told = "; ".join(f"{fault.file}: {fault.reason}" for fault in faults[:5])
            more = f"; and {len(faults) - 5:,} more" if len(faults) > 5 else ""
            raise DataError(
                f"{self.path}: {plural(len(faults), 'difference')} from the manifest: "
                f"{told}{more}. Write it anew from its source.",
                code="manifest_mismatch",
                field=faults[0].file,
                count=len(faults),
            )
        if not self.json:
            say(f"{self.path}: every file is as its manifest says")
        return {
            "path": str(self.path),
            "faults": [dataclasses.asdict(f) for f in faults],
        }


COMMAND = Verify
