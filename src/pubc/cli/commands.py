"""The commands of pubc: a table of words, so that `pubc --help` answers before anything loads."""

from __future__ import annotations

__all__ = ["COMMANDS", "module_of"]

COMMANDS: dict[str, str] = {
    "demo": "find an expert in data that came with pubc, end to end",
    "inspect": "say what a dataset holds and every problem found in it",
    "filter": "keep the trajectories that look like the target expert's",
    "review": "look at trajectories in the browser, mark them, filter with the marks",
    "score": "apply a trained filter to other data",
    "weights": "write what a run knows of single steps for other people's trainers",
    "convert": "write a dataset in another format",
    "train": "learn a policy from a dataset, or from what a filter kept",
    "evaluate": "let a policy act, and count what it earns",
    "compare": "evaluate policies from the same starts and say which differ",
    "export": "write a policy as one ONNX or TorchScript file for a robot",
    "collect": "make a labelled mixture: policies act, trajectories are recorded",
    "zoo": "list the trained policies that ship with pubc, and measure them",
    "experts": "train experts and weak policies of your own",
    "reproduce": "compute a table of the paper, its numbers beside ours",
    "report": "draw runs and policies as one page, and figures for papers",
    "verify": "check files against their manifest",
    "formats": "list the dataset formats",
    "cache": "show or clear the flat copies that make a second opening fast",
    "completion": "print the script that lets a shell complete commands and flags",
}
"""Every command with its one line of help."""

_ROOMS = {
    **dict.fromkeys(("inspect", "convert", "formats", "verify", "cache", "collect"), "data."),
    **dict.fromkeys(("filter", "review", "score", "weights", "report", "demo"), "filtering."),
    **dict.fromkeys(("train", "evaluate", "export", "compare", "experts", "zoo"), "policies."),
    "reproduce": "reproducing.",
    "completion": "",
}
"""The folder of each command's module, `NAME_command.py`."""


def module_of(name: str) -> str:
    """The module that runs a command."""
    return f"pubc.cli.{_ROOMS[name]}{name}_command"
