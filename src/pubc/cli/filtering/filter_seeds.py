"""Which trajectories `pubc filter` is told about: the seeds, and the truth to measure against."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from pubc import formats
from pubc.errors import DataError, UnknownNameError, UsageError
from pubc.select import by_ids, by_source, top_returns
from pubc.trajectory import TrajectorySet

if TYPE_CHECKING:
    from pubc.cli.filtering.filter_command import Filter

__all__ = ["Seeds", "choose_seeds", "truth_mask"]

SEED_TOP = 0.004
"""Share of highest returns that are seeds where nothing else is said."""
AT_LEAST = 2
"""Seeds by return: with a single one nothing could be held out."""


@dataclass(frozen=True, slots=True, eq=False)
class Seeds:
    """The seeds that were asked for."""

    trajectories: TrajectorySet
    """The seed positives."""
    asked: dict[str, Any]
    """How they were named, for run.json."""


def choose_seeds(command: Filter, mixed: TrajectorySet) -> Seeds:
    """The seed positives that the flags name.

    Raises:
        UsageError: Two ways to name seeds were given, or one that leads nowhere.
        DataError: The data has no returns or sources to choose by.
    """
    given = {
        "top": command.seed_top,
        "episodes": command.seed_episodes,
        "from": None if command.seed_from is None else str(command.seed_from.resolve()),
        "source": command.seed_source,
    }
    ways = [name for name, value in given.items() if value is not None]
    if len(ways) > 1:
        raise UsageError(
            f"Name seeds in one way. Got {' and '.join(f'--seed-{way}' for way in ways)}."
        )
    how = ways[0] if ways else "top"
    asked: dict[str, Any] = {"how": how, **given, "count": None}
    if how == "episodes":
        words = [word.strip() for word in str(command.seed_episodes).split(",")]
        return Seeds(mixed[by_ids(mixed, [word for word in words if word])], asked)
    if how == "from":
        assert command.seed_from is not None
        options = dataclasses.replace(command.reading, format=None)
        return Seeds(formats.read(command.seed_from, options), asked)
    if how == "source":
        from pubc.streams import Key

        rng = Key(command.random_seed, ("seeds",)).rng()
        asked["count"] = command.seed_count
        chosen = by_source(mixed, str(command.seed_source), command.seed_count, rng)
        return Seeds(mixed[chosen], asked)
    asked["top"] = share = SEED_TOP if command.seed_top is None else command.seed_top
    if len(mixed) < 2 * AT_LEAST:
        raise DataError(
            f"{len(mixed)} trajectories are too few to take the {AT_LEAST} with the highest "
            "return as seeds. Name seeds with --seed-episodes or --seed-from.",
            code="too_few",
        )
    return Seeds(mixed[top_returns(mixed, share, at_least=AT_LEAST, shortest=2)], asked)


def truth_mask(mixed: TrajectorySet, name: str | None) -> NDArray[np.bool_] | None:
    """Which trajectories are by the named policy; None where none was named."""
    if name is None:
        return None
    if mixed.sources is None:
        raise DataError(
            "The dataset does not say which policy acted, so --truth has nothing to compare "
            "with. If it has a column that does, pass --source-key.",
            code="no_sources",
            field="sources",
        )
    if name not in mixed.sources:
        raise UnknownNameError("source", name, np.unique(mixed.sources).tolist())
    return np.asarray(mixed.sources == name)
