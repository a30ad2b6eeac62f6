"""The classifier network, one minibatch loop, and weights on disk.

Nothing here touches torch's global random state: weights and batches come from the
generator that is passed in, so a network is a pure function of its data and its key.
"""

from __future__ import annotations

import itertools
import json
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast

import numpy as np
import safetensors
import safetensors.torch
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from pubc.errors import DataError, InterruptedRun, UnknownNameError, UsageError
from pubc.storage import atomic_file

__all__ = [
    "BLOCK",
    "Adam",
    "Classifier",
    "FoldedClassifier",
    "Normaliser",
    "Schedule",
    "fit_classifier",
    "initialise",
    "load_tensors",
    "pick_device",
    "save_tensors",
]

Floats = NDArray[np.float32]
Loss = Callable[[Tensor, Tensor], Tensor]

BLOCK = 4096
"""Rows per scored block; short blocks are padded, so every product has the same shape."""
CLIP = 10.0
"""Normalised inputs beyond this are cut off: an outlier must not drown a network."""
FLOOR = 1e-6
"""Dimensions that vary less than this are shifted but not scaled."""
NARROW = 1e-3
"""Scales are at least this share of the largest absolute value, so that rounding noise of
a near-constant dimension is not blown up into a signal."""


@dataclass(frozen=True, slots=True, eq=False)
class Normaliser:
    """Shifts and scales rows; stored with a network and the same wherever it is used."""

    mean: Floats
    """Subtracted from each dimension."""
    scale: Floats
    """Each dimension is divided by this."""

    @classmethod
    def from_moments(cls, mean: NDArray[Any], deviation: NDArray[Any]) -> Normaliser:
        """From mean and standard deviation of each dimension, with a floor on the latter."""
        floor = np.maximum(FLOOR, NARROW * np.abs(mean))
        scale = np.where(deviation < FLOOR, 1.0, np.maximum(deviation, floor))
        return cls(mean.astype(np.float32), scale.astype(np.float32))

    def __call__(self, rows: NDArray[Any]) -> Floats:
        """Normalised float32 rows, cut off at plus and minus 10."""
        scaled = (np.asarray(rows, dtype=np.float32) - self.mean) / self.scale
        return np.asarray(np.clip(scaled, -CLIP, CLIP), dtype=np.float32)


@dataclass(frozen=True, slots=True)
class Schedule:
    """How long and how fast to train."""

    epochs: int = 20
    """Passes over the training pairs."""
    batch: int = 1024
    """Pairs per update."""
    learning_rate: float = 1e-3
    """Step size of Adam."""


class Classifier(nn.Module):
    """Encodes the state to a few dimensions before it meets the action.

    A plain network over both ignores the action, because states have many more dimensions.
    """

    def __init__(
        self,
        observation_size: int,
        action_size: int,
        *,
        encoder: Sequence[int] = (512, 512, 256, 128),
        head: Sequence[int] = (128, 128),
    ) -> None:
        super().__init__()
        code = 2 * action_size
        self.encoder = _stack([observation_size, *encoder, code])
        self.head = _stack([code + action_size, *head])
        self.last = _empty_linear(head[-1], 1)

    def forward(self, observations: Tensor, actions: Tensor) -> Tensor:
        """The logit of each pair, shape (batch,)."""
        code = self.encoder(observations)
        hidden = self.head(torch.cat([code, actions], dim=1))
        return cast(Tensor, self.last(hidden).squeeze(1))


class FoldedClassifier:
    """A trained classifier with its batch norms folded into its layers, for scoring."""

    def __init__(self, network: Classifier) -> None:
        self.encoder = list(_folded(network.encoder))
        self.head = list(_folded(network.head))
        self.last = (network.last.weight.detach().t(), network.last.bias.detach())

    @torch.no_grad()
    def __call__(self, observations: Tensor, actions: Tensor) -> Tensor:
        """The logit of each pair, shape (batch,)."""
        code = _through(observations, self.encoder)
        hidden = _through(torch.cat([code, actions], dim=1), self.head)
        return torch.addmm(self.last[1], hidden, self.last[0]).squeeze(1)


class Adam:
    """Adam over all parameters as one flat vector: a few operations, whatever their number.

    torch's own optimisers import the whole compiler at their first use, which takes seconds.
    Weight decay is decoupled, as in AdamW.
    """

    def __init__(
        self,
        parameters: Sequence[Tensor],
        *,
        learning_rate: float,
        betas: tuple[float, float] = (0.9, 0.999),
        weight_decay: float = 0.0,
    ) -> None:
        self.learning_rate, self.betas, self.weight_decay = learning_rate, betas, weight_decay
        self.flat = torch.cat([parameter.detach().reshape(-1) for parameter in parameters])
        self.gradient = torch.zeros_like(self.flat)
        self.mean, self.square = torch.zeros_like(self.flat), torch.zeros_like(self.flat)
        self.updates = 0
        start = 0
        for parameter in parameters:
            part = slice(start, start + parameter.numel())
            # Parameters and gradients become windows into the flat vectors.
            parameter.data = self.flat[part].view_as(parameter)
            parameter.grad = self.gradient[part].view_as(parameter)
            start = part.stop

    @torch.no_grad()
    def step(self) -> None:
        """Move the parameters along the gradient, and clear it."""
        self.updates += 1
        one, two = self.betas
        self.mean.lerp_(self.gradient, 1 - one)
        self.square.mul_(two).addcmul_(self.gradient, self.gradient, value=1 - two)
        spread = self.square.sqrt().div_(math.sqrt(1 - two**self.updates)).add_(1e-8)
        if self.weight_decay:
            self.flat.mul_(1 - self.learning_rate * self.weight_decay)
        rate = self.learning_rate / (1 - one**self.updates)
        self.flat.addcdiv_(self.mean, spread, value=-rate)
        self.gradient.zero_()


def initialise(network: nn.Module, rng: np.random.Generator) -> None:
    """Draw the weights of every linear layer; batch norms start neutral."""
    for module in network.modules():
        if isinstance(module, nn.Linear):
            bound = 1 / math.sqrt(module.in_features)
            for parameter in (module.weight, module.bias):
                drawn = rng.uniform(-bound, bound, size=tuple(parameter.shape))
                with torch.no_grad():
                    parameter.copy_(torch.from_numpy(drawn.astype(np.float32)))


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
        loss: From `pubc.losses`.
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
        total, updates = 0.0, 0
        for rows in _batches(len(positive), schedule.batch, rng, positive.device):
            if stop():
                raise InterruptedRun("Stopped while training.")
            logits = network(observations.index_select(0, rows), actions.index_select(0, rows))
            value = loss(logits, positive.index_select(0, rows))
            torch.autograd.backward(value)
            optimiser.step()
            total, updates = total + float(value.detach()), updates + 1
        history.append(total / max(updates, 1))
        if not math.isfinite(history[-1]):
            break
    network.eval()
    return history


def pick_device(name: str) -> torch.device:
    """The device that `auto`, `cpu` or `cuda` asks for.

    Raises:
        UsageError: CUDA was asked for and is not there.
    """
    if name not in ("auto", "cpu", "cuda"):
        raise UnknownNameError("device", name, ("auto", "cpu", "cuda"))
    present = torch.cuda.is_available()
    if name == "cuda" and not present:
        raise UsageError(
            "No CUDA device was found. Use --device cpu, or auto to take what is there."
        )
    return torch.device("cuda" if present and name != "cpu" else "cpu")


def save_tensors(path: Path, tensors: Mapping[str, Tensor], about: Mapping[str, Any]) -> None:
    """Write tensors and JSON facts about them to one safetensors file."""
    plain = {name: tensor.detach().cpu().contiguous() for name, tensor in tensors.items()}
    # One metadata key: safetensors does not keep the order of several.
    data = safetensors.torch.save(plain, metadata={"pubc": json.dumps(about, allow_nan=False)})
    with atomic_file(path, overwrite=True) as temporary:
        temporary.write_bytes(data)


def load_tensors(path: Path) -> tuple[dict[str, Tensor], dict[str, Any]]:
    """Read what `save_tensors` wrote.

    Raises:
        DataError: The file is absent, damaged, or not written by pubc.
    """
    try:
        with safetensors.safe_open(path, framework="pt") as file:
            words = (file.metadata() or {}).get("pubc", "")
            tensors = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118
        about = json.loads(words)
    except (OSError, ValueError, safetensors.SafetensorError) as error:
        raise DataError(
            f"{path}: not readable as the weights of a pubc network ({error}).", code="bad_weights"
        ) from None
    if not isinstance(about, dict):
        raise DataError(f"{path}: its description is not a JSON object.", code="bad_weights")
    return tensors, about


def _empty_linear(inputs: int, outputs: int) -> nn.Linear:
    # The usual constructor would draw from torch's global generator.
    with torch.device("meta"):
        layer = nn.Linear(inputs, outputs)
    return layer.to_empty(device="cpu")


def _stack(sizes: Sequence[int]) -> nn.Sequential:
    layers: list[nn.Module] = []
    for inputs, outputs in itertools.pairwise(sizes):
        layers += [_empty_linear(inputs, outputs), nn.BatchNorm1d(outputs), nn.ReLU(inplace=True)]
    return nn.Sequential(*layers)


def _folded(stack: nn.Sequential) -> Iterator[tuple[Tensor, Tensor]]:
    """Weight (inputs, outputs) and bias of each linear layer with the batch norm after it."""
    layers = list(stack)
    for linear, norm in zip(layers[::3], layers[1::3], strict=True):
        assert isinstance(linear, nn.Linear)
        assert isinstance(norm, nn.BatchNorm1d)
        assert norm.running_mean is not None
        assert norm.running_var is not None
        factor = norm.weight.detach() / torch.sqrt(norm.running_var + norm.eps)
        weight = (linear.weight.detach() * factor[:, None]).t().contiguous()
        yield weight, (linear.bias.detach() - norm.running_mean) * factor + norm.bias.detach()


def _through(rows: Tensor, layers: list[tuple[Tensor, Tensor]]) -> Tensor:
    for weight, bias in layers:
        rows = torch.addmm(bias, rows, weight).relu_()
    return rows


def _batches(
    rows: int, batch: int, rng: np.random.Generator, device: torch.device
) -> Iterator[Tensor]:
    """Every row once in random order; a tail of one row cannot be batch-normed and waits."""
    order = torch.from_numpy(rng.permutation(rows)).to(device)
    for start in range(0, rows, batch):
        part = order[start : start + batch]
        if len(part) > 1:
            yield part
