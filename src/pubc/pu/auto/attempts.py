"""Rounds from several starts, until one of them ends well.

Where seeds are few and the task is hard, the first guess at a split can lead rounds astray,
and they end without a valley. Other guesses are then tried, first with networks that see one
side of a split only, then with networks that are told the side. Each attempt is an ordinary
run of `guarded_rounds`; `decisive` says which of all rounds holds the result.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Protocol

import numpy as np

from pubc.pu.auto.starts import Split
from pubc.pu.guarded_rounds import Loop, guarded_rounds, outcome
from pubc.pu.judge import Cut, Standing, StoredJudge, Task, Threshold, Verdict
from pubc.pu.paper.threshold import with_histogram
from pubc.pu.rounds import Pile, Round
from pubc.streams import Key

__all__ = ["Explorer", "decisive", "filter_attempts"]

_RANK = {"converged": 4, "max_rounds": 3, "weak_valley": 2, "no_valley": 1}


class Explorer(StoredJudge, Protocol):
    """A judge that can find splits to start from."""

    def open(self, task: Task, *, told: bool) -> tuple[Verdict, list[Split]]:
        """Rate trajectories by the seeds alone; splits to start from, best first.

        Args:
            task: The round.
            told: Whether networks of the rounds that start there are told which side to imitate.
        """
        ...


def filter_attempts(
    pile: Pile, *, judge: Explorer, threshold: Threshold, key: Key, loop: Loop
) -> Iterator[Round]:
    """Yield a round that looks for starts, then the rounds of each attempt.

    Where no attempt converges, a second such round and attempts follow, with networks that
    are told which side to imitate.

    Args:
        pile: Mixed trajectories and seeds.
        judge: Finds splits, and rates trajectories by the two sides of one.
        threshold: Maps what the judge thinks to a cut.
        key: Names all randomness.
        loop: When an attempt ends.
    """
    number = attempt = 1
    for told in (False, True):
        # Told rounds start from the few most like the seeds, who then rank above everybody;
        # they rank lower once the others are found, and that is no loss.
        how = replace(loop, rank_loss=None) if told else loop
        task = pile.task(number, pile.seed_positives, None, key.at("open"))
        verdict, splits = judge.open(task, told=told)
        if told and not splits:
            return
        yield _opening(pile, verdict, splits, number)
        number += 1
        for split in splits:
            last: Round | None = None
            for current in guarded_rounds(
                pile,
                judge=judge,
                threshold=threshold,
                key=key.at("attempt", attempt),
                loop=how,
                start=_standing(verdict, split),
                first=number,
            ):
                last = replace(current, attempt=attempt)
                yield last
            assert last is not None
            number, attempt = last.number + 1, attempt + 1
            if last.status == "converged":
                return
        if not splits:
            return


def decisive(rounds: Sequence[Round], known: np.ndarray, loop: Loop) -> Round:
    """The round that holds the result: the end of the attempt that ended best."""
    ends = []
    for place, current in enumerate(rounds):
        if current.status is None:
            continue
        if current.status == "rejected" and place:
            before = rounds[place - 1]
            current = replace(before, status=outcome(before, known, loop))
        ends.append(current)
    return max(ends, key=_worth)


def _worth(end: Round) -> tuple[int, bool, float]:
    # Who is told the side cannot take the task for the policy, so its doubts weigh less.
    return _RANK.get(end.status or "", 0), end.verdict.told, end.cut.evidence or 0.0


def _opening(pile: Pile, verdict: Verdict, splits: Sequence[Split], number: int) -> Round:
    """The round before the attempts: what the seeds alone suggest."""
    scores = verdict.confidence[0]
    if splits:
        cut, status = _cut(splits[0], len(splits)), None
        selected = splits[0].positive
    else:
        reason = "The trajectories cannot be split: too few of them, or all alike."
        cut, status, selected = Cut(None, reason, "no_valley"), "no_valley", pile.known
    threshold = np.inf if cut.threshold is None else cut.threshold
    return Round(
        number=number,
        verdict=verdict,
        cut=with_histogram(cut, scores),
        votes=(scores >= threshold).astype(np.int64),
        selected=selected,
        changed=float(np.mean(selected != pile.known)),
        status=status,
        attempt=0,
    )


def _standing(verdict: Verdict, split: Split) -> Standing:
    return Standing(
        verdict=replace(verdict, split=(split.positive, split.rest)),
        cut=_cut(split, 1),
        selected=split.positive,
        changed=1.0,
        start=True,
    )


def _cut(split: Split, choices: int) -> Cut:
    reason = f"Start from the {split.name} of the seeds' ranking"
    if choices > 1:
        reason += f", the one of {choices} that explains held-out seeds best"
    status = None if split.evidence >= 1 else "guess"
    return Cut(split.cut, reason + ".", status, split.evidence)
