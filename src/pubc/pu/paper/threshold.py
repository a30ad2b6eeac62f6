"""Where to cut the confidences.

A round leaves one confidence per trajectory. When it went well, their histogram has two
humps with the expert's on the right, and the threshold is the valley between them. This
module only computes: it returns the evidence with the cut, and a report can draw it.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from numpy.polynomial import Polynomial
from numpy.typing import NDArray

from pubc.pu.judge import Cut, Threshold, Verdict, mean_confidence

__all__ = ["find_valley", "fixed", "valley", "with_histogram"]

Floats = NDArray[np.float64]


def find_valley(
    confidence: Floats,
    *,
    bins: int = 100,
    degree: int = 10,
    below: float = 1.0,
    least: float = 0.0,
) -> Cut:
    """The paper's threshold: the rightmost dip of a polynomial through the histogram.

    The last two arguments are bounds that the paper does not have; without them the rightmost
    dip counts, wherever it lies and whatever is left above it.

    Args:
        confidence: Mean confidence of each trajectory, shape (trajectories,).
        bins: Between the lowest and the highest confidence; the paper does not say how many.
        degree: Order of the polynomial. Higher follows noise, lower misses the valley; the
            paper uses 10 for every dataset.
        below: Dips are looked for below this share of the way from the lowest to the highest
            confidence: next to the end of its range every polynomial rings. The paper's
            predecessor has 0.96 of a range from 0 to 1, which is the same for its classifiers;
            those of the PU baselines never come near 1.
        least: Share of the trajectories that must lie above a dip. Without it a handful of seeds
            that a classifier has learned by heart make a dip of their own.

    Example:
        >>> rng = np.random.default_rng(0)
        >>> humps = np.append(rng.normal(0.3, 0.05, 500), rng.normal(0.8, 0.05, 500))
        >>> find_valley(humps, degree=6).threshold < 0.7
        True
    """
    low, high = float(np.min(confidence)), float(np.max(confidence))
    # Bins narrower than the spacing of floating-point numbers cannot be told apart.
    if not high - low > bins * np.spacing(max(abs(low), abs(high), 1e-300)):
        return Cut(
            None,
            f"All {confidence.size:,} confidences are equal ({low:.4g}), so nothing "
            "separates the expert from the rest.",
            "no_valley",
        )
    counts, edges = np.histogram(confidence, bins=bins, range=(low, high))
    centres = (edges[:-1] + edges[1:]) / 2
    curve = np.asarray(Polynomial.fit(centres, counts, degree)(centres), dtype=np.float64)
    inner = curve[1:-1]
    dips = np.flatnonzero((curve[:-2] > inner) & (inner <= curve[2:])) + 1
    dips = dips[centres[dips] < low + below * (high - low)]
    dips = dips[[float(np.mean(confidence > dip)) >= least for dip in centres[dips]]]
    drawn = {"centres": centres, "counts": counts.astype(np.float64), "curve": curve}
    if not len(dips):
        return Cut(
            None,
            f"The confidences of {confidence.size:,} trajectories form a single hump "
            f"({low:.3g} to {high:.3g}): the polynomial of order {degree} has no dip"
            + (f" below {below:g} of that range" if below < 1 else "")
            + (f" with {least:.0%} of them above it." if least > 0 else "."),
            "no_valley",
            **drawn,
        )
    reason = f"Rightmost of {len(dips)} dips of a polynomial of order {degree}."
    return Cut(float(centres[dips[-1]]), reason, **drawn)


def with_histogram(cut: Cut, scores: Floats) -> Cut:
    """The cut with a histogram of the scores and a smooth curve through it, to be drawn."""
    finite = scores[np.isfinite(scores)]
    low, high = float(finite.min()), float(finite.max())
    if not high > low:
        return cut
    bins = int(np.clip(2 * np.sqrt(finite.size), 10, 100))
    counts, edges = np.histogram(finite, bins=bins, range=(low, high))
    centres, width = (edges[:-1] + edges[1:]) / 2, edges[1] - edges[0]
    narrow = max(1.5 * width, 1e-300)
    bell = np.exp(-0.5 * ((centres[:, None] - centres[None]) / narrow) ** 2)
    curve = bell @ counts * width / (narrow * np.sqrt(2 * np.pi))
    return replace(cut, centres=centres, counts=counts.astype(np.float64), curve=curve)


def fixed(value: float) -> Threshold:
    """The ablation without adaptation: the same threshold whatever the confidences."""

    def cut(verdict: Verdict) -> Cut:
        return Cut(value, f"Fixed at {value:g}.")

    return cut


def valley(bins: int = 100, degree: int = 10, below: float = 1.0, least: float = 0.0) -> Threshold:
    """`find_valley` of the mean confidences, as a threshold for the filter loop."""

    def cut(verdict: Verdict) -> Cut:
        mean = mean_confidence(verdict.confidence)
        mean = mean[~np.isnan(mean)]
        return find_valley(mean, bins=bins, degree=degree, below=below, least=least)

    return cut
