"""Environment steps per second: the collector on two processes against a bare loop on one.

The bare loop is what a script without pubc would do: `gymnasium.make`, a constant action,
`env.step`, reset at the end of a trajectory. It decides nothing and records nothing; the
collector runs a policy at every step, records, writes to disk and shuffles. Rounds of both
alternate, and medians are compared, because machines have other things to do. Beside wall
time the CPU time per step is shown, which a busy machine disturbs less. Starting the
processes is shown apart: wall time is given from the moment they stand and from the call on,
and of the CPU time that of a run of ten steps is subtracted.

    python benchmarks/collecting.py [--steps 40000] [--rounds 3]
"""

import argparse
import os
import resource
import statistics
import tempfile
import time
from pathlib import Path

os.environ.update(OMP_NUM_THREADS="1", OPENBLAS_NUM_THREADS="1")

import numpy as np

from pubc.acting.environments.gym import make_wrapped
from pubc.collect import Request, collecting, find

PROCESSES = 2


def bare(name: str, steps: int) -> tuple[float, float]:
    environment = make_wrapped(name)
    action = np.zeros(environment.action_space.shape, dtype=np.float32)
    environment.reset(seed=0)
    wall, cpu = time.perf_counter(), time.process_time()
    for _ in range(steps):
        _, _, terminal, timeout, _ = environment.step(action)
        if terminal or timeout:
            environment.reset()
    return time.perf_counter() - wall, time.process_time() - cpu


def collector(name: str, steps: int) -> tuple[float, float, float]:
    request = Request(find(f"{name}:E"), steps_per_source=steps, seed_steps=0)
    with tempfile.TemporaryDirectory() as folder:
        before, called = _children(), time.perf_counter()
        for progress in collecting(request, Path(folder) / "x.npz", processes=PROCESSES):
            if progress.steps == 0:
                stood, own = time.perf_counter(), time.process_time()
        ended = time.perf_counter()
        cpu = _children() - before + time.process_time() - own
    return ended - stood, cpu, ended - called


def _children() -> float:
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--steps", type=int, default=40_000)
    parser.add_argument("--rounds", type=int, default=3)
    arguments = parser.parse_args()
    steps = arguments.steps
    print(f"{steps:,} steps a round, {arguments.rounds} rounds, {PROCESSES} processes")
    print("                                                times the bare loop:")
    print("environment  loop        steps/s  CPU µs/step  wall, from the call, CPU")
    for name in ("ant", "humanoid"):
        start = collector(name, 10)[1]
        rounds = [(bare(name, steps // 4), collector(name, steps)) for _ in range(arguments.rounds)]
        wall, cpu = (statistics.median(r[0][i] / (steps // 4) for r in rounds) for i in (0, 1))
        stood, spent, called = (
            statistics.median(r[1][i] / steps for r in rounds) for i in range(3)
        )
        spent -= start / steps
        print(f"{name:<12} bare      {1 / wall:>9,.0f}  {cpu * 1e6:>11,.0f}")
        print(
            f"{name:<12} collector {1 / stood:>9,.0f}  {spent * 1e6:>11,.0f}  "
            f"{wall / stood:.2f}, {wall / called:.2f}, {PROCESSES * cpu / spent:.2f}"
        )


if __name__ == "__main__":
    main()
