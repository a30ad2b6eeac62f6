"""What it costs `pubc filter` to lose nothing and to believe nothing: share of its time.

    python benchmarks/safety_cost.py [--recipe paper] [--pile 400] [--formats npz,d4rl,robomimic]

Every function that flushes, hashes, seals, verifies, claims or checks is timed from outside while
the command runs; what such a function spends inside another one counts once. The goal is at most
3 % on the demo's data and on a pile of 400 trajectories. Formats of others are read in a child
process, which would have to be read without one too; its time stands apart, as *child*. A second
run finds the copy in the cache, and checks it.
"""

import argparse
import functools
import importlib
import itertools
import os
import sys
import tempfile
import threading
import time
from pathlib import Path

import numpy as np

from pubc import TrajectorySet, save
from pubc.cli.filtering.demo_command import mixture
from pubc.cli.main import main
from pubc.trajectory import Columns

TIMED = {
    "pubc.storage.disk": ("flush", "flush_folders", "sweep", "exchange"),
    "pubc.storage.manifest": ("seal", "verify", "read_manifest", "hash_file", "write_sealed"),
    "pubc.storage.ownership": ("claim", "strangers"),
    "pubc.storage.successors": ("take_place", "replaced_mark", "has_replaced", "retire"),
    "pubc.runs.folder.run_succession": ("check_place", "claim_run"),
    "pubc.runs.folder.run_files": ("unproven", "listed_results"),
    "pubc.runs.folder.run_results": ("_put", "clear_results", "seal_run"),
    "pubc.runs.folder.round_files": ("sealed_lines", "_write_lines"),
    "pubc.runs.folder.document_types": ("check_types",),
    "pubc.runs.folder.given_data": ("check_given", "check_manifest"),
    "pubc.tensor_files": ("_digest", "proves_itself"),
    "pubc.formats.core.checks": ("check_words",),
    "pubc.formats.opening.trusted_copies": ("fault_in_copy",),
}
CHILD = {"pubc.formats.opening.isolate": ("parse_in_child",)}
SUFFIX = {"npz": ".npz", "d4rl": ".hdf5", "robomimic": ".hdf5", "lerobot": ""}
LOADED = ("pubc.cli.filtering.filter_command", "pubc.runs.filter_run", "pubc.report.page")


class Stopwatch:
    """Seconds inside the timed functions, of all threads together."""

    def __init__(self, timed: dict[str, tuple[str, ...]]) -> None:
        self.timed, self.seconds, self.here = timed, 0.0, threading.local()

    def around(self, function):
        @functools.wraps(function)
        def timed(*given, **named):
            if getattr(self.here, "inside", False):
                return function(*given, **named)
            self.here.inside, began = True, time.perf_counter()
            try:
                return function(*given, **named)
            finally:
                self.seconds += time.perf_counter() - began
                self.here.inside = False

        return timed

    def install(self) -> None:
        """Put a timed one in the place of each function, wherever it was imported to."""
        for name in (*LOADED, *self.timed):
            importlib.import_module(name)
        for home, names in self.timed.items():
            for name in names:
                real = getattr(sys.modules[home], name)
                timed = self.around(real)
                for module in [m for n, m in sys.modules.items() if n.startswith("pubc")]:
                    if vars(module).get(name) is real:
                        setattr(module, name, timed)


def pile(count: int, steps: int = 250) -> TrajectorySet:
    """Two policies in walks of 27 dimensions, half of the trajectories each."""
    rng = np.random.default_rng(3)
    states = (rng.normal(size=(count, steps, 27)).cumsum(axis=1) * 0.1).astype(np.float32)
    owner = np.arange(count) % 2
    weights = rng.normal(size=(2, 27, 8)) * 0.3
    actions = np.tanh(np.einsum("nts,nsa->nta", states, weights[owner])).astype(np.float32)
    ends = np.zeros((count, steps), dtype=np.bool_)
    ends[:, -1] = True
    rewards = np.repeat(owner == 0, steps).astype(np.float32)
    columns = Columns(
        states.reshape(-1, 27), actions.reshape(-1, 8), rewards, np.zeros(count * steps, np.bool_),
        ends.reshape(-1),
    )  # fmt: skip
    return TrajectorySet.from_flat(columns, [steps] * count)


def measure(
    safety: Stopwatch, child: Stopwatch, data: Path, out: Path, recipe: str, *more: str
) -> str:
    safety.seconds, child.seconds, began = 0.0, 0.0, time.perf_counter()
    words = ["filter", str(data), "--out", str(out), "--recipe", recipe, "--json", *more]
    code = main([*words, "--seed-top", "0.05"])
    total = time.perf_counter() - began
    assert code == 0
    spent, apart = safety.seconds, child.seconds
    return f"{total:.1f} s | {spent:.2f} s | {spent / total:.2%} | {apart:.2f} s"


def run() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--recipe", default="paper")
    parser.add_argument("--pile", type=int, default=400)
    parser.add_argument("--formats", default="npz", help=f"of {', '.join(SUFFIX)}")
    asked = parser.parse_args()
    safety, child = Stopwatch(TIMED), Stopwatch(CHILD)
    safety.install()
    child.install()
    sys.stderr.write(
        "| data | format | run | total | safety | share | child |\n|---|---|---|---|---|---|---|\n"
    )
    with tempfile.TemporaryDirectory() as name:
        os.environ["PUBC_CACHE"] = f"{name}/cache"
        sets = {"demo": mixture()}
        if asked.pile:
            sets[f"{asked.pile} trajectories"] = pile(asked.pile)
        for told, format in itertools.product(sets, asked.formats.split(",")):
            place = Path(name) / format / told.split()[0]
            data = place.with_suffix(SUFFIX[format])
            save(data, sets[told], format=format)
            for how, more in (("first", ()), ("--force", ("--force",))):
                cells = measure(safety, child, data, place.with_suffix(".run"), asked.recipe, *more)
                sys.stderr.write(f"| {told} | {format} | {how} | {cells} |\n")


if __name__ == "__main__":
    run()
