"""What do engines gain, and how fast are the passes over a huge dataset?

    python benchmarks/engines.py                 independent cells: serial, processes, ray
    python benchmarks/engines.py --passes        steps per second and core of each pass

A cell is one small filter run, recipe `auto`, on a pile of its own. Engines work through the
same cells and must return the same digests; they take turns, so that whatever else the machine
does hits all of them alike. Starting an engine is timed apart: workers that have loaded torch
serve every cell that follows. Passes are measured in CPU time of one thread on a memory-mapped
store, which also holds on a busy machine.
"""

import argparse
import hashlib
import importlib.util
import sys
import tempfile
import time
from contextlib import ExitStack
from pathlib import Path

import numpy as np
import torch

import pubc
from pubc.engine import ENGINES, open_engine
from pubc.pu.auto.imitators import train_imitators
from pubc.pu.auto.ratings import Unit, rate
from pubc.pu.auto.telling_steps import View, look
from pubc.pu.judge import Bench
from pubc.pu.pile_statistics import survey
from pubc.select import locate
from pubc.streams import Key
from pubc.trajectory import Columns, TrajectorySet


def make_pile(
    trajectories: int, steps: int, random_seed: int, states: int = 27, actions: int = 8
) -> TrajectorySet:
    """Two linear policies over states that wander, half of the trajectories each."""
    rng = Key(random_seed, ("engines",)).rng()
    total = trajectories * steps
    walk = rng.standard_normal((total, states), dtype=np.float32)
    walk[1:] += 0.6 * walk[:-1]
    policies = rng.standard_normal((2, states, actions), dtype=np.float32) / np.sqrt(states)
    half = total // 2
    acts = np.concatenate([np.tanh(walk[:half] @ policies[0]), np.tanh(walk[half:] @ policies[1])])
    acts += 0.05 * rng.standard_normal(acts.shape, dtype=np.float32)
    ends = np.zeros(total, bool)
    ends[steps - 1 :: steps] = True
    return TrajectorySet.from_flat(
        Columns(walk, acts, None, np.zeros(total, bool), ends), [steps] * trajectories
    )


def cell(random_seed: int) -> str:
    """One filter run; a digest of all it decided."""
    found = pubc.find_expert(make_pile(60, 300, random_seed), [0, 1], workers=1)
    return hashlib.sha256(found.mask.tobytes() + found.confidence.tobytes()).hexdigest()


def compare(cells: int, turns: int, workers: int) -> None:
    names = [n for n in ENGINES if n != "ray" or importlib.util.find_spec("ray") is not None]
    started, took, digests = {}, dict.fromkeys(names, 0.0), {}
    with ExitStack() as stack:
        engines = {}
        for name in names:
            begin = time.perf_counter()
            engines[name] = stack.enter_context(open_engine(name, workers=workers))
            # Every worker has loaded its libraries once it has done a cell or two.
            list(engines[name].map(cell, range(1000, 1000 + 2 * engines[name].workers)))
            started[name] = time.perf_counter() - begin
        for turn in range(turns):
            for name, engine in engines.items():
                begin = time.perf_counter()
                found = list(engine.map(cell, range(turn * cells, (turn + 1) * cells)))
                took[name] += time.perf_counter() - begin
                assert not [o.error for o in found if o.error], found
                for outcome in found:
                    key = turn * cells + outcome.index
                    assert digests.setdefault(key, outcome.value) == outcome.value, name
    print(f"{cells * turns} cells, {workers} workers\n\n| engine | start s | cells s | speed-up |")
    print("|---|---|---|---|")
    for name in names:
        gain = took["serial"] / took[name]
        print(f"| {name} | {started[name]:.1f} | {took[name]:.1f} | {gain:.2f} |")


def passes(trajectories: int, steps: int) -> None:
    torch.set_num_threads(1)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "pile.store"
        pubc.save(path, make_pile(trajectories, steps, 0))
        mixed = pubc.load(path)
        width = 4 * (mixed.observation_size + mixed.action_size)
        seeds = mixed[:2]
        rows = mixed.steps
        print(
            f"{rows:,} steps of {width} bytes\n\n| pass | CPU s | steps per second |\n|---|---|---|"
        )
        shown("survey: ranges, moments, fingerprint", rows, lambda: survey(mixed))
        view = View(mixed, seeds, locate(mixed, seeds), 192, Bench(workers=1))
        shown("look: choose the telling steps", rows, lambda: look(view.scale, view.steps, mixed))
        flat = [part.reshape(-1, part.shape[2]) for part in (view.states, view.actions)]
        pools = [view.pool(np.arange(0, trajectories, 2), 4_096)] * 3
        device = torch.device("cpu")
        imitators, _ = train_imitators(pools, 20, Key(0).rng(), device=device, stop=lambda: False)
        name = "residuals of chosen steps, 3 imitators"
        shown(name, len(flat[0]), lambda: imitators.residuals(*flat))
        units = [Unit(imitators, view.scale, (side,) * 3, 1, []) for side in (1, -1)]
        bench = Bench(workers=1)
        shown(
            "score: weigh, choose, rate by 6 imitators",
            rows,
            lambda: rate(units, mixed, 192, bench),
        )


def shown(name: str, rows: int, work) -> None:
    work()
    begin = time.process_time()
    work()
    took = time.process_time() - begin
    print(f"| {name} | {took:.2f} | {rows / took:,.0f} |", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--cells", type=int, default=4, help="per engine and turn")
    parser.add_argument("--turns", type=int, default=4)
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--passes", action="store_true")
    chosen = parser.parse_args()
    if chosen.passes:
        passes(2_000, 500)
    else:
        compare(chosen.cells, chosen.turns, chosen.workers)


if __name__ == "__main__":
    # By its name, so that workers can import what they are to do.
    sys.exit(importlib.import_module("engines").main())
