"""Cloning by recipe `auto` against recipe `paper`: what it earns, and how long it takes.

    python benchmarks/recipes.py [--scale 1.0] [--jobs 1] [--page docs/policies.md]

Ant and Humanoid E+W, what `pubc filter` kept of 100 trajectories of each source; three training
seeds and 100 evaluation episodes for each recipe. With --page the table replaces the one between
its marks in that file. Finished cells are in records.jsonl and are not computed again. Seconds are
of training alone, on one thread; with several jobs they share the machine.
"""

import argparse
from concurrent.futures import ThreadPoolExecutor, as_completed
from itertools import product
from pathlib import Path

import numpy as np
from results_small import ROOT, SEEDS, Mixture, call, put_between

from pubc.results import Record, append, key_of, read

BEGIN, END = "<!-- recipes: begin -->", "<!-- recipes: end -->"
MIXTURES, RECIPES = ("ant:E+W", "humanoid:E+W"), ("auto", "paper")


def compute(mixture, cell, chosen):
    """Train and evaluate one cell; the values of its record."""
    recipe, seed = cell["recipe"], cell["random_seed"]
    policy = mixture.folder / "policies" / f"{recipe}-{seed}"
    # A tenth of the data has a tenth of the updates of `paper`; `auto` counts updates.
    less = chosen.scale < 1 and recipe == "auto"
    limit = ["--updates", max(50, round(20_000 * chosen.scale))] if less else []
    trained = call("train", mixture.kept, "--out", policy, "--recipe", recipe, "--force",
                   "--device", "cpu", "--random-seed", seed, *limit)  # fmt: skip
    found = call("evaluate", policy, "--env", mixture.environment, "--episodes",
                 max(2, round(100 * chosen.scale)))  # fmt: skip
    return {"return": found["return"], "seconds": round(trained["seconds"], 1)}


def table(records, chosen):
    """The words between the marks, from the records alone."""
    lines = [
        f"What `pubc filter` kept of {max(4, round(100 * chosen.scale))} trajectories "
        f"of each source; mean and spread over {len(SEEDS)} training seeds, "
        f"{max(2, round(100 * chosen.scale))} evaluation episodes each, one thread. Made by "
        f"`python benchmarks/recipes.py --jobs {chosen.jobs} --page docs/policies.md`.",
        "",
        "| mixture | recipe | return | seconds of training |",
        "|---|---|---|---|",
    ]
    for mixture, recipe in product(MIXTURES, RECIPES):
        earned, took = _of(records, mixture, recipe)
        lines.append(f"| {mixture} | `{recipe}` | {np.mean(earned):,.0f} ± {np.std(earned):,.0f} "
                     f"| {took:,.0f} |")  # fmt: skip
    lines.append("")
    for mixture in MIXTURES:
        (ours, our_time), (theirs, their_time) = (_of(records, mixture, one) for one in RECIPES)
        lines.append(f"{mixture}: `{RECIPES[0]}` is {their_time / our_time:.1f} times as fast, its "
                     f"return {np.mean(ours) / np.mean(theirs) - 1:+.1%}.  ")  # fmt: skip
    return "\n".join(lines) + "\n"


def _of(records, mixture, recipe):
    """The returns of a recipe, and how long it trained on average."""
    asked = (mixture, recipe)
    mine = [r.values for r in records if (r.cell["mixture"], r.cell["recipe"]) == asked]
    return [one["return"]["mean"] for one in mine], np.mean([one["seconds"] for one in mine])


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--scale", type=float, default=1.0)
    parser.add_argument("--jobs", type=int, default=1, help="cells computed at the same time")
    parser.add_argument("--processes", type=int, default=2, help="for collecting")
    parser.add_argument("--work", type=Path, default=ROOT / "build" / "recipes")
    parser.add_argument("--page", type=Path)
    chosen = parser.parse_args()
    mixtures = {name: Mixture(name, chosen) for name in MIXTURES}
    path = chosen.work / "records.jsonl"
    cells = [
        {
            "kind": "recipes",
            "mixture": name,
            "recipe": recipe,
            "random_seed": seed,
            "scale": chosen.scale,
        }
        for name, recipe, seed in product(MIXTURES, RECIPES, SEEDS)
    ]
    known = {one.key: one for one in read(path)}
    missing = [cell for cell in cells if key_of(cell) not in known]
    # Before the jobs, which share them.
    for name in dict.fromkeys(cell["mixture"] for cell in missing):
        mixtures[name].folder.mkdir(parents=True, exist_ok=True)
        print(f"learning from {mixtures[name].kept}", flush=True)
    with ThreadPoolExecutor(chosen.jobs) as pool:
        running = {
            pool.submit(compute, mixtures[cell["mixture"]], cell, chosen): cell for cell in missing
        }
        for done in as_completed(running):
            record = Record(running[done], done.result())
            known[record.key] = record
            append(path, record)
            print(
                record.cell, record.values["return"]["mean"], record.values["seconds"], flush=True
            )
    words = table([known[key_of(cell)] for cell in cells], chosen)
    if chosen.page is not None:
        put_between(chosen.page, BEGIN, END, words)
    print(words)


if __name__ == "__main__":
    main()
