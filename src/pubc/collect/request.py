"""What to collect, said once: the recipe, the sizes and the random seed.

Two equal requests give equal bytes, so the request, with the hashes of the weights it names,
is also how a run that was killed recognises its own work.
"""

from __future__ import annotations

import hashlib
import json
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from pubc import zoo
from pubc.acting.environments import spec
from pubc.collect.lapses import NOISE_LAPSE, REPEAT_LAPSE
from pubc.collect.mixture_recipes import Recipe, Source
from pubc.collect.policy_files import fingerprint
from pubc.collect.source_quota import Quota
from pubc.errors import UsageError

__all__ = ["Request"]


@dataclass(frozen=True, slots=True)
class Request:
    """Everything that decides what is collected."""

    recipe: Recipe
    """Who acts where."""
    steps_per_source: int | None = 500_000
    """Steps of each source; the last trajectory is cut there. The paper's 500,000."""
    trajectories_per_source: int | None = None
    """Whole trajectories of each source instead of steps."""
    seed_steps: int = 2000
    """Steps of the expert in a set of their own, the seed positives. The paper's 2,000."""
    seed_inside: int = 0
    """Mark this many of the expert's trajectories in the mixture instead."""
    random_seed: int = 0
    """Same seed, same machine: same bytes."""

    def __post_init__(self) -> None:
        if (self.steps_per_source is None) == (self.trajectories_per_source is None):
            raise UsageError("Give either steps per source or trajectories per source.")
        given = (self.steps_per_source or self.trajectories_per_source or 0, self.random_seed + 1)
        if min(given) < 1 or min(self.seed_steps, self.seed_inside) < 0:
            raise UsageError("Steps, trajectories and the random seed must be positive numbers.")

    def plan(self) -> dict[str, Any]:
        """The request as JSON, with the hashes of the weights: a resumed run must equal it."""
        recipe = self.recipe
        sources = [_facts(source) for source in recipe.sources]
        return {
            "version": 1,
            "recipe": recipe.name,
            "environment": recipe.environment,
            "sources": sources,
            "steps_per_source": self.steps_per_source,
            "trajectories_per_source": self.trajectories_per_source,
            "seed_steps": self.seed_steps,
            "seed_inside": self.seed_inside,
            "random_seed": self.random_seed,
        }

    def digest(self) -> str:
        """What tells the request from any other."""
        return hashlib.sha256(json.dumps(self.plan(), sort_keys=True).encode()).hexdigest()

    def seed_path(self, out: Path) -> Path | None:
        """Where the seed positives go: a dataset, or a list of ids inside the mixture."""
        if self.seed_inside:
            return out.with_name(f"{out.stem}-seed.json")
        return out.with_name(f"{out.stem}-seed{out.suffix}") if self.seed_steps else None

    def targets(self, out: Path) -> list[Path]:
        """Everything that is written where the mixture goes to `out`."""
        beside = self.seed_path(out)
        return [out] if beside is None else [out, beside]

    def metadata(self) -> dict[str, Any]:
        """What the dataset says of itself; the same on every machine."""
        facts = self.plan()
        found = spec(self.recipe.environment)
        for source in facts["sources"]:
            for player in (source, *source.get("lapses", ())):
                if player["policy"] is not None and player["policy"] not in zoo.names():
                    player["policy"] = Path(player["policy"]).name
        return {
            **facts,
            "environment_id": found.id,
            "environment_arguments": dict(found.arguments),
            "expert": self.recipe.expert.name,
        }

    def quota(self, share: float) -> Quota:
        """What one source contributes."""
        if self.steps_per_source is not None:
            return Quota(max(1, round(self.steps_per_source * share)), None)
        return Quota(None, max(1, round((self.trajectories_per_source or 0) * share)))


def _facts(source: Source) -> dict[str, Any]:
    """A source as JSON with the hashes of its weights; lapses are named where there are any."""
    facts = asdict(source)
    facts["sha256"] = None if source.policy is None else fingerprint(source.policy)
    lapses = facts.pop("lapses")
    for lapse in lapses:
        played = lapse["policy"] not in (NOISE_LAPSE, REPEAT_LAPSE)
        lapse["sha256"] = fingerprint(lapse["policy"]) if played else None
    return {**facts, "lapses": list(lapses)} if lapses else facts
