"""The cut of recipe `auto`: a tested valley that agrees with the split behind the scores."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from pubc.pu.auto.valleys import find_valleys, gap_below, otsu, typical
from pubc.pu.judge import Cut, Mask, Verdict
from pubc.pu.paper.threshold import with_histogram

__all__ = ["RatioCut"]

Floats = NDArray[np.float64]

DEPTH = 0.5
"""A valley is at most this dense, compared with the humps on both sides."""
CONSIDERED = 0.4
"""Evidence from which a valley is considered."""
WEAK = 0.75
"""Evidence from which a valley counts, as a weak one."""


@dataclass(frozen=True, slots=True)
class RatioCut:
    """Cuts log ratios at the valley that keeps the seeds and fits the split behind them."""

    keep_seeds: float = 0.8
    """A cut keeps at least this share of the held-out seeds."""
    advantage: float = 0.2
    """Mean log ratio that each side must hold over the other; below it there is one policy."""

    def __call__(self, verdict: Verdict) -> Cut:
        """Cut the confidences of a verdict."""
        scores, held = verdict.confidence[0], verdict.seed_confidence[0]
        assert verdict.split is not None
        place, evidence, how = self._place(scores, held, *verdict.split)
        status, doubt = self._doubt(verdict, place, evidence)
        return with_histogram(Cut(place, f"{how} {doubt}".strip(), status, evidence), scores)

    def _place(
        self, scores: Floats, held: Floats, positive: Mask, rest: Mask
    ) -> tuple[float, float, str]:
        """Where to cut, the evidence for it, and how it was found."""
        options = [
            (valley.cut, valley.evidence, "Cut in a valley of the scores.")
            for valley in find_valleys(scores, depth=DEPTH, bar=CONSIDERED)
            if np.mean(held >= valley.cut) >= self.keep_seeds
        ]
        options.append((otsu(scores), 0.2, "There is no valley: cut where both sides vary least."))
        gap = gap_below(scores, held, self.keep_seeds)
        if gap is not None:
            options.append((gap, 0.1, "There is no valley: cut at the widest gap below the seeds."))

        def worth(option: tuple[float, float, str]) -> float:
            cut, evidence, _ = option
            disagreement = np.mean(positive & (scores < cut)) + np.mean(rest & (scores >= cut))
            return float(
                min(evidence, 1.5)
                - 10 * disagreement
                - 1.5 * (np.mean(held >= cut) < self.keep_seeds)
                - 1.5 * (not typical(scores, cut, held))
            )

        return max(options, key=worth)

    def _doubt(self, verdict: Verdict, cut: float, evidence: float) -> tuple[str | None, str]:
        """Why the cut is not to be trusted, as a status and in words; None where it is."""
        scores, held = verdict.confidence[0], verdict.seed_confidence[0]
        top, bottom = scores[scores >= cut], scores[scores < cut]
        if not len(top) or not len(bottom):
            return "no_valley", "All trajectories lie on one side."
        middle = float(np.median(top))
        spread = 1.4826 * max(float(np.median(np.abs(top - middle))), 1e-6)
        off = abs(float(np.median(held)) - middle)
        kept = float(np.mean(held >= cut))
        if kept < self.keep_seeds or (off > 4 * spread and off > 0.3 * (middle - cut)):
            return "seed_incoherent", f"{kept:.0%} of the held-out seeds lie above the cut."
        if not _like_seeds(verdict, scores >= cut):
            return (
                "seed_incoherent",
                "What lies above the cut is less like the seeds than they are.",
            )
        gap = (float(top.min()) - float(bottom.max())) / spread
        advantage = min(float(top.mean()), -float(bottom.mean()))
        if advantage < self.advantage:
            return "no_valley", "Imitators of both sides predict both sides alike."
        few = min(len(top), len(bottom)) < 3
        if evidence >= 1 or (gap >= 4 and advantage >= 1.5 * self.advantage and not few):
            return None, ""
        if evidence >= WEAK:
            return "weak_valley", "The valley is shallow."
        return "no_valley", "The scores could form one hump."


def _like_seeds(verdict: Verdict, selected: Mask) -> bool:
    """Whether the seeds' imitators predict the selected about as well as held-out seeds."""
    fit = verdict.first[selected & ~np.isnan(verdict.first)]
    if not len(fit):
        return False
    q75, q95 = np.quantile(fit, [0.75, 0.95])
    # A lone seed is judged by imitators of its own other thirds, which flatters it.
    spreads, slack = (4, 0.1) if len(verdict.seed_first) > 1 else (8, 0.3)
    return bool(np.median(verdict.seed_first) <= q95 + spreads * (q95 - q75) + slack)
