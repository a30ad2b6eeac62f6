"""How often is the filter right? Accuracy over mixtures, seeds and draws.

    pubc collect ant:E+E+W+N ant.npz --trajectories-per-source 100 --seed-steps 0
    pubc collect humanoid:E+E+W+N humanoid.npz --trajectories-per-source 100 --seed-steps 0
    python benchmarks/accuracy.py ant.npz humanoid.npz --seeds 1 2 --draws 5
    python benchmarks/accuracy.py trifinger-push-mixed.npz --expert expert --seeds 3 10 --draws 5

A file with the sources E+, E-, W and N is also cut into E+E, E+W and E+N. Seed trajectories
are drawn from the expert and stay in the mixture. One line is printed per run, then a table;
`--record FILE` keeps the lines.
"""

import argparse
import json
import sys
import time
from pathlib import Path

import numpy as np

import pubc
from pubc.metrics import confusion, roc_auc
from pubc.storage.atomic import atomic_file
from pubc.streams import Key

PARTS = {
    "E+E": ("E+", "E-"),
    "E+W": ("E+", "W"),
    "E+N": ("E+", "N"),
    "E+E+W+N": ("E+", "E-", "W", "N"),
}


def mixtures(path, expert):
    whole = pubc.load(path)
    names = set(whole.sources.tolist())
    if names != {"E+", "E-", "W", "N"}:
        yield path.stem, whole, expert
        return
    for name, parts in PARTS.items():
        yield f"{path.stem} {name}", whole[np.isin(whole.sources, parts)], "E+"


def measure(mixed, expert, count, draw, recipe, workers):
    truth = mixed.sources == expert
    rng = Key(draw, ("accuracy", count)).rng()
    seeds = np.sort(rng.choice(np.flatnonzero(truth), count, replace=False))
    began, used = time.perf_counter(), time.process_time()
    found = pubc.find_expert(mixed, seeds, recipe=recipe, random_seed=draw, workers=workers)
    others = ~found.seeds
    counts = confusion(found.mask, truth)
    return {
        "status": found.status,
        "sound": found.sound,
        "accuracy": counts.accuracy,
        "precision": counts.precision,
        "recall": counts.recall,
        "auc": roc_auc(found.confidence[others], truth[others]),
        "chance_wrong": found.weighed.chance_wrong,
        "borderline": float(found.quality.borderline.mean()),
        "rounds": len(found.rounds),
        "seconds": round(time.perf_counter() - began, 2),
        "cpu_seconds": round(time.process_time() - used, 2),
    }


def table(results):
    print("\n| mixture | recipe | seeds | runs | accuracy | lowest | AUC | lowest | statuses |")
    print("|---|---|---|---|---|---|---|---|---|")
    keys = dict.fromkeys((r["mixture"], r["recipe"], r["seeds"]) for r in results)
    for key in keys:
        rows = [r for r in results if (r["mixture"], r["recipe"], r["seeds"]) == key]
        accuracy = [r["accuracy"] for r in rows]
        auc = [r["auc"] for r in rows]
        statuses = sorted({r["status"] for r in rows})
        counts = ", ".join(f"{sum(r['status'] == s for r in rows)} {s}" for s in statuses)
        print(
            f"| {key[0]} | {key[1]} | {key[2]} | {len(rows)} | {np.mean(accuracy):.2%} "
            f"| {min(accuracy):.2%} | {np.mean(auc):.4f} | {min(auc):.4f} | {counts} |"
        )


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("data", nargs="+", type=Path)
    parser.add_argument("--expert", default="E+")
    parser.add_argument("--seeds", nargs="+", type=int, default=[2])
    parser.add_argument("--draws", type=int, default=5)
    parser.add_argument("--recipes", nargs="+", default=["auto"])
    parser.add_argument("--workers", type=int, default=0)
    parser.add_argument("--record", type=Path, help="file for one JSON line per run")
    arguments = parser.parse_args()
    results = []
    for path in arguments.data:
        for name, mixed, expert in mixtures(path, arguments.expert):
            for recipe in arguments.recipes:
                for count in arguments.seeds:
                    for draw in range(arguments.draws):
                        found = measure(mixed, expert, count, draw, recipe, arguments.workers)
                        head = {"mixture": name, "recipe": recipe, "seeds": count, "draw": draw}
                        results.append({**head, **found})
                        print(json.dumps(results[-1]), flush=True)
    table(results)
    if arguments.record:
        with atomic_file(arguments.record, overwrite=True) as new:
            new.write_text("".join(json.dumps(result) + "\n" for result in results))
    return 0


if __name__ == "__main__":
    sys.exit(main())
