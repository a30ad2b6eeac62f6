"""What a fit leaves until it is saved: a result in memory, networks in a temporary folder."""

from __future__ import annotations

import shutil
import warnings
import weakref
from pathlib import Path
from typing import Any, NoReturn

import numpy as np
from numpy.typing import NDArray

from pubc.errors import UsageError
from pubc.runs.filter_run import Clock, Listener, write_results
from pubc.runs.find_expert import Result
from pubc.runs.folder.run_succession import run_in_one_go
from pubc.runs.plan_run import Plan
from pubc.runs.segments.run_steps import judge_steps
from pubc.storage import make_scratch, verify
from pubc.streams import Key

__all__ = ["FittedInMemory", "NetworksPlace", "refuse_damage"]


class NetworksPlace:
    """A temporary folder for networks, which goes when the last finder that uses it does."""

    def __init__(self) -> None:
        self.path = make_scratch("finder")
        weakref.finalize(self, shutil.rmtree, self.path, ignore_errors=True)

    def __deepcopy__(self, memo: dict[int, Any]) -> NetworksPlace:
        return self


class FittedInMemory:
    """What a fit leaves, until it is saved."""

    def __init__(self, planned: Plan, result: Result, clock: Clock, place: NetworksPlace) -> None:
        self.planned = planned
        self.result = result
        self.clock = clock
        self.place = place
        self._steps: NDArray[np.float32] | None = None

    def __deepcopy__(self, memo: dict[int, Any]) -> FittedInMemory:
        return self

    def __reduce__(self) -> NoReturn:
        raise TypeError(
            "A fitted ExpertFinder is kept with finder.save(path) and read with "
            "ExpertFinder.load(path), not by pickling: its networks are files."
        )

    def steps(self) -> NDArray[np.float32]:
        """The chance that each step is the expert's; judged once."""
        if self._steps is None:
            key = Key(self.planned.config.random_seed)
            parts = judge_steps(
                self.planned.ready, self.result, key, self.planned.recipe.step_settings
            )
            judged = [part.confidence for part in parts]
            self._steps = np.concatenate(judged) if judged else np.zeros(0, dtype=np.float32)
        return self._steps

    def write(self, path: Path, overwrite: bool) -> None:
        """Everything that `pubc filter` writes, with the networks and the result of the fit."""
        from pubc.report import draw_report

        listener = Listener(
            warn=lambda sentence: warnings.warn(sentence, stacklevel=4),
            draw=draw_report,
        )
        with run_in_one_go(path, force=overwrite) as folder:
            folder.begin(self.planned.document)
            shutil.copytree(self.place.path, folder.path, dirs_exist_ok=True)
            write_results(self.planned, folder, self.result, self.clock, listener)


def refuse_damage(folder: Path) -> None:
    """See that a run folder is as the run left it.

    Raises:
        UsageError: It is not, and a copy would hide that.
    """
    for fault in verify(folder):
        raise UsageError(
            f"{folder}: {fault.file} is not as the run left it ({fault.reason}), and a copy would "
            f"hide that. `pubc verify {folder}` lists all differences."
        )
