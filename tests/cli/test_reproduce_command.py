"""`pubc reproduce` as a user meets it."""

import json
import shutil
from pathlib import Path

import pytest
import torch

from pubc.cli.main import main
from pubc.experiments.run_table import Progress
from pubc.results import Record, append
from tests.experiments.tiny import labelled


@pytest.fixture(scope="module")
def words(tmp_path_factory: pytest.TempPathFactory) -> list[str]:
    folder = tmp_path_factory.mktemp("reproduce")
    data = labelled(folder / "push.npz")
    flags = ["--only", "Sim push", "--random-seeds", "1", "--out", str(folder / "out")]
    return ["reproduce", "seeds", *flags, "--data", f"trifinger-push={data}"]


def test_an_unknown_table_is_told_the_nearest(capsys):
    assert main(["reproduce", "abblation"]) == 2
    assert "Did you mean 'ablation'?" in capsys.readouterr().err


def test_an_unknown_name_of_data_is_told_the_nearest(capsys, tmp_path):
    assert main(["reproduce", "seeds", "--data", "trifinger-pusch=x", "--out", str(tmp_path)]) == 2
    assert "Did you mean 'trifinger-push'?" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("flags", "told"),
    [
        (["seeds", "--data", "trifinger-push"], "NAME=PATH"),
        (["seeds", "--data", "trifinger-push=nowhere.npz"], "there is no nowhere.npz"),
        (["collection", "--data", "ant=x.npz"], "collection takes no files"),
        (["seeds", "--random-seeds", "0"], "At least one random seed"),
        (["seeds", "--only", "Octopus"], "No row or column of seeds contains 'Octopus'"),
        ([], "Say which table: pu-accuracy"),
    ],
)
def test_flags_that_mean_nothing_are_refused_in_words(flags, told, capsys, tmp_path):
    assert main(["reproduce", *flags, "--out", str(tmp_path / "out")]) == 2
    assert told in capsys.readouterr().err
    assert not (tmp_path / "out").exists()


def test_a_missing_extra_is_told_before_any_work(monkeypatch, capsys, tmp_path):
    def stopped(*_, **__):
        raise KeyboardInterrupt

    monkeypatch.setattr("pubc.experiments.run_table.reproduce", stopped)
    words = ["reproduce", "policy-scores", "--only", "Ant E+E", "--out", str(tmp_path / "out")]
    monkeypatch.setattr("importlib.util.find_spec", lambda name: name)
    main(words)
    assert "d3rlpy" not in capsys.readouterr().err
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    main(words)
    said = _flat(capsys.readouterr().err)
    assert "DT, IQL, CRR will fail" in said
    assert "Training them needs the extra 'd3rlpy'. Install it with: pip" in said
    main([*words, "--columns", "BC,PUBC"])
    assert "d3rlpy" not in capsys.readouterr().err


def _flat(text: str) -> str:
    return " ".join(text.split())


def test_list_names_the_tables_and_the_files_they_take(capsys):
    assert main(["reproduce", "--list"]) == 0
    said = capsys.readouterr().out
    assert "convergence" in said
    assert said.count("--data trifinger-lift=PATH for pu-accuracy, policy-scores,") == 1


def test_list_shows_every_place_once_and_why_it_is_empty(capsys, tmp_path):
    assert main(["reproduce", "pu-accuracy", "--list", "--out", str(tmp_path)]) == 0
    said = capsys.readouterr().out
    lines = [" ".join(line.split()) for line in said.splitlines()]
    assert "Ant E+E, upu 3 missing" in lines
    assert "TriFinger-Sim push, upu 3 without data" in lines
    assert said.count("Give --data trifinger-push=PATH") == 1
    assert "0 of 216 cells are finished." in said


def test_every_file_counts_not_the_last_one_alone(words, capsys, tmp_path):
    file = words[-1].partition("=")[2]
    data = ["--data", f"trifinger-push={file}", "--data", f"trifinger-lift={file}"]
    assert main(["reproduce", "seeds", "--list", "--out", str(tmp_path), *data]) == 0
    lines = [line.split() for line in capsys.readouterr().out.splitlines()]
    assert ["TriFinger-Sim", "push,", "1", "3", "missing"] in lines
    assert ["TriFinger-Sim", "lift,", "1", "3", "missing"] in lines


@pytest.mark.parametrize(
    ("values", "told"),
    [
        ({"score": 0.5}, "records of another command"),
        ({"table": "seeds", "scale": "small"}, "records of seeds at scale small"),
        ({"table": "trust", "scale": "full"}, "records of trust at scale full"),
    ],
)
def test_records_of_something_else_are_refused_before_any_work(
    values, told, tmp_path, capsys, monkeypatch
):
    lines = tmp_path / "records" / "trust.jsonl"
    lines.parent.mkdir()
    append(lines, Record({"policy": "mine"}, values))
    before = lines.read_bytes()
    monkeypatch.setattr("pubc.engine.open_engine", None)
    assert main(["reproduce", "trust", "--quick", "--out", str(tmp_path)]) == 2
    assert told in " ".join(capsys.readouterr().err.split())
    assert lines.read_bytes() == before
    assert [path.name for path in tmp_path.rglob("*")] == ["records", "trust.jsonl"]


@pytest.mark.usefixtures("brisk")
def test_from_a_file_to_a_table_with_records_beside_it(words, capsys):
    assert main([*words, "--list"]) == 0
    assert "0 of 5 cells are finished." in capsys.readouterr().out
    assert main(words) == 0
    said = capsys.readouterr().out
    assert "TriFinger-Sim push" in said
    assert "pubc report" in said
    out = Path(words[words.index("--out") + 1])
    text = (out / "records" / "seeds.jsonl").read_text()
    lines = [json.loads(line) for line in text.splitlines()]
    assert [one["column"] for one in lines] == ["1", "2", "3", "5", "10"]
    # The pile has eight trajectories of its expert, so ten seeds cannot be drawn from it.
    assert ["failed" in one for one in lines] == [False] * 4 + [True]
    head = json.loads((out / "records" / "seeds.json").read_text())
    assert head["command"].endswith("--data trifinger-push=push.npz --only 'Sim push'")
    assert str(out.parent) not in json.dumps([lines, head])
    assert main([*words, "--list"]) == 0
    said = capsys.readouterr().out
    assert "TriFinger-Sim push, 10  1 failed" in said
    assert "4 of 5 cells are finished." in said
    assert main([*words, "--json"]) == 0
    again = json.loads(capsys.readouterr().out)
    assert again["results"] == lines
    assert again["failed"] == 1


@pytest.mark.usefixtures("brisk")
def test_records_that_could_not_be_written_again_stay(words, capsys, tmp_path):
    made, out = Path(words[words.index("--out") + 1]), tmp_path / "out"
    assert main([*words, "--json"]) == 0
    words = [str(out) if word == str(made) else word for word in words]
    for change in ("no cache", "an edited record", "an edited head", "an edited cell"):
        shutil.rmtree(out, ignore_errors=True)
        shutil.copytree(made, out)
        lines, head = out / "records" / "seeds.jsonl", out / "records" / "seeds.json"
        if change == "no cache":
            shutil.rmtree(out / "cache")
        elif change == "an edited record":
            lines.write_text(lines.read_text().replace('"accuracy": 1.0', '"accuracy": 0.5', 1))
        elif change == "an edited head":
            head.write_text(head.read_text().replace('"unit": "', '"unit": "my '))
        else:
            cells = sorted((out / "cache" / "cells").iterdir())
            cell = next(cell for cell in cells if "accuracy" in cell.read_text())
            cell.write_text(cell.read_text().replace("accuracy", "acuracy"))
        before = lines.read_bytes(), head.read_bytes()
        capsys.readouterr()
        assert main(words) == (3 if change == "an edited cell" else 2), change
        said = " ".join(capsys.readouterr().err.split())
        assert "would be lost" in said or "not as pubc wrote it" in said or "did not write" in said
        assert (lines.read_bytes(), head.read_bytes()) == before


@pytest.mark.usefixtures("brisk")
def test_what_the_cache_of_a_table_holds_must_be_as_it_was_made(words, capsys, tmp_path):
    made, out = Path(words[words.index("--out") + 1]), tmp_path / "out"
    assert main([*words, "--json"]) == 0
    words = [str(out) if word == str(made) else word for word in words]
    shutil.copytree(made, out)
    for folder in ("cache/cells", "records"):
        shutil.rmtree(out / folder)
    result = next((out / "cache" / "filters").glob("*/result.json"))
    result.write_text(result.read_text() + " ")
    capsys.readouterr()
    assert main(words) == 3
    assert "result.json was changed since it was made" in " ".join(capsys.readouterr().err.split())


@pytest.mark.skipif(torch.cuda.is_available(), reason="has a CUDA device of its own")
def test_a_gpu_that_is_not_here_is_a_reason_and_stands_in_the_command(words, capsys, tmp_path):
    words = [*words, "--device", "cuda", "--json"]
    words[words.index("--out") + 1] = str(tmp_path)
    assert main(words) == 0
    found = json.loads(capsys.readouterr().out)
    reasons = [one["failed"]["message"] for one in found["results"]]
    assert [reason.startswith("No CUDA device was found.") for reason in reasons][:4] == [True] * 4
    head = json.loads(Path(found["head"]).read_text())
    assert "--device cuda" in head["command"]
    assert [one["gpu"] for one in head["machines"]] == [None]


def test_an_interrupted_run_says_how_to_go_on_and_leaves_its_records(words, capsys, monkeypatch):
    def interrupted(plan, engine, **_):
        raise KeyboardInterrupt
        yield

    monkeypatch.setattr("pubc.experiments.run_table.reproduce", interrupted)
    folder = Path(words[words.index("--out") + 1]).parent / "interrupted"
    words = [folder if word.endswith("/out") else word for word in words]
    assert main([str(word) for word in words]) == 5
    assert "the same command goes on" in capsys.readouterr().err
    assert (folder / "records" / "seeds.json").is_file()


def test_what_somebody_puts_in_the_place_of_records_meanwhile_stays(words, capsys, monkeypatch):
    folder = Path(words[words.index("--out") + 1]).parent / "meanwhile"
    lines = folder / "records" / "seeds.jsonl"

    def meddle(plan, engine, **_):
        yield Progress(0, 1, "", None, 0, 1)
        lines.unlink()
        lines.write_text("my thesis")

    monkeypatch.setattr("pubc.experiments.run_table.reproduce", meddle)
    words = [folder if word.endswith("/out") else word for word in words]
    assert main([str(word) for word in words]) == 2
    assert "did not write" in " ".join(capsys.readouterr().err.split())
    assert lines.read_text() == "my thesis"
