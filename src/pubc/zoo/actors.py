"""Small networks in plain numpy, fast enough for one observation at a time.

Arrays are named `w0, b0, w1, b1 ...`, layers are `x @ w + b`. Everything is float32 and
every buffer is made once per trajectory: at a few ten thousand numbers per layer the
allocations would cost more than the sums.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

import numpy as np

from pubc.errors import DataError
from pubc.trajectory import Array

__all__ = ["NETWORKS", "GaussianPolicy", "NumpyPolicy", "TanhPolicy", "layers"]

_NOISE_ROWS = 256
_LOG_STD = (-20.0, 2.0)


def layers(arrays: Mapping[str, Array], where: str) -> list[tuple[Array, Array]]:
    """The layers of a network in order, checked to fit one another.

    Raises:
        DataError: A layer is missing, of the wrong shape, or not finite.
    """
    count = sum(name.startswith("w") for name in arrays)
    found: list[tuple[Array, Array]] = []
    for number in range(count):
        w, b = arrays.get(f"w{number}"), arrays.get(f"b{number}")
        before = found[-1][0].shape[1] if found else None
        if (
            w is None
            or b is None
            or w.ndim != 2
            or b.shape != w.shape[1:]
            or before not in (None, w.shape[0])
        ):
            raise DataError(
                f"{where}: layer {number} is missing or does not fit the one before it.",
                code="bad_policy",
                field=f"w{number}",
            )
        if not (np.isfinite(w).all() and np.isfinite(b).all()):
            raise DataError(
                f"{where}: layer {number} holds numbers that are not finite.",
                code="nonfinite",
                field=f"w{number}",
            )
        found.append((np.ascontiguousarray(w, np.float32), np.ascontiguousarray(b, np.float32)))
    if not found:
        raise DataError(f"{where}: no layer w0, b0 in it.", code="bad_policy", field="w0")
    return found


class TanhPolicy:
    """A deterministic actor: hidden layers with ReLU, the last one through tanh (TD3)."""

    outputs = 1
    """Numbers of the last layer per action dimension."""

    def __init__(self, arrays: Mapping[str, Array], action_limit: float, where: str) -> None:
        self._layers = layers(arrays, where)
        # Arrays, not numbers: numpy would look at a number's type again at every step.
        self._limit = np.array(action_limit, dtype=np.float32)
        self.observation_size = int(self._layers[0][0].shape[0])
        self.action_size = int(self._layers[-1][0].shape[1]) // self.outputs

    def begin(self, rng: np.random.Generator) -> Callable[[Array, float], Array]:
        """A fresh actor; this one needs no randomness."""
        forward, limit = self._forward(), self._limit

        def act(observation: Array, reward: float) -> Array:
            out = forward(observation)
            np.tanh(out, out=out)
            scaled: Array = np.multiply(out, limit, out=out)
            return scaled

        return act

    def _forward(self) -> Callable[[Array], Array]:
        hidden = [(w, b, np.zeros_like(b), np.empty_like(b)) for w, b in self._layers[:-1]]
        last, bias = self._layers[-1]
        out = np.empty_like(bias)

        def forward(x: Array) -> Array:
            x = np.asarray(x, dtype=np.float32)
            for w, b, zero, buffer in hidden:
                np.dot(x, w, out=buffer)
                np.add(buffer, b, out=buffer)
                x = np.maximum(buffer, zero, out=buffer)
            np.dot(x, last, out=out)
            return np.add(out, bias, out=out)

        return forward


class GaussianPolicy(TanhPolicy):
    """A sampled actor: mean and log standard deviation, the sample through tanh (SAC)."""

    outputs = 2

    def begin(self, rng: np.random.Generator) -> Callable[[Array, float], Array]:
        """A fresh actor that samples from `rng`."""
        forward, limit, size = self._forward(), self._limit, self.action_size
        low, high = (np.full(size, bound, dtype=np.float32) for bound in _LOG_STD)
        noise = np.empty((_NOISE_ROWS, size), dtype=np.float32)
        row = _NOISE_ROWS

        def act(observation: Array, reward: float) -> Array:
            nonlocal row
            if row == _NOISE_ROWS:
                rng.standard_normal(out=noise, dtype=np.float32)
                row = 0
            out = forward(observation)
            mean, spread = out[:size], out[size:]
            np.minimum(np.maximum(spread, low, out=spread), high, out=spread)
            np.exp(spread, out=spread)
            np.multiply(spread, noise[row], out=spread)
            row += 1
            np.add(mean, spread, out=mean)
            np.tanh(mean, out=mean)
            scaled: Array = np.multiply(mean, limit, out=mean)
            return scaled

        return act


NumpyPolicy = TanhPolicy | GaussianPolicy
"""A policy in the zoo's format."""

NETWORKS: dict[str, type[TanhPolicy]] = {"tanh": TanhPolicy, "gaussian": GaussianPolicy}
"""Kinds of network that a card may name."""
