"""Scenes of commands that read a run, a policy or a dataset and write one thing about it."""

from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

import pubc
from pubc.cli.data.inspect_plot import KIND as OVERVIEW
from pubc.cli.policies.comparison_plot import KIND as COMPARISON
from pubc.errors import PubcError
from pubc.policies.policy_folder import save
from pubc.results import read
from pubc.storage import claim
from tests.policies.sets import random_policy
from tests.pu.piles import pile
from tests.reliability import quick_film, samples
from tests.reliability.fault_scenes import FILTER, run_before, write_pile
from tests.reliability.faults import Build, Scene
from tests.report.build import make_run
from tests.report.tables.build import accuracy_records, all_tables, head, write

assert quick_film  # imported for its environment

_UPDATED = "--force"
ROBOMIMIC = ("in.hdf5", "--to", "robomimic")


def marked(*kinds: str) -> Callable[[Path], bool]:
    """Whether a picture or page is whole: the mark in it says so."""

    def whole(path: Path) -> bool:
        try:
            claim(path, *kinds, force=True)
        except PubcError:
            return False
        return True

    return whole


def score(force: bool, *more: str) -> Build:
    def build(folder: Path) -> Scene:
        write_pile(folder)
        run_before(folder, *FILTER)
        words = ("score", "mixed.npz", "--filter", "run", "--out", "scores.csv", "--workers", "1")
        words = (*words, "--json", *more)
        if force:
            pubc.save(folder / "other.npz", pile([3, 3], steps=20, states=2))
            run_before(folder, "score", "other.npz", *words[2:])
            words += (_UPDATED,)
        return Scene(folder, words, ("scores.csv",))

    return build


def weights(trainer: str, suffix: str, source: tuple[str, ...] = (), force: bool = False) -> Build:
    def build(folder: Path) -> Scene:
        write_pile(folder)
        data = "mixed.npz"
        if source:
            data = source[0]
            run_before(folder, "convert", "mixed.npz", *source)
        filtered = ("filter", data, *FILTER[2:], "--isolate", "off", "--no-cache")
        run_before(folder, *filtered)
        words = ("weights", "run", "--for", trainer, "--out", f"out{suffix}", "--json")
        if force:
            run_before(folder, *filtered[:3], "other", "--seed-episodes", "4,5", *filtered[6:])
            run_before(folder, "weights", "other", *words[2:])
            words += (_UPDATED,)
        return Scene(folder, words, (f"out{suffix}",))

    return build


def inspect(force: bool) -> Build:
    def build(folder: Path) -> Scene:
        samples.npz(folder)
        words = ("inspect", "set.npz", "--plot", "picture.png", "--json")
        if force:
            write_pile(folder)
            run_before(folder, "inspect", "mixed.npz", *words[2:])
            words += (_UPDATED,)
        return Scene(folder, words, ("picture.png",), whole=marked(OVERVIEW))

    return build


def compare(folder: Path) -> Scene:
    """A picture, and two records added to a file."""
    for number, name in enumerate(("one", "two")):
        save(folder / name, random_policy(3, 1, seed=number), about={"learner": "bc"})
    words = ("compare", "one", "two", "--env", "Pendulum-v1", "--episodes", "2", "--json")
    words = (*words, "--plot", "returns.svg", "--record", "records.jsonl")
    evaluated = ("evaluate", "one", "--env", "Pendulum-v1", "--episodes", "1", "--json")
    run_before(folder, *evaluated, "--record", "records.jsonl")
    earlier = (folder / "records.jsonl").read_bytes()

    def whole(path: Path) -> bool:
        if path.suffix == ".svg":
            return marked(COMPARISON)(path)
        return path.read_bytes().startswith(earlier) and len(read(path)) > 2

    def torn(path: Path) -> bool:
        return path.suffix == ".jsonl" and path.read_bytes()[-1:] != b"\n"

    return Scene(folder, words, ("returns.svg", "records.jsonl"), whole=whole, unfinished=torn)


def film(name: str) -> Build:
    """The first trajectory in pictures: a folder of them, or a film that its last byte ends."""

    def build(folder: Path) -> Scene:
        save(folder / "policy", random_policy(3, 1), about={"learner": "bc"})
        words = ("evaluate", "policy", "--env", "QuickFilm-v0", "--episodes", "1", "--json")
        scene = Scene(folder, (*words, "--frames", name), (name,))
        whole = (lambda path: path.read_bytes()[-1:] == b";") if name.endswith(".gif") else None
        return replace(scene, whole=whole)

    return build


def report_with_figures(folder: Path) -> Scene:
    make_run(folder / "run", 12, 1)
    words = ("report", "run", "--out", "page", "--figures", "drawn", "--json")
    scene = Scene(folder, words, ("page",))
    return replace(scene, whole=lambda path: not pubc.storage.verify(path))


def report_of_records(force: bool) -> Build:
    def build(folder: Path) -> Scene:
        all_tables(folder / "records")
        words = ("report", "records", "--out", "results.md", "--json")
        if force:
            (folder / "earlier").mkdir()
            write(folder / "earlier", head(), accuracy_records()[:1])
            run_before(folder, "report", "earlier", *words[2:])
            words += (_UPDATED,)
        return Scene(folder, words, ("results.md",), whole=marked("report"))

    return build


def export_onnx(folder: Path) -> Scene:
    save(folder / "policy", random_policy(3, 1), about={"learner": "bc"})
    return Scene(folder, ("export", "policy", "out.onnx", "--json"), ("out.onnx",))


def _both(name: str, build: Callable[[bool], Build]) -> Iterator[tuple[str, Build]]:
    yield name, build(False)
    yield f"{name} again", build(True)


SCENES: dict[str, Build] = {
    **dict(_both("score", score)),
    "score by workers": score(False, "--engine", "processes"),
    **dict(_both("weights for torch", lambda force: weights("torch", ".npy", force=force))),
    "weights for d3rlpy": weights("d3rlpy", ".h5"),
    "weights for robomimic": weights("robomimic", ".hdf5", ROBOMIMIC),
    "weights for robomimic again": weights("robomimic", ".hdf5", ROBOMIMIC, force=True),
    "weights for lerobot": weights("lerobot", ".parquet", ("in", "--to", "lerobot")),
    **dict(_both("inspect --plot", inspect)),
    "compare": compare,
    "evaluate --frames, a folder": film("frames"),
    "evaluate --frames, a film": film("film.gif"),
    "report with figures": report_with_figures,
    **dict(_both("report of records", report_of_records)),
    "export to onnx": export_onnx,
}
NEEDS = {
    "weights for lerobot": ("pyarrow",),
    "export to onnx": ("onnx", "onnxscript", "onnxruntime"),
}
"""Libraries without which a scene cannot be."""
