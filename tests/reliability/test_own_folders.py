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


SHARES = {"drawn run": 100, "run": 80, "policy": 200, "zoo": 220, "labels": 220, "records": 180}
"""Of a thousand; runs take longest."""


def test_the_shares_are_a_thousand():
    assert sum(SHARES.values()) == 1000
    assert set(SHARES) == set(KINDS)


@pytest.mark.parametrize("name", KINDS)
def test_a_thousand_edits_in_all_end_in_words(name, tmp_path):
    check(run_edits(name, tmp_path, SHARES[name], seed=1), name, SHARES[name])


@pytest.mark.slow
@pytest.mark.timeout(3600)
@pytest.mark.parametrize("name", KINDS)
def test_ten_thousand_edits_in_all_end_in_words(name, tmp_path):
    count = 10 * SHARES[name]
    check(run_edits(name, tmp_path, count, seed=2), name, count)
