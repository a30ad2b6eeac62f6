"""`--engine` and `--address`: which workers go over the whole of a dataset."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from pubc import formats
from pubc.engine import open_engine

if TYPE_CHECKING:
    from pubc.pu.shards import Shards

__all__ = ["HERE", "Spread"]


@dataclass(frozen=True, slots=True)
class Spread:
    """Which workers go over the data."""

    engine: Literal["serial", "processes", "ray"] = "serial"
    """What goes over the whole dataset: this process, processes of this machine, or the machines
    of a Ray cluster (docs/scale.md). Does not change results."""
    address: str | None = None
    """Ray cluster to join: auto, HOST:PORT or ray://HOST:PORT. Omit it to start Ray here."""

    @contextmanager
    def open(
        self,
        data: Path,
        reading: formats.ReadOptions,
        folder: Path,
        *,
        workers: int,
        question: str = "",
        tell: Callable[[str], None] = lambda word: None,
    ) -> Iterator[Shards | None]:
        """Start the workers that were asked for; None where this process does the work.

        Args:
            data: The dataset.
            reading: How to read it.
            folder: Where workers leave what they found.
            workers: How many at a time; 0 for as many as there are cores.
            question: Hash of what is asked of the run.
            tell: Told what was just finished.
        """
        with open_engine(self.engine, workers=workers, address=self.address) as engine:
            if self.engine == "serial":
                yield None
                return
            from pubc.pu.shards import Shards

            folder.mkdir(parents=True, exist_ok=True)
            yield Shards(engine, data, reading, folder, tell, question)


HERE = Spread()
"""The default: the work is done in this process."""
