"""Changes to the bytes and to the structure of a valid dataset, and who judges the outcome."""

import copy
import json
import os
import selectors
import subprocess
import sys
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path

import h5py
import numpy as np

from tests.reliability.samples import SAMPLES

ROOT = Path(__file__).parents[2]
PATIENCE = 5.0
"""Seconds after which a read hangs."""
_INTERESTING = (0, 1, 2, 0x7F, 0x80, 0xFF, 0x7FFF, 0xFFFF, 0x7FFFFFFF, 0xFFFFFFFF, 2**62, 2**63 - 1)


class Reader:
    """The worker process, started again whenever it dies or hangs."""

    def __init__(self) -> None:
        self.process: subprocess.Popen | None = None
        self.warm = False

    def _start(self) -> subprocess.Popen:
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
        with selectors.DefaultSelector() as selector:
            selector.register(process.stdout, selectors.EVENT_READ)
            # The first read of a process also loads the libraries, on a machine that may be busy.
            if not selector.select(PATIENCE if self.warm else 60):
                self.close()
                return {"hung": PATIENCE}
        line = process.stdout.readline()
        self.warm = True
        return json.loads(line) if line else {"died": process.wait()}

    def close(self) -> None:
        if self.process is not None:
            self.process.kill()
            self.process.communicate()
            self.process = None


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


@dataclass
class Tally:
    """What became of many mutations."""

    outcomes: Counter = field(default_factory=Counter)
    failures: list[str] = field(default_factory=list)
    silent: list[dict] = field(default_factory=list)
    unforeseen: Counter = field(default_factory=Counter)


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
                file.write_bytes(changed[1])
                return file, changed[0]
            if data.startswith(b"\x89HDF"):
                return file, mutate_hdf5(file, rng)
        kind, bad = mutate_bytes(data, rng)
        file.write_bytes(bad)
        return file, kind

    def run(self, count: int, seed: int) -> Tally:
        tally = Tally()
        for number in range(count):
            rng = np.random.Generator(np.random.Philox(key=[seed, number]))
            file, kind = self.spoil(rng)
            answer = self.reader.read(self.path)
            self._judge(number, file, kind, answer, tally)
            file.write_bytes(self.clean[file])
        return tally

    def _judge(self, number: int, file: Path, kind: str, answer: dict, tally: Tally) -> None:
        what = next(iter(answer))
        tally.outcomes[what] += 1
        where = f"{number}: {kind} in {file.name}"
        if what in ("escaped", "hung"):
            tally.failures.append(f"{where}: {answer}")
        elif what == "error":
            # One sentence that names the dataset, whatever the parser stumbled over.
            if str(self.path) not in answer["message"] and file.name not in answer["message"]:
                tally.failures.append(f"{where}: {answer['message']} does not name the file")
            if answer["unforeseen"]:
                tally.unforeseen[answer["message"].split("(")[-1]] += 1
        elif what == "set":
            found = answer["set"]
            told = set(found.pop("problems")) - set(self.baseline["problems"])
            expected = {k: v for k, v in self.baseline.items() if k != "problems"}
            if found != expected and not told:
                tally.silent.append({"where": where, "file": file, "kind": kind, "found": found,
                                     "data": file.read_bytes()})  # fmt: skip
