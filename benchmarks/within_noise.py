"""Is our column first, or within noise of the first? From the records of a table.

    python benchmarks/within_noise.py [docs/records/policy-scores]

Takes TABLE.json and TABLE.jsonl of `pubc reproduce`. Row by row, our column is compared with the
best of the others by Welch's t-test over random seeds, two-sided; a small p says that the gap is no
noise. The table's sums follow, our column against every other that has all of their rows: a sum is
taken within each random seed, because rows in which the same is kept share their policies.
"""

import json
import math
import sys
from collections import defaultdict
from pathlib import Path

import numpy as np


def main(stem):
    """Print a line for every row, and one for every sum and other column."""
    head = json.loads(stem.with_suffix(".json").read_text(encoding="utf-8"))
    (ours,) = head["extra"]["ours"]
    aside = head["extra"].get("not_ranked", [])
    found = defaultdict(lambda: defaultdict(dict))
    for line in stem.with_suffix(".jsonl").read_text(encoding="utf-8").splitlines():
        record = json.loads(line)
        if record.get(head["unit"]) is not None and record["column"] not in aside:
            seeds = found[record["row"]][record["column"]]
            seeds[record["cell"]["random_seed"]] = record[head["unit"]]
    print(f"| row | compared with | its {head['unit']} | {ours} | gap | p |")
    print("|---|---|---|---|---|---|")
    for row, columns in found.items():
        if ours in columns:
            others = {name: list(columns[name].values()) for name in columns if name != ours}
            best = max(others, key=lambda name: np.mean(others[name]))
            tell(row, best, list(columns[ours].values()), others[best])
    for summary in head["extra"].get("summaries", []):
        rows = [row for row in summary["of"] if row in found]
        if rows and summary["how"] == "sum":
            mine = sums(found, rows, ours)
            for other in [name for name in head["columns"] if name not in (ours, *aside)]:
                theirs = sums(found, rows, other)
                if mine and theirs:
                    tell(f"{summary['name']} ({len(rows)} rows)", other, mine, theirs)


def sums(found, rows, column):
    """The sum over rows of every random seed that has them all."""
    parts = [found[row].get(column, {}) for row in rows]
    seeds = set.intersection(*map(set, parts))
    return [sum(part[seed] for part in parts) for seed in sorted(seeds)]


def tell(row, other, mine, theirs):
    """One line of the table."""
    a, b = np.mean(mine), np.mean(theirs)
    print(f"| {row} | {other} | {b:.3f} | {a:.3f} | {a - b:+.3f} | {welch(mine, theirs):.3f} |")


def welch(a, b):
    """Two-sided p of Welch's t-test."""
    parts = [np.var(x, ddof=1) / len(x) for x in (a, b)]
    t = abs(np.mean(a) - np.mean(b)) / math.sqrt(sum(parts))
    free = sum(parts) ** 2 / sum(v**2 / (len(x) - 1) for v, x in zip(parts, (a, b), strict=True))
    # Student's density beyond t, with x = t + (1 - u) / u to bring infinity to u = 0.
    u = (np.arange(200_000) + 0.5) / 200_000
    x = t + (1 - u) / u
    scale = math.lgamma((free + 1) / 2) - math.lgamma(free / 2) - 0.5 * math.log(free * math.pi)
    density = np.exp(scale - (free + 1) / 2 * np.log1p(x**2 / free))
    return 2 * float(np.mean(density / u**2))


if __name__ == "__main__":
    main(Path(sys.argv[1] if len(sys.argv) > 1 else "docs/records/policy-scores"))
