"""Every command that writes, in a folder of its own: what the fault harness fails in turn.

A scene without an earlier result and one with it (`--force`) for each; small enough that a command
takes a fraction of a second.
"""

import contextlib
import io
import json
from collections.abc import Callable
from pathlib import Path

import pubc
from pubc.cli.main import main
from tests.pu.piles import pile
from tests.reliability import quick_recipe, samples
from tests.reliability.faults import Scene

assert quick_recipe  # imported for its recipe

FILTER = (
    "filter", "mixed.npz", "--out", "run", "--seed-episodes", "0,1", "--recipe", "quick",
    "--workers", "1", "--json",
)  # fmt: skip


def convert(suffix: str, *, force: bool) -> Callable[[Path], Scene]:
    def build(folder: Path) -> Scene:
        source = samples.npz(folder)
        words = ("convert", "set.npz", f"out{suffix}")
        if force:
            other = samples.flat()
            other["observations"] = other["observations"] + 1
            (folder / "other").mkdir()
            earlier = samples.npz(folder / "other", other)
            assert main(["convert", str(earlier), str(folder / f"out{suffix}")]) == 0
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
    _pile(folder)

    def again(here: Path) -> tuple[str, ...]:
        started = (here / "run" / "run.json").exists()
        return ("filter", "--resume", "run", "--json") if started else FILTER

    return Scene(folder, FILTER, ("run",), again=again, unfinished=begun)


def filter_over(resume: bool) -> Callable[[Path], Scene]:
    """A run over an earlier one with other random numbers; afterwards --resume, or --force."""

    def build(folder: Path) -> Scene:
        _pile(folder)
        _run(folder, *FILTER, "--random-seed", "7")
        words = (*FILTER, "--force")
        if not resume:
            return Scene(folder, words, ("run",))
        again = ("filter", "--resume", "run", "--json")
        return Scene(folder, words, ("run",), again=lambda here: again, renewed=False)

    return build


def _pile(folder: Path) -> None:
    pubc.save(folder / "mixed.npz", pile([4, 4], steps=30, states=2))


def _run(folder: Path, *words: str) -> None:
    """A command in a folder, for what was there before."""
    with contextlib.chdir(folder), contextlib.redirect_stdout(io.StringIO()):
        assert main(list(words)) == 0


SCENES = {
    "convert to npz": convert(".npz", force=False),
    "convert to npz again": convert(".npz", force=True),
    "convert to hdf5 again": convert(".hdf5", force=True),
    "convert to a store again": convert(".store", force=True),
    "filter": filter_anew,
    "filter again, then --force": filter_over(resume=False),
    "filter again, then --resume": filter_over(resume=True),
}
