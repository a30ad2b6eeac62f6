"""The page on segments says what the records of manipulation say."""

import json
import re
from collections import defaultdict
from pathlib import Path
from statistics import mean, median

import numpy as np
import torch

from pubc.pu.steps.step_imitators import total
from pubc.pu.steps.step_model import _log_odds, calibrated
from pubc.pu.steps.step_settings import StepSettings

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


def test_the_page_on_segments_says_how_sure_a_step_can_be():
    page = (ROOT / "docs/segments.md").read_text()
    clearest = np.array([[_log_odds(np.ones(1))[0], float(total(torch.full((1, 9), 9.0)))]])
    most, alone = (
        float(calibrated(clearest, np.ones(1), settings)[0])
        for settings in (StepSettings(), StepSettings().lone())
    )
    assert f"a confidence is at most {most:.2f} (there {alone:.2f})" in page
