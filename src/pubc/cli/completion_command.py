"""`pubc completion`: what a shell needs to finish commands, flags and their choices.

The scripts are made from the same table of commands and the same dataclasses as the help, so
they know every flag. Words that are no flags are left to the shell, which completes file names.
"""

from __future__ import annotations

import importlib
from dataclasses import dataclass
from typing import Annotated, Any, Literal

import tyro

from pubc.cli.commands import COMMANDS, module_of
from pubc.cli.console import say
from pubc.cli.parsing import Flag, flags_of

__all__ = ["COMMAND", "Completion"]


@dataclass(frozen=True)
class Completion:
    """Print the script that lets a shell complete commands, flags and their choices.

    bash and zsh: save the script and `source` it from ~/.bashrc or ~/.zshrc. fish: save it as
    ~/.config/fish/completions/pubc.fish.
    """

    shell: Annotated[Literal["bash", "zsh", "fish"], tyro.conf.Positional]
    """Which shell."""
    json: bool = False
    """Print one JSON document instead of text."""

    def run(self) -> dict[str, Any]:
        """Print the script."""
        flags = {name: _flags(name) for name in COMMANDS}
        script = {"bash": _bash, "zsh": _zsh, "fish": _fish}[self.shell](flags)
        if not self.json:
            say(script)
        return {"shell": self.shell, "script": script}


COMMAND = Completion


def _flags(name: str) -> list[Flag]:
    return flags_of(importlib.import_module(module_of(name)).COMMAND)


def _bash(flags: dict[str, list[Flag]]) -> str:
    cases = []
    for name, known in flags.items():
        names = " ".join(flag.name for flag in known)
        chosen = "".join(
            f'      {flag.name}) COMPREPLY=($(compgen -W "{" ".join(flag.choices)}" -- "$word")); '
            "return ;;\n"
            for flag in known
            if flag.choices
        )
        inner = f'    case "$before" in\n{chosen}    esac\n' if chosen else ""
        cases.append(f'  {name})\n{inner}    flags="{names} --help"\n    ;;')
    return "\n".join(
        [
            "# Completion of pubc for bash, made by `pubc completion bash`.",
            "_pubc() {",
            '  local word="${COMP_WORDS[COMP_CWORD]}" flags=""',
            '  local before="${COMP_WORDS[COMP_CWORD-1]}"',
            "  COMPREPLY=()",
            '  if [ "$COMP_CWORD" -eq 1 ]; then',
            f'    COMPREPLY=($(compgen -W "{" ".join(flags)} --help --version" -- "$word"))',
            "    return",
            "  fi",
            '  case "${COMP_WORDS[1]}" in',
            *cases,
            "  esac",
            '  case "$word" in -*) COMPREPLY=($(compgen -W "$flags" -- "$word")) ;; esac',
            "}",
            "complete -o default -F _pubc pubc",
        ]
    )


def _zsh(flags: dict[str, list[Flag]]) -> str:
    # zsh runs scripts of bash, and completes file names where they offer nothing.
    return "\n".join(
        [
            "autoload -Uz compinit bashcompinit",
            "(( $+functions[compdef] )) || compinit",
            "bashcompinit",
            _bash(flags).replace("for bash, made by `pubc completion bash`", "for zsh"),
        ]
    )


def _fish(flags: dict[str, list[Flag]]) -> str:
    lines = ["# Completion of pubc for fish, made by `pubc completion fish`."]
    for name, words in COMMANDS.items():
        told = words.replace("'", "\\'")
        lines.append(f"complete -c pubc -n __fish_use_subcommand -f -a {name} -d '{told}'")
    for name, known in flags.items():
        where = f"complete -c pubc -n '__fish_seen_subcommand_from {name}'"
        for flag in known:
            takes = "" if flag.switch else " -r"
            if flag.choices:
                takes = f" -x -a '{' '.join(flag.choices)}'"
            lines.append(f"{where} -l {flag.name.removeprefix('--')}{takes}")
    return "\n".join(lines)
