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
        "ids           0 ... 2 (N, N from 0 to 2)",
        "observation   3 x float32",
        "action        2 x float32",
        "lengths       4 |█                   █                   █| 6".replace(
            "█                   █                   █",
            "█" + " " * 19 + "█" + " " * 18 + "█",
        ),
        "returns       4 |█" + " " * 19 + "█" + " " * 18 + "█| 6",
        "ends          2 terminal, 1 timeout",
        "sources       2 expert, 1 weak",
        "",
        "keys (one row per step)",
        "  observations        3  float32   observation",
        "  actions             2  float32   action",
        "  rewards             1  float32   reward",
        "  terminals           1  bool      terminal",
        "  timeouts            1  bool      timeout",
        "  torque              2  float64   extra",
        "",
        "seeds (give `pubc filter` one of these)",
        "  --seed-episodes 0,1   an example of how to write ids: name ones you know to be good",
        "  --seed-source expert  two of the 2 by expert, if it is good",
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


def test_w7_the_ids_and_their_pattern_are_shown(capsys, tmp_path):
    path = samples.SAMPLES["robomimic"](tmp_path)
    told = json.loads(inspect(capsys, path, "--json"))
    assert told["ids"]["first"].startswith("demo_")
    assert told["ids"]["pattern"].startswith("demo_N, N from ")
    assert f"ids           {told['ids']['first']} ... {told['ids']['last']}" in inspect(
        capsys, path
    )


def test_w7_keys_are_those_of_the_file_with_shape_and_type(capsys, tmp_path):
    told = json.loads(inspect(capsys, samples.SAMPLES["robomimic"](tmp_path), "--json"))
    parts = [key for key in told["keys"] if key["use"] == "observation"]
    assert sum(int(np.prod(key["shape"])) for key in parts) == told["observation"]["size"]
    assert all(key["dtype"].startswith(("float", "int")) for key in parts)
    assert {"action", "observation"} <= {key["use"] for key in told["keys"]}


def test_w7_suggested_seed_flags_are_taken_by_the_filter(capsys, tmp_path):
    import shlex

    from pubc import save
    from tests.policies.sets import tiny

    save(tmp_path / "pile.npz", tiny())
    told = json.loads(inspect(capsys, tmp_path / "pile.npz", "--json"))
    assert [way["flags"].split()[0] for way in told["seeds"]] == ["--seed-episodes", "--seed-top"]
    for way in told["seeds"]:
        _, *words = shlex.split(way["command"])
        words[words.index("run")] = str(tmp_path / "run")
        assert main([*words, "--dry-run"]) == 0, capsys.readouterr().err


def test_w7_the_source_that_earns_most_is_suggested_and_without_returns_every_one(capsys, tmp_path):
    """The most common source may be the weak one."""
    from dataclasses import replace

    from pubc import save
    from tests.policies.sets import tiny

    pile = tiny()
    order = np.argsort(pile.total_rewards(), kind="stable")
    sources = np.full(len(pile), "weak")
    sources[order[-2:]] = "able"
    known = replace(pile, sources=sources)
    blind = replace(known, columns=replace(pile.columns, rewards=None))
    told = {}
    for name, one in (("known", known), ("blind", blind)):
        save(tmp_path / f"{name}.npz", one)
        seeds = json.loads(inspect(capsys, tmp_path / f"{name}.npz", "--json"))["seeds"]
        told[name] = {way["flags"]: way["takes"] for way in seeds}
    assert told["known"]["--seed-source able"] == "two of the 2 by able, the source that earns most"
    assert "--seed-source weak" not in told["known"]
    assert {"--seed-source able", "--seed-source weak"} <= set(told["blind"])
    assert "an example" in next(iter(told["blind"].values()))


def test_a_picture_of_the_dataset_is_drawn(capsys, tmp_path):
    path = samples.npz(tmp_path)
    for name, start in (("a.svg", b"<?xml"), ("a.png", b"\x89PNG")):
        assert "picture" in inspect(capsys, path, "--plot", str(tmp_path / name))
        assert (tmp_path / name).read_bytes().startswith(start)
    assert main(["inspect", str(path), "--plot", str(tmp_path / "a.gif")]) == 2
    (tmp_path / "mine.png").write_bytes(b"my own")
    assert main(["inspect", str(path), "--plot", str(tmp_path / "mine.png"), "--force"]) == 2
    assert (tmp_path / "mine.png").read_bytes() == b"my own"


def test_a_picture_counts_steps_in_whole_numbers_and_hides_no_curve(tmp_path, monkeypatch):
    from pubc.cli.data import inspect_plot

    drawn, usual = [], inspect_plot.encoded
    monkeypatch.setattr(
        inspect_plot, "encoded", lambda figure, kind: drawn.append(figure) or usual(figure, kind)
    )
    arrays = samples.flat()
    arrays["terminals"][:], arrays["timeouts"][:] = False, False
    arrays["timeouts"][4::5] = True
    path = samples.npz(tmp_path, arrays)
    assert main(["inspect", str(path), "--plot", str(tmp_path / "a.png")]) == 0
    (figure,) = drawn
    low, high = figure.axes[0].get_xlim()
    assert [tick for tick in figure.axes[0].get_xticks() if low < tick < high] == [5.0]
    assert [axes.get_legend() for axes in figure.axes] == [None] * 4
    (legend,) = figure.legends
    assert sorted(text.get_text() for text in legend.get_texts()) == ["0", "1", "2"]


def test_a_picture_needs_no_rewards_and_no_plain_names(tmp_path):
    arrays = samples.flat() | {"ids": np.array(["_a$b$", "\x1b[31m", "x" * 90])}
    del arrays["rewards"]
    assert (
        main(["inspect", str(samples.npz(tmp_path, arrays)), "--plot", str(tmp_path / "a.png")])
        == 0
    )
