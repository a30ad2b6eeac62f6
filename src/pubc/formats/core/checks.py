"""Looking at the values: what is refused, what is dropped, what is only said.

Everything streams in blocks, so a set larger than memory is checked in place.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from pubc.formats.core.duplicates import check_duplicates
from pubc.formats.core.findings import Findings, plural, verb
from pubc.formats.core.options import ReadOptions
from pubc.trajectory import Array, TrajectorySet

__all__ = ["Ranges", "check_values", "check_words"]

Floats = NDArray[np.float64]
FLOAT32_MAX = float(np.finfo(np.float32).max)
NEAR_CONSTANT = 1e-5
"""A dimension that varies less than this, in its own size, is noise to a network."""
_SHOWN = 5
_LINE = 1024
"""Values in a line of folded rows, at most."""


def check_words(words: NDArray[np.str_], field: str, findings: Findings) -> None:
    """Refuse names that are no text: halves of a character, which no file or table can hold."""
    if not words.size or not words.dtype.itemsize:
        return
    letters = np.ascontiguousarray(words).view(np.uint32).reshape(len(words), -1)
    halves = ((letters >= 0xD800) & (letters <= 0xDFFF)).any(axis=1)
    if halves.any():
        first, count = int(np.argmax(halves)), int(halves.sum())
        told = str(words[first]).encode("ascii", "backslashreplace").decode()
        findings.refuse(
            "bad_ids",
            f"'{told[:80]}' at position {first:,} holds half a character (a lone surrogate), so it "
            f"cannot be written down ({count:,} such). Give it another name in the dataset.",
            field=field,
            index=first,
            count=count,
        )


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
        # Rows are short; folding many into one lets the processor work on long lines.
        # Powers of two leave nothing over in whole blocks.
        many = 1 << (max(1, _LINE // block.shape[1]).bit_length() - 1)
        even = len(block) - len(block) % many
        for part, fold in ((block[:even], many), (block[even:], 1)):
            if len(part):
                lines = part.reshape(len(part) // fold, -1)
                size = (fold, block.shape[1])
                low, high = lines.min(axis=0).reshape(size), lines.max(axis=0).reshape(size)
                self.low = np.minimum(self.low, low.min(axis=0))
                self.high = np.maximum(self.high, high.max(axis=0))

    @property
    def finite(self) -> bool:
        """Whether every value seen was finite."""
        return bool(np.isfinite(self.low).all() and np.isfinite(self.high).all())

    @property
    def constant(self) -> NDArray[np.bool_]:
        """Dimensions that never change."""
        return np.asarray(self.low == self.high)

    @property
    def near_constant(self) -> NDArray[np.bool_]:
        """Dimensions that change, but hardly."""
        size = np.maximum(1.0, np.maximum(np.abs(self.low), np.abs(self.high)))
        return np.asarray(~self.constant & (self.high - self.low < NEAR_CONSTANT * size))


def check_values(
    trajectories: TrajectorySet,
    options: ReadOptions,
    findings: Findings,
    *,
    bounds: tuple[Array, Array] | None = None,
) -> TrajectorySet:
    """Check what is in the arrays; returns the set, without trajectories it had to drop.

    Args:
        trajectories: What a reader assembled.
        options: What to do about what is found.
        findings: Where it is recorded.
        bounds: Lowest and highest action that the source allows, where it says so.

    Raises:
        DataError: Values that no computation survives, with the first place they occur.
    """
    ranges = _ranges(trajectories)
    bad = {name for name, seen in ranges.items() if not seen.finite}
    if bad - {"rewards"} or not _finite_ends(trajectories).all():
        trajectories = _drop_nonfinite(trajectories, options, findings)
        ranges = _ranges(trajectories)
    if "rewards" in bad:
        _warn_rewards(trajectories, findings)
    for name in ("observations", "actions"):
        _check_range(name, ranges[name], trajectories, findings)
    if bounds is not None:
        _check_bounds(bounds, ranges["actions"], trajectories, findings)
    _check_constant(ranges, findings)
    _check_lengths(trajectories, findings)
    check_duplicates(trajectories, findings)
    return replace(trajectories, problems=tuple(findings.problems))


def _ranges(trajectories: TrajectorySet) -> dict[str, Ranges]:
    columns = trajectories.columns
    seen = {}
    for name in ("observations", "actions", "rewards"):
        column: Array | None = getattr(columns, name)
        if column is not None:
            seen[name] = Ranges.start(column.shape[1] if column.ndim == 2 else 1)
            for block in trajectories.stream(column):
                seen[name].add(block.reshape(len(block), -1))
    return seen


def _finite_ends(trajectories: TrajectorySet) -> NDArray[np.bool_]:
    """Per trajectory, whether its final observation is finite or absent."""
    final, has = trajectories.final_observations, trajectories.has_final
    if final is None or has is None:
        return np.ones(len(trajectories), dtype=np.bool_)
    return np.asarray(np.isfinite(final).all(axis=1) | ~has)


def _drop_nonfinite(
    trajectories: TrajectorySet, options: ReadOptions, findings: Findings
) -> TrajectorySet:
    places = []
    bad = ~_finite_ends(trajectories)
    if bad.any():
        index = int(np.argmax(bad))
        wrong = ~np.isfinite(np.asarray(trajectories.final_observations)[index])
        step = int(trajectories.lengths[index])
        places.append(("final_observations", index, step, int(np.argmax(wrong))))
    for index, trajectory in enumerate(trajectories):
        for name in ("observations", "actions"):
            finite = np.isfinite(getattr(trajectory.steps, name))
            if not finite.all():
                bad[index] = True
                step, dimension = map(int, np.argwhere(~finite)[0])
                places.append((name, index, step, dimension))
    places.sort(key=lambda place: place[1])
    name, index, step, dimension = places[0]
    listed = "; ".join(
        f"{n} of trajectory {trajectories.ids[i]} (position {i}), step {s}, dimension {d}"
        for n, i, s, d in places[:_SHOWN]
    )
    count = int(bad.sum())
    said = f"{plural(count, 'trajectory')} of {len(bad):,} with NaN or infinity: {listed}"
    if options.nonfinite == "refuse" or bad.all():
        findings.refuse(
            "nonfinite",
            said + ". --nonfinite drop-episode leaves such trajectories out.",
            field=name,
            index=(index, step, dimension),
            count=count,
        )
    findings.repair("nonfinite", said + "; dropped.", field=name, count=count, first=index)
    return trajectories[~bad]


def _warn_rewards(trajectories: TrajectorySet, findings: Findings) -> None:
    unknown = ~np.isfinite(trajectories.total_rewards())
    if unknown.any():
        first, count = int(np.argmax(unknown)), int(unknown.sum())
        findings.warn(
            "nonfinite_rewards",
            f"{plural(count, 'trajectory')} with NaN or infinite rewards (first: trajectory "
            f"{trajectories.ids[first]}), so no ranking by return can include "
            f"{verb(count, 'it', 'them')}.",
            field="rewards",
            count=count,
            first=first,
        )


def _check_range(name: str, seen: Ranges, trajectories: TrajectorySet, findings: Findings) -> None:
    wide = np.maximum(np.abs(seen.low), np.abs(seen.high)) > FLOAT32_MAX
    if not wide.any():
        return
    first, count = -1, 0
    for start, values in _numbered(trajectories, getattr(trajectories.columns, name)):
        rows = np.flatnonzero((np.abs(values[:, wide]) > FLOAT32_MAX).any(axis=1))
        count += len(rows)
        if len(rows) and first < 0:
            first = start + int(rows[0])
    findings.refuse(
        "beyond_float32",
        f"{plural(count, 'step')} with values beyond the float32 range (first: step {first:,}, "
        f"dimension {int(np.argmax(wide))}), which cannot be computed with.",
        field=name,
        index=first,
        count=count,
    )


def _check_bounds(
    bounds: tuple[Array, Array],
    seen: Ranges,
    trajectories: TrajectorySet,
    findings: Findings,
) -> None:
    """Count the actions that the source's own bounds do not allow; nothing is clipped."""
    low, high = (np.broadcast_to(np.asarray(b, dtype=float), seen.low.shape) for b in bounds)
    # A bound written in float32 may lie just beside the float64 value it stands for.
    slack = 1e-6 * np.maximum(1.0, np.where(np.isfinite(high), np.abs(high), 1.0))
    if ((seen.low >= low - slack) & (seen.high <= high + slack)).all():
        return
    first, count = -1, 0
    for start, values in _numbered(trajectories, trajectories.columns.actions):
        rows = np.flatnonzero(((values < low - slack) | (values > high + slack)).any(axis=1))
        count += len(rows)
        if len(rows) and first < 0:
            first = start + int(rows[0])
    findings.warn(
        "action_bounds",
        f"{plural(count, 'action')} outside the bounds that the dataset declares (first: step "
        f"{first:,}); kept as {verb(count, 'it is', 'they are')}.",
        field="actions",
        count=count,
        first=first,
    )


def _numbered(trajectories: TrajectorySet, column: Array) -> Iterator[tuple[int, Array]]:
    """Blocks of a column with the position of their first step."""
    start = 0
    for values in trajectories.stream(column):
        yield start, values
        start += len(values)


def _check_constant(ranges: dict[str, Ranges], findings: Findings) -> None:
    if ranges["actions"].constant.all():
        findings.refuse(
            "equal_actions",
            "all actions are equal, so negatives cannot be made by mixing actions, and "
            "there is nothing to tell policies apart by.",
            field="actions",
            index=0,
            count=len(ranges["actions"].low),
        )
    for name, what in (("observations", "observation"), ("actions", "action")):
        still, nearly = ranges[name].constant, ranges[name].near_constant
        for code, which, words in (
            ("constant_feature", still, "never change"),
            ("near_constant", nearly, f"change by less than {NEAR_CONSTANT:g} of their size"),
        ):
            if which.any():
                count, first = int(which.sum()), int(np.argmax(which))
                findings.warn(
                    code,
                    f"{count} of {len(which)} {what} dimensions {words} (first: dimension "
                    f"{first}).",
                    field=name,
                    count=count,
                    first=first,
                )


def _check_lengths(trajectories: TrajectorySet, findings: Findings) -> None:
    single = trajectories.lengths == 1
    if single.any():
        first, count = int(np.argmax(single)), int(single.sum())
        findings.notice(
            "one_step",
            f"{plural(count, 'trajectory')} of a single step (first: trajectory "
            f"{trajectories.ids[first]}), too little to judge a policy by.",
            field="lengths",
            count=count,
            first=first,
        )
