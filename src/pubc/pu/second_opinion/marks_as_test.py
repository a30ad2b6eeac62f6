"""Marks as a test: what a run had said of trajectories before somebody marked them.

Whoever marks what `pubc review` proposes after a run answers questions that the run has answered
already: those it is least sure of, and some drawn by chance. Where it had them right, the rest,
of which it is surer, is right too more often than not; how often was measured on other piles
(docs/review.md). A run that goes wrong there is not believed, whatever else speaks for it.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

from pubc.pu.second_opinion.opinion import Opinion

__all__ = ["LATEST", "marks_say", "marks_words"]

LATEST = 8
"""So many marks are the test, the latest ones that a run had said something of."""
MOST_WRONG = 1
"""Of them a run may have had so many wrong."""
OF_ONE_MIND = 0.015
"""Mean distance of belief from yes or no up to which the rest is not in question."""
STEADY = 0.97
"""Share of labels on which the two looks must agree."""
FEWEST = 3
"""Marks of either kind."""


def marks_say(
    opinion: Opinion, foretold: Sequence[bool], bad: int
) -> Literal["confirmed", "wrong", "open"]:
    """Whether marks confirm what evidence says, contradict it, or leave it open.

    Args:
        opinion: What evidence says that the marks have taught.
        foretold: For each mark that a run had said something of before, whether it was right,
            in the order of the marks.
        bad: How many trajectories were marked bad.
    """
    latest = foretold[-LATEST:]
    if len(latest) < LATEST:
        return "open"
    if latest.count(False) > MOST_WRONG:
        return "wrong"
    enough = min(opinion.seeds, bad) >= FEWEST
    clear = opinion.divided <= OF_ONE_MIND and opinion.repeated >= STEADY
    return "confirmed" if opinion.taught and enough and clear else "open"


def marks_words(foretold: Sequence[bool]) -> tuple[str, ...]:
    """What came of the test, in words; nothing where no mark tested a run."""
    latest = foretold[-LATEST:]
    if not latest:
        return ()
    right, count = latest.count(True), len(latest)
    said = f"Of the last {count} trajectories that you marked after a run, it had {right} right."
    if count < LATEST:
        said += f" {LATEST} are a test: mark {LATEST - count} more of what pubc review proposes."
    elif count - right > MOST_WRONG:
        said += " Mark more of what pubc review proposes, and run again."
    return (said,)
