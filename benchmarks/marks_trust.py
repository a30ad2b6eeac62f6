"""How often do marks confirm a run that is wrong? Piles of `pubc reproduce trust`, reviewed.

    python benchmarks/marks_trust.py --out marks-trust.jsonl --data ../shared/datasets

A scripted reviewer answers from the truth what the page would propose: eight of groups, then four
at a time with a run after each, up to 20. Rounds are left out: what marks teach and what they say
does not depend on them (`pubc.pu.second_opinion.marks_as_test`), and a pile takes seconds instead
of minutes. One line per pile; a pile that the file holds already is not asked again. Piles of one
policy have nothing to mark bad, and are left out.
"""

import argparse
import json
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import torch

from pubc.experiments.trust.suite import questions
from pubc.pu.second_opinion.looks.pile_views import OpinionSettings, open_views
from pubc.pu.second_opinion.looks.rows import look
from pubc.pu.second_opinion.marks_as_test import marks_say
from pubc.pu.second_opinion.splits.pile_split import split_pile
from pubc.review.features import describe
from pubc.review.proposals import COUNT, Evidence, propose
from pubc.runs.soundness import DIVIDED
from pubc.streams import Key

SETTINGS = OpinionSettings()
KEY = Key(0).at("second opinion")
CLICKS, EVERY, FEWEST_GOOD, SMALLEST, LARGEST = 20, 4, 2, 24, 500


def review(question) -> list[dict]:
    """The runs of one review: what marks say after each, and how right it is."""
    mixed, truth = question.mixed, question.truth
    steps = int(np.clip(SETTINGS.rows // len(mixed), 40, 240))
    rows = look(mixed, steps, torch.device("cpu"))
    views = open_views(rows, SETTINGS, KEY, lambda work, items: [work(item) for item in items])
    features, marked, foretold, said, found = describe(mixed), [], [], None, []
    while len(marked) < CLICKS:
        good = np.array([at for at in marked if truth[at]], dtype=np.int64)
        bad = np.array([at for at in marked if not truth[at]], dtype=np.int64)
        batch = min(COUNT if said is None else EVERY, CLICKS - len(marked))
        asked = [proposal.at for proposal in propose(features, good, bad, said)[:batch]]
        if not asked:
            break
        if said is not None:
            sure = [at for at in asked if not said.unsure[at]]
            foretold += [bool(said.keep[at] == truth[at]) for at in sure]
        marked += asked
        if sum(truth[marked]) < FEWEST_GOOD:
            continue
        opinion, said = judge(views, truth, marked)
        bad_marks = int((~truth[marked]).sum())
        decided = ~said.unsure
        found.append(
            {
                "clicks": len(marked),
                "good": opinion.seeds,
                "marks_say": marks_say(opinion, foretold, bad_marks),
                "accuracy": round(float((said.keep == truth).mean()), 4),
                "decided": round(float((said.keep == truth)[decided].mean()), 4),
                "divided": round(opinion.divided, 4),
                "repeated": round(opinion.repeated, 4),
                "foretold": [int(right) for right in foretold],
            }
        )
    return found


def judge(views, truth, marked):
    """What evidence says after these marks, as `pubc.pu.second_opinion.opinion` sums it up."""
    seeds = torch.tensor(sorted(at for at in marked if truth[at]))
    bad = torch.zeros(len(truth), dtype=torch.bool)
    bad[[at for at in marked if not truth[at]]] = True
    split = split_pile(views, seeds, bad, SETTINGS.rounds, KEY)
    belief, share = split.belief.numpy(), split.votes.float().mean(0).numpy()
    halves = [half.float().mean(0) > 0.5 for half in split.votes.chunk(2)]
    opinion = SimpleNamespace(
        taught=split.taught,
        seeds=len(seeds),
        divided=float(np.minimum(belief, 1 - belief).mean()),
        repeated=float((halves[0] == halves[1]).float().mean()),
    )
    unsure = np.minimum(share, 1 - share) >= DIVIDED
    kept = (belief > 0.5) & ~unsure
    return opinion, Evidence(belief.astype(np.float64), kept, unsure, 0.5, sound=False)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--data", type=Path, help="folder with the files of the suite")
    parser.add_argument("--draw", type=int, default=2, help="which draw of each pile")
    parser.add_argument("--only", default="", help="only families or names that contain this")
    parser.add_argument("--skip", default="", help="none that contain this")
    asked = parser.parse_args()
    torch.set_num_threads(1)
    files = {}
    if asked.data:
        files = {
            "manipulation": asked.data / "manipulation",
            "human-operators": asked.data / "human-operators.npz",
            "trifinger-push": asked.data / "trifinger-push-mixed.npz",
        }
    known = set()
    if asked.out.exists():
        lines = map(json.loads, asked.out.read_text().splitlines())
        known = {(line["family"], line["name"]) for line in lines}
    for spec in in_turn(questions(quick=False, data=files, draws=asked.draw, only=asked.only)):
        if not spec.name.endswith(f"draw {asked.draw}") or (spec.family, spec.name) in known:
            continue
        question = spec.make()
        fits = SMALLEST <= len(question.mixed) <= LARGEST and not question.truth.all()
        if not fits or (asked.skip and asked.skip in f"{spec.family}, {spec.name}"):
            continue
        place = {"family": spec.family, "name": spec.name, "answerable": question.answerable}
        line = json.dumps({**place, "runs": review(question)})
        with asked.out.open("a", encoding="utf-8") as file:
            file.write(line + "\n")
        print(line, flush=True)


def in_turn(specs):
    """One of each family after another, so that a part of the suite is a part of every family."""
    families = {}
    for spec in specs:
        families.setdefault(spec.family, []).append(spec)
    while families:
        for name in list(families):
            yield families[name].pop(0)
            if not families[name]:
                del families[name]


if __name__ == "__main__":
    main()
