"""`--random-seeds`: several in one word, and no more than somebody can mean."""

import pytest

from pubc.cli.policies.seeds_flag import parse_seeds
from pubc.errors import UsageError


@pytest.mark.parametrize(
    ("text", "found"), [("0-3", [0, 1, 2, 3]), ("0,3, 7", [0, 3, 7]), ("0-4095", [*range(4096)])]
)
def test_seeds_are_numbers_and_ranges(text, found):
    assert parse_seeds(text) == found


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("0-4096", "At most 4,096 random seeds"),
        ("0-300000000", "Got 300,000,001"),
        ("9,0-4095", "Got 4,097"),
        ("0-" + "1" * 5000, "at most 100 digits"),
        ("1" * 5000, "at most 100 digits"),
        ("1,1", "each once"),
        ("x", "given as 0-9"),
    ],
)
def test_what_nobody_means_is_refused(text, told):
    with pytest.raises(UsageError, match=told):
        parse_seeds(text)
