"""What filtering is worth for the policy: clones of Meta-World piles, played in the simulator.

    python benchmarks/metaworld_clones.py data/metaworld/*.npz --work WORK \
        --metaworld-python mwenv/bin/python [--pubc-python .venv/bin/python] [--draws 1]

For each pile (metaworld_piles.py, or any NPZ of the same layout named after its task): draws five
of the expert's trajectories as seeds, runs `pubc filter`, trains a clone of (a) what was kept,
(b) the true expert, (c) everything, exports each to ONNX and plays it (metaworld_play.py, in the
Python of --metaworld-python). Every record is one line of WORK/records.jsonl; those that are there
are not computed again, so a stopped command goes on where it was. Prints a table at the end.
Needs numpy only; everything else happens in the two other interpreters.
"""

import argparse
import json
import shlex
import shutil
import subprocess
import sys
import time
from pathlib import Path

import numpy as np

SETS = ("kept", "expert", "all")
ABSOLUTE = "-absolute"
PLAY = Path(__file__).with_name(Path(__file__).name.replace("clones", "play"))


def run(command):
    """Run a command and return the JSON that it prints, and the seconds that it took."""
    begun = time.perf_counter()
    words = [str(word) for word in command]
    done = subprocess.run(words, capture_output=True, text=True, check=False)
    if done.returncode:
        said = (done.stdout + done.stderr)[-2000:]
        raise RuntimeError(f"{shlex.join(words)}\nexit {done.returncode}\n{said}")
    return json.loads(done.stdout), round(time.perf_counter() - begun, 1)


class Cell:
    """One pile with one draw of seeds."""

    def __init__(self, path, draw, chosen):
        self.path, self.draw, self.chosen = path, draw, chosen
        self.task = path.stem.removesuffix(ABSOLUTE)
        self.absolute = path.stem.endswith(ABSOLUTE)
        self.folder = chosen.work / f"{path.stem}-{draw}"
        with np.load(path) as arrays:
            self.sources = arrays["sources"]
        experts = np.flatnonzero(self.sources == chosen.truth)
        self.seeds = sorted(
            np.random.default_rng(draw).choice(experts, chosen.seeds, replace=False).tolist()
        )

    def pubc(self, *words):
        return run([self.chosen.pubc_python, "-m", "pubc.cli.main", *words, "--json"])

    def filter(self):
        """Run the filter, and compare what it kept with the truth."""
        out = self.folder / "filter"
        document, seconds = self.pubc(
            "filter", self.path, "--out", out, "--force", "--random-seed", self.draw,
            "--seed-episodes", ",".join(map(str, self.seeds)),
            *shlex.split(self.chosen.filter_options),
        )  # fmt: skip
        ids = json.loads((out / "keep.json").read_text(encoding="utf-8"))["episodes"]
        kept, true = np.zeros(len(self.sources), bool), self.sources == self.chosen.truth
        kept[np.array(ids, dtype=int)] = True
        others = np.ones(len(true), bool)
        others[self.seeds] = False
        return {
            "status": document.get("status"),
            "sound": document.get("sound"),
            "kept": int(kept.sum()),
            "accuracy": round(float((kept == true)[others].mean()), 4),
            "wrongly_kept": int((kept & ~true).sum()),
            "missed": int((true & ~kept).sum()),
            "filter_seconds": seconds,
        }

    def data(self, name):
        """What a clone of this set learns from, and how many trajectories that is."""
        if name == "all":
            return self.path, len(self.sources)
        if name == "kept":
            ids = json.loads((self.folder / "filter" / "keep.json").read_text(encoding="utf-8"))
            return self.folder / "filter", len(ids["episodes"])
        chosen = self.sources == self.chosen.truth
        path = self.folder / "expert.npz"
        path.parent.mkdir(parents=True, exist_ok=True)
        write_part(self.path, chosen, path)
        return path, int(chosen.sum())

    def clone(self, name):
        """Train on a set, export, play."""
        data, count = self.data(name)
        policy, onnx = self.folder / f"policy-{name}", self.folder / f"{name}.onnx"
        _, seconds = self.pubc(
            "train", data, "--out", policy, "--force", "--random-seed", self.draw,
            *shlex.split(self.chosen.train_options),
        )  # fmt: skip
        self.pubc("export", policy, onnx, "--force")
        words = [self.chosen.metaworld_python, PLAY, onnx, self.task]
        words += ["--episodes", self.chosen.episodes, "--seed", self.chosen.play_seed]
        played, play_seconds = run(words + ["--absolute"] * self.absolute)
        return {
            "trajectories": count,
            **{key: played[key] for key in ("episodes", "successes", "success", "low", "high")},
            "train_seconds": seconds,
            "play_seconds": play_seconds,
        }


def write_part(source, chosen, path):
    """Write the chosen trajectories of an NPZ whose trajectories all have one length."""
    with np.load(source) as arrays:
        count = len(chosen)
        part = {
            name: rows.reshape(count, -1, *rows.shape[1:])[chosen].reshape(-1, *rows.shape[1:])
            for name, rows in ((name, arrays[name]) for name in arrays.files)
        }
    np.savez(path, **part)


def read(path):
    """Records so far, by what they are of."""
    if not path.exists():
        return {}
    lines = map(json.loads, path.read_text(encoding="utf-8").splitlines())
    return {(one["pile"], one["draw"], one["what"]): one for one in lines}


def rate(record):
    """Success with its interval, in words."""
    return "{success:.2f} [{low:.2f}, {high:.2f}]".format(**record) if record else "-"


def table(records, sets):
    """One line per pile and draw."""
    print(f"{'pile':<30} draw filter          right" + "".join(f"{name:>20}" for name in sets))
    for pile, draw in dict.fromkeys((pile, draw) for pile, draw, _ in records):
        found = records.get((pile, draw, "filter"), {"status": "-", "accuracy": float("nan")})
        line = f"{pile:<30} {draw:>4} {found['status']!s:<14} {found['accuracy']:>6.1%}"
        print(line + "".join(f"{rate(records.get((pile, draw, name))):>20}" for name in sets))


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("piles", type=Path, nargs="+", help="NPZ files named after their task")
    parser.add_argument("--work", type=Path, required=True, help="folder for runs and records")
    parser.add_argument("--pubc-python", default=sys.executable)
    parser.add_argument("--metaworld-python", required=True)
    parser.add_argument("--truth", default="expert", help="the expert's name among the sources")
    parser.add_argument("--seeds", type=int, default=5, help="trajectories given to the filter")
    parser.add_argument("--draws", type=int, default=1, help="draws of seeds, 0 to DRAWS - 1")
    parser.add_argument("--episodes", type=int, default=40)
    parser.add_argument("--play-seed", type=int, default=1000, help="of the starts")
    parser.add_argument("--sets", nargs="+", choices=SETS, default=SETS)
    parser.add_argument("--filter-options", default="", help="more words for `pubc filter`")
    parser.add_argument("--train-options", default="", help="more words for `pubc train`")
    parser.add_argument("--keep-files", action="store_true", help="keep runs and policies")
    chosen = parser.parse_args()
    chosen.work.mkdir(parents=True, exist_ok=True)
    path = chosen.work / "records.jsonl"
    records = read(path)
    for pile, draw in ((pile, draw) for pile in chosen.piles for draw in range(chosen.draws)):
        cell = Cell(pile, draw, chosen)
        # Without the files of the run, a clone of what was kept needs the filter again.
        have_run = (cell.folder / "filter" / "keep.json").exists()
        for what in ("filter", *chosen.sets):
            key = (pile.stem, draw, what)
            wanted = what == "filter" and "kept" in chosen.sets
            redo = wanted and not have_run and (pile.stem, draw, "kept") not in records
            if (key in records and not redo) or (what == "filter" and not wanted):
                continue
            result = cell.filter() if what == "filter" else cell.clone(what)
            facts = {"pile": pile.stem, "draw": draw, "what": what, "seeds": cell.seeds}
            records[key] = {**facts, **result}
            with path.open("a", encoding="utf-8") as file:
                file.write(json.dumps(records[key]) + "\n")
            print(json.dumps(records[key]), flush=True)
        if not chosen.keep_files:
            shutil.rmtree(cell.folder, ignore_errors=True)
    table(records, chosen.sets)


if __name__ == "__main__":
    main()
