"""Arrays of whatever shape and type as columns of numbers, one row a step, or a refusal."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from numpy.typing import NDArray

from pubc.formats.core.findings import Findings
from pubc.trajectory import Array

__all__ = ["Flags", "check_numeric", "extra_columns", "matrix", "to_flags", "vector"]

Flags = NDArray[np.bool_]


def to_flags(
    values: Array | None, name: str, rows: int, findings: Findings, *, unit: str = "steps"
) -> Flags:
    """Booleans from marks that hold exactly 0 and 1; all False where there are none."""
    if values is None:
        return np.zeros(rows, dtype=np.bool_)
    flags = vector(values, name, findings)
    if len(flags) != rows:
        findings.refuse(
            "unequal_lengths",
            f"there are {rows:,} {unit} but {name} has {len(flags):,} entries.",
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
            f"marks must be 0 or 1. Found {flags[first].item()!r} at position {first:,} "
            f"({int(bad.sum()):,} of {rows:,} {unit}).",
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


def matrix(values: Array, name: str, findings: Findings) -> Array:
    """Shape (steps, dimensions); a single number a step is one dimension."""
    check_numeric(values, name, findings)
    if values.ndim == 1:
        return values[:, None]
    if values.ndim != 2 or values.shape[1] == 0:
        findings.refuse(
            "bad_shape",
            f"expected shape (steps, dimensions), found {values.shape}.{_stacked(values)} Images "
            "and nested arrays cannot be an observation: name vectors with --observation-keys.",
            field=name,
        )
    return values


def _stacked(values: Array) -> str:
    """What to do with trajectories of one length that lie side by side in an array."""
    if values.ndim != 3 or not values.size:
        return ""
    count, steps, size = values.shape
    return (
        f" If these are {count:,} trajectories of {steps:,} steps, write all arrays with the steps "
        f"one below the other, this one as array.reshape(-1, {size}), and say "
        f"--episode-length {steps}."
    )


def vector(values: Array, name: str, findings: Findings) -> Array:
    """Shape (steps,); a column of one dimension will do."""
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


def extra_columns(extras: Mapping[str, Array], rows: int, findings: Findings) -> dict[str, Array]:
    """Those that hold numbers, one row a step; the others are left out with a notice."""
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
