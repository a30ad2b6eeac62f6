"""Does the motion end where the end marks are?

Flat recordings are cut by marks, and published datasets have marks in the wrong place: at
every thousandth sample, or where a goal was reached while the robot moved on. Two signs give
that away: the observation jumps in the middle of a trajectory, and it goes on smoothly from
one trajectory into the next.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from pubc.formats.core.findings import Findings, plural, verb
from pubc.trajectory import Array, TrajectorySet

__all__ = ["check_motion", "likely_length"]

Floats = NDArray[np.float64]
SAMPLE = 4_000_000
"""Numbers to look at; enough to see what a recording is like."""
JUMP = 20.0
"""Interquartile ranges above the upper quartile that make a change a jump."""

SMOOTH = 0.8
"""One step of a smooth motion changes less than this share of what two far-apart steps
differ by; noise does not, and says nothing about where it ends."""


def check_motion(trajectories: TrajectorySet, findings: Findings) -> None:
    """Warn where observations jump inside trajectories, or trajectories run on smoothly."""
    known = trajectories.metadata.get("max_episode_steps")
    if isinstance(known, int) and not isinstance(known, bool) and known > 0:
        _check_limit(trajectories, known, findings)
    if not trajectories.is_contiguous or not len(trajectories):
        return
    first = int(trajectories.starts[0])
    rows = min(trajectories.steps, SAMPLE // trajectories.observation_size + 1)
    observations = trajectories.columns.observations[first : first + rows]
    changes = _changes(observations)
    ends = trajectories.offsets[1:-1] - 1
    ends = ends[ends < len(changes)]
    inside = np.ones(len(changes), dtype=np.bool_)
    inside[ends] = False
    if inside.sum() < 100:
        return
    limit = _limit(changes[inside])
    jumps = np.flatnonzero(inside & (changes > limit))
    # A jump counts where it is as large as the change from one trajectory to the next:
    # robots hit things, but they do not fly back to where they started.
    if len(ends):
        jumps = jumps[changes[jumps] >= np.median(changes[ends])]
    if len(jumps):
        _warn_jumps(trajectories, jumps, findings)
    smooth = ends[changes[ends] <= np.quantile(changes[inside], 0.9)]
    far_apart = _changes(observations[:: max(1, rows // 1000)])
    moves_smoothly = np.median(changes[inside]) < SMOOTH * np.median(far_apart)
    if moves_smoothly and len(ends) >= 5 and len(smooth) > len(ends) / 2:
        findings.warn(
            "smooth_ends",
            f"{plural(len(smooth), 'trajectory')} of {len(ends):,} run smoothly into the next "
            "one: the end marks may be in the wrong place.",
            field="timeouts",
            count=len(smooth),
            first=int(np.searchsorted(trajectories.offsets, smooth[0], side="right")) - 1,
        )


def likely_length(observations: Array) -> int | None:
    """The distance between jumps where they are evenly spaced; None where they are not."""
    if observations.ndim != 2 or len(observations) < 100:
        return None
    changes = _changes(observations[: SAMPLE // observations.shape[1] + 1])
    if not np.isfinite(changes).all():
        return None
    jumps = np.flatnonzero(changes > _limit(changes))
    gaps = np.diff(jumps)
    if len(gaps) < 2 or gaps[0] < 2 or (gaps != gaps[0]).any():
        return None
    return int(gaps[0])


def _changes(observations: Array) -> Floats:
    """How much each observation differs from the one before, in units of each dimension."""
    values = np.asarray(observations, dtype=np.float32)
    spread = values.std(axis=0, dtype=np.float64)
    scale = np.where(spread > 0, spread, 1.0).astype(np.float32)
    # Bounded per dimension: a contact moves a few of them a lot, a new start moves most.
    differences = np.minimum(np.abs(np.diff(values, axis=0)) / scale, 1.0)
    return np.asarray(differences.mean(axis=1), dtype=np.float64)


def _limit(changes: Floats) -> float:
    low, high = np.quantile(changes, [0.25, 0.75])
    return float(high + JUMP * (high - low))


def _warn_jumps(trajectories: TrajectorySet, jumps: NDArray[np.int64], findings: Findings) -> None:
    owner = int(np.searchsorted(trajectories.offsets, jumps[0], side="right")) - 1
    step = int(jumps[0] - trajectories.offsets[owner]) + 1
    findings.warn(
        "jump_inside",
        f"the observation jumps at {plural(len(jumps), 'step')} inside trajectories (first: "
        f"trajectory {trajectories.ids[owner]}, step {step:,}): the end marks may be in the "
        "wrong place.",
        field="observations",
        count=len(jumps),
        first=int(jumps[0]) + 1,
    )


def _check_limit(trajectories: TrajectorySet, limit: int, findings: Findings) -> None:
    beyond = trajectories.lengths > limit
    if beyond.any():
        first, count = int(np.argmax(beyond)), int(beyond.sum())
        findings.warn(
            "beyond_limit",
            f"{plural(count, 'trajectory')} {verb(count)} longer than the {limit:,} steps "
            f"that the metadata allows (first: trajectory {trajectories.ids[first]}).",
            field="lengths",
            count=count,
            first=first,
        )
