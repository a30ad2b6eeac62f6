"""Who else is told how training goes: TensorBoard and Weights & Biases.

Both get the whole configuration once, the metrics of every epoch, and what the policy earned
wherever `--evaluate-every` looked.
"""

from __future__ import annotations

import contextlib
import importlib
import json
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

from pubc.errors import MissingExtraError

if TYPE_CHECKING:
    from pubc.policies.training_run import Epoch

__all__ = ["Follower", "numbers_of", "open_followers"]


class Follower(Protocol):
    """Somebody who is told how training goes."""

    def begin(self, configuration: Mapping[str, Any], ends: contextlib.ExitStack) -> None:
        """Training begins; `ends` closes what is opened here."""
        ...

    def tell(self, epoch: Epoch) -> None:
        """An epoch is over."""
        ...


def open_followers(tensorboard: Path | None, wandb: str | None) -> list[Follower]:
    """The followers that were asked for.

    Raises:
        MissingExtraError: The library of one is not installed; nothing was started.
    """
    found: list[Follower] = []
    if tensorboard is not None:
        found.append(_TensorBoard(tensorboard))
    if wandb is not None:
        found.append(_WeightsAndBiases(wandb))
    return found


def numbers_of(epoch: Epoch) -> dict[str, float]:
    """The numbers of an epoch by name: its metrics, and what the policy earned."""
    numbers = dict(epoch.metrics)
    found = epoch.evaluation or {}
    earned = found.get("return", {})
    for name in ("mean", "std", "min", "max"):
        if name in earned:
            numbers[f"return/{name}"] = float(earned[name])
    if found.get("score") is not None:
        numbers["score"] = float(found["score"])
    return numbers


class _TensorBoard:
    def __init__(self, folder: Path) -> None:
        try:
            board: Any = importlib.import_module("torch.utils.tensorboard")
        except ImportError:
            raise MissingExtraError("--tensorboard", "tensorboard") from None
        self._board, self._folder = board, folder

    def begin(self, configuration: Mapping[str, Any], ends: contextlib.ExitStack) -> None:
        self._writer = self._board.SummaryWriter(str(self._folder))
        ends.callback(self._writer.close)
        # TensorBoard shows text as Markdown; four spaces keep the JSON as it is.
        lines = json.dumps(configuration, indent=1, default=str).splitlines()
        self._writer.add_text("configuration", "\n".join(f"    {line}" for line in lines))

    def tell(self, epoch: Epoch) -> None:
        for name, value in numbers_of(epoch).items():
            self._writer.add_scalar(name, value, epoch.number)
        self._writer.flush()


class _WeightsAndBiases:
    def __init__(self, project: str) -> None:
        try:
            import wandb
        except ImportError:
            raise MissingExtraError("--wandb", "wandb") from None
        self._begin = wandb.init
        self._project = project

    def begin(self, configuration: Mapping[str, Any], ends: contextlib.ExitStack) -> None:
        plain = json.loads(json.dumps(configuration, default=str))
        self._run = self._begin(project=self._project, config=plain)
        ends.callback(self._run.finish)

    def tell(self, epoch: Epoch) -> None:
        self._run.log({"epoch": epoch.number, **numbers_of(epoch)})
