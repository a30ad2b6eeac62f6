"""What the filter makes of a question, held against the answer that is known."""

from __future__ import annotations

import math
import time
from typing import TYPE_CHECKING, Any

import numpy as np

from pubc.experiments.trust.question import Flags, Question
from pubc.metrics import confusion, roc_auc

if TYPE_CHECKING:
    from pubc.pu.recipes import Recipe
    from pubc.runs.find_expert import Result

__all__ = ["judge", "rightness"]

_ENOUGH = 0.95
"""Share of right labels below which a sound answer was falsely confident."""


def judge(
    question: Question,
    *,
    recipe: str | Recipe = "auto",
    device: str = "auto",
    workers: int = 1,
) -> dict[str, Any]:
    """Ask the filter and measure its answer; JSON values.

    Args:
        question: What is asked.
        recipe: Of the filter.
        device: Where networks train.
        workers: Networks trained at the same time; changes no result.
    """
    from pubc.runs.find_expert import find_expert

    began = time.perf_counter()
    found = find_expert(
        question.mixed,
        list(question.seeds),
        bad=list(question.bad) or None,
        recipe=recipe,
        device=device,
        workers=workers,
    )
    seconds = time.perf_counter() - began
    others = ~found.seeds
    return {
        **rightness(question, found.mask, found.unsure, sound=found.sound),
        "status": found.status,
        "wrong_seeds": sorted(question.wrong_seeds),
        "named_seeds": list(found.weighed.lonely_seeds),
        "auc": _number(roc_auc(found.confidence[others], question.truth[others])),
        "kept": int(found.mask.sum()),
        "chance_wrong": found.weighed.chance_wrong,
        "reliability": _reliability(found, question.truth),
        "seconds": round(seconds, 2),
    }


def rightness(question: Question, kept: Flags, unsure: Flags, *, sound: bool) -> dict[str, Any]:
    """How right an answer is; trajectories that it is unsure of count as not kept.

    Args:
        question: What was asked.
        kept: Trajectories that are called the expert's.
        unsure: Trajectories about which nothing is said.
        sound: Whether the answer claims to be trusted.
    """
    counts = confusion(kept, question.truth)
    one_policy = bool(question.truth.all())
    decided = ~unsure
    right = float((kept == question.truth)[decided].mean()) if decided.any() else 1.0
    wrong = not kept[decided].all() if one_policy else right < _ENOUGH
    return {
        "answerable": question.answerable,
        "trajectories": len(question.mixed),
        "steps": question.mixed.steps,
        "experts": int(question.truth.sum()),
        "sound": sound,
        "accuracy": counts.accuracy,
        "precision": _number(counts.precision),
        "recall": _number(counts.recall),
        "falsely_confident": bool(sound and wrong),
        "covered": sound if question.answerable else None,
        "unsure": float(unsure.mean()),
    }


def _reliability(found: Result, truth: Flags) -> list[list[float]]:
    """For each chance of a wrong label: the chance, how many labels, how many are wrong."""
    opinion, chances = found.opinion, found.weighed.chances
    if opinion is None or chances is None:
        return []
    # What is unsure has no label, so it cannot be wrong.
    decided = ~found.unsure[opinion.looked]
    wrong = (found.mask != truth)[opinion.looked][decided]
    stated = np.round(8 * chances[decided]) / 8
    return [
        [float(chance), int((stated == chance).sum()), int(wrong[stated == chance].sum())]
        for chance in np.unique(stated)
    ]


def _number(value: float) -> float | None:
    return None if math.isnan(value) else float(value)
