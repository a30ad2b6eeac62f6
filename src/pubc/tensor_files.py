"""Arrays, and facts about them, in one safetensors file that proves itself.

While a piece of work lasts no manifest speaks for its files, so each carries its own name and a
SHA-256 of all that it says. One that was edited, damaged or renamed is not believed, and not
removed either: `proves_itself` is asked first.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pubc.errors import DataError
from pubc.storage import atomic_file, parse_json, utf8_name

__all__ = ["load_arrays", "proves_itself", "save_arrays"]

_DIGEST, _FILE = "sha256", "file"
_MOST = 10_000
"""Arrays in a file; a network has a few dozen."""


def save_arrays(
    path: Path,
    arrays: Mapping[str, NDArray[Any]],
    about: Mapping[str, Any],
    *,
    overwrite: bool = True,
) -> None:
    """Write arrays and JSON facts about them, with name and SHA-256, whole or not at all."""
    from safetensors.numpy import save

    # As it will be read back: the digest is of that.
    about = json.loads(json.dumps({**about, _FILE: path.stem}, allow_nan=False))
    plain = {name: np.asarray(array, order="C") for name, array in arrays.items()}
    words = json.dumps({**about, _DIGEST: _digest(plain, about)}, allow_nan=False)
    # One metadata key: safetensors does not keep the order of several.
    data = save(plain, metadata={"pubc": words})
    with atomic_file(path, overwrite=overwrite) as temporary:
        # Written here, not by safetensors, whose word for a full disk is not an OSError.
        temporary.write_bytes(data)


def load_arrays(path: Path) -> tuple[dict[str, NDArray[Any]], dict[str, Any]]:
    """Read what `save_arrays` wrote.

    Raises:
        DataError: The file is absent, damaged, edited, or not written by pubc.
    """
    from safetensors import SafetensorError, safe_open

    try:
        with utf8_name(path) as name, safe_open(name, framework="numpy") as file:
            about = parse_json((file.metadata() or {}).get("pubc", ""))
            names = list(file.keys())
            if len(names) > _MOST:
                raise ValueError(f"{len(names):,} arrays")
            arrays = {name: file.get_tensor(name) for name in names}
    except (OSError, ValueError, TypeError, RecursionError, SafetensorError) as error:
        raise DataError(
            f"{path}: not readable as weights or arrays of pubc ({error}).", code="bad_weights"
        ) from None
    if not isinstance(about, dict):
        raise DataError(f"{path}: its description is not a JSON object.", code="bad_weights")
    if about.pop(_DIGEST, None) != _digest(arrays, about):
        raise DataError(
            f"{path}: not the file that pubc wrote (its SHA-256 does not fit). Delete the file "
            "and go on with --resume, which makes it again.",
            code="bad_weights",
        )
    if about.pop(_FILE, None) != path.stem:
        raise DataError(f"{path}: pubc wrote it under another name.", code="bad_weights")
    return arrays, about


def proves_itself(path: Path) -> bool:
    """Whether a file is one of `save_arrays`, unchanged and under its own name."""
    if path.is_symlink() or not path.is_file():
        return False
    try:
        load_arrays(path)
    except DataError:
        return False
    return True


def _digest(arrays: Mapping[str, NDArray[Any]], about: Mapping[str, Any]) -> str:
    """Of every byte, name, type and shape, and of the facts."""
    found = hashlib.sha256(json.dumps(about, sort_keys=True).encode())
    for name in sorted(arrays):
        array = arrays[name]
        found.update(f"{name} {array.dtype} {array.shape}".encode())
        found.update(array.reshape(-1).view(np.uint8).data)
    return found.hexdigest()
