"""The steps of a run, judged with what the run found: which steps are the expert's."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from pubc.pu.steps.step_model import JudgedSteps, learn_steps
from pubc.pu.steps.step_sample import Known
from pubc.pu.steps.step_settings import StepSettings
from pubc.runs.find_expert import Prepared, Result
from pubc.select import locate
from pubc.streams import Key
from pubc.threads import threads

__all__ = ["judge_steps"]


def judge_steps(
    ready: Prepared, result: Result, key: Key, settings: StepSettings | None = None
) -> Iterator[JudgedSteps]:
    """Every step of the pile in order, a trajectory or a part of a long one at a time.

    Args:
        ready: The pile and its seeds.
        result: What the filter found of them.
        key: Names all randomness.
        settings: How to judge.
    """
    places = locate(ready.mixed, ready.seed_positives)
    elsewhere = ready.seed_positives[np.flatnonzero(places < 0)]
    known = Known(
        seeds=ready.seeds,
        kept=(result.mask | ready.seeds) & ~ready.known_bad,
        bad=ready.known_bad,
        elsewhere=elsewhere if len(elsewhere) else None,
        seed_steps=ready.seed_steps,
    )
    with threads(1):
        model = learn_steps(ready.mixed, known, key, settings)
        yield from model.judge(ready.mixed, known.kept)
