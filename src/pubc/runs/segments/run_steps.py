"""The steps of a run, judged with what the run found: which steps are the expert's."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

import numpy as np

from pubc.pu.steps.idle_steps import learn_idle_rule
from pubc.pu.steps.step_model import JudgedSteps, learn_steps
from pubc.pu.steps.step_sample import Known
from pubc.pu.steps.step_settings import StepSettings
from pubc.runs.find_expert import Prepared, Result
from pubc.runs.plan_run import Plan
from pubc.runs.segments.segment_set import cut_segments
from pubc.runs.segments.steps_file import read_steps
from pubc.select import locate
from pubc.streams import Key
from pubc.threads import threads
from pubc.trajectory import TrajectorySet

__all__ = ["judge_steps", "segments_of"]


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
        # Marked stretches lie in the pile itself; their steps are marked there.
        elsewhere=elsewhere if len(elsewhere) and ready.seed_steps is None else None,
        seed_steps=ready.seed_steps,
    )
    with threads(1):
        model = learn_steps(ready.mixed, known, key, settings)
        for part in model.judge(ready.mixed):
            yield _as_marked(part, ready.bad_stretches)


def _as_marked(part: JudgedSteps, bad_stretches: tuple[tuple[int, int, int], ...]) -> JudgedSteps:
    """Steps that somebody marked bad are not the expert's, whatever was found of them."""
    confidence = part.confidence
    for at, start, stop in bad_stretches:
        if at == part.trajectory and start < part.first + len(confidence) and stop > part.first:
            confidence = confidence.copy()
            confidence[max(0, start - part.first) : stop - part.first] = 0
    return replace(part, confidence=confidence)


def segments_of(folder: Path, planned: Plan, warn: Callable[[str], None]) -> TrajectorySet | None:
    """The expert's segments of a run whose steps are judged; None where there is none.

    Args:
        folder: The folder of the run, with its steps.npz.
        planned: What was asked for, and of which data.
        warn: Told where nothing is long enough.
    """
    config, ready = planned.config, planned.ready
    confidence, _ = read_steps(folder, planned.mixed.steps)
    idle = None
    if config.drop_idle:
        rng = Key(config.random_seed).at("idle").rng()
        idle = learn_idle_rule(ready.seed_positives, rng)
    return cut_segments(
        planned.mixed,
        confidence,
        ready.known_bad,
        shortest=config.min_segment,
        margin=config.segment_margin,
        idle=idle,
        warn=warn,
    )
