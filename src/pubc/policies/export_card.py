"""What an exported file says of itself, so that a robot needs nothing beside it.

The order of the observation's parts, the normalisation that is already inside, the limits of the
action, and where the policy came from: JSON under a few names, in the metadata of an ONNX file
or beside the code of a TorchScript archive.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

from pubc.errors import DataError
from pubc.formats.core.named_parts import read_parts
from pubc.nets import CLIP
from pubc.policies.policy_folder import TrainedPolicy
from pubc.version import __version__

__all__ = ["CARD", "card", "observation_keys", "properties"]

CARD = "pubc.json"
"""The file of a TorchScript archive that holds the card."""
_PROVENANCE = ("learner", "options", "random_seed", "data", "training", "device")


def card(policy: TrainedPolicy, about: Mapping[str, Any], inputs: Sequence[str]) -> dict[str, Any]:
    """The card of an export, as JSON values.

    Args:
        policy: What is exported.
        about: config.json of its folder; what it does not say is left out.
        inputs: Names of the inputs in order.
    """
    arrays = policy.tensors()
    size = policy.observation_size
    data = about.get("data")
    data = data if isinstance(data, Mapping) else {}
    keys = data.get("observation_keys") or [{"key": "observations", "size": size}]
    _check_keys(keys, size)
    return {
        "pubc": __version__,
        "inputs": list(inputs),
        "observation": {"size": size, "keys": _places(keys)},
        "normalisation": {
            "inside": True,
            "mean": arrays["observation.mean"].tolist(),
            "scale": arrays["observation.scale"].tolist(),
            "clip": CLIP,
        },
        "action": {
            "size": policy.action_size,
            "key": data.get("action_key") or "actions",
            "low": arrays["action.low"].tolist(),
            "high": arrays["action.high"].tolist(),
        },
        "provenance": {name: about[name] for name in _PROVENANCE if name in about},
    }


def observation_keys(record: Any, size: int) -> list[dict[str, Any]]:
    """Names and sizes of the parts of an observation, in order.

    Args:
        record: `observation_parts` of the metadata of a set, if it has any.
        size: Dimensions of the whole observation.

    Example:
        >>> joints = {"key": "joints", "shape": [7], "dtype": "<f4"}
        >>> observation_keys([joints, {"key": "grip", "shape": [], "dtype": "<f4"}], 8)
        [{'key': 'joints', 'size': 7}, {'key': 'grip', 'size': 1}]
        >>> observation_keys(None, 8)
        [{'key': 'observations', 'size': 8}]
    """
    # A piece without numbers has no place in the input of a network.
    keys = [{"key": part.key, "size": part.size} for part in read_parts(record, size) if part.size]
    return keys or [{"key": "observations", "size": size}]


def _check_keys(keys: Any, size: int) -> None:
    """A robot is fed by what the card says of the order, so a card that cannot be is refused."""
    plain = isinstance(keys, list) and all(
        isinstance(key, Mapping)
        and isinstance(key.get("key"), str)
        and isinstance(key.get("size"), int)
        and key["size"] > 0
        for key in keys
    )
    if not plain or sum(key["size"] for key in keys) != size:
        raise DataError(
            "config.json: data.observation_keys must be a list of keys and sizes that add up to "
            f"the {size} dimensions of the observation. Found {str(keys)[:60]!r}.",
            code="bad_policy",
            field="data.observation_keys",
        )


def _places(keys: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """The parts with the slice of the input that each one fills."""
    places, start = [], 0
    for key in keys:
        places.append({**key, "from": start, "to": start + int(key["size"])})
        start += int(key["size"])
    return places


def properties(document: Mapping[str, Any]) -> dict[str, str]:
    """The card as texts by name, the way ONNX keeps metadata."""
    return {
        f"pubc.{name}" if name != "pubc" else "pubc.version": value
        if isinstance(value, str)
        else json.dumps(value)
        for name, value in document.items()
    }
