"""What a CUDA device says of two piles, recorded for machines that have none (goal R9).

python -m tests.reliability.other_device tests/reliability/other_device.json
"""

import json
import sys
from pathlib import Path

import numpy as np
import torch

import pubc
from pubc.nets import Classifier, FoldedClassifier, Normaliser, initialise
from pubc.pu.judge import Bench
from pubc.pu.paper.scoring import Scorer, score_trajectories
from tests.pu.piles import pile

__all__ = ["NOISE", "RECORD", "found", "scored_pile", "scores"]

NOISE = {"clear": 0.05, "blurred": 0.6}
RECORD = Path(__file__).with_suffix(".json")


def scored_pile() -> pubc.TrajectorySet:
    """What `scores` is asked about."""
    return pile([10, 10], states=17, actions=6)


def scores(mixed: pubc.TrajectorySet, device: str) -> np.ndarray:
    """Confidences of one classifier of the paper, the same weights whatever the device."""
    network = Classifier(mixed.observation_size, mixed.action_size)
    initialise(network, np.random.default_rng(0))
    network.eval()
    plain = [
        Normaliser(np.zeros(size, np.float32), np.ones(size, np.float32))
        for size in (mixed.observation_size, mixed.action_size)
    ]
    scorer = Scorer(FoldedClassifier(network.to(device)), *plain, torch.device(device))
    return score_trajectories([scorer], mixed, Bench(device=device))


def found(name: str, device: str) -> dict[str, np.ndarray]:
    """What the filter makes of a pile: who is selected, who is borderline, how confidently."""
    result = pubc.find_expert(pile([24, 16, 8], noise=NOISE[name]), [0, 1], device=device)
    return {
        "mask": result.mask,
        "borderline": result.quality.borderline,
        "confidence": np.asarray(result.confidence, dtype=np.float64),
    }


def main(path: Path) -> None:
    """Record what the CUDA device of this machine says."""
    record = {"gpu": torch.cuda.get_device_name(), "torch": torch.__version__}
    told = {name: found(name, "cuda") for name in NOISE}
    plain = {name: {k: v.tolist() for k, v in one.items()} for name, one in told.items()}
    record |= {"scores": scores(scored_pile(), "cuda").tolist(), **plain}
    path.write_text(json.dumps(record, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
