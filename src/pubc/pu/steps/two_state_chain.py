"""Evidence of single steps, smoothed by what comes before and after.

Whoever acts at one step most likely acts at the next. A chain of two states, the expert and
somebody else, turns the evidence of each step into the chance that the step is the expert's,
given all steps of its trajectory.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

__all__ = ["smooth", "window_means"]

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]

_MOST = 30.0
"""Evidence beyond this, in nats, changes nothing but overflows."""


def smooth(
    evidence: Floats, lengths: Integers, *, stay_expert: float, stay_other: float, prior: float
) -> Floats:
    """The chance that each step is the expert's, shape (steps,).

    Args:
        evidence: Log-likelihood ratio of each step, the expert over somebody else.
        lengths: Steps of each trajectory, in the order of `evidence`.
        stay_expert: Chance that a step of the expert is followed by another one.
        stay_other: The same for somebody else.
        prior: Chance that the first step is the expert's.

    Example:
        >>> seen = np.array([2.0, 2.0, -0.5, 2.0, 2.0])
        >>> odd = smooth(seen, np.array([5]), stay_expert=0.95, stay_other=0.9, prior=0.5)
        >>> bool(odd[2] > 0.9)
        True
    """
    longest = int(lengths.max(initial=0))
    there = np.arange(longest) < lengths[:, None]
    padded = np.zeros(there.shape)
    padded[there] = evidence
    own = np.exp(np.clip(padded, -_MOST, _MOST) / 2)
    other = 1 / own
    before = np.empty((longest, len(lengths)))
    chance = np.full(len(lengths), prior)
    for step in range(longest):
        if step:
            chance = chance * stay_expert + (1 - chance) * (1 - stay_other)
        likely = chance * own[:, step]
        chance = likely / (likely + (1 - chance) * other[:, step])
        before[step] = chance
    result = np.empty(there.shape)
    after = np.full(len(lengths), 0.5)
    for step in range(longest - 1, -1, -1):
        if step + 1 < longest:
            seen, unseen = own[:, step + 1] * after, other[:, step + 1] * (1 - after)
            mine = stay_expert * seen + (1 - stay_expert) * unseen
            theirs = (1 - stay_other) * seen + stay_other * unseen
            after = np.where(step + 1 < lengths, mine / (mine + theirs), 0.5)
        both = before[step] * after
        result[:, step] = both / (both + (1 - before[step]) * (1 - after))
    return np.asarray(result[there])


def window_means(values: Floats, lengths: Integers, width: int = 11) -> Floats:
    """The mean of the steps around each step, within its trajectory."""
    ends = np.repeat(np.cumsum(lengths), lengths)
    starts = ends - np.repeat(lengths, lengths)
    place = np.arange(len(values))
    first = np.maximum(place - width // 2, starts)
    last = np.minimum(place + width // 2 + 1, ends)
    running = np.concatenate([[0.0], np.cumsum(values)])
    return np.asarray((running[last] - running[first]) / (last - first))
