"""Valleys in a handful of numbers, tested for being real.

A stretch of neighbouring scores is a valley when a window to its left and a window to its
right are both denser than it. Under a density with a single hump one of the two sides is
never denser, so the smaller of the two likelihood ratios tells valleys from chance. No bins,
no curve to ring, no saturation: only the order and the spacing of the scores count.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

__all__ = ["Valley", "find_valleys", "gap_below", "otsu", "typical"]

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]
Spot = tuple[int, int, float]

FEWEST = 8
"""Fewer scores than this never show a valley."""
MOST = 8
"""Valleys looked for, the most evident first."""


@dataclass(frozen=True, slots=True)
class Valley:
    """A valley between two humps."""

    cut: float
    """Where to cut: the middle of its emptiest part."""
    low: float
    """Where it begins."""
    high: float
    """Where it ends."""
    evidence: float
    """Log likelihood ratio as a multiple of its critical value; from 1 on a single hump
    shows such a valley in about one draw of 500."""


def find_valleys(
    scores: Floats, *, depth: float = 0.5, bar: float = 1.0, grid: int = 256
) -> list[Valley]:
    """All valleys with enough evidence, from low to high.

    Args:
        scores: One number per trajectory, in any order.
        depth: A valley is at most this dense, compared with the humps on both sides.
        bar: Evidence from which a valley counts.
        grid: More scores than this are thinned to so many quantiles.

    Example:
        >>> rng = np.random.default_rng(0)
        >>> humps = np.append(rng.normal(-3, 1, 100), rng.normal(5, 1, 20))
        >>> [round(valley.cut) for valley in find_valleys(humps)]
        [1]
        >>> find_valleys(rng.normal(size=500))
        []
    """
    x = np.asarray(scores, dtype=np.float64)
    x = np.sort(x[np.isfinite(x)])
    n = len(x)
    if n < FEWEST or x[-1] - x[0] <= 1e-9 * max(1.0, abs(x[0]), abs(x[-1])):
        return []
    x = _untie(x)
    y = x[np.round(np.linspace(0, n - 1, grid)).astype(np.int64)] if n > grid else x
    m = len(y)
    span = y[int(0.95 * (m - 1))] - y[round(0.05 * (m - 1))]
    # A little of a uniform spacing bounds every density and keeps the order of scores.
    z = y + 0.01 * (span if span > 0 else y[-1] - y[0]) / m * np.arange(m)
    first, size, ratio = _scan(z, (n - 1) / (m - 1), depth)
    # The critical value was simulated over single-humped families of 20 to 10,000 scores.
    evidence = ratio / min(0.8 + 1.65 * math.log(n), 11.0)
    spots = _separate(first, size, evidence, bar)
    return [_valley(y, z, spot) for spot in _with_humps_between(z, spots, depth)]


def otsu(scores: Floats) -> float:
    """The cut that leaves the least variance inside the two groups; for at least two scores."""
    y = np.sort(scores)
    count, total = np.arange(1, len(y)), np.cumsum(y)
    rest = len(y) - count
    between = (total[:-1] / count - (total[-1] - total[:-1]) / rest) ** 2 * count * rest
    place = int(np.argmax(between))
    return float(0.5 * (y[place] + y[place + 1]))


def gap_below(scores: Floats, seeds: Floats, keep: float, floor: float = -np.inf) -> float | None:
    """Middle of the widest gap below the held-out seeds and above the median, for few experts."""
    floor = max(floor, float(np.median(scores)))
    inside = np.sort(scores[(scores >= floor) & (scores <= np.quantile(seeds, 1 - keep))])
    if len(inside) < 2:
        return None
    place = int(np.argmax(np.diff(inside)))
    return float(0.5 * (inside[place] + inside[place + 1]))


def typical(scores: Floats, cut: float, seeds: Floats) -> bool:
    """Whether held-out seeds are typical of what lies above a cut, not a hump further up."""
    above = scores[scores >= cut]
    if not len(above):
        return False
    middle = np.median(above)
    spread = 1.4826 * np.median(np.abs(above - middle))
    return bool(np.median(seeds) <= middle + 4 * spread)


def _scales(low: int, high: int) -> list[int]:
    found, value = [], float(low)
    while value <= high + 1e-9:
        found.append(round(value))
        value = max(value * 1.5, value + 1)
    return found


def _denser(hump: float, valley: float, width: Floats, gap: Floats, depth: float) -> Floats:
    """Log likelihood ratio that a hump's spacings are denser than a valley's; 0 if too alike."""
    total = hump + valley
    share = hump / total
    wide = np.clip(width / (width + gap), 1e-12, 1 - 1e-12)
    ratio = total * (share * np.log(share / wide) + (1 - share) * np.log((1 - share) / (1 - wide)))
    return np.where(valley * width <= depth * hump * gap, ratio, 0.0)


def _scan(z: Floats, per: float, depth: float) -> tuple[Integers, Integers, Floats]:
    """For every stretch: where it starts, how many spacings it has, and its ratio."""
    m = len(z)
    windows = _scales(3, max(3, m // 2))
    firsts, sizes, ratios = [], [], []
    for k in _scales(1, max(1, m // 3)):
        gap = z[k:] - z[: m - k]
        left, right = np.zeros(m - k), np.zeros(m - k)
        for w in (w for w in windows if w < m - k):
            ratio = _denser(w * per, k * per, z[w : m - k] - z[: m - k - w], gap[w:], depth)
            left[w:] = np.maximum(left[w:], ratio)
            ratio = _denser(w * per, k * per, z[k + w :] - z[k : m - w], gap[: m - k - w], depth)
            right[: m - k - w] = np.maximum(right[: m - k - w], ratio)
        firsts.append(np.arange(m - k))
        sizes.append(np.full(m - k, k))
        ratios.append(np.minimum(left, right))
    return np.concatenate(firsts), np.concatenate(sizes), np.concatenate(ratios)


def _separate(first: Integers, size: Integers, evidence: Floats, bar: float) -> list[Spot]:
    """The most evident stretches that do not overlap, from low to high."""
    order = np.argsort(-evidence, kind="stable")
    order = order[evidence[order] >= bar]
    spots: list[Spot] = []
    while len(order) and len(spots) < MOST:
        best = order[0]
        low, high = int(first[best]), int(first[best] + size[best])
        spots.append((low, high, float(evidence[best])))
        order = order[(first[order] >= high) | (first[order] + size[order] <= low)]
    return sorted(spots)


def _with_humps_between(z: Floats, spots: list[Spot], depth: float) -> list[Spot]:
    """Merge valleys that no hump separates."""
    merged: list[Spot] = []
    for spot in spots:
        if merged:
            last = merged[-1]
            between = (spot[0] - last[1]) / max(z[spot[0]] - z[last[1]], 1e-300)
            inside = max((s[1] - s[0]) / (z[s[1]] - z[s[0]]) for s in (last, spot))
            if spot[0] - last[1] < 3 or between * depth <= inside:
                merged[-1] = max(last, spot, key=lambda s: s[2])
                continue
        merged.append(spot)
    return merged


def _valley(y: Floats, z: Floats, spot: Spot) -> Valley:
    low, high, evidence = spot
    half = max(1, (high - low) // 2)
    place = low + int(np.argmax(z[low + half : high + 1] - z[low : high + 1 - half]))
    cut = float(0.5 * (y[place] + y[place + half]))
    return Valley(cut, float(y[low]), float(y[high]), evidence)


def _untie(x: Floats) -> Floats:
    """Spread rounded scores over their cells, so that a comb of ties is not a row of humps."""
    value, count = np.unique(x, return_counts=True)
    if len(value) < FEWEST or len(value) > 0.8 * len(x):
        return x
    gaps = np.diff(value)
    cell = float(np.median(gaps))
    left = np.minimum(np.append(cell, gaps), cell) / 2
    right = np.minimum(np.append(gaps, cell), cell) / 2
    first = np.repeat(np.cumsum(count) - count, count)
    part = (np.arange(len(x)) - first + 0.5) / np.repeat(count, count)
    return np.asarray(np.repeat(value - left, count) + part * np.repeat(left + right, count))
