"""The one exit for pickled datasets: a user says that they trust the file.

The paper authors' .npy files are a pickled dictionary (`observations, actions, rewards,
timeouts, terminals`), and opening a pickle runs whatever code it holds. It is opened in a
child process only, which writes plain arrays; this process reads those like any stranger's
archive, and never unpickles anything itself.
"""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np

from pubc.errors import DataError, UsageError
from pubc.formats import npz
from pubc.formats.core.findings import Findings
from pubc.formats.core.options import ReadOptions
from pubc.storage import scratch
from pubc.trajectory import TrajectorySet

__all__ = ["read_trusted"]


def read_trusted(path: Path, options: ReadOptions) -> TrajectorySet:
    """Unpickle a file in a child process and read the arrays it leaves.

    Args:
        path: A .npy file whose origin the user trusts.
        options: How to read the arrays.

    Raises:
        UsageError: The path does not exist.
        DataError: The file holds no dictionary of arrays.
    """
    if not path.is_file():
        raise UsageError(f"{path} does not exist, or is not a file.")
    with scratch("pickle") as folder:
        arrays = folder / "arrays.npz"
        command = [sys.executable, "-I", "-m", __name__, str(path.resolve()), str(arrays)]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        if done.returncode or not arrays.is_file():
            said = (done.stderr.strip().splitlines() or ["it ended without a word"])[-1]
            raise DataError(
                f"{path}: not a pickled dictionary of arrays as the paper authors write them "
                f"({said[:200]}).",
                code="bad_pickle",
            )
        return npz.read(arrays, options, Findings(path, strict=options.strict))


def _unpickle(source: str, target: str) -> None:
    """The child's whole work: the pickle in, plain arrays out."""
    loaded: Any = np.load(source, allow_pickle=True)
    document = loaded.item() if loaded.dtype == object and loaded.ndim == 0 else None
    if not isinstance(document, dict):
        raise SystemExit("it holds no dictionary")
    arrays: dict[str, Any] = {}
    for name, value in document.items():
        array = np.asarray(value)
        if isinstance(name, str) and array.dtype.kind in "fiub":
            arrays[name] = array
    np.savez(target, **arrays)


if __name__ == "__main__":
    _unpickle(*sys.argv[1:])
