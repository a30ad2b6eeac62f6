"""From a reader's raw arrays to a checked `TrajectorySet`.

Every reader ends here, so the rules for bad arrays are written once. The checks in this
file are the structural ones that every opening pays for; `checks` looks deeper.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pubc.formats.core.checks import check_values, check_words
from pubc.formats.core.column_shapes import (
    Flags,
    check_numeric,
    extra_columns,
    matrix,
    to_flags,
    vector,
)
from pubc.formats.core.cuts import lengths_from_ends
from pubc.formats.core.findings import Findings, plural, verb
from pubc.formats.core.options import ReadOptions
from pubc.trajectory import Array, Columns, TrajectorySet

__all__ = ["Raw", "assemble"]

Integers = NDArray[np.int64]


@dataclass(slots=True)
class Raw:
    """What a reader took from its file, unchecked."""

    observations: Array
    actions: Array
    rewards: Array | None
    terminals: Array | None
    timeouts: Array | None
    lengths: Integers | None = None
    """Steps of each trajectory; read from the end marks where omitted."""
    ids: Sequence[str] | None = None
    sources: Sequence[str] | None = None
    final_observations: Array | None = None
    has_final: Flags | None = None
    action_bounds: tuple[Array, Array] | None = None
    """Lowest and highest action that the source allows, per dimension."""
    extras: Mapping[str, Array] = field(default_factory=dict)
    metadata: Mapping[str, Any] = field(default_factory=dict)


def assemble(raw: Raw, options: ReadOptions, findings: Findings) -> TrajectorySet:
    """Check raw arrays by the rule table and build the set.

    Raises:
        DataError: A fault whose rule is to refuse; the message names the field, the first
            bad index, the count, and how to go on.
    """
    observations = matrix(raw.observations, "observations", findings)
    actions = matrix(raw.actions, "actions", findings)
    rewards = None if raw.rewards is None else vector(raw.rewards, "rewards", findings)
    rows = len(observations)
    if not rows:
        findings.refuse("empty", "the dataset holds no step.", field="observations")
    for name, column in (("actions", actions), ("rewards", rewards)):
        if column is not None and len(column) != rows:
            findings.refuse(
                "unequal_lengths",
                f"observations has {rows:,} rows but {name} has {len(column):,}. Every "
                "step needs one of each.",
                field=name,
                index=min(rows, len(column)),
                count=abs(rows - len(column)),
            )
    terminals = to_flags(raw.terminals, "terminals", rows, findings)
    timeouts = to_flags(raw.timeouts, "timeouts", rows, findings)
    both = int(np.count_nonzero(terminals & timeouts))
    if both:
        first = int(np.argmax(terminals & timeouts))
        findings.notice(
            "both_flags",
            f"{both:,} steps are marked terminal and timeout at once (first: step "
            f"{first:,}); terminal wins.",
            field="timeouts",
            count=both,
            first=first,
        )
    columns = Columns(
        observations,
        actions,
        rewards,
        terminals,
        timeouts,
        extra_columns(raw.extras, rows, findings),
    )
    lengths = raw.lengths
    if lengths is None:
        lengths = lengths_from_ends(terminals | timeouts, observations, options, findings)
        columns = columns.take(slice(0, int(lengths.sum())))
    trajectories = _build(columns, lengths, raw, findings)
    if raw.lengths is not None or options.episode_length is not None:
        _check_marks(trajectories, findings)
    return check_values(trajectories, options, findings, bounds=raw.action_bounds)


def _check_marks(trajectories: TrajectorySet, findings: Findings) -> None:
    """End marks before the end of a trajectory contradict its length."""
    columns = trajectories.columns
    last = np.zeros(len(columns.observations), dtype=np.bool_)
    last[trajectories.starts + trajectories.lengths - 1] = True
    inside = (columns.terminals | columns.timeouts) & ~last
    if inside.any():
        first = int(np.argmax(inside))
        findings.warn(
            "marks_inside",
            f"{plural(int(inside.sum()), 'step')} before the end of a trajectory "
            f"{verb(int(inside.sum()))} marked as an end (first: step {first:,}); the "
            "lengths of the trajectories win.",
            field="terminals" if columns.terminals[first] else "timeouts",
            count=int(inside.sum()),
            first=first,
        )


def _build(columns: Columns, lengths: Integers, raw: Raw, findings: Findings) -> TrajectorySet:
    lengths = np.asarray(lengths, dtype=np.int64)
    rows = len(columns.observations)
    wrong = (lengths < 0) | (lengths > rows)
    if wrong.any():
        first = int(np.argmax(wrong))
        findings.refuse(
            "bad_lengths",
            f"trajectory {first:,} claims {lengths[first]:,} of {rows:,} steps.",
            field="lengths",
            index=first,
            count=int(wrong.sum()),
        )
    if int(lengths.sum()) != rows:
        findings.refuse(
            "unequal_lengths",
            f"the lengths of {len(lengths):,} trajectories sum to {int(lengths.sum()):,} "
            f"but there are {rows:,} steps.",
            field="lengths",
            index=_first_beyond(lengths, rows),
        )
    if raw.sources is not None and len(raw.sources) != len(lengths):
        findings.refuse(
            "unequal_lengths",
            f"{len(lengths):,} trajectories but {len(raw.sources):,} sources.",
            field="sources",
            index=min(len(lengths), len(raw.sources)),
        )
    ids = _ids(raw.ids, len(lengths), findings)
    final, has = _final(raw, columns, len(lengths), findings)
    full = lengths > 0
    if not full.any():
        findings.refuse("empty", "the dataset holds no step.", field="observations")
    if not full.all():
        first = int(np.argmin(full))
        findings.repair(
            "zero_length",
            f"{plural(int((~full).sum()), 'trajectory')} without a step (first: position "
            f"{first:,}); dropped, the others keep their ids.",
            field="lengths",
            count=int((~full).sum()),
            first=first,
        )
    starts = np.cumsum(lengths) - lengths
    words = None if raw.sources is None else np.asarray(raw.sources, dtype=np.str_)[full]
    if words is not None:
        check_words(words, "sources", findings)
    return TrajectorySet(
        columns,
        starts[full],
        lengths[full],
        ids[full],
        sources=words,
        final_observations=None if final is None else final[full],
        has_final=None if has is None else has[full],
        metadata=_plain(raw.metadata),
    )


def _ids(given: Sequence[str] | None, count: int, findings: Findings) -> NDArray[np.str_]:
    ids = [str(i) for i in range(count)] if given is None else [str(name) for name in given]
    if len(ids) != count:
        findings.refuse(
            "unequal_lengths",
            f"{count:,} trajectories but {len(ids):,} ids.",
            field="ids",
            index=min(count, len(ids)),
        )
    if len(set(ids)) < count:
        first_of: dict[str, int] = {}
        again = [i for i, name in enumerate(ids) if first_of.setdefault(name, i) != i]
        findings.refuse(
            "bad_ids",
            f"every trajectory needs an id of its own; {ids[again[0]]!r} at position "
            f"{again[0]:,} is taken ({len(again):,} such).",
            field="ids",
            index=again[0],
            count=len(again),
        )
    names = np.asarray(ids, dtype=np.str_)
    check_words(names, "ids", findings)
    return names


def _final(
    raw: Raw, columns: Columns, count: int, findings: Findings
) -> tuple[Array | None, Flags | None]:
    """The final observations and where there is one, checked against the index."""
    final = raw.final_observations
    if final is None:
        return None, None
    check_numeric(final, "final_observations", findings)
    if final.ndim == 1 and columns.observations.shape[1] == 1:
        final = final[:, None]
    wanted = (count, columns.observations.shape[1])
    if final.shape != wanted:
        findings.refuse(
            "bad_shape",
            f"expected shape {wanted}, one row per trajectory. Found {final.shape}.",
            field="final_observations",
            index=min(count, len(final)) if final.ndim else None,
        )
    has = np.ones(count, dtype=np.bool_) if raw.has_final is None else raw.has_final
    return final, to_flags(has, "has_final", count, findings, unit="trajectories")


def _first_beyond(lengths: Integers, rows: int) -> int:
    """The first trajectory that ends beyond the rows, or the number of trajectories."""
    return int(np.searchsorted(np.cumsum(lengths), rows, side="right"))


def _plain(metadata: Mapping[str, Any]) -> dict[str, Any]:
    """Metadata as JSON can hold it: what it cannot becomes text."""
    text = json.dumps(dict(metadata), default=str)
    plain: dict[str, Any] = json.loads(text, parse_constant=str)
    return plain
