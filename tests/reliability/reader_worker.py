"""A process that reads datasets on request, so that a thousand reads cost one start.

Each line on standard input is a path; each line on standard output says how the read ended:
the structure of the set, one of pubc's errors, or what escaped.
"""

import json
import os
import resource
import sys
from pathlib import Path

import numpy as np

from pubc import formats
from pubc.errors import PubcError
from pubc.formats import ReadOptions
from pubc.trajectory import TrajectorySet

MEMORY = 2 << 30


def structure(trajectories: TrajectorySet) -> dict:
    """What must not change in silence."""
    columns = trajectories.columns
    return {
        "lengths": trajectories.lengths.tolist(),
        "ends": trajectories.ends().tolist(),
        "columns": {n: [list(c.shape[1:]), c.dtype.str] for n, c in columns.named()},
        "finals": None
        if trajectories.has_final is None
        else np.asarray(trajectories.has_final).tolist(),
        "problems": sorted({f"{p.code} {p.message}" for p in trajectories.problems}),
    }


def attempt(path: Path) -> dict:
    try:
        return {"set": structure(formats.read(path, ReadOptions(cache=False)))}
    except PubcError as error:
        escaped = getattr(error, "code", None) == "unreadable"
        return {
            "error": type(error).__name__,
            "code": getattr(error, "code", None),
            "message": str(error),
            "unforeseen": escaped,
        }
    except BaseException as error:
        return {"escaped": f"{type(error).__name__}: {error}"}


def main() -> None:
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)
    for line in sys.stdin:
        print(json.dumps(attempt(Path(json.loads(line)))), file=answers, flush=True)


if __name__ == "__main__":
    main()
