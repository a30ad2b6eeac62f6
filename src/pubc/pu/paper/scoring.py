"""Applying trained networks to a whole set, block by block.

Blocks have one fixed shape and a trajectory's sum is taken in double precision in the order
of its steps, so that neither the number of workers nor the place of a trajectory in a block
changes what is computed.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from typing import Literal

import numpy as np
import torch
from numpy.typing import NDArray

from pubc.errors import InterruptedRun
from pubc.nets import BLOCK, Classifier, FoldedClassifier, Normaliser
from pubc.pu.judge import Bench
from pubc.threads import one_thread, threads
from pubc.trajectory import Columns, TrajectorySet

__all__ = ["Rule", "Scorer", "score_steps", "score_trajectories", "step_values"]

Floats32 = NDArray[np.float32]
Floats = NDArray[np.float64]
Rule = Literal["mean", "sum_log"]
"""Mean of F over a trajectory (Equation 2), or the appendix's sum of log F."""


@dataclass(frozen=True, slots=True, eq=False)
class Scorer:
    """A trained classifier ready to score: its layers, its normalisers and its device."""

    network: FoldedClassifier
    """The layers with batch norms folded in."""
    observations: Normaliser
    """For states."""
    actions: Normaliser
    """For actions."""
    device: torch.device
    """Where the layers are."""

    @classmethod
    def of(cls, network: Classifier, observations: Normaliser, actions: Normaliser) -> Scorer:
        """Make a trained network ready; it stays on the device that it is on."""
        device = next(network.parameters()).device
        return cls(FoldedClassifier(network), observations, actions, device)

    def __call__(self, columns: Columns) -> Floats32:
        """The logit of every row."""
        rows = len(columns.observations)
        logits = np.empty(rows, np.float32)
        for start in range(0, rows, BLOCK):
            stop = min(start + BLOCK, rows)
            states = self._block(self.observations, columns.observations[start:stop])
            acts = self._block(self.actions, columns.actions[start:stop])
            logits[start:stop] = self.network(states, acts)[: stop - start].cpu().numpy()
        return logits

    def _block(self, normaliser: Normaliser, rows: NDArray[np.floating]) -> torch.Tensor:
        full = np.zeros((BLOCK, rows.shape[1]), np.float32)
        full[: len(rows)] = normaliser(rows)
        return torch.from_numpy(full).to(self.device)


def score_steps(
    scorers: Sequence[Callable[[Columns], Floats32]], trajectories: TrajectorySet, bench: Bench
) -> Iterator[Floats32]:
    """Yield the values of each block of steps in order, shape (members, steps)."""

    def work(columns: Columns) -> Floats32:
        if bench.stopped.is_set():
            raise InterruptedRun("Stopped while scoring.")
        return np.stack([scorer(columns) for scorer in scorers])

    with threads(1), ThreadPoolExecutor(bench.hands, initializer=one_thread) as pool:
        waiting: deque[Future[Floats32]] = deque()
        try:
            for block in trajectories.blocks():
                waiting.append(pool.submit(work, _copy(block)))
                if len(waiting) > bench.hands:
                    yield waiting.popleft().result()
            while waiting:
                yield waiting.popleft().result()
        except BaseException:
            bench.stopped.set()
            raise


def score_trajectories(
    scorers: Sequence[Callable[[Columns], Floats32]],
    trajectories: TrajectorySet,
    bench: Bench,
    *,
    rule: Rule = "mean",
) -> Floats:
    """Confidence of each scorer in each trajectory, shape (members, trajectories)."""
    totals = np.zeros((len(scorers), len(trajectories)))
    owner_of = np.repeat(np.arange(len(trajectories), dtype=np.int32), trajectories.lengths)
    start = 0
    for logits in score_steps(scorers, trajectories, bench):
        owners = owner_of[start : start + logits.shape[1]]
        for total, row in zip(totals, step_values(logits, rule), strict=True):
            np.add.at(total, owners, row)
        start += logits.shape[1]
    return totals / trajectories.lengths if rule == "mean" else totals


def step_values(logits: Floats32, rule: Rule) -> Floats:
    """What each step adds to its trajectory: F itself, or log F."""
    wide = logits.astype(np.float64)
    if rule == "mean":
        return np.asarray(0.5 * (1.0 + np.tanh(0.5 * wide)))
    return np.asarray(-np.logaddexp(0.0, -wide))


def _copy(block: Columns) -> Columns:
    """Float32 copies of what a scorer reads, so that mapped pages can be given back."""
    return Columns(
        np.array(block.observations, dtype=np.float32),
        np.array(block.actions, dtype=np.float32),
        None,
        np.array(block.terminals),
        np.array(block.timeouts),
    )
