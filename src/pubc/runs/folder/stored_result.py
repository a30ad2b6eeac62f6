"""The result of a run, from its folder: the same object that `find_expert` returns."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields
from typing import Any

import numpy as np

from pubc.pu.auto.quality import Quality
from pubc.pu.second_opinion.controls import Controls
from pubc.runs.find_expert import Result
from pubc.runs.folder.round_files import UNREADABLE
from pubc.runs.folder.run_reading import Run, unreadable
from pubc.runs.folder.run_tables import Scores
from pubc.runs.soundness import Weighed
from pubc.trajectory import Problem

__all__ = ["result_of"]


def result_of(run: Run) -> Result:
    """What a finished run found.

    Raises:
        DataError: Its document does not say.
    """
    document, scores = run.document, run.scores
    try:
        known = {field.name for field in fields(Quality)} - {"borderline"}
        told = {name: document["quality"].get(name) for name in known}
        return Result(
            mask=scores.keep,
            confidence=scores.confidence,
            votes=scores.votes,
            threshold=document["threshold"],
            status=str(document["status"]),
            seeds=scores.seed,
            round=int(document["round"]),
            rounds=tuple(run.rounds),
            quality=Quality(**told, borderline=scores.borderline),
            advice=tuple(map(str, document["advice"])),
            problems=tuple(Problem(**problem) for problem in document["problems"]),
            unsure=np.array([word == "unsure" for word in scores.verdict], dtype=np.bool_),
            reasons=tuple(scores.reason),
            opinion=None,
            weighed=_weighed(document, scores),
            network_threshold=document["network_threshold"],
        )
    except UNREADABLE as error:
        raise unreadable(run.path, error) from None


def _weighed(document: Mapping[str, Any], scores: Scores) -> Weighed:
    opinion, controls = document["second_opinion"], document["controls"]
    return Weighed(
        kept=scores.keep,
        unsure=np.array([word == "unsure" for word in scores.verdict], dtype=np.bool_),
        reasons=tuple(scores.reason),
        status=str(document["status"]),
        by_evidence=bool(opinion and opinion["decided"]),
        agreement=opinion and opinion["agreement"],
        controls=None if controls is None else Controls(**controls),
        lonely_seeds=tuple(opinion["lonely_seeds"]) if opinion else (),
        chance_wrong=document["chance_wrong"],
    )
