"""Every way in which a run can end, in words: for a terminal, for a page, for advice."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

__all__ = [
    "SOUND",
    "STATUSES",
    "StatusWords",
    "bad_words",
    "second_hand_words",
    "unsound_words",
    "verdict",
    "words_for",
]

_FEW = 8
"""Ids that a sentence names."""


@dataclass(frozen=True, slots=True)
class StatusWords:
    """What a status means."""

    tone: str
    """`good`, `caution` or `bad`."""
    title: str
    """A few words."""
    sentence: str
    """One sentence for the top of a report."""
    meaning: str
    """What happened in the rounds, as part of a sentence."""


STATUSES: dict[str, StatusWords] = {
    "converged": StatusWords(
        "good",
        "Converged",
        "Two rounds in a row chose the same trajectories, and nothing contradicts the choice.",
        "two rounds in a row agree on which trajectories are the expert's",
    ),
    "weak_valley": StatusWords(
        "caution",
        "Converged on a shallow valley",
        "The rounds agree, but the two groups run into each other at the cut. Trust the far ends, "
        "and look at the borderline trajectories.",
        "the rounds agree, but the valley between expert and rest is shallow",
    ),
    "no_valley": StatusWords(
        "bad",
        "No cut found",
        "The confidences form one hump, so no threshold separates an expert from the rest. "
        "What is kept is not a finding.",
        "no threshold separates the expert from the rest: it cannot be told",
    ),
    "collapsed_empty": StatusWords(
        "bad",
        "Collapsed: nothing selected",
        "A round selected no trajectory at all; the selection before it is kept.",
        "a round selected nothing; the selection before it is kept",
    ),
    "collapsed_all": StatusWords(
        "bad",
        "Collapsed: everything selected",
        "A round selected every trajectory; the selection before it is kept.",
        "a round selected everything; the selection before it is kept",
    ),
    "collapsed_seeds": StatusWords(
        "bad",
        "Only the seeds were found",
        "The rounds found nothing that looks like the seeds but the seeds themselves.",
        "the rounds found nothing but the seeds themselves",
    ),
    "cycle": StatusWords(
        "caution",
        "Going in circles",
        "The selection repeats itself every few rounds instead of settling.",
        "the selection repeats itself with a period of several rounds",
    ),
    "max_rounds": StatusWords(
        "caution",
        "Not settled yet",
        "The selection still changed when the last allowed round ended.",
        "the selection still changed when the last allowed round ended",
    ),
    "evidence_decides": StatusWords(
        "good",
        "Found by evidence of other kinds",
        "Imitators did not settle on a split, but two looks at the trajectories with evidence of "
        "other kinds agree on one, and its two sides lie far apart.",
        "evidence of other kinds splits the trajectories clearly",
    ),
    "evidence_disagrees": StatusWords(
        "caution",
        "Evidence does not confirm it",
        "The rounds agree with each other, but evidence of other kinds does not confirm their "
        "split. Look at the unsure ones before you use what is kept.",
        "evidence of other kinds does not confirm the split",
    ),
    "marks_confirm": StatusWords(
        "good",
        "Confirmed by your marks",
        "The runs before had foretold your latest marks, and evidence that your marks have taught "
        "is of one mind about the rest.",
        "marks confirm the split",
    ),
    "marks_disagree": StatusWords(
        "caution",
        "Your marks speak against it",
        "Of your latest marks the runs before had too many wrong. Mark more of what is proposed, "
        "and run again.",
        "too many of the latest marks were not foretold",
    ),
    "start_explains": StatusWords(
        "caution",
        "The start explains the split",
        "Kept and dropped trajectories start in different places: this may be a task, not a "
        "policy.",
        "kept and dropped trajectories start in different places",
    ),
    "seed_incoherent": StatusWords(
        "bad",
        "The seeds disagree",
        "The seeds do not look like trajectories of one policy, so there is no one to look for.",
        "the seeds do not look like trajectories of one policy",
    ),
}
"""Every status; a cycle is reported as `cycle(PERIOD)`."""

SOUND = ("converged", "evidence_decides", "marks_confirm")
"""Statuses of results that can be trusted."""

_UNSOUND = StatusWords(
    "caution",
    "Converged, but not sound",
    "The rounds agree with each other, but other evidence speaks against the choice.",
    "the rounds agree with each other, but other evidence speaks against the choice",
)


def words_for(status: str) -> StatusWords:
    """What a status means; a status of another version stands for itself."""
    sentence = "This version of pubc has no words for it."
    unknown = StatusWords("caution", status, sentence, "unknown to this version of pubc")
    return STATUSES.get(status.split("(")[0], unknown)


def verdict(document: Mapping[str, Any]) -> StatusWords:
    """How the run behind a run.json ended."""
    status = str(document["status"])
    if status == "converged" and not document.get("sound"):
        return _UNSOUND
    return words_for(status)


def unsound_words(run: Path, document: Mapping[str, Any]) -> str | None:
    """A sentence for who uses a run whose selection is not sound; None where it is."""
    if document.get("sound") is not False:
        return None
    return (
        f"the selection of {run} is not sound (status {document.get('status')}); what follows "
        f"from it may not be either. `pubc report {run}` says why."
    )


def second_hand_words(data: Path, run: Mapping[str, Any]) -> str | None:
    """A sentence for who uses data made from what an unsound run kept; None for all other data.

    Args:
        data: The data.
        run: Name, soundness and status of the run that selected it; empty for none.
    """
    if run.get("sound") is not False:
        return None
    return (
        f"{data} was selected by the run {run.get('name')}, whose selection is not sound "
        f"(status {run.get('status')}); what follows from it may not be either."
    )


def bad_words(bad: Mapping[str, Any]) -> str:
    """What a run was told to be bad, in words; nothing where it was told nothing.

    Args:
        bad: As run.json has it.
    """
    ids, stretches = bad.get("ids") or [], bad.get("stretches") or []
    named = ", ".join(map(str, ids[:_FEW])) + (", ..." if len(ids) > _FEW else "")
    said = [f"{len(ids):,} as a whole: {named}"] if ids else []
    if stretches:
        said.append(f"{len(stretches):,} {'stretch' if len(stretches) == 1 else 'stretches'}")
    return "; ".join(said)
