"""Weights on disk: tensors of torch in a file that proves itself."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from pubc.tensor_files import load_arrays, save_arrays

__all__ = ["load_tensors", "save_tensors"]


def save_tensors(path: Path, tensors: Mapping[str, Tensor], about: Mapping[str, Any]) -> None:
    """Write tensors and JSON facts about them to one safetensors file, with name and SHA-256."""
    plain = {name: tensor.detach().cpu().numpy() for name, tensor in tensors.items()}
    save_arrays(path, plain, about)


def load_tensors(path: Path) -> tuple[dict[str, Tensor], dict[str, Any]]:
    """Read what `save_tensors` wrote.

    Raises:
        DataError: The file is absent, damaged, edited, or not written by pubc.
    """
    arrays, about = load_arrays(path)
    return {name: torch.from_numpy(array) for name, array in arrays.items()}, about
