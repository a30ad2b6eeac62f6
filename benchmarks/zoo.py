"""Measure every zoo policy, write the returns into the cards and the table into docs/zoo.md.

    python benchmarks/zoo.py                    100 trajectories each, about 15 core minutes
    python benchmarks/zoo.py --measured FILE    what `pubc zoo --measure 100 --json` printed

The same random seed gives the same returns, so anyone can check a row with its command.
"""

import argparse
import functools
import json
from pathlib import Path

from pubc import zoo
from pubc.acting.evaluate import Outcome, evaluate, returns_in_short
from pubc.storage import atomic_file, write_json

ROOT = Path(__file__).parent.parent
PAGE = ROOT / "docs" / "zoo.md"
BEGIN, END = "<!-- table: python benchmarks/zoo.py -->\n", "<!-- end of table -->\n"
PAPER = {
    "ant/expert": 3034, "ant/other_expert": 2910, "ant/weak": 920,
    "humanoid/expert": 5725, "humanoid/other_expert": 5330, "humanoid/weak": 1576,
}  # fmt: skip
"""Mean returns in Table 4 of the paper, of its own policies in the v3 environments."""


def measure(trajectories: int) -> dict[str, dict[str, float]]:
    found = {}
    for name in zoo.names():
        make, environment = functools.partial(zoo.load, name), zoo.card(name)["environment"]
        played = evaluate(make, environment, episodes=trajectories, processes=2, source=name)
        found[name] = returns_in_short(Outcome.of(list(played)))
        print(name, found[name], flush=True)
    return found


def update_card(name: str, facts: dict[str, float]) -> None:
    command = f"pubc zoo {name} --measure {facts['trajectories']} --random-seed 0"
    card = {**zoo.card(name), "returns": {**facts, "command": command}}
    write_json(zoo.path_of(name).with_suffix(".json"), card, overwrite=True)


def table() -> str:
    rows = [
        "| policy | role | environment | algorithm | training steps | return | smallest to largest "
        "return | mean length | paper |",
        "|---|---|---|---|---|---|---|---|---|",
    ]
    for name in zoo.names():
        card = zoo.card(name)
        facts = card["returns"]
        steps = f"{card['training_steps']:,}" if card["training_steps"] else "checkpoint"
        rows.append(
            f"| {name} | {card['role']} | {card['environment_id']} | {card['algorithm'].upper()} "
            f"| {steps} | {facts['mean']:.0f} ± {facts['std']:.0f} "
            f"| {facts['min']:.0f} to {facts['max']:.0f} | {facts['mean_length']:.0f} "
            f"| {PAPER.get(name, '')} |"
        )
    return "\n".join(rows) + "\n"


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--trajectories", type=int, default=100)
    parser.add_argument("--measured", type=Path)
    arguments = parser.parse_args()
    if arguments.measured:
        policies = json.loads(arguments.measured.read_text())["policies"]
        found = {policy["name"]: policy["measured"] for policy in policies}
    else:
        found = measure(arguments.trajectories)
    for name, facts in found.items():
        update_card(name, facts)
    text = PAGE.read_text()
    head, rest = text.split(BEGIN)
    with atomic_file(PAGE, overwrite=True) as temporary:
        temporary.write_text(head + BEGIN + table() + END + rest.split(END)[1])


if __name__ == "__main__":
    main()
