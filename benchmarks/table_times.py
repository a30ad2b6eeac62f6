"""How long a table of policies takes on this machine, from a small part of each training.

    python benchmarks/table_times.py [policy-scores d4rl] [--cores 2] [--share 0.01]

Of every learner and environment of a table, one training is begun twice, for one and for three
shares of its updates, on one thread; the difference gives the time of an update, without what
happens once. One trajectory is played. Both are multiplied by what the table asks for at scale
`small` with three random seeds, and divided by the cores. Collecting and filtering come on top:
docs/results.md has their wall times. The TriFinger, whose data are the user's, is left out.
"""

import argparse
import os

os.environ["OMP_NUM_THREADS"] = "1"

import tempfile
import time
from collections import Counter
from pathlib import Path

from results_small import call

import pubc
from pubc.acting.evaluate import evaluate
from pubc.experiments import get_table
from pubc.experiments.cell import SCALES
from pubc.experiments.stages.learn import DATA
from pubc.policies import trainer
from pubc.policies.policy_folder import load
from pubc.policies.train_options import TrainOptions
from pubc.policies.training_run import Session
from pubc.threads import one_thread


def main():
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("tables", nargs="*", default=["policy-scores", "d4rl"])
    parser.add_argument("--cores", type=int, default=2)
    parser.add_argument("--share", type=float, default=0.01)
    chosen = parser.parse_args()
    one_thread()
    known = {}
    for name in chosen.tables:
        cells = [c for c in get_table(name).cells(SCALES["small"], 3, {}) if c.learner]
        cells = [c for c in cells if c.learner.algo != DATA and "trifinger" not in c.row.lower()]
        jobs = Counter((c.learner.algo, c.learner.environment) for c in cells)
        specs = {(c.learner.algo, c.learner.environment): c for c in cells}
        print(f"\n{name}: {len(cells)} trainings\n")
        print("| learner | environment | updates | ms each | play, s | trainings | hours |")
        print("|---|---|---|---|---|---|---|")
        total = 0.0
        for job, count in sorted(jobs.items()):
            cell = specs[job]
            if job not in known:
                known[job] = measure(cell, chosen.share)
            each, play = known[job]
            updates = cell.learner.options["updates"]
            seconds = updates * each + cell.learner.evaluation_trajectories * play
            if cell.learner.curve_every:
                points = updates // cell.learner.curve_every
                seconds += points * cell.learner.curve_trajectories * play
            total += count * seconds
            print(
                f"| {job[0]} | {job[1]} | {updates:,} | {1e3 * each:.2f} | {play:.2f} | {count} |"
                f" {count * seconds / 3600:.2f} |",
                flush=True,
            )
        print(f"\n{total / 3600 / chosen.cores:.1f} hours on {chosen.cores} cores")


def measure(cell, share):
    """Seconds of one update, and of playing one trajectory."""
    spec = cell.learner
    updates = max(10, round(share * spec.options["updates"]))
    spent = []
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "mixed.npz"
        call("collect", cell.dataset.recipe, path, "--trajectories-per-source", 4)
        mixed = pubc.load(path)
        positives = mixed[[0, 1]] if spec.algo.startswith("dwbc") else None
        for times in (1, 3):
            options = TrainOptions(**{**spec.options, "updates": times * updates})
            run = trainer(spec.algo, mixed, options, random_seed=0, device="cpu",
                          positives=positives)  # fmt: skip
            place = Path(folder) / str(times)
            session = Session(run, place, {"learner": spec.algo, "random_seed": 0}, every=1e9)
            began = time.perf_counter()
            for _ in session.epochs():
                pass
            spent.append(time.perf_counter() - began)
        policy = load(place)
        began = time.perf_counter()
        steps = sum(
            played.steps
            for played in evaluate(lambda: policy, spec.environment, episodes=1, random_seed=0)
        )
        # A policy that has learned nothing falls early; a good one stays for a thousand steps.
        play = (time.perf_counter() - began) / steps * 1000
    return (spent[1] - spent[0]) / (2 * updates), play


if __name__ == "__main__":
    main()
