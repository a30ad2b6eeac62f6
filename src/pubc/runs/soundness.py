"""Whether a split can be believed, trajectory by trajectory and as a whole.

The rounds say what they selected and how they ended. A second opinion from other evidence, and
controls, say whether that holds. A run is sound only where all of them agree; otherwise it
says in one sentence each what speaks against it, and which trajectories are in question.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from pubc.pu.second_opinion.evidence import EVIDENCE
from pubc.pu.second_opinion.opinion import Opinion

__all__ = ["Weighed", "weigh", "without_opinion"]

Mask = NDArray[np.bool_]

AGREE = 0.97
"""Share of labels on which opinions, and looks, must agree."""
TOLD_BY_START = 0.8
"""From here on the start of a trajectory tells kept from dropped too well."""
STRONG = 4.0
"""Standard deviations between its sides from which a second opinion outweighs the rounds."""
STRONGER = 6.0
"""The same where the second opinion began with what the rounds found."""
DIVIDED = 0.25
"""From here on the looks are divided about a trajectory."""

_NAMES = tuple(EVIDENCE)
_SITUATIONS = ("joint", "situations")


@dataclass(frozen=True, slots=True, eq=False)
class Weighed:
    """A split after everything was weighed."""

    kept: Mask
    """What counts as the expert's; nothing that is unsure."""
    unsure: Mask
    """What could be either."""
    reasons: tuple[str, ...]
    """Why each trajectory is unsure or dropped; empty for kept ones."""
    status: str
    """How the run ended."""
    doubts: tuple[str, ...]
    """What speaks against the split, a sentence each."""


def without_opinion(selected: Mask, borderline: Mask, status: str) -> Weighed:
    """The split of a recipe that asks for no second opinion."""
    reasons = tuple(
        "" if kept else "near the cut" if near else "unlike the seeds"
        for kept, near in zip(selected, borderline, strict=True)
    )
    return Weighed(selected, np.zeros_like(selected), reasons, status, ())


def weigh(
    selected: Mask, borderline: Mask, status: str, opinion: Opinion, known_bad: Mask
) -> Weighed:
    """Weigh what the rounds selected against a second opinion.

    Args:
        selected: What the rounds selected.
        borderline: Whose confidence lies near the cut of the rounds.
        status: How the rounds ended.
        opinion: The second opinion.
        known_bad: Which trajectories are known not to be the expert's.
    """
    looked, whole = opinion.looked, len(opinion.looked) == len(selected)
    differs, divided = np.zeros_like(selected), np.zeros_like(selected)
    differs[looked] = opinion.kept != selected[looked]
    divided[looked] = opinion.doubt >= DIVIDED
    doubts = _doubts(opinion)
    agrees = opinion.agreement >= AGREE
    label, unsure = selected.copy(), borderline & (differs | divided)
    strong = opinion.independent and opinion.support >= STRONG
    outweighs = whole and strong and opinion.repeated >= AGREE
    if not agrees and outweighs:
        label[looked] = opinion.kept
        unsure = divided
    elif not agrees and status != "converged":
        unsure = differs | divided
    if status == "converged" and doubts:
        status = _status(opinion)
    unsure &= ~known_bad
    kept = label & ~unsure & ~known_bad
    return Weighed(kept, unsure, _reasons(kept, unsure, differs, opinion), status, doubts)


def _status(opinion: Opinion) -> str:
    weak = not opinion.independent and opinion.support < STRONGER
    if opinion.agreement < AGREE or opinion.repeated < AGREE or weak:
        return "evidence_disagrees"
    if opinion.controls.start >= TOLD_BY_START:
        return "start_explains"
    return "seed_incoherent"


def _doubts(opinion: Opinion) -> tuple[str, ...]:
    said = []
    if opinion.agreement < AGREE:
        said.append(
            f"Evidence of other kinds puts {1 - opinion.agreement:.0%} of the trajectories on the "
            "other side. Look at the unsure ones, and add some of them as seeds or with "
            "--bad-episodes."
        )
    if opinion.repeated < AGREE:
        said.append(
            f"Two independent looks at the pile differ about {1 - opinion.repeated:.0%} of the "
            "trajectories. More seeds make them steadier."
        )
    if not opinion.independent and opinion.support < STRONGER:
        said.append(
            "With so few seeds other evidence cannot confirm the split: its two sides lie "
            f"{opinion.support:.1f} standard deviations apart. Give at least three seeds."
        )
    if opinion.controls.start >= TOLD_BY_START:
        said.append(
            "Kept and dropped trajectories start in different places: this may be a task, not a "
            "policy. Add seeds that start where the dropped ones do."
        )
    for position in opinion.lonely_seeds.tolist():
        said.append(
            f"The seed at position {position} looks like another policy: every look at the pile "
            "puts it on the other side. Check it, or leave it out."
        )
    return tuple(said)


def _reasons(kept: Mask, unsure: Mask, differs: Mask, opinion: Opinion) -> tuple[str, ...]:
    named = {
        int(position): _NAMES[int(kind)]
        for position, kind in zip(opinion.looked, opinion.shortfall, strict=True)
    }
    said = []
    for position in range(len(kept)):
        kind = named.get(position)
        if kept[position]:
            said.append("")
        elif unsure[position]:
            said.append(_unsure_reason(kind, bool(differs[position])))
        else:
            said.append("unlike the seeds" if kind is None else EVIDENCE[kind])
    return tuple(said)


def _unsure_reason(kind: str | None, differs: bool) -> str:
    if kind in _SITUATIONS:
        return "in situations that no seed covers"
    if kind is not None and kind.endswith("_worst"):
        return "only part of it is like the seeds"
    return "kinds of evidence disagree" if differs else "near the cut"
