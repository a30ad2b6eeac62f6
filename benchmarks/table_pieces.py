"""A long table in short calls on a machine that forgets: run for a while, pack what was made.

    python benchmarks/table_pieces.py --out TABLE --seconds 480 --into PIECES [--from PIECES] -- \\
        reproduce policy-scores --device cuda ...

unpacks earlier pieces into TABLE, gives TABLE as --out to the command of pubc behind the dashes,
interrupts it after so many seconds, says how far every stack is, and packs records, cells,
filters, evaluations, policies and the newest checkpoint of every stack into PIECES/table.NN, files
of --piece MiB. Datasets stay behind: they are collected again. What no longer fits into --total
MiB is named; checkpoints are the first to be left out. It ends with 0 when the command is done,
with 75 when there is more to do.
"""

import argparse
import io
import json
import os
import signal
import subprocess
import sys
import tarfile
import time
import zlib
from pathlib import Path

MIB = 1 << 20
KINDS = ("records", "cache/cells", "cache/filters", "cache/evaluations", "cache/policies")
MORE = 75
GRACE = 20
HEADER = 512


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--out", type=Path, required=True, help="folder of the table")
    parser.add_argument("--seconds", type=float, default=480.0)
    parser.add_argument("--into", type=Path, required=True, help="where the pieces go")
    parser.add_argument("--from", type=Path, dest="earlier", help="pieces of an earlier call")
    parser.add_argument("--piece", type=float, default=15.5, help="MiB of a piece")
    parser.add_argument("--total", type=float, default=60.0, help="MiB of all pieces")
    parser.add_argument("command", nargs="+", help="of pubc, after --")
    chosen = parser.parse_args()
    if chosen.earlier is not None:
        unpack(chosen.earlier, chosen.out)
    code = work([*chosen.command, "--out", str(chosen.out)], chosen.seconds)
    tell(chosen.out)
    pack(chosen.out, chosen.into, chosen.piece, chosen.total)
    sys.exit(code)


def work(words, seconds):
    """Run a command of pubc for a while."""
    running = subprocess.Popen([sys.executable, "-m", "pubc", *words], start_new_session=True)
    try:
        code = running.wait(seconds)
        print(f"ended with {code}", flush=True)
        return code
    except subprocess.TimeoutExpired:
        running.send_signal(signal.SIGINT)
        try:
            running.wait(GRACE)
        except subprocess.TimeoutExpired:
            os.killpg(running.pid, signal.SIGKILL)
            running.wait()
        print(f"interrupted after {seconds:.0f} s", flush=True)
        return MORE


def tell(out):
    """How far the stacks are that are not done."""
    for listed in sorted((out / "cache" / "stacks").glob("*.json")):
        members = len(json.loads(listed.read_text())["policies"])
        kept = [path.stem for path in checkpoints(listed)]
        print(f"stack {listed.stem} of {members}: {' '.join(kept) or 'no checkpoint'}", flush=True)


def checkpoints(listed):
    return sorted(listed.with_suffix(".training").glob("checkpoint-*.safetensors"))


def travels(out):
    """What is packed, in the order of how much it matters: lists of files that belong together."""
    for kind in KINDS:
        for path in sorted((out / kind).glob("*")):
            if not path.name.startswith("."):
                yield [path] if path.is_file() else files_in(path)
    for listed in sorted((out / "cache" / "stacks").glob("*.json")):
        for newest in checkpoints(listed)[-1:]:
            yield [listed, newest.with_name("work.json"), newest]


def files_in(folder):
    return sorted(path for path in folder.rglob("*") if path.is_file())


def pack(out, into, piece, total):
    """Write pieces of a compressed archive."""
    began, whole, left_out, room = time.monotonic(), io.BytesIO(), [], total * MIB
    with tarfile.open(fileobj=whole, mode="w:gz", compresslevel=1) as archive:
        for group in travels(out):
            taken = sum(len(zlib.compress(path.read_bytes(), 1)) + HEADER for path in group)
            if taken > room:
                left_out.append(str(group[-1].relative_to(out)))
                continue
            room -= taken
            for path in group:
                archive.add(path, arcname=str(path.relative_to(out)), recursive=False)
    into.mkdir(parents=True, exist_ok=True)
    data, size = whole.getvalue(), int(piece * MIB)
    for number, start in enumerate(range(0, len(data), size)):
        (into / f"table.{number:02d}").write_bytes(data[start : start + size])
    spent = time.monotonic() - began
    print(f"packed {len(data) / MIB:.1f} MiB in {spent:.1f} s; left out: {left_out or 'nothing'}")


def unpack(earlier, out):
    """Put pieces back; what is there already stays as it is."""
    pieces = sorted(earlier.glob("table.[0-9][0-9]"))
    if not pieces:
        return
    data = io.BytesIO(b"".join(path.read_bytes() for path in pieces))
    with tarfile.open(fileobj=data, mode="r:gz") as archive:
        for entry in archive:
            if entry.isfile() and not (out / entry.name).exists():
                archive.extract(entry, out, filter="data")


if __name__ == "__main__":
    main()
