"""LeRobot's own RA-BC class reads the table of `pubc weights --for lerobot` and weighs as it means.

    python -m venv lerobot-env && lerobot-env/bin/pip install lerobot==0.4.4
    python benchmarks/lerobot_weights.py --lerobot lerobot-env/bin/python [--out record.json]

Hopper trajectories with lapses are collected, written as a LeRobot set and filtered. lerobot
cannot share an environment with pubc's extras, so its class opens the table in an environment of
its own and says how much every frame weighs, alone and in a batch. What happened goes to --out.
"""

import argparse
import json
import shlex
import subprocess
import sys
import tempfile
from importlib import metadata
from pathlib import Path

CHUNK, BATCH = 20, 256


def weigh(path: Path) -> dict:
    """In lerobot's environment: what its class makes of the table, frame by frame."""
    import numpy as np
    import pyarrow.parquet as parquet
    from lerobot.utils.rabc import RABCWeights

    table = parquet.read_table(path).to_pydict()
    index, episode = np.array(table["index"]), np.array(table["episode_index"])
    meant = np.array(table["pubc_confidence"]) >= 0.5
    inside = np.append(episode[1:] == episode[:-1], False)
    theirs = RABCWeights(path, chunk_size=CHUNK, head_mode="sparse", device="cpu")
    rises = np.array([theirs._compute_delta(int(frame)) for frame in index], np.float32)
    weights = theirs._compute_weights(rises)
    batch, told = theirs.compute_batch_weights({"index": index[:BATCH]})
    dropped = int((weights[:BATCH] == 0).sum())
    return {
        "lerobot": metadata.version("lerobot"),
        "frames": len(index),
        "episodes": len(set(episode.tolist())),
        "frames_of_the_expert": int(meant.sum()),
        "weighed_as_meant": float(np.mean((weights == 1)[inside] == meant[inside])),
        "weights_inside_episodes": sorted({float(w) for w in weights[inside]}),
        "batch": {
            "frames": BATCH,
            "sum_of_weights": round(float(batch.sum()), 3),
            "without_weight": int(told["num_zero_weight"]),
            "without_weight_expected": dropped,
        },
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--lerobot", type=Path, required=True)
    parser.add_argument("--out", type=Path)
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        found = walk(given.lerobot.absolute(), Path(folder))
    found["command"] = shlex.join(["python", "benchmarks/lerobot_weights.py", *sys.argv[1:]])
    print(json.dumps(found, indent=1))
    if given.out is not None:
        given.out.write_text(json.dumps(found, indent=1) + "\n")


def walk(python: Path, work: Path) -> dict:
    said = []
    for line in (
        "collect hopper:lapses lapses.npz --steps-per-source 4000 --seed-steps 3000",
        "convert lapses.npz lapses --to lerobot",
        "convert lapses-seed.npz seeds --to lerobot",
        "filter lapses --seed-from seeds --out run",
        f"weights run --for lerobot --chunk {CHUNK} --out progress.parquet",
    ):
        words = [sys.executable, "-m", "pubc", *shlex.split(line)]
        done = subprocess.run(words, cwd=work, capture_output=True, text=True)
        # A run that is unsure of whole trajectories ends with 6; its steps are judged all the same.
        assert done.returncode in (0, 6), f"{line}: {done.stderr}"
        said.append(f"pubc {line}")
    words = [python, Path(__file__).absolute(), "weigh", work / "progress.parquet"]
    done = subprocess.run(words, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    weighed = json.loads(done.stdout.splitlines()[-1])
    return {"pubc": metadata.version("pubc"), "lines": said, **weighed}


if __name__ == "__main__":
    if sys.argv[1:2] == ["weigh"]:
        print(json.dumps(weigh(Path(sys.argv[2]))))
    else:
        main()
