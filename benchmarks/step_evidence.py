"""How well are single steps told apart, and what should their confidence be?

    pubc collect hopper:lapses hopper-lapses.npz --trajectories-per-source 50 --seed-steps 3000
    python benchmarks/step_evidence.py shared/manipulation/*.npz hopper-lapses.npz \
        --seeds 5 --draws 3 --out steps.jsonl
    python benchmarks/step_evidence.py --learn steps.jsonl

A file holds `expert_steps`: which steps are the expert's own. Seeds are drawn from the
trajectories of the source `expert`; where a file NAME-seed.npz lies beside it, those are the
seeds. The whole filter runs, then every step is judged; --kept truth or seeds skips the filter
and judges as if it had found exactly the clean trajectories, or nothing but the seeds. A line is
printed and kept per run, with a sample of what the calibration weighs; --learn fits the
calibration to such lines, prints how well it holds for each family when learned without it, and
the numbers for `pubc.pu.steps.step_settings`.
"""

import argparse
import json
import time
from pathlib import Path
from types import SimpleNamespace

import numpy as np

import pubc
from pubc.metrics import roc_auc
from pubc.runs.find_expert import prepare
from pubc.runs.named_trajectories import seeds_in
from pubc.runs.segments.run_steps import judge_steps
from pubc.streams import Key

SAMPLE = 3000
NUMBERS = ("by_chain", "by_window")
"""What the calibration may weigh; where the seeds are not alone the chain says nothing beside the
window. The mean of the trajectory and whether it is kept were tried:
where no trajectory is clean, nothing is kept and most steps are the expert's all the same."""


def borders(confidence, own, lengths):
    """Steps between a true border and the nearest one that was found; at most 50."""
    away, start = [], 0
    for length in lengths.tolist():
        part = slice(start, start + length)
        true = np.flatnonzero(np.diff(own[part].astype(int)))
        found = np.flatnonzero(np.diff((confidence[part] >= 0.5).astype(int)))
        away += [min(50, int(np.abs(found - b).min())) if len(found) else 50 for b in true]
        start += length
    return float(np.median(away)) if away else float("nan")


def found(mixed, seeds, clean, draw, how):
    """The pile as a filter sees it, and what it finds, or what it would find."""
    if how == "filter":
        finder = pubc.ExpertFinder(random_seed=draw).fit(mixed, seeds=seeds)
        return finder._home.planned.ready, finder.result_
    ready = prepare(mixed, seeds_in(mixed, seeds))
    kept = clean if how == "truth" else ready.seeds
    return ready, SimpleNamespace(mask=kept | ready.seeds, status=how)


def measure(path, count, draw, how):
    mixed = pubc.load(path)
    own = np.asarray(mixed.columns.extras["expert_steps"]).reshape(-1).astype(bool)
    beside = path.with_name(f"{path.stem}-seed{path.suffix}")
    rng = Key(draw, ("step evidence", count)).rng()
    if beside.exists():
        seeds = pubc.load(beside)
    else:
        experts = np.flatnonzero(mixed.sources == "expert")
        seeds = np.sort(rng.choice(experts, count, replace=False)).tolist()
    share = np.add.reduceat(own, mixed.offsets[:-1]) / mixed.lengths
    began = time.perf_counter()
    ready, result = found(mixed, seeds, share == 1, draw, how)
    filtered = time.perf_counter() - began
    began = time.perf_counter()
    parts = list(judge_steps(ready, result, Key(draw)))
    judged = time.perf_counter() - began
    confidence = np.concatenate([part.confidence for part in parts])
    local = (share > 0) & (share < 1)
    at = np.repeat(local, mixed.lengths)
    numbers = np.concatenate([part.numbers for part in parts])
    some = np.sort(rng.choice(len(own), min(SAMPLE, len(own)), replace=False))
    return {
        "file": path.stem, "draw": draw, "seeds": count, "status": result.status, "kept": how,
        "kept_right": float(np.mean(result.mask == (share == 1))),
        "auc_local": roc_auc(confidence[at], own[at]), "auc_all": roc_auc(confidence, own),
        "right": float(np.mean((confidence >= 0.5) == own)),
        "border": borders(confidence[at], own[at], mixed.lengths[local]),
        "filter_seconds": round(filtered, 2), "step_seconds": round(judged, 2),
        "numbers": np.round(numbers[some], 3).tolist(), "own": own[some].astype(int).tolist(),
        "local": at[some].astype(int).tolist(),
    }  # fmt: skip


def fit(numbers, own, weights, penalty=1e-3):
    """Logistic regression by Newton's method; the constant comes last."""
    design = np.column_stack([numbers, np.ones(len(numbers))])
    beta = np.zeros(design.shape[1])
    for _ in range(40):
        chance = 1 / (1 + np.exp(-np.clip(design @ beta, -30, 30)))
        slope = design.T @ (weights * (own - chance)) - penalty * beta
        curve = (design * (weights * chance * (1 - chance))[:, None]).T @ design
        beta = beta + np.linalg.solve(curve + penalty * np.eye(len(beta)), slope)
    return beta


def learn(lines, names):
    files = np.concatenate([[line["file"]] * len(line["own"]) for line in lines])
    columns = [NUMBERS.index(name) for name in names]
    numbers = np.concatenate([np.array(line["numbers"])[:, columns] for line in lines])
    own = np.concatenate([np.array(line["own"]) for line in lines])
    local = np.concatenate([np.array(line["local"]) for line in lines]).astype(bool)
    weights = np.ones(len(own)) / len(own)
    print(f"{'family left out':28} {'AUC local':>9} {'expected':>9} {'found':>7}")
    for name in dict.fromkeys(files.tolist()):
        out = files == name
        beta = fit(numbers[~out], own[~out], weights[~out])
        odds = np.column_stack([numbers[out], np.ones(out.sum())]) @ beta
        chance = 1 / (1 + np.exp(-odds))
        here = local[out]
        auc = roc_auc(odds[here], own[out][here].astype(bool))
        print(f"{name:28} {auc:9.3f} {chance.mean():9.3f} {own[out].mean():7.3f}")
    beta = fit(numbers, own, weights)
    for name, value in zip((*names, "intercept"), beta, strict=True):
        print(f"    {name}: float = {value:.3f}")


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("files", nargs="*", type=Path)
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--draws", type=int, default=3)
    parser.add_argument("--first-draw", type=int, default=0)
    parser.add_argument("--kept", choices=("filter", "truth", "seeds"), default="filter")
    parser.add_argument("--out", type=Path)
    parser.add_argument("--learn", type=Path)
    parser.add_argument("--chain", action="store_true", help="the calibration weighs the chain too")
    asked = parser.parse_args()
    if asked.learn is not None:
        names = NUMBERS if asked.chain else NUMBERS[1:]
        learn([json.loads(line) for line in asked.learn.read_text().splitlines()], names)
        return
    for draw in range(asked.first_draw, asked.first_draw + asked.draws):
        for path in asked.files:
            line = measure(path, asked.seeds, draw, asked.kept)
            if asked.out is not None:
                with asked.out.open("a") as file:
                    file.write(json.dumps(line) + "\n")
            shown = {k: v for k, v in line.items() if k not in ("numbers", "own", "local")}
            print(json.dumps(shown), flush=True)


if __name__ == "__main__":
    main()
