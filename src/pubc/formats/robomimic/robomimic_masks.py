"""robomimic's filter keys: which demonstrations a name under `mask/` stands for.

The multi-human sets mark the skill of the operator there (`worse`, `okay`, `better`), which
is the truth that a selection of demonstrations is judged by; other masks split the set for
training or name a share of it, and say nothing about who acted.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

import numpy as np

from pubc.formats.core.findings import Findings
from pubc.formats.hdf5.hdf5_read import Checked
from pubc.trajectory import Array

__all__ = ["mask_array", "read_masks", "sources_from_masks"]

_SPLITS = re.compile(r"(^|_)(train|valid|test|val)$|percent|^\d+$|^pubc_")
_KNOWN = (("worse", "okay", "better"), ("bad", "good"))


def read_masks(file: Checked) -> dict[str, list[str]]:
    """Names of demonstrations by mask."""
    return {name: file.words(f"mask/{name}") for name in file.below("mask")}


def mask_array(names: Sequence[str]) -> Array:
    """A mask as robomimic stores it: fixed-length byte strings."""
    return np.array([name.encode() for name in names], dtype="S")


def sources_from_masks(
    masks: Mapping[str, Sequence[str]], demos: Sequence[str], key: str | None, findings: Findings
) -> list[str] | None:
    """The mask that each demonstration is in, where masks tell the whole set apart.

    Args:
        masks: Names of demonstrations by mask.
        demos: The demonstrations of the set.
        key: A mask, or how the names of several begin; found by itself if None.
        findings: Told which masks were taken.
    """
    if key is not None:
        named = [name for name in masks if name.startswith(key)]
        if not named:
            known = ", ".join(masks) or "none"
            findings.refuse("missing_key", f"no such mask. Known: {known}.", field=f"mask/{key}")
        return _label(masks, demos, [key] if key in masks else named, findings)
    candidates = {
        name: set(m) & set(demos) for name, m in masks.items() if not _SPLITS.search(name)
    }
    for chosen in (*_KNOWN, _smallest(candidates)):
        if len(chosen) > 1 and _is_partition(candidates, chosen, demos):
            findings.notice(
                "sources_from_masks",
                f"the masks {', '.join(chosen)} were taken as the sources of the "
                "demonstrations (--source-key names others).",
                field="mask",
            )
            return _label(masks, demos, chosen, findings)
    return None


def _smallest(candidates: Mapping[str, set[str]]) -> tuple[str, ...]:
    """Masks that contain no other: the pieces that unions were made of."""
    filled = {name: members for name, members in candidates.items() if members}
    return tuple(
        name
        for name, members in filled.items()
        if not any(other < members for other in filled.values())
    )


def _is_partition(
    candidates: Mapping[str, set[str]], chosen: Sequence[str], demos: Sequence[str]
) -> bool:
    if not all(name in candidates for name in chosen):
        return False
    union = set().union(*(candidates[name] for name in chosen))
    return len(union) == len(demos) == sum(len(candidates[name]) for name in chosen)


def _label(
    masks: Mapping[str, Sequence[str]],
    demos: Sequence[str],
    chosen: Sequence[str],
    findings: Findings,
) -> list[str]:
    labels = {demo: name for name in reversed(chosen) for demo in masks[name]}
    twice = sum(len(set(masks[name])) for name in chosen) - len(labels)
    if twice:
        findings.warn(
            "overlapping_masks",
            f"{twice:,} demonstrations are in several of {', '.join(chosen)}; the first counts.",
            field="mask",
            count=twice,
        )
    return [labels.get(demo, "other") for demo in demos]
