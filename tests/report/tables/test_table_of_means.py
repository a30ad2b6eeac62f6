"""Records become means and spreads, averages and totals, with the paper's figures beside them."""

import random

import pytest

from pubc.errors import DataError
from pubc.report.tables import lines, read_table
from pubc.report.tables.table_of_means import sheet
from tests.report.tables.build import (
    accuracy_records,
    all_tables,
    failed,
    head,
    record,
    trace,
    write,
)


def words(made, row, column):
    place = next(r for r in made.rows if r.name == row).places[column]
    return place.words(made.head.unit), place.paper_words(made.head.unit)


def place_of(made, row, column):
    return next(r for r in made.rows if r.name == row).places[column]


def test_a_place_is_mean_and_sample_deviation_over_random_seeds():
    records = [record("Ant E+E", "auto", v, s, paper=0.99) for s, v in enumerate((0.9, 0.92, 0.97))]
    assert words(sheet(head(), records, "x"), "Ant E+E", "auto") == ("93.0 ± 3.6", "99.0")


def test_one_random_seed_has_no_spread_and_units_have_their_digits():
    for unit, figure, told in (
        ("percent", 0.9996, "100.0"),
        ("score", 0.875, "0.88"),
        ("count", 1234.0, "1,234"),
        ("return", -0.2, "0"),
    ):
        made = sheet(head(unit=unit), [record("Ant E+E", "auto", figure)], "x")
        assert words(made, "Ant E+E", "auto") == (told, "")


def test_the_order_of_the_file_changes_nothing():
    records = accuracy_records()
    first = sheet(head(), records, "x")
    random.Random(3).shuffle(records)
    assert sheet(head(), records, "x") == first


def test_names_of_endless_digits_have_a_place_in_the_order():
    names = ["Ant 2", "Ant 10", "Ant " + "1" * 5000]
    made = sheet(head(), [record(name, "auto", 0.5) for name in reversed(names)], "x")
    assert [row.name for row in made.rows if row.name in names] == names


def test_the_last_line_of_a_key_counts():
    records = [failed("Ant E+E", "auto"), record("Ant E+E", "auto", 0.5)]
    assert words(sheet(head(), records, "x"), "Ant E+E", "auto") == ("50.0", "")


def test_one_cell_may_stand_at_two_places():
    # The same computation answers for two columns; its key is the same.
    first = record("Ant E+E", "auto", 0.5)
    second = type(first)(first.cell, {**first.values, "column": "1 %"})
    made = sheet(head(columns=["auto", "1 %"]), [first, second], "x")
    assert words(made, "Ant E+E", "auto") == words(made, "Ant E+E", "1 %") == ("50.0", "")


def test_a_failed_cell_is_told_and_so_is_one_of_several_seeds():
    records = [
        failed("Ant E+E", "upu", 0),
        record("Ant E+E", "auto", 0.9, 0),
        failed("Ant E+E", "auto", 1),
        failed("Ant E+W", "auto", 0, kind="data_not_given", message="Give --data."),
    ]
    made = sheet(head(), records, "x")
    assert words(made, "Ant E+E", "upu")[0] == "failed"
    assert words(made, "Ant E+E", "auto")[0] == "90.0"
    assert words(made, "Ant E+W", "auto")[0] == "no data"
    text = "\n".join(lines(made))
    assert "worker_died: It died." in text
    assert "1 of 2 failed: worker_died: It died." in text
    assert "In detail" not in text
    assert "Give --data." in text
    assert (made.failed, made.not_given) == (2, 1)


def test_a_row_without_any_record_says_so():
    made = sheet(head(), [record("Ant E+E", "auto", 0.9)], "x")
    assert made.rows[1].remark == "not computed"
    assert "not computed" in "\n".join(lines(made))


def test_a_filter_that_did_not_converge_gets_a_footnote():
    records = [
        record("Ant E+E", "auto", 0.9, s, status=w)
        for s, w in enumerate(("converged", "max_rounds"))
    ]
    assert place_of(sheet(head(), records, "x"), "Ant E+E", "auto").remarks == (
        "1 of 2 ended max_rounds",
    )


def grouped(how="mean", paper=None, rows=("Ant E+E", "Ant E+W")):
    group = {"name": "All", "of": list(rows), "how": how, "paper": paper or {}}
    return head(extra={"ours": ["auto"], "summaries": [group]})


def test_an_average_is_taken_for_each_random_seed_first():
    records = [
        record(row, "auto", figure, seed, paper=0.5)
        for row, figures in (("Ant E+E", (0.1, 0.3)), ("Ant E+W", (0.5, 0.3)))
        for seed, figure in enumerate(figures)
    ]
    # Both seeds average to 0.3: the average has no spread though its rows have.
    made = sheet(grouped(), records, "x")
    assert [row.name for row in made.rows] == ["Ant E+E", "Ant E+W", "All"]
    assert words(made, "All", "auto") == ("30.0 ± 0.0", "50.0")


def test_a_sum_has_the_papers_own_figure_where_it_is_complete():
    records = [record(row, "auto", 0.25, paper=0.5) for row in ("Ant E+E", "Ant E+W")]
    made = sheet(grouped("sum", {"auto": 0.9}), records, "x")
    assert words(made, "All", "auto") == ("50.0", "90.0")


def test_an_average_over_fewer_rows_is_held_against_the_same_rows_of_the_paper():
    records = [record("Ant E+E", "auto", 0.4, paper=0.5), failed("Ant E+W", "auto", paper=0.9)]
    made = sheet(grouped(paper={"auto": 0.7}), records, "x")
    assert words(made, "All", "auto") == ("40.0", "50.0")
    assert "what there is, Ant E+E" in made.rows[-1].remark


def test_a_column_that_lacks_a_row_has_no_average():
    records = [record(row, "upu", 0.4) for row in ("Ant E+E", "Ant E+W")]
    records += [record("Ant E+E", "auto", 0.9), failed("Ant E+W", "auto")]
    made = sheet(grouped(), records, "x")
    assert words(made, "All", "upu")[0] == "40.0"
    assert words(made, "All", "auto")[0] == "\N{EN DASH}"
    assert "Ant E+W missing" in place_of(made, "All", "auto").remarks[0]


def test_averages_of_averages_stand_last():
    groups = [
        {"name": "first", "of": ["Ant E+E"], "how": "mean"},
        {"name": "second", "of": ["Ant E+W"], "how": "mean"},
        {"name": "overall", "of": ["first", "second"], "how": "mean"},
    ]
    records = [record(row, "auto", 0.4, paper=0.5) for row in ("Ant E+E", "Ant E+W")]
    made = sheet(head(extra={"summaries": groups}), records, "x")
    names = [row.name for row in made.rows]
    assert names == ["Ant E+E", "first", "Ant E+W", "second", "overall"]
    assert words(made, "overall", "auto") == ("40.0", "50.0")


def test_an_overall_average_stands_below_rows_that_have_no_figures():
    groups = [
        {"name": "first", "of": ["Ant E+E"], "how": "mean"},
        {"name": "second", "of": ["Ant E+W"], "how": "mean"},
        {"name": "overall", "of": ["first", "second"], "how": "mean"},
        {"name": "again", "of": ["Ant E+E"], "how": "sum"},
    ]
    records = [record("Ant E+E", "auto", 0.4), failed("Ant E+W", "auto")]
    made = sheet(head(extra={"summaries": groups}), records, "x")
    names = [row.name for row in made.rows]
    assert names == ["Ant E+E", "first", "again", "Ant E+W", "overall"]


def test_summaries_of_pairs_stand_below_all_pairs():
    groups = [{"name": "with", "of": ["Ant E+E"], "how": "sum"}]
    extra = {"summaries": groups, "pairs": [["Ant E+E", "Ant E+W"]]}
    records = [record(row, "auto", 0.4) for row in ("Ant E+E", "Ant E+W")]
    made = sheet(head(extra=extra), records, "x")
    assert [row.name for row in made.rows] == ["Ant E+E", "Ant E+W", "with"]


def test_totals_are_columns():
    total = {"name": "Total", "of": ["upu", "auto"], "how": "sum", "paper": {"Ant E+E": 0.9}}
    records = [record("Ant E+E", column, 0.25, paper=0.3) for column in ("upu", "auto")]
    records += [record("Ant E+W", "upu", 0.25)]
    made = sheet(head(extra={"totals": [total]}), records, "x")
    assert made.columns == ("upu", "auto", "Total")
    assert words(made, "Ant E+E", "Total") == ("50.0", "90.0")
    assert words(made, "Ant E+W", "Total")[0] == "\N{EN DASH}"


@pytest.mark.parametrize(("direction", "best"), [("higher", "auto"), ("lower", "upu")])
def test_the_best_of_a_row_is_marked(direction, best):
    made = sheet(head(direction=direction), accuracy_records(), "x")
    marked = {c for c in made.columns if place_of(made, "Ant E+E", c).best}
    assert marked == {best}


def test_what_does_not_compete_is_not_marked_and_equal_figures_are_not():
    extra = {"ours": ["auto"], "not_ranked": ["upu"]}
    records = [record("Ant E+E", "upu", 0.9), record("Ant E+E", "auto", 0.8)]
    made = sheet(head(extra=extra), records, "x")
    assert not any(p.best for row in made.rows for p in row.places.values())
    records = [record("Ant E+E", "upu", 0.90004), record("Ant E+E", "auto", 0.9)]
    assert not place_of(sheet(head(), records, "x"), "Ant E+E", "upu").best


def test_in_pairs_the_better_row_is_marked_column_by_column():
    extra = {"pairs": [["Ant E+E", "Ant E+W"]]}
    records = [record("Ant E+E", "upu", 0.9), record("Ant E+W", "upu", 0.8)]
    records += [record("Ant E+E", "auto", 0.7), record("Ant E+W", "auto", 0.8)]
    made = sheet(head(extra=extra), records, "x")
    marked = [(r.name, c) for r in made.rows for c, p in r.places.items() if p.best]
    assert marked == [("Ant E+E", "upu"), ("Ant E+W", "auto")]


def test_rows_that_the_head_does_not_list_come_last_with_numbers_in_order():
    records = [record(f"run {n}", "auto", 0.5) for n in (10, 9, 1)]
    made = sheet(head(), records, "x")
    assert [row.name for row in made.rows][2:] == ["run 1", "run 9", "run 10"]


def test_the_rounds_of_every_seed_are_told_and_the_papers_last(tmp_path):
    all_tables(tmp_path)
    rounds = read_table(tmp_path, "convergence").rounds
    assert rounds.columns == ("TP", "FP", "FN", "TN", "cut at", "random seeds")
    assert rounds.first == (
        ("push, paper, round 1", "81", "9", "19", "91", "0.50", "2 of 2"),
        ("push, paper, round 2", "82", "8", "18", "92", "0.50", "2 of 2"),
        ("push, paper, round 3", "83", "7", "17", "93", "0.50", "1 of 2"),
        ("push in the paper, round 1", "7", "6", "5", "4", "", ""),
    )
    assert rounds.more == (("ant, paper, round 1", "81", "9", "19", "91", "0.50", "1 of 1"),)


def test_rounds_that_differ_between_seeds_have_a_spread(tmp_path):
    other = trace(1)
    other[0]["confusion"]["true_positives"] += 4
    other[0]["threshold"] = None
    records = [record("push", "auto", 0.9, s, trace=t) for s, t in enumerate((trace(1), other))]
    write(tmp_path, head(extra={}), records)
    [row] = read_table(tmp_path, "pu-accuracy").rounds.first
    assert row == ("push, auto, round 1", "83 ± 3", "9", "19", "91", "0.50", "2 of 2")


def test_the_terminal_gets_two_lines_a_row_where_it_is_narrow():
    made = sheet(head(), accuracy_records(), "x")
    wide, narrow = lines(made, 200), lines(made, 40)
    assert "(published 98.1)" in wide[1]
    assert "(published" not in narrow[1]
    assert narrow[2].split() == ["published", "98.1", "99.0"]
    assert max(map(len, narrow)) <= 40


@pytest.mark.parametrize(
    ("changes", "field"),
    [
        ({"unit": "furlongs"}, "unit"),
        ({"direction": "up"}, "direction"),
        ({"rows": ["a", "a"]}, "rows"),
        ({"title": 3}, "title"),
        ({"machines": {}}, "machines"),
        ({"wall_seconds": float("inf")}, "wall_seconds"),
        ({"table": "../../etc"}, "table"),
        ({"code": "abc"}, "code"),
        ({"extra": {"summaries": [{"name": "x"}]}}, "summaries"),
        ({"extra": {"summaries": [{"name": "x", "of": ["x"], "how": "sum"}]}}, "summaries"),
        ({"extra": {"figure": {"kind": "pie"}}}, "figure"),
        ({"extra": {"pairs": [["a"]]}}, "pairs"),
        ({"extra": {"paper_rounds": {"push": [{"TP": 1}]}}}, "paper_rounds"),
        ({"caption": None}, "caption"),
    ],
)
def test_a_strange_head_is_refused_by_the_name_of_its_entry(changes, field):
    with pytest.raises(DataError, match=f"`{field}`") as caught:
        sheet(head(**changes), [], "head.json")
    assert caught.value.field == field
    assert caught.value.code == "bad_head"


@pytest.mark.parametrize(
    "more",
    [
        {"accuracy": "high"},
        {"accuracy": float("nan")},
        {"accuracy": 93.0},
        {"accuracy": None},
        {"row": None},
        {"measure": "beauty"},
        {"paper": 99.0},
        {"failed": {"kind": "x"}},
    ],
)
def test_a_strange_record_is_refused_by_its_key(more):
    one = record("Ant E+E", "auto", 0.9)
    strange = type(one)(one.cell, {**one.values, **more})
    with pytest.raises(DataError, match=one.key):
        sheet(head(), [strange], "head.json")


def test_a_record_that_fills_a_row_shows_its_values_and_no_status():
    document = head(
        rows=["rare expert"],
        columns=["accuracy", "sound"],
        extra={"measures": {"accuracy": "accuracy", "sound": "sound"}},
    )
    records = [
        record("rare expert", f"draw {n}", 0.5 + n / 4, sound=bool(n), status="no_valley")
        for n in (0, 1)
    ]
    made = sheet(document, records, "x")
    row = made.rows[0]
    assert {name: place.mean for name, place in row.places.items()} == {
        "accuracy": 0.625, "sound": 0.5,
    }  # fmt: skip
    assert not any(place.remarks for place in row.places.values())
