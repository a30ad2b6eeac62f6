"""Where reports go, what they leave alone, and every number in them."""

import csv
import json
import re
import xml.etree.ElementTree as ET

import numpy as np
import pytest

from pubc.cli.main import main
from pubc.errors import DataError, UsageError
from pubc.metrics import roc_auc
from pubc.report import draw_report, write_report
from pubc.report.payload import roc
from pubc.report.sentences import command
from pubc.report.summary import told
from pubc.runs.folder.run_reading import read_run
from pubc.runs.statuses import STATUSES, verdict
from pubc.storage import read_manifest, seal, verify
from tests.report.build import make_run, read_document
from tests.report.reading import Page, unpack


def scores_of(path):
    with (path / "scores.csv").open(newline="") as file:
        return list(csv.DictReader(file))


def find(document, key):
    for word in key.split("."):
        document = document[word]
    return document


def test_a_new_report_renews_the_manifest_and_keeps_what_it_says(tmp_path):
    path = make_run(tmp_path / "run")
    before = read_manifest(path)
    write_report([path])
    after = read_manifest(path)
    assert verify(path) == []
    assert after["note"] == "kept"
    assert set(after["files"]) - set(before["files"]) == {
        "report.html",
        "report.md",
        "report.json",
    }


def test_a_run_that_is_not_sealed_yet_stays_unsealed(tmp_path):
    path = make_run(tmp_path / "run")
    (path / "manifest.json").unlink()
    draw_report(path, tmp_path)
    assert (tmp_path / "report.html").exists()
    assert not (path / "manifest.json").exists()


def test_a_damaged_run_is_not_sealed_anew(tmp_path):
    path = make_run(tmp_path / "run")
    (path / "kept.npz").write_bytes(b"kexx")
    with pytest.raises(DataError, match=r"kept\.npz is not as the run left it"):
        write_report([path])
    assert [fault.file for fault in verify(path)] == ["kept.npz"]
    assert write_report([path], tmp_path / "elsewhere").exists()


@pytest.mark.parametrize("force", [False, True])
def test_an_edited_report_and_a_link_stay(tmp_path, force):
    path = make_run(tmp_path / "run")
    page = write_report([path])
    whole = page.read_bytes()
    page.write_bytes(b"mine")
    with pytest.raises(UsageError, match="was changed since pubc wrote it"):
        write_report([path], force=force)
    assert page.read_bytes() == b"mine"
    page.unlink()
    page.symlink_to(tmp_path / "nowhere")
    with pytest.raises(UsageError, match="was changed since pubc wrote it"):
        write_report([path], force=force)
    assert page.is_symlink()
    page.unlink()
    write_report([path])
    assert page.read_bytes() == whole
    assert verify(path) == []


def test_an_unfinished_run_says_how_to_go_on(tmp_path):
    path = make_run(tmp_path / "run")
    document = read_document(path) | {"status": "running"}
    (path / "run.json").write_text(json.dumps(document))
    with pytest.raises(DataError, match="pubc filter --resume"):
        write_report([path])


@pytest.mark.parametrize("name", ["scores.csv", "rounds.jsonl", "rounds/round-002.npz"])
def test_files_that_contradict_each_other_are_refused_in_one_sentence(tmp_path, name):
    path = make_run(tmp_path / "run")
    content = (path / name).read_bytes()
    (path / name).write_bytes(content[: len(content) // 2] + b"\n")
    with pytest.raises(DataError) as caught:
        write_report([path])
    assert "\n" not in str(caught.value)


def test_what_is_no_run_is_named(tmp_path):
    with pytest.raises(UsageError, match="no such file"):
        write_report([tmp_path / "nowhere"])
    (tmp_path / "folder").mkdir()
    with pytest.raises(DataError, match="found none of these"):
        write_report([tmp_path / "folder"])
    with pytest.raises(UsageError, match="at least one"):
        write_report([])


def test_every_number_on_the_page_is_the_runs_own(run):
    page, document = Page((run / "report.html").read_text()), read_document(run)
    lines = [json.loads(line) for line in (run / "rounds.jsonl").read_text().splitlines()]
    checked = 0
    for key, value, words in page.numbers:
        part, _, rest = key.partition(".")
        if key == "run.kept_share":
            assert value == document["kept"] / document["data"]["trajectories"]
        elif key == "run.seed.ids":
            assert value == document["seed"]["ids"]
        elif part == "run":
            assert value == find(document, rest), key
        elif part == "rounds":
            number, name = rest.split(".")
            assert value == lines[int(number) - 1][name], key
        else:
            continue
        assert words in (told(value), told(value, "share")), key
        checked += 1
    assert checked > 50


def test_every_group_source_and_confusion_is_counted_from_the_scores(run):
    page, rows = Page((run / "report.html").read_text()), scores_of(run)
    shown = {key: value for key, value, _ in page.numbers}
    for name, mine in {
        "kept": [r for r in rows if r["keep"] == "1"],
        "dropped": [r for r in rows if r["keep"] == "0"],
        "seeds": [r for r in rows if r["seed"] == "1"],
    }.items():
        assert shown[f"groups.{name}.count"] == len(mine)
        assert shown[f"groups.{name}.steps"] == sum(int(r["length"]) for r in mine)
        assert shown[f"groups.{name}.return"] == np.median([float(r["return"]) for r in mine])
        assert shown[f"groups.{name}.mean"] == pytest.approx(
            sum(float(r["return"]) for r in mine) / len(mine), rel=1e-12
        )
    for index, name in enumerate(sorted({r["source"] for r in rows})):
        mine = [r for r in rows if r["source"] == name]
        assert shown[f"sources.{index}.count"] == len(mine)
        assert shown[f"sources.{index}.kept"] == sum(r["keep"] == "1" for r in mine)
    for number in (1, 2, 3, 4):
        with np.load(run / f"rounds/round-{number:03d}.npz") as file:
            selected = file["selected"]
        expert = np.array([r["source"] == "expert" for r in rows])
        assert shown[f"confusion.{number}.true_positives"] == (selected & expert).sum()
        assert shown[f"confusion.{number}.false_positives"] == (selected & ~expert).sum()
        assert shown[f"confusion.{number}.false_negatives"] == (~selected & expert).sum()
        assert shown[f"confusion.{number}.true_negatives"] == (~selected & ~expert).sum()


def test_the_data_behind_the_charts_is_bit_for_bit_that_of_the_scores(run):
    drawn, rows = Page((run / "report.html").read_text()).data["run"], scores_of(run)
    assert drawn["ids"] == [r["episode"] for r in rows]
    for name, column in (("confidence", "confidence"), ("returns", "return"), ("votes", "votes")):
        assert unpack(drawn[name]).tolist() == [float(r[column]) for r in rows]
    flags = unpack(drawn["flags"])
    for bit, column in ((1, "keep"), (2, "seed"), (4, "borderline")):
        assert ((flags & bit) > 0).tolist() == [r[column] == "1" for r in rows]
    for number, done in enumerate(drawn["rounds"], 1):
        with np.load(run / f"rounds/round-{number:03d}.npz") as file:
            assert done["counts"] == file["counts"].tolist()
            assert done["curve"] == file["curve"].tolist()
            assert sum(done["kept_counts"]) == file["selected"].sum()


def test_the_three_forms_say_the_same(run):
    document, told_json = read_document(run), json.loads((run / "report.json").read_text())
    text = (run / "report.md").read_text()
    assert told_json["run"]["kept"] == document["kept"]
    assert told_json["run"]["quality"] == document["quality"]
    assert text.startswith(f"# Kept {document['kept']} of {document['data']['trajectories']}")
    assert told_json["run"]["command"] in text
    for sentence in told_json["run"]["limits"]:
        assert sentence.split("`")[0].rstrip(".")[:40].split(".")[0] in text


def test_the_curve_through_all_cuts_has_the_area_that_the_ranks_have():
    rng = np.random.default_rng(5)
    truth = rng.random(500) < 0.4
    confidence = np.round(rng.normal(truth * 1.0, 1.0), 1)
    points = roc(confidence, truth)
    area = np.trapezoid(points["y"], points["x"])
    assert area == pytest.approx(roc_auc(confidence, truth), abs=1e-12)


def test_every_way_a_run_can_end_has_words():
    for status in STATUSES:
        words = verdict({"status": f"{status}(2)" if status == "cycle" else status})
        assert words.tone in ("good", "caution", "bad")
    assert verdict({"status": "converged", "sound": True}).tone == "good"
    assert verdict({"status": "converged", "sound": False}).tone == "caution"
    assert verdict({"status": "of_another_version"}).title == "of_another_version"


def test_the_command_on_the_page_quotes_what_a_shell_would_take_apart(tmp_path):
    path = make_run(tmp_path / "a run", text=lambda word: word.replace("/data/", "/da ta;/$x"))
    told_command = command(read_run(path))
    assert "'/da ta;/$xmixed.npz'" in told_command
    assert "--seed-top 0.01" in told_command
    assert "--order 10" in told_command


@pytest.mark.parametrize(
    "without", [{"sources": None}, {"rewards": False}, {"truth": False}, {"status": "no_valley"}]
)
def test_a_run_without_everything_still_has_a_report(tmp_path, without):
    page = Page(write_report([make_run(tmp_path / "run", **without)]).read_text())
    assert page.data["run"]["count"] == 400


def test_without_rounds_or_cut_or_confidence_there_is_still_a_page(tmp_path):
    path = make_run(tmp_path / "run", rounds=1)
    document = read_document(path) | {"threshold": None, "kept_path": None}
    (path / "run.json").write_text(json.dumps(document))
    with np.load(path / "rounds/round-001.npz") as file:
        arrays = dict(file)
    arrays["confidence"][:] = np.nan
    for name in ("centres", "counts", "curve"):
        arrays[name] = np.zeros(0)
    np.savez(path / "rounds/round-001.npz", **arrays)
    seal(path, kind="filter")
    drawn = Page(write_report([path]).read_text()).data["run"]
    assert drawn["rounds"][0]["centres"] == []


def test_figures_are_drawn_twice_alike(tmp_path, capsys):
    run = make_run(tmp_path / "run", 60, 2)
    seen = []
    for more in ([], ["--force"]):
        words = ["report", str(run), "--figures", str(tmp_path / "figures"), "--json", *more]
        assert main(words) == 0
        assert len(json.loads(capsys.readouterr().out)["figures"]) == 12
        seen.append({path: path.read_bytes() for path in (tmp_path / "figures").iterdir()})
    assert seen[0] == seen[1]
    for path, content in seen[0].items():
        if path.suffix == ".svg":
            assert ET.fromstring(content).tag.endswith("svg")
        else:
            assert content.startswith(b"\x89PNG")


def test_one_hundred_thousand_trajectories_stay_small_and_quick(tmp_path):
    import time

    path = make_run(tmp_path / "run", 100_000, 8, ids=[f"episode_{i:06d}" for i in range(100_000)])
    began = time.monotonic()
    page = write_report([path])
    assert time.monotonic() - began < 20
    assert page.stat().st_size < 15_000_000


def test_the_page_allows_one_script_and_one_style_and_nothing_else(run):
    text = (run / "report.html").read_text()
    policy = Page(text).policy
    assert re.fullmatch(
        r"default-src 'none'; style-src 'sha256-[\w+/]{43}='; script-src 'sha256-[\w+/]{43}='; "
        r"base-uri 'none'; form-action 'none'",
        policy,
    )
    assert "http://" not in text.replace("http://www.w3.org/2000/svg", "")
    assert "https://" not in text


def test_a_report_replaces_only_a_report_and_only_when_asked(tmp_path, capsys):
    run = make_run(tmp_path / "run", 60, 2)
    other = make_run(tmp_path / "other", 60, 2)
    (tmp_path / "site").mkdir()
    (tmp_path / "site" / "manifest.json").write_text("{}")
    for target in (other, tmp_path / "site"):
        before = {path: path.read_bytes() for path in target.rglob("*") if path.is_file()}
        for more in ([], ["--force"]):
            assert main(["report", str(run), "--out", str(target), *more]) == 2
        assert before == {path: path.read_bytes() for path in target.rglob("*") if path.is_file()}
    words = ["report", str(run), "--out", str(tmp_path / "page")]
    assert main(words) == 0
    assert main(words) == 2
    assert "--force" in capsys.readouterr().err
    assert main([*words, "--force"]) == 0


def test_figures_replace_nothing_but_figures(tmp_path, capsys):
    run = make_run(tmp_path / "run", 60, 2)
    figures = tmp_path / "figures"
    figures.mkdir()
    (figures / "rounds.png").write_bytes(b"mine")
    for more in ([], ["--force"]):
        assert main(["report", str(run), "--figures", str(figures), *more]) == 2
    assert [path.name for path in figures.iterdir()] == ["rounds.png"]
    capsys.readouterr()


def test_a_report_of_other_folders_with_the_same_last_names_stays(tmp_path, capsys):
    first = make_run(tmp_path / "run", 60, 2)
    others = [make_run(tmp_path / name / "other", 60, 2) for name in ("a", "b")]
    words = ["report", str(first), str(others[0])]
    assert main(words) == 0
    assert main(words) == 0
    page = tmp_path / "run-vs-other-report"
    before = (page / "report.json").read_bytes()
    assert main(["report", str(first), str(others[1])]) == 2
    assert "run-vs-other-report exists already" in " ".join(capsys.readouterr().err.split())
    assert (page / "report.json").read_bytes() == before
