"""Trajectories that are arrays already: checked by the same rules as those of a file."""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from pubc.errors import UsageError
from pubc.formats.core.assemble import Raw, assemble
from pubc.formats.core.findings import Findings
from pubc.formats.core.options import ReadOptions
from pubc.trajectory import TrajectorySet

__all__ = ["from_arrays", "from_episodes"]

_COLUMNS = ("observations", "actions", "rewards", "terminals", "timeouts")


def from_arrays(
    observations: ArrayLike,
    actions: ArrayLike,
    lengths: ArrayLike | None = None,
    *,
    rewards: ArrayLike | None = None,
    terminals: ArrayLike | None = None,
    timeouts: ArrayLike | None = None,
    ids: Sequence[str] | None = None,
    sources: Sequence[str] | None = None,
) -> TrajectorySet:
    """A set from arrays that hold its trajectories one after another.

    Args:
        observations: Shape (steps, dimensions); or (trajectories, steps, dimensions), where what
            lies beyond the length of a trajectory is padding.
        actions: One row per step, as `observations`.
        lengths: Steps of each trajectory. Without them the end marks say where trajectories end.
        rewards: One number per step.
        terminals: Where the task ended, one boolean per step.
        timeouts: Where the recording ended although the task did not.
        ids: What to call each trajectory; its position where omitted.
        sources: Which policy acted in each trajectory, for evaluation only.

    Raises:
        UsageError: Neither lengths nor end marks say where trajectories end.
        DataError: The arrays contradict each other, or hold what is not a number.

    Example:
        >>> import numpy as np
        >>> from_arrays(np.zeros((10, 3)), np.ones((10, 2)), lengths=[4, 6])
        TrajectorySet(2 trajectories, 10 steps, 3 -> 2)
    """
    given = (observations, actions, rewards, terminals, timeouts)
    columns = [None if column is None else np.asarray(column) for column in given]
    seen = columns[0]
    assert seen is not None
    sizes = None if lengths is None else _lengths(lengths)
    if seen.ndim == 3:
        if sizes is None:
            sizes = np.full(seen.shape[0], seen.shape[1], dtype=np.int64)
        columns = _without_padding(columns, sizes)
    if sizes is None and terminals is None and timeouts is None:
        raise UsageError(
            "Where do trajectories end? Pass their lengths, or terminals and timeouts with one "
            "boolean per step."
        )
    return _assembled(columns, sizes, ids, sources)


def from_episodes(
    episodes: Iterable[Mapping[str, Any] | Sequence[Any]],
    *,
    ids: Sequence[str] | None = None,
    sources: Sequence[str] | None = None,
) -> TrajectorySet:
    """A set from one entry per trajectory.

    Args:
        episodes: Each is (observations, actions), (observations, actions, rewards), or a mapping
            with those names and perhaps `terminals` and `timeouts`. Observations may be one
            longer than actions: the last one is then what was seen after the last action.
        ids: What to call each trajectory; its position where omitted.
        sources: Which policy acted in each trajectory, for evaluation only.

    Raises:
        UsageError: An entry is none of these, or there is none.
        DataError: The arrays contradict each other, or hold what is not a number.

    Example:
        >>> import numpy as np
        >>> short, long = (np.zeros((4, 3)), np.ones((4, 2))), (np.zeros((7, 3)), np.ones((6, 2)))
        >>> from_episodes([short, long])
        TrajectorySet(2 trajectories, 10 steps, 3 -> 2)
    """
    read = [_episode(episode, number) for number, episode in enumerate(episodes)]
    if not read:
        raise UsageError("There is no trajectory. Pass one (observations, actions) for each.")
    lengths = np.array([len(episode["actions"]) for episode in read], dtype=np.int64)
    has_final = np.array(
        [
            len(episode["observations"]) == size + 1
            for episode, size in zip(read, lengths, strict=True)
        ]
    )
    final = [episode["observations"][-1] for episode in read]
    for episode, more in zip(read, has_final, strict=True):
        if more:
            episode["observations"] = episode["observations"][:-1]
    columns: list[NDArray[Any] | None] = []
    for name in _COLUMNS:
        parts = [episode[name] for episode in read if name in episode]
        if parts and len(parts) < len(read):
            raise UsageError(f"Some trajectories have {name} and others do not. Pass all or none.")
        columns.append(_joined(parts, name) if parts else None)
    more = (_joined([row[None] for row in final], "observations"), has_final)
    return _assembled(columns, lengths, ids, sources, more if has_final.any() else None)


def _assembled(
    columns: Sequence[NDArray[Any] | None],
    lengths: NDArray[np.int64] | None,
    ids: Sequence[str] | None,
    sources: Sequence[str] | None,
    final: tuple[NDArray[Any], NDArray[np.bool_]] | None = None,
) -> TrajectorySet:
    observations, actions, rewards, terminals, timeouts = columns
    assert observations is not None
    assert actions is not None
    raw = Raw(
        observations,
        actions,
        rewards,
        terminals,
        timeouts,
        lengths=lengths,
        ids=None if ids is None else [str(name) for name in ids],
        sources=None if sources is None else [str(name) for name in sources],
        final_observations=None if final is None else final[0],
        has_final=None if final is None else final[1],
    )
    trajectories = assemble(raw, ReadOptions(), Findings(Path("arrays")))
    for problem in trajectories.problems:
        if problem.outcome != "noticed":
            warnings.warn(f"arrays: {problem.message}", stacklevel=3)
    return trajectories


def _episode(episode: Mapping[str, Any] | Sequence[Any], number: int) -> dict[str, NDArray[Any]]:
    if isinstance(episode, Mapping):
        named = {name: episode[name] for name in _COLUMNS if episode.get(name) is not None}
    elif isinstance(episode, tuple | list) and 2 <= len(episode) <= 3:
        named = dict(zip(_COLUMNS, episode, strict=False))
    else:
        named = {}
    if not {"observations", "actions"} <= set(named):
        raise UsageError(
            f"Trajectory {number}: expected (observations, actions), (observations, actions, "
            f"rewards) or a mapping with these names. Got {type(episode).__name__}."
        )
    arrays = {name: np.asarray(value) for name, value in named.items()}
    seen, acted = arrays["observations"], arrays["actions"]
    if seen.ndim != 2 or acted.ndim != 2 or not 0 <= len(seen) - len(acted) <= 1:
        raise UsageError(
            f"Trajectory {number}: expected observations of shape (steps, dimensions), with at "
            f"most one more after the last action, and actions of shape (steps, dimensions). Got "
            f"{seen.shape} and {acted.shape}."
        )
    return arrays


def _joined(parts: Sequence[NDArray[Any]], name: str) -> NDArray[Any]:
    widths = {part.shape[1:] for part in parts}
    if len(widths) > 1:
        raise UsageError(
            f"Trajectories differ in the shape of their {name}: "
            f"{' and '.join(str(width) for width in sorted(widths))} per step."
        )
    return np.concatenate(parts)


def _lengths(lengths: ArrayLike) -> NDArray[np.int64]:
    sizes = np.asarray(lengths)
    if sizes.ndim != 1 or sizes.dtype.kind not in "iu":
        raise UsageError(
            f"lengths: expected one integer per trajectory. Got {sizes.dtype} of shape "
            f"{sizes.shape}."
        )
    return sizes.astype(np.int64)


def _without_padding(
    columns: Sequence[NDArray[Any] | None], sizes: NDArray[np.int64]
) -> list[NDArray[Any] | None]:
    """Rows of all trajectories, from blocks that are padded to one length."""
    assert columns[0] is not None
    count, longest = columns[0].shape[:2]
    if sizes.shape != (count,) or (sizes > longest).any():
        raise UsageError(
            f"lengths: expected {count:,} numbers of at most {longest:,}, as observations have "
            f"shape {columns[0].shape}. Got {len(sizes):,}, the largest {sizes.max(initial=0):,}."
        )
    real = np.arange(longest) < sizes[:, None]
    for name, column in zip(_COLUMNS, columns, strict=True):
        if column is not None and column.shape[:2] != (count, longest):
            raise UsageError(
                f"{name}: expected {count:,} trajectories of {longest:,} steps, as observations "
                f"have. Got shape {column.shape}."
            )
    return [None if column is None else column[real] for column in columns]
