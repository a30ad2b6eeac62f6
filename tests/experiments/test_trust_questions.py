"""The questions of the suite keep their promises: the answer is known, nothing gives it away."""

import pickle
from collections import Counter
from pathlib import Path

import numpy as np
import pytest

import pubc
from pubc.errors import DataError
from pubc.experiments.trust import Question, QuestionSpec, questions
from pubc.experiments.trust.families.unanswerable_families import unanswerable_families
from pubc.experiments.trust.pile import Asked
from pubc.experiments.trust.suite import QUICK
from pubc.experiments.trust.tasks.behaviour import EXPERT, FAULTS, LAPSES, Behaviour, faulty
from pubc.experiments.trust.tasks.mixture import TASKS
from pubc.experiments.trust.tasks.recording import OWN, Setting, record

ALL = list(questions(quick=False, data={}))
BUILT_IN = [(spec.family, spec.name) for spec in ALL]


def named(spec: QuestionSpec) -> tuple[str, str]:
    return spec.family, spec.name


@pytest.fixture(scope="module")
def quick() -> list[Question]:
    return [spec.make() for spec in questions(quick=True, data={})]


def made(family: str, name: str) -> Question:
    (spec,) = questions(quick=False, data={}, draws=1, only=f"{family}, {name}, draw 1")
    return spec.make()


def per_trajectory(question: Question, steps: np.ndarray) -> list[np.ndarray]:
    return np.split(steps, question.mixed.offsets[1:-1])


def test_there_are_hundreds_each_with_a_name_of_its_own():
    assert len(set(BUILT_IN)) == len(BUILT_IN) >= 400


def test_the_quick_suite_asks_a_little_of_every_family_that_needs_nothing(quick):
    assert len(quick) == len(QUICK) == 30
    assert {q.family for q in quick} >= {s.family for s in ALL} - {
        "single faults",
        "thousands of short ones",
    }
    assert max(q.mixed.steps for q in quick) < 15_000


def test_only_picks_families_and_names():
    found = list(questions(quick=False, data={}, only="Wrong SEEDS, arm"))
    assert {spec.family for spec in found} == {"wrong seeds"}
    assert all(spec.name.startswith("arm tracing") for spec in found)


def test_a_question_is_the_same_every_time_and_in_another_process(quick):
    for spec, before in zip(questions(quick=True, data={}), quick, strict=True):
        if spec.family in ("discrete actions", "offsets", "one policy only", "wrong seeds"):
            again = pickle.loads(pickle.dumps(spec)).make()
            for name in ("observations", "actions"):
                one, other = (getattr(q.mixed.columns, name) for q in (before, again))
                assert one.tobytes() == other.tobytes()
            assert (again.seeds, again.bad) == (before.seeds, before.bad)
            assert (again.truth == before.truth).all()


def test_draws_differ():
    specs = list(questions(quick=False, data={}, draws=2, only="tiny piles, pick-place 8 "))
    one, two = (spec.make() for spec in specs)
    assert not np.array_equal(one.mixed.columns.actions, two.mixed.columns.actions)


def test_seeds_are_the_experts_unless_they_are_called_wrong(quick):
    for q in quick:
        assert q.truth.shape == (len(q.mixed),)
        assert {seed for seed in q.seeds if not q.truth[seed]} == set(q.wrong_seeds)
        assert not q.truth[list(q.bad)].any()
        assert not set(q.bad) & set(q.seeds)
        assert len(set(q.seeds)) < len(q.mixed)


def test_steps_of_the_expert_are_its_own_and_others_have_some_that_are_not(quick):
    for q in quick:
        assert q.expert_steps is not None
        for own, expert in zip(per_trajectory(q, q.expert_steps), q.truth, strict=True):
            assert own.all() if expert else not own.all()


def test_nothing_in_the_pile_says_who_acted(quick):
    for q in quick:
        assert not q.mixed.columns.extras
        assert q.mixed.columns.rewards is None
        assert q.mixed.ids.tolist() == [str(at) for at in range(len(q.mixed))]
        # The order says nothing: experts do not come first.
        assert q.truth.all() or not q.truth[: q.truth.sum()].all()


def test_piles_of_one_policy_have_nothing_to_drop_and_no_answer():
    for spec in ALL:
        if spec.family == "one policy only" and spec.name.endswith("draw 1"):
            q = spec.make()
            assert q.truth.all()
            assert not q.answerable
    assert all(not draft.build.asked.answerable for draft in unanswerable_families())


def test_seeds_from_part_of_the_tasks_leave_out_the_others():
    q = made("seeds from part of the tasks", "pick-place one policy in 2 tasks, seeds from 1")
    assert q.truth.all()
    assert set(q.mixed.sources[list(q.seeds)]) == {"shown"}
    starts = q.mixed.columns.observations[q.mixed.starts]
    side = starts[:, 7] > 0
    assert np.array_equal(side, q.mixed.sources == "shown")


def test_an_absent_expert_has_only_its_seeds():
    q = made("expert absent", "arm tracing 3 seeds, others 4")
    assert sorted(q.seeds) == np.flatnonzero(q.truth).tolist()
    assert not q.answerable


def test_wrong_seeds_of_two_others_have_an_answer_and_two_of_one_other_have_none():
    clear = made("wrong seeds", "pick-place 2 of 5 wrong, of two others")
    assert clear.answerable
    assert len(set(clear.mixed.sources[list(clear.wrong_seeds)])) == 2
    vote = made("wrong seeds", "pick-place 2 of 5 wrong, two policies")
    assert not vote.answerable
    assert len(vote.wrong_seeds) == 2


def test_repeated_seeds_are_repeated():
    q = made("repeated seeds", "arm tracing 3 and 2 again")
    assert sorted(Counter(q.seeds).values()) == [1, 1, 3]


@pytest.mark.parametrize("task", TASKS)
@pytest.mark.parametrize("fault", FAULTS)
def test_a_fault_is_marked_where_it_shows(task, fault):
    played = record(Setting(TASKS[task]), faulty(fault), 12, np.random.default_rng(3))
    assert len(played) == 12
    shares = [one.steps.extras[OWN].mean() for one in played]
    if fault in LAPSES:
        assert 0.2 < min(shares) <= max(shares) < 0.95
    else:
        assert max(shares) == 0


@pytest.mark.parametrize("task", TASKS)
def test_a_fault_too_small_to_see_is_refused(task):
    hardly = Behaviour("hardly", fault="slow", strength=(0.01, 0.01))
    with pytest.raises(DataError, match="too few"):
        record(Setting(TASKS[task]), hardly, 4, np.random.default_rng(0))


def test_the_expert_of_pick_place_succeeds_and_those_who_let_go_do_not():
    def success(behaviour: Behaviour) -> float:
        setting = Setting(TASKS["pick-place"])
        played = record(setting, behaviour, 40, np.random.default_rng(1))
        last = played.columns.observations[played.starts + played.lengths - 1]
        return float((np.linalg.norm(last[:, 7:9] - last[:, 10:12], axis=1) < 0.04).mean())

    assert success(EXPERT) > 0.95
    assert success(faulty("early")) < 0.2


def test_absolute_actions_are_nearly_a_copy_of_the_hand():
    q = made("absolute actions", "pick-place with detour, slow, shaky, aim, early")
    columns = q.mixed.columns
    for axis in range(3):
        both = np.corrcoef(columns.observations[:, axis], columns.actions[:, axis])
        assert both[0, 1] > 0.97


def test_discrete_actions_are_whole_numbers():
    for name in ("arm tracing with slow, shaky, aim", "grid errand, all kinds"):
        actions = made("discrete actions", name).mixed.columns.actions
        assert actions.dtype.kind == "i"
        assert actions.shape[1] == 1
        assert 3 <= len(np.unique(actions)) <= 14


def test_a_dimension_stands_still_for_the_expert_alone():
    q = made("constant dimensions", "arm tracing of the expert's actions")
    last = per_trajectory(q, q.mixed.columns.actions[:, -1])
    for values, expert in zip(last, q.truth, strict=True):
        assert (values.std() == 0) == expert


def test_a_second_session_has_seeds_of_both():
    q = made("offsets", "pick-place in a second session")
    assert len(set(q.mixed.sources[list(q.seeds)])) == 2
    assert q.truth.sum() == 40


def scripted(path: Path, counts: dict[str, int], steps: int = 12) -> Path:
    rng = np.random.default_rng(0)
    sources = np.repeat(list(counts), list(counts.values()))
    rows = len(sources) * steps
    timeouts = np.tile(np.arange(steps) == steps - 1, len(sources))
    np.savez(
        path,
        observations=rng.normal(size=(rows, 5)).astype(np.float32),
        actions=rng.normal(size=(rows, 4)).astype(np.float32),
        rewards=np.zeros(rows, np.float32),
        terminals=np.zeros(rows, bool),
        timeouts=timeouts,
        sources=sources,
        expert_steps=np.repeat(sources == "expert", steps) | (np.arange(rows) % 2 == 0),
    )
    return path


def test_given_files_become_questions(tmp_path):
    folder = tmp_path / "manipulation"
    folder.mkdir()
    kinds = ("detour", "early", "slow", "shaky", "aim")
    scripted(folder / "door-v3.npz", {"expert": 40, **dict.fromkeys(kinds, 20)})
    data = {
        "manipulation": folder,
        "human-operators": scripted(tmp_path / "people.npz", {"A": 6, "B": 5, "C": 2}),
        "trifinger-push": scripted(tmp_path / "push.npz", {"expert": 20, "weak": 20}),
        "trifinger-lift": scripted(tmp_path / "lift.npz", {"expert": 20, "other": 20}),
    }
    specs = [s for s in questions(quick=False, data=data, draws=1) if named(s) not in BUILT_IN]
    found = {spec.name: spec for spec in specs if spec.family == "real operators"}
    assert list(found) == ["A, 3 seeds, draw 1", "B, 3 seeds, draw 1"]
    door = {s.family: s.make() for s in specs if s.name.startswith("door")}
    whole = door["scripted manipulation"]
    assert (len(whole.mixed), whole.truth.sum(), len(whole.seeds)) == (140, 40, 5)
    assert set(door["local lapses"].mixed.sources) == {"expert", "detour", "early"}
    assert door["rare expert"].truth.sum() == 6
    assert door["one policy only"].truth.all()
    hands = {s.family: s.make() for s in specs if s.family.startswith("TriFinger")}
    assert hands["TriFinger push"].answerable
    assert not hands["TriFinger lift"].answerable
    assert hands["TriFinger push"].expert_steps is not None


def test_walking_robots_are_left_out_without_a_folder_or_a_simulator(tmp_path, monkeypatch):
    monkeypatch.setattr("pubc.experiments.trust.suite.can_simulate", lambda: False)
    found = questions(quick=False, data={}, cache=tmp_path)
    assert [named(spec) for spec in found] == BUILT_IN


def test_mixtures_of_walking_robots_are_cut_from_one_recording(tmp_path, monkeypatch):
    kinds = {"E+": 60, "E-": 60, "W": 60}
    recorded = pubc.load(scripted(tmp_path / "ant.npz", kinds))
    monkeypatch.setattr("pubc.experiments.trust.suite.can_simulate", lambda: True)
    monkeypatch.setattr(
        "pubc.experiments.trust.families.robot_recordings.record_robot",
        lambda cache, robot: recorded,
    )
    specs = questions(quick=False, data={}, cache=tmp_path, draws=1, only="locomotion, ant")
    made = {spec.name: spec.make() for spec in specs}
    assert len(made) == 12
    for seeds, size in (("1 seed", 30), ("2 seeds", 20), ("5 seeds", 40)):
        q = made[f"ant E+E+W+N, {seeds}, draw 1"]
        assert Counter(q.mixed.sources.tolist()) == dict.fromkeys(("E+", "E-", "W", "N"), size)
    q = made["ant E+E+W+N, 1 seed, draw 1"]
    assert q.mixed.sources[q.seeds[0]] == "E+"


def test_a_question_that_contradicts_itself_is_refused():
    q = made("tiny piles", "pick-place 8 trajectories, 2 seeds")
    with pytest.raises(DataError, match="contradict"):
        Question("f", "n", q.mixed, q.seeds, ~q.truth, True)
    with pytest.raises(DataError, match="truth"):
        Question("f", "n", q.mixed, q.seeds, q.truth[:-1], True)
    with pytest.raises(DataError, match="expert_steps"):
        Question("f", "n", q.mixed, q.seeds, q.truth, True, expert_steps=q.truth)
    assert Asked(3).experts == ("expert",)
