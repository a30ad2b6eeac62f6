"""The suite is asked once, whoever asks and however often they are stopped."""

import json

import numpy as np
import pytest

from pubc.cli.main import main as pubc_command
from pubc.engine import open_engine
from pubc.experiments.record_files import RecordFiles
from pubc.experiments.stage_cache import Cache
from pubc.experiments.stage_versions import versions
from pubc.experiments.trust import answers, questions
from pubc.experiments.trust.answers import MEASURES, SuitePlan, answer_all
from pubc.experiments.trust.judging import judge, rightness
from pubc.pu.recipes import get_recipe, with_settings
from pubc.report.tables import lines, read_table
from pubc.report.tables.table_head import ALL
from tests.experiments.tiny import AUTO


def plan(folder, **rest) -> SuitePlan:
    return SuitePlan(Cache(folder / "cache", versions()), 1, quick=True, only="tiny", **rest)


def oracle(question, *, device, workers):
    """Somebody who knows the answer, and is slow to say so."""
    unsure = np.zeros(len(question.mixed), bool)
    unsure[:3] = True
    kept = question.truth & ~unsure
    return {**rightness(question, kept, unsure, sound=True), "status": "converged", "seconds": 1.0}


@pytest.fixture
def asked(monkeypatch):
    """The names of the questions that were judged."""
    names = []

    def note(question, **rest):
        names.append(question.name)
        return oracle(question, **rest)

    monkeypatch.setattr(answers, "judge", note)
    return names


def ask(chosen: SuitePlan, **rest) -> list:
    with open_engine("serial") as engine:
        return list(answer_all(chosen, engine, **rest))


def test_answers_are_records_and_are_not_asked_for_again(tmp_path, asked):
    chosen = plan(tmp_path)
    first = ask(chosen)
    assert len(asked) == 2
    assert [now.records for now in first] == [0, 1, 2]
    assert (first[-1].done, first[-1].total, first[-1].cells) == (2, 2, 2)
    assert [now.total for now in ask(chosen)] == [0]
    records = [chosen.record(cell).document() for cell in chosen.cells()]
    assert {one["row"] for one in records} == {"tiny piles"}
    assert {one["column"] for one in records} == set(asked)
    assert all(one["cell"]["data"] is None for one in records)


def test_a_question_that_fails_is_a_record_and_can_be_asked_again(tmp_path, monkeypatch, asked):
    def refuse(question, **rest):
        raise ValueError("no")

    chosen = plan(tmp_path)
    with monkeypatch.context() as patch:
        patch.setattr(answers, "judge", refuse)
        ask(chosen)
    values = [chosen.values(cell) for cell in chosen.cells()]
    assert [one["failed"] for one in values] == [{"kind": "ValueError", "message": "no"}] * 2
    assert [now.total for now in ask(chosen)] == [0]
    assert ask(chosen, retry_failed=True)[-1].done == 2
    assert len(asked) == 2


def test_the_table_shows_every_measure_of_every_family_and_of_all(tmp_path, asked):
    chosen = plan(tmp_path)
    ask(chosen)
    RecordFiles(tmp_path / "records", chosen, "pubc reproduce trust").write(1.0)
    sheet = read_table(tmp_path / "records", "trust").sheet
    assert [row.name for row in sheet.rows] == ["tiny piles", ALL]
    assert sheet.columns == tuple(MEASURES)
    places = sheet.rows[0].places
    assert places["sound"].mean == places["coverage"].mean == 1.0
    assert places["precision"].mean == 1.0
    assert places["falsely confident"].mean == 0.0
    assert 0.1 < places["unsure"].mean < 0.3
    assert any(ALL in line for line in lines(sheet))


def test_what_is_skipped_is_not_in_the_plan(tmp_path):
    names = [cell.column for cell in plan(tmp_path, skip="arm").cells()]
    assert names == ["pick-place 12 trajectories, 2 seeds, draw 1"]


def test_files_count_by_their_content(tmp_path):
    from tests.experiments.test_trust_questions import scripted

    def keys(seed_counts):
        answers.hash_once.cache_clear()
        path = scripted(tmp_path / "push.npz", seed_counts)
        cache = Cache(tmp_path / "cache", versions())
        chosen = SuitePlan(cache, 1, files={"trifinger-push": path}, only="TriFinger")
        return [chosen.identity(cell)["data"] for cell in chosen.cells()]

    one, two = keys({"expert": 12, "weak": 12}), keys({"expert": 12, "weak": 14})
    assert None not in one
    assert set(one).isdisjoint(two)


def test_the_command_asks_writes_and_lists(tmp_path, asked, capsys):
    command = ["reproduce", "trust", "--quick", "--only", "tiny", "--out", str(tmp_path)]
    assert pubc_command([*command, "--json"]) == 0
    document = json.loads(capsys.readouterr().out)
    assert (document["scale"], document["cells"], document["failed"]) == ("quick", 2, 0)
    head = json.loads((tmp_path / "records" / "trust.json").read_text())
    assert head["command"] == "pubc reproduce trust --quick --only 'tiny'"
    assert pubc_command([*command, "--list", "--json"]) == 0
    cells = json.loads(capsys.readouterr().out)["cells"]
    assert [one["state"] for one in cells] == ["finished"] * 2
    assert len(asked) == 2


def test_quick_is_for_suites_and_tables_that_have_it(tmp_path, capsys):
    assert pubc_command(["reproduce", "seeds", "--quick", "--out", str(tmp_path)]) == 2
    told = capsys.readouterr().err
    assert "--quick is for trust, segments, steps; seeds has --scale" in " ".join(told.split())


def sample(family: str, name: str):
    (spec,) = questions(quick=False, data={}, draws=1, only=f"{family}, {name}, draw 1")
    return spec.make()


def test_falsely_confident_is_sound_and_wrong():
    question = sample("tiny piles", "pick-place 20 trajectories, 3 seeds")
    nobody, truth = np.zeros(20, bool), question.truth
    assert not rightness(question, truth, nobody, sound=True)["falsely_confident"]
    assert rightness(question, ~truth, nobody, sound=True)["falsely_confident"]
    assert not rightness(question, ~truth, nobody, sound=False)["falsely_confident"]
    values = rightness(question, nobody, nobody, sound=False)
    assert (values["accuracy"], values["recall"], values["precision"]) == (0.5, 0.0, None)
    # What it says nothing about it cannot be wrong about.
    wrong = truth.copy()
    wrong[:3] = ~wrong[:3]
    assert not rightness(question, wrong, np.arange(20) < 3, sound=True)["falsely_confident"]


def test_one_policy_may_not_lose_a_single_trajectory():
    question = sample("one policy only", "grid errand")
    kept, nobody = np.ones(80, bool), np.zeros(80, bool)
    assert not rightness(question, kept, nobody, sound=True)["falsely_confident"]
    kept[4] = False
    values = rightness(question, kept, nobody, sound=True)
    assert values["falsely_confident"]
    assert values["covered"] is None


def test_the_filter_is_asked():
    small = with_settings(get_recipe("auto"), AUTO)
    question = sample("tiny piles", "pick-place 12 trajectories, 2 seeds")
    values = judge(question, recipe=small, device="cpu")
    assert 0 <= values["accuracy"] <= 1
    assert isinstance(values["sound"], bool)
    assert values["seconds"] > 0
    json.dumps(values, allow_nan=False)
