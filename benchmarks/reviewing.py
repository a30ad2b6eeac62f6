"""How many clicks from nothing to a sound selection? A scripted reviewer follows the page.

    python benchmarks/reviewing.py mixture.npz --expert expert
    python benchmarks/reviewing.py manipulation/*.npz --expert expert --clicks 20

The reviewer knows the truth (`sources` of the dataset), marks exactly what the page proposes,
eight at a time, runs the filter with the marks, and stops when the result is sound or the clicks
are spent. One JSON line per dataset: clicks, marks, soundness, accuracy, and runs.
"""

import argparse
import json
import tempfile
import time
from pathlib import Path

from pubc.formats import ReadOptions
from pubc.review.desk import open_desk


def review(path: Path, expert: str, clicks: int) -> dict:
    with tempfile.TemporaryDirectory() as folder:
        desk = open_desk(path, ReadOptions(isolate="auto"), folder=Path(folder) / "work")
        truth = desk.trajectories.sources == expert
        spent, began, runs = 0, time.monotonic(), []
        while spent < clicks:
            proposed = desk.proposals()[: clicks - spent]
            if not proposed:
                break
            marks = [(p.at, [{"label": "good" if truth[p.at] else "bad"}]) for p in proposed]
            desk.set_marks(marks)
            spent += len(proposed)
            if sum(mark.label == "good" for mark in desk.labels.marks) < 2:
                continue
            desk.start_run()
            while (now := desk.job.progress()).state == "running":
                time.sleep(0.2)
            if now.state != "finished":
                return {"data": path.name, "clicks": spent, "error": now.error}
            run = desk.run
            right = float((run.scores.keep == truth).mean())
            sound = bool(run.document["sound"])
            runs.append({"clicks": spent, "sound": sound, "accuracy": round(right, 4)})
            if sound:
                break
        good = sum(mark.label == "good" for mark in desk.labels.marks)
        seconds = round(time.monotonic() - began, 1)
        return {"data": path.name, "clicks": spent, "good": good, "runs": runs, "seconds": seconds}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("data", nargs="+", type=Path)
    parser.add_argument("--expert", default="expert")
    parser.add_argument("--clicks", type=int, default=20)
    asked = parser.parse_args()
    for path in asked.data:
        print(json.dumps(review(path, asked.expert, asked.clicks)), flush=True)


if __name__ == "__main__":
    main()
