"""Where flat recordings are cut into trajectories: at end marks, or every N steps."""

from __future__ import annotations

from typing import NoReturn

import numpy as np
from numpy.typing import NDArray

from pubc.errors import UsageError
from pubc.formats.core.findings import Findings, plural
from pubc.formats.core.motion import likely_length
from pubc.formats.core.options import ReadOptions
from pubc.trajectory import Array

__all__ = ["lengths_from_ends", "with_tail"]

Integers = NDArray[np.int64]


def lengths_from_ends(
    ends: NDArray[np.bool_], observations: Array, options: ReadOptions, findings: Findings
) -> Integers:
    """Cut flat rows at their end marks; rows after the last mark go by `trailing`."""
    rows = len(ends)
    if options.episode_length is not None:
        return _fixed_lengths(rows, options.episode_length, options, findings)
    last = np.flatnonzero(ends)
    if not len(last):
        _refuse_without_ends(observations, findings)
    lengths = np.diff(np.concatenate([[-1], last])).astype(np.int64)
    return with_tail(lengths, rows - int(last[-1]) - 1, options, findings)


def _refuse_without_ends(observations: Array, findings: Findings) -> NoReturn:
    """Refuse flat rows that nothing cuts, with a hint where they seem to start anew."""
    gap = likely_length(observations)
    hint = f" (the observations jump every {gap:,} steps)" if gap else ""
    findings.refuse(
        "no_ends",
        f"no step of {len(observations):,} is marked as an end, so the trajectories cannot "
        f"be told apart. Give --episode-length N if they all have N steps{hint}.",
        field="timeouts",
        index=0,
    )


def _fixed_lengths(rows: int, length: int, options: ReadOptions, findings: Findings) -> Integers:
    if length < 1:
        raise UsageError(f"--episode-length must be at least 1. Got {length}.")
    lengths = np.full(rows // length, length, dtype=np.int64)
    return with_tail(lengths, rows % length, options, findings)


def with_tail(lengths: Integers, tail: int, options: ReadOptions, findings: Findings) -> Integers:
    """Lengths with the rows after the last end, kept, dropped or refused by `trailing`."""
    if not tail:
        return lengths
    first = int(lengths.sum())
    said = f"the last {plural(tail, 'step')} (from step {first:,}) without an end mark"
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
        said + "; kept as an unmarked trajectory (--trailing drop leaves it out).",
        field="timeouts",
        count=tail,
        first=first,
    )
    return np.append(lengths, np.int64(tail))
