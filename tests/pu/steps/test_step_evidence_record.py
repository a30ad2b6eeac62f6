"""The page on segments says what the records of manipulation say."""

import json
import re
from collections import defaultdict
from pathlib import Path
from statistics import mean, median

ROOT = Path(__file__).parents[3]
ROW = re.compile(r"^\| ([\w-]+) \| (0\.\d{3}) \| ([\d.]+) \|$", re.MULTILINE)


def test_the_page_on_segments_has_the_figures_of_its_records():
    page = (ROOT / "docs/segments.md").read_text()
    draws = defaultdict(list)
    for line in (ROOT / "docs/dev/step-evidence.jsonl").read_text().splitlines():
        draws[json.loads(line)["file"].removesuffix("-v3")].append(json.loads(line))
    wanted = {
        name: (
            f"{mean(one['auc_local'] for one in own):.3f}",
            f"{median(one['border'] for one in own):g}",
        )
        for name, own in draws.items()
    }
    assert {name: (auc, border) for name, auc, border in ROW.findall(page)} == wanted
    all_tasks = mean(mean(one["auc_local"] for one in own) for own in draws.values())
    borders = median(one["border"] for own in draws.values() for one in own)
    assert f"mean of these is {all_tasks:.3f}, the median border {borders:g} steps" in page
