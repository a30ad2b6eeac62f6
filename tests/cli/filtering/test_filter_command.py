"""`pubc filter`, `pubc score`: files in, a folder out, and words where that cannot be."""

import csv
import json
import shutil
from pathlib import Path

import h5py
import numpy as np
import pytest

import pubc
import tests.reliability.quick_recipe  # noqa: F401
from pubc.cli.main import main
from pubc.errors import EnvironmentFailure
from pubc.storage import hash_file, verify
from tests.brisk import quickened
from tests.pu.piles import pile

FILES = (
    "keep.json", "scores.csv", "rounds.jsonl", "kept.npz", "borderline_steps.npz", "steps.npz"
)  # fmt: skip


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("data") / "mixed.npz"
    pubc.save(path, pile([8, 8], steps=200, states=3))
    return path


WORDS = (
    "--seed-episodes", "0,1,2", "--truth", "0", "--per-step", "--random-seed", "3", "--json"
)  # fmt: skip


@pytest.fixture(scope="module")
def finished(data: Path) -> Path:
    """A finished run."""
    out = data.parent / "run"
    assert main(["filter", str(data), "--out", str(out), *WORDS]) == 0
    return out


@pytest.fixture(scope="module")
def brief(data: Path) -> Path:
    """The same with less training, for what is compared with it."""
    out = data.parent / "brief"
    with quickened():
        assert main(["filter", str(data), "--out", str(out), *WORDS]) == 0
    return out


def outputs(run: Path) -> dict[str, str]:
    paths = [run / name for name in FILES if (run / name).exists()]
    paths += sorted((run / "classifiers").iterdir()) + sorted((run / "rounds").iterdir())
    return {path.relative_to(run).as_posix(): hash_file(path) for path in paths}


def failure(capsys, *words: str) -> tuple[int, str]:
    code = main([*words])
    return code, capsys.readouterr().err


def test_the_expert_is_found_and_everything_is_written(data: Path, finished: Path):
    document = json.loads((finished / "run.json").read_text())
    assert document["status"] == "converged"
    assert document["sound"] is True
    assert document["truth_report"]["accuracy"] == 1.0
    assert document["truth_report"]["auc_without_seeds"] == 1.0
    assert json.loads((finished / "keep.json").read_text()) == {
        "episodes": list(range(8)),
        "unsure": [],
    }
    kept = pubc.load(finished / document["kept_path"])
    mixed = pubc.load(data)
    assert np.array_equal(kept.flat().observations, mixed[:8].flat().observations)
    assert not verify(finished)


def test_scores_say_what_happened_to_every_trajectory(finished: Path):
    with (finished / "scores.csv").open() as file:
        rows = list(csv.DictReader(file))
    assert list(rows[0]) == [
        "episode", "confidence", "votes", "keep", "seed", "return", "length", "source",
        "borderline", "verdict", "reason",
    ]  # fmt: skip
    assert [row["keep"] for row in rows] == ["1"] * 8 + ["0"] * 8
    assert [row["seed"] for row in rows] == ["1"] * 3 + ["0"] * 13
    assert rows[0]["return"] == "200.0"
    assert min(float(r["confidence"]) for r in rows[:8]) > max(
        float(r["confidence"]) for r in rows[8:]
    )


def test_rounds_can_be_drawn(finished: Path):
    lines = [json.loads(line) for line in (finished / "rounds.jsonl").read_text().splitlines()]
    assert [line["round"] for line in lines] == list(range(1, len(lines) + 1))
    assert [line["status"] for line in lines[:-1]] == [None] * (len(lines) - 1)
    for line in lines:
        with np.load(finished / line["arrays"], allow_pickle=False) as arrays:
            assert arrays["confidence"].shape[1] == 16
            assert int(arrays["selected"].sum()) == line["kept"]
        for training in line["training"]:
            assert (finished / "classifiers" / f"{training['network']}.safetensors").exists()


def test_every_step_has_a_value(finished: Path):
    steps = np.load(finished / "steps.npy", allow_pickle=False)
    assert steps.shape == (16 * 200,)
    assert steps.dtype == np.float32


@pytest.mark.usefixtures("brisk")
@pytest.mark.parametrize("workers", [1, 2])
def test_the_same_again_is_the_same_to_the_bit(data, brief, tmp_path, workers: int):
    out = tmp_path / "again"
    words = [*WORDS, "--workers", str(workers)]
    assert main(["filter", str(data), "--out", str(out), *words]) == 0
    assert outputs(out) == outputs(brief)


def test_score_applies_the_filter_to_new_data(finished: Path, tmp_path: Path, capsys):
    fresh = tmp_path / "fresh.npz"
    pubc.save(fresh, pile([3, 3], steps=200, states=3, random_seed=77))
    table = tmp_path / "scores.csv"
    words = ["score", str(fresh), "--filter", str(finished), "--out", str(table), "--json"]
    assert main(words) == 0
    document = json.loads(capsys.readouterr().out)
    assert document["episodes"] == ["0", "1", "2"]
    assert len(table.read_text().splitlines()) == 7


@pytest.mark.usefixtures("brisk")
def test_processes_change_nothing_and_leave_nothing(
    data: Path, brief: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr("pubc.pu.shards.LEAST", 500)
    engine = ["--engine", "processes", "--workers", "1"]
    out = tmp_path / "run"
    assert main(["filter", str(data), "--out", str(out), *WORDS, *engine]) == 0
    assert outputs(out) == outputs(brief)
    assert not verify(out)
    assert not (out / "shards").exists()
    tables = [tmp_path / "here.csv", tmp_path / "there.csv"]
    score = ["score", str(data), "--filter", str(brief), "--out"]
    assert main([*score, str(tables[0]), "--json"]) == 0
    assert main([*score, str(tables[1]), "--json", *engine]) == 0
    assert tables[0].read_bytes() == tables[1].read_bytes()
    beside = [f"{table.name}.manifest.json" for table in tables]
    left = [*(table.name for table in tables), *beside, "run"]
    assert sorted(p.name for p in tmp_path.iterdir()) == sorted(left)


@pytest.mark.usefixtures("brisk")
def test_a_shard_that_somebody_edited_is_named_and_stays(
    data: Path, brief: Path, tmp_path: Path, capsys, monkeypatch: pytest.MonkeyPatch
):
    def full(*given, **named):
        raise EnvironmentFailure("The disk is full.")

    words = ["score", str(data), "--filter", str(brief), "--out", str(tmp_path / "t.csv")]
    words += ["--engine", "processes", "--workers", "1"]
    with monkeypatch.context() as at_the_end:
        at_the_end.setattr("pubc.storage.work_folders.WorkFolder.remove", full)
        assert failure(capsys, *words)[0] == 4
    (shard,) = (tmp_path / ".t.csv.shards").glob("*/*.safetensors")
    edited = shard.read_bytes()[:-1] + b"?"
    shard.write_bytes(edited)
    code, error = failure(capsys, *words)
    assert code == 2
    assert f"{shard.name}, which is not as pubc wrote it" in error
    assert shard.read_bytes() == edited
    shard.unlink()
    assert main(words) == 0
    assert not (tmp_path / ".t.csv.shards").exists()


def test_an_engine_needs_a_place_for_its_shards_and_an_address_an_engine(
    data: Path, finished: Path, capsys
):
    score = ["score", str(data), "--filter", str(finished)]
    assert failure(capsys, *score, "--engine", "processes")[0] == 2
    code, error = failure(capsys, *score, "--address", "auto")
    assert code == 2
    assert "--address joins a Ray cluster" in error


def test_score_refuses_another_robot(finished: Path, tmp_path: Path, capsys):
    other = tmp_path / "other.npz"
    pubc.save(other, pile([3], states=5))
    code, error = failure(capsys, "score", str(other), "--filter", str(finished))
    assert code == 3
    assert "observation size 3, this data has 5" in error


def test_score_refuses_networks_that_were_swapped(
    data: Path, finished: Path, tmp_path: Path, capsys
):
    swapped = tmp_path / "swapped"
    shutil.copytree(finished, swapped)
    first, *_, last = sorted((swapped / "classifiers").iterdir())
    last.write_bytes(first.read_bytes())
    code, error = failure(capsys, "score", str(data), "--filter", str(swapped))
    assert code == 3
    assert f"classifiers/{last.name} is not as `pubc filter` wrote it" in error


def test_seeds_by_return_by_source_and_from_a_file(data: Path, tmp_path: Path, capsys):
    def planned(*words: str) -> dict:
        assert main(["filter", str(data), "--dry-run", "--json", *words]) == 0
        return json.loads(capsys.readouterr().out)["seed"]

    assert planned()["positions"] == [0, 1]
    assert planned("--seed-top", "0.2")["positions"] == [0, 1, 2, 3]
    drawn = planned("--seed-source", "1", "--seed-count", "3")["positions"]
    assert len(drawn) == 3
    assert min(drawn) >= 8
    other = tmp_path / "seed.npz"
    pubc.save(other, pile([2], steps=200, states=3, random_seed=5))
    assert planned("--seed-from", str(other))["positions"] == []


def test_a_dry_run_writes_nothing(data: Path, tmp_path: Path):
    assert main(["filter", str(data), "--out", str(tmp_path / "run"), "--dry-run"]) == 0
    assert not list(tmp_path.iterdir())


def test_ids_that_look_like_formulas_are_guarded(tmp_path: Path):
    mixed = pile([2, 2], steps=60)
    named = type(mixed).from_flat(
        mixed.columns, mixed.lengths, ids=["=1+1", "@x", "a,b", "-2"], sources=mixed.sources
    )
    from pubc.runs.folder.run_tables import score_table, write_table

    path = tmp_path / "scores.csv"
    zeros = np.zeros(4)
    write_table(path, score_table(named, zeros, zeros.astype(int), zeros > 0), False)
    with path.open() as file:
        names = [row["episode"] for row in csv.DictReader(file)]
    assert names == ["'=1+1", "'@x", "a,b", "'-2"]


@pytest.mark.parametrize(
    ("words", "code", "said"),
    [
        (["--out", "RUN"], 2, "DATA --out RUN"),
        (["DATA"], 2, "DATA --out RUN"),
        (["DATA", "--out", "RUN", "--seed-episodes", "99"], 2, "No trajectory named '99'"),
        (["DATA", "--out", "RUN", "--seed-episodes", "1,1"], 2, "twice"),
        (["DATA", "--out", "RUN", "--seed-top", "2"], 2, "at most 1"),
        (["DATA", "--out", "RUN", "--seed-top", "0.1", "--seed-source", "0"], 2, "one way"),
        (["DATA", "--out", "RUN", "--seed-source", "none"], 2, "No source named 'none'"),
        (["DATA", "--out", "RUN", "--seed-source", "0", "--seed-count", "9"], 2, "which has 8"),
        (["DATA", "--out", "RUN", "--truth", "none"], 2, "No source named 'none'"),
        (["DATA", "--out", "RUN", "--recipe", "best"], 2, "No recipe named 'best'"),
        (["DATA", "--out", "RUN", "--recipe", "paper", "--classifiers", "2"], 2, "odd"),
        (["DATA", "--out", "RUN", "--to", "none"], 2, "No format named 'none'"),
        (["DATA", "--out", "RUN", "--recipe", "paper", "--order", "0"], 2, "order"),
        (["DATA", "--out", "RUN", "--max-rounds", "0"], 2, "At least one round"),
        (["DATA", "--out", "RUN", "--order", "5"], 2, "No setting named 'order'"),
        (["DATA", "--out", "RUN", "--workers", "-1"], 2, "Workers"),
        (["missing.npz", "--out", "RUN"], 2, "does not exist"),
        (["--resume", "missing"], 3, "no such file"),
        (["DATA", "--resume", "RUN"], 2, "stands alone"),
    ],
)
def test_mistakes_are_answered_in_words(data, tmp_path, capsys, words, code: int, said: str):
    names = {"DATA": str(data), "RUN": str(tmp_path / "run")}
    found, error = failure(capsys, "filter", *(names.get(word, word) for word in words))
    assert found == code, error
    assert said in error
    assert "Traceback" not in error
    assert not (tmp_path / "run" / "keep.json").exists()


def test_a_folder_is_never_replaced_unasked(data: Path, finished: Path, tmp_path: Path, capsys):
    words = ["filter", str(data), "--seed-episodes", "0,1,2"]
    code, error = failure(capsys, *words, "--out", str(finished))
    assert code == 2
    assert "--resume" in error
    stranger = tmp_path / "mine"
    stranger.mkdir()
    (stranger / "thesis.txt").write_text("years of work")
    code, error = failure(capsys, *words, "--out", str(stranger), "--force")
    assert code == 2
    assert "not the folder of a filter run" in error
    assert (stranger / "thesis.txt").exists()


def test_resuming_a_finished_run_changes_nothing(finished: Path, capsys):
    before = outputs(finished)
    assert main(["filter", "--resume", str(finished)]) == 0
    assert "finished already" in capsys.readouterr().out
    assert outputs(finished) == before


def test_no_rewards_means_seeds_must_be_named(tmp_path: Path, capsys):
    mixed = pile([3, 3], steps=60)
    columns = mixed.columns
    silent = type(columns)(
        columns.observations, columns.actions, None, columns.terminals, columns.timeouts
    )
    path = tmp_path / "silent.npz"
    pubc.save(path, type(mixed).from_flat(silent, mixed.lengths))
    code, error = failure(capsys, "filter", str(path), "--out", str(tmp_path / "run"))
    assert code == 3
    assert "no rewards" in error


@pytest.mark.usefixtures("brisk")
def test_another_format_can_be_asked_for(data: Path, tmp_path: Path):
    out = tmp_path / "run"
    words = ["--seed-episodes", "0,1,2", "--to", "store", "--json"]
    assert main(["filter", str(data), "--out", str(out), *words]) == 0
    assert len(pubc.load(out / "kept.store")) == 8


@pytest.mark.usefixtures("brisk")
def test_a_run_killed_before_its_first_word_can_be_started_again(data: Path, tmp_path: Path):
    out = tmp_path / "run"
    out.mkdir()
    (out / ".lock").write_text('{"pid": 1}')
    words = ["--seed-episodes", "0,1,2", "--json"]
    assert main(["filter", str(data), "--out", str(out), *words]) == 0


@pytest.mark.usefixtures("brisk")
def test_a_robomimic_file_gets_a_mask_in_a_copy(data: Path, tmp_path: Path, capsys):
    demos, out = tmp_path / "demos.hdf5", tmp_path / "run"
    pubc.save(demos, pubc.load(data), format="robomimic")
    before = hash_file(demos)
    words = ["--seed-episodes", "0,1,2", "--random-seed", "3", "--mask"]
    assert main(["filter", str(demos), "--out", str(out), *words]) == 0
    assert "train.hdf5_filter_key=pubc_keep" in capsys.readouterr().out
    with h5py.File(out / "masked.hdf5") as file:
        named = {name.decode() for name in file["mask/pubc_keep"][()]}
        assert len(file["data"]) == 16
    assert named == {f"demo_{number}" for number in range(8)}
    assert hash_file(demos) == before
    assert not verify(out)


def test_a_mask_is_for_robomimic_alone(data: Path, tmp_path: Path, capsys):
    code, told = failure(capsys, "filter", str(data), "--out", str(tmp_path / "run"), "--mask")
    assert code == 2
    assert "--mask is for robomimic files" in told


def test_w7_the_output_names_the_seeds(data: Path, tmp_path: Path, capsys):
    assert main(["filter", str(data), "--dry-run"]) == 0
    out = capsys.readouterr().out
    seeds = next(line for line in out.splitlines() if line.startswith("seeds"))
    assert "with the highest returns: " in seeds
    assert main(["filter", str(data), "--dry-run", "--seed-episodes", "1,4-6"]) == 0
    assert "4 as named: 1, 4, 5, 6" in capsys.readouterr().out
    words = ["--seed-episodes", "1,4-6", "--out", str(tmp_path / "run"), "--recipe", "quick"]
    assert main(["filter", str(data), *words]) in (0, 6)
    assert "4 as named: 1, 4, 5, 6" in capsys.readouterr().out


def test_e4_a_range_with_an_end_that_is_not_there_is_told(data: Path, capsys):
    code, told = failure(capsys, "filter", str(data), "--dry-run", "--seed-episodes", "1-99999")
    assert code == 2
    assert "The range '1-99999' begins or ends with a trajectory that is not there" in told
    assert failure(capsys, "filter", str(data), "--dry-run", "--seed-episodes", "9-3")[0] == 2


def test_e3_a_format_that_is_not_written_comes_out_as_a_store_with_a_word(tmp_path: Path):
    from pubc import formats
    from pubc.cli.filtering.filter_command import Filter
    from pubc.runs.filter_config import FilterConfig
    from pubc.runs.kept_files import write_kept
    from tests.reliability import samples

    pytest.importorskip("zarr")
    source = samples.SAMPLES["diffusion"](tmp_path)
    config = FilterConfig(reading=formats.ReadOptions(cache=False))
    mixed, told = formats.read(source, config.reading), []
    mask = np.arange(len(mixed)) == 0
    (tmp_path / "run").mkdir()
    name = write_kept(tmp_path / "run", source, mixed, mask, config, told.append)
    assert name == "kept.store"
    assert told == [
        "pubc reads the diffusion format but does not write it: what was kept is a store."
    ]
    assert "or a store" in str(Filter.__doc__)
