"""How many clicks from nothing to a sound selection? A scripted reviewer follows the page.

    python benchmarks/reviewing.py mixture.npz --expert expert
    python benchmarks/reviewing.py manipulation/*.npz --clicks 20 --out records.jsonl

The reviewer knows the truth (`sources` of the dataset) and marks exactly what the page proposes:
the first eight, then `--every` at a time, with a run after each. It stops when the result is sound
or the clicks are spent. One JSON line per dataset: clicks, good marks, and of each run whether it
is sound, its status, and how right it is. Unsure trajectories count as not kept in accuracy,
precision and recall, and not at all in `decided`.
"""

import argparse
import json
import tempfile
import time
from pathlib import Path

import numpy as np

from pubc.formats import ReadOptions
from pubc.metrics import confusion
from pubc.review.desk import open_desk
from pubc.review.proposals import COUNT

FEWEST_GOOD = 2


def review(path: Path, expert: str, clicks: int, every: int, *, on: bool = False) -> dict:
    with tempfile.TemporaryDirectory() as folder:
        desk = open_desk(path, ReadOptions(isolate="auto"), folder=Path(folder) / "work")
        truth = desk.trajectories.sources == expert
        spent, began, runs = 0, time.monotonic(), []
        while spent < clicks:
            batch = every if runs else COUNT
            proposed = desk.proposals()[: min(batch, clicks - spent)]
            if not proposed:
                break
            for p in proposed:
                desk.set_marks([(p.at, [{"label": "good" if truth[p.at] else "bad"}])])
            spent += len(proposed)
            if sum(mark.label == "good" for mark in desk.labels.marks) < FEWEST_GOOD:
                continue
            desk.start_run()
            while (now := desk.job.progress()).state == "running":
                time.sleep(0.2)
            if now.state != "finished":
                return {"data": path.stem, "clicks": spent, "error": now.error}
            runs.append({"clicks": spent, **measured(desk, truth)})
            if runs[-1]["sound"] and not on:
                break
        good = sum(mark.label == "good" for mark in desk.labels.marks)
        seconds = round(time.monotonic() - began, 1)
        return {"data": path.stem, "clicks": spent, "good": good, "runs": runs, "seconds": seconds}


def measured(desk, truth) -> dict:
    """What the latest run said, and how right it is."""
    run, tests = desk.run, desk.labels.foretold
    kept = run.scores.keep
    decided = np.array([word != "unsure" for word in run.scores.verdict])
    counts = confusion(kept, truth)
    found = {
        "accuracy": counts.accuracy,
        "precision": counts.precision,
        "recall": counts.recall,
        "decided": float((kept == truth)[decided].mean()),
        "divided": run.document["second_opinion"]["divided"],
    }
    return {
        "sound": bool(run.document["sound"]),
        "status": run.document["status"],
        **{name: round(float(value), 4) for name, value in found.items()},
        "tests": len(tests),
        "tests_wrong": tests.count(False),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("data", nargs="+", type=Path)
    parser.add_argument("--expert", default="expert")
    parser.add_argument("--clicks", type=int, default=20)
    parser.add_argument("--every", type=int, default=4, help="marks between runs after the first")
    parser.add_argument("--on", action="store_true", help="go on after a sound result")
    parser.add_argument("--out", type=Path, help="file for the lines")
    asked = parser.parse_args()
    for path in asked.data:
        line = json.dumps(review(path, asked.expert, asked.clicks, asked.every, on=asked.on))
        print(line, flush=True)
        if asked.out:
            with asked.out.open("a", encoding="utf-8") as file:
                file.write(line + "\n")


if __name__ == "__main__":
    main()
