"""One process of the collector: reads tasks, plays them, writes parts.

Run as `python -m pubc.collect.worker` by `pubc.collect.worker_pool`. Lines of JSON come in on
standard input and go out on standard output: first what to play with, then a task at a
time, and limits for the task under way. The end of the input is the end of the work: a
worker whose parent was killed writes nothing more and ends at once.
"""

from __future__ import annotations

import json
import os
import queue
import sys
import threading
from dataclasses import fields
from pathlib import Path
from typing import Any, TextIO

import numpy as np

from pubc.acting import environments
from pubc.acting.environments.direct import nothing_but_playing
from pubc.acting.rollout import Environment, Policy, play
from pubc.collect.finished_parts import part_path, write_part
from pubc.collect.lapses import NOISE_LAPSE, REPEAT_LAPSE, Lapse, LapsingPolicy
from pubc.collect.policy_files import NoisyPolicy, check_fits, open_policy
from pubc.collect.worker_pool import Limit
from pubc.errors import PubcError
from pubc.trajectory import Trajectory

__all__ = ["main"]

_LIMIT = {field.name for field in fields(Limit)}


class _Orphaned(Exception):
    """The parent is gone: its folder may belong to another run by now."""


class _Inbox:
    """What the parent says. Limits are for the task under way, so a thread listens."""

    def __init__(self) -> None:
        self.limits: dict[tuple[str, int], int] = {}
        """Steps after which a task ends, by source and first index, where that has changed."""
        self.closed = False
        """Whether the parent has closed its end, or died."""
        self._lines: queue.SimpleQueue[dict[str, Any] | None] = queue.SimpleQueue()
        threading.Thread(target=self._listen, daemon=True).start()

    def next(self) -> dict[str, Any] | None:
        """The next document, or None at the end of the input."""
        return self._lines.get()

    def _listen(self) -> None:
        # Not through sys.stdin, whose lock would hold up the end of the process.
        with os.fdopen(os.dup(0), "rb", buffering=0) as raw:
            rest = b""
            while chunk := raw.read(1 << 16):
                *lines, rest = (rest + chunk).split(b"\n")
                for line in lines:
                    said = json.loads(line)
                    if set(said) == _LIMIT:
                        self.limits[said["source"], said["first"]] = said["most"]
                    else:
                        self._lines.put(said)
        self.closed = True
        self._lines.put(None)


def main() -> int:
    """Serve tasks until the input ends."""
    answers, inbox = _own_output(), _Inbox()
    parent = os.getppid()
    try:
        setup = inbox.next()
        if setup is None:
            return 5
        environment = environments.make(setup["environment"])
        policies = _policies(setup, environment)
        sizes = ("observation_size", "action_size", "time_limit")
        nothing_but_playing()
        _say(answers, {"ready": {name: getattr(environment, name) for name in sizes}})
        while (task := inbox.next()) is not None:
            played = _play(task, inbox, environment, policies, setup["random_seed"])
            if inbox.closed or os.getppid() != parent:
                raise _Orphaned
            _say(answers, _finish(task, played))
    except PubcError as error:
        facts = {"kind": type(error).__name__, "exit_code": error.exit_code, "message": str(error)}
        _say(answers, {"error": facts | {"code": getattr(error, "code", None)}})
        return error.exit_code
    except (BrokenPipeError, KeyboardInterrupt, _Orphaned):
        return 5
    return 0


def _play(
    task: dict[str, Any],
    inbox: _Inbox,
    environment: Environment,
    policies: dict[str, Policy],
    random_seed: int,
) -> list[Trajectory]:
    """The trajectories of a task, fewer where a limit came in between."""
    source, first = task["source"], task["first"]
    played: list[Trajectory] = []
    steps = 0

    def left() -> int:
        if inbox.closed:
            return 0
        most: int | None = inbox.limits.get((source, first), task["most"])
        return sys.maxsize if most is None else most - steps

    for index in range(first, first + task["count"]):
        if left() <= 0:
            break
        played.append(
            play(
                environment,
                policies[source],
                random_seed=random_seed,
                source=source,
                index=index,
                most=left,
            )
        )
        steps += len(played[-1])
    # What was begun and then not needed at all is no trajectory of anything.
    return played if left() + steps > 0 else []


def _finish(task: dict[str, Any], played: list[Trajectory]) -> dict[str, Any]:
    """Write the part, and say what is in it."""
    source, first = task["source"], task["first"]
    if task["folder"] is not None and played:
        folder = Path(task["folder"])
        write_part(part_path(folder, task["number"], source, first, len(played)), played)
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
        if source["lapses"]:
            policy = _lapsing(policy, source["lapses"], environment, setup["trusted"])
        policies[name] = policy
    return policies


def _lapsing(
    policy: Policy, told: list[dict[str, Any]], environment: Environment, trusted: bool
) -> Policy:
    lapses = [Lapse(**lapse) for lapse in told]
    others: list[Policy | None] = []
    for lapse in lapses:
        other = None
        if lapse.policy not in (NOISE_LAPSE, REPEAT_LAPSE):
            other = open_policy(lapse.policy, trusted=trusted)
            check_fits(other, lapse.policy, environment)
        others.append(other)
    return LapsingPolicy(policy, lapses, others, environment.low, environment.high)


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
