"""Weights on disk: tensors, and facts about them, in one safetensors file."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import safetensors
import safetensors.torch
import torch
from torch import Tensor

from pubc.errors import DataError
from pubc.storage import atomic_file, parse_json, utf8_name

__all__ = ["load_tensors", "save_tensors"]

_DIGEST, _FILE = "sha256", "file"
_MOST = 10_000
"""Tensors in a file; a network has a few dozen."""


def save_tensors(path: Path, tensors: Mapping[str, Tensor], about: Mapping[str, Any]) -> None:
    """Write tensors and JSON facts about them to one safetensors file, with name and SHA-256.

    No manifest speaks for the networks of a run that is not finished, so each speaks for itself.
    """
    about = {**about, _FILE: path.stem}
    plain = {name: tensor.detach().cpu().contiguous() for name, tensor in tensors.items()}
    words = json.dumps({**about, _DIGEST: _digest(plain, about)}, allow_nan=False)
    # One metadata key: safetensors does not keep the order of several.
    data = safetensors.torch.save(plain, metadata={"pubc": words})
    with atomic_file(path, overwrite=True) as temporary:
        temporary.write_bytes(data)


def load_tensors(path: Path) -> tuple[dict[str, Tensor], dict[str, Any]]:
    """Read what `save_tensors` wrote.

    Raises:
        DataError: The file is absent, damaged, or not written by pubc.
    """
    try:
        with utf8_name(path) as name, safetensors.safe_open(name, framework="pt") as file:
            about = parse_json((file.metadata() or {}).get("pubc", ""))
            names = list(file.keys())
            if len(names) > _MOST:
                raise ValueError(f"{len(names):,} tensors")
            tensors = {name: file.get_tensor(name) for name in names}
    except (OSError, ValueError, RecursionError, safetensors.SafetensorError) as error:
        raise DataError(
            f"{path}: not readable as the weights of a pubc network ({error}).", code="bad_weights"
        ) from None
    if not isinstance(about, dict):
        raise DataError(f"{path}: its description is not a JSON object.", code="bad_weights")
    # Files of earlier versions have none.
    told = about.pop(_DIGEST, None)
    if told is not None and told != _digest(tensors, about):
        raise DataError(
            f"{path}: not the network that pubc wrote (its SHA-256 does not fit). Delete the file "
            "and go on with --resume, which trains it again.",
            code="bad_weights",
        )
    if about.pop(_FILE, path.stem) != path.stem:
        raise DataError(f"{path}: pubc wrote it under another name.", code="bad_weights")
    return tensors, about


def _digest(tensors: Mapping[str, Tensor], about: Mapping[str, Any]) -> str:
    """Of every byte, name, type and shape, and of the facts."""
    found = hashlib.sha256(json.dumps(about, sort_keys=True).encode())
    for name in sorted(tensors):
        tensor = tensors[name]
        found.update(f"{name} {tensor.dtype} {tuple(tensor.shape)}".encode())
        found.update(tensor.reshape(-1).view(torch.uint8).numpy().data)
    return found.hexdigest()
