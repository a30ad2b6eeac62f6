"""Run folders made by hand after docs/run-folder.md, so that the report is tested alone."""

import csv
import json
from pathlib import Path

import numpy as np

from pubc.storage import append_lines, seal, write_json, write_sealed


def make_run(
    path: Path,
    count: int = 400,
    rounds: int = 4,
    *,
    sources=("expert", "other", "weak"),
    truth: bool = True,
    rewards: bool = True,
    steps: bool = False,
    status: str = "converged",
    random_seed: int = 0,
    text=lambda word: word,
    ids=None,
) -> Path:
    """Write a finished run of `count` trajectories; `text` may twist every word in it."""
    rng = np.random.default_rng(np.random.Philox(random_seed))
    data_rng = np.random.default_rng(np.random.Philox(77))
    owner = data_rng.integers(0, 3, count)
    expert = owner == 0
    lengths = data_rng.integers(20, 90, count)
    returns = np.where(expert, 5200, np.where(owner == 1, 5000, 1500)) + data_rng.normal(
        0, 320, count
    )
    seed = np.zeros(count, bool)
    seed[np.flatnonzero(expert)[:4]] = True
    names = [text(f"demo_{i}") for i in range(count)] if ids is None else ids
    path.mkdir(parents=True)
    (path / "rounds").mkdir()
    selected = seed
    for number in range(1, rounds + 1):
        apart = min(1.0, 0.4 + 0.22 * number)
        confidence = np.clip(0.45 + apart * 0.4 * expert + rng.normal(0, 0.075, count), 0.01, 0.999)
        members = np.clip(confidence + rng.normal(0, 0.01, (3, count)), 0, 1)
        members[0, seed] = np.nan
        mean = np.nanmean(members, axis=0)
        threshold = 0.45 + apart * 0.2
        before, selected = selected, mean >= threshold
        counts, edges = np.histogram(mean, bins=100)
        centres = (edges[:-1] + edges[1:]) / 2
        curve = np.polynomial.Polynomial.fit(centres, counts, 10)(centres)
        name = f"rounds/round-{number:03d}.npz"
        np.savez(
            path / name,
            confidence=members,
            seed_confidence=members[:, seed],
            votes=(members >= threshold).sum(axis=0),
            selected=selected,
            centres=centres,
            counts=counts.astype(float),
            curve=curve,
        )
        append_lines(
            path / "rounds.jsonl",
            {
                "round": number,
                "threshold": threshold,
                "network_threshold": threshold,
                "chance_wrong": 0.0123,
                "reason": text("Rightmost of 3 dips of a polynomial of order 10."),
                "cut_status": None,
                "status": status if number == rounds else None,
                "kept": int(selected.sum()),
                "changed": float((before != selected).mean()),
                "arrays": name,
                "training": [
                    {
                        "network": text(f"member {k}"),
                        "loss": (0.7 / (1 + np.arange(20) * (0.2 + k / 20))).tolist(),
                        "updates": 800,
                    }
                    for k in range(3)
                ],
            },
        )
    borderline = np.abs(mean - threshold) < 0.03
    source_names = [text(sources[k]) for k in owner] if sources else None
    _write_scores(
        path,
        names,
        mean,
        members,
        threshold,
        selected,
        seed,
        returns if rewards else None,
        lengths,
        source_names,
        borderline,
    )
    if steps:
        values = np.repeat(mean, lengths) + rng.normal(0, 0.05, int(lengths.sum()))
        np.save(path / "steps.npy", values.astype(np.float32))
    (path / "kept.npz").write_bytes(b"kept")
    write_json(path / "keep.json", {"episodes": [names[i] for i in np.flatnonzero(selected)]})
    document = {
        "kind": "filter",
        "version": 1,
        "status": status,
        "sound": status == "converged",
        "pubc": "0.1.0",
        "python": "3.12.1",
        "numpy": "2.1.0",
        "torch": "2.13.0",
        "machine": {"platform": text("Linux-6.1"), "processor": "AVX2", "device": "cpu"},
        "data": {
            "path": text("/data/mixed.npz"),
            "format": "npz",
            "fingerprint": "5f" * 32,
            "trajectories": count,
            "steps": int(lengths.sum()),
            "observation_size": 27,
            "action_size": 8,
        },
        "reading": {"format": None, "observation_keys": [], "strict": False},
        "seed": {
            "how": "top",
            "top": 0.01,
            "episodes": None,
            "from": None,
            "source": None,
            "count": None,
            "positions": np.flatnonzero(seed).tolist(),
            "ids": [names[i] for i in np.flatnonzero(seed)],
        },
        "recipe": {"name": text("paper"), "ensemble": {"classifiers": 3, "epochs": 20}},
        "settings": {"recipe": "paper", "classifiers": None, "order": 10, "max_rounds": None},
        "random_seed": random_seed,
        "device": "auto",
        "truth": text(sources[0]) if truth and sources else None,
        "to": None,
        "per_step": steps,
        "problems": [
            {
                "code": text("jumps"),
                "outcome": "warned",
                "message": text("3 trajectories jump by more than 20 deviations in one step."),
                "field": text("observations"),
                "count": 3,
                "first": 17,
            }
        ],
        "threshold": threshold,
        "network_threshold": threshold,
        "chance_wrong": 0.0123,
        "kept": int(selected.sum()),
        "kept_steps": int(lengths[selected].sum()),
        "kept_path": text("kept.npz"),
        "rounds": rounds,
        "quality": {
            "held_out_seeds": 4,
            "seeds_kept": 1.0,
            "gap": 0.0123,
            "borderline": int(borderline.sum()),
        },
        "advice": [text("Where expert and others behave alike, more seeds separate them better.")],
        "truth_report": _truth(selected, expert, text(sources[0])) if truth and sources else None,
        "times": {
            "started": "2026-11-15T06:00:00+00:00",
            "seconds": {"read": 0.5, "rounds": [3.0] * rounds, "write": 0.25, "total": 12.75},
        },
    }
    write_sealed(path / "run.json", document)
    seal(path, kind="filter", about={"note": "kept"})
    return path


def _write_scores(
    path, names, mean, members, threshold, selected, seed, returns, lengths, sources, borderline
):
    def guarded(word):
        return f"'{word}" if word.lstrip().startswith(("=", "+", "-", "@")) else word

    header = ["episode", "confidence", "votes", "keep", "seed", "return", "length"]
    header += (["source"] if sources else []) + ["borderline"]
    votes = (members >= threshold).sum(axis=0)
    with (path / "scores.csv").open("w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(header)
        for i, name in enumerate(names):
            row = [guarded(name), repr(float(mean[i])), int(votes[i]), int(selected[i])]
            row += [int(seed[i]), "" if returns is None else repr(float(returns[i])), lengths[i]]
            row += ([guarded(sources[i])] if sources else []) + [int(borderline[i])]
            writer.writerow(row)


def _truth(selected, expert, name):
    tp, fp = int((selected & expert).sum()), int((selected & ~expert).sum())
    fn, tn = int((~selected & expert).sum()), int((~selected & ~expert).sum())
    return {
        "expert": name,
        "accuracy": (tp + tn) / len(expert),
        "precision": tp / max(tp + fp, 1),
        "recall": tp / max(tp + fn, 1),
        "auc": 0.9931,
        "auc_without_seeds": 0.9927,
        "true_positives": tp,
        "false_positives": fp,
        "false_negatives": fn,
        "true_negatives": tn,
    }


def read_document(path: Path) -> dict:
    return json.loads((path / "run.json").read_text())
