"""Do two versions of pubc give the same bytes? Small runs of the filter, hashed file by file.

    python benchmarks/golden.py hashes.json          # with the pubc that this python imports
    python benchmarks/golden.py --compare a.json b.json

Runs: recipe `auto` on the demo's data; recipe `paper` on a npz file and on a robomimic file;
and two runs that are killed after their first round and resumed. Networks and confidences
depend on the processor, so files of hashes are compared on one machine. Decisions that do not
are part of the tests (tests/test_golden.py).
"""

from __future__ import annotations

import hashlib
import json
import os
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np

MAIN = [sys.executable, "-c", "import sys; from pubc.cli.main import main; sys.exit(main())"]
VOLATILE = ("times", "machine", "data", "pubc", "python", "numpy", "torch", "seed")


def main(words: list[str]) -> int:
    if words[:1] == ["--compare"]:
        return compare(*(json.loads(Path(name).read_text()) for name in words[1:3]))
    with tempfile.TemporaryDirectory() as name:
        place = Path(name)
        found = {run: hashes(make(place)) for run, make in RUNS.items()}
    Path(words[0]).write_text(json.dumps(found, indent=1) + "\n")
    print(f"{sum(map(len, found.values()))} files of {len(found)} runs -> {words[0]}")
    return 0


def compare(one: dict, other: dict) -> int:
    differ = 0
    for run in sorted({*one, *other}):
        left, right = one.get(run, {}), other.get(run, {})
        for file in sorted({*left, *right}):
            if left.get(file) != right.get(file):
                differ += 1
                print(f"{run}: {file} differs")
    print(f"{differ} files differ" if differ else "every file is the same")
    return 6 if differ else 0


def demo(place: Path) -> Path:
    pubc("demo", "--out", place / "demo", "--json")
    return place / "demo" / "run"


def paper_npz(place: Path) -> Path:
    return paper(place, tiny(place), "npz")


def paper_robomimic(place: Path) -> Path:
    data = place / "tiny.hdf5"
    pubc("convert", tiny(place), data, "--to", "robomimic")
    return paper(place, data, "robomimic")


def paper_killed(place: Path) -> Path:
    return killed(place, "paper", paper_words(tiny(place)))


def auto_killed(place: Path) -> Path:
    return killed(place, "auto", ["filter", tiny(place), "--seed-episodes", "0,1", "--json"])


RUNS = {
    "auto-demo": demo,
    "paper-npz": paper_npz,
    "paper-robomimic": paper_robomimic,
    "paper-killed": paper_killed,
    "auto-killed": auto_killed,
}


def paper(place: Path, data: Path, name: str) -> Path:
    run = place / f"run-{name}"
    pubc(*paper_words(data), "--out", run)
    return run


def paper_words(data: Path) -> list[object]:
    words = ["--recipe", "paper", "--classifiers", "3", "--max-rounds", "4", "--per-step", "--json"]
    return ["filter", data, "--seed-episodes", "0,1", *words]


def killed(place: Path, name: str, words: list[object]) -> Path:
    """Kill the run once its first round is on disk, then resume it."""
    run = place / f"run-{name}-killed"
    command = [*MAIN, *map(str, words), "--out", str(run)]
    child = subprocess.Popen(command, stdout=subprocess.DEVNULL, env=environment())
    while child.poll() is None and not (run / "rounds.jsonl").exists():
        time.sleep(0.002)
    if child.poll() is not None:
        sys.exit(f"{name}: ended before it could be killed")
    child.send_signal(signal.SIGKILL)
    child.wait()
    pubc("filter", "--resume", run, "--json")
    return run


def tiny(place: Path) -> Path:
    """Two linear policies, 24 trajectories of each: enough to be told apart by both recipes."""
    from pubc import TrajectorySet, save
    from pubc.trajectory import Columns

    path = place / "tiny.npz"
    if path.exists():
        return path
    rng = np.random.default_rng(7)
    policies = rng.normal(size=(2, 4, 2))
    steps, count = 60, 48
    owner = np.arange(count) // 24
    states = rng.normal(size=(count, steps, 4)).cumsum(axis=1) * 0.2
    actions = np.tanh(np.einsum("nts,nsa->nta", states, policies[owner]))
    actions += 0.05 * rng.normal(size=actions.shape)
    ends = np.zeros((count, steps), dtype=np.bool_)
    ends[:, -1] = True
    columns = Columns(
        states.reshape(-1, 4).astype(np.float32),
        actions.reshape(-1, 2).astype(np.float32),
        np.repeat(owner == 0, steps).astype(np.float32),
        np.zeros(count * steps, dtype=np.bool_),
        ends.reshape(-1),
    )
    save(path, TrajectorySet.from_flat(columns, [steps] * count))
    return path


def hashes(run: Path) -> dict[str, str]:
    """SHA-256 of every result; of run.json what does not name the machine or the hour."""
    names = ["keep.json", "scores.csv", "rounds.jsonl", "borderline_steps.npz", "steps.npy"]
    files = [run / name for name in names if (run / name).exists()]
    files += sorted([*run.glob("rounds/*.npz"), *run.glob("classifiers/**/*.safetensors")])
    found = {str(path.relative_to(run)): digest(path.read_bytes()) for path in files}
    said = json.loads((run / "run.json").read_text())
    stable = {key: value for key, value in said.items() if key not in VOLATILE}
    return {**found, "run.json": digest(json.dumps(stable, sort_keys=True).encode())}


def digest(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()


def pubc(*words: object) -> None:
    subprocess.run(
        [*MAIN, *map(str, words)], check=True, stdout=subprocess.DEVNULL, env=environment()
    )


def environment() -> dict[str, str]:
    return {**os.environ, "PUBC_CACHE": str(Path(tempfile.gettempdir()) / "pubc-golden-cache")}


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
