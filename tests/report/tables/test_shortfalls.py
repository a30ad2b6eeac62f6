"""What falls short or differs is found by rule, and explained by hand."""

import pytest

from pubc.errors import DataError
from pubc.report.tables import read_table
from pubc.report.tables.shortfalls import shortfalls
from pubc.report.tables.table_of_means import sheet
from tests.report.tables.build import accuracy_records, failed, head, record, write


def found(records, **changes):
    return [(s.row, s.column, s.kind) for s in shortfalls(sheet(head(**changes), records, "x"))]


def test_ours_below_the_paper_is_told_and_ours_above_is_not():
    assert found([record("Ant E+E", "auto", 0.98, paper=0.99)]) == [("Ant E+E", "auto", "short")]
    assert found([record("Ant E+E", "auto", 1.0, paper=0.99)]) == []


def test_a_baseline_that_differs_from_the_paper_is_told_either_way():
    for figure in (0.98, 1.0):
        told = found([record("Ant E+E", "upu", figure, paper=0.99)])
        assert told == [("Ant E+E", "upu", "differs")]


def test_the_spread_and_the_printed_digits_are_allowed_for():
    spread = [record("Ant E+E", "auto", v, s, paper=0.99) for s, v in enumerate((0.97, 1.0, 0.99))]
    assert found(spread) == []
    # 98.96 is printed as 99.0, so nobody can tell it from the paper's 99.0.
    assert found([record("Ant E+E", "auto", 0.9896, paper=0.99)]) == []
    assert found([record("Ant E+E", "auto", 0.9894, paper=0.99)]) != []


def test_ours_below_another_column_is_told_with_its_name():
    records = [record("Ant E+E", "auto", 0.8), record("Ant E+E", "upu", 0.9)]
    [told] = shortfalls(sheet(head(), records, "x"))
    assert told.words == "80.0 is below `upu` (90.0)"
    records = [record("Ant E+E", "auto", 0.8, paper=0.85), record("Ant E+E", "upu", 0.9)]
    [told] = shortfalls(sheet(head(), records, "x"))
    assert told.words == "80.0 is below the paper's 85.0, `upu` (90.0)"
    noisy = [record("Ant E+E", "upu", v, s) for s, v in enumerate((0.7, 0.9, 0.95))]
    assert found([record("Ant E+E", "auto", 0.8), *noisy]) == []


def test_where_lower_is_better_more_is_short():
    told = found([record("Ant E+E", "auto", 0.3, paper=0.2)], direction="lower")
    assert told == [("Ant E+E", "auto", "short")]
    assert found([record("Ant E+E", "auto", 0.1, paper=0.2)], direction="lower") == []


def test_the_first_row_of_a_pair_must_not_fall_below_the_second():
    extra = {"pairs": [["Ant E+E", "Ant E+W"]]}
    records = [record("Ant E+E", "upu", 0.5), record("Ant E+W", "upu", 0.6)]
    assert found(records, extra=extra) == [("Ant E+E", "upu", "short")]
    assert found(records[::-1], extra={"pairs": [["Ant E+W", "Ant E+E"]]}) == []


def test_a_failed_cell_wants_an_explanation_even_where_nothing_is_compared():
    told = found([failed("Ant E+E", "auto")], direction="neither")
    assert told == [("Ant E+E", "auto", "failed")]


def test_a_cell_without_data_has_its_footnote_and_needs_no_more():
    assert found([failed("Ant E+E", "auto", kind="data_not_given", message="Give it.")]) == []


def test_what_the_paper_has_no_number_for_is_not_compared():
    assert found([record("Ant E+E", "auto", 0.1, paper="✗")]) == []
    assert found([record("Ant E+E", "auto", 0.1, paper=0.9)], direction="neither") == []


def explained(tmp_path, notes):
    write(tmp_path, head(), accuracy_records())
    (tmp_path / "pu-accuracy.notes.md").write_text(notes)
    return [
        (None if group.note is None else group.note.text, {(p.row, p.column) for p in group.places})
        for group in read_table(tmp_path, "pu-accuracy").explained()
    ]


def test_a_note_explains_the_rows_and_columns_it_names(tmp_path):
    by_row = explained(tmp_path, "## Ant E+E\n\nAlike.\n")
    assert by_row[0] == ("Alike.", {("Ant E+E", "upu"), ("Ant E+E", "auto")})
    assert by_row[1] == (None, {("Ant E+W", "upu"), ("Ant E+W", "auto")})
    by_column = explained(tmp_path, "## upu; Ant E+E\n\nBoth\n\nof them.\n")
    assert by_column[0][0] == "Both\n\nof them."
    assert by_column[1] == (None, {("Ant E+W", "auto")})


def test_without_notes_everything_is_unexplained(tmp_path):
    write(tmp_path, head(), accuracy_records())
    [group] = read_table(tmp_path, "pu-accuracy").explained()
    assert group.note is None
    assert len(group.places) == 4


@pytest.mark.parametrize("notes", ["## Ant E+X\n\nGone.\n", "## Ant E+E\n\n## Ant E+W\n\nText.\n"])
def test_a_note_about_nothing_is_refused(tmp_path, notes):
    with pytest.raises(DataError, match=r"notes\.md") as caught:
        explained(tmp_path, notes)
    assert caught.value.code == "bad_notes"
