"""Folders of records as `pubc reproduce` writes them, made by hand so the page is tested alone."""

import json
from pathlib import Path

import numpy as np

from pubc.results import Record
from pubc.storage import write_json


def head(table: str = "pu-accuracy", **changes) -> dict:
    """A head with everything it needs; `changes` replace entries, None removes one."""
    document = {
        "table": table,
        "title": "Accuracy of the filter (Table 1)",
        "caption": "Share of trajectories rightly kept or dropped.",
        "scale": "small",
        "scaled_down": "100 trajectories of each source instead of 500.",
        "command": f"pubc reproduce {table} --scale small --random-seeds 3",
        "wall_seconds": 5025.0,
        "cells": 12,
        "random_seeds": 3,
        "pubc": "0.1.0",
        "code": {"dataset": "aa11", "filter": "bb22", "learner": "cc33"},
        "machines": [{"cores": 2, "cpu": "Some CPU", "gpu": None, "torch": "2.13.0"}],
        "rows": ["Ant E+E", "Ant E+W"],
        "columns": ["upu", "auto"],
        "unit": "percent",
        "direction": "higher",
        "extra": {"ours": ["auto"]},
    } | changes
    return {name: value for name, value in document.items() if value is not None}


def record(row, column, value, seed=0, *, paper=None, measure="accuracy", **more) -> Record:
    """The record of one cell; further values in `more`."""
    cell = {"dataset": row, "filter": column, "random_seed": seed, "code": "f" * 8}
    place = {"row": row, "column": column, "paper": paper, "measure": measure}
    return Record(cell, {**place, measure: value, "seconds": 1.5, **more})


def failed(
    row, column, seed=0, *, kind="worker_died", message="It died.\nIn detail.", paper=None
) -> Record:
    """The record of a cell that failed."""
    cell = {"dataset": row, "filter": column, "random_seed": seed, "code": "f" * 8}
    place = {"row": row, "column": column, "paper": paper, "measure": "accuracy"}
    return Record(cell, {**place, "failed": {"kind": kind, "message": message}, "seconds": None})


def write(folder: Path, document: dict, records) -> Path:
    """A head and its records."""
    folder.mkdir(parents=True, exist_ok=True)
    write_json(folder / f"{document['table']}.json", document, overwrite=True)
    lines = [json.dumps(one.document()) + "\n" for one in records]
    (folder / f"{document['table']}.jsonl").write_text("".join(lines))
    return folder


def accuracy_records() -> list[Record]:
    """Two rows, two columns, three random seeds: `auto` is short of the paper in one place."""
    rng = np.random.default_rng(np.random.Philox(5))
    figures = {
        ("Ant E+E", "upu"): (0.80, 0.981),
        ("Ant E+E", "auto"): (0.95, 0.990),
        ("Ant E+W", "upu"): (0.995, 1.0),
        ("Ant E+W", "auto"): (0.999, 1.0),
    }
    return [
        record(row, column, round(mean + 0.001 * float(rng.random()), 4), seed, paper=paper)
        for (row, column), (mean, paper) in figures.items()
        for seed in range(3)
    ]


def trace(rounds: int = 3) -> list[dict]:
    """The rounds of a filter, as a record holds them."""
    centres = np.linspace(0.01, 0.99, 50)
    found = []
    for number in range(1, rounds + 1):
        apart = 0.1 * number
        counts = 40 * np.exp(-(((centres - 0.5 + apart) / 0.08) ** 2))
        counts += 60 * np.exp(-(((centres - 0.5 - apart) / 0.05) ** 2))
        found.append(
            {
                "round": number,
                "attempt": 0,
                "threshold": 0.5,
                "status": None,
                "changed": 0.1,
                "kept": 90 + number,
                "accuracy": 0.9,
                "confusion": {
                    "true_positives": 80 + number,
                    "false_positives": 10 - number,
                    "false_negatives": 20 - number,
                    "true_negatives": 90 + number,
                },
                "histogram": {
                    "centres": [round(float(c), 4) for c in centres],
                    "counts": [int(c) for c in counts],
                    "curve": [round(float(c), 2) for c in counts],
                },
            }
        )
    return found


def all_tables(folder: Path) -> Path:
    """One table of every kind, with its figure."""
    summaries = [{"name": "Ant average", "of": ["Ant E+E", "Ant E+W"], "how": "mean"}]
    extra = {"ours": ["auto"], "summaries": summaries}
    write(folder, head(extra=extra), accuracy_records())
    write(
        folder,
        head(
            "convergence",
            title="Convergence (Table 3, Figure 3)",
            rows=["push", "lift", "ant"],
            columns=["paper"],
            extra={
                "paper_rounds": {"push": [{"round": 1, "TP": 7, "FP": 6, "FN": 5, "TN": 4}]},
                "figure": {"kind": "rounds", "rows": ["push"]},
            },
        ),
        [
            record("push", "paper", 0.9, 0, trace=trace(3)),
            record("push", "paper", 0.9, 1, trace=trace(2)),
            failed("lift", "paper", kind="data_not_given", message="Give --data lift=PATH."),
            record("ant", "paper", 0.9, trace=trace(1)),
        ],
    )
    lines = [
        record(
            f"hopper {line}",
            learner,
            base + 0.01 * seed,
            seed,
            measure="score",
            paper=0.5,
            curve={
                "panel": f"hopper, {learner}",
                "line": line,
                "x": [1000, 2000, 3000],
                "y": [base / 2, base, base + 0.01 * seed],
            },
        )
        for line, base in (("with PU", 0.9), ("without PU", 0.4))
        for learner in ("BC", "IQL")
        for seed in range(2)
    ]
    write(
        folder,
        head(
            "d4rl",
            title="With and without PU (Table 6, Figure 5)",
            rows=["hopper with PU", "hopper without PU"],
            columns=["BC", "IQL"],
            unit="score",
            extra={
                "pairs": [["hopper with PU", "hopper without PU"]],
                "totals": [{"name": "Total", "of": ["BC", "IQL"], "how": "sum"}],
                "figure": {"kind": "curves", "x": "updates", "y": "score"},
            },
        ),
        lines,
    )
    write(
        folder,
        head(
            "seeds",
            title="Accuracy against the number of seeds",
            rows=["Ant E+E"],
            columns=["1 seed", "2 seeds", "4 seeds"],
            extra={"figure": {"kind": "line", "x": "seed trajectories", "y": "accuracy, %"}},
        ),
        [
            record("Ant E+E", column, 0.9 + 0.01 * seed + 0.02 * at, seed)
            for at, column in enumerate(("1 seed", "2 seeds", "4 seeds"))
            for seed in range(3)
        ],
    )
    (folder / "pu-accuracy.notes.md").write_text(
        "All of it was computed in one go.\n\n## Ant E+E\n\nTwo experts that act alike.\n"
    )
    return folder
