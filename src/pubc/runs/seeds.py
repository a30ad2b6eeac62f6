"""Which trajectories a run is told about: the seeds, and the truth to measure against."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pubc.errors import DataError, UnknownNameError, UsageError
from pubc.formats.minari import minari_ids
from pubc.labels import parts_of, read_labels
from pubc.runs.filter_config import FilterConfig
from pubc.runs.folder.given_data import read_given
from pubc.runs.segments.seed_steps import marked_steps, marked_stretches
from pubc.select import by_ids, by_source, listed_ids, top_returns
from pubc.streams import Key
from pubc.trajectory import TrajectorySet

__all__ = ["Seeds", "bad_stretches", "choose_bad", "choose_seeds", "foretold", "truth_mask"]

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
    steps: NDArray[np.bool_] | None = None
    """Which steps are seeds, where that was said of steps."""


def choose_seeds(config: FilterConfig, mixed: TrajectorySet, tell: Callable[[str], None]) -> Seeds:
    """The seed positives that a configuration names; `tell` hears what should be known of them.

    Raises:
        UsageError: Two ways to name seeds were given, or one that leads nowhere.
        DataError: The data has no returns or sources to choose by.
    """
    elsewhere = None if config.seed_from is None else minari_ids.find(config.seed_from)
    marked = None if config.labels is None else parts_of(read_labels(config.labels), mixed)
    given = {
        "labels": str(config.labels) if marked is not None and len(marked.good) else None,
        "top": config.seed_top,
        "episodes": config.seed_episodes,
        "from": None if elsewhere is None else str(elsewhere.resolve()),
        "source": config.seed_source,
        "steps_column": config.seed_steps_column,
    }
    ways = [name for name, value in given.items() if value is not None]
    if len(ways) > 1:
        flags = ["--labels" if w == "labels" else f"--seed-{w.replace('_', '-')}" for w in ways]
        raise UsageError(f"Name seeds in one way. Got {' and '.join(flags)}.")
    how = ways[0] if ways else "top"
    asked: dict[str, Any] = {"how": how, **given, "count": None}
    if how == "labels":
        assert marked is not None
        return Seeds(marked.good, asked)
    if how == "steps_column":
        name = str(config.seed_steps_column)
        steps = marked_steps(mixed, name)
        return Seeds(marked_stretches(mixed, steps, name), asked, steps)
    if how == "episodes":
        names = listed_ids(mixed, str(config.seed_episodes))
        return Seeds(mixed[by_ids(mixed, names)], asked)
    if how == "from":
        assert elsewhere is not None
        options = dataclasses.replace(config.reading, format=None)
        return Seeds(read_given(elsewhere, options, tell), asked)
    # Those are chosen for the user, who has said of some what they are not.
    left = np.flatnonzero(~choose_bad(config, mixed))
    if how == "source":
        rng = Key(config.random_seed, ("seeds",)).rng()
        asked["count"] = config.seed_count
        chosen = by_source(mixed[left], str(config.seed_source), config.seed_count, rng)
        return Seeds(mixed[left[chosen]], asked)
    asked["top"] = share = SEED_TOP if config.seed_top is None else config.seed_top
    if len(left) < 2 * AT_LEAST:
        raise DataError(
            f"{len(left)} trajectories are too few to take the {AT_LEAST} with the highest "
            "return as seeds. Name seeds with --seed-episodes or --seed-from.",
            code="too_few",
        )
    top = top_returns(mixed[left], share, at_least=AT_LEAST, shortest=2)
    return Seeds(mixed[left[top]], asked)


def choose_bad(config: FilterConfig, mixed: TrajectorySet) -> NDArray[np.bool_]:
    """Which trajectories a configuration names as not the expert's, shape (trajectories,).

    Raises:
        UsageError: No trajectory has that id.
        DataError: The file of labels holds none.
    """
    found = np.zeros(len(mixed), dtype=np.bool_)
    found[by_ids(mixed, listed_ids(mixed, config.bad_episodes or ""))] = True
    if config.labels is not None:
        found[parts_of(read_labels(config.labels), mixed).bad_positions] = True
    return found


def bad_stretches(config: FilterConfig, mixed: TrajectorySet) -> tuple[tuple[int, int, int], ...]:
    """Steps that labels call bad in trajectories that are not bad as a whole.

    Returns:
        Position of the trajectory, first step, and the step after the last, of each stretch.
    """
    if config.labels is None:
        return ()
    return parts_of(read_labels(config.labels), mixed).bad_stretches


def foretold(config: FilterConfig) -> tuple[bool, ...]:
    """For each mark that a run had said something of before, whether it was right."""
    return () if config.labels is None else read_labels(config.labels).foretold


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
