"""The expert's segments as a set of trajectories, each with the place that it was cut from.

A segment is a trajectory of its own. It points into the columns of the data, so cutting costs no
memory; it ends by timeout unless the trajectory itself ended there, and carries the observation
after its last step wherever the data has it. Where it comes from is said three times: in its id,
in the columns `source_trajectory` and `source_step`, and in the metadata.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from pubc.errors import UsageError
from pubc.formats.core.provenance import SEGMENTS
from pubc.pu.steps.cut_segments import expert_stretches
from pubc.pu.steps.idle_steps import IdleRule
from pubc.trajectory import Array, TrajectorySet

__all__ = ["check_segment_options", "cut_segments"]

Mask = NDArray[np.bool_]
Floats = NDArray[np.float32]
Integers = NDArray[np.int64]
_TRAJECTORY, _STEP = "source_trajectory", "source_step"


def check_segment_options(segments: bool, shortest: int, margin: int, drop_idle: bool) -> None:
    """Refuse what makes no sense, before any work is done.

    Raises:
        UsageError: A length is impossible, or means nothing without segments.
    """
    if shortest < 1:
        raise UsageError(f"--min-segment must be at least 1 step. Got {shortest}.")
    if margin < 0:
        raise UsageError(f"--segment-margin cannot be negative. Got {margin}.")
    if drop_idle and not segments:
        raise UsageError("--drop-idle cuts trajectories, so it needs --segments.")


def cut_segments(
    mixed: TrajectorySet,
    confidence: Floats,
    bad: Mask,
    *,
    shortest: int,
    margin: int,
    idle: IdleRule | None = None,
    warn: Callable[[str], None] = lambda sentence: None,
) -> TrajectorySet | None:
    """The segments of the expert; None where there is none of the length asked for.

    Args:
        mixed: The data.
        confidence: Of every step of it, in order.
        bad: Trajectories of which nothing is taken.
        shortest: Fewest steps of a segment.
        margin: Steps left out next to a fault.
        idle: Says which steps stand still where the expert would not; they are left out too.
        warn: Told where nothing is long enough.
    """
    rows: list[tuple[int, int, int]] = []
    longest, offsets = 0, mixed.offsets
    for position in np.flatnonzero(~bad).tolist():
        start, length = int(mixed.starts[position]), int(mixed.lengths[position])
        values = confidence[offsets[position] : offsets[position] + length]
        without = None
        if idle is not None:
            without = idle.idle(mixed.columns.observations[start : start + length])
        for first, end in expert_stretches(values, shortest=1, margin=margin, without=without):
            longest = max(longest, end - first)
            if end - first >= shortest:
                rows.append((position, first, end))
    if not rows:
        warn(
            f"no segment of the expert has {shortest:,} steps (the longest has {longest:,}), so "
            "nothing is kept. Lower --min-segment, or look at the report."
        )
        return None
    return _as_set(mixed, np.array(rows, dtype=np.int64))


def _as_set(mixed: TrajectorySet, rows: Integers) -> TrajectorySet:
    position, first, end = rows.T
    names = mixed.ids[position].tolist()
    ids = [f"{n}#{a}-{b}" for n, a, b in zip(names, first.tolist(), end.tolist(), strict=True)]
    columns = mixed.columns
    starts = mixed.starts[position] + first
    last = mixed.starts[position] + end - 1
    whole = end == mixed.lengths[position]
    terminals, timeouts = columns.terminals.copy(), columns.timeouts.copy()
    timeouts[last[~whole]] = True
    # A trajectory without a mark at its end was cut off there, so its last segment is, too.
    timeouts[last[whole & ~terminals[last]]] = True
    extras = {**columns.extras, **_places(mixed)}
    finals, has = _finals(mixed, rows)
    table = [[n, a, b] for n, a, b in zip(names, first.tolist(), end.tolist(), strict=True)]
    return TrajectorySet(
        replace(columns, terminals=terminals, timeouts=timeouts, extras=extras),
        starts,
        end - first,
        np.asarray(ids, dtype=np.str_),
        sources=None if mixed.sources is None else mixed.sources[position],
        final_observations=finals,
        has_final=has,
        metadata={**mixed.metadata, SEGMENTS: table},
    )


def _places(mixed: TrajectorySet) -> dict[str, Array]:
    """For every row of the columns, which trajectory and which step of it that is."""
    rows = len(mixed.columns.observations)
    # A set of more than two thousand million steps does not exist; half the memory does.
    trajectory, step = np.full((2, rows), -1, dtype=np.int32)
    # One trajectory at a time: numbers of all steps at once took half a gigabyte of 4 GiB.
    for position, (start, length) in enumerate(zip(mixed.starts, mixed.lengths, strict=True)):
        trajectory[start : start + length] = position
        step[start : start + length] = np.arange(length)
    return {_TRAJECTORY: trajectory, _STEP: step}


def _finals(mixed: TrajectorySet, rows: Integers) -> tuple[Array, Mask]:
    """The observation after each segment: the next one of its trajectory, or its final one."""
    position, _, end = rows.T
    inside = end < mixed.lengths[position]
    observations = mixed.columns.observations
    finals = np.zeros((len(rows), *observations.shape[1:]), dtype=observations.dtype)
    finals[inside] = observations[(mixed.starts[position] + end)[inside]]
    has = inside.copy()
    if mixed.final_observations is not None and mixed.has_final is not None:
        ended = ~inside & mixed.has_final[position]
        finals[ended] = mixed.final_observations[position[ended]]
        has |= ended
    return finals, has
