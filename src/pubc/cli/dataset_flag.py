"""The type of a flag that names a dataset: a path, or the id of a local Minari dataset."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, TypeAlias

from tyro.constructors import PrimitiveConstructorSpec

from pubc.formats.minari import minari_ids

__all__ = ["Dataset"]

Dataset: TypeAlias = Annotated[
    Path,
    PrimitiveConstructorSpec(
        nargs=1,
        metavar="DATASET",
        instance_from_str=lambda words: minari_ids.find(Path(words[0])),
        is_instance=lambda value: isinstance(value, Path),
        str_from_instance=lambda path: [str(path)],
    ),
]
"""Resolved while flags are parsed, so that all of a command speaks of the same folder."""
