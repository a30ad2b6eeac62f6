"""The ways in which a trajectory can be unlike the positives, each as one number.

A view of a pile holds what does not depend on the positives: random features of states and of
states with actions, the network that is told who acts, an imitator of everybody. For any set of
positives the rest is closed form: a ridge imitator, a density ratio, a code. Every positive is
judged by a fit without it, so its numbers are those of a stranger.

`EVIDENCE` names the numbers in their order. Some are one-sided (less is worse), some are
two-sided (a matter of style: other than the positives, in either direction).
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
import torch
from torch import Tensor

from pubc.pu.second_opinion.rows import Rows
from pubc.pu.second_opinion.told_network import Actors, learn_actors

__all__ = ["EVIDENCE", "TWO_SIDED", "Fit", "View", "measure", "open_view"]

EVIDENCE: dict[str, str] = {
    "imitation": "acts unlike an imitator of the positives",
    "imitation_worst": "has moments unlike an imitator of the positives",
    "imitation_telling": "acts unlike the positives where it matters",
    "against_all": "an imitator of everybody explains it better",
    "against_all_worst": "has moments that an imitator of everybody explains better",
    "dimension": "one action dimension is unlike the positives",
    "dimension_worst": "one action dimension is unlike the positives at moments",
    "offset": "its actions are pushed to one side",
    "joint": "its situations with its actions are rare among the positives",
    "joint_worst": "has moments that are rare among the positives",
    "situations": "its situations are rare among the positives",
    "told": "the network told to act like the positives acts otherwise",
    "told_worst": "the network told to act like the positives acts otherwise at moments",
    "actor": "another actor explains it better",
    "actor_worst": "another actor explains moments of it better",
    "actor_telling": "another actor explains better what matters",
    "gain": "acts with another gain than the positives",
    "tremor": "its errors are correlated in another way",
    "noise": "is noisier or calmer than the positives",
    "lag": "acts earlier or later than the positives",
    "roughness": "its actions change faster or slower",
    "holding": "repeats actions more or less often",
    "pace": "moves faster or slower",
    "idling": "stands still more or less often",
}
"""Name of each number, and what it says of a trajectory that falls short in it."""
TWO_SIDED = ("gain", "tremor", "noise", "lag", "roughness", "holding", "pace", "idling")
"""Numbers in which both directions count."""

_FLOOR = 0.05
_RIDGE = 0.05
_RIDGE_ALL = 0.02
_DENSITY = 0.05
_SHIFT = 3


@dataclass(frozen=True, slots=True, eq=False)
class Fit:
    """What a set of positives comes to: all that is needed to judge any trajectory."""

    imitator: Tensor
    """Weights from state features to actions."""
    joint: Tensor
    """Weights of the density ratio over states and actions."""
    situations: Tensor
    """Weights of the density ratio over states."""
    code: Tensor
    """The positives' code."""
    quick: Tensor
    """Speed that few steps of the seeds exceed; faster steps tell more."""
    factor: Tensor
    """Cholesky factor of the positives' second moments."""


@dataclass(frozen=True, eq=False)
class View:
    """One look at a pile; another look has other random features and another network."""

    rows: Rows
    """The steps looked at."""
    actors: Actors
    """The network that is told who acts."""
    waves: dict[str, Tensor]
    """Frequencies and phases of the random features."""
    features: Tensor
    """Of states, for imitators."""
    joint: Tensor
    """Of states and actions, for densities."""
    situations: Tensor
    """Of states, for densities."""
    inverse_joint: Tensor
    """Of the pile's second moments."""
    inverse_situations: Tensor
    """Of the pile's second moments."""
    everyone: Tensor
    """The imitator of everybody."""

    def fit(self, positives: Tensor, quick: Tensor) -> Fit:
        """What a set of positives comes to."""
        (factor, aim), (joint_means, means) = self._normal(positives), self.means
        return Fit(
            torch.cholesky_solve(aim, factor),
            self.inverse_joint @ joint_means[positives].mean(0),
            self.inverse_situations @ means[positives].mean(0),
            self.actors.code(positives),
            quick,
            factor,
        )

    @cached_property
    def means(self) -> tuple[Tensor, Tensor]:
        """Of the features for densities over every trajectory: with actions, and of states."""
        return self.rows.mean(self.joint), self.rows.mean(self.situations)

    @cached_property
    def error_of_all(self) -> Tensor:
        """How badly the imitator of everybody explains each row."""
        return _log_error(self.rows.actions - self.features @ self.everyone)

    @cached_property
    def error_of_own(self) -> Tensor:
        """How badly the code of its own trajectory explains each row."""
        own = self.actors.told(self.actors.own_codes()[self.rows.owner])
        return _log_error(self.rows.actions - own)

    def quick(self, seeds: Tensor) -> Tensor:
        """Speed that few steps of the seeds exceed."""
        return torch.quantile(self.rows.speed[self.rows.members(seeds)], 0.95) + 1e-9

    def evidence(self, positives: Tensor, fit: Fit) -> Tensor:
        """All numbers, shape (evidence, trajectories); positives are judged as strangers."""
        expected = self._expect(fit)
        if len(positives) > 1:
            self._leave_out(positives, fit.factor, *expected)
        return measure(self, *expected, fit.quick)

    def _expect(self, fit: Fit) -> tuple[Tensor, Tensor, Tensor, Tensor]:
        return (
            self.features @ fit.imitator,
            self.actors.told(fit.code),
            self.joint @ fit.joint,
            self.situations @ fit.situations,
        )

    def _normal(self, positives: Tensor) -> tuple[Tensor, Tensor]:
        members = self.rows.members(positives)
        features, weight = self.features[members], self.rows.share[members]
        gram = features.T @ (features * weight)
        keep = _RIDGE * max(1, len(positives) - 1)
        gram.diagonal().add_(keep)
        return torch.linalg.cholesky(gram), features.T @ (self.rows.actions[members] * weight)

    def _leave_out(self, positives: Tensor, factor: Tensor, *expected: Tensor) -> None:
        """Replace what is expected of each positive by what a fit without it expects."""
        guess, told, joint, situations = expected
        inverse, (joint_means, means) = torch.cholesky_inverse(factor), self.means
        for trajectory in positives.tolist():
            rows = self.rows.of(trajectory)
            others = positives[positives != trajectory]
            features = self.features[rows]
            share = features @ inverse @ features.T / len(features)
            eye = torch.eye(len(features), device=share.device)
            error = self.rows.actions[rows] - guess[rows]
            without = torch.linalg.solve((1 + 1e-4) * eye - share, error)
            guess[rows] = self.rows.actions[rows] - without
            told[rows] = self.actors.told(self.actors.code(others), rows)
            joint[rows] = self.joint[rows] @ (self.inverse_joint @ joint_means[others].mean(0))
            situations[rows] = self.situations[rows] @ (
                self.inverse_situations @ means[others].mean(0)
            )


def open_view(
    rows: Rows, *, features: int, size: int, updates: int, rng: np.random.Generator
) -> View:
    """Look at a pile: draw random features, train the network, fit the imitator of everybody."""
    waves = _draw_waves(rows, features, rng)
    actors = learn_actors(rows, size, updates, rng)
    made = _features(rows, waves)
    inverse_joint, inverse_situations = (
        torch.linalg.inv(_second_moments(rows, part, _DENSITY)) for part in made[1:]
    )
    state = made[0]
    gram = state.T @ (state * rows.share)
    gram.diagonal().add_(_RIDGE_ALL * rows.count)
    everyone = torch.linalg.solve(gram, state.T @ (rows.actions * rows.share))
    return View(rows, actors, waves, *made, inverse_joint, inverse_situations, everyone)


def measure(
    view: View, guess: Tensor, told: Tensor, joint: Tensor, situations: Tensor, quick: Tensor
) -> Tensor:
    """The numbers of `EVIDENCE`, in its order."""
    rows = view.rows
    telling = rows.speed**3 / (rows.speed**3 + quick**3) + 1e-3
    error = rows.actions - guess
    closeness = -torch.log(error.abs() + _FLOOR)
    step, dimension = closeness.mean(1), closeness.amin(1)
    against = step + view.error_of_all
    told_step = -_log_error(rows.actions - told)
    actor = told_step + view.error_of_own
    ratio = joint.clamp(-3, 6)
    numbers = [
        rows.mean(step),
        rows.worst(step),
        rows.mean(step, telling),
        rows.mean(against),
        rows.worst(against),
        rows.mean(dimension),
        rows.worst(dimension),
        -rows.mean(error).norm(dim=1),
        rows.mean(ratio),
        rows.worst(ratio),
        rows.mean(situations.clamp(-3, 6)),
        rows.mean(told_step),
        rows.worst(told_step),
        rows.mean(actor),
        rows.worst(actor),
        rows.mean(actor, telling),
        *_style(rows, guess, error),
    ]
    return torch.stack(numbers)


def _style(rows: Rows, guess: Tensor, error: Tensor) -> list[Tensor]:
    """How actions relate to what is expected: gain, tremor, noise, lag, and how they flow."""
    centred = guess - rows.mean(guess)[rows.owner]
    swing = rows.actions - rows.mean(rows.actions)[rows.owner]
    gain = rows.mean((swing * centred).sum(1)) / (rows.mean(centred.square().sum(1)) + 1e-2)
    left = error - rows.mean(error)[rows.owner]
    after = torch.cat([left[1:], left[:1]])
    after[rows.last] = 0
    size = rows.mean(left.square().sum(1))
    tremor = rows.mean((left * after).sum(1)) / (size + 1e-3)
    early = torch.cat([guess[_SHIFT:], guess[-_SHIFT:]])
    late = torch.cat([guess[:_SHIFT], guess[:-_SHIFT]])
    place = torch.arange(len(guess), device=guess.device) - rows.starts[rows.owner]
    inside = (place >= _SHIFT) & (place < rows.lengths[rows.owner] - _SHIFT)
    lead = (rows.actions - early).abs().sum(1) - (rows.actions - late).abs().sum(1)
    change = torch.zeros_like(rows.actions)
    change[1:] = rows.actions[1:] - rows.actions[:-1]
    change[rows.breaks] = 0
    moving = rows.speed[rows.speed > 0]
    still = 0.1 * (moving.median() if len(moving) else rows.speed.new_ones(()))
    return [
        gain,
        tremor,
        0.5 * torch.log(size + 1e-3),
        rows.mean(lead * inside),
        torch.log(rows.mean(change.abs().sum(1)) + 1e-2),
        rows.mean((change.abs().amax(1) < 1e-3).float()),
        torch.log(rows.mean(rows.speed) + 1e-2),
        rows.mean((rows.speed < still).float()),
    ]


def _log_error(error: Tensor) -> Tensor:
    return torch.log(error.abs() + _FLOOR).mean(1)


def _draw_waves(rows: Rows, count: int, rng: np.random.Generator) -> dict[str, Tensor]:
    """Random features of two scales for imitators, of one for densities."""
    wide, both = rows.states.shape[1], rows.states.shape[1] + rows.actions.shape[1]
    waves = {}
    for name, size, scale, many in (
        ("smooth", wide, 0.7, count),
        ("fine", wide, 1.5, count),
        ("joint", both, 1.5, count + count // 2),
        ("situations", wide, 1.5, count + count // 2),
    ):
        drawn = rng.standard_normal((size, many)) * scale / np.sqrt(max(1, size))
        phase = rng.uniform(0, 2 * np.pi, (1, many))
        both_parts = np.concatenate([drawn, phase]).astype(np.float32)
        waves[name] = torch.from_numpy(both_parts).to(rows.device)
    return waves


def _features(rows: Rows, waves: dict[str, Tensor]) -> tuple[Tensor, Tensor, Tensor]:
    def wave(values: Tensor, name: str) -> Tensor:
        return torch.cos(values @ waves[name][:-1] + waves[name][-1]) * 2**0.5

    one = rows.states.new_ones(len(rows.states), 1)
    both = torch.cat([rows.states, rows.actions], 1)
    return (
        torch.cat([wave(rows.states, "smooth"), wave(rows.states, "fine"), rows.states, one], 1),
        torch.cat([wave(both, "joint"), both, one], 1),
        torch.cat([wave(rows.states, "situations"), rows.states, one], 1),
    )


def _second_moments(rows: Rows, features: Tensor, keep: float) -> Tensor:
    moments = features.T @ (features * rows.share) / rows.count
    moments.diagonal().add_(keep)
    return moments
