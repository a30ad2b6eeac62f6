"""Failing every write of a command in turn, and looking at what is left.

Give a `Scene`: a folder as it was before, a command line, and the names that the command writes.
For every point and way of failing, the command is run on a copy of that folder. What stands under
each name afterwards must be what was there before, or a result that its manifest finds whole; and
the same command must go through when it is given again. Nothing hidden may be left after that.
"""

import json
import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from pathlib import Path

from pubc.errors import PubcError
from pubc.storage import verify

ROOT = Path(__file__).parents[2]


@dataclass(frozen=True)
class Scene:
    """A command before it is run."""

    folder: Path
    """The folder as it is before; relative names in `words` are below it."""
    words: tuple[str, ...]
    """The command line."""
    targets: tuple[str, ...]
    """What it writes."""
    again: Callable[[Path], tuple[str, ...]] | None = None
    """The command that goes on after a fault, given the folder; the same one where omitted."""
    unfinished: Callable[[Path], bool] = lambda path: False
    """Whether a target is one that its command can go on with."""
    renewed: bool = True
    """Whether the second command must bring the new result, or may find the old one."""
    whole: Callable[[Path], bool] | None = None
    """Whether a target is whole, where no manifest says so."""


@dataclass
class Tally:
    """What became of the faults of a scene."""

    points: int = 0
    """Writes, flushes, renames and removals of the undisturbed command."""
    tried: int = 0
    """Faults that struck."""
    wrong: list[str] = field(default_factory=list)
    """Faults that left something else than they may."""

    def __str__(self) -> str:
        return f"{self.points} points, {self.tried} faults, {len(self.wrong)} wrong states"


class Worker:
    """The process that runs commands."""

    def __init__(self, *libraries: str) -> None:
        self.process = subprocess.Popen(
            [sys.executable, "-W", "ignore", "-m", "tests.reliability.fault_worker", *libraries],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            cwd=ROOT,
            env={**os.environ, "OMP_NUM_THREADS": "1"},
            text=True,
        )

    def run(
        self, words: Iterable[str], folder: Path, at: int | None = None, how: str | None = None
    ) -> dict:
        """Run a command in a folder, with a fault at a point."""
        request = {"words": list(words), "folder": str(folder), "at": at, "how": how}
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        self.process.stdin.write(json.dumps(request) + "\n")
        self.process.stdin.flush()
        return json.loads(self.process.stdout.readline())

    def close(self) -> None:
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        self.process.stdin.close()
        self.process.wait(30)
        self.process.stdout.close()


def fail_everywhere(
    worker: Worker,
    scene: Scene,
    copies: Path,
    hows: Iterable[str],
    most: int | None = None,
    last: int | None = None,
    part: tuple[int, int] = (0, 1),
) -> Tally:
    """Fail a command in every way at all its points, at `most` spread evenly or the `last` ones.

    Of these points only each `part[1]`th from `part[0]` on, so that several can share the work.
    """
    tally = Tally()
    clean = _copy(scene.folder, copies / "clean")
    done = worker.run(scene.words, clean)
    assert done["code"] == 0, done["err"]
    tally.points = len(done["points"])
    step = 1 if most is None else max(1, tally.points // most)
    for how in hows:
        # One step on for each way, so that a few points of each are not always the same.
        first = 1 if last is None else tally.points - last
        begin = first + (0 if most is None else hash_of(how) % step)
        for at in range(begin, tally.points + 1, step)[part[0] :: part[1]]:
            here = _copy(scene.folder, copies / "here")
            ended = worker.run(scene.words, here, at, how)
            if ended["struck"]:
                tally.tried += 1
            told = f"{how} at {at} ({done['points'][at - 1]})"
            tally.wrong += [f"{told}: {fault}" for fault in _judge(worker, scene, here, ended, how)]
    return tally


def hash_of(word: str) -> int:
    return sum(word.encode())


def _judge(worker: Worker, scene: Scene, here: Path, ended: dict, how: str) -> list[str]:
    faults = []
    allowed = (-signal.SIGKILL, 0) if how == "kill" else (0, 4)
    if ended["code"] not in allowed:
        faults.append(f"exit {ended['code']}: {ended['err'][-300:]}")
    finished = True
    for name in scene.targets:
        state = _state(scene, here / name, scene.folder / name)
        finished &= state == "new"
        if state not in ("old", "new", "unfinished"):
            faults.append(f"{name} is {state} (exit {ended['code']})")
        if ended["code"] == 0 and ended["struck"] and state != "new":
            faults.append(f"{name} is {state}, but the command said that all was well")
    again = worker.run(scene.again(here) if scene.again else scene.words, here)
    refused = finished and again["code"] == 2 and "exists already" in again["err"]
    if again["code"] != 0 and not refused:
        faults.append(f"given again: exit {again['code']}: {again['err'][-300:]}")
    for name in scene.targets:
        state = _state(scene, here / name, scene.folder / name)
        if state != "new" and (scene.renewed or state != "old"):
            faults.append(f"given again: {name} is {state}")
    left = [path.name for path in here.rglob(".*") if not (scene.folder / path.name).exists()]
    if left and not refused:
        faults.append(f"left behind: {left[:3]}")
    return faults


def _state(scene: Scene, path: Path, before: Path) -> str:
    """Whether a target is as before, new and whole, or something that must not be."""
    if not os.path.lexists(path):
        return "old" if not os.path.lexists(before) else "gone"
    if scene.unfinished(path):
        return "unfinished"
    if scene.whole is not None:
        if scene.whole(path):
            return "new"
        return "old" if os.path.lexists(before) and _bytes(path) == _bytes(before) else "damaged"
    try:
        faults = verify(path)
    except PubcError as error:
        return f"damaged ({error})"
    if faults:
        return f"damaged ({faults[0]})"
    return "old" if os.path.lexists(before) and _bytes(path) == _bytes(before) else "new"


def _bytes(path: Path) -> dict[str, bytes]:
    if path.is_file():
        return {"": path.read_bytes()}
    files = sorted(p for p in path.rglob("*") if p.is_file() and not p.name.startswith("."))
    return {str(p.relative_to(path)): p.read_bytes() for p in files}


def _copy(folder: Path, to: Path) -> Path:
    shutil.rmtree(to, ignore_errors=True)
    return Path(shutil.copytree(folder, to))
