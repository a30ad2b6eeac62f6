"""Run, policy, zoo, labels and records folders of strangers never end in exit code 1 (L6)."""

import sys

import pytest

from tests.reliability.own_folders import KINDS, MEMORY, Tally, run_edits


def check(tally: Tally, name: str, count: int) -> None:
    sys.stdout.write(f"{name}: {tally}\n")  # `pytest -rP` shows it
    assert tally.wrong == []
    assert tally.grown <= MEMORY
    assert sum(tally.outcomes.values()) == count
    assert tally.outcomes["exit 3"] > count / 10, "the edits must hurt"


SHARES = {"drawn run": 800, "run": 200} | dict.fromkeys(
    ("policy", "zoo", "labels", "records"), 1000
)
"""A thousand of each kind; most runs are drawn for reports, as filtering takes longest."""


def test_every_kind_has_its_share():
    assert set(SHARES) == set(KINDS)
    assert sum(SHARES.values()) == 5000


@pytest.mark.parametrize("name", KINDS)
def test_a_thousand_edits_of_each_kind_end_in_words(name, tmp_path):
    check(run_edits(name, tmp_path, SHARES[name], seed=1), name, SHARES[name])


@pytest.mark.slow
@pytest.mark.timeout(3600)
@pytest.mark.parametrize("name", KINDS)
def test_ten_thousand_edits_of_each_kind_end_in_words(name, tmp_path):
    count = 10 * SHARES[name]
    check(run_edits(name, tmp_path, count, seed=2), name, count)
