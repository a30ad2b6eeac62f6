"""One process of the collector: reads tasks, plays them, writes parts.

Run as `python -m pubc.collect.worker` by `pubc.collect.crew`. Lines of JSON come in on
standard input and go out on standard output: first what to play with, then a task at a
time. The end of the input is the end of the work, and a worker whose parent was killed
writes nothing more and ends with its trajectory.
"""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path
from typing import Any, TextIO

import numpy as np

from pubc import environments
from pubc.collect.parts import write_part
from pubc.collect.policy_files import NoisyPolicy, check_fits, open_policy
from pubc.errors import PubcError
from pubc.rollout import Environment, Policy, play

__all__ = ["main"]


class _Orphaned(Exception):
    """The parent is gone: its folder may belong to another run by now."""


def main() -> int:
    """Serve tasks until the input ends."""
    answers = _own_output()
    parent = os.getppid()
    try:
        setup = json.loads(sys.stdin.readline())
        environment = environments.make(setup["environment"])
        policies = _policies(setup, environment)
        sizes = ("observation_size", "action_size", "time_limit")
        _say(answers, {"ready": {name: getattr(environment, name) for name in sizes}})
        for line in sys.stdin:
            task = json.loads(line)
            played = _play(task, environment, policies, setup["random_seed"], parent)
            _say(answers, played)
    except PubcError as error:
        facts = {"kind": type(error).__name__, "exit_code": error.exit_code, "message": str(error)}
        _say(answers, {"error": facts | {"code": getattr(error, "code", None)}})
        return error.exit_code
    except (BrokenPipeError, KeyboardInterrupt, _Orphaned):
        return 5
    return 0


def _play(
    task: dict[str, Any],
    environment: Environment,
    policies: dict[str, Policy],
    random_seed: int,
    parent: int,
) -> dict[str, Any]:
    source, first = task["source"], task["first"]
    played = []
    for index in range(first, first + task["count"]):
        played.append(
            play(
                environment,
                policies[source],
                random_seed=random_seed,
                source=source,
                index=index,
                most=task["most"],
            )
        )
        if os.getppid() != parent:
            raise _Orphaned
    if task["path"] is not None:
        write_part(Path(task["path"]), played)
    return {
        "source": source,
        "first": first,
        "lengths": [len(trajectory) for trajectory in played],
        "terminals": [bool(trajectory.steps.terminals[-1]) for trajectory in played],
        "returns": [trajectory.total_reward for trajectory in played],
    }


def _policies(setup: dict[str, Any], environment: Environment) -> dict[str, Policy]:
    half = (environment.high - environment.low).astype(np.float32) / 2
    policies: dict[str, Policy] = {}
    for name, source in setup["sources"].items():
        policy = open_policy(source["policy"], trusted=setup["trusted"])
        check_fits(policy, name, environment)
        if source["action_noise"]:
            policy = NoisyPolicy(policy, half * np.float32(source["action_noise"]))
        policies[name] = policy
    return policies


def _own_output() -> TextIO:
    """Keep standard output for answers; what libraries print there goes to the log."""
    answers = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)
    return answers


def _say(answers: TextIO, document: dict[str, Any]) -> None:
    answers.write(json.dumps(document) + "\n")
    answers.flush()


if __name__ == "__main__":
    sys.exit(main())
