"""Whether two actors explain some trajectories better than one, and which of them are the seeds'.

Evidence asks whether the positives' actor acted or somebody else, whoever that may be. Where it was
one and the same other in many trajectories, more can be asked: which of two explains a trajectory
better? Each side is an actor, every trajectory is judged by what the others of a side did, and goes
where it is explained better, until nobody moves. The seeds stay where they are.

Any set falls into two that way. So the other side must gain: together they have to explain each
other better than everybody explains them, which halves of one actor's seldom do clearly. The parts
are found in one look, and every look must see that gain.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Tensor

from pubc.pu.judge import Bench
from pubc.pu.second_opinion.looks.evidence import View
from pubc.pu.second_opinion.splits.pile_split import likeness

__all__ = ["Parts", "part_in_two"]

Explained = Callable[[Tensor], Tensor]

_BEGIN = (0.35, 0.65)
"""Shares that are unlike the seeds to begin with; the parts that explain more are taken."""
_TURNS = 6
_FEWEST = 3
"""Fewer than this are no part."""


@dataclass(frozen=True, slots=True, eq=False)
class Parts:
    """Trajectories in two parts."""

    ours: Tensor
    """Which lie on the side of the seeds, shape (trajectories,)."""
    odds: Tensor
    """Log odds of the seeds' actor over the other, a step's mean, shape (looks, trajectories)."""
    gain: float
    """How surely the other side is better explained by itself than by everybody: the mean gain of
    its trajectories in standard errors, in the look where that is smallest."""

    @property
    def agree(self) -> float:
        """Share of trajectories on which the looks agree."""
        sides = self.odds > 0
        return float((sides[0] == sides[-1]).float().mean())


def part_in_two(views: list[View], seeds: Tensor, bench: Bench) -> Parts | None:
    """Part trajectories by who acts; None where one side stays empty.

    Args:
        views: Looks at these trajectories alone.
        seeds: Positions of the seeds.
        bench: Where several beginnings are tried at the same time.
    """
    like = likeness(views[:1], seeds)
    explained = [_remembering(view) for view in views]

    def settled(number: int) -> tuple[float, Tensor] | None:
        begin = like > torch.quantile(like, _BEGIN[number])
        ours = _settle(explained[0], seeds, begin)
        return None if ours is None else (float(_gains(explained[0], ours)[0].mean()), ours)

    tried = [parts for parts in bench.map(settled, range(len(_BEGIN))) if parts is not None]
    if not tried:
        return None
    ours = max(tried, key=lambda parts: parts[0])[1]
    seen = bench.map(lambda number: _gains(explained[number], ours), range(len(views)))
    gain = min(_surely(gains[~ours]) for gains, _ in seen)
    return Parts(ours, torch.stack([odds for _, odds in seen]), gain)


def _settle(explained: Explained, seeds: Tensor, ours: Tensor) -> Tensor | None:
    """Move every trajectory to the side that explains it better until nobody moves."""
    for _ in range(_TURNS):
        ours = ours.clone()
        ours[seeds] = True
        if int((~ours).sum()) < _FEWEST:
            return None
        better = explained(ours) > explained(~ours)
        better[seeds] = True
        if bool((better == ours).all()):
            break
        ours = better
    return ours if int((~ours).sum()) >= _FEWEST else None


def _gains(explained: Explained, ours: Tensor) -> tuple[Tensor, Tensor]:
    """What each trajectory gains by its side over everybody, and the log odds of the sides."""
    own, other = explained(ours), explained(~ours)
    return torch.where(ours, own, other) - explained(torch.ones_like(ours)), own - other


def _remembering(view: View) -> Explained:
    """How well the actor of some trajectories explains each; they are judged by the others."""
    known: dict[bytes, Tensor] = {}

    def explained(who: Tensor) -> Tensor:
        name = who.cpu().numpy().tobytes()
        if name not in known:
            odds = view.same_actor.log_odds(torch.nonzero(who).flatten())
            known[name] = view.rows.mean(odds.mean(1))
        return known[name]

    return explained


def _surely(gains: Tensor) -> float:
    return float(gains.mean() / (gains.std() + 1e-9) * len(gains) ** 0.5)
