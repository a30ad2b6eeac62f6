"""Batches for learners of offline reinforcement learning, straight from flat columns.

A transition is a step and the observation that followed it: the next row of the same
trajectory, or the final observation where the set has one. The last step of a trajectory
that was cut off without a final observation is left out, because nobody knows what followed.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from pubc.errors import DataError
from pubc.policies.training_rows import Facts
from pubc.trajectory import TrajectorySet

__all__ = ["Sequences", "Transitions"]

Floats = NDArray[np.float32]
Integers = NDArray[np.int64]


class Transitions:
    """Draws steps with what followed them."""

    def __init__(self, trajectories: TrajectorySet, facts: Facts) -> None:
        self._set, self._facts = trajectories, facts
        offsets = trajectories.offsets
        self._last = offsets[1:] - 1
        terminal = trajectories.ends() == "terminal"
        final = trajectories.has_final
        known = terminal if final is None else terminal | final
        self._usable = np.ones(trajectories.steps, dtype=np.bool_)
        self._usable[self._last[~known]] = False
        self.positions = np.flatnonzero(self._usable)
        """Steps of which it is known what followed."""
        if not len(self.positions):
            raise DataError(
                "No step of the dataset has a known successor: every trajectory has one step.",
                code="no_transitions",
            )

    def draw(self, count: int, rng: np.random.Generator) -> dict[str, Floats]:
        """A batch of transitions by d3rlpy's names for the columns."""
        return self.take(self.positions[rng.integers(len(self.positions), size=count)])

    def take(self, chosen: Integers) -> dict[str, Floats]:
        """The transitions at some of the positions."""
        count = len(chosen)
        here = self._set.take_steps(chosen)
        owner = np.searchsorted(self._set.offsets, chosen, side="right") - 1
        last = self._last[owner] == chosen
        after = self._set.take_steps(np.where(last, chosen, chosen + 1))
        followed = np.array(after.observations, dtype=np.float32)
        if self._set.final_observations is not None and self._set.has_final is not None:
            ended = np.flatnonzero(last & self._set.has_final[owner])
            followed[ended] = self._set.final_observations[owner[ended]]
        assert here.rewards is not None
        terminal = here.terminals & last
        return {
            "observations": self._facts.normaliser(here.observations),
            "actions": self._facts.actions.to_unit(here.actions),
            "rewards": _column(here.rewards),
            "next_observations": self._facts.normaliser(followed),
            "next_actions": self._facts.actions.to_unit(after.actions),
            "returns_to_go": np.zeros((count, 1), dtype=np.float32),
            "terminals": _column(terminal),
            "intervals": np.ones((count, 1), dtype=np.float32),
        }


class Sequences:
    """Draws windows of consecutive steps with the return that was still to come."""

    def __init__(self, trajectories: TrajectorySet, facts: Facts, length: int) -> None:
        self._set, self._facts, self._length = trajectories, facts, length
        returns = trajectories.total_rewards()
        self.target = float(returns.max())
        """Highest return of the set: what the policy will be asked for."""
        self.scale = float(max(1.0, np.abs(returns).max()))
        """Brings returns to about one."""
        self._to_go = self._returns_to_go(returns)

    def draw(self, count: int, rng: np.random.Generator) -> dict[str, NDArray[np.generic]]:
        """A batch of windows that end at random steps, padded in front, by d3rlpy's names."""
        ends = rng.integers(self._set.steps, size=count)
        offsets = self._set.offsets
        owner = np.searchsorted(offsets, ends, side="right") - 1
        rows = ends[:, None] + np.arange(1 - self._length, 1)
        mask = rows >= offsets[owner][:, None]
        flat = np.maximum(rows, offsets[owner][:, None]).reshape(-1)
        columns = self._set.take_steps(flat)
        shape = (count, self._length, -1)
        assert columns.rewards is not None
        weight = mask[..., None].astype(np.float32)
        seen = self._facts.normaliser(columns.observations).reshape(shape)
        acted = self._facts.actions.to_unit(columns.actions).reshape(shape)
        to_go = (self._to_go[flat] / self.scale).astype(np.float32).reshape(shape)
        return {
            "observations": seen * weight,
            "actions": acted * weight,
            "rewards": _column(columns.rewards).reshape(shape) * weight,
            "returns_to_go": to_go * weight,
            "terminals": np.zeros((count, self._length, 1), dtype=np.float32),
            "timesteps": ((rows - offsets[owner][:, None] + 1) * mask).astype(np.int64),
            "masks": mask.astype(np.float32),
        }

    def _returns_to_go(self, returns: NDArray[np.float64]) -> NDArray[np.float64]:
        """Rewards from each step to the end of its trajectory, that step's included."""
        rewards = [np.asarray(b.rewards, dtype=np.float64) for b in self._set.blocks()]
        flat = np.concatenate(rewards)
        before = np.cumsum(flat) - flat
        starts = np.repeat(before[self._set.offsets[:-1]], self._set.lengths)
        return np.asarray(np.repeat(returns, self._set.lengths) - (before - starts))


def _column(values: NDArray[np.generic]) -> Floats:
    return np.asarray(values, dtype=np.float32).reshape(-1, 1)
