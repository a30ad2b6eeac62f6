"""`pubc demo`: the main job on recorded data that is part of the package.

demo-ant.npz holds 60 trajectories of 250 steps of Ant, 20 each of the zoo's policies
ant/expert, ant/other_expert and ant/weak, shuffled, in half precision. Two equally good
experts are the point: returns cannot tell them apart, behaviour can.
"""

from __future__ import annotations

import contextlib
import os
import time
from dataclasses import dataclass, replace
from importlib import resources
from pathlib import Path
from typing import Any

import numpy as np

from pubc import formats
from pubc.cli.console import facts, say
from pubc.cli.filtering.filter_command import Filter
from pubc.errors import PubcError, UsageError
from pubc.pu.pile_statistics import survey
from pubc.runs.filter_config import FilterConfig
from pubc.runs.folder.run_document import restore
from pubc.runs.folder.run_folder import RunFolder
from pubc.runs.folder.run_succession import is_free
from pubc.storage import read_manifest, successor
from pubc.trajectory import Columns, TrajectorySet

__all__ = ["COMMAND", "Demo", "mixture"]

EXPERT = "expert"
SEEDS = 2
_MARK = "demo"
"""What the manifest of the mixture says, so that a second demo knows it."""


@dataclass(frozen=True)
class Demo:
    """Find one expert among three policies, with data that came with pubc.

    Writes a labelled mixture, takes two trajectories of the expert as seeds, filters the
    rest without looking at the labels, and compares the result with them.
    """

    out: Path = Path("pubc-demo")
    """Folder for the mixture and the results; an earlier demo there is replaced."""
    recipe: str = "auto"
    """`auto` or `paper`."""
    random_seed: int = 0
    """Draws the seeds, and everything else."""
    workers: int = 0
    """Networks trained at the same time; 0 means one per core."""
    json: bool = False
    """Print one JSON document instead of text."""

    def run(self) -> dict[str, Any]:
        """Write, filter, compare."""
        began = time.monotonic()
        data, run = self.out / "mixture.npz", self.out / "run"
        config = FilterConfig(
            seed_source=EXPERT,
            seed_count=SEEDS,
            recipe=self.recipe,
            truth=EXPERT,
            random_seed=self.random_seed,
            workers=self.workers,
        )
        config.make_recipe()  # what cannot be is refused before anything is written
        config.make_bench()
        mixed = mixture()
        _refuse_others(data, run, mixed, config)
        formats.save_sealed(data, mixed, overwrite=True, about={_MARK: True})
        if not self.json:
            say(f"{mixed} of Ant, 20 each of: expert, other_expert, weak -> {data}")
            say(f"$ pubc filter {data} --out {run} --seed-source {EXPERT} --truth {EXPERT}\n")
        document = Filter(data=data, out=run, config=config, force=True, json=self.json).run()
        if not self.json:
            _show(document["truth_report"], self.out, time.monotonic() - began)
        return document


COMMAND = Demo


def _refuse_others(data: Path, run: Path, mixed: TrajectorySet, config: FilterConfig) -> None:
    """See that only an earlier demo is replaced.

    Raises:
        UsageError: Something else is there.
    """
    runs = [(place, _is_demo_run(place, data, mixed, config)) for place in (run, successor(run))]
    for path, ours in ((data, _is_demo_data(data)), *runs):
        if os.path.lexists(path) and not ours:
            raise UsageError(
                f"{path} is not of an earlier demo, so it stays. Choose another folder with --out."
            )


def _is_demo_data(data: Path) -> bool:
    with contextlib.suppress(PubcError):
        return read_manifest(data).get(_MARK) is True
    return False


def _is_demo_run(run: Path, data: Path, mixed: TrajectorySet, config: FilterConfig) -> bool:
    if is_free(run):  # killed before its first word
        return True
    # A stranger's run may lack any of these.
    with contextlib.suppress(PubcError, KeyError, TypeError):
        told = RunFolder(run).read()
        place, asked = restore(told, config)
        # Whatever a demo may be asked for it may have been asked for otherwise.
        alike = replace(asked, recipe=config.recipe, random_seed=config.random_seed) == config
        same = survey(mixed).fingerprint == told["data"]["fingerprint"]
        return same and place == data.resolve() and alike
    return False


def mixture() -> TrajectorySet:
    """The mixture that ships with pubc."""
    with (
        resources.as_file(resources.files("pubc.cli") / "demo-ant.npz") as path,
        np.load(path, allow_pickle=False) as file,
    ):
        observations, actions, rewards = (
            file[name].astype(np.float32) for name in ("observations", "actions", "rewards")
        )
        sources = file["sources"]
    count, steps = rewards.shape
    timeouts = np.zeros((count, steps), dtype=np.bool_)
    timeouts[:, -1] = True
    return TrajectorySet.from_flat(
        Columns(
            observations.reshape(count * steps, -1),
            actions.reshape(count * steps, -1),
            rewards.reshape(-1),
            np.zeros(count * steps, dtype=np.bool_),
            timeouts.reshape(-1),
        ),
        [steps] * count,
        sources=sources,
        metadata={"environment": "Ant-v5", "policies": "zoo: ant/expert, other_expert, weak"},
    )


def _show(report: dict[str, Any], out: Path, seconds: float) -> None:
    say()
    say("                 kept  dropped")
    say(f"the expert's   {report['true_positives']:>6}  {report['false_negatives']:>7}")
    say(f"others         {report['false_positives']:>6}  {report['true_negatives']:>7}")
    say()
    facts(
        [
            ("accuracy", f"{report['accuracy']:.1%}"),
            ("time", f"{seconds:.1f} s"),
            ("kept data", str(out / "run" / "kept.npz")),
            ("every score", str(out / "run" / "scores.csv")),
            ("the evidence", str(out / "run" / "rounds.jsonl")),
        ]
    )
