"""A table is computed once, whoever computes it and however often they are killed."""

import json
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from pubc.engine import Failure
from pubc.engine.serial import Serial
from pubc.experiments.cell import DatasetSpec
from pubc.experiments.cell_values import failed
from pubc.experiments.record_files import RecordFiles
from pubc.experiments.run_table import Plan, reproduce
from pubc.report.tables import read_tables
from pubc.results import key_of, read
from tests.experiments.tiny import labelled, plan, records, run

ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return labelled(tmp_path_factory.mktemp("data") / "push.npz")


@pytest.fixture(scope="module")
def whole(data: Path) -> tuple[Plan, list[dict]]:
    """An uninterrupted serial run."""
    out = data.parent / "whole"
    chosen = plan(out, {"push": data})
    *_, last = run(chosen, "serial")
    assert (last.done, last.records, last.cells) == (last.total, 12, 12)
    return chosen, records(chosen, out)


def of(found: list[dict], row: str, column: str) -> list[dict]:
    return [one for one in found if (one["row"], one["column"]) == (row, column)]


def test_the_numbers_are_there(whole):
    # Networks this small leave a few of sixteen trajectories unsure.
    assert all(one["accuracy"] >= 0.6 for one in of(whole[1], "push", "auto"))
    assert all(0 <= one["accuracy"] <= 1 for one in of(whole[1], "push", "paper"))
    assert {one["cell"]["random_seed"] for one in of(whole[1], "push", "auto")} == {0, 1}


def test_a_cell_that_fails_is_a_record_with_its_reason_and_the_others_go_on(whole):
    failed = of(whole[1], "push", "greedy")
    assert [one["failed"]["kind"] for one in failed] == ["UsageError"] * 2
    assert "999 seed trajectories" in failed[0]["failed"]["message"]


def test_a_row_without_its_data_says_what_to_give(whole):
    (one, _) = of(whole[1], "lift", "auto")
    assert one["failed"] == {
        "kind": "data_not_given",
        "message": "Give --data lift=PATH: another pile.",
    }


def test_records_are_read_back_in_the_order_of_the_table(whole, tmp_path):
    chosen, found = whole
    book = RecordFiles(tmp_path, chosen, "the command")
    book.write(2.5)
    lines = [record.document() for record in read(tmp_path / "tiny.jsonl")]
    assert [one["key"] for one in lines] == [one["key"] for one in found]
    RecordFiles(tmp_path, chosen, "the command").write(1.0)
    head = json.loads((tmp_path / "tiny.json").read_text())
    assert head["wall_seconds"] == 3.5
    assert (head["command"], head["cells"], head["rows"]) == ("the command", 12, ["push", "lift"])
    assert str(Path.home()) not in json.dumps([head, lines])


def test_the_papers_size_has_files_of_its_own(whole, tmp_path):
    chosen, found = whole
    RecordFiles(tmp_path, chosen, "the command").write(1.0)
    large = replace(chosen, scale=replace(chosen.scale, name="paper"))
    RecordFiles(tmp_path, large, "the command").write(1.0)
    small, big = read_tables(tmp_path)
    assert (small.sheet.head.table, big.sheet.head.table) == ("tiny", "tiny-paper")
    assert big.sheet.head.title == "A table for tests, at the paper's size"
    assert len(big.sheet.records) == len(found)


class _Six(Serial):
    """Six workers on paper, and a note of how many each piece of work may use."""

    workers = 6

    def __init__(self) -> None:
        self.told: list[tuple[str, int]] = []

    def map(self, function, items):
        self.told.append((function.func.__name__, function.args[0].workers))
        return super().map(function, items)


@pytest.mark.parametrize(("files", "each"), [(["push"], 6), (["push", "lift"], 3)])
def test_workers_too_many_help_to_make_datasets(files, each, tmp_path):
    given = {name: labelled(tmp_path / f"{name}.npz", sources=name == "push") for name in files}
    engine = _Six()
    steps = reproduce(plan(tmp_path, given, 1), engine)
    next(steps)
    next(steps)
    assert engine.told == [("make_dataset", each)]


def test_a_second_run_computes_nothing(whole):
    assert [now.total for now in run(whole[0], "serial")] == [0, 0]


def test_processes_give_the_records_of_a_serial_run(data, whole, tmp_path):
    chosen = plan(tmp_path, {"push": data})
    list(run(chosen, "processes"))
    assert records(chosen, tmp_path) == whole[1]


def test_a_run_killed_twice_ends_in_the_same_table(data, whole, tmp_path):
    done = []
    for _ in range(2):
        process = subprocess.Popen(
            [sys.executable, "-m", "tests.experiments.tiny", tmp_path, "processes", data],
            stdout=subprocess.PIPE,
            text=True,
            cwd=ROOT,
        )
        assert process.stdout is not None
        begun = process.stdout.readline()
        process.stdout.readline()
        process.kill()
        process.communicate()
        done.append(int(begun.split()[1]))
    chosen = plan(tmp_path, {"push": data})
    left, *_ = [now.total for now in run(chosen, "serial")]
    assert 7 == done[0] > done[1] > left > 0
    assert records(chosen, tmp_path) == whole[1]


def test_failed_cells_are_tried_again_only_when_asked(data, tmp_path):
    chosen = plan(tmp_path, {"push": data}, random_seeds=1)
    place = dict(chosen.cache.given)
    (sha256,) = place
    chosen.cache.given[sha256] = str(tmp_path / "gone.npz")
    list(run(chosen, "serial"))
    assert all("failed" in one for one in records(chosen, tmp_path))
    chosen.cache.given[sha256] = place[sha256]
    assert [now.total for now in run(chosen, "serial")] == [0, 0]
    list(run(chosen, "serial", retry_failed=True))
    (one,) = of(records(chosen, tmp_path), "push", "auto")
    assert one["accuracy"] >= 0.6


def test_cells_that_wanted_an_extra_are_tried_again_unasked(data, tmp_path):
    chosen = plan(tmp_path, {"push": data}, random_seeds=1)
    cell = next(c for c in chosen.cells() if (c.row, c.column) == ("push", "auto"))
    wanted = Failure("MissingExtraError", "This learner needs the extra 'd3rlpy'.")
    chosen.cache.keep(key_of(chosen.identity(cell)), failed(wanted, None))
    list(run(chosen, "serial"))
    (one,) = of(records(chosen, tmp_path), "push", "auto")
    assert one["accuracy"] >= 0.6


def test_data_without_sources_has_no_accuracy_and_says_so(tmp_path):
    chosen = plan(tmp_path, {"push": labelled(tmp_path / "p.npz", sources=False)}, 1)
    list(run(chosen, "serial"))
    (one,) = of(records(chosen, tmp_path), "push", "auto")
    assert one["failed"]["kind"] == "no_sources"


def test_only_some_rows_or_columns(data, tmp_path):
    chosen = plan(tmp_path, {"push": data}, 1)
    some = Plan(chosen.table, chosen.scale, 1, chosen.cache, chosen.data, only="PAP")
    assert [(cell.row, cell.column) for cell in some.cells()] == [
        ("push", "paper"),
        ("lift", "paper"),
    ]


def test_the_place_in_a_table_is_no_part_of_the_key_and_the_random_seed_is(whole):
    chosen = whole[0]
    first, second = [c for c in chosen.cells() if (c.row, c.column) == ("push", "auto")]
    assert chosen.identity(first) != chosen.identity(second)
    assert "row" not in chosen.identity(first)
    assert DatasetSpec(name="push").given is False
