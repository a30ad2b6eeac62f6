"""Which trajectories to look at next: those whose mark would tell the filter most.

Before a run: typical members of groups of alike trajectories, more from groups where the marks so
far were good. After a run: what lies close to the cut, what begins where no good one begins, what
the filter and the plain likeness to the marked ones disagree about. As long as the result is not
sound, some are drawn by chance: the marks are then a test of the run, and a test of the doubtful
alone says little of the rest (`pubc.pu.second_opinion.marks_as_test`).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from pubc.review.alike_groups import Group, alike, main_directions, squares
from pubc.review.features import Features
from pubc.streams import Key

__all__ = ["COUNT", "Evidence", "Proposal", "propose"]

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]
Mask = NDArray[np.bool_]

COUNT = 8
"""How many to look at next."""
_GROUPS = 5
"""Groups before a run: fewer than proposals, so that a large group is shown more than once."""
_INNER = 0.8
"""Share of a group that speaks for it; its outliers do not."""
_FAR = 2.0
"""A start is uncovered beyond this multiple of what starts usually lie apart."""


@dataclass(frozen=True, slots=True)
class Proposal:
    """One trajectory to look at, and why."""

    at: int
    """Its position."""
    reason: str
    """Short name of the reason."""
    words: str
    """The reason for people."""


@dataclass(frozen=True, slots=True, eq=False)
class Evidence:
    """What a run said."""

    confidence: Floats
    """Confidence in every trajectory; NaN where there is none."""
    keep: Mask
    """What was kept."""
    unsure: Mask
    """Whose label could go either way."""
    threshold: float | None
    """Where the confidences were cut."""
    sound: bool
    """Whether the result may be trusted."""


def propose(
    features: Features,
    good: Integers,
    bad: Integers,
    evidence: Evidence | None = None,
    count: int = COUNT,
) -> list[Proposal]:
    """The trajectories to look at next, the most telling first.

    Args:
        features: Numbers about every trajectory.
        good: Positions that were marked good.
        bad: Positions that were marked bad.
        evidence: What the last run said, where there was one.
        count: How many to propose.
    """
    known = np.zeros(len(features.style), dtype=np.bool_)
    known[good] = known[bad] = True
    if evidence is None or not np.isfinite(evidence.confidence).any():
        sources = [_from_groups(features, good, bad, known)]
    else:
        doubt = _doubtful(evidence, known)
        start = _uncovered(features, good, evidence, known)
        apart = _disagreed(features, good, bad, evidence, known)
        sources = [doubt, start, doubt, apart]
        if not evidence.sound:
            kept, anyone = _drawn(evidence.keep & ~known), _drawn(~known)
            sources = [doubt, kept, doubt, anyone, start, apart]
    return _in_turn(sources, count)


def _in_turn(sources: list[Iterator[Proposal]], count: int) -> list[Proposal]:
    """Take from each source in turn, none twice, until there are enough or all are dry."""
    found: dict[int, Proposal] = {}
    alive = list(sources)
    while alive and len(found) < count:
        for source in list(alive):
            fresh = next((p for p in source if p.at not in found), None)
            if fresh is None:
                alive.remove(source)
            elif len(found) < count:
                found[fresh.at] = fresh
    return list(found.values())


def _from_groups(
    features: Features, good: Integers, bad: Integers, known: Mask
) -> Iterator[Proposal]:
    points = main_directions(features.style)
    groups = alike(features.style, _GROUPS)
    yes = [int(np.isin(group.members, good).sum()) for group in groups]
    no = [int(np.isin(group.members, bad).sum()) for group in groups]
    members = [_varied(points, group, known) for group in groups]
    asked = [0] * len(groups)
    alive = set(range(len(groups)))
    while alive:
        worth = {
            k: len(groups[k].members) * (yes[k] + 1) / (yes[k] + no[k] + 2) / (asked[k] + 1)
            for k in sorted(alive)
        }
        best = max(worth, key=worth.__getitem__)
        asked[best] += 1
        at, size = next(members[best], None), len(groups[best].members)
        if at is None:
            alive.remove(best)
        elif yes[best] and not no[best]:
            yield Proposal(at, "like_good", f"acts like one that you marked good, as {size:,} do")
        else:
            yield Proposal(at, "group", f"stands for {size:,} that move and act alike")


def _varied(points: Floats, group: Group, known: Mask) -> Iterator[int]:
    """Members that speak for a group: its middle first, then each far from those before."""
    inner = group.members[: max(1, int(np.ceil(_INNER * len(group.members))))]
    shown = inner[known[inner]]
    left = inner[~known[inner]]
    if len(left) and not len(shown):
        yield int(left[0])
        shown, left = left[:1], left[1:]
    distance = squares(points[left], points[shown]).min(axis=1) if len(left) else np.zeros(0)
    while len(left):
        far = int(distance.argmax())
        at = int(left[far])
        yield at
        distance = np.minimum(distance, squares(points[left], points[[at]])[:, 0])
        left, distance = np.delete(left, far), np.delete(distance, far)
    yield from (int(at) for at in group.members[len(inner) :] if not known[at])


def _doubtful(evidence: Evidence, known: Mask) -> Iterator[Proposal]:
    values = evidence.confidence
    cut = evidence.threshold
    if cut is None:
        cut = float(np.nanmedian(values))
    distance = np.where(np.isfinite(values), np.abs(values - cut), np.inf)
    order = np.lexsort((distance, ~evidence.unsure))
    for at in order:
        if not known[at] and np.isfinite(distance[at]):
            side = "kept" if evidence.keep[at] else "dropped"
            yield Proposal(int(at), "doubtful", f"nearest to the cut, {side}")


def _drawn(among: Mask) -> Iterator[Proposal]:
    """Trajectories by chance, always in the same order."""
    for at in Key(0, ("proposals",)).rng().permutation(len(among)):
        if among[at]:
            yield Proposal(int(at), "drawn", "drawn by chance: does the filter have it right?")


def _uncovered(
    features: Features, good: Integers, evidence: Evidence, known: Mask
) -> Iterator[Proposal]:
    if not len(good) or len(known) < 2:
        return
    distance = np.sqrt(squares(features.start, features.start[good]).min(axis=1))
    usual = float(np.median(distance))
    # Kept ones first: there a wrong label does most harm.
    order = np.lexsort((-distance, ~evidence.keep))
    for at in order:
        if not known[at] and distance[at] > _FAR * usual > 0:
            yield Proposal(int(at), "uncovered", "begins where no good one begins")


def _disagreed(
    features: Features, good: Integers, bad: Integers, evidence: Evidence, known: Mask
) -> Iterator[Proposal]:
    if not len(good):
        return
    points = main_directions(features.style)
    near = -np.sqrt(squares(points, points[good]).min(axis=1))
    if len(bad):
        near = near + np.sqrt(squares(points, points[bad]).min(axis=1))
    gap = _ranks(np.nan_to_num(evidence.confidence, nan=-np.inf)) - _ranks(near)
    for at in np.argsort(-np.abs(gap), kind="stable"):
        # A quarter of the set between two rankings is more than noise.
        if not known[at] and abs(gap[at]) > 0.25:
            yield Proposal(int(at), "disagreed", _apart(bool(evidence.keep[at]), gap[at] > 0))


def _apart(kept: bool, more: bool) -> str:
    """How a verdict and likeness to the good ones part, where the filter likes it more or less."""
    side = "kept" if kept else "dropped"
    if kept == more:
        return f"{side}, but it moves {'unlike' if kept else 'like'} the good ones"
    than = "more" if more else "less"
    return f"{side}, but the filter likes it {than} than the way it moves suggests"


def _ranks(values: Floats) -> Floats:
    """Where each value stands among all, 0 to 1."""
    ranks = np.empty(len(values))
    ranks[np.argsort(values, kind="stable")] = np.arange(len(values))
    return np.asarray(ranks / max(1, len(values) - 1))
