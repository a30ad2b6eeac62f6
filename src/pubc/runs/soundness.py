"""Whether a split can be believed, trajectory by trajectory and as a whole.

The rounds say what they selected and how they ended, evidence and controls whether that holds. A
run is sound where rounds and evidence agree, or where the evidence is strong enough alone;
otherwise it says what speaks against it, and which trajectories are in question.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from pubc.pu.second_opinion.controls import Controls, check_controls
from pubc.pu.second_opinion.lonely_seeds import name_seeds, seed_words
from pubc.pu.second_opinion.marks_as_test import marks_say, marks_words
from pubc.pu.second_opinion.opinion import Opinion
from pubc.pu.second_opinion.reasons import reasons_for
from pubc.pu.second_opinion.splits.held_out import FEWEST_SEEDS
from pubc.runs.statuses import SOUND

__all__ = ["Weighed", "asks_again", "confirms", "weigh"]

Mask = NDArray[np.bool_]

AGREE = 0.96
"""Share of labels on which rounds and evidence must agree."""
AGREE_OF_FEW = 0.9
"""The same with one or two seeds, from which evidence starts less surely."""
SLIPS = 2
"""So many trajectories may differ in any case: in a small pile they are more than that share."""
STRONG = 3.3
"""Standard deviations between its sides from which evidence outweighs rounds that settled."""
UNDIVIDED = 0.07
"""Votes about the whole pile that are more divided than this leave everything open."""
CONFIRMED = 1.5
"""Standard deviations between kept and dropped in likeness to the seeds alone from which evidence
confirms what it agrees with."""
CONFIRMED_ANEW = {1: 9.0, 2: 6.0}
"""Standard deviations between its two sides from which evidence that begins with what the rounds
found confirms it, by the number of seeds, from which it came to something else."""
ALONE = 4.0
"""Standard deviations between its two sides from which it is believed although the rounds did not
settle, or settled otherwise."""
ALONE_OF_FEW = 6.0
"""Where no seed was left out, as they are few or marks taught: between kept and dropped in likeness
to the seeds alone."""
ALONE_IN = 16
"""In so many trajectories."""
WAYS_CONFIRM = 0.9
"""Share of labels on which all ways to cut must agree wherever evidence is believed."""
STEADY = 0.94
"""Share of labels on which its two looks must agree for either."""
ANOTHER = 3.0
"""Standard errors that part of what is kept may gain by an actor of its own."""
SEEDS_FOUND = 0.75
"""Share of the seeds that must be found again."""
SEEDS_FOUND_OF_FEW = 0.5
"""The same of one or two seeds."""
DIVIDED = 0.375
"""From here on the votes are divided about a trajectory."""


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
    doubts: tuple[str, ...] = ()
    """What speaks against the split, a sentence each."""
    by_evidence: bool = False
    """Whether evidence decided, and not the rounds."""
    agreement: float | None = None
    """Share of labels on which rounds and evidence agree."""
    controls: Controls | None = None
    """What else tells the two sides apart."""
    lonely_seeds: tuple[int, ...] = ()
    """Positions of seeds that look like another policy."""
    chance_wrong: float | None = None
    """The chance that a label is wrong; None where the split is not to be believed."""
    chances: NDArray[np.float64] | None = None
    """The same of each label that was looked at; None where there is no evidence, or no longer."""


def weigh(
    selected: Mask,
    borderline: Mask,
    status: str,
    opinion: Opinion,
    seeds: Mask,
    known_bad: Mask,
    foretold: Sequence[bool] = (),
) -> Weighed:
    """Weigh what the rounds selected against evidence of other kinds.

    Args:
        selected: What the rounds selected.
        borderline: Whose confidence lies near the cut of the rounds.
        status: How the rounds ended.
        opinion: What the evidence says.
        seeds: Which trajectories are seeds.
        known_bad: Which trajectories are known not to be the expert's.
        foretold: For each mark that a run had said something of before, whether it was right.
    """
    looked = opinion.looked
    differs, doubt = np.zeros_like(selected), np.zeros(len(selected))
    differs[looked] = opinion.kept != selected[looked]
    doubt[looked] = opinion.doubt
    agreement, agree = float(1 - differs[looked].mean()), _agrees(opinion, selected)
    by_evidence = _outweighs(opinion, selected, status, agree)
    label, unsure = selected.copy(), borderline & differs
    if by_evidence:
        label, unsure = opinion.kept.copy(), doubt >= DIVIDED
    unsure &= ~known_bad
    kept = label & ~unsure & ~known_bad
    controls = check_controls(opinion.traits, label[looked])
    too_much = opinion.held_out.too_much(kept[looked], opinion.support)
    found = bool((kept & ~seeds).any())
    if by_evidence and found and _stands_alone(opinion, controls):
        status = "evidence_decides"
    elif status == "converged" and not confirms(opinion, selected):
        status = "evidence_disagrees"
    named = name_seeds(opinion, selected, seeds, converged=status == "converged")
    status = _contradicted(status, opinion, named, controls, too_much)
    doubts = _doubts(opinion, None if agree else agreement, controls, by_evidence, too_much)
    doubts += tuple(map(seed_words, named))
    marks = marks_say(opinion, foretold, int(known_bad.sum()))
    status, doubts = _after_marks(status, doubts, foretold, marks, by_evidence and found)
    # Where two that are to be believed differ either may be right, elsewhere the votes tell.
    chances = (doubt if by_evidence else np.where(differs, 0.5, doubt))[looked]
    return Weighed(
        kept=kept,
        unsure=unsure,
        reasons=reasons_for(kept, unsure, differs, opinion),
        status=status,
        doubts=doubts,
        lonely_seeds=named,
        by_evidence=by_evidence,
        agreement=agreement,
        controls=controls,
        chance_wrong=float(chances.mean()) if status in SOUND else None,
        chances=chances,
    )


def _contradicted(
    status: str, opinion: Opinion, named: Sequence[int], controls: Controls, too_much: bool
) -> str:
    """The status of a split that seeds or starts speak against, or as it was."""
    enough = SEEDS_FOUND_OF_FEW if opinion.seeds < FEWEST_SEEDS else SEEDS_FOUND
    # A seed of another policy looks like one of another way in which the expert acts.
    lost = opinion.seeds_found < enough or bool(named)
    if status in SOUND and (lost or too_much):
        return "seed_incoherent"
    if status in SOUND and controls.start_tells:
        return "start_explains"
    return status


def _after_marks(
    status: str, doubts: tuple[str, ...], foretold: Sequence[bool], marks: str, decided: bool
) -> tuple[str, tuple[str, ...]]:
    """Status and doubts after marks were heard too."""
    if status in SOUND:
        if marks != "wrong":
            return status, doubts
        status = "marks_disagree"
    elif marks == "confirmed" and decided:
        return "marks_confirm", marks_words(foretold)
    return status, (*marks_words(foretold), *doubts)


def asks_again(opinion: Opinion, selected: Mask, status: str) -> bool:
    """Whether evidence had too few seeds to hold something else against rounds that converged.

    It then begins a second time with what they found, and `confirms` tells what came of it.
    """
    few = opinion.seeds < FEWEST_SEEDS and not opinion.taught
    return few and status == "converged" and not _agrees(opinion, selected)


def confirms(opinion: Opinion, selected: Mask) -> bool:
    """Whether evidence confirms what the rounds selected."""
    return _agrees(opinion, selected) and _is_worth_something(opinion)


def _agrees(opinion: Opinion, selected: Mask) -> bool:
    """Whether evidence and rounds say the same of nearly all trajectories."""
    differs = opinion.kept != selected[opinion.looked]
    few = opinion.from_seeds and opinion.seeds < FEWEST_SEEDS and not opinion.taught
    enough = AGREE_OF_FEW if few else AGREE
    return bool(1 - differs.mean() >= enough or differs.sum() <= SLIPS)


def _outweighs(opinion: Opinion, selected: Mask, status: str, agree: bool) -> bool:
    """Whether evidence says who is kept, and not the rounds."""
    settled, few = status in ("converged", "weak_valley"), opinion.seeds < FEWEST_SEEDS
    if len(opinion.looked) < len(selected):
        return False
    if opinion.taught or (status == "converged" and agree):
        return opinion.taught
    too_much = opinion.held_out.too_much(selected[opinion.looked], opinion.support)
    return few or too_much or not settled or opinion.support >= STRONG


def _is_worth_something(opinion: Opinion) -> bool:
    """Whether evidence that agrees with the rounds confirms them."""
    if opinion.from_seeds:
        steady = opinion.seeds < FEWEST_SEEDS or not _ways_differ(opinion)
        clear = opinion.divided <= UNDIVIDED and opinion.another < ANOTHER
        return steady and clear and opinion.apart >= CONFIRMED
    return opinion.support >= CONFIRMED_ANEW[min(2, max(1, opinion.seeds))]


def _stands_alone(opinion: Opinion, controls: Controls) -> bool:
    """Whether evidence is believed without the rounds."""
    if controls.length_tells:
        return False
    steady = opinion.repeated >= STEADY and opinion.divided <= UNDIVIDED
    one = opinion.another < ANOTHER and not _ways_differ(opinion)
    if not (steady and one and opinion.seeds_found >= SEEDS_FOUND):
        return False
    few = opinion.seeds < FEWEST_SEEDS or opinion.taught
    far = opinion.apart >= ALONE_OF_FEW if few else opinion.support >= ALONE
    return far and len(opinion.looked) >= ALONE_IN


def _ways_differ(opinion: Opinion) -> bool:
    """Whether it matters how the evidence is cut, where it was cut in more ways than one."""
    return opinion.seeds > 1 and not opinion.taught and opinion.ways_agree < WAYS_CONFIRM


def _doubts(
    opinion: Opinion,
    agreement: float | None,
    controls: Controls,
    by_evidence: bool,
    too_much: bool,
) -> tuple[str, ...]:
    """What speaks against the split; `agreement` where it is too low."""
    said = []
    if agreement is not None:
        ahead = "Evidence decided here. " if by_evidence else ""
        said.append(
            f"Imitators of the two sides and evidence of other kinds differ about "
            f"{1 - agreement:.0%} of the trajectories. {ahead}Look at the unsure ones, and add "
            "some of them as seeds or with --bad-episodes."
        )
    if by_evidence and opinion.repeated < STEADY:
        said.append(
            f"Two independent looks at the pile differ about {1 - opinion.repeated:.0%} of the "
            "trajectories. More seeds make them steadier."
        )
    if opinion.dropped_closer and by_evidence:
        said.append(
            "Looked at alone, what was kept fell into two, so the part without seeds was dropped: "
            f"{opinion.dropped_closer} trajectories that act almost like the seeds. If they are "
            "good, add some of them as seeds."
        )
    heard = by_evidence or agreement is None
    if opinion.another >= ANOTHER and heard:
        said.append(
            "Part of what is kept may be somebody else's: looked at alone, two actors explain it "
            "better than one. Look at some of it, and mark what is bad with --bad-episodes."
        )
    elif _ways_differ(opinion) and opinion.from_seeds and heard:
        said.append(
            f"Other ways to cut the same evidence differ about {1 - opinion.ways_agree:.0%} of the "
            "trajectories. More seeds, or --bad-episodes, say which is right."
        )
    elif opinion.from_seeds and opinion.divided > UNDIVIDED and heard:
        said.append(
            f"The votes of the evidence are divided: {opinion.divided:.2f} from yes or no in the "
            f"mean, where at most {UNDIVIDED} is of one mind. More seeds make them surer."
        )
    elif agreement is None and not _is_worth_something(opinion):
        said.append(
            "Evidence of other kinds agrees, but cannot confirm the split: in likeness to the "
            f"seeds its two sides lie {opinion.apart:.1f} standard deviations apart. More seeds "
            "make it surer."
        )
    if too_much:
        said.append(
            "What is kept is less like the seeds than they are to each other: it may be more than "
            "their policy. Add seeds, or name bad trajectories with --bad-episodes."
        )
    return (*said, *controls.words(by_evidence=by_evidence))
