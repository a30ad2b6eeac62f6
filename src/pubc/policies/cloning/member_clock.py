"""When a member of a stack of cloning runs does what: its epochs, its steps, its early stop.

The clock of a member is that of the training alone: its epochs are those of its own data, and
its learning rate is read and its held-out steps are judged when it would do so alone.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pubc.policies.cloning.bc import CHECKED, CHUNK, Plan, hold_out, learning_rate
from pubc.streams import stream
from pubc.trajectory import TrajectorySet

__all__ = ["MemberClock"]

Integers = NDArray[np.int64]


class MemberClock:
    """Counts the updates of one member from 0."""

    def __init__(self, trajectories: TrajectorySet, chosen: Plan, random_seed: int) -> None:
        self.plan, self._random_seed = chosen, random_seed
        out = np.repeat(
            hold_out(len(trajectories), chosen.held_out, random_seed), trajectories.lengths
        )
        self.kept: Integers = np.flatnonzero(~out)
        """Steps that it trains on."""
        held = np.flatnonzero(out)
        some = np.linspace(0, len(held) - 1, CHECKED) if len(held) else np.zeros(0)
        self.held: Integers = held[np.unique(some.astype(np.int64))]
        """Steps that it is judged on."""
        self.per_epoch = max(1, len(self.kept) // chosen.batch_size)
        self.total = chosen.epochs * self.per_epoch
        """Updates unless it settles earlier."""
        self._best, self._waited, self._judged = math.inf, 0, 0
        self._order: tuple[int, Integers] = (-1, self.kept)

    @property
    def settled(self) -> bool:
        """Whether the held-out loss has stopped falling."""
        return bool(len(self.held)) and self._waited >= self.plan.patience

    def trains(self, at: int) -> bool:
        """Whether the member makes update `at`, or would have ended before."""
        return at < self.total and not self.settled

    def next_stop(self, at: int) -> int:
        """Before which update something is decided: the member is judged, or is done."""
        return (at // self.per_epoch + 1) * self.per_epoch if len(self.held) else self.total

    def is_judged(self, at: int) -> bool:
        """Whether the member looks at its held-out steps before update `at`."""
        return bool(len(self.held)) and at % self.per_epoch == 0 and self.trains(at - 1)

    def judged(self, loss: float) -> bool:
        """Remember a held-out loss; whether it is the lowest so far."""
        self._judged += 1
        if loss < self._best:
            self._best, self._waited = loss, 0
            return True
        self._waited += 1
        return False

    def epochs_after(self, updates: int) -> int:
        """Epochs that were made when the stack has made so many updates."""
        if len(self.held):
            return self._judged
        return min(self.plan.epochs, math.ceil(updates / self.per_epoch))

    def rate(self, at: int) -> float:
        """The learning rate before update `at`."""
        return learning_rate(self.plan, min(at, self.total) / self.per_epoch)

    def shares(self, at: int, stop: int) -> NDArray[np.float32]:
        """How much of a whole step each update from `at` to `stop` takes."""
        shares = np.ones(stop - at, dtype=np.float32)
        if self.plan.falling:
            updates = np.arange(at, stop)
            # As a training alone reads it: once in so many updates of an epoch.
            read = updates - updates % self.per_epoch % min(CHUNK, self.per_epoch)
            for when in np.unique(read).tolist():
                shares[read == when] = self.rate(when) / self.plan.learning_rate
        return shares

    def positions(self, at: int, stop: int) -> Integers:
        """The steps of each update from `at` to `stop`, shape (updates, batch)."""
        size, found = self.plan.batch_size, []
        for begin in range(at - at % self.per_epoch, stop, self.per_epoch):
            first, end = max(at, begin), min(stop, begin + self.per_epoch)
            order = self._of_epoch(begin // self.per_epoch)
            rows = order[(first - begin) * size : (end - begin) * size]
            # A member with less than a batch repeats some of its steps.
            found.append(np.resize(rows, (end - first, size)))
        return np.concatenate(found)

    def state(self) -> dict[str, Any]:
        """What training changes, as JSON values; JSON has no infinity."""
        best = None if math.isinf(self._best) else self._best
        return {"best_loss": best, "waited": self._waited, "judged": self._judged}

    def restore(self, facts: dict[str, Any]) -> None:
        """Go back to a state."""
        self._best = math.inf if facts["best_loss"] is None else float(facts["best_loss"])
        self._waited, self._judged = int(facts["waited"]), int(facts["judged"])

    def _of_epoch(self, epoch: int) -> Integers:
        if self._order[0] != epoch:
            rng = stream(self._random_seed, "bc", "order", epoch)
            self._order = epoch, self.kept[rng.permutation(len(self.kept))]
        return self._order[1]
