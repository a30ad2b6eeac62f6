"""Train experts the paper's way: TD3 or SAC of stable-baselines3, recommended settings.

A run writes two policies in the zoo's format: the expert at the end, and the weak policy, a
checkpoint on the way. Train with two random seeds for E+ and E-. This is also the door to
archives that stable-baselines3 saved.
"""

from __future__ import annotations

import contextlib
import json
import os
import warnings
import zipfile
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import numpy as np

from pubc import zoo
from pubc.acting.environments import spec
from pubc.acting.environments.gym import make_wrapped
from pubc.acting.rollout import Actor
from pubc.errors import DataError, MissingExtraError, PubcError, UsageError
from pubc.storage import claim, read_manifest, sealed_file
from pubc.trajectory import Array

__all__ = ["ArchivePolicy", "Training", "read_archive", "training"]

KIND = "expert"
Algorithm = Literal["td3", "sac"]

_ASKED = "training"
"""What the manifest of a policy says of the training that wrote it."""
_WARM_UP = 10_000
"""Random steps before learning, as the tuned settings for MuJoCo have it."""
_EXPLORATION = 0.1
"""Standard deviation of TD3's exploration noise."""


@dataclass(frozen=True, slots=True)
class Training:
    """How far a training run is."""

    steps: int
    """Environment steps so far."""
    mean_return: float
    """Mean total reward of the last trajectories, with exploration; NaN before the first."""
    written: Path | None = None
    """A policy that was just written."""


def training(
    environment: str,
    out: Path | str,
    *,
    algorithm: Algorithm = "td3",
    steps: int = 1_000_000,
    weak_at: int | None = None,
    random_seed: int = 0,
    overwrite: bool = False,
) -> Iterator[Training]:
    """Train an expert and a weak policy.

    Args:
        environment: Name in `pubc.acting.environments`, or a Gymnasium id.
        out: Folder for `expert.safetensors` and `weak.safetensors` with their cards.
        algorithm: `td3` (the paper's Ant) or `sac` (its Humanoid).
        steps: Environment steps, as many updates.
        weak_at: Steps after which the weak policy is written; a fifth of `steps` if omitted.
        random_seed: Of networks, environment and exploration.
        overwrite: Replace policies in `out`.

    Yields:
        Progress, with `written` after each policy.

    Raises:
        MissingExtraError: stable-baselines3 is not installed.
        UsageError: A policy exists in `out`, or the environment is not for training.
    """
    out = Path(out)
    weak_at = max(1, steps // 5) if weak_at is None else weak_at
    if steps < 1 or not 0 < weak_at <= steps:
        raise UsageError(f"The weak policy must lie within the {steps:,} steps. Got {weak_at:,}.")
    asked = {_ASKED: [environment, algorithm, steps, weak_at, random_seed]}
    sealed = _claim(out, asked, overwrite=overwrite)
    model = _model(environment, algorithm, steps, random_seed)
    marks = {weak_at: "weak", steps: "expert"}
    block = max(1, min(5000, steps // 20))
    at = 0
    while at < steps:
        goal = min([mark for mark in marks if mark > at] + [at + block])
        with warnings.catch_warnings():
            # Its remarks on thread pools and progress bars are not about the user's run.
            warnings.simplefilter("ignore")
            model.learn(goal - at, reset_num_timesteps=False)
        at = goal
        yield Training(at, _mean_return(model))
        if at in marks:
            path = out / f"{marks[at]}.safetensors"
            arrays = _arrays(model, algorithm)
            card = _card(environment, algorithm, at, random_seed, marks[at], arrays, model)
            # Only what is sealed is replaced by the next training.
            with (
                sealed_file(path.with_suffix(".json"), **sealed) as words,
                sealed_file(path, **sealed) as place,
            ):
                zoo.write(place, arrays, card)
                place.with_suffix(".json").rename(words)
            yield Training(at, _mean_return(model), path)


def _files(out: Path) -> list[Path]:
    return [
        out / f"{role}{end}" for role in ("weak", "expert") for end in (".safetensors", ".json")
    ]


def _claim(out: Path, asked: Mapping[str, Any], *, overwrite: bool) -> dict[str, Any]:
    """See that the policies may be written; how their files are sealed."""
    overwrite = overwrite or _was_stopped(out, asked)
    for path in _files(out):
        claim(path, KIND, force=overwrite, file=True)
    return {"kind": KIND, "overwrite": overwrite, "about": asked}


def _was_stopped(out: Path, asked: Mapping[str, Any]) -> bool:
    """Whether the same training was stopped before its end: it goes over what it left."""
    there = [path for path in _files(out) if os.path.lexists(path)]
    if len(there) == len(_files(out)):
        return False
    with contextlib.suppress(PubcError):
        return all(read_manifest(path).get(_ASKED) == asked[_ASKED] for path in there)
    return False


def _model(environment: str, algorithm: Algorithm, steps: int, random_seed: int) -> Any:
    sb3 = _stable_baselines()
    from stable_baselines3.common.logger import Logger
    from stable_baselines3.common.monitor import Monitor
    from stable_baselines3.common.noise import NormalActionNoise

    wrapped = make_wrapped(environment)
    low, high = wrapped.action_space.low, wrapped.action_space.high
    if not np.array_equal(low, -high) or len(set(high.tolist())) != 1:
        raise UsageError(
            f"Training needs actions between -x and x in every dimension. {environment} takes "
            f"{low.tolist()} to {high.tolist()}."
        )
    size = len(high)
    noise = NormalActionNoise(np.zeros(size), np.full(size, _EXPLORATION))
    chosen = {"td3": sb3.TD3, "sac": sb3.SAC}[algorithm]
    model = chosen(
        "MlpPolicy",
        Monitor(wrapped),
        learning_starts=min(_WARM_UP, steps // 10),
        action_noise=noise if algorithm == "td3" else None,
        train_freq=1,
        gradient_steps=1,
        buffer_size=min(1_000_000, steps),
        seed=random_seed,
    )
    # Otherwise every call of `learn` leaves an empty folder among the temporary files.
    model.set_logger(Logger(folder=None, output_formats=[]))
    return model


def _stable_baselines() -> Any:
    try:
        import stable_baselines3
    except ImportError:
        raise MissingExtraError("Training and reading stable-baselines3 policies", "sb3") from None
    return stable_baselines3


def _mean_return(model: Any) -> float:
    recent = [one["r"] for one in model.ep_info_buffer or ()]
    return float(np.mean(recent)) if recent else float("nan")


def _arrays(model: Any, algorithm: Algorithm) -> dict[str, Array]:
    """The actor's layers as `x @ w + b`; SAC's two heads side by side."""
    actor = model.policy.actor
    body = actor.mu if algorithm == "td3" else actor.latent_pi
    linear = [layer for layer in body if hasattr(layer, "weight")]
    pairs = [(_numpy(layer.weight).T, _numpy(layer.bias)) for layer in linear]
    if algorithm == "sac":
        heads = (actor.mu, actor.log_std)
        weight = np.concatenate([_numpy(head.weight).T for head in heads], axis=1)
        pairs.append((weight, np.concatenate([_numpy(head.bias) for head in heads])))
    named = ((f"{letter}{i}", array) for i, pair in enumerate(pairs) for letter, array in
             zip("wb", pair, strict=True))  # fmt: skip
    return dict(named)


def _numpy(tensor: Any) -> Array:
    array: Array = tensor.detach().cpu().numpy()
    return array


def _card(
    environment: str,
    algorithm: Algorithm,
    steps: int,
    random_seed: int,
    role: str,
    arrays: dict[str, Array],
    model: Any,
) -> dict[str, Any]:
    found = spec(environment)
    sizes = [int(arrays[f"b{i}"].shape[0]) for i in range(len(arrays) // 2)]
    return {
        "name": f"{environment}/{role}",
        "environment": environment,
        "environment_id": found.id,
        "environment_arguments": dict(found.arguments),
        "role": {"expert": "E", "weak": "W"}[role],
        "algorithm": algorithm,
        "training_steps": steps,
        "training_random_seed": random_seed,
        "network": {"td3": "tanh", "sac": "gaussian"}[algorithm],
        "hidden_sizes": sizes[:-1],
        "observation_size": int(arrays["w0"].shape[0]),
        "action_size": int(model.action_space.shape[0]),
        "action_limit": float(model.action_space.high[0]),
        "acts": {"td3": "deterministic", "sac": "sampled"}[algorithm],
    }


class ArchivePolicy:
    """A policy out of a stable-baselines3 archive; stochastic ones sample."""

    def __init__(self, model: Any, *, deterministic: bool) -> None:
        self._model = model
        self._deterministic = deterministic
        self.observation_size = int(model.observation_space.shape[0])
        self.action_size = int(model.action_space.shape[0])

    def begin(self, rng: np.random.Generator) -> Actor:
        """A fresh actor; torch's generator is set from `rng`, as these policies use it."""
        import torch

        torch.manual_seed(int(rng.integers(2**63)))

        def act(observation: Array, reward: float) -> Array:
            action, _ = self._model.predict(observation, deterministic=self._deterministic)
            return np.asarray(action, dtype=np.float32)

        return act


def read_archive(path: Path) -> ArchivePolicy:
    """Open an archive that stable-baselines3 saved. It holds pickles: ask the user first.

    Raises:
        MissingExtraError: stable-baselines3 is not installed.
        DataError: Not such an archive, or of an algorithm that does not act in vectors.
    """
    sb3 = _stable_baselines()
    name = _algorithm_of(path)
    model = getattr(sb3, name).load(path, device="cpu")
    return ArchivePolicy(model, deterministic=name in ("TD3", "DDPG"))


def _algorithm_of(path: Path) -> str:
    try:
        with zipfile.ZipFile(path) as archive:
            facts = json.loads(archive.read("data"))
        module = str(facts["policy_class"]["__module__"])
    except (OSError, KeyError, TypeError, ValueError, zipfile.BadZipFile) as error:
        raise DataError(
            f"{path}: not an archive of stable-baselines3 ({error}).", code="bad_policy"
        ) from None
    for part, name in (("td3", "TD3"), ("sac", "SAC")):
        if f".{part}." in module:
            return name
    if module.startswith("stable_baselines3.common."):
        return "PPO" if "clip_range" in facts else "A2C"
    raise DataError(
        f"{path}: its policy is of {module}; pubc reads those of TD3, DDPG, SAC, PPO and A2C.",
        code="bad_policy",
    )
