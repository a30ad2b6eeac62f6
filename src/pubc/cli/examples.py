"""Examples at the end of every `pubc COMMAND --help`; a test runs each line as it stands here.

They speak of the same few files: mixed.npz is a pile of trajectories, good.npz some of the
expert's, labels.json marks of `pubc review`, run the folder of a finished filter, policy what was
trained on it.
"""

from __future__ import annotations

__all__ = ["EXAMPLES"]

EXAMPLES: dict[str, tuple[str, ...]] = {
    "demo": (
        "pubc demo",
        "pubc demo --out another --random-seed 1",
    ),
    "inspect": (
        "pubc inspect mixed.npz",
        "pubc inspect mixed.npz --plot mixed.png",
        "pubc inspect mixed.npz --json",
    ),
    "filter": (
        "pubc filter mixed.npz --seed-episodes 3,17,40-45 --out run",
        "pubc filter mixed.npz --seed-from good.npz --out run",
        "pubc filter mixed.npz --seed-source expert --truth expert --out run",
        "pubc filter mixed.npz --labels labels.json --out run",
        "pubc filter mixed.npz --seed-top 5% --dry-run",
    ),
    "review": (
        "pubc review mixed.npz",
        "pubc review run --no-browser --port 8500",
    ),
    "score": (
        "pubc score mixed.npz --filter run",
        "pubc score mixed.npz --filter run --out scores.csv",
    ),
    "weights": (
        "pubc weights run --for torch --out weights.npy",
        "pubc weights run --for d3rlpy --out segments.h5",
    ),
    "convert": (
        "pubc convert mixed.npz mixed.store",
        "pubc convert mixed.npz robot-set --to lerobot",
        "pubc convert run/kept.npz kept.hdf5 --to robomimic",
    ),
    "train": (
        "pubc train run --out policy",
        "pubc train mixed.npz --algo 10%bc --epochs 5 --out top-tenth",
        "pubc train mixed.npz --algo dwbc --positives good.npz --updates 200 --out weighted",
        "pubc train run --epochs 4 --evaluate-every 200 --env ant --evaluate-episodes 2 --out seen",
        "pubc train run --epochs 2 --random-seeds 0-2 --out many",
        "pubc train --weights run --epochs 2 --out by-steps",
    ),
    "evaluate": (
        "pubc evaluate policy --env ant --episodes 5",
        "pubc evaluate ant/expert --episodes 5 --record results.jsonl",
    ),
    "compare": ("pubc compare ant/expert policy --episodes 5 --plot comparison.png",),
    "export": (
        "pubc export policy policy.onnx",
        "pubc export policy policy.pt",
    ),
    "collect": (
        "pubc collect ant:E+W ant.npz --trajectories-per-source 4",
        "pubc collect custom hopper.npz --environment hopper --policy E+=hopper/expert "
        "--policy W=hopper/medium --share W=0.5 --trajectories-per-source 4",
    ),
    "zoo": (
        "pubc zoo",
        "pubc zoo ant/expert --measure 2",
    ),
    "experts": ("pubc experts train hopper my-hopper --algo td3 --steps 1e3 --weak-at 500",),
    "reproduce": (
        "pubc reproduce --list",
        "pubc reproduce pu-accuracy --out tables --list",
    ),
    "report": (
        "pubc report run",
        "pubc report run policy",
        "pubc report run other-run --out comparison",
        "pubc report run --figures figures",
    ),
    "verify": ("pubc verify run",),
    "formats": ("pubc formats",),
    "cache": (
        "pubc cache",
        "pubc cache --clear",
    ),
    "completion": (
        "pubc completion bash > pubc-completion.bash",
        "pubc completion zsh > pubc-completion.zsh",
        "pubc completion fish > pubc.fish",
    ),
}
"""Command to the lines that its help ends with."""
