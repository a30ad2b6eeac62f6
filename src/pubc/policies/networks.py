"""A trained network as a policy: plain numpy to act, torch to export.

One form serves every learner but the Decision Transformer: layers with ReLU between, tanh at
the end, the observation's normaliser in front and the action's range behind. PLAS adds a
decoder that turns a latent action into an action, without a tanh of its own.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from pubc.acting.rollout import Actor
from pubc.errors import DataError
from pubc.nets import CLIP, Normaliser
from pubc.policies.cloning.fused_steps import LOG_STD
from pubc.policies.predict import Predictor
from pubc.policies.training_rows import ActionRange
from pubc.trajectory import Array

__all__ = ["FORM", "Layer", "NetworkPolicy", "PolicyModule", "layers_from_flat"]

FORM = "network"
"""What config.json calls this kind of policy."""

Floats = NDArray[np.float32]
Layer = tuple[Floats, Floats]
"""Weight (inputs, outputs) and bias (outputs,)."""

LATENT = 2.0
"""PLAS keeps latent actions within plus and minus this."""


def layers_from_flat(flat: Array, sizes: Sequence[int]) -> tuple[Layer, ...]:
    """Cut a flat vector of parameters into layers; the bias is the last row of each.

    The last layer lies in it the other way round, as `flat.split` has it.
    """
    layers, start = [], 0
    for inputs, outputs in itertools.pairwise(sizes):
        stop = start + (inputs + 1) * outputs
        part = np.asarray(flat[start:stop], dtype=np.float32)
        if stop == len(flat):
            rows = np.ascontiguousarray(part.reshape(outputs, inputs + 1).T)
        else:
            rows = part.reshape(inputs + 1, outputs)
        layers.append((rows[:-1].copy(), rows[-1].copy()))
        start = stop
    return tuple(layers)


@dataclass(frozen=True, slots=True, eq=False)
class NetworkPolicy(Predictor):
    """A feed-forward policy."""

    normaliser: Normaliser
    """Applied to every observation."""
    actions: ActionRange
    """Brings the network's output to actions."""
    layers: tuple[Layer, ...]
    """From the observation to the output."""
    decoder: tuple[Layer, ...] = ()
    """PLAS: from observation and latent action to the action."""
    gaussian: bool = False
    """Whether the output has a log standard deviation beside each mean."""
    stochastic: bool = False
    """Whether to sample from the Gaussian; otherwise its mean acts."""

    @property
    def observation_size(self) -> int:
        """Dimensions of one observation."""
        return len(self.normaliser.mean)

    @property
    def action_size(self) -> int:
        """Dimensions of one action."""
        return len(self.actions.low)

    def begin(self, rng: np.random.Generator) -> Actor:
        """A fresh actor; it draws from `rng` only if the policy is stochastic."""
        first = _Forward(self.layers)
        second = _Forward(self.decoder, squash=False) if self.decoder else None
        mean, scale = self.normaliser.mean, self.normaliser.scale
        size, latent = self.action_size, np.float32(LATENT)

        def act(observation: Array, reward: float) -> Array:
            x = (np.asarray(observation, dtype=np.float32) - mean) / scale
            np.clip(x, -CLIP, CLIP, out=x)
            units = first(x)
            if second is not None:
                units = second(np.concatenate([x, latent * units]))
            if self.gaussian and self.stochastic:
                width = _deviation(units[size:])
                noise = rng.standard_normal(size, dtype=np.float32)
                return self.actions.from_unit(units[:size] + width * noise)
            return self.actions.from_unit(units[:size])

        return act

    def units(self, observations: Array) -> Floats:
        """The network's output for many observations at once, through tanh."""
        x = self.normaliser(observations)
        units = _through(x, self.layers)
        if self.decoder:
            joined = np.concatenate([x, LATENT * units], axis=1)
            units = _through(joined, self.decoder, squash=False)
        return units

    def act(self, observations: Array) -> Floats:
        """The most likely action for each of many observations."""
        return self.actions.from_unit(self.units(observations)[:, : self.action_size])

    def log_likelihood(self, observations: Array, actions: Array) -> NDArray[np.float64]:
        """Log density of each action; the deterministic head counts as a unit Gaussian."""
        units, size = self.units(observations).astype(np.float64), self.action_size
        width = _deviation(units[:, size:]) if self.gaussian else np.ones(1)
        error = (self.actions.to_unit(actions) - units[:, :size]) / width
        density = -0.5 * np.square(error) - np.log(width) - 0.5 * math.log(2 * math.pi)
        total = density.sum(axis=1) - np.log(self.actions.half.astype(np.float64)).sum()
        return np.asarray(total, dtype=np.float64)

    def tensors(self) -> dict[str, Array]:
        """Every array of the policy by name, for `policy.safetensors`."""
        found: dict[str, Array] = {
            "observation.mean": self.normaliser.mean,
            "observation.scale": self.normaliser.scale,
            "action.low": self.actions.low,
            "action.high": self.actions.high,
        }
        for prefix, layers in (("layers", self.layers), ("decoder", self.decoder)):
            for index, (weight, bias) in enumerate(layers):
                found[f"{prefix}.{index}.weight"] = weight
                found[f"{prefix}.{index}.bias"] = bias
        return found

    def config(self) -> dict[str, Any]:
        """What `config.json` has to say beside the arrays."""
        return {
            "form": FORM,
            "head": "gaussian" if self.gaussian else "deterministic",
            "hidden": [len(bias) for _, bias in self.layers[:-1]],
        }

    @classmethod
    def build(cls, config: Mapping[str, Any], tensors: Mapping[str, Array]) -> NetworkPolicy:
        """The policy that `config` and `tensors` describe.

        Raises:
            DataError: An array is missing, of the wrong shape, or not finite.
        """
        taken = {name: _array(tensors, name) for name in _NEEDED}
        policy = cls(
            Normaliser(taken["observation.mean"], taken["observation.scale"]),
            ActionRange(taken["action.low"], taken["action.high"]),
            _layers(tensors, "layers"),
            _layers(tensors, "decoder"),
            gaussian=config.get("head") == "gaussian",
        )
        policy._check()
        return policy

    def _check(self) -> None:
        outputs = len((self.decoder or self.layers)[-1][1])
        wanted = self.action_size * (2 if self.gaussian else 1)
        inputs = self.layers[0][0].shape[0]
        if not self.normaliser.fits():
            raise DataError(_SCALE, code="bad_policy", field="observation.scale")
        ends = self.actions.low.shape == self.actions.high.shape
        if inputs != self.observation_size or outputs != wanted or not ends:
            raise DataError(
                f"The policy's layers take {inputs} numbers to {outputs}, its normaliser and "
                f"range speak of {self.observation_size} to {wanted} "
                f"({len(self.actions.low)} lowest and {len(self.actions.high)} highest actions).",
                code="bad_policy",
            )

    def module(self) -> PolicyModule:
        """The same policy for torch, the normaliser and the range baked in."""
        return PolicyModule(self)


class PolicyModule(nn.Module):
    """A network policy as one torch module: observations in, actions out."""

    mean: Tensor
    scale: Tensor
    low: Tensor
    high: Tensor
    centre: Tensor
    reach: Tensor

    def __init__(self, policy: NetworkPolicy) -> None:
        super().__init__()
        self.size = policy.action_size
        for name, array in {
            "mean": policy.normaliser.mean,
            "scale": policy.normaliser.scale,
            "low": policy.actions.low,
            "high": policy.actions.high,
            "centre": policy.actions.centre,
            "reach": policy.actions.half,
        }.items():
            self.register_buffer(name, torch.from_numpy(np.array(array, dtype=np.float32)))
        self.first = _sequence(policy.layers)
        self.second = _sequence(policy.decoder, squash=False) if policy.decoder else None

    def forward(self, observations: Tensor) -> Tensor:
        """The most likely action of each row."""
        x = torch.clamp((observations - self.mean) / self.scale, -CLIP, CLIP)
        units = self.first(x)
        if self.second is not None:
            units = self.second(torch.cat([x, LATENT * units], dim=1))
        wide = self.centre + self.reach * units[:, : self.size]
        return torch.minimum(torch.maximum(wide, self.low), self.high)


class _Forward:
    """One observation through the layers, with buffers made once."""

    def __init__(self, layers: Sequence[Layer], *, squash: bool = True) -> None:
        self._layers = [(weight, bias, np.empty_like(bias)) for weight, bias in layers]
        self._squash = squash

    def __call__(self, x: Floats) -> Floats:
        for weight, bias, out in self._layers[:-1]:
            np.dot(x, weight, out=out)
            np.add(out, bias, out=out)
            x = np.maximum(out, 0, out=out)
        weight, bias, out = self._layers[-1]
        np.dot(x, weight, out=out)
        np.add(out, bias, out=out)
        return np.tanh(out, out=out) if self._squash else out


_SCALE = "The policy's observation.scale must be one number above zero for each of its mean."
_NEEDED = ("observation.mean", "observation.scale", "action.low", "action.high")


def _array(tensors: Mapping[str, Array], name: str, axes: int = 1) -> Floats:
    array = tensors.get(name)
    if array is None or array.ndim != axes or not np.isfinite(array).all():
        raise DataError(
            f"The policy's {name} is missing, of the wrong shape, or not finite.",
            code="bad_policy",
            field=name,
        )
    return np.ascontiguousarray(array, dtype=np.float32)


def _layers(tensors: Mapping[str, Array], prefix: str) -> tuple[Layer, ...]:
    found: list[Layer] = []
    while f"{prefix}.{len(found)}.weight" in tensors or (prefix == "layers" and not found):
        index = len(found)
        weight = _array(tensors, f"{prefix}.{index}.weight", axes=2)
        bias = _array(tensors, f"{prefix}.{index}.bias")
        if bias.shape != weight.shape[1:] or (found and found[-1][1].shape != weight.shape[:1]):
            raise DataError(
                f"The policy's layer {prefix}.{index} does not fit its neighbours.",
                code="bad_policy",
                field=f"{prefix}.{index}.weight",
            )
        found.append((weight, bias))
    return tuple(found)


def _through(x: Floats, layers: Sequence[Layer], *, squash: bool = True) -> Floats:
    for weight, bias in layers[:-1]:
        x = np.maximum(x @ weight + bias, 0)
    weight, bias = layers[-1]
    last = x @ weight + bias
    return np.asarray(np.tanh(last) if squash else last, dtype=np.float32)


def _deviation(units: Array) -> Array:
    middle, reach = sum(LOG_STD) / 2, (LOG_STD[1] - LOG_STD[0]) / 2
    return np.asarray(np.exp(middle + reach * units))


def _sequence(layers: Sequence[Layer], *, squash: bool = True) -> nn.Sequential:
    parts: list[nn.Module] = []
    for weight, bias in layers:
        # The usual constructor would draw from torch's global generator.
        inputs, outputs = weight.shape
        linear = nn.Linear(inputs, outputs, device="meta").to_empty(device="cpu")
        with torch.no_grad():
            linear.weight.copy_(torch.from_numpy(weight.T.copy()))
            linear.bias.copy_(torch.from_numpy(bias.copy()))
        parts += [linear, nn.ReLU()]
    return nn.Sequential(*parts[:-1], *([nn.Tanh()] if squash else []))
