"""Figures of a table in words: with their spread, and as a share of a reference column."""

from pubc.report.tables.table_of_means import sheet
from tests.report.tables.build import head, record


def made(*records, **extra):
    columns = ["segments", "everything", "clean"]
    return sheet(
        head(rows=["Ant"], columns=columns, unit="return", extra=extra), list(records), "x"
    )


def words(table) -> dict[str, str]:
    (row,) = table.rows
    return {column: place.words("return") for column, place in row.places.items()}


def earned(column: str, mean: float, seed: int = 0):
    return record("Ant", column, {"mean": mean, "std": 5.0}, seed, measure="return")


def test_what_a_policy_earned_is_shown_as_a_share_of_the_reference():
    table = made(earned("segments", 960.0), earned("clean", 1000.0), reference="clean")
    assert words(table) == {"segments": "960, 96 %", "everything": "\N{EN DASH}", "clean": "1,000"}


def test_shares_are_those_of_the_means_over_random_seeds():
    table = made(
        *(earned("segments", value, seed) for seed, value in enumerate((800.0, 1000.0))),
        *(earned("clean", value, seed) for seed, value in enumerate((900.0, 1100.0))),
        reference="clean",
    )
    assert words(table)["segments"] == "900 ± 141, 90 %"


def test_without_a_reference_or_its_figure_there_is_no_share():
    assert words(made(earned("segments", 960.0), earned("clean", 1000.0)))["segments"] == "960"
    assert words(made(earned("segments", 960.0), reference="clean"))["segments"] == "960"
