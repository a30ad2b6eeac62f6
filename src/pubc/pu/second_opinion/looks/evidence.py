"""The ways in which a trajectory can be unlike the positives, each as one number.

A view of a pile holds what does not depend on the positives: random features of states, the
network that is told who acts, an imitator of everybody. For any set of positives the rest is
closed form. Every positive is judged by the others, so its numbers are those of a stranger.

`EVIDENCE` names the numbers in their order. Some are one-sided (less is worse), some are
two-sided (a matter of style: other than the positives, in either direction).
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from pubc.pu.second_opinion.looks.rows import Rows
from pubc.pu.second_opinion.looks.same_actor import SameActor, learn_same_actor
from pubc.pu.second_opinion.looks.told_network import Actors, learn_actors

__all__ = ["EVIDENCE", "TWO_SIDED", "View", "open_view"]

EVIDENCE: dict[str, str] = {
    "acting_worst": "acts unlike the positives at moments",
    "dimension": "one action dimension is unlike the positives",
    "dimension_worst": "one action dimension is unlike the positives at moments",
    "telling": "acts unlike the positives where it matters",
    "actor": "another actor explains better what matters",
    "code": "acts like another actor throughout",
    "situations": "its situations are rare among the positives at that time",
    "situations_worst": "has moments that are rare among the positives at that time",
    "roughness": "its actions change faster or slower",
    "jerk": "its actions are more or less jerky",
    "pace": "moves faster or slower",
    "size": "its actions are larger or smaller",
}
"""Name of each number, and what it says of a trajectory that falls short in it."""
TWO_SIDED = ("roughness", "jerk", "pace", "size")
"""Numbers in which both directions count."""

_FLOOR = 0.05
_AT_ONCE = 4096
"""Steps that are looked at together; memory stays small."""
_RIDGE_ALL = 0.02
_DENSITY = 0.05
_DENSITY_WAVES = 192
_LOWEST, _HIGHEST = -3.0, 6.0
_USUAL = 0.3
"""Variance of the codes of one actor, as a share of the pile's; counts as two trajectories."""
_BEGIN_TO_END = 1.7
"""The time within a trajectory runs from minus this to this, beside states of unit size."""


@dataclass(frozen=True, slots=True, eq=False)
class View:
    """One look at a pile; another look has other random features and another network."""

    rows: Rows
    """The steps looked at."""
    actors: Actors
    """The network that is told who acts."""
    same_actor: SameActor
    """The odds that an actor is one who was met."""
    codes: Tensor
    """Of each trajectory, shape (trajectories, numbers), of unit size over the pile."""
    error_of_own: Tensor
    """How badly the code of its own trajectory explains each row."""
    moments: Tensor
    """Features of state and time, for densities."""
    means: Tensor
    """Their mean over every trajectory."""
    inverse: Tensor
    """Of the pile's second moments of them."""
    style: Tensor
    """The numbers that do not depend on the positives, shape (numbers, trajectories)."""
    asked: dict[tuple[tuple[int, ...], ...], Tensor] = field(default_factory=dict)
    """What was measured before: ways to cut begin alike and often end alike."""

    def evidence(self, positives: Tensor, seeds: Tensor) -> Tensor:
        """All numbers, shape (evidence, trajectories); positives are judged as strangers.

        Args:
            positives: Whom everybody is compared with.
            seeds: Steps that are quick for them tell more than others.
        """
        question = tuple(positives.tolist()), tuple(seeds.tolist())
        if question not in self.asked:
            self.asked[question] = self._measure(positives, seeds)
        return self.asked[question]

    def _measure(self, positives: Tensor, seeds: Tensor) -> Tensor:
        rows = self.rows
        quick = torch.quantile(rows.speed[rows.members(seeds)], 0.95) + 1e-9
        telling = rows.speed**3 / (rows.speed**3 + quick**3) + 1e-3
        odds = self.same_actor.log_odds(positives)
        step, dimension = odds.mean(1), odds.amin(1)
        told, ratio = self._told(positives), self._ratio(positives)
        numbers = [
            rows.worst(step),
            rows.mean(dimension),
            rows.worst(dimension),
            rows.mean(step, telling),
            rows.mean(self.error_of_own - _log_error(rows.actions - told), telling),
            self._like_codes(positives),
            rows.mean(ratio),
            rows.worst(ratio),
        ]
        return torch.cat([torch.stack(numbers), self.style])

    def _told(self, positives: Tensor) -> Tensor:
        """What the network does that is told to act like the positives."""
        told = self.actors.told(self.actors.code(positives))
        for trajectory, others in _others(positives):
            rows = self.rows.of(trajectory)
            told[rows] = self.actors.told(self.actors.code(others), rows)
        return told

    def _like_codes(self, positives: Tensor) -> Tensor:
        chosen, count = self.codes[positives], len(positives)
        apart = self.codes - chosen.mean(0)
        if count > 1:
            apart[positives] *= count / (count - 1)
        within = chosen.var(0, correction=0) * count + 2 * _USUAL
        return -torch.log1p((apart.square() / (within / (count + 1))).mean(1))

    def _ratio(self, positives: Tensor) -> Tensor:
        """Density of each row among the positives over that in the pile."""
        ratio = self.moments @ (self.inverse @ self.means[positives].mean(0))
        for trajectory, others in _others(positives):
            rows = self.rows.of(trajectory)
            ratio[rows] = self.moments[rows] @ (self.inverse @ self.means[others].mean(0))
        return ratio.clamp(_LOWEST, _HIGHEST)


def open_view(
    rows: Rows, *, features: int, size: int, updates: int, rng: np.random.Generator
) -> View:
    """Look at a pile: draw random features, train the network, fit the imitator of everybody."""
    smooth, fine = (_draw(rows.states.shape[1], features, scale, rng) for scale in (0.7, 1.5))
    moments = _moments(rows, rng)
    actors = learn_actors(rows, size, updates, rng)
    basis = _state_features(rows.states, (_on(smooth, rows), _on(fine, rows)), actors)
    own_codes = actors.own_codes()
    error = rows.actions - actors.told(own_codes[rows.owner])
    noise = error.square().mean(0) + _FLOOR**2
    odds = learn_same_actor(rows, basis, _imitate_everybody(rows, basis), noise)
    second = moments.T @ (moments * rows.share) / rows.count
    second.diagonal().add_(_DENSITY)
    return View(
        rows=rows,
        actors=actors,
        same_actor=odds,
        codes=(own_codes - own_codes.mean(0)) / (own_codes.std(0) + 1e-6),
        error_of_own=_log_error(error),
        moments=moments,
        means=rows.mean(moments),
        inverse=torch.linalg.inv(second),
        style=torch.stack(_style(rows)),
    )


def _style(rows: Rows) -> list[Tensor]:
    """How actions flow: how fast they change, how steadily, how the state moves, how large."""
    change = torch.zeros_like(rows.actions)
    change[1:] = rows.actions[1:] - rows.actions[:-1]
    change[rows.breaks] = 0
    turn = torch.zeros_like(change)
    turn[1:] = change[1:] - change[:-1]
    turn[rows.breaks] = 0
    turn[1:][rows.breaks[:-1]] = 0
    return [
        torch.log(rows.mean(change.abs().sum(1)) + 1e-2),
        torch.log(rows.mean(turn.abs().sum(1)) + 1e-2),
        torch.log(rows.mean(rows.speed) + 1e-2),
        0.5 * torch.log(rows.mean(rows.actions.square().sum(1)) + 1e-3),
    ]


def _log_error(error: Tensor) -> Tensor:
    return torch.log(error.abs() + _FLOOR).mean(1)


def _state_features(states: Tensor, waves: tuple[Tensor, ...], actors: Actors) -> Tensor:
    """Waves, what the network makes of states, the states and a constant, for every step."""
    made = []
    for part in torch.split(states, _AT_ONCE):
        parts = [_waves(part, wave) for wave in waves]
        one = part.new_ones(len(part), 1)
        made.append(torch.cat([actors.hidden(part), *parts, part, one], 1))
    features = torch.cat(made)
    learned = features[:, : actors.width]
    learned -= learned.mean(0)
    learned /= learned.std(0) + 1e-4
    return features


def _imitate_everybody(rows: Rows, features: Tensor) -> Tensor:
    """What a ridge imitator of all trajectories, each of weight one, would do at every step."""
    gram = features.new_zeros(features.shape[1], features.shape[1])
    for part, share in zip(
        torch.split(features, _AT_ONCE), torch.split(rows.share, _AT_ONCE), strict=True
    ):
        gram += part.T @ (part * share)
    gram.diagonal().add_(_RIDGE_ALL * rows.count)
    weights: Tensor = torch.linalg.solve(gram, features.T @ (rows.actions * rows.share))
    return features @ weights


def _moments(rows: Rows, rng: np.random.Generator) -> Tensor:
    """Features of state and time: a situation is also when something is done."""
    lengths = rows.lengths[rows.owner].float()
    place = torch.arange(len(rows.states), device=rows.device) - rows.starts[rows.owner]
    reach = _BEGIN_TO_END * max(1.0, rows.states.shape[1] ** 0.5 / 2)
    time = (2 * place / lengths - 1) * reach
    both = torch.cat([rows.states, time[:, None]], 1)
    waves = _on(_draw(both.shape[1], _DENSITY_WAVES, 1.5, rng), rows)
    return torch.cat([_waves(both, waves), both, both.new_ones(len(both), 1)], 1)


def _draw(size: int, count: int, scale: float, rng: np.random.Generator) -> NDArray[np.float32]:
    """Frequencies and, in the last row, phases of random features of a scale."""
    drawn = rng.standard_normal((size, count)) * scale / np.sqrt(max(1, size))
    return np.concatenate([drawn, rng.uniform(0, 2 * np.pi, (1, count))]).astype(np.float32)


def _on(values: NDArray[np.float32], rows: Rows) -> Tensor:
    return torch.from_numpy(values).to(rows.device)


def _waves(values: Tensor, waves: Tensor) -> Tensor:
    return torch.cos(values @ waves[:-1] + waves[-1]) * 2**0.5


def _others(positives: Tensor) -> list[tuple[int, Tensor]]:
    """Each of the positives and all the others; none where there are no others."""
    if len(positives) < 2:
        return []
    return [(trajectory, positives[positives != trajectory]) for trajectory in positives.tolist()]
