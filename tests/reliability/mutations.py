"""Changes to the bytes and to the structure of a valid dataset, and who judges the outcome."""

import copy
import json
import os
import resource
import selectors
import subprocess
import sys
import tempfile
import time
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path

import h5py
import numpy as np

from pubc.errors import PubcError
from pubc.formats import ReadOptions, read
from tests.reliability.samples import SAMPLES

ROOT = Path(__file__).parents[2]
PATIENCE = 5.0
"""Seconds of its own time after which a read hangs."""
OWN = ("npz", "store")
"""Formats that commands read in their own process."""
MARKS = ("terminals", "timeouts", "terminations", "truncations", "dones", "terminated")
_INTERESTING = (0, 1, 2, 0x7F, 0x80, 0xFF, 0x7FFF, 0xFFFF, 0x7FFFFFFF, 0xFFFFFFFF, 2**62, 2**63 - 1)


class Reader:
    """The worker process, started again whenever it dies or hangs."""

    def __init__(self) -> None:
        self.process: subprocess.Popen | None = None
        self.warm = False

    def _start(self) -> subprocess.Popen:
        self.close()
        self.warm = False
        self.process = subprocess.Popen(
            [sys.executable, "-W", "ignore", "-m", "tests.reliability.reader_worker"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            cwd=ROOT,
            env={
                **os.environ,
                "ARROW_DEFAULT_MEMORY_POOL": "system",
                "OMP_NUM_THREADS": "1",
                "MALLOC_ARENA_MAX": "2",
            },
        )
        return self.process

    def read(self, path: Path) -> dict:
        """How reading a path ends: `set`, `error`, `escaped`, `died` or `hung`."""
        process = self.process if self.process and self.process.poll() is None else self._start()
        assert process.stdin is not None
        assert process.stdout is not None
        try:
            process.stdin.write(json.dumps(str(path)).encode() + b"\n")
            process.stdin.flush()
        except BrokenPipeError:
            return {"died": process.wait()}
        if not self._answers(process):
            self.close()
            return {"hung": PATIENCE}
        line = process.stdout.readline()
        self.warm = True
        return json.loads(line) if line else {"died": process.wait()}

    def _answers(self, process: subprocess.Popen) -> bool:
        """Wait for an answer as long as the reader has time: its own, on a busy machine."""
        start, used = time.monotonic(), _processor_time(process.pid)
        # The first read of a process also loads the libraries.
        patience = PATIENCE if self.warm else 4 * PATIENCE
        with selectors.DefaultSelector() as selector:
            selector.register(process.stdout, selectors.EVENT_READ)
            while not selector.select(0.5):
                waited = time.monotonic() - start
                if _processor_time(process.pid) - used > patience or waited > 20 * PATIENCE:
                    return False
        return True

    def close(self) -> None:
        if self.process is not None:
            self.process.kill()
            self.process.communicate()
            self.process = None


def _processor_time(pid: int) -> float:
    try:
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except OSError:
        return 0.0
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def _children_time() -> float:
    """Processor time of the children that ended, the reader of a command among them."""
    usage = resource.getrusage(resource.RUSAGE_CHILDREN)
    return usage.ru_utime + usage.ru_stime


def mutate_bytes(data: bytes, rng: np.random.Generator) -> tuple[str, bytes]:
    """One change to bytes, and its name."""
    size = len(data)
    if not size:
        return "insert", rng.bytes(8)
    place = int(rng.integers(size))
    span = int(min(size - place, rng.choice([1, 4, 8, 32, 200])))
    kind = str(rng.choice(["bit", "bit", "byte", "number", "delete", "insert", "repeat", "cut",
                           "swap", "zero"]))  # fmt: skip
    changed = bytearray(data)
    if kind == "bit":
        changed[place] ^= 1 << int(rng.integers(8))
    elif kind == "byte":
        changed[place] = int(rng.integers(256))
    elif kind == "number":
        wide = int(rng.choice([2, 4, 8]))
        value = _INTERESTING[int(rng.integers(len(_INTERESTING)))] % (1 << (8 * wide))
        order = "little" if rng.random() < 0.8 else "big"
        changed[place : place + wide] = value.to_bytes(wide, order)[: size - place]
    elif kind == "delete":
        del changed[place : place + span]
    elif kind == "insert":
        changed[place:place] = rng.bytes(span)
    elif kind == "repeat":
        changed[place:place] = changed[place : place + span]
    elif kind == "cut":
        del changed[place:]
    elif kind == "swap":
        other = int(rng.integers(size))
        a, b = changed[place : place + span], changed[other : other + span]
        changed[place : place + len(b)], changed[other : other + len(a)] = b, a
    else:
        changed[place : place + span] = bytes(span)
    return kind, bytes(changed)


def mutate_json(data: bytes, rng: np.random.Generator) -> tuple[str, bytes] | None:
    """One change to an entry of a JSON document or of a line of one; None if it is none."""
    lines = data.splitlines()
    whole = not all(line.startswith(b"{") and line.endswith(b"}") for line in lines) or not lines
    try:
        documents = [json.loads(data)] if whole else [json.loads(line) for line in lines]
    except ValueError:
        return None
    number = int(rng.integers(len(documents)))
    document = copy.deepcopy(documents[number])
    node = document
    while isinstance(node, dict | list) and node:
        key = rng.choice(list(node)) if isinstance(node, dict) else int(rng.integers(len(node)))
        key = str(key) if isinstance(node, dict) else key
        if isinstance(node[key], dict | list) and node[key] and rng.random() < 0.8:
            node = node[key]
            continue
        action = rng.choice(["delete", "null", "text", "number", "list", "nudge"])
        if action == "delete":
            del node[key]
        elif action == "nudge" and isinstance(node[key], int):
            node[key] += int(rng.choice([-1, 1, 2]))
        else:
            values = {"null": None, "text": "../../x", "number": -1, "list": [], "nudge": 2**70}
            node[key] = values[str(action)]
        break
    documents[number] = document
    if whole:
        return "json", json.dumps(documents[0]).encode()
    return "json", b"".join(json.dumps(d).encode() + b"\n" for d in documents)


def mutate_hdf5(path: Path, rng: np.random.Generator) -> str:
    """One change to an object of an HDF5 file, made by the library itself."""
    with h5py.File(path, "r+") as file:
        names: list[str] = []
        file.visititems(lambda n, o: names.append(n) if isinstance(o, h5py.Dataset) else None)
        name = names[int(rng.integers(len(names)))]
        values = file[name][()]
        action = str(rng.choice(["shorter", "longer", "text", "wider", "reshape", "empty"]))
        if not isinstance(values, np.ndarray) or not values.ndim or not values.size:
            action = "text"
        del file[name]
        changed = {
            "shorter": lambda: values[:-1],
            "longer": lambda: np.concatenate([values, values[-1:]]),
            "text": lambda: "nonsense",
            "wider": lambda: np.stack([values, values], axis=-1),
            "reshape": lambda: values.reshape(-1)[: values.size // 2 - 1],
            "empty": lambda: values[:0],
        }[action]()
        file[name] = changed
    return f"hdf5-{action}"


def put(file: Path, data: bytes) -> None:
    """Write a file anew: one that is emptied and refilled is sent to the disk at once by ext4."""
    file.unlink()
    file.write_bytes(data)


@dataclass
class Tally:
    """What became of many mutations."""

    outcomes: Counter = field(default_factory=Counter)
    failures: list[str] = field(default_factory=list)
    silent: list[str] = field(default_factory=list)
    unforeseen: Counter = field(default_factory=Counter)
    contained: list[str] = field(default_factory=list)

    def __str__(self) -> str:
        ended = ", ".join(f"{count:,} {name}" for name, count in self.outcomes.most_common())
        return "\n  ".join([ended, *self.contained])


class Mutator:
    """Spoils a sample again and again and has it read."""

    def __init__(self, sample: str, reader: Reader, folder: Path) -> None:
        self.path = SAMPLES[sample](folder)
        if sample != "store" and self.path.is_dir():
            (self.path / "manifest.json").unlink(missing_ok=True)
        self.files = sorted(
            [self.path] if self.path.is_file() else [f for f in self.path.rglob("*") if f.is_file()]
        )
        self.clean = {file: file.read_bytes() for file in self.files}
        self.reader = reader
        self.sample = sample
        answer = reader.read(self.path)
        assert "set" in answer, answer
        self.baseline = answer["set"]

    def spoil(self, rng: np.random.Generator) -> tuple[Path, str]:
        """Change one file."""
        sizes = np.array([max(len(data), 200) for data in self.clean.values()], dtype=float)
        file = self.files[int(rng.choice(len(self.files), p=sizes / sizes.sum()))]
        data = self.clean[file]
        if rng.random() < 0.25:
            changed = mutate_json(data, rng)
            if changed is not None:
                put(file, changed[1])
                return file, changed[0]
            if data.startswith(b"\x89HDF"):
                return file, mutate_hdf5(file, rng)
        kind, bad = mutate_bytes(data, rng)
        put(file, bad)
        return file, kind

    def run(self, count: int, seed: int) -> Tally:
        tally = Tally()
        for number in range(count):
            rng = np.random.Generator(np.random.Philox(key=[seed, number]))
            file, kind = self.spoil(rng)
            answer = self.reader.read(self.path)
            self._judge(number, file, kind, answer, tally)
            put(file, self.clean[file])
        return tally

    def _judge(self, number: int, file: Path, kind: str, answer: dict, tally: Tally) -> None:
        what = next(iter(answer))
        tally.outcomes[what] += 1
        where = f"{number}: {kind} in {file.name}"
        if what == "escaped":
            tally.failures.append(f"{where}: {answer}")
        elif what in ("hung", "died"):
            self._contained(where, answer, tally)
        elif what == "error":
            # One sentence that names the dataset, whatever the parser stumbled over.
            if str(self.path) not in answer["message"] and file.name not in answer["message"]:
                tally.failures.append(f"{where}: {answer['message']} does not name the file")
            if answer["unforeseen"]:
                tally.unforeseen[answer["message"].split("(")[-1]] += 1
        else:
            found = answer["set"]
            told = set(found.pop("problems")) - set(self.baseline["problems"])
            expected = {k: v for k, v in self.baseline.items() if k != "problems"}
            if found == expected or told:
                return
            reason = undetectable(self.sample, self.clean[file], file, expected, found)
            if reason is None:
                changed = {k: v for k, v in found.items() if v != expected[k]}
                tally.silent.append(f"{where}: {changed}")
            else:
                tally.outcomes[reason] += 1

    def _contained(self, where: str, answer: dict, tally: Tally) -> None:
        """A parser that crashes or loops must end as a sentence where commands run it."""
        if self.sample in OWN:
            tally.failures.append(f"{where}: {answer} in a reader that no child runs")
            return
        used = _children_time()
        try:
            read(self.path, ReadOptions(cache=False, isolate="on"))
            said = "but read in a child"
        except PubcError as error:
            said = str(error)
        used = _children_time() - used
        story = f"{where}: {answer} alone; {said} ({used:.1f} s)"
        tally.contained.append(story)
        if str(self.path) not in said or used > PATIENCE:
            tally.failures.append(story)


def undetectable(sample: str, clean: bytes, file: Path, expected: dict, found: dict) -> str | None:
    """Why no reader could have known, or None where one could.

    Two things are excused, both values of an array in a format without checksums: an end mark
    of 0 or 1 in an HDF5 file that became the other, where the names, shapes and dtypes of all
    arrays are as before; and a number among the `episode_ends` of a zarr folder. Nothing but
    the ends may differ, and the lengths where those values are all there is to cut by.
    """
    if file.parent.name == "episode_ends" and file.name.isdigit():
        moved = {key for key in expected if found[key] != expected[key]}
        return "episode end moved" if moved == {"lengths"} else None
    allowed = {"ends", "lengths"} if sample == "d4rl" else {"ends"}
    if not {key for key in expected if found[key] != expected[key]} <= allowed:
        return None
    if not clean.startswith(b"\x89HDF"):
        return None
    with tempfile.NamedTemporaryFile(suffix=".h5") as other:
        other.write(clean)
        other.flush()
        before, after = _members(Path(other.name)), _members(file)
    same = {n: (v.shape, v.dtype) for n, v in before.items()} == {
        n: (v.shape, v.dtype) for n, v in after.items()
    }
    marks = [n for n in before if n.split("/")[-1].startswith(MARKS)]
    moved = any(not np.array_equal(before[n], after[n]) for n in marks if n in after)
    return "end mark flipped" if same and moved else None


def _members(path: Path) -> dict[str, np.ndarray]:
    found = {}
    with h5py.File(path, "r") as file:
        file.visititems(
            lambda n, o: (
                found.update({n: np.asarray(o[()])}) if isinstance(o, h5py.Dataset) else None
            )
        )
    return found
