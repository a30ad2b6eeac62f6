"""What is each setting of recipe `auto` worth? The quick suite with one of them changed.

    python benchmarks/auto_settings.py --out auto-settings.jsonl [--processes 2] [--questions 11]

A part is taken away, or made about a quarter of what it is. One line per setting and question that
has an answer; what the file holds already is not computed again. Then a table: labels that are
right, answers called sound, how many of these are falsely confident, and how many answers keep
something else, or are sound where they were not, than with the recipe as it is.
"""

import argparse
import json
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path
from statistics import fmean

import torch

from pubc.experiments.trust.judging import judge
from pubc.experiments.trust.suite import questions
from pubc.pu.recipes import get_recipe, with_settings

AS_IT_IS = "as it is"
TOLD = ("accuracy", "sound", "falsely_confident", "status", "kept", "seconds")
CHANGES = {
    AS_IT_IS: None,
    "residual.steps_per_trajectory": 48,
    "residual.updates": 63,
    "residual.average_rounds": 1,
    "residual.trim": 0.0,
    "residual.side_ratio": 1_000_000,
    "cut.keep_seeds": 0.0,
    "cut.advantage": 0.0,
    "loop.tolerance": 0.0,
    "loop.max_rounds": 1,
    "opinion.looks": 1,
    "opinion.trajectories": 60,
    "opinion.rows": 5000,
    "opinion.updates": 125,
    "opinion.features": 32,
    "opinion.rounds": 2,
}
"""Setting to its other value."""


def ask(place):
    """The answer to one question with one setting changed."""
    setting, family, name = place
    torch.set_num_threads(1)
    recipe, value = get_recipe("auto"), CHANGES[setting]
    if setting != AS_IT_IS:
        recipe = with_settings(recipe, {setting: value})
    asked = questions(quick=True, data={}, only=f"{family}, {name}")
    found = judge(next(asked).make(), recipe=recipe, device="cpu")
    told = {word: found[word] for word in TOLD}
    return {"setting": setting, "value": value, "family": family, "name": name, **told}


def table(lines):
    """What the records say, setting by setting."""
    by = {}
    for line in lines:
        by.setdefault(line["setting"], {})[line["family"], line["name"]] = line
    usual = by[AS_IT_IS]
    yield "| setting | is | was made | labels right | sound | falsely confident | other answers |"
    yield "|---|---|---|---|---|---|---|"
    for setting, answers in by.items():
        right = 100 * fmean(one["accuracy"] for one in answers.values())
        sound, fooled = (
            sum(one[word] for one in answers.values()) for word in ("sound", "falsely_confident")
        )
        other = sum(
            any(one[word] != usual[place][word] for word in ("accuracy", "kept", "sound"))
            for place, one in answers.items()
        )
        values = (
            "|  | " if setting == AS_IT_IS else f"| {setting_now(setting)} | {CHANGES[setting]}"
        )
        counts = f"{sound} | {fooled} | {other} of {len(answers)}"
        yield f"| {setting} {values} | {right:.1f} % | {counts} |"


def setting_now(path):
    found = get_recipe("auto")
    for name in path.split("."):
        found = getattr(found, name)
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--processes", type=int, default=2)
    parser.add_argument("--questions", type=int, help="only so many, the first of the suite")
    chosen = parser.parse_args()
    lines = []
    if chosen.out.exists():
        lines = [json.loads(line) for line in chosen.out.read_text().splitlines()]
    known = {(line["setting"], line["family"], line["name"]) for line in lines}
    specs = [spec for spec in questions(quick=True, data={}) if spec.make().answerable]
    specs = specs[: chosen.questions]
    wanted = [(setting, spec.family, spec.name) for spec in specs for setting in CHANGES]
    todo = [place for place in wanted if place not in known]
    with ProcessPoolExecutor(chosen.processes) as pool, chosen.out.open("a") as file:
        for line in pool.map(ask, todo):
            lines.append(line)
            print(json.dumps(line), file=file, flush=True)
    print("\n".join(table(lines)))


if __name__ == "__main__":
    main()
