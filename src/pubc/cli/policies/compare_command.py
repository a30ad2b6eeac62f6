"""`pubc compare`: policies against one another, from the same starts."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

import tyro

from pubc.cli.console import say
from pubc.cli.policies.comparison_plot import KIND, draw
from pubc.cli.policies.evaluate_command import (
    as_record,
    find_environment,
    find_reference,
    measure,
)
from pubc.errors import UsageError
from pubc.storage import check_apart, claim

__all__ = ["COMMAND", "Compare"]


@dataclass(frozen=True)
class Compare:
    """Evaluate policies from the same starts and say which differ, and how surely.

    The first policy is what the others are compared with. Trajectory k of every policy begins
    in the same state, so differences are taken pair by pair; an interval that excludes zero is
    marked. Trainings differ by their seeds too: compare several of each before you conclude.
    """

    policies: Annotated[tuple[str, ...], tyro.conf.Positional]
    """Policy folders or zoo policies, the base first."""
    env: str | None = None
    """Environment, one of ours or any Gymnasium id."""
    episodes: int = 100
    """Trajectories of each policy."""
    processes: int = 1
    """Trajectories to play at a time."""
    random_seed: int = 0
    """Fixes the starts."""
    reference: tuple[float, float] | None = None
    """Returns that count as score 0 and 1, instead of the known ones."""
    plot: Path | None = None
    """Also draw the returns: .png or .svg."""
    record: Path | None = None
    """Also append one JSON line per policy to this file."""
    force: bool = False
    """Replace an earlier picture of `pubc compare` at --plot."""
    json: bool = False
    """Print one JSON document instead of text."""

    def run(self) -> dict[str, Any]:
        """Evaluate each, and compare."""
        from pubc import results

        check_apart(self.plot, self.record)
        if self.record is not None:
            results.check(self.record)
        self._check()
        environment = find_environment(self.policies[0], self.env)
        for policy in self.policies:
            # What cannot be scored is refused before the first one has played.
            find_reference(policy, environment, self.reference)
        found = [
            measure(
                policy,
                environment,
                episodes=self.episodes,
                processes=self.processes,
                random_seed=self.random_seed,
                reference=self.reference,
                quiet=self.json,
            )
            for policy in self.policies
        ]
        compared = [{**one, "difference": _difference(found[0], one)} for one in found]
        document: dict[str, Any] = {
            "environment": environment,
            "base": self.policies[0],
            "policies": compared,
        }
        # The records first: a picture that is there would have the same command refused.
        if self.record is not None:
            results.append(self.record, *map(as_record, found))
        if self.plot is not None:
            draw(compared, environment, self.plot, force=self.force)
            document["plot"] = str(self.plot)
        if not self.json:
            _show(document)
        return document

    def _check(self) -> None:
        if len(self.policies) < 2 or len(set(self.policies)) != len(self.policies):
            raise UsageError("Comparing takes two policies or more, each named once.")
        if self.plot is not None and self.plot.suffix not in (".png", ".svg"):
            raise UsageError(f"--plot writes .png or .svg. Got {self.plot.name}.")
        if self.plot is not None:
            claim(self.plot, KIND, force=self.force)


COMMAND = Compare


def _difference(base: dict[str, Any], other: dict[str, Any]) -> dict[str, Any] | None:
    """Mean of the pairwise differences in return, with its interval."""
    import numpy as np

    from pubc.metrics import interval

    if other is base:
        return None
    pairs = np.asarray(other["returns"]) - np.asarray(base["returns"])
    low, high = interval(pairs)
    return {"mean": float(pairs.mean()), "interval": [low, high], "sure": not low <= 0 <= high}


def _show(document: dict[str, Any]) -> None:
    rows = [("policy", "return", "95 % interval", "score", "against the first")]
    for one in document["policies"]:
        earned, difference = one["return"], one["difference"]
        low, high = earned["interval"]
        words = "-"
        if difference is not None:
            below, above = difference["interval"]
            mark = "" if difference["sure"] else "   not sure"
            words = f"{difference['mean']:+,.1f} ({below:+,.1f} to {above:+,.1f}){mark}"
        rows.append(
            (
                one["policy"],
                f"{earned['mean']:,.1f} ± {earned['std']:,.1f}",
                f"{low:,.1f} to {high:,.1f}",
                "-" if one["score"] is None else f"{one['score']:.3f}",
                words,
            )
        )
    widths = [max(len(row[column]) for row in rows) for column in range(len(rows[0]))]
    say(f"{document['environment']}, {document['policies'][0]['episodes']:,} trajectories each")
    for row in rows:
        say("  ".join(word.ljust(width) for word, width in zip(row, widths, strict=True)).rstrip())
