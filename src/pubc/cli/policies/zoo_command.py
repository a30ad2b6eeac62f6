"""`pubc zoo`: the policies that ship with pubc, and what they score."""

from __future__ import annotations

import functools
from dataclasses import dataclass
from typing import Annotated, Any

import tyro

from pubc import zoo
from pubc.cli.console import progress, say

__all__ = ["COMMAND", "Zoo"]


@dataclass(frozen=True)
class Zoo:
    """List the trained policies that ship with pubc, or measure them again.

    Each has a card: environment and arguments, algorithm, training steps, and returns with
    the command that measured them. Recipes (`pubc collect`) name them as ENVIRONMENT/ROLE.
    """

    names: Annotated[tuple[str, ...], tyro.conf.Positional] = ()
    """Policies to show, or .safetensors files of your own; the whole zoo where omitted."""
    measure: int = 0
    """Play this many trajectories of each and print their returns beside the card's."""
    random_seed: int = 0
    """Same seed, same machine: same returns. The cards were measured with 0."""
    processes: int = 2
    """Processes that play. The result does not depend on it."""
    json: bool = False
    """Print one JSON document instead of text."""

    def run(self) -> dict[str, Any]:
        """Show the cards, measured anew where asked."""
        names = self.names or tuple(zoo.names())
        cards = {name: zoo.read_card(zoo.find(name)) for name in names}
        measured = self._measure(cards) if self.measure else {}
        if not self.json:
            _show(cards, measured)
        policies = [
            {**card, **({"measured": measured[name]} if name in measured else {})}
            for name, card in cards.items()
        ]
        return {"policies": policies}

    def _measure(self, cards: dict[str, dict[str, Any]]) -> dict[str, dict[str, float]]:
        from pubc.acting.evaluate import Outcome, evaluate, returns_in_short

        found: dict[str, dict[str, float]] = {}
        with progress("measuring", len(cards), quiet=self.json) as report:
            for name, card in cards.items():
                played = evaluate(
                    functools.partial(zoo.read, zoo.find(name)),
                    str(card["environment"]),
                    episodes=self.measure,
                    random_seed=self.random_seed,
                    processes=self.processes,
                    source=name,
                )
                found[name] = returns_in_short(Outcome.of(list(played)))
                report(len(found), name)
        return found


COMMAND = Zoo


def _show(cards: dict[str, dict[str, Any]], measured: dict[str, dict[str, float]]) -> None:
    head = ["policy", "role", "environment", "algorithm", "return", "trajectories"]
    rows = [head + (["measured now"] if measured else [])]
    for name, card in cards.items():
        returns = card.get("returns")
        row = [name, str(card.get("role", "")), str(card.get("environment_id", ""))]
        row += [str(card["algorithm"]), _spread(returns)]
        row += [str(returns["trajectories"]) if returns else ""]
        rows.append(row + ([_spread(measured.get(name))] if measured else []))
    widths = [max(len(row[column]) for row in rows) for column in range(len(rows[0]))]
    for row in rows:
        padded = (f"{word:<{width}}" for word, width in zip(row, widths, strict=True))
        say("  ".join(padded).rstrip())


def _spread(facts: dict[str, float] | None) -> str:
    return f"{facts['mean']:.0f} ± {facts['std']:.0f}" if facts else "not measured"
