"""Shared by the scripts that hand what pubc wrote to a library in an environment of its own.

Such a script is run twice: by pubc's Python, which makes the files, and by the library's, which
reads them and prints what it found as a line of JSON.
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


def main(script: str, library: str, lines: list[str], files: list[str], read: Callable) -> None:
    """Make the files and have the library read them, or be the library's half of that.

    Args:
        script: The path of the script.
        library: The name of the option that takes the library's Python.
        lines: What pubc is asked to do.
        files: What it leaves, seen from its working folder.
        read: What the library makes of the files, as a document.
    """
    if sys.argv[1:2] == ["read"]:
        print(json.dumps(read(*map(Path, sys.argv[2:]))))
        return
    parser = argparse.ArgumentParser(description=sys.modules["__main__"].__doc__.splitlines()[0])
    parser.add_argument(f"--{library}", dest="python", type=Path, required=True)
    parser.add_argument("--out", type=Path)
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        work = Path(folder)
        for line in lines:
            _run_pubc(line, work)
        words = [given.python.absolute(), script, "read", *(work / name for name in files)]
        done = subprocess.run(words, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    found = {
        "pubc": metadata.version("pubc"),
        "lines": [f"pubc {line}" for line in lines],
        **json.loads(done.stdout.splitlines()[-1]),
        "command": shlex.join(["python", f"benchmarks/{Path(script).name}", *sys.argv[1:]]),
    }
    print(json.dumps(found, indent=1))
    if given.out is not None:
        given.out.write_text(json.dumps(found, indent=1) + "\n")


def _run_pubc(line: str, work: Path) -> None:
    words = [sys.executable, "-m", "pubc", *shlex.split(line)]
    done = subprocess.run(words, cwd=work, capture_output=True, text=True)
    # A run that is unsure of whole trajectories ends with 6; its steps are judged all the same.
    assert done.returncode in (0, 6), f"{line}: {done.stderr}"
