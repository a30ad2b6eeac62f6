"""Fail every write of a command line of your own in turn.

    python -m tests.reliability.strike FOLDER --target run -- \\
        filter mixed.npz --out run --seed-episodes 0,1 --force

FOLDER is as it is before the command, and stays so: the command runs in copies of it. --target
names what it writes, once for each. For every write, flush, rename and removal, and each way of
failing, what is left must be what was there before or a result that its manifest finds whole, and
the same command (or --again LINE) must go through when it is given again. Exit code 0 where that
holds, 1 where it does not.
"""

import argparse
import shlex
import sys
import tempfile
from pathlib import Path

from tests.reliability.fault_points import HOWS
from tests.reliability.fault_scenes import begun
from tests.reliability.faults import Scene, Worker, fail_everywhere


def main(words: list[str]) -> int:
    """Strike, and say how it went."""
    chosen = _parser().parse_args(words)
    scene = Scene(
        chosen.folder.resolve(),
        tuple(chosen.command),
        tuple(chosen.target),
        again=None if chosen.again is None else lambda here: tuple(shlex.split(chosen.again)),
        unfinished=lambda path: path.is_dir() and begun(path),
    )
    worker, wrong = Worker("pubc.cli.parsing"), 0
    with tempfile.TemporaryDirectory() as copies:
        for how in chosen.how.split(","):
            tally = fail_everywhere(worker, scene, Path(copies), (how,), chosen.points)
            wrong += len(tally.wrong)
            sys.stdout.write("\n".join([f"{how}: {tally}", *tally.wrong]) + "\n")
    worker.close()
    return int(wrong > 0)


def _parser() -> argparse.ArgumentParser:
    usage = "python -m tests.reliability.strike FOLDER --target NAME [...] -- COMMAND"
    parser = argparse.ArgumentParser(usage=usage, description=(__doc__ or "").splitlines()[0])
    parser.add_argument("folder", type=Path, help="as it is before the command")
    parser.add_argument("--target", action="append", required=True, help="what it writes")
    parser.add_argument("--how", default=",".join(HOWS[:3]), help=f"of {', '.join(HOWS)}")
    parser.add_argument("--points", type=int, help="so many, spread evenly; all if omitted")
    parser.add_argument("--again", help="the line that goes on after a fault")
    parser.add_argument("command", nargs="+", help="of pubc, after --")
    return parser


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
