"""Weights on disk: tensors, and facts about them, in one safetensors file."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import safetensors
import safetensors.torch
from torch import Tensor

from pubc.errors import DataError
from pubc.storage import atomic_file

__all__ = ["load_tensors", "save_tensors"]


def save_tensors(path: Path, tensors: Mapping[str, Tensor], about: Mapping[str, Any]) -> None:
    """Write tensors and JSON facts about them to one safetensors file."""
    plain = {name: tensor.detach().cpu().contiguous() for name, tensor in tensors.items()}
    # One metadata key: safetensors does not keep the order of several.
    data = safetensors.torch.save(plain, metadata={"pubc": json.dumps(about, allow_nan=False)})
    with atomic_file(path, overwrite=True) as temporary:
        temporary.write_bytes(data)


def load_tensors(path: Path) -> tuple[dict[str, Tensor], dict[str, Any]]:
    """Read what `save_tensors` wrote.

    Raises:
        DataError: The file is absent, damaged, or not written by pubc.
    """
    try:
        with safetensors.safe_open(path, framework="pt") as file:
            words = (file.metadata() or {}).get("pubc", "")
            tensors = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118
        about = json.loads(words)
    except (OSError, ValueError, safetensors.SafetensorError) as error:
        raise DataError(
            f"{path}: not readable as the weights of a pubc network ({error}).", code="bad_weights"
        ) from None
    if not isinstance(about, dict):
        raise DataError(f"{path}: its description is not a JSON object.", code="bad_weights")
    return tensors, about
