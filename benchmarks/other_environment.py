"""Shared by the scripts that hand what pubc wrote to a library in an environment of its own.

Such a script is run by pubc's Python, which walks the whole way, and again by the library's for
each part of the way that is the library's. A part prints what it found as a line of JSON.
"""

import argparse
import json
import shlex
import subprocess
import sys
import tempfile
from collections.abc import Callable
from importlib import metadata
from pathlib import Path

PUBC = [sys.executable, "-m", "pubc"]


def main(library: str, parts: dict[str, Callable], walk: Callable[[Path, Path], dict]) -> None:
    """Walk the whole way and record it, or be one part of it.

    Args:
        library: The name of the option that takes the library's Python.
        parts: What the library does, by name: functions of paths that return a document.
        walk: Takes the library's Python and an empty folder; returns what to record.
    """
    if sys.argv[1:2] and sys.argv[1] in parts:
        print(json.dumps(parts[sys.argv[1]](*map(Path, sys.argv[2:]))))
        return
    parser = argparse.ArgumentParser(description=sys.modules["__main__"].__doc__.splitlines()[0])
    parser.add_argument(f"--{library}", dest="python", type=Path, required=True)
    parser.add_argument("--out", type=Path)
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        found = walk(given.python.absolute(), Path(folder))
    script = Path(sys.argv[0]).name
    found["command"] = shlex.join(["python", f"benchmarks/{script}", *sys.argv[1:]])
    found = {"pubc": metadata.version("pubc"), **found}
    print(json.dumps(found, indent=1))
    if given.out is not None:
        given.out.write_text(json.dumps(found, indent=1) + "\n")


def inside(python: Path, part: str, *paths: Path) -> dict:
    """What a part of the script finds in the library's environment."""
    script = Path(sys.argv[0]).resolve()
    done = subprocess.run([python, script, part, *paths], capture_output=True, text=True)
    assert done.returncode == 0, f"{part}: {done.stderr[-3000:]}"
    return json.loads(done.stdout.splitlines()[-1])


def make_and_read(lines: list[str], files: list[str]) -> Callable[[Path, Path], dict]:
    """A walk on which pubc makes files and the library's part `read` opens them.

    Args:
        lines: What pubc is asked to do.
        files: What it leaves, seen from its working folder.
    """

    def walk(python: Path, work: Path) -> dict:
        for line in lines:
            run_pubc(line, work)
        found = inside(python, "read", *(work / name for name in files))
        return {"lines": [f"pubc {line}" for line in lines], **found}

    return walk


def run_pubc(line: str, work: Path) -> subprocess.CompletedProcess:
    """Run one line of pubc in a folder."""
    words = [*PUBC, *shlex.split(line)]
    done = subprocess.run(words, cwd=work, capture_output=True, text=True)
    # A run that is unsure of whole trajectories ends with 6; its steps are judged all the same.
    assert done.returncode in (0, 6), f"{line}: {done.stderr}"
    return done
