"""Find the expert inside a mixed-quality robot dataset, and clone it.

Importing pubc is free: nothing loads until a name below is used. Nothing at all, for what loads
here would come before the first line of a command that answers Ctrl-C.
"""

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from pubc.api.clone_and_evaluate import Evaluation, clone, evaluate, export, load_policy
    from pubc.api.expert_finder import ExpertFinder
    from pubc.errors import PubcError
    from pubc.formats import load, save
    from pubc.formats.in_memory import from_arrays, from_episodes
    from pubc.runs.find_expert import Result, find_expert
    from pubc.trajectory import Trajectory, TrajectorySet
    from pubc.version import __version__ as __version__

__all__ = [
    "Evaluation",
    "ExpertFinder",
    "PubcError",
    "Result",
    "Trajectory",
    "TrajectorySet",
    "clone",
    "evaluate",
    "export",
    "find_expert",
    "from_arrays",
    "from_episodes",
    "load",
    "load_policy",
    "save",
]

_HOME = {
    "__version__": "pubc.version",
    "PubcError": "pubc.errors",
    **dict.fromkeys(("Trajectory", "TrajectorySet"), "pubc.trajectory"),
    **dict.fromkeys(("load", "save"), "pubc.formats"),
    **dict.fromkeys(("from_arrays", "from_episodes"), "pubc.formats.in_memory"),
    **dict.fromkeys(("Result", "find_expert"), "pubc.runs.find_expert"),
    "ExpertFinder": "pubc.api.expert_finder",
    **dict.fromkeys(
        ("Evaluation", "clone", "evaluate", "export", "load_policy"),
        "pubc.api.clone_and_evaluate",
    ),
}


def __getattr__(name: str) -> "Any":
    import importlib

    if name not in _HOME:
        raise AttributeError(f"module 'pubc' has no attribute {name!r}")
    return getattr(importlib.import_module(_HOME[name]), name)


def __dir__() -> list[str]:
    return sorted([*__all__, "__version__"])
