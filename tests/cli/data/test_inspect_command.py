"""What `pubc inspect` tells, as text and as JSON."""

import json

import numpy as np

from pubc.cli.main import main
from tests.reliability import samples


def inspect(capsys, path, *words: str) -> str:
    assert main(["inspect", str(path), *words]) == 0
    told = capsys.readouterr()
    assert told.err == ""
    return told.out


def test_the_text_is_aligned_and_complete(capsys, tmp_path):
    arrays = samples.flat() | {
        "sources": np.array(["expert", "weak", "expert"]),
        "torque": np.zeros((15, 2)),
        "rewards": np.ones(15, np.float32),
    }
    out = inspect(capsys, samples.npz(tmp_path, arrays)).replace(str(tmp_path), "")
    assert out.splitlines() == [
        "data          /set.npz",
        "format        npz",
        "integrity     the checksum of every array fits",
        "trajectories  3",
        "steps         15",
        "observation   3 x float32",
        "action        2 x float32",
        "lengths       4 |█                   █                   █| 6".replace(
            "█                   █                   █",
            "█" + " " * 19 + "█" + " " * 18 + "█",
        ),
        "returns       4 |█" + " " * 19 + "█" + " " * 18 + "█| 6",
        "ends          2 terminal, 1 timeout",
        "sources       2 expert, 1 weak",
        "also holds    torque",
        "",
        "no problems found",
    ]


def test_problems_are_counted_sorted_and_aligned(capsys, tmp_path):
    arrays = samples.flat()
    arrays["rewards"][0] = np.nan
    path = samples.npz(tmp_path, arrays)
    lines = inspect(capsys, path).splitlines()
    assert lines[-2] == "1 problem found"
    assert lines[-1].startswith("  warned    nonfinite_rewards  rewards: 1 trajectory with NaN")
    arrays["timeouts"][-1] = False
    arrays["observations"][:, 0] = 1
    lines = inspect(capsys, samples.npz(tmp_path, arrays)).splitlines()
    assert lines[-4] == "3 problems found"
    assert [line.split()[:2] for line in lines[-3:]] == [
        ["repaired", "unmarked_tail"],
        ["warned", "nonfinite_rewards"],
        ["warned", "constant_feature"],
    ]
    starts = {line.index(line.split()[2]) for line in lines[-3:]}
    assert len(starts) == 1


def test_what_was_only_noticed_is_no_problem(capsys, tmp_path):
    arrays = samples.flat()
    arrays["timeouts"][4] = True
    lines = inspect(capsys, samples.npz(tmp_path, arrays)).splitlines()
    assert lines[-2] == "no problems found"
    assert lines[-1].startswith("  noticed   both_flags  timeouts: ")


def test_it_says_how_the_dataset_was_opened(capsys, tmp_path):
    path = samples.SAMPLES["minari"](tmp_path)
    first, second = inspect(capsys, path), inspect(capsys, path)
    assert "format        minari (parsed in a child process)" in first
    assert "format        minari (from the cached copy; --no-cache reads the file itself)" in second
    assert "`pubc verify` checks every byte" in first
    (path / "manifest.json").unlink()
    assert "integrity     unverified" in inspect(capsys, path)


def test_the_json_holds_the_same_facts(capsys, tmp_path):
    document = json.loads(inspect(capsys, samples.npz(tmp_path), "--json"))
    assert document["trajectories"] == 3
    assert document["steps"] == 15
    assert document["observation"] == {"size": 3, "dtype": "float32"}
    assert document["lengths"] == {"min": 4.0, "median": 5.0, "mean": 5.0, "max": 6.0}
    assert document["ends"] == {"terminal": 2, "timeout": 1}
    assert document["problems"] == []
    assert (document["cached"], document["isolated"]) == (False, False)
    assert document["integrity"] == "checksums"


def test_a_set_without_rewards_says_so(capsys, tmp_path):
    arrays = samples.flat()
    del arrays["rewards"]
    assert "returns       unknown, the dataset has no rewards" in inspect(
        capsys, samples.npz(tmp_path, arrays)
    )


def test_nothing_is_written_beside_the_dataset(capsys, tmp_path):
    path = samples.d4rl(tmp_path)
    before = path.read_bytes()
    inspect(capsys, path)
    assert [p.name for p in tmp_path.iterdir()] == ["set.hdf5"]
    assert path.read_bytes() == before


def test_verify_tells_what_differs(capsys, tmp_path):
    path = samples.SAMPLES["store"](tmp_path)
    assert main(["verify", str(path)]) == 0
    assert capsys.readouterr().out.endswith("every file is as its manifest says\n")
    data = bytearray((path / "actions.npy").read_bytes())
    data[-1] ^= 1
    (path / "actions.npy").write_bytes(data)
    (path / "extra").write_text("x")
    assert main(["verify", str(path), "--json"]) == 3
    error = json.loads(capsys.readouterr().out)["error"]
    assert error["code"] == "manifest_mismatch"
    assert error["count"] == 2
    assert "2 differences from the manifest: actions.npy: its SHA-256 differs" in error["message"]


def test_formats_lists_what_each_needs(capsys):
    assert main(["formats", "--json"]) == 0
    document = json.loads(capsys.readouterr().out)
    assert document["lerobot"]["extra"] == "lerobot"
    assert document["npz"] == {
        "description": "one NumPy archive",
        "reads": True,
        "writes": True,
        "extra": None,
    }
    assert main(["formats"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert len(lines) == len(document)
    assert len({line.index(document[line.split()[0]]["description"]) for line in lines}) == 1
