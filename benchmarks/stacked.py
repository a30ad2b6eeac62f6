"""Updates per second of one training, and of many trainings as one computation.

    python benchmarks/stacked.py [--members 24 96] [--learners iql crr] [--device cuda] [--record F]

The set is drawn at random with the sizes of Ant (27 observations, 8 actions): speed does not
depend on what is learned. "alone" is one training as `pubc train` does it, which is what a stack
is compared with; a stack's updates count for every member. Times are of the second of two
epochs, the first one records graphs and warms up.
"""

import argparse
import json
import platform
import time
from pathlib import Path

import numpy as np
import torch

from pubc.policies import stacked_trainer, trainer
from pubc.policies.train_options import TrainOptions
from pubc.trajectory import Columns, TrajectorySet

LEARNERS = ("bc", "iql", "crr", "td3bc", "plas", "dwbc")


def dataset(steps, length=100):
    rng = np.random.default_rng(0)
    ends = np.zeros(steps, dtype=np.bool_)
    ends[length - 1 :: length] = True
    columns = Columns(
        rng.normal(size=(steps, 27)).astype(np.float32),
        rng.uniform(-1, 1, (steps, 8)).astype(np.float32),
        rng.normal(size=steps).astype(np.float32),
        np.zeros_like(ends),
        ends,
    )
    return TrajectorySet.from_flat(columns, [length] * (steps // length))


def rate(run, members):
    """Updates of all members per second in the second epoch."""
    run.advance(0)
    if torch.cuda.is_available():
        torch.cuda.synchronize()
    began = time.perf_counter()
    run.advance(1)
    if torch.cuda.is_available():
        torch.cuda.synchronize()
    updates = run.updates_after(2) - run.updates_after(1)
    return members * updates / (time.perf_counter() - began)


def measure(name, members, chosen):
    """One training as `pubc train` has it, or a stack of so many."""
    if name == "bc":
        # An epoch is one pass, so the set decides how many updates it has.
        data = dataset(chosen.updates * chosen.batch // 100 * 100)
        options = TrainOptions(recipe="paper", batch_size=chosen.batch, epochs=2)
    else:
        data = dataset(100_000)
        options = TrainOptions(recipe="paper", batch_size=chosen.batch, updates=2 * chosen.updates)
    given = {"device": chosen.device, "positives": data[:20] if name == "dwbc" else None}
    if members is None:
        return rate(trainer(name, data, options, **given), 1)
    return rate(stacked_trainer(name, data, options, random_seeds=range(members), **given), members)


def table(found):
    lines = ["| learner | members | updates/s | of one alone |", "|---|---|---|---|"]
    for line in found:
        alone = next(one["rate"] for one in found if one["learner"] == line["learner"])
        members = line["members"] or "alone"
        lines.append(
            f"| {line['learner']} | {members} | {line['rate']:,.0f} | {line['rate'] / alone:.1f} |"
        )
    return "\n".join(lines)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--members", type=int, nargs="+", default=[24, 96])
    parser.add_argument("--learners", nargs="+", default=LEARNERS, choices=LEARNERS)
    parser.add_argument("--batch", type=int, default=100)
    parser.add_argument(
        "--updates", type=int, default=1000, help="of the measured epoch; at most 1000"
    )
    parser.add_argument("--device", default="auto", choices=("auto", "cpu", "cuda"))
    parser.add_argument("--record", type=Path, help="also append JSON lines to this file")
    chosen = parser.parse_args()
    set_epoch(chosen.updates)
    gpu = torch.cuda.get_device_name() if torch.cuda.is_available() else None
    machine = {"gpu": gpu, "torch": torch.__version__, "python": platform.python_version()}
    found = []
    for name in chosen.learners:
        for members in (None, *chosen.members):
            line = {"learner": name, "members": members, "batch": chosen.batch}
            found.append({**line, "rate": measure(name, members, chosen)})
            print(json.dumps({**found[-1], **machine}), flush=True)
            if chosen.record:
                with chosen.record.open("a") as file:
                    file.write(json.dumps({**found[-1], **machine}) + "\n")
    print(table(found))


def set_epoch(updates):
    """Epochs of so many updates: two whole ones of every learner are measured alike."""
    from pubc.policies.offline_rl import reinforce
    from pubc.policies.stacked import stacked_dwbc, stacked_offline

    reinforce.PER_EPOCH = stacked_offline.PER_EPOCH = stacked_dwbc._PER_EPOCH = updates


if __name__ == "__main__":
    main()
