"""`pubc experts`: experts and weak policies of one's own."""

from __future__ import annotations

import math
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Literal

import tyro

from pubc.cli.console import progress, say

__all__ = ["COMMAND", "Experts"]


@dataclass(frozen=True)
class Experts:
    """Train an expert and a weak policy with stable-baselines3 (the extra sb3).

    Writes OUT/expert.safetensors and OUT/weak.safetensors with their cards, in the format of
    the zoo: `pubc collect custom` takes them, `pubc zoo FILE --measure 10` scores them. Train
    twice with different random seeds for two experts with different habits.
    """

    action: Annotated[Literal["train"], tyro.conf.Positional]
    """What to do: train."""
    environment: Annotated[str, tyro.conf.Positional]
    """Environment: ant, humanoid, halfcheetah, hopper, walker2d, or any Gymnasium id."""
    out: Annotated[Path, tyro.conf.Positional]
    """Folder to write the two policies to."""
    algo: Literal["td3", "sac"] = "td3"
    """Algorithm: the paper used td3 for Ant and sac for Humanoid."""
    steps: float = 1e6
    """Environment steps; hours on a CPU for a million."""
    weak_at: float | None = None
    """Steps after which the weak policy is written; a fifth of --steps where omitted."""
    random_seed: int = 0
    """Of networks, environment and exploration."""
    force: bool = False
    """Replace policies that are there."""
    json: bool = False
    """Print one JSON document instead of text."""

    def run(self) -> dict[str, Any]:
        """Train, with progress, and say what was written."""
        from pubc.collect.train_experts import training

        written: list[str] = []
        last = math.nan
        with progress("training", int(self.steps), quiet=self.json) as report:
            for now in training(
                self.environment,
                self.out,
                algorithm=self.algo,
                steps=int(self.steps),
                weak_at=None if self.weak_at is None else int(self.weak_at),
                random_seed=self.random_seed,
                overwrite=self.force,
            ):
                last = now.mean_return
                report(now.steps, "" if math.isnan(last) else f"steps, return {last:,.0f}")
                if now.written is not None:
                    written.append(str(now.written))
        if not self.json:
            for path in written:
                say(f"wrote {path}")
        return {
            "environment": self.environment,
            "written": written,
            "mean_return": None if math.isnan(last) else last,
        }


COMMAND = Experts
