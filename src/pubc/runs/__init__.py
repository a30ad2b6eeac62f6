"""A run of the filter: configuration, folder, document, statuses, and how it is carried out.

FilterConfig    what can be asked of a run
carry_out       do it, and leave a finished run folder
resume          go on with an interrupted one
read_run        a finished run as plain values
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pubc.runs.filter_config import FilterConfig
    from pubc.runs.filter_run import Finished, Listener, carry_out, resume
    from pubc.runs.folder.run_folder import RunFolder
    from pubc.runs.folder.run_reading import Run, read_run

__all__ = [
    "FilterConfig",
    "Finished",
    "Listener",
    "Run",
    "RunFolder",
    "carry_out",
    "read_run",
    "resume",
]

_HOME = {
    **dict.fromkeys(("Finished", "Listener", "carry_out", "resume"), "filter_run"),
    "FilterConfig": "filter_config",
    "RunFolder": "folder.run_folder",
    **dict.fromkeys(("Run", "read_run"), "folder.run_reading"),
}


def __getattr__(name: str) -> Any:
    """A name of the list above; its module, and torch with most, loads only now."""
    if name not in _HOME:
        raise AttributeError(f"module 'pubc.runs' has no attribute {name!r}")
    return getattr(importlib.import_module(f"pubc.runs.{_HOME[name]}"), name)
