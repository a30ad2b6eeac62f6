"""Every learner of the paper on a small HalfCheetah medium-expert mixture.

    python benchmarks/learners.py [--updates 20000] [--episodes 10] [--page docs/policies.md]

Collects a mixture, trains each learner, evaluates it, and prints a table with a random policy
as the floor; with --page the table replaces the one between its marks in that file. Finished
learners are in records.jsonl and are not trained again.
"""

import argparse
import time
from pathlib import Path

import numpy as np
from results_small import ROOT, call, put_between

from pubc.acting import environments
from pubc.acting.rollout import play
from pubc.policies import LEARNERS
from pubc.results import Record, append, key_of, read

BEGIN, END = "<!-- learners: begin -->", "<!-- learners: end -->"


class Random:
    """Uniform actions."""

    def __init__(self, low, high):
        self.low, self.high = low, high

    def begin(self, rng):
        return lambda observation, reward: rng.uniform(self.low, self.high).astype(np.float32)


def floor(episodes):
    world = environments.make("halfcheetah")
    policy = Random(world.low, world.high)
    returns = [
        play(world, policy, random_seed=0, source="evaluation", index=index).total_reward
        for index in range(episodes)
    ]
    return {"return": {"mean": float(np.mean(returns)), "std": float(np.std(returns, ddof=1))}}


def compute(name, chosen):
    if name == "random":
        return floor(chosen.episodes)
    data = chosen.work / "mixed.npz"
    if not data.exists():
        call("collect", "halfcheetah:medium-expert", data, "--trajectories-per-source",
             chosen.trajectories, "--processes", chosen.processes)  # fmt: skip
    seeds = ["--top", "0.05"] if name.startswith("dwbc") else []
    policy = chosen.work / name.replace("%", "")
    began = time.monotonic()
    if not policy.exists():
        updates = chosen.updates if name != "dt" else min(chosen.updates, chosen.dt_updates)
        call("train", data, "--out", policy, "--algo", name, "--updates", updates, "--resume",
             *seeds)  # fmt: skip
    trained = time.monotonic() - began
    found = call("evaluate", policy, "--env", "halfcheetah", "--episodes", chosen.episodes,
                 "--processes", chosen.processes)  # fmt: skip
    return {"return": found["return"], "score": found["score"], "train_seconds": round(trained)}


def table(records, chosen):
    lines = [
        f"{chosen.trajectories} trajectories each of HalfCheetah medium and expert, "
        f"{chosen.updates:,} updates ({chosen.dt_updates:,} for dt), {chosen.episodes} evaluation "
        "episodes, one training seed. Made by "
        f"`python benchmarks/learners.py --updates {chosen.updates} --dt-updates "
        f"{chosen.dt_updates} --trajectories {chosen.trajectories} --episodes "
        f"{chosen.episodes} --page docs/policies.md`.",
        "",
        "| learner | return | score |",
        "|---|---|---|",
    ]
    for one in records:
        earned, score = one.values["return"], one.values.get("score")
        words = "-" if score is None else f"{score:.2f}"
        lines.append(
            f"| {one.cell['learner']} | {earned['mean']:,.0f} ± {earned['std']:,.0f} | {words} |"
        )
    return "\n".join(lines) + "\n"


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--updates", type=int, default=20_000)
    parser.add_argument("--dt-updates", type=int, default=3_000)
    parser.add_argument("--trajectories", type=int, default=20)
    parser.add_argument("--episodes", type=int, default=10)
    parser.add_argument("--processes", type=int, default=2)
    parser.add_argument("--work", type=Path, default=ROOT / "build" / "learners")
    parser.add_argument("--page", type=Path)
    chosen = parser.parse_args()
    chosen.work.mkdir(parents=True, exist_ok=True)
    path = chosen.work / "records.jsonl"
    known = {one.key: one for one in read(path)}
    records = []
    for name in ("random", *LEARNERS):
        cell = {
            "kind": "learners",
            "learner": name,
            "updates": chosen.dt_updates if name == "dt" else chosen.updates,
            "trajectories": chosen.trajectories,
            "episodes": chosen.episodes,
        }
        if key_of(cell) not in known:
            known[key_of(cell)] = Record(cell, compute(name, chosen))
            append(path, known[key_of(cell)])
        records.append(known[key_of(cell)])
        print(f"{name:<8} {records[-1].values['return']['mean']:>9,.1f}", flush=True)
        if chosen.page is not None:  # after every learner: some take hours
            put_between(chosen.page, BEGIN, END, table(records, chosen))
    print(table(records, chosen))


if __name__ == "__main__":
    main()
