"""The one minibatch loop of classifiers, and the device it runs on."""

from __future__ import annotations

import math
import resource
from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from pubc.errors import EnvironmentFailure, InterruptedRun, UnknownNameError, UsageError
from pubc.nets.adam import Adam
from pubc.nets.classifier import Classifier

__all__ = ["Schedule", "fit_classifier", "pick_device"]

Loss = Callable[[Tensor, Tensor], Tensor]
_ROOM = 1 << 30
"""Bytes of addresses that training takes at least: 850 MiB of a small file, with torch."""


@dataclass(frozen=True, slots=True)
class Schedule:
    """How long and how fast to train."""

    epochs: int = 20
    """Passes over the training pairs."""
    batch: int = 1024
    """Pairs per update."""
    learning_rate: float = 1e-3
    """Step size of Adam."""


def fit_classifier(
    network: Classifier,
    pairs: tuple[Tensor, Tensor, Tensor],
    *,
    loss: Loss,
    schedule: Schedule,
    rng: np.random.Generator,
    stop: Callable[[], bool] = lambda: False,
) -> list[float]:
    """Train on pairs that lie in memory, and return the mean loss of each epoch.

    Args:
        network: Trained in place, and left in evaluation mode.
        pairs: Normalised observations, normalised actions, and a mask of positives.
        loss: From `pubc.pu.paper.losses`.
        schedule: Epochs, batch and learning rate.
        rng: Orders the batches.
        stop: Asked before every update.

    Raises:
        InterruptedRun: `stop` said so.
    """
    observations, actions, positive = pairs
    network.train()
    optimiser = Adam(list(network.parameters()), learning_rate=schedule.learning_rate)
    history = []
    for _ in range(schedule.epochs):
        # Added up where it is, and asked for once: every question waits for the device.
        total, updates = torch.zeros((), dtype=torch.float64, device=positive.device), 0
        for rows in _batches(len(positive), schedule.batch, rng, positive.device):
            if stop():
                raise InterruptedRun("Stopped while training.")
            logits = network(observations.index_select(0, rows), actions.index_select(0, rows))
            value = loss(logits, positive.index_select(0, rows))
            torch.autograd.backward(value)
            optimiser.step()
            total += value.detach()
            updates += 1
        history.append(float(total) / max(updates, 1))
        if not math.isfinite(history[-1]):
            break
    network.eval()
    return history


def pick_device(name: str) -> torch.device:
    """The device that `auto`, `cpu` or `cuda` asks for.

    Raises:
        UsageError: CUDA was asked for and is not there.
        EnvironmentFailure: A limit on memory leaves no room to compute.
    """
    if name not in ("auto", "cpu", "cuda"):
        raise UnknownNameError("device", name, ("auto", "cpu", "cuda"))
    limit, _ = resource.getrlimit(resource.RLIMIT_AS)
    if 0 <= limit < _ROOM:
        # A thread of torch that gets no memory ends the process, and nobody can catch that.
        raise EnvironmentFailure(
            f"A limit of {limit >> 20:,} MiB on memory (ulimit -v) leaves no room to train. Give "
            f"at least {_ROOM >> 20:,} MiB."
        )
    present = torch.cuda.is_available()
    if name == "cuda" and not present:
        raise UsageError(
            "No CUDA device was found. Use --device cpu, or auto to take what is there."
        )
    return torch.device("cuda" if present and name != "cpu" else "cpu")


def _batches(
    rows: int, batch: int, rng: np.random.Generator, device: torch.device
) -> Iterator[Tensor]:
    """Every row once in random order; a tail of one row cannot be batch-normed and waits."""
    order = torch.from_numpy(rng.permutation(rows)).to(device)
    for start in range(0, rows, batch):
        part = order[start : start + batch]
        if len(part) > 1:
            yield part
