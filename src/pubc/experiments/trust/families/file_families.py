"""Families made from files that the user gives: scripted manipulation, people, TriFinger."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cache, partial
from pathlib import Path

import numpy as np

from pubc import formats
from pubc.experiments.trust.changes import Change, absolute_actions
from pubc.experiments.trust.pile import Asked, ask, draw
from pubc.experiments.trust.question import Draft, Question
from pubc.streams import stream
from pubc.trajectory import TrajectorySet

__all__ = ["GIVEN", "FileMixture", "file_families"]

_FILE = (
    "a dataset in any format of `pubc formats` that says who acted in every trajectory (sources)"
)
GIVEN: dict[str, str] = {
    "manipulation": "a folder of NumPy archives, one for each scripted task, with sources, the "
    "expert called `expert`, and expert_steps",
    "human-operators": f"{_FILE}, one source for each person",
    "trifinger-push": f"{_FILE}, the expert called `expert`",
    "trifinger-lift": f"{_FILE}, the expert called `expert`",
}
"""What `--data` takes, by name."""

_PEOPLE = 5
"""A person with fewer trials is only one of the others."""
_HAND = (0, 1, 2)
"""Where the manipulation sets have the position of the hand; an action of 1 asks for 1 cm."""


@dataclass(frozen=True, slots=True)
class FileMixture:
    """A pile cut from a file; calling it with family and name makes the question."""

    path: Path
    """The file."""
    asked: Asked
    """What is asked."""
    counts: tuple[tuple[str, int], ...] = ()
    """Source and how many of its trajectories; the whole file if empty."""
    change: Change | None = None
    """What is done to the whole pile before it is shuffled."""

    def __call__(self, family: str, name: str) -> Question:
        """Read the file, cut the pile and ask."""
        rng = stream(0, family, name)
        whole = _open(self.path)
        parts = [draw(whole, source, count, rng) for source, count in self.counts] or [whole]
        if self.change is not None:
            parts = [self.change(part, rng) for part in parts]
        return ask((family, name), parts, self.asked, rng)


def file_families(data: Mapping[str, Path]) -> Iterator[Draft]:
    """Every question about the files that are given."""
    if "manipulation" in data:
        for path in sorted(data["manipulation"].glob("*.npz")):
            yield from _manipulation(path)
    if "human-operators" in data:
        yield from _people(data["human-operators"])
    for task, answerable in (("push", True), ("lift", False)):
        if f"trifinger-{task}" in data:
            yield from _trifinger(data[f"trifinger-{task}"], task, answerable)


@cache
def _open(path: Path) -> TrajectorySet:
    return formats.read(path)


def _sources(path: Path) -> dict[str, int]:
    names = _open(path).sources
    assert names is not None
    found, counts = np.unique(names, return_counts=True)
    return dict(zip(found.tolist(), counts.tolist(), strict=True))


def _manipulation(path: Path) -> Iterator[Draft]:
    task = path.stem.rpartition("-v")[0] or path.stem
    counts = _sources(path)
    others = tuple(sorted(set(counts) - {"expert"}))
    lapses = tuple(name for name in ("detour", "early") if name in counts)
    absolute = partial(absolute_actions, state=_HAND, reach=0.01)
    few = tuple((name, 4) for name in others)
    piles = {
        ("scripted manipulation", "5 seeds"): FileMixture(path, Asked(5)),
        ("absolute actions", "as targets of the hand"): FileMixture(
            path, Asked(5), change=absolute
        ),
        ("local lapses", "5 seeds"): FileMixture(
            path, Asked(5), (("expert", 40), *((name, 20) for name in lapses))
        ),
        ("wrong seeds", "1 of 5 wrong"): FileMixture(path, Asked(5, wrong=1)),
        ("rare expert", "3 seeds"): FileMixture(
            path, Asked(3), (("expert", 6), *((name, 20) for name in others))
        ),
        ("many experts", "4 others"): FileMixture(
            path, Asked(5), (("expert", 40), *((name, 1) for name in others[:4]))
        ),
        ("tiny piles", "3 seeds"): FileMixture(path, Asked(3), (("expert", 10), *few)),
        ("one policy only", "alone"): FileMixture(
            path, Asked(5, answerable=False), (("expert", 40),)
        ),
        ("one seed", "of many"): FileMixture(path, Asked(1)),
    }
    for (family, name), mixture in piles.items():
        full = family in ("scripted manipulation", "absolute actions")
        yield Draft(family, f"{task} {name}", mixture, once=not full)


def _people(path: Path) -> Iterator[Draft]:
    """Whether two people differ more than one of them varies is not known by construction."""
    for person, trials in _sources(path).items():
        if trials >= _PEOPLE:
            mixture = FileMixture(path, Asked(3, (person,), answerable=False))
            yield Draft("real operators", f"{person}, 3 seeds", mixture)


def _trifinger(path: Path, task: str, answerable: bool) -> Iterator[Draft]:
    """The policies of push differ in skill; two policies of lift are nearly the same."""
    for seeds in (3, 10):
        mixture = FileMixture(path, Asked(seeds, answerable=answerable))
        yield Draft(f"TriFinger {task}", f"{seeds} seeds", mixture)
