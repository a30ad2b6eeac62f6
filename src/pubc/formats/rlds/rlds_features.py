"""What each step of an RLDS dataset holds, by `features.json`."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from pubc.formats.core.findings import Findings
from pubc.formats.core.options import ReadOptions
from pubc.formats.rlds.tfrecords import Feature
from pubc.storage import read_json
from pubc.trajectory import Array

__all__ = ["Leaf", "choose", "names_of", "read_leaves"]

_KINDS = {"bool", "float16", "float32", "float64", "bfloat16"} | {
    f"{sign}int{bits}" for sign in ("", "u") for bits in (8, 16, 32, 64)
}


@dataclass(frozen=True, slots=True)
class Leaf:
    """A feature of every step."""

    name: str
    """Its key in an Example, for example `steps/observation/state`."""
    shape: tuple[int, ...] | None
    """Shape of one step; None where it is no tensor of numbers."""
    dtype: str
    """Declared element type."""

    @property
    def is_vector(self) -> bool:
        """Whether it can be part of an observation."""
        return self.shape is not None and len(self.shape) <= 1

    def array(self, feature: Feature) -> Array:
        """Its steps, shape (steps, ...); raises ValueError where they do not fit."""
        values = feature.numbers()
        size = int(np.prod(self.shape or (), dtype=np.int64))
        if size == 0 or len(values) % size:
            raise ValueError(f"{len(values):,} numbers, which is no multiple of {self.shape}")
        kind = "float32" if self.dtype == "bfloat16" else self.dtype
        # Booleans stay integers here, so that a 2 among end marks is not taken for True.
        plain = values if kind == "bool" else values.astype(kind, copy=False)
        return plain.reshape(-1, *(self.shape or ()))


def read_leaves(path: Path, findings: Findings) -> dict[str, Leaf]:
    """Every feature of `features.json` by its key in an Example, in order."""
    document = read_json(path / "features.json")
    found: dict[str, Leaf] = {}

    def walk(name: str, node: Any, depth: int) -> None:
        if not isinstance(node, dict) or depth > 20:
            findings.refuse("bad_metadata", "not a tree of features.", field="features.json")
        inner = node.get("featuresDict")
        sequence = node.get("sequence")
        if isinstance(inner, dict) and isinstance(inner.get("features"), dict):
            for key, child in inner["features"].items():
                walk(f"{name}/{key}" if name else str(key), child, depth + 1)
        elif isinstance(sequence, dict) and name == "steps":
            walk(name, sequence.get("feature"), depth + 1)
        else:
            found[name] = _leaf(name, node)

    walk("", document, 0)
    if not any(name.startswith("steps/") for name in found):
        findings.refuse(
            "missing_key", "features.json has no steps, so this is no RLDS set.", field="steps"
        )
    return found


def _leaf(name: str, node: dict[str, Any]) -> Leaf:
    tensor = node.get("tensor")
    if not isinstance(tensor, dict):
        return Leaf(
            name, None, "text" if "text" in node else "image" if "image" in node else "other"
        )
    kind, sizes = str(tensor.get("dtype")), tensor.get("shape") or {}
    plain = str(tensor.get("encoding", "none")).lower() in ("none", "1")
    try:
        shape = tuple(int(n) for n in sizes.get("dimensions") or [])
    except (AttributeError, TypeError, ValueError):
        return Leaf(name, None, kind)
    fixed = all(0 < n < 2**31 for n in shape)
    return Leaf(name, shape if plain and fixed and kind in _KINDS else None, kind)


def choose(
    leaves: dict[str, Leaf], options: ReadOptions, findings: Findings
) -> tuple[list[Leaf], list[Leaf]]:
    """The features that make the observation and the action."""
    if options.observation_keys:
        observation = [
            leaf
            for key in options.observation_keys
            for leaf in _below(leaves, f"steps/observation/{key}")
            or _below(leaves, f"steps/{key}")
            or _missing(leaves, key, findings)
        ]
    else:
        observation = _below(leaves, "steps/observation")
    name = f"steps/{options.action_key or 'action'}"
    action = _below(leaves, name)
    if not observation:
        _missing(leaves, "observation", findings)
    if not action:
        _missing(leaves, name.removeprefix("steps/"), findings)
    return observation, action


def _below(leaves: dict[str, Leaf], name: str) -> list[Leaf]:
    return [
        leaf
        for key, leaf in leaves.items()
        if (key == name or key.startswith(f"{name}/")) and leaf.is_vector
    ]


def _missing(leaves: dict[str, Leaf], key: str, findings: Findings) -> list[Leaf]:
    findings.refuse(
        "missing_key",
        f"no vector of numbers has this name. There are: {names_of(leaves)}.",
        field=f"steps/{key}",
    )


def names_of(leaves: dict[str, Leaf]) -> str:
    """The vectors there are, for a message."""
    return ", ".join(leaf.name for leaf in leaves.values() if leaf.is_vector)
