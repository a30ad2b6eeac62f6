"""All questions of the suite, in order; nothing is made before it is asked for."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import chain
from pathlib import Path

from pubc.experiments.trust.built_in_families import built_in_families
from pubc.experiments.trust.file_families import file_families
from pubc.experiments.trust.hard_families import seed_families, unanswerable_families
from pubc.experiments.trust.question import QuestionSpec
from pubc.experiments.trust.robot_families import robot_families
from pubc.experiments.trust.robot_recordings import can_simulate

__all__ = ["questions"]


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
        quick: Only about thirty small ones.
        data: Files by name: `manipulation` (a folder), `human-operators`, `trifinger-push`,
            `trifinger-lift`. Families whose file is missing are left out.
        draws: How often each is asked, with other trajectories and seeds.
        only: Only families or names that contain this.
        cache: Folder for recordings of the locomotion policies; without it, or without
            MuJoCo, that family is left out.
    """
    found = chain(
        robot_families(cache, draws) if cache is not None and can_simulate() else (),
        file_families(data, draws),
        built_in_families(draws),
        seed_families(draws),
        unanswerable_families(draws),
    )
    for spec in found:
        if only.lower() in f"{spec.family}, {spec.name}".lower():
            yield spec
