"""All questions of the suite, in order; nothing is made before it is asked for."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import chain
from pathlib import Path

from pubc.experiments.trust.families.acting_families import acting_families
from pubc.experiments.trust.families.file_families import file_families
from pubc.experiments.trust.families.recording_families import recording_families
from pubc.experiments.trust.families.robot_families import robot_families
from pubc.experiments.trust.families.robot_recordings import can_simulate
from pubc.experiments.trust.families.seed_families import seed_families
from pubc.experiments.trust.families.size_families import size_families
from pubc.experiments.trust.families.unanswerable_families import unanswerable_families
from pubc.experiments.trust.question import Draft, QuestionSpec

__all__ = ["QUICK", "questions"]

QUICK = (
    ("built-in faults", "pick-place with detour, slow, shaky, aim, early"),
    ("built-in faults", "arm tracing with repeat, overshoot, offset, shaky"),
    ("local lapses", "pick-place of all kinds, 3 known bad"),
    ("local lapses", "arm tracing with detour"),
    ("delay", "pick-place of 4 steps"),
    ("human style", "pick-place with repeat, overshoot, offset, shaky"),
    ("human style", "arm tracing of two people"),
    ("continuous quality", "pick-place slow by a quarter and more"),
    ("continuous quality", "arm tracing without a gap"),
    ("absolute actions", "pick-place with detour, slow, shaky, aim, early"),
    ("offsets", "arm tracing in the actions of others"),
    ("offsets", "pick-place in a second session"),
    ("constant dimensions", "pick-place of the expert's actions"),
    ("constant dimensions", "arm tracing of the expert's states"),
    ("discrete actions", "arm tracing with slow, shaky, aim"),
    ("discrete actions", "grid errand, two ways"),
    ("rare expert", "pick-place 6 of 126, 3 seeds"),
    ("many experts", "arm tracing 45 of 50"),
    ("tiny piles", "pick-place 12 trajectories, 2 seeds"),
    ("tiny piles", "arm tracing 20 trajectories, 3 seeds"),
    ("wrong seeds", "pick-place 1 of 5 wrong"),
    ("wrong seeds", "arm tracing 1 of 5 wrong, two policies"),
    ("repeated seeds", "arm tracing 2 and 1 again"),
    ("one seed", "pick-place of two policies"),
    ("one policy only", "pick-place alone"),
    ("one policy only", "arm tracing in 4 tasks"),
    ("seeds from part of the tasks", "pick-place one policy in 2 tasks, seeds from 1"),
    ("seeds from part of the tasks", "arm tracing among others in 4 tasks, seeds from 2"),
    ("expert absent", "pick-place 3 seeds, others 4"),
    ("near-equal policies", "arm tracing 2 % more gain"),
)
"""Family and name of the questions of the quick suite: every built-in family, small piles."""


def questions(
    *,
    quick: bool,
    data: Mapping[str, Path],
    draws: int = 3,
    only: str = "",
    cache: Path | None = None,
) -> Iterator[QuestionSpec]:
    """Every question.

    Args:
        quick: Only about thirty small ones, each once; they need no file and no simulator.
        data: Files by name: `manipulation` (a folder), `human-operators`, `trifinger-push`,
            `trifinger-lift`. Families whose file is missing are left out.
        draws: How often each is asked, with other trajectories and seeds.
        only: Only families or names that contain this.
        cache: Folder for recordings of the walking robots; without it, or without MuJoCo,
            those families are left out.
    """
    for draft in _quick() if quick else _drafts(data, cache):
        for number in range(1, 2 if quick or draft.once else draws + 1):
            spec = QuestionSpec(draft.family, f"{draft.name}, draw {number}", draft.build)
            if only.lower() in f"{spec.family}, {spec.name}".lower():
                yield spec


def _built_in() -> Iterator[Draft]:
    return chain(
        acting_families(),
        recording_families(),
        size_families(),
        seed_families(),
        unanswerable_families(),
    )


def _drafts(data: Mapping[str, Path], cache: Path | None) -> Iterator[Draft]:
    robots = robot_families(cache) if cache is not None and can_simulate() else ()
    return chain(robots, file_families(data), _built_in())


def _quick() -> Iterator[Draft]:
    names = {f"{family}: {name}" for family, name in QUICK}
    return (draft for draft in _built_in() if f"{draft.family}: {draft.name}" in names)
