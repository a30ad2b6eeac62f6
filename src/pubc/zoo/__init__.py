"""Trained policies that ship with pubc, and the file format they come in.

A policy is two files: `NAME.safetensors` with its arrays and `NAME.json`, the card, which
says where it acts, how it was trained, and what it scored with the command that measured
it. `pubc experts train` writes the same pair, and a recipe takes either. Rolling one out
needs numpy alone.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from pubc.errors import DataError, UnknownNameError
from pubc.storage import atomic_file, read_json, utf8_name, write_json
from pubc.trajectory import Array
from pubc.zoo.actors import NETWORKS, NumpyPolicy

__all__ = [
    "NumpyPolicy",
    "card",
    "find",
    "load",
    "names",
    "path_of",
    "read",
    "read_card",
    "write",
]

_WEIGHTS = Path(__file__).parent / "weights"
_NEEDED = ("environment", "algorithm", "network", "observation_size", "action_size")


def names() -> list[str]:
    """Every policy of the zoo, for example `ant/expert`."""
    found = sorted(_WEIGHTS.glob("*/*.safetensors"))
    return [f"{path.parent.name}/{path.stem}" for path in found]


def path_of(name: str) -> Path:
    """The weights of a zoo policy; its card lies beside them.

    Raises:
        UnknownNameError: The zoo has no policy of that name.
    """
    if name not in names():
        raise UnknownNameError("zoo policy", name, names())
    return _WEIGHTS / f"{name}.safetensors"


def find(name: str) -> Path:
    """The weights of a zoo policy, or of a file of one's own in the zoo's format."""
    return Path(name) if name.endswith(".safetensors") else path_of(name)


def card(name: str) -> dict[str, Any]:
    """The card of a zoo policy."""
    return read_card(path_of(name))


def load(name: str) -> NumpyPolicy:
    """A zoo policy, ready to act.

    Example:
        >>> from pubc import zoo
        >>> expert = zoo.load("ant/expert")
        >>> actor = expert.begin(np.random.default_rng(0))
        >>> actor(np.zeros(27, dtype=np.float32), 0.0).shape
        (8,)
    """
    return read(path_of(name))


def read(path: Path) -> NumpyPolicy:
    """Read a policy in the zoo's format.

    Raises:
        DataError: The file is damaged, or its arrays do not fit its card.
    """
    from safetensors import SafetensorError
    from safetensors.numpy import load_file

    facts = read_card(path)
    try:
        with utf8_name(path) as name:
            arrays = load_file(name)
    except FileNotFoundError:
        raise DataError(f"{path}: no such file.", code="missing_file") from None
    except (SafetensorError, ValueError, KeyError) as error:
        raise DataError(
            f"{path}: not readable as safetensors ({error}).", code="bad_policy"
        ) from None
    network = str(facts["network"])
    if network not in NETWORKS:
        raise UnknownNameError("policy network", network, NETWORKS)
    limit = facts.get("action_limit", 1.0)
    if isinstance(limit, bool) or not isinstance(limit, int | float) or not 0 < limit < 1e30:
        raise DataError(
            f"{path.with_suffix('.json')}: action_limit must be a number above 0. Found "
            f"{str(limit)[:60]!r}.",
            code="bad_card",
            field="action_limit",
        )
    policy = NETWORKS[network](arrays, float(limit), str(path))
    sizes = (policy.observation_size, policy.action_size)
    if sizes != (facts["observation_size"], facts["action_size"]):
        raise DataError(
            f"{path}: the arrays take {sizes[0]} observations to {sizes[1]} actions, its card "
            f"says {facts['observation_size']} to {facts['action_size']}.",
            code="bad_policy",
        )
    return policy


def read_card(path: Path) -> dict[str, Any]:
    """The card beside a policy's weights."""
    beside = path.with_suffix(".json")
    facts = read_json(beside)
    missing = [name for name in _NEEDED if name not in facts]
    if missing:
        raise DataError(
            f"{beside}: the card lacks {', '.join(missing)}.",
            code="bad_card",
            field=missing[0],
        )
    return facts


def write(
    path: Path, arrays: dict[str, Array], facts: dict[str, Any], *, overwrite: bool = False
) -> None:
    """Write a policy with its card; `path` ends in .safetensors.

    Raises:
        UsageError: The policy exists and `overwrite` is off.
    """
    from safetensors.numpy import save

    ready = {name: np.ascontiguousarray(array, np.float32) for name, array in arrays.items()}
    with atomic_file(path, overwrite=overwrite) as temporary:
        temporary.write_bytes(save(ready))
    write_json(path.with_suffix(".json"), facts, overwrite=overwrite)
