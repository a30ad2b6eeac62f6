"""Numbers in ids: as long as they are numbers, and names beyond that."""

import pytest

from pubc.errors import UsageError
from pubc.trajectory.numbered_ids import DIGITS, numbered, range_ends

LONG = "1" * 5000


@pytest.mark.parametrize(
    ("name", "found"),
    [
        ("demo_12", ("demo_", 12)), ("007", ("", 7)), ("a1b2", ("a1b", 2)), ("a\n3", ("a\n", 3)),
        ("demo", None), ("", None), (LONG, None), (f"demo_{LONG}", None),
        (f"{LONG}_5", (f"{LONG}_", 5)),
        ("1" * DIGITS, ("", int("1" * DIGITS))), ("1" * (DIGITS + 1), None),
    ],
)  # fmt: skip
def test_an_id_ends_in_a_number_or_is_a_name(name, found):
    assert numbered(name) == found


@pytest.mark.parametrize("word", [f"0-{LONG}", f"{LONG}-{LONG}", f"demo_1-demo_{LONG}"])
def test_a_range_of_endless_numbers_is_refused_in_few_words(word):
    with pytest.raises(UsageError, match=r"at most 100 digits\. Got 5,000\.$"):
        range_ends(word)


@pytest.mark.parametrize("word", ["demo", "3", "a-b", "demo_1-other_2"])
def test_other_words_are_no_range(word):
    assert range_ends(word) is None
