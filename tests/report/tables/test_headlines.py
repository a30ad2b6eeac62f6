"""What the paper claims: verdicts by hand, figures from the records, on both pages."""

import pytest

from pubc.errors import DataError
from pubc.report.tables import read_tables
from pubc.report.tables.headlines import read_headlines
from pubc.report.tables.pages.write_tables import write_results
from tests.report.tables.build import head, record, write

CLAIM = """## refuted: The filter is always right.

It is right about {pu-accuracy/Ant E+E/auto} %
here.
"""


@pytest.fixture
def records(tmp_path):
    found = [record("Ant E+E", "auto", 0.9, seed, paper=0.99) for seed in range(2)]
    return write(tmp_path / "records", head(), found)


def test_figures_come_from_the_records(records):
    (records / "headlines.md").write_text(CLAIM)
    (one,) = read_headlines(records, read_tables(records))
    assert (one.verdict, one.claim) == ("refuted", "The filter is always right.")
    assert one.text == "It is right about 90.0 ± 0.0 % here."


def test_both_pages_begin_with_the_claims(records):
    (records / "headlines.md").write_text(CLAIM)
    for page in write_results(records).pages:
        text = page.read_text()
        assert "Refuted:" in text
        assert text.index("What the paper claims") < text.index("90.0 ± 0.0 % here.")
        assert text.index("90.0 ± 0.0 % here.") < text.index("Share of trajectories rightly kept")


def test_without_the_file_nothing_is_said_of_claims(records):
    assert read_headlines(records, read_tables(records)) == ()
    assert all("claims</h2>" not in page.read_text() for page in write_results(records).pages)


@pytest.mark.parametrize(
    ("written", "told"),
    [
        ("## perhaps: A claim.\n\nWords.\n", "confirmed, refuted, open"),
        (CLAIM.replace("auto", "upu"), "pu-accuracy/Ant E\\+E/upu"),
        (CLAIM.replace("Ant E+E", "Ant"), "TABLE/ROW/COLUMN"),
        (CLAIM.replace("pu-accuracy/", ""), "TABLE/ROW/COLUMN"),
    ],
)
def test_a_verdict_or_a_place_that_there_is_not_is_refused(records, written, told):
    (records / "headlines.md").write_text(written)
    with pytest.raises(DataError, match=told):
        read_headlines(records, read_tables(records))
