"""Every command that writes, in a folder of its own: what the fault harness fails in turn.

A scene without an earlier result and one with it (`--force`) for each; small enough that a command
takes a fraction of a second.
"""

import contextlib
import io
import json
from pathlib import Path

import numpy as np

import pubc
from pubc import zoo
from pubc.cli.main import main
from pubc.policies.policy_folder import save
from pubc.results import read
from pubc.storage import renew_files
from tests.policies.sets import random_policy, tiny
from tests.pu.piles import pile
from tests.reliability import quick_recipe, samples
from tests.reliability.faults import Build, Scene
from tests.report.build import make_run

assert quick_recipe  # imported for its recipe

_CARD = {"environment": "Pendulum-v1", "name": "mine", "algorithm": "td3", "steps": 5}
FILTER = (
    "filter", "mixed.npz", "--out", "run", "--seed-episodes", "0,1", "--recipe", "quick",
    "--workers", "1", "--json",
)  # fmt: skip


def convert(suffix: str, *to: str, force: bool) -> Build:
    def build(folder: Path) -> Scene:
        source = samples.npz(folder)
        words = ("convert", "set.npz", f"out{suffix}", *to, "--json")
        if force:
            other = samples.flat()
            other["observations"] = other["observations"] + 1
            (folder / "other").mkdir()
            earlier = samples.npz(folder / "other", other)
            run_before(folder, "convert", str(earlier), *words[2:])
            words += ("--force",)
        assert source.exists()
        return Scene(folder, words, (f"out{suffix}",))

    return build


def begun(run: Path) -> bool:
    """Whether a folder holds a run that can go on, or nothing that anybody would miss."""
    if (run / "manifest.json").exists():
        return False
    if not (run / "run.json").exists():
        return all(path.name.startswith(".") for path in run.iterdir())
    return json.loads((run / "run.json").read_text())["kind"] == "filter"


def filter_anew(folder: Path) -> Scene:
    write_pile(folder)

    def again(here: Path) -> tuple[str, ...]:
        started = (here / "run" / "run.json").exists()
        return ("filter", "--resume", "run", "--json") if started else FILTER

    return Scene(folder, FILTER, ("run",), again=again, unfinished=begun)


def filter_over(resume: bool) -> Build:
    """A run over an earlier one with other random numbers; afterwards --resume, or --force."""

    def build(folder: Path) -> Scene:
        write_pile(folder)
        run_before(folder, *FILTER, "--random-seed", "7")
        words = (*FILTER, "--force")
        if not resume:
            return Scene(folder, words, ("run",))
        again = ("filter", "--resume", "run", "--json")
        return Scene(folder, words, ("run",), again=lambda here: again, renewed=False)

    return build


def report_inside(folder: Path) -> Scene:
    """A report drawn anew inside a run, by a version that says something else."""
    make_run(folder / "run", 12, 1)
    run_before(folder, "report", "run", "--json")
    page = folder / "run" / "report.html"
    renew_files(folder / "run", {page.name: page.read_bytes() + b"<!-- earlier -->"})
    return Scene(folder, ("report", "run", "--json"), ("run",))


def report_outside(force: bool) -> Build:
    def build(folder: Path) -> Scene:
        make_run(folder / "run", 12, 1)
        make_run(folder / "other", 10, 1)
        words = ("report", "run", "--out", "page", "--json")
        if force:
            run_before(folder, "report", "other", "--out", "page", "--json")
            words += ("--force",)
        return Scene(folder, words, ("page",))

    return build


def train(*more: str, force: bool = False) -> Build:
    def build(folder: Path) -> Scene:
        pubc.save(folder / "set.npz", tiny(6, 10, observations=3, actions=1))
        words = ("train", "set.npz", "--out", "policy", "--updates", "4", "--batch-size", "8")
        words = (*words, "--device", "cpu", "--checkpoint-seconds", "0", "--json", *more)
        if force:
            run_before(folder, *words, "--random-seed", "5")
            words += ("--force",)

        def again(here: Path) -> tuple[str, ...]:
            if (here / "policy").exists() and not force and not list(here.glob("*.training")):
                return words
            return (*words, "--resume")

        targets = ("policy/seed-0", "policy/seed-1") if more else ("policy",)
        return Scene(folder, words, targets, again=again)

    return build


def export(force: bool) -> Build:
    def build(folder: Path) -> Scene:
        save(folder / "policy", random_policy(3, 1), about={"learner": "bc"})
        words = ("export", "policy", "out.pt", "--json")
        if force:
            save(folder / "other", random_policy(3, 1, seed=1), about={"learner": "bc"})
            run_before(folder, "export", "other", "out.pt", "--json")
            words += ("--force",)
        return Scene(folder, words, ("out.pt",))

    return build


def evaluate(folder: Path) -> Scene:
    """A record added to a file: what was in it stays, and the new line is whole or not there."""
    save(folder / "policy", random_policy(3, 1), about={"learner": "bc"})
    words = ("evaluate", "policy", "--env", "Pendulum-v1", "--episodes", "1", "--json")
    words = (*words, "--record", "records.jsonl")
    run_before(folder, *words)
    before = (folder / "records.jsonl").read_bytes()

    def whole(path: Path) -> bool:
        found = path.read_bytes()
        return found.startswith(before) and found != before and len(read(path)) > 1

    def torn(path: Path) -> bool:
        """Readers pass over half a line at the end: they see what was there before."""
        return path.read_bytes().startswith(before) and path.read_bytes()[-1:] != b"\n"

    return Scene(folder, words, ("records.jsonl",), whole=whole, unfinished=torn)


def collect(*more: str, force: bool = False) -> Build:
    def build(folder: Path) -> Scene:
        words = (
            "collect", "custom", "mixed.npz", "--environment", "Pendulum-v1", "--json",
            "--policy", "a=mine.safetensors", "--policy", "b=mine.safetensors",
            "--trajectories-per-source", "1", "--seed-steps", "0", "--processes", "1", *more,
        )  # fmt: skip
        rng = np.random.default_rng(0)
        arrays = {"w0": rng.normal(size=(3, 1)), "b0": np.zeros(1)}
        card = {"network": "tanh", "observation_size": 3, "action_size": 1, "action_limit": 2.0}
        zoo.write(folder / "mine.safetensors", arrays, {**card, **_CARD})
        if force:
            run_before(folder, *words, "--random-seed", "5")
            words += ("--force",)
        beside = ("mixed-seed.json",) if more else ()
        return Scene(folder, words, ("mixed.npz", *beside))

    return build


def write_pile(folder: Path) -> None:
    """A dataset for a filter of milliseconds."""
    pubc.save(folder / "mixed.npz", pile([4, 4], steps=30, states=2))


def run_before(folder: Path, *words: str) -> None:
    """Run a command in a folder, for what is there when the scene begins."""
    with contextlib.chdir(folder), contextlib.redirect_stdout(io.StringIO()):
        assert main(list(words)) == 0


SCENES: dict[str, Build] = {
    "convert to npz": convert(".npz", force=False),
    "convert to npz again": convert(".npz", force=True),
    "convert to hdf5": convert(".hdf5", force=False),
    "convert to hdf5 again": convert(".hdf5", force=True),
    "convert to a store": convert(".store", force=False),
    "convert to a store again": convert(".store", force=True),
    "convert to d3rlpy": convert(".h5", force=False),
    "convert to robomimic": convert(".hdf5", "--to", "robomimic", force=False),
    "convert to minari": convert("-v0", "--to", "minari", force=False),
    "convert to minari again": convert("-v0", "--to", "minari", force=True),
    "convert to lerobot": convert("", "--to", "lerobot", force=False),
    "convert to lerobot again": convert("", "--to", "lerobot", force=True),
    "filter": filter_anew,
    "filter again, then --force": filter_over(resume=False),
    "filter again, then --resume": filter_over(resume=True),
    "report in a run": report_inside,
    "report": report_outside(force=False),
    "report again": report_outside(force=True),
    "train": train(),
    "train with two seeds": train("--random-seeds", "0,1"),
    "train again": train(force=True),
    "export": export(force=False),
    "export again": export(force=True),
    "evaluate --record": evaluate,
    "collect": collect(),
    "collect with seeds": collect("--seed-inside", "1"),
    "collect again": collect(force=True),
}
NEEDS = {"convert to lerobot": ("pyarrow",), "convert to lerobot again": ("pyarrow",)}
"""Libraries without which a scene cannot be."""
