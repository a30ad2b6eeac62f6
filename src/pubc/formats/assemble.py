"""From a reader's raw arrays to a checked `TrajectorySet`.

Every reader ends here, so the rules for bad arrays are written once. The checks in this
file are the structural ones that every opening pays for; `checks` looks deeper.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pubc.formats.checks import check_values
from pubc.formats.findings import Findings
from pubc.formats.options import ReadOptions
from pubc.trajectory import Array, Columns, TrajectorySet

__all__ = ["Raw", "assemble", "check_numeric", "lengths_from_ends", "to_flags"]

Flags = NDArray[np.bool_]
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
    extras: Mapping[str, Array] = field(default_factory=dict)
    metadata: Mapping[str, Any] = field(default_factory=dict)


def assemble(raw: Raw, options: ReadOptions, findings: Findings) -> TrajectorySet:
    """Check raw arrays by the rule table and build the set.

    Raises:
        DataError: A fault whose rule is to refuse; the message names the field, the first
            bad index, the count, and how to go on.
    """
    observations = _matrix(raw.observations, "observations", findings)
    actions = _matrix(raw.actions, "actions", findings)
    rewards = None if raw.rewards is None else _vector(raw.rewards, "rewards", findings)
    rows = len(observations)
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
        findings.warn(
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
        _extras(raw.extras, rows, findings),
    )
    lengths = raw.lengths
    if lengths is None:
        has_marks = raw.terminals is not None or raw.timeouts is not None
        lengths = lengths_from_ends(terminals | timeouts, options, findings, has_marks=has_marks)
        columns = columns.take(slice(0, int(lengths.sum())))
    trajectories = _build(columns, lengths, raw, findings)
    return check_values(trajectories, options, findings)


def lengths_from_ends(
    ends: Flags, options: ReadOptions, findings: Findings, *, has_marks: bool
) -> Integers:
    """Cut flat rows at their end marks; rows after the last mark go by `trailing`."""
    rows = len(ends)
    if options.episode_length is not None:
        return _fixed_lengths(rows, options.episode_length, options, findings)
    last = np.flatnonzero(ends)
    if not len(last):
        what = "no step is marked as an end" if has_marks else "there are no end marks"
        findings.refuse(
            "no_ends",
            f"{what} in {rows:,} steps, so the trajectories cannot be told apart. Give "
            "--episode-length N if they all have N steps.",
            field="timeouts",
            count=rows,
        )
    lengths = np.diff(np.concatenate([[-1], last])).astype(np.int64)
    return _with_tail(lengths, rows - int(last[-1]) - 1, options, findings)


def _fixed_lengths(rows: int, length: int, options: ReadOptions, findings: Findings) -> Integers:
    if length < 1:
        findings.refuse("bad_option", f"--episode-length must be at least 1. Got {length}.")
    lengths = np.full(rows // length, length, dtype=np.int64)
    return _with_tail(lengths, rows % length, options, findings)


def _with_tail(lengths: Integers, tail: int, options: ReadOptions, findings: Findings) -> Integers:
    if not tail:
        return lengths
    first = int(lengths.sum())
    said = f"the last {tail:,} steps (from step {first:,}) carry no end mark"
    if options.trailing == "error":
        findings.refuse("unmarked_tail", said + ".", field="timeouts", index=first, count=tail)
    if options.trailing == "drop":
        findings.repair(
            "unmarked_tail",
            said + "; dropped.",
            field="timeouts",
            count=tail,
            first=first,
        )
        return lengths
    findings.repair(
        "unmarked_tail",
        said + "; kept as an unmarked trajectory (--trailing drop leaves them out).",
        field="timeouts",
        count=tail,
        first=first,
    )
    return np.append(lengths, np.int64(tail))


def to_flags(values: Array | None, name: str, rows: int, findings: Findings) -> Flags:
    """Booleans from end marks that hold exactly 0 and 1; all False where there are none."""
    if values is None:
        return np.zeros(rows, dtype=np.bool_)
    flags = _vector(values, name, findings)
    if len(flags) != rows:
        findings.refuse(
            "unequal_lengths",
            f"observations has {rows:,} rows but {name} has {len(flags):,}.",
            field=name,
            index=min(rows, len(flags)),
            count=abs(rows - len(flags)),
        )
    if flags.dtype == np.bool_:
        return flags
    bad = (flags != 0) & (flags != 1)
    if bad.any():
        first = int(np.argmax(bad))
        findings.refuse(
            "not_boolean",
            f"end marks must be 0 or 1. Found {flags[first]!r} at step {first:,} "
            f"({int(bad.sum()):,} such values).",
            field=name,
            index=first,
            count=int(bad.sum()),
        )
    return np.asarray(flags, dtype=np.bool_)


def check_numeric(values: Array, name: str, findings: Findings) -> Array:
    """Refuse arrays whose elements are not plain real numbers or booleans."""
    if values.dtype.kind not in "fiub" or values.dtype.hasobject:
        findings.refuse(
            "bad_dtype",
            f"expected numbers, found dtype {values.dtype}. Object and string arrays are "
            "never read: they can hide code.",
            field=name,
        )
    return values


def _matrix(values: Array, name: str, findings: Findings) -> Array:
    check_numeric(values, name, findings)
    if values.ndim == 1:
        return values[:, None]
    if values.ndim != 2 or values.shape[1] == 0:
        findings.refuse(
            "bad_shape",
            f"expected shape (steps, dimensions), found {values.shape}. Images and nested "
            "arrays cannot be an observation: name vectors with --observation-keys.",
            field=name,
        )
    return values


def _vector(values: Array, name: str, findings: Findings) -> Array:
    check_numeric(values, name, findings)
    if values.ndim == 2 and values.shape[1] == 1:
        return values[:, 0]
    if values.ndim != 1:
        findings.refuse(
            "bad_shape",
            f"expected shape (steps,) or (steps, 1), found {values.shape}.",
            field=name,
        )
    return values


def _extras(extras: Mapping[str, Array], rows: int, findings: Findings) -> dict[str, Array]:
    kept = {}
    for name, column in extras.items():
        if column.dtype.kind in "fiub" and column.ndim and len(column) == rows:
            kept[name] = column
        else:
            findings.notice(
                "extra_left_out",
                f"{name} (dtype {column.dtype}, shape {column.shape}) is not one row of "
                "numbers per step and was left out.",
                field=name,
            )
    return kept


def _build(columns: Columns, lengths: Integers, raw: Raw, findings: Findings) -> TrajectorySet:
    lengths = np.asarray(lengths, dtype=np.int64)
    rows = len(columns.observations)
    if (lengths < 0).any() or int(lengths.sum()) != rows:
        findings.refuse(
            "unequal_lengths",
            f"the lengths of {len(lengths):,} trajectories sum to {int(lengths.sum()):,} "
            f"but there are {rows:,} steps.",
            field="lengths",
        )
    if raw.sources is not None and len(raw.sources) != len(lengths):
        findings.refuse(
            "unequal_lengths",
            f"{len(lengths):,} trajectories but {len(raw.sources):,} sources.",
            field="sources",
            index=min(len(lengths), len(raw.sources)),
        )
    ids = [str(i) for i in range(len(lengths))] if raw.ids is None else raw.ids
    if len(set(map(str, ids))) != len(lengths):
        findings.refuse(
            "bad_ids",
            f"{len(lengths):,} trajectories need as many different ids; found "
            f"{len(set(map(str, ids))):,}.",
            field="ids",
        )
    full = lengths > 0
    if not full.any():
        findings.refuse("empty", "the dataset holds no step.", field="observations")
    if not full.all():
        first = int(np.argmin(full))
        findings.repair(
            "zero_length",
            f"{int((~full).sum()):,} trajectories have no step (first: position {first:,}); "
            "dropped, the others keep their ids.",
            field="lengths",
            count=int((~full).sum()),
            first=first,
        )
    starts = np.cumsum(lengths) - lengths
    words = None if raw.sources is None else np.asarray(raw.sources, dtype=np.str_)[full]
    final, has = raw.final_observations, raw.has_final
    return TrajectorySet(
        columns,
        starts[full],
        lengths[full],
        np.asarray(ids, dtype=np.str_)[full],
        sources=words,
        final_observations=None if final is None else final[full],
        has_final=None if has is None else has[full],
        metadata=raw.metadata,
    )
