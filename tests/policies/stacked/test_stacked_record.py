"""The speeds of stacks that the page on policies tells are those that were measured."""

import json
from pathlib import Path

import pytest

DOCS = Path(__file__).parents[3] / "docs"
# Asked of stacks of 24 and of 96, in updates of one training alone.
ASKED = {"iql": (15, 28), "crr": (10, 20), "td3bc": (10, 20), "dwbc": (10, 20)}


@pytest.fixture(scope="module")
def rates():
    """The last rate of each learner, alone and in stacks."""
    found = {}
    for line in (DOCS / "dev" / "stacked.jsonl").read_text().splitlines():
        record = json.loads(line)
        found.setdefault(record["learner"], {})[record["members"]] = record["rate"]
    return found


def test_the_table_has_what_was_measured(rates):
    page = (DOCS / "policies.md").read_text().partition("| learner | alone | 24 | 96 |")[2]
    for learner, by in rates.items():
        alone, few, many = by[None], by[24], by[96]
        numbers = [f"{alone:,.0f}", f"{few:,.0f}", f"{many:,.0f}"]
        words = " | ".join([*numbers, f"{few / alone:.1f}", f"{many / alone:.1f}"])
        (line,) = [line for line in page.splitlines() if line.startswith(f"| `{learner}`")]
        assert line.endswith(f" | {words} |")


@pytest.mark.parametrize("learner", ASKED)
def test_a_stack_is_as_many_times_as_fast_as_was_asked(rates, learner):
    by = rates[learner]
    few, many = ASKED[learner]
    assert by[24] >= few * by[None]
    assert by[96] >= many * by[None]
