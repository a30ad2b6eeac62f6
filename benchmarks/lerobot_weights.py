"""LeRobot's own RA-BC class reads the table of `pubc weights --for lerobot` and weighs as it means.

    python -m venv lerobot-env && lerobot-env/bin/pip install lerobot==0.4.4
    python benchmarks/lerobot_weights.py --lerobot lerobot-env/bin/python [--out record.json]

Hopper trajectories with lapses are collected, written as a LeRobot set and filtered. lerobot
cannot share an environment with pubc's extras, so its class opens the table in an environment of
its own and says how much every frame weighs, alone and in a batch. What happened goes to --out.
"""

from importlib import metadata
from pathlib import Path

from other_environment import main, make_and_read

CHUNK, BATCH = 20, 256
LINES = [
    "collect hopper:lapses lapses.npz --steps-per-source 4000 --seed-steps 3000",
    "convert lapses.npz lapses --to lerobot",
    "convert lapses-seed.npz seeds --to lerobot",
    "filter lapses --seed-from seeds --out run",
    f"weights run --for lerobot --chunk {CHUNK} --out progress.parquet",
]


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


if __name__ == "__main__":
    main("lerobot", {"read": weigh}, make_and_read(LINES, ["progress.parquet"]))
