"""Is our column first, or within noise of the first? Row by row, from the records of a table.

    python benchmarks/within_noise.py [docs/records/policy-scores]

Takes TABLE.json and TABLE.jsonl of `pubc reproduce`. Our column is compared with the best of the
others by Welch's t-test over random seeds, two-sided; a small p says that the gap is no noise.
"""

import json
import math
import sys
from collections import defaultdict
from pathlib import Path

import numpy as np


def main(stem):
    """Print a line for every row."""
    head = json.loads(stem.with_suffix(".json").read_text(encoding="utf-8"))
    (ours,) = head["extra"]["ours"]
    aside = head["extra"].get("not_ranked", [])
    found = defaultdict(lambda: defaultdict(list))
    for line in stem.with_suffix(".jsonl").read_text(encoding="utf-8").splitlines():
        record = json.loads(line)
        if record.get(head["unit"]) is not None and record["column"] not in aside:
            found[record["row"]][record["column"]].append(record[head["unit"]])
    print(f"| row | best of the others | its {head['unit']} | {ours} | gap | p |")
    print("|---|---|---|---|---|---|")
    for row, columns in found.items():
        mine = columns.pop(ours, None)
        if mine:
            best = max(columns, key=lambda name: np.mean(columns[name]))
            theirs = columns[best]
            a, b = np.mean(mine), np.mean(theirs)
            p = welch(mine, theirs)
            print(f"| {row} | {best} | {b:.3f} | {a:.3f} | {a - b:+.3f} | {p:.2f} |")


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
