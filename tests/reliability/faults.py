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
PROMPT = 10.0
"""Seconds within which a signal must have ended a command."""


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
    program: str = "pubc.cli.main"
    """The module whose `main` takes the words."""


Build = Callable[[Path], Scene]
"""Makes a scene in an empty folder."""


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

    def __init__(self, *libraries: str, flags: Iterable[str] = ("-W", "ignore")) -> None:
        self.process = subprocess.Popen(
            [sys.executable, *flags, "-m", "tests.reliability.fault_worker", *libraries],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            cwd=ROOT,
            env={**os.environ, "OMP_NUM_THREADS": "1"},
            text=True,
        )

    def run(
        self,
        words: Iterable[str],
        folder: Path,
        at: int | None = None,
        how: str | None = None,
        program: str = Scene.program,
        **moment: float,
    ) -> dict:
        """Run a command in a folder, with a fault at a point, or a signal at a moment."""
        request = {"words": list(words), "folder": str(folder), "at": at, "how": how}
        request |= {"program": program, **moment}
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

    Every copy has the same place, `copies/here`, as some results know where they are.
    Of these points only each `part[1]`th from `part[0]` on, so that several can share the work.
    """
    tally = Tally()
    clean = _copy(scene.folder, copies / "here")
    done = worker.run(scene.words, clean, program=scene.program)
    assert done["code"] == 0, done["err"]
    tally.points = len(done["points"])
    step = 1 if most is None else max(1, tally.points // most)
    for how in hows:
        # One step on for each way, so that a few points of each are not always the same.
        first = 1 if last is None else tally.points - last
        begin = first + (0 if most is None else hash_of(how) % step)
        for at in range(begin, tally.points + 1, step)[part[0] :: part[1]]:
            struck = fail_at(worker, scene, copies, how, at)
            tally.tried += struck.tried
            tally.wrong += [f"{done['points'][at - 1]}: {fault}" for fault in struck.wrong]
    return tally


def fail_at(worker: Worker, scene: Scene, copies: Path, how: str, at: int) -> Tally:
    """Fail a command in one way at one point."""
    here = _copy(scene.folder, copies / "here")
    ended = worker.run(scene.words, here, at, how, scene.program)
    codes = (-signal.SIGKILL, 0) if how == "kill" else (0, 4)
    faults = _judge(worker, scene, here, ended, codes)
    return Tally(at, int(ended["struck"]), [f"{how} at {at}: {fault}" for fault in faults])


def strike_at_moments(
    worker: Worker, scene: Scene, copies: Path, number: int, moments: Iterable[float]
) -> Tally:
    """Send a signal to a command at moments from 0 to 1, its beginning and its end."""
    tally = Tally()
    done = worker.run(scene.words, _copy(scene.folder, copies / "here"), signal=0, after=1e9)
    assert done["code"] == 0, done["err"]
    codes = (-signal.SIGKILL, 0) if number == signal.SIGKILL else (5, 130, 0)
    for moment in moments:
        here = _copy(scene.folder, copies / "here")
        after = moment * done["seconds"]
        ended = worker.run(scene.words, here, signal=number, after=after)
        tally.points += 1
        tally.tried += ended["code"] != 0
        faults = _judge(worker, scene, here, ended, codes)
        if "Traceback" in ended["err"] or "Exception" in ended["err"]:
            faults.append(f"a trace: {ended['err'][-500:]}")
        if ended["seconds"] - after > PROMPT:
            faults.append(f"it took {ended['seconds'] - after:.1f} s to stop")
        tally.wrong += [f"{signal.Signals(number).name} at {moment:.2f}: {f}" for f in faults]
    return tally


def hash_of(word: str) -> int:
    return sum(word.encode())


def _judge(
    worker: Worker, scene: Scene, here: Path, ended: dict, codes: tuple[int, ...]
) -> list[str]:
    faults = []
    if ended["code"] not in codes:
        faults.append(f"exit {ended['code']}: {ended['err'][-300:]}")
    finished = True
    for name in scene.targets:
        state = _state(scene, here / name, scene.folder / name)
        finished &= state == "new"
        if state not in ("old", "new", "unfinished"):
            faults.append(f"{name} is {state} (exit {ended['code']})")
        if ended["code"] == 0 and ended["struck"] and state != "new":
            faults.append(f"{name} is {state}, but the command said that all was well")
    words = scene.again(here) if scene.again else scene.words
    again = worker.run(words, here, program=scene.program)
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
    same = os.path.lexists(before) and _bytes(path) == _bytes(before)
    if scene.whole is not None:
        return "old" if same else "new" if scene.whole(path) else "damaged"
    try:
        faults = verify(path)
    except PubcError as error:
        return f"damaged ({error})"
    return f"damaged ({faults[0]})" if faults else "old" if same else "new"


def _bytes(path: Path) -> dict[str, bytes]:
    if path.is_file():
        return {"": path.read_bytes()}
    files = sorted(p for p in path.rglob("*") if p.is_file() and not p.name.startswith("."))
    return {str(p.relative_to(path)): p.read_bytes() for p in files}


def _copy(folder: Path, to: Path) -> Path:
    shutil.rmtree(to, ignore_errors=True)
    return Path(shutil.copytree(folder, to))
