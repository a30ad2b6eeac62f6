"""Policy folders: `config.json`, `policy.safetensors`, and a manifest over both.

Nothing in a policy folder can run code: numbers are safetensors, words are JSON, and the
only forms of policy are those written here.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np

from pubc import zoo
from pubc.errors import DataError, UnknownNameError, UsageError
from pubc.metrics import is_number
from pubc.storage import atomic_folder, read_json, read_manifest, utf8_name, verify, write_json
from pubc.trajectory import Array

if TYPE_CHECKING:
    from pubc.acting.rollout import Actor

__all__ = [
    "KIND",
    "TrainedPolicy",
    "is_policy",
    "load",
    "open_policy",
    "read_config",
    "read_tensors",
    "save",
]

KIND = "policy"
CONFIG = "config.json"
WEIGHTS = "policy.safetensors"


class TrainedPolicy(Protocol):
    """What every form of policy offers."""

    @property
    def observation_size(self) -> int:
        """Dimensions of one observation."""
        ...

    @property
    def action_size(self) -> int:
        """Dimensions of one action."""
        ...

    def begin(self, rng: np.random.Generator) -> Actor:
        """A fresh actor for one trajectory."""
        ...

    def tensors(self) -> dict[str, Array]:
        """Every array of the policy by name."""
        ...

    def config(self) -> dict[str, Any]:
        """What has to be known beside the arrays; `form` says how to read them."""
        ...

    def module(self) -> Any:
        """The policy as a torch module, for export."""
        ...


def save(
    path: Path,
    policy: TrainedPolicy,
    *,
    about: Mapping[str, Any],
    files: Mapping[str, bytes] | None = None,
    overwrite: bool = False,
) -> None:
    """Write a policy folder; a reader sees all of it or nothing.

    Args:
        path: The folder.
        policy: What to write.
        about: Where it comes from: learner, options, data.
        files: Further files to put beside it.
        overwrite: Replace an existing folder.

    Raises:
        UsageError: The folder exists and `overwrite` is off.
        EnvironmentFailure: The disk said no; nothing was changed.
    """
    from safetensors.numpy import save as to_bytes

    arrays = {name: np.ascontiguousarray(array) for name, array in policy.tensors().items()}
    sizes = {"observation_size": policy.observation_size, "action_size": policy.action_size}
    with atomic_folder(path, kind=KIND, overwrite=overwrite) as folder:
        write_json(folder / CONFIG, {"version": 1, **sizes, **policy.config(), **about})
        (folder / WEIGHTS).write_bytes(to_bytes(arrays))
        for name, content in (files or {}).items():
            (folder / name).write_bytes(content)


def is_policy(path: Path) -> bool:
    """Whether a path looks like a policy folder."""
    return (path / CONFIG).is_file() and (path / WEIGHTS).is_file()


def open_policy(name: str) -> Any:
    """The policy in a folder, or one of the zoo by its name, ready to act.

    Raises:
        UsageError: There is neither.
    """
    if not Path(name).exists() and name in zoo.names():
        return zoo.load(name)
    return load(name)


def load(path: Path | str) -> Any:
    """The policy in a folder, ready to act.

    Raises:
        UsageError: There is no such folder.
        DataError: A file is damaged, or the arrays do not fit the description.
        MissingExtraError: The policy needs a library that is not installed.
    """
    folder = Path(path)
    config = read_config(folder)
    tensors = read_tensors(folder / WEIGHTS)
    form = config.get("form")
    if form == "network":
        from pubc.policies.networks import NetworkPolicy

        policy: Any = NetworkPolicy.build(config, tensors)
    elif form == "transformer":
        from pubc.policies.offline_rl.transformer import TransformerPolicy

        policy = TransformerPolicy.build(config, tensors)
    else:
        raise UnknownNameError("form of policy", str(form), ("network", "transformer"))
    found = (policy.observation_size, policy.action_size)
    said = (config.get("observation_size"), config.get("action_size"))
    if found != said:
        raise DataError(
            f"{folder}: the arrays take {found[0]} observations to {found[1]} actions, "
            f"{CONFIG} says {said[0]} to {said[1]}.",
            code="bad_policy",
        )
    return policy


def read_config(folder: Path) -> dict[str, Any]:
    """The description of a policy, after checking its folder against the manifest."""
    if not folder.exists():
        raise UsageError(
            f"{folder}: no such policy folder. `pubc train` writes one; `pubc zoo` lists those "
            "that ship with pubc."
        )
    if not folder.is_dir() or not is_policy(folder):
        raise DataError(
            f"{folder}: not a policy folder (it needs {CONFIG} and {WEIGHTS}).",
            code="bad_policy",
        )
    read_manifest(folder, kind=KIND)
    faults = verify(folder)
    if faults:
        raise DataError(
            f"{folder}: {faults[0].file}: {faults[0].reason}. The policy was changed after it "
            "was written; train it again or fetch a fresh copy.",
            code="changed",
            count=len(faults),
        )
    config = read_json(folder / CONFIG)
    _check_reference(folder, config.get("reference"))
    return config


def _check_reference(folder: Path, said: Any) -> None:
    """Reference returns are null, or two of which each may be null where the dataset had none."""
    two = isinstance(said, list) and len(said) == 2
    if said is not None and not (two and all(end is None or is_number(end) for end in said)):
        raise DataError(
            f"{folder}: {CONFIG}: reference must be two returns, those that count as score 0 and "
            f"1. Found {str(said)[:60]!r}.",
            code="bad_policy",
            field="reference",
        )


def read_tensors(path: Path) -> dict[str, Array]:
    """The arrays of a safetensors file.

    Raises:
        DataError: The file is absent or damaged.
    """
    from safetensors import SafetensorError
    from safetensors.numpy import load_file

    try:
        with utf8_name(path) as name:
            return dict(load_file(name))
    except (OSError, ValueError, KeyError, SafetensorError) as error:
        raise DataError(
            f"{path}: not readable as safetensors ({error}).", code="bad_policy"
        ) from None
