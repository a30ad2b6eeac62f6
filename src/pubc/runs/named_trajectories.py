"""Trajectories that a caller names: by id, by position, by a boolean mask, or as a set.

A position that is taken for a mask, or a number that is cut to an integer, gives a confident
answer about the wrong trajectories. So every kind is checked, and what is none of them is
refused with a sentence.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from pubc.errors import UsageError
from pubc.select import by_ids, locate
from pubc.trajectory import Trajectory, TrajectorySet

__all__ = ["Named", "bad_in", "positions_in", "seeds_in"]

Named: TypeAlias = TrajectorySet | Sequence[str] | Sequence[int] | Sequence[bool] | NDArray[Any]
"""Ids, positions, one boolean per trajectory, or the trajectories themselves."""

Mask = NDArray[np.bool_]
_KINDS = "ids, positions, one boolean per trajectory, or a TrajectorySet"


def seeds_in(mixed: TrajectorySet, seeds: Named) -> TrajectorySet:
    """The seed positives that were named; a set may come from elsewhere.

    Raises:
        UsageError: They are named in a way that means nothing, or there are none.
    """
    if isinstance(seeds, TrajectorySet):
        return seeds
    return mixed[positions_in(mixed, seeds, "seeds")]


def bad_in(mixed: TrajectorySet, bad: Named | None) -> Mask:
    """Which trajectories are named as bad, shape (trajectories,).

    Raises:
        UsageError: They are named in a way that means nothing, or are not in the pile.
    """
    found = np.zeros(len(mixed), dtype=np.bool_)
    if isinstance(bad, TrajectorySet):
        places = locate(mixed, bad)
        if (places < 0).any():
            raise UsageError(
                f"bad: trajectory {bad.ids[np.argmin(places)]!s} is not in the mixed set. Only "
                "trajectories of the mixed set can be named as bad."
            )
        found[places] = True
    elif bad is not None:
        found[positions_in(mixed, bad, "bad")] = True
    return found


def positions_in(mixed: TrajectorySet, named: Any, what: str) -> NDArray[np.int64]:
    """Positions of the trajectories that were named, each once, in the order given.

    Args:
        mixed: The pile.
        named: Ids, positions, or one boolean per trajectory.
        what: What to call them in a message.

    Raises:
        UsageError: They are named in a way that means nothing.
    """
    values = _values(named, what)
    if not values.size:
        return np.zeros(0, dtype=np.int64)
    if values.dtype == np.bool_:
        return _of_mask(values, len(mixed), what)
    if values.dtype.kind in "US":
        names = [str(name) for name in dict.fromkeys(values.astype(np.str_).tolist())]
        return by_ids(mixed, names)
    if values.dtype.kind not in "iu":
        raise UsageError(
            f"{what}: expected {_KINDS}. Got {_kind(values)}, first {values.tolist()[0]!r}."
        )
    wrong = (values < 0) | (values >= len(mixed))
    if wrong.any():
        raise UsageError(
            f"{what}: positions lie between 0 and {len(mixed) - 1:,}, as the mixed set has "
            f"{len(mixed):,} trajectories. Got {int(values[np.argmax(wrong)])}."
        )
    _, first = np.unique(values, return_index=True)
    return np.asarray(values[np.sort(first)], dtype=np.int64)


def _values(named: Any, what: str) -> NDArray[Any]:
    """One axis of values of one kind."""
    one = isinstance(named, str | bytes | int | float | np.generic | Trajectory)
    if named is None or one or isinstance(named, dict):
        hint = f" For one trajectory pass a list: [{named!r}]." if one else ""
        if isinstance(named, Trajectory):
            hint = " For one trajectory of the mixed set pass its position: mixed[[3]]."
        raise UsageError(f"{what}: expected {_KINDS}. Got {type(named).__name__}.{hint}")
    given = named if hasattr(named, "__array__") else list(named)
    kinds = {_word(value) for value in given} if isinstance(given, list) else set()
    if len(kinds) > 1:
        raise UsageError(
            f"{what}: expected {_KINDS}, all of one kind. Got {' and '.join(sorted(kinds))}."
        )
    if kinds and not kinds <= {"booleans", "integers", "ids", "numbers"}:
        raise UsageError(f"{what}: expected {_KINDS}. Got a list of {kinds.pop()}.")
    values = np.asarray(given)
    if values.ndim != 1:
        raise UsageError(f"{what}: expected one axis of {_KINDS}. Got shape {values.shape}.")
    if values.dtype.kind == "O":
        return _values(values.tolist(), what)
    return values


def _of_mask(mask: Mask, count: int, what: str) -> NDArray[np.int64]:
    if len(mask) != count:
        raise UsageError(
            f"{what}: a boolean mask has one entry per trajectory of the mixed set, which has "
            f"{count:,}. Got {len(mask):,}."
        )
    return np.flatnonzero(mask).astype(np.int64)


def _word(value: Any) -> str:
    if isinstance(value, bool | np.bool_):
        return "booleans"
    if isinstance(value, int | np.integer):
        return "integers"
    if isinstance(value, str):
        return "ids"
    if isinstance(value, float | np.floating):
        return "numbers"
    return type(value).__name__


def _kind(values: NDArray[Any]) -> str:
    return "numbers that are not integers" if values.dtype.kind == "f" else str(values.dtype)
