"""Scenes of commands that work in several steps: demo, reproduce, experts, review."""

from pathlib import Path

from pubc import formats
from pubc.cli.filtering.demo_command import mixture
from pubc.errors import PubcError
from pubc.labels import Labels, Mark, read_labels, save_labels
from pubc.results import read
from pubc.storage import read_json
from tests.experiments.tiny import labelled
from tests.reliability import quick_table
from tests.reliability.fault_scenes import begun, run_before, write_pile
from tests.reliability.faults import Build, Scene
from tests.reliability.review_visit import MARKS

assert quick_table  # imported for its table


def demo(force: bool) -> Build:
    def build(folder: Path) -> Scene:
        words = ("demo", "--out", "demo", "--recipe", "quick", "--workers", "1", "--json")
        if force:
            run_before(folder, *words, "--random-seed", "7")
            # One trajectory less: else nobody could tell the old mixture from the new one.
            old, about = folder / "demo" / "mixture.npz", {"demo": True}
            formats.save_sealed(old, mixture()[1:], overwrite=True, about=about)
        targets = ("demo/mixture.npz", "demo/run")
        return Scene(folder, words, targets, unfinished=_begun, renewed=not force)

    return build


def _begun(path: Path) -> bool:
    return path.is_dir() and begun(path)


def reproduce(folder: Path) -> Scene:
    """A table of one cell: a dataset of the user's, a filter, a record."""
    labelled(folder / "push.npz")
    words = (
        "reproduce", "tiny", "--out", "out", "--data", "push=push.npz", "--random-seeds", "1",
        "--only", "push", "--columns", "paper", "--device", "cpu", "--json",
    )  # fmt: skip
    names = ("out/records/tiny.jsonl", "out/records/tiny.json")

    def whole(path: Path) -> bool:
        try:
            return bool(read(path) if path.suffix == ".jsonl" else read_json(path)["cells"])
        except PubcError:
            return False

    def empty(path: Path) -> bool:
        """The records of a table none of whose cells is finished."""
        return path.suffix == ".jsonl" and path.stat().st_size == 0

    return Scene(folder, words, names, whole=whole, unfinished=empty)


def experts(force: bool) -> Build:
    def build(folder: Path) -> Scene:
        words = ("experts", "train", "Pendulum-v1", "out", "--steps", "20", "--json")
        if force:
            run_before(folder, *words, "--random-seed", "7")
            words += ("--force",)
        names = [
            f"out/{role}.{end}" for role in ("weak", "expert") for end in ("safetensors", "json")
        ]
        return Scene(folder, words, tuple(names))

    return build


def review(start: str) -> Build:
    """Somebody who adds marks to those of another day on the page, and may start a run."""

    def build(folder: Path) -> Scene:
        write_pile(folder)
        (folder / "review").mkdir()
        save_labels(folder / "review" / "labels.json", Labels((Mark("5", "bad"),)))
        words = ("review", "mixed.npz", "--out", "review", "--json")
        targets = ("review/labels.json",)
        if start:
            targets += ("review/run-001.labels.json",)

        def whole(path: Path) -> bool:
            try:
                return {mark.episode for mark in read_labels(path).marks} >= set(map(str, MARKS))
            except PubcError:
                return False

        program = f"tests.reliability.review_visit{start}"
        return Scene(folder, words, targets, whole=whole, program=program)

    return build


def review_run(folder: Path) -> Scene:
    """The run behind the page, in the process that the page starts for it."""
    write_pile(folder)
    marks = tuple(Mark(str(at), "good") for at in MARKS)
    save_labels(folder / "run-001.labels.json", Labels(marks))
    words = ("mixed.npz", "run-001.labels.json", "run-001")
    program = "tests.reliability.review_child"
    return Scene(folder, words, ("run-001",), unfinished=begun, program=program)


SCENES: dict[str, Build] = {
    "demo": demo(force=False),
    "demo again": demo(force=True),
    "reproduce": reproduce,
    "experts": experts(force=False),
    "experts again": experts(force=True),
    "review, marks": review(""),
    "review, a run begun": review("_and_run"),
    "review, the run": review_run,
}
NEEDS = {
    "experts": ("stable_baselines3",),
    "experts again": ("stable_baselines3",),
    "review, marks": ("starlette", "uvicorn"),
    "review, a run begun": ("starlette", "uvicorn"),
}
"""Libraries without which a scene cannot be."""
