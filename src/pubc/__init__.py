"""Find the expert inside a mixed-quality robot dataset, and clone it.

Importing pubc is free: nothing heavy loads until a name below is used.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

from pubc.version import __version__ as __version__

if TYPE_CHECKING:
    from pubc.errors import PubcError
    from pubc.formats import load, save
    from pubc.runs.find_expert import Result, find_expert
    from pubc.trajectory import Trajectory, TrajectorySet

__all__ = [
    "PubcError",
    "Result",
    "Trajectory",
    "TrajectorySet",
    "find_expert",
    "load",
    "save",
]

_HOME = {
    "PubcError": "pubc.errors",
    "Trajectory": "pubc.trajectory",
    "TrajectorySet": "pubc.trajectory",
    "Result": "pubc.runs.find_expert",
    "find_expert": "pubc.runs.find_expert",
    "load": "pubc.formats",
    "save": "pubc.formats",
}


def __getattr__(name: str) -> Any:
    if name not in _HOME:
        raise AttributeError(f"module 'pubc' has no attribute {name!r}")
    return getattr(importlib.import_module(_HOME[name]), name)


def __dir__() -> list[str]:
    return sorted([*__all__, "__version__"])
