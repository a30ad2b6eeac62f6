"""What lerobot itself made of sets and tables, as its two benchmarks recorded it."""

import json
import re
from pathlib import Path

DOCS = Path(__file__).parents[3] / "docs"


def recorded(name):
    return json.loads((DOCS / "dev" / name).read_text())


def test_the_walk_with_two_cameras_was_walked_to_its_end():
    record = recorded("lerobot-video.json")
    review, run = record["reviewed"], record["filtered"]
    opened, trained = record["opened_by_lerobot"], record["three_steps_of_act"]
    assert [part["exit_code"] for part in (review, run, trained)] == [0, 0, 0]
    assert [(film["status"], film["wrong_pictures"]) for film in review["films"]] == [(206, 0)] * 2
    assert review["labels.json"] == {name: review["marked"][name] for name in ("good", "bad")}
    assert (run["sound"], run["kept_wrongly"], run["missed"]) == (True, 0, 0)
    steps = record["recorded"]["steps"] // record["recorded"]["episodes"]
    assert opened == {
        "episodes": run["kept"],
        "pictures": run["kept"] * steps * record["recorded"]["cameras"],
        "wrong_pictures": 0,
    }
    assert trained["line"].startswith("lerobot-train --policy.type=act ")


def test_the_page_on_formats_tells_the_walk_as_it_was():
    record = recorded("lerobot-video.json")
    told = re.search(
        r"With lerobot (\S+) .*? records (\d+) episodes, .*? takes (\d+) good\smarks and (\d+) bad"
        r".*? keeps the right (\d+) ",
        (DOCS / "formats.md").read_text(),
        re.S,
    )
    marks = record["reviewed"]["labels.json"]
    assert list(told.groups()) == [
        record["environments"]["lerobot"]["lerobot"],
        *map(str, (record["recorded"]["episodes"], len(marks["good"]), len(marks["bad"]))),
        str(record["filtered"]["kept"]),
    ]


def test_lerobot_weighed_every_frame_as_meant():
    record = recorded("lerobot-weights.json")
    assert record["weighed_as_meant"] == 1
    assert record["weights_inside_episodes"] == [0, 1]
    assert record["batch"]["without_weight"] == record["batch"]["without_weight_expected"]
