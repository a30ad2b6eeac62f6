"""keep.json and scores.csv: ids as the dataset has them, counts that are counts."""

import json
from pathlib import Path

import numpy as np
import pytest

from pubc.runs.folder.run_tables import keep_list, read_scores, score_table, write_table
from pubc.trajectory import Columns, TrajectorySet


@pytest.mark.parametrize(
    ("ids", "kept", "unsure"),
    [
        (["3", "4", "5"], [3], [5]),
        (["a", "4", "5"], ["a"], ["5"]),
        (["1" * 5000, "4", "5"], ["1" * 5000], ["5"]),
    ],
    ids=["numbers", "names", "endless"],
)
def test_ids_are_integers_where_all_can_be(ids, kept, unsure):
    ends = np.ones(3, dtype=np.bool_)
    columns = Columns(np.zeros((3, 1)), np.zeros((3, 1)), None, ends, ~ends)
    mixed = TrajectorySet.from_flat(columns, [1, 1, 1], ids=ids)
    found = keep_list(mixed, np.array([True, False, False]), np.array([False, False, True]))
    assert found == {"episodes": kept, "unsure": unsure}
    json.dumps(found)


def test_words_that_look_guarded_are_read_back_as_they_were(tmp_path: Path):
    ids = ["=1", "'=1", "''+1", "' =1", "'", "'a", "", " -1", "a,b", "'\t@x"]
    count = len(ids)
    ends = np.ones(count, dtype=np.bool_)
    columns = Columns(np.zeros((count, 1)), np.zeros((count, 1)), None, ends, ~ends)
    mixed = TrajectorySet.from_flat(columns, [1] * count, ids=ids, sources=np.array(ids[::-1]))
    marks = {"seed": ends, "borderline": ~ends}
    rows = score_table(mixed, np.ones(count), np.ones(count, int), ends, marks)
    write_table(tmp_path / "scores.csv", rows, False)
    read = read_scores(tmp_path / "scores.csv")
    assert read.ids == ids
    assert read.sources == ids[::-1]
    for row in rows[1:]:
        assert not row[0].lstrip().startswith(("=", "+", "-", "@"))


@pytest.mark.parametrize("votes", ["1e300", "-5", "1.5"])
@pytest.mark.parametrize("column", ["votes", "length"])
def test_a_count_that_is_none_is_refused(tmp_path: Path, column: str, votes: str):
    names = ["episode", "confidence", "votes", "keep", "seed", "return", "length", "borderline"]
    good = dict(zip(names, ["a", "0.5", "3", "1", "0", "2.5", "10", "0"], strict=True))
    table = tmp_path / "scores.csv"
    table.write_text("\n".join(",".join(row) for row in (names, good.values())))
    assert read_scores(table).votes.tolist() == [3]
    table.write_text("\n".join(",".join(row) for row in (names, {**good, column: votes}.values())))
    with pytest.raises(ValueError, match=f"{column} of row 1 is '{votes}', not a whole number"):
        read_scores(table)


@pytest.mark.parametrize(
    ("rows", "says"),
    [
        ("a,1,kept\nb,0,splendid", "row 2 is 'splendid', and its keep is 0"),
        ("a,1,dropped\nb,0,dropped", "row 1 is 'dropped', and its keep is 1"),
        ("a,1,unsure\nb,0,unsure", ""),
    ],
    ids=["odd word", "contradiction", "fine"],
)
def test_verdicts_fit_what_was_kept(tmp_path: Path, rows: str, says: str):
    table = tmp_path / "scores.csv"
    header = "episode,keep,verdict,confidence,votes,seed,return,length,borderline"
    table.write_text("\n".join([header, *(f"{row},0.5,3,0,2.5,10,0" for row in rows.split("\n"))]))
    if not says:
        assert read_scores(table).verdict == ["unsure", "unsure"]
        return
    with pytest.raises(ValueError, match=says):
        read_scores(table)
