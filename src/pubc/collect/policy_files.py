"""Policies from files: ours, TorchScript, TriFinger arrays, stable-baselines3 archives.

What a file may do differs. Our safetensors and the array files are numbers. TorchScript
holds code of its own small language, loaded only because the user named the file. A
stable-baselines3 archive holds pickles, which can run anything: it is opened only when the
user said that they trust it.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from pubc import zoo
from pubc.acting.rollout import Actor, Environment, Policy
from pubc.errors import DataError, UsageError
from pubc.storage import hash_file
from pubc.trajectory import Array
from pubc.zoo.actors import layers

__all__ = ["NoisyPolicy", "check_fits", "fingerprint", "open_policy"]

_OBSERVATION_LIMIT = 5.0


def open_policy(reference: str, *, trusted: bool = False) -> Policy:
    """A policy by zoo name or file.

    Raises:
        UsageError: No such file, an unknown kind of file, or pickles without trust.
        DataError: The file is damaged.
    """
    if reference in zoo.names():
        return zoo.load(reference)
    path = Path(reference)
    if not path.is_file():
        raise UsageError(
            f"{reference} is neither a zoo policy (`pubc zoo` lists them) nor a policy file."
        )
    if path.suffix == ".zip":
        if not trusted:
            raise UsageError(
                f"{path} is a stable-baselines3 archive: it holds pickles, which can run any "
                "code when opened. If you trust its origin, pass --i-trust-this-pickle."
            )
        from pubc.collect.train_experts import read_archive

        return read_archive(path)
    if path.suffix not in _READERS:
        raise UsageError(
            f"{path}: pubc reads policies from .safetensors (its own), .npz (TriFinger "
            "arrays), .pt (TorchScript) and .zip (stable-baselines3) files."
        )
    return _READERS[path.suffix](path)


def fingerprint(reference: str) -> str:
    """SHA-256 of the weights behind a reference."""
    path = zoo.path_of(reference) if reference in zoo.names() else Path(reference)
    if not path.is_file():
        raise UsageError(
            f"{reference} is neither a zoo policy (`pubc zoo` lists them) nor a policy file."
        )
    return hash_file(path)


def check_fits(policy: Policy, name: str, environment: Environment) -> None:
    """Refuse a policy whose sizes are not the environment's.

    Raises:
        DataError: It observes or acts in another number of dimensions.
    """
    for word, plural in (("observation", "observations"), ("action", "actions")):
        wants = getattr(policy, f"{word}_size", None)
        has = getattr(environment, f"{word}_size")
        if wants is not None and wants != has:
            raise DataError(
                f"The policy {name!r} was made for {wants} {plural}, but {environment.name} "
                f"has {has}. Choose the environment that it was trained in, with the same "
                "arguments.",
                code="wrong_size",
                field=plural,
            )


@dataclass(frozen=True, slots=True)
class NoisyPolicy:
    """A policy with Gaussian noise on its actions."""

    policy: Policy
    """Who acts."""
    scale: Array
    """Standard deviation per action dimension."""

    def begin(self, rng: np.random.Generator) -> Actor:
        """A fresh actor; policy and noise draw from the same stream."""
        inner, scale = self.policy.begin(rng), self.scale

        def act(observation: Array, reward: float) -> Array:
            noise = scale * rng.standard_normal(len(scale), dtype=np.float32)
            return np.asarray(inner(observation, reward) + noise, dtype=np.float32)

        return act


class TriFingerPolicy:
    """A TriFinger policy as arrays: chosen observations, four hidden layers with ELU."""

    def __init__(self, path: Path) -> None:
        arrays = _arrays(path)
        needed = {"obs_index", "obs_scale", "obs_offset", "out_scale", "out_offset"}
        missing = ", ".join(sorted(needed - set(arrays)))
        if missing:
            raise DataError(
                f"{path}: not a TriFinger policy; it lacks {missing}.",
                code="bad_policy",
            )
        self._layers = layers({k: v for k, v in arrays.items() if k[0] in "wb"}, str(path))
        self._index = arrays["obs_index"].astype(np.int64)
        self._least = int(self._index.max()) + 1
        self._in = arrays["obs_scale"], arrays["obs_offset"]
        self._out = arrays["out_scale"], arrays["out_offset"]
        self._path = path
        self.action_size = int(self._layers[-1][0].shape[1])

    def begin(self, rng: np.random.Generator) -> Actor:
        """A fresh actor; this one needs no randomness."""
        return self._act

    def _act(self, observation: Array, reward: float) -> Array:
        if len(observation) < self._least:
            raise DataError(
                f"{self._path} reads observation {self._least - 1}, but there are "
                f"{len(observation)}. It is a policy of another task.",
                code="wrong_size",
                field="observations",
            )
        x = observation[self._index] * self._in[0] + self._in[1]
        x = np.clip(x, -_OBSERVATION_LIMIT, _OBSERVATION_LIMIT).astype(np.float32)
        for w, b in self._layers[:-1]:
            x = x @ w + b
            x = np.where(x > 0, x, np.expm1(np.minimum(x, 0)))
        w, b = self._layers[-1]
        limited = np.clip(x @ w + b, -1, 1)
        return np.asarray(limited * self._out[0] + self._out[1], dtype=np.float32)


class TorchScriptPolicy:
    """A TorchScript module that maps a batch of observations to a batch of actions."""

    def __init__(self, path: Path) -> None:
        import torch

        self._torch: Any = torch
        self._path = path
        try:
            with warnings.catch_warnings():
                # Newer torch announces that TorchScript is old; so are the published policies.
                warnings.simplefilter("ignore")
                self._module = torch.jit.load(str(path), map_location="cpu").eval()  # type: ignore[no-untyped-call]
        except RuntimeError as error:
            first = str(error).splitlines()[0]
            raise DataError(
                f"{path}: not readable as TorchScript ({first}).", code="bad_policy"
            ) from None

    def begin(self, rng: np.random.Generator) -> Actor:
        """A fresh actor; TorchScript draws its own randomness, if any."""
        return self._act

    def _act(self, observation: Array, reward: float) -> Array:
        torch = self._torch
        try:
            with torch.inference_mode():
                batch = torch.from_numpy(np.ascontiguousarray(observation, np.float32))[None]
                action: Array = self._module(batch).numpy().astype(np.float32)[0]
                return action
        except RuntimeError as error:
            last = str(error).strip().splitlines()[-1]
            raise DataError(
                f"{self._path}: it fails on {len(observation)} observations ({last}). Choose "
                "the environment that it was trained in.",
                code="wrong_size",
                field="observations",
            ) from None


def _arrays(path: Path) -> dict[str, Array]:
    try:
        with np.load(path, allow_pickle=False) as archive:
            return {name: archive[name] for name in archive.files}
    except (ValueError, OSError, KeyError, EOFError) as error:
        raise DataError(f"{path}: not readable ({error}).", code="bad_policy") from None


_READERS: dict[str, Callable[[Path], Policy]] = {
    ".safetensors": zoo.read,
    ".npz": TriFingerPolicy,
    ".pt": TorchScriptPolicy,
}
