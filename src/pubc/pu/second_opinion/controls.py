"""What tells kept and dropped trajectories apart besides how they act.

Same start and another course means another actor; another start means perhaps another task. So the
first state decides whether a split can be believed. Length and visited states are shown, because a
reader wants to know: a policy that falls is shorter and sees other states. But one policy falls
sometimes, too, so where length tells them, evidence needs the rounds beside it.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray

from pubc.metrics import roc_auc
from pubc.pu.second_opinion.looks.rows import Rows

__all__ = ["TOLD_BY_START", "Controls", "Traits", "check_controls", "traits_of"]

Mask = NDArray[np.bool_]
Floats = NDArray[np.float64]

TOLD_BY_START = 0.75
"""From here on the start of a trajectory tells kept from dropped too well."""
TOLD_BY_LENGTH = 0.95
"""From here on length tells them as well as two outcomes of one policy; evidence alone is not
believed then."""

_FEATURES = 100
_RIDGE = 0.03
_FEWEST = 3
_NOISE = 0.75
_STILL = 1e-6


@dataclass(frozen=True, slots=True)
class Controls:
    """How well something else than actions tells kept from dropped: 0.5 not at all, 1 perfectly."""

    start: float
    """The first state, and what never changes within a trajectory."""
    length: float
    """The number of steps."""
    states: float
    """The mean state."""

    @property
    def start_tells(self) -> bool:
        """Whether the start explains the split."""
        return self.start >= TOLD_BY_START

    @property
    def length_tells(self) -> bool:
        """Whether length does, as it does of two outcomes of one policy."""
        return self.length >= TOLD_BY_LENGTH

    def words(self, *, by_evidence: bool) -> tuple[str, ...]:
        """What that says against a split, a sentence each.

        Args:
            by_evidence: Whether evidence alone decided.
        """
        said = []
        if by_evidence and self.length_tells:
            said.append(
                "Kept and dropped trajectories differ in length: these may be two outcomes of one "
                "policy. Look at some of the dropped, and add those that are good as seeds."
            )
        if self.start_tells:
            said.append(
                "Kept and dropped trajectories start in different places: this may be a task, not "
                "a policy. Add seeds that start where the dropped ones do."
            )
        return tuple(said)


@dataclass(frozen=True, slots=True, eq=False)
class Traits:
    """What trajectories are like besides how they act; a row for each."""

    first: Floats
    """The first state."""
    states: Floats
    """The mean state."""
    lengths: Floats
    """The number of steps."""
    jumps: Floats
    """How far states jump about: near 0 where one follows from the other, 1 where each is drawn
    anew; shape (trajectories,)."""


def traits_of(rows: Rows, lengths: NDArray[np.int64]) -> Traits:
    """Measure the traits of trajectories of known lengths; rows of others behind are left out."""
    count = len(lengths)
    return Traits(
        rows.states[rows.starts[:count]].double().cpu().numpy(),
        rows.mean(rows.states)[:count].double().cpu().numpy(),
        lengths.astype(np.float64)[:, None],
        _jumps(rows)[:count],
    )


def _jumps(rows: Rows) -> Floats:
    """Squared change in a step beside the variance: of most dimensions at least this much.

    Of states drawn anew at every step it is 1 in all dimensions, of any recording it is small in
    some: bodies do not jump, though their joints may swing back and forth at every step.
    """
    if not rows.states.shape[1]:
        return np.zeros(rows.count)
    change = torch.zeros_like(rows.states)
    change[1:] = rows.states[1:] - rows.states[:-1]
    change[rows.breaks] = 0
    inside = rows.mean((~rows.breaks).float())[:, None]
    squared = rows.mean(change.square()) / inside.clamp(min=_STILL)
    spread = rows.mean(rows.states.square()) - rows.mean(rows.states).square()
    share = torch.where(spread > _STILL, squared / (2 * spread), torch.nan)
    most = torch.nanquantile(share, 0.25, dim=1).nan_to_num(0)
    jumps: Floats = most.double().cpu().numpy()
    return jumps


def check_controls(traits: Traits, kept: Mask) -> Controls:
    """Measure every control, each trajectory judged by a fit without it.

    States that jump about are noise, not a recording of the same system: where those begin says
    nothing about a task, so they are left out of the start's control, unless kept ones jump too.
    """
    calm = kept | (traits.jumps < _NOISE)
    if kept.any() and np.median(traits.jumps[kept]) >= _NOISE:
        calm[:] = True
    return Controls(
        _told_by(traits.first[calm], kept[calm]),
        _told_by(np.log(traits.lengths), kept),
        _told_by(traits.states, kept),
    )


def _told_by(values: Floats, kept: Mask) -> float:
    """Area under the ROC curve of a ridge classifier, leaving one out; from 0.5 up."""
    count, few = len(kept), min(int(kept.sum()), int((~kept).sum()))
    if few < _FEWEST:
        return 0.5
    values = values[:, values.std(axis=0) > 1e-9]
    if not values.shape[1]:
        return 0.5
    scaled = (values - values.mean(axis=0)) / values.std(axis=0)
    rng = np.random.default_rng(0)
    waves = rng.standard_normal((scaled.shape[1], _FEATURES)) / np.sqrt(scaled.shape[1])
    phase = rng.uniform(0, 2 * np.pi, _FEATURES)
    features = np.concatenate([scaled, np.cos(scaled @ waves + phase), np.ones((count, 1))], axis=1)
    weight = count * np.where(kept, 0.5 / kept.sum(), 0.5 / (~kept).sum())
    gram = features.T @ (features * weight[:, None])
    inverse = np.linalg.inv(gram + _RIDGE * count * np.eye(len(gram)))
    side = np.where(kept, 1.0, -1.0)
    fitted = features @ (inverse @ (features.T @ (weight * side)))
    lever = ((features @ inverse) * features).sum(axis=1) * weight
    score = (fitted - lever * side) / (1 - lever)
    return max(0.5, float(roc_auc(score, kept)))
