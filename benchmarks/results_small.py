"""One command makes docs/results-small.md: what cloning gains from filtering.

    python benchmarks/results_small.py [--scale 1.0] [--jobs 1] [--processes 2] [--page PAGE]

Ant and Humanoid, E+W and E+N, 100 trajectories of each source. Behaviour cloning learns from
everything, from the top 10 % and 50 % by return, from what `pubc filter` kept, and from the
expert's own trajectories; three training seeds, 100 evaluation episodes each. Every step is a
pubc command. Finished cells are in records.jsonl and are not computed again; --scale 0.1
takes a tenth of everything.
"""

import argparse
import json
import shlex
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor, as_completed
from pathlib import Path

import numpy as np

import pubc
from pubc.results import Record, append, key_of, read

MIXTURES = ("ant:E+W", "ant:E+N", "humanoid:E+W", "humanoid:E+N")
CELLS = ("all", "10 % BC", "50 % BC", "kept", "expert")
SEEDS = (0, 1, 2)
ROOT = Path(__file__).parent.parent


def call(*words):
    """Run a pubc command and return its JSON document."""
    command = [sys.executable, "-m", "pubc.cli.main", *map(str, words), "--json"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        sys.exit(f"{' '.join(map(str, words))}\n{done.stderr}")
    return json.loads(done.stdout)


def put_between(page, begin, end, words):
    """Replace what stands between two marks of a page."""
    before, mark, rest = page.read_text(encoding="utf-8").partition(begin)
    if not mark:
        sys.exit(f"{page} has no {begin}")
    page.write_text(f"{before}{begin}\n{words}{end}{rest.partition(end)[2]}", encoding="utf-8")


class Mixture:
    """The datasets of one mixture, made when first needed."""

    def __init__(self, name, chosen):
        self.name, self.chosen = name, chosen
        self.environment = name.partition(":")[0]
        self.folder = chosen.work / name.replace(":", "-").replace("+", "")
        self.trajectories = max(4, round(100 * chosen.scale))

    @property
    def mixed(self):
        path = self.folder / "mixed.npz"
        if not path.exists():
            call("collect", self.name, path, "--trajectories-per-source", self.trajectories,
                 "--processes", self.chosen.processes)  # fmt: skip
        return path

    @property
    def kept(self):
        run = self.folder / "run"
        if not (run / "manifest.json").exists():
            again = ["--resume", run] if run.exists() else [
                self.mixed, "--out", run, "--seed-from", self.folder / "mixed-seed.npz",
                "--truth", "E+",
            ]  # fmt: skip
            call("filter", *again)
        return run

    @property
    def expert(self):
        path = self.folder / "expert.npz"
        if not path.exists():
            data = pubc.load(self.mixed)
            pubc.save(path, data[data.sources == "E+"])
        return path

    def source(self, cell):
        data = {"kept": "kept", "expert": "expert"}.get(cell, "mixed")
        algo = {"10 % BC": "10%bc", "50 % BC": "50%bc"}.get(cell, "bc")
        return getattr(self, data), algo


def compute(mixture, cell, seed, chosen):
    """Train and evaluate one cell; the values of its record."""
    data, algo = mixture.source(cell)
    policy = mixture.folder / "policies" / f"{cell.replace(' ', '').replace('%', '')}-{seed}"
    began = time.monotonic()
    if not policy.exists():
        limit = [] if chosen.scale >= 1 else ["--updates", max(50, round(20_000 * chosen.scale))]
        call("train", data, "--out", policy, "--algo", algo, "--recipe", chosen.recipe,
             "--device", "cpu", "--random-seed", seed, "--resume", *limit)  # fmt: skip
    found = call(
        "evaluate", policy, "--env", mixture.environment, "--episodes",
        max(2, round(100 * chosen.scale)), "--processes", chosen.processes,
    )  # fmt: skip
    return {
        "return": found["return"],
        "steps": found["steps"],
        "seconds": round(time.monotonic() - began, 1),
    }


def cells(chosen):
    for name in MIXTURES:
        for cell in CELLS:
            for seed in SEEDS:
                asked = {
                    "kind": "results-small",
                    "mixture": name,
                    "learner": cell,
                    "random_seed": seed,
                    "recipe": chosen.recipe,
                    "scale": chosen.scale,
                }
                yield asked


def command(chosen):
    """The words that ask for this page; the machine is told in a sentence of its own."""
    words = ["python", "benchmarks/results_small.py"]
    for name, usual in vars(parser().parse_args([])).items():
        value = getattr(chosen, name)
        if value != usual and name not in ("work", "machine"):
            words += [f"--{name}", str(value)]
    return shlex.join(words)


def table(records, chosen):
    """The page, from the records alone."""
    by = {}
    for one in records:
        place = (one.cell["mixture"], one.cell["learner"])
        by.setdefault(place, []).append(one.values["return"]["mean"])
    lines = [
        "# What cloning gains from filtering",
        "",
        "Return of behaviour cloning, mean and spread over three training seeds, "
        f"{max(2, round(100 * chosen.scale))} evaluation episodes each; "
        f"{max(4, round(100 * chosen.scale))} trajectories of each source. "
        "*kept / expert* is what `pubc filter` and cloning reach of cloning the true expert.",
        "",
        "Where the filter kept exactly the expert's trajectories, *kept* and *true expert* are the "
        "same training on the same data, and their numbers are equal to the last digit.",
        "",
        f"Made by `{command(chosen)}` with the recipe `{chosen.recipe}`"
        + (f" on {chosen.machine}" if chosen.machine else "")
        + "; the records are in [results-small.jsonl](results-small.jsonl).",
        "",
        "| mixture | all | 10 % BC | 50 % BC | kept | true expert | kept / expert |",
        "|---|---|---|---|---|---|---|",
    ]
    for name in MIXTURES:
        row = [name]
        for cell in CELLS:
            values = by.get((name, cell), [])
            row.append(f"{np.mean(values):,.0f} ± {np.std(values):,.0f}" if values else "-")
        kept, expert = by.get((name, "kept")), by.get((name, "expert"))
        row.append(f"{np.mean(kept) / np.mean(expert):.1%}" if kept and expert else "-")
        lines.append("| " + " | ".join(row) + " |")
    return "\n".join(lines) + "\n"


def parser():
    """What may be asked of this script."""
    found = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    found.add_argument("--scale", type=float, default=1.0)
    found.add_argument("--processes", type=int, default=2)
    found.add_argument("--jobs", type=int, default=1, help="cells computed at the same time")
    found.add_argument("--recipe", choices=["auto", "paper"], default="auto")
    found.add_argument("--work", type=Path, default=ROOT / "build" / "results-small")
    found.add_argument("--only", default="", help="mixtures whose name contains this")
    found.add_argument("--page", type=Path, help="where to write the page, with its records")
    found.add_argument("--machine", default="", help="words on the machine and time, for the page")
    return found


def main():
    chosen = parser().parse_args()
    chosen.work.mkdir(parents=True, exist_ok=True)
    path = chosen.work / "records.jsonl"
    finished = {one.key for one in read(path)}
    mixtures = {name: Mixture(name, chosen) for name in MIXTURES}
    asked = [cell for cell in cells(chosen) if chosen.only in cell["mixture"]]
    missing = [cell for cell in asked if key_of(cell) not in finished]
    for name in dict.fromkeys(cell["mixture"] for cell in missing):
        mixtures[name].folder.mkdir(parents=True, exist_ok=True)
        for cell in CELLS:
            mixtures[name].source(cell)  # made once, before cells that share it run
    with ThreadPoolExecutor(chosen.jobs) as pool:
        running = {
            pool.submit(
                compute, mixtures[cell["mixture"]], cell["learner"], cell["random_seed"], chosen
            ): cell
            for cell in missing
        }
        for number, done in enumerate(as_completed(running), start=1):
            cell, values = running[done], done.result()
            append(path, Record(cell, values))
            print(
                f"{number} of {len(missing)}: {cell['mixture']}, {cell['learner']}, seed "
                f"{cell['random_seed']}: {values['return']['mean']:,.0f} in "
                f"{values['seconds']:.0f} s",
                flush=True,
            )
    wanted = {key_of(cell) for cell in cells(chosen)}
    records = [one for one in read(path) if one.key in wanted]
    page = table(records, chosen)
    if chosen.page is not None:
        chosen.page.write_text(page, encoding="utf-8")
        beside = chosen.page.with_suffix(".jsonl")
        beside.unlink(missing_ok=True)
        for one in records:
            append(beside, one)
    print(page)


if __name__ == "__main__":
    main()
