"""`pubc convert`: a dataset in another format."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

import tyro

from pubc import formats
from pubc.cli.console import say, warn
from pubc.cli.dataset_flag import Dataset
from pubc.formats.core.provenance import provenance
from pubc.formats.trusted_pickle import read_trusted
from pubc.runs.folder.given_data import SELECTED_BY, read_given, selected_by

__all__ = ["COMMAND", "Convert"]


@dataclass(frozen=True)
class Convert:
    """Write a dataset in another format. The source is never modified.

    A single file gets NAME.manifest.json beside it, with its SHA-256, its source and how
    that was read; `pubc verify NAME` checks it. A folder holds its manifest.
    """

    source: Annotated[Dataset, tyro.conf.Positional]
    """Dataset to read."""
    target: Annotated[Path, tyro.conf.Positional]
    """Where to write; its suffix picks the format unless --to names one."""
    to: str | None = None
    """Format to write, as `pubc formats` lists them."""
    version: str | None = None
    """Version of that format, where it has several: v3.0 (the default) or v2.1 of lerobot."""
    force: bool = False
    """Replace an earlier dataset that pubc wrote."""
    reading: formats.ReadOptions = formats.FROM_COMMAND_LINE
    """How to read the source."""
    i_trust_this_pickle: bool = False
    """The source is a pickled .npy dictionary, as the paper authors publish them. Opening a
    pickle runs the code in it: say this only of a file whose origin you trust."""
    json: bool = False
    """Print one JSON document instead of text."""

    def run(self) -> dict[str, Any]:
        """Read, write, and say what went where."""
        formats.claim_dataset(
            self.target,
            format=self.to,
            version=self.version,
            force=self.force,
            sources=(self.source,),
        )
        if self.i_trust_this_pickle:
            trajectories = read_trusted(self.source, self.reading)
        else:
            trajectories = read_given(self.source, self.reading, warn)
        run = selected_by(self.source)
        formats.save_sealed(
            self.target,
            trajectories,
            format=self.to,
            version=self.version,
            overwrite=self.force,
            about=provenance(self.source, self.reading) | ({SELECTED_BY: run} if run else {}),
        )
        if not self.json:
            say(f"{trajectories} -> {self.target}")
        return {
            "source": str(self.source),
            "target": str(self.target),
            "trajectories": len(trajectories),
            "steps": trajectories.steps,
        }


COMMAND = Convert
