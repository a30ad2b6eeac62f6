"""`pubc evaluate`: let a policy act, and count what it earns."""

from __future__ import annotations

import functools
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

import tyro

from pubc.cli.console import facts, headline, histogram, progress, warn_unsound_policy
from pubc.errors import UsageError
from pubc.storage import check_apart

__all__ = [
    "COMMAND",
    "Evaluate",
    "find_environment",
    "find_reference",
    "known_reference",
    "measure",
]


@dataclass(frozen=True)
class Evaluate:
    """Let a policy act in an environment: returns with their spread, interval and score.

    POLICY is a folder of `pubc train`, or a policy of the zoo such as ant/expert. The score is
    the paper's, (return - min) / (max - min), with reference returns where they are known. The
    result is the same for any number of processes.
    """

    policy: Annotated[str, tyro.conf.Positional]
    """Policy folder, or the name of a zoo policy."""
    env: str | None = None
    """Environment, one of ours or any Gymnasium id. Zoo policies know theirs."""
    episodes: int = 100
    """Trajectories to play."""
    processes: int = 1
    """Trajectories to play at a time."""
    random_seed: int = 0
    """Fixes every start; two policies with the same seed meet the same starts."""
    reference: tuple[float, float] | None = None
    """Returns that count as score 0 and 1, instead of the known ones."""
    frames: Path | None = None
    """Also write the first trajectory as pictures into this folder; a name that ends in .gif
    or .mp4 makes a film."""
    record: Path | None = None
    """Also append the result to this file of JSON lines."""
    json: bool = False
    """Print one JSON document instead of text."""

    def run(self) -> dict[str, Any]:
        """Play with progress, and say what came out."""
        from pubc import results

        check_apart(self.frames, self.record)
        if self.record is not None:
            results.check(self.record)
        environment = find_environment(self.policy, self.env)
        if self.frames is not None:
            from pubc.cli.policies.film import check_film, film
            from pubc.policies.policy_folder import open_policy

            check_film(environment, self.frames)
        document = measure(
            self.policy,
            environment,
            episodes=self.episodes,
            processes=self.processes,
            random_seed=self.random_seed,
            reference=self.reference,
            quiet=self.json,
        )
        # The record first: a machine that cannot draw does not take what was played.
        if self.record is not None:
            results.append(self.record, as_record(document))
        if self.frames is not None:
            film(open_policy(self.policy), environment, self.frames, self.random_seed)
            document["frames"] = str(self.frames)
        if not self.json:
            _show(document)
        return document


COMMAND = Evaluate


def measure(
    policy: str,
    environment: str,
    *,
    episodes: int,
    processes: int,
    random_seed: int,
    reference: tuple[float, float] | None,
    quiet: bool,
) -> dict[str, Any]:
    """Evaluate one policy with progress; the document of `pubc evaluate --json`."""
    from pubc.acting.evaluate import Outcome, evaluate, summary
    from pubc.policies.policy_folder import is_policy, open_policy, read_config

    known = find_reference(policy, environment, reference)
    if is_policy(Path(policy)):
        warn_unsound_policy(Path(policy), read_config(Path(policy)))
    began, played = time.monotonic(), []
    with progress(f"evaluating {policy}", episodes, quiet=quiet) as report:
        for one in evaluate(
            functools.partial(open_policy, policy),
            environment,
            episodes=episodes,
            random_seed=random_seed,
            processes=processes,
        ):
            played.append(one)
            report(len(played), f"trajectories, last return {one.total_reward:,.1f}")
    outcome = Outcome.of(played)
    return {
        "policy": policy,
        "environment": environment,
        "random_seed": random_seed,
        **summary(outcome, known),
        "returns": outcome.returns.tolist(),
        "seconds": time.monotonic() - began,
    }


def as_record(document: dict[str, Any]) -> Any:
    """An evaluation as a record; how long it took is not part of it."""
    from pubc.results import Record

    asked = ("policy", "environment", "random_seed", "episodes")
    cell = {"kind": "evaluate", **{name: document[name] for name in asked}}
    values = {k: v for k, v in document.items() if k not in (*asked, "seconds", "frames")}
    return Record(cell, values)


def find_environment(policy: str, named: str | None) -> str:
    """The environment that was named, or that a zoo policy comes from."""
    from pubc import zoo

    if named is not None:
        return named
    if not Path(policy).exists() and policy in zoo.names():
        return str(zoo.card(policy)["environment"])
    raise UsageError("Where should it act? Name an environment, for example --env ant.")


def find_reference(
    policy: str, environment: str, given: tuple[float, float] | None
) -> tuple[float, float, str] | None:
    """Reference returns: as given, as the policy's dataset said, or as known.

    Raises:
        UsageError: No score can be made of those that were given.
        DataError: The policy's are none.
    """
    from pubc.metrics import check_reference
    from pubc.policies.policy_folder import is_policy, read_config

    if given is not None:
        check_reference(given)
        return (*given, "--reference")
    said = read_config(Path(policy)).get("reference") if is_policy(Path(policy)) else None
    return known_reference(said, environment)


def known_reference(said: Any, environment: str) -> tuple[float, float, str] | None:
    """Reference returns as a dataset said, or as known."""
    from pubc.metrics import REFERENCES, as_reference

    pair = as_reference(said)
    return REFERENCES.get(environment) if pair is None else (*pair, "the dataset (Minari)")


def _show(document: dict[str, Any]) -> None:
    earned = document["return"]
    low, high = earned["interval"]
    rows = [
        ("policy", document["policy"]),
        ("environment", document["environment"]),
        ("trajectories", f"{document['episodes']:,} of {document['steps']['mean']:,.0f} steps"),
        ("return", f"{earned['mean']:,.1f} ± {earned['std']:,.1f}"),
        ("95 % interval", f"{low:,.1f} to {high:,.1f} for the mean"),
        ("returns", histogram(document["returns"])),
    ]
    if document["score"] is not None:
        known = document["reference"]
        words = f"{known['from']}: {known['min']:,.1f} is 0, {known['max']:,.1f} is 1"
        rows.append(("score", f"{document['score']:.3f}   ({words})"))
    rows.append(("seconds", f"{document['seconds']:.1f}"))
    headline(f"{document['policy']} earns {earned['mean']:,.1f} in {document['environment']}")
    facts(rows)
