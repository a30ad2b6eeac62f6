"""`pubc collect`: the paper's mixtures, or one's own, from nothing."""

from __future__ import annotations

import os
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import tyro

from pubc.cli.console import Progress, facts, progress
from pubc.errors import InterruptedRun, UsageError

if TYPE_CHECKING:
    from pubc.collect import Collected, Recipe, Request

__all__ = ["COMMAND", "Collect"]


@dataclass(frozen=True)
class Collect:
    """Let policies act and record a labelled mixture, to try the filter on before your data.

    RECIPE is ENVIRONMENT:MIXTURE. ant and humanoid have the paper's E, E+E, E+W, E+N and
    E+E+W+N (E expert, second E another expert, W weak, N uniform noise); halfcheetah, hopper
    and walker2d have medium-expert; ant, halfcheetah and hopper have lapses, where somebody else
    acts in every trajectory now and then; trifinger-push and trifinger-lift have mixed, with
    --policies; custom is your own environment and policies. Trajectories come shuffled, with
    the policy that acted in `sources`. Seed positives go to OUT-seed. A run that was stopped
    goes on when the same command is given again.
    """

    recipe: Annotated[str, tyro.conf.Positional]
    """What to collect, for example ant:E+E+W+N, or custom."""
    out: Annotated[Path, tyro.conf.Positional]
    """Where to write; the suffix picks the format: .npz, .store, .hdf5."""
    steps_per_source: int | None = None
    """Steps of each policy, the last trajectory cut there. The paper's 500,000 by default."""
    trajectories_per_source: int | None = None
    """Whole trajectories of each policy, instead of steps."""
    seed_steps: int = 2000
    """Seed positives: this many steps of the expert, in a file of their own. 0 for none."""
    seed_inside: int = 0
    """Instead, mark this many of the expert's trajectories in the mixture; their ids go to
    OUT-seed.json."""
    random_seed: int = 0
    """Same seed, same machine: same bytes, with any number of processes."""
    processes: int = field(default_factory=lambda: os.cpu_count() or 1)
    """Processes that play; all cores by default."""
    policies: Path | None = None
    """Folder of policy files, for the trifinger recipes. The public repository
    rr-learning/trifinger-rl-example holds push.pt and lift.pt (TorchScript)."""
    environment: str | None = None
    """custom: environment, one of ours or any Gymnasium id."""
    policy: Annotated[tuple[str, ...], tyro.conf.UseAppendAction] = ()
    """custom: NAME=POLICY, the expert first: a zoo policy, or a file: .safetensors (ours),
    .pt (TorchScript), .npz (TriFinger arrays), .zip (stable-baselines3). N=noise adds noise."""
    share: Annotated[tuple[str, ...], tyro.conf.UseAppendAction] = ()
    """custom: NAME=NUMBER, how much of it as a multiple of the steps per source."""
    action_noise: Annotated[tuple[str, ...], tyro.conf.UseAppendAction] = ()
    """custom: NAME=NUMBER, Gaussian noise on its actions, in halves of their range."""
    lapse: Annotated[tuple[str, ...], tyro.conf.UseAppendAction] = ()
    """custom: POLICY:SHARE:LENGTH, lets another policy act in the expert's place for stretches of
    about LENGTH steps, a SHARE of all: a policy as above, noise, or repeat (the last action over
    and over). Which steps are the expert's own is recorded as `expert_steps`."""
    i_trust_this_pickle: bool = False
    """Open stable-baselines3 archives, which can run any code. Only for files you trust."""
    force: bool = False
    """Replace OUT, and discard the leftovers of another collection at the same place."""
    json: bool = False
    """Print one JSON document instead of text."""

    def run(self) -> dict[str, Any]:
        """Collect with progress, and say what was written."""
        request = self._request()
        with progress("collecting", 100, quiet=self.json) as report:
            try:
                written = self._collect(request, report)
            except KeyboardInterrupt:
                raise InterruptedRun(
                    f"Stopped. Finished trajectories are kept beside {self.out}; the same "
                    "command goes on from there."
                ) from None
        document = {
            "recipe": self.recipe,
            "environment": request.recipe.environment,
            "data": str(written.path),
            "seed_positives": None if written.seed_path is None else str(written.seed_path),
            "trajectories": written.trajectories,
            "steps": written.steps,
            "expert": request.recipe.expert.name,
            "sources": [source.name for source in request.recipe.sources],
            "random_seed": self.random_seed,
        }
        if not self.json:
            _show(document)
        return document

    def _collect(self, request: Request, report: Progress) -> Collected:
        from pubc.collect import collecting

        began, written = time.monotonic(), None
        for now in collecting(request, self.out, processes=self.processes, overwrite=self.force):
            spent = time.monotonic() - began
            pace = (now.steps - now.resumed) / max(spent, 1e-9)
            left = spent * (1 - now.done) / now.done if now.done and not now.resumed else None
            words = f"%, {now.steps:,} steps, {pace:,.0f} steps/s"
            if now.written is None:
                report(int(now.done * 100), words + _time_left(left))
            written = now.written
        assert written is not None
        return written

    def _request(self) -> Request:
        from pubc.collect import Request

        steps = self.steps_per_source
        if steps is None and self.trajectories_per_source is None:
            steps = 500_000
        return Request(
            self._recipe(),
            steps,
            self.trajectories_per_source,
            self.seed_steps,
            self.seed_inside,
            self.random_seed,
        )

    def _recipe(self) -> Recipe:
        from pubc.collect import custom, find
        from pubc.collect.lapses import parse_lapse

        own = (self.environment, *self.policy, *self.share, *self.action_noise, *self.lapse)
        if self.recipe != "custom":
            recipe = find(self.recipe, policies=self.policies, trusted=self.i_trust_this_pickle)
            if any(own):
                raise UsageError(
                    "--environment, --policy, --share, --action-noise and --lapse belong to the "
                    f"recipe custom, not to {self.recipe}."
                )
            return recipe
        if self.environment is None:
            raise UsageError("The recipe custom needs --environment, for example ant.")
        return custom(
            self.environment,
            _pairs(self.policy, "--policy"),
            shares=_numbers(self.share, "--share"),
            action_noise=_numbers(self.action_noise, "--action-noise"),
            lapses=[parse_lapse(word) for word in self.lapse],
            trusted=self.i_trust_this_pickle,
        )


COMMAND = Collect


def _pairs(given: tuple[str, ...], flag: str) -> dict[str, str]:
    found: dict[str, str] = {}
    for word in given:
        name, equals, value = word.partition("=")
        if not (name and equals and value) or name in found:
            raise UsageError(f"{flag} takes NAME=VALUE, each name once. Got {word!r}.")
        found[name] = value
    return found


def _numbers(given: tuple[str, ...], flag: str) -> dict[str, float]:
    try:
        return {name: float(value) for name, value in _pairs(given, flag).items()}
    except ValueError:
        raise UsageError(f"{flag} takes NAME=NUMBER. Got {' '.join(given)!r}.") from None


def _time_left(seconds: float | None) -> str:
    if seconds is None:
        return ""
    minutes, rest = divmod(round(seconds), 60)
    return f", {minutes} min left" if minutes > 1 else f", {minutes * 60 + rest} s left"


def _show(document: dict[str, Any]) -> None:
    facts(
        [
            ("recipe", document["recipe"]),
            ("data", document["data"]),
            ("trajectories", f"{document['trajectories']:,}"),
            ("steps", f"{document['steps']:,}"),
            ("expert", document["expert"]),
            ("seed positives", document["seed_positives"] or "none"),
        ]
    )
