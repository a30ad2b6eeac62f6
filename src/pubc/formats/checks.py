"""Looking at the values: what is refused, what is dropped, what is only said.

Everything streams in blocks, so a set larger than memory is checked in place.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from pubc.formats.findings import Findings
from pubc.formats.options import ReadOptions
from pubc.trajectory import Array, TrajectorySet

__all__ = ["Ranges", "check_values"]

Floats = NDArray[np.float64]
FLOAT32_MAX = float(np.finfo(np.float32).max)


@dataclass(slots=True)
class Ranges:
    """Smallest and largest value of each dimension over a stream of blocks."""

    low: Floats
    high: Floats

    @classmethod
    def start(cls, size: int) -> Ranges:
        """Ranges that hold nothing yet."""
        return cls(np.full(size, np.inf), np.full(size, -np.inf))

    def add(self, block: Array) -> None:
        """Widen by a block; NaN spreads into both ends, so that it is never missed."""
        if len(block):
            self.low = np.minimum(self.low, block.min(axis=0))
            self.high = np.maximum(self.high, block.max(axis=0))

    @property
    def finite(self) -> bool:
        """Whether every value seen was finite."""
        return bool(np.isfinite(self.low).all() and np.isfinite(self.high).all())

    @property
    def constant(self) -> NDArray[np.bool_]:
        """Dimensions that never change."""
        return np.asarray(self.low == self.high)


def check_values(
    trajectories: TrajectorySet, options: ReadOptions, findings: Findings
) -> TrajectorySet:
    """Check what is in the arrays; returns the set, without trajectories it had to drop.

    Raises:
        DataError: Values that no computation survives, with the first place they occur.
    """
    ranges = _ranges(trajectories)
    bad = {name for name, seen in ranges.items() if not seen.finite}
    if bad - {"rewards"}:
        trajectories = _drop_nonfinite(trajectories, options, findings)
        ranges = _ranges(trajectories)
    if "rewards" in bad:
        _warn_rewards(trajectories, findings)
    for name in ("observations", "actions"):
        _check_range(name, ranges[name], findings)
    _check_constant(ranges, findings)
    _check_lengths(trajectories, findings)
    _check_duplicates(trajectories, findings)
    return replace(trajectories, problems=tuple(findings.problems))


def _ranges(trajectories: TrajectorySet) -> dict[str, Ranges]:
    seen = {
        "observations": Ranges.start(trajectories.observation_size),
        "actions": Ranges.start(trajectories.action_size),
    }
    if trajectories.columns.rewards is not None:
        seen["rewards"] = Ranges.start(1)
    for block in trajectories.blocks():
        seen["observations"].add(block.observations)
        seen["actions"].add(block.actions)
        if block.rewards is not None:
            seen["rewards"].add(block.rewards[:, None])
    return seen


def _drop_nonfinite(
    trajectories: TrajectorySet, options: ReadOptions, findings: Findings
) -> TrajectorySet:
    places = []
    bad = np.zeros(len(trajectories), dtype=np.bool_)
    for index, trajectory in enumerate(trajectories):
        for name in ("observations", "actions"):
            wrong = np.argwhere(~np.isfinite(getattr(trajectory.steps, name)))
            if len(wrong):
                bad[index] = True
                step, dimension = map(int, wrong[0])
                places.append((name, index, step, dimension))
    name, index, step, dimension = places[0]
    said = (
        f"{int(bad.sum()):,} of {len(bad):,} trajectories hold NaN or infinity; first in "
        f"trajectory {trajectories.ids[index]} (position {index}), step {step}, dimension "
        f"{dimension}"
    )
    if options.nonfinite == "refuse" or bad.all():
        findings.refuse(
            "nonfinite",
            said + ". --nonfinite drop-episode leaves such trajectories out.",
            field=name,
            index=(index, step, dimension),
            count=int(bad.sum()),
        )
    findings.repair("nonfinite", said + "; dropped.", field=name, count=int(bad.sum()), first=index)
    return trajectories[~bad]


def _warn_rewards(trajectories: TrajectorySet, findings: Findings) -> None:
    unknown = ~np.isfinite(trajectories.total_rewards())
    if unknown.any():
        first = int(np.argmax(unknown))
        findings.warn(
            "nonfinite_rewards",
            f"{int(unknown.sum()):,} trajectories have NaN or infinite rewards (first: "
            f"trajectory {trajectories.ids[first]}), so they cannot be ranked by return.",
            field="rewards",
            count=int(unknown.sum()),
            first=first,
        )


def _check_range(name: str, seen: Ranges, findings: Findings) -> None:
    wide = np.maximum(np.abs(seen.low), np.abs(seen.high)) > FLOAT32_MAX
    if wide.any():
        first = int(np.argmax(wide))
        findings.refuse(
            "beyond_float32",
            f"{int(wide.sum())} dimensions hold values beyond the float32 range (first: "
            f"dimension {first}), which cannot be computed with.",
            field=name,
            index=first,
            count=int(wide.sum()),
        )


def _check_constant(ranges: dict[str, Ranges], findings: Findings) -> None:
    for name, what in (("observations", "observation"), ("actions", "action")):
        still = ranges[name].constant
        first = int(np.argmax(still))
        if name == "actions" and still.all():
            findings.refuse(
                "equal_actions",
                "all actions are equal, so negatives cannot be made by mixing actions, "
                "and there is nothing to tell policies apart by.",
                field="actions",
                count=len(still),
            )
        if still.any():
            findings.warn(
                "constant_feature",
                f"{int(still.sum())} of {len(still)} {what} dimensions never change "
                f"(first: dimension {first}).",
                field=name,
                count=int(still.sum()),
                first=first,
            )


def _check_lengths(trajectories: TrajectorySet, findings: Findings) -> None:
    single = trajectories.lengths == 1
    if single.any():
        first = int(np.argmax(single))
        findings.warn(
            "one_step",
            f"{int(single.sum()):,} trajectories have a single step (first: trajectory "
            f"{trajectories.ids[first]}), too little to judge a policy by.",
            field="lengths",
            count=int(single.sum()),
            first=first,
        )


def _check_duplicates(trajectories: TrajectorySet, findings: Findings) -> None:
    """Find identical trajectories; only those alike at both ends are compared whole."""
    seen: dict[tuple[int, bytes, bytes], list[int]] = {}
    observations, actions = (
        trajectories.columns.observations,
        trajectories.columns.actions,
    )
    first_rows = observations[trajectories.starts]
    last_actions = actions[trajectories.starts + trajectories.lengths - 1]
    copies = []
    for index in range(len(trajectories)):
        key = (
            int(trajectories.lengths[index]),
            first_rows[index].tobytes(),
            last_actions[index].tobytes(),
        )
        earlier = seen.setdefault(key, [])
        if any(_same(trajectories, index, other) for other in earlier):
            copies.append(index)
        else:
            earlier.append(index)
    if copies:
        findings.warn(
            "duplicates",
            f"{len(copies):,} trajectories repeat an earlier one exactly (first: "
            f"trajectory {trajectories.ids[copies[0]]}).",
            field="observations",
            count=len(copies),
            first=copies[0],
        )


def _same(trajectories: TrajectorySet, one: int, other: int) -> bool:
    a, b = trajectories[one].steps, trajectories[other].steps
    return np.array_equal(a.actions, b.actions) and np.array_equal(a.observations, b.observations)
