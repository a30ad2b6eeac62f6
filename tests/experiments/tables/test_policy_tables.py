"""The tables of policies: every learner's family through `pubc reproduce`, at a tiny scale."""

import json
import shutil
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch

from pubc.experiments import cell as cells
from pubc.experiments import get_table
from pubc.experiments.tables.learners import learner
from pubc.metrics import REFERENCES
from pubc.results import read
from tests.cli.calling import run

gymnasium = pytest.importorskip("gymnasium")
pytest.importorskip("mujoco")
pytest.importorskip("d3rlpy")

COLUMNS = {"Data", "10 % BC", "50 % BC", "BC", "DT", "IQL", "CRR", "DWBC", "PUBC"}


@pytest.fixture(scope="module")
def collected(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Datasets that one test had collected, for the next one that asks for the same."""
    return tmp_path_factory.mktemp("collected")


@pytest.fixture
def tiny(brisk, collected: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[None]:
    small = replace(
        cells.SCALES["small"],
        trajectories_per_source=3,
        steps_per_source=None,
        seed_pool=500,
        updates=5,
        evaluation_trajectories=1,
    )
    monkeypatch.setitem(cells.SCALES, "small", small)
    # An ant stands for a thousand steps, whatever it has learned.
    monkeypatch.setattr(gymnasium.spec("Ant-v5"), "max_episode_steps", 100)
    monkeypatch.chdir(tmp_path)
    made = shutil.copytree(collected, Path("made/cache/datasets"))
    yield
    shutil.copytree(made, collected, dirs_exist_ok=True)


def reproduced(capsys, *words: str) -> list[dict]:
    code, out, err = run(
        capsys, "reproduce", *words, "--random-seeds", 1, "--out", "made", "--json"
    )
    assert (code, err) == (0, "")
    document = json.loads(out)
    assert len(read(Path(document["records"]))) == len(document["results"])
    return document["results"]


@pytest.mark.usefixtures("tiny")
def test_every_column_of_policy_scores_has_a_score(capsys):
    found = {one["column"]: one for one in reproduced(capsys, "policy-scores", "--only", "Ant E+W")}
    assert set(found) == COLUMNS
    low, high, _ = REFERENCES["ant"]
    for one in found.values():
        earned = (one["return"]["mean"] - low) / (high - low)
        assert one["score"] == pytest.approx(earned, abs=1e-9)
    learned = {name: one["learned_from"]["trajectories"] for name, one in found.items()
               if name != "Data"}  # fmt: skip
    everything = dict.fromkeys(("BC", "DT", "IQL", "CRR", "DWBC"), 6)
    assert learned == {**everything, "10 % BC": 1, "50 % BC": 3, "PUBC": learned["PUBC"]}
    assert 0 < learned["PUBC"] < 6
    again = reproduced(capsys, "policy-scores", "--only", "Ant E+W")
    assert again == list(found.values())


@pytest.mark.usefixtures("tiny")
def test_a_table_is_trained_in_stacks_and_played_by_another_command(capsys):
    words = ["policy-scores", "--only", "Ant E+W", "--columns", "50 % BC,BC,IQL", "--updates", "4"]
    assert reproduced(capsys, *words, "--stack", "4", "--train-only") == []
    made = {path.name for path in Path("made/cache/policies").iterdir()}
    assert len(made) == 3
    found = {one["column"]: one for one in reproduced(capsys, *words)}
    assert {path.name for path in Path("made/cache/policies").iterdir()} == made
    assert {name: one["stack"]["members"] for name, one in found.items()} == {
        "50 % BC": 2,
        "BC": 2,
        "IQL": 1,
    }
    assert {one["cell"]["learner"]["options"]["updates"] for one in found.values()} == {4}
    head = json.loads(Path("made/records/policy-scores.json").read_text())
    assert head["scaled_down"].endswith("Every learner makes 4 updates.")
    assert "--updates 4" in head["command"]
    assert "--columns '50 % BC,BC,IQL'" in head["command"]


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (["policy-scores", "--columns", "ICL"], "IQL"),
        (["policy-scores", "--stack", "-1"], "--stack is 0 or more"),
        (["policy-scores", "--updates", "0"], "--updates at least 1"),
        (["trust", "--columns", "x"], "are for tables"),
    ],
)
def test_choices_that_make_no_sense_are_refused_in_words(capsys, tmp_path, words, told):
    code, _, err = run(capsys, "reproduce", *words, "--out", tmp_path)
    assert code == 2
    assert told in err


@pytest.mark.usefixtures("tiny")
def test_d4rl_has_a_score_and_a_curve_with_and_without_the_filter(capsys):
    found = reproduced(capsys, "d4rl", "--only", "hopper", "--skip", "IQL")
    assert {(one["row"], one["column"]) for one in found} == {
        (row, column)
        for row in ("hopper with PU", "hopper without PU")
        for column in ("BC", "PLAS", "TD3+BC")
    }
    for one in found:
        assert one["curve"]["panel"] == f"hopper, {one['column']}"
        assert one["row"] == f"hopper {one['curve']['line']}"
        assert len(one["curve"]["x"]) == len(one["curve"]["y"]) >= 1
    sizes = {one["row"]: one["learned_from"]["trajectories"] for one in found}
    assert sizes["hopper with PU"] < sizes["hopper without PU"] == 6


def test_the_same_trajectories_make_the_same_policy_once(tmp_path, monkeypatch):
    """Two mixtures of which a filter found the same trajectories share what was learned."""
    from pubc.experiments.stage_cache import Cache
    from pubc.experiments.stage_versions import versions
    from pubc.experiments.stages import learn
    from pubc.formats import save
    from tests.policies.sets import tiny as trajectories

    both = trajectories(trajectories=6, observations=3, actions=1)
    save(tmp_path / "whole.npz", both)
    save(tmp_path / "part.npz", both[:4])
    chosen = cells.LearnerSpec("bc", "Pendulum-v1", {"epochs": 1}, 1, reference=(-2000.0, 0.0))
    dataset = cells.DatasetSpec(name="mine", sha256="0")
    asked = cells.Cell("row", "column", dataset, learner=chosen)
    cache = Cache(tmp_path / "cache", versions())
    first = learn.learn(asked, tmp_path / "part.npz", None, cache)
    monkeypatch.setattr(learn, "_train", lambda *_: pytest.fail("it learned again"))
    mask = [True] * 4 + [False] * 2
    assert learn.learn(asked, tmp_path / "whole.npz", np.array(mask), cache) == first


@pytest.mark.skipif(torch.cuda.is_available(), reason="has a CUDA device of its own")
def test_what_learned_on_a_gpu_elsewhere_is_played_here(tmp_path, monkeypatch):
    from pubc import policies
    from pubc.errors import UsageError
    from pubc.experiments.stage_cache import Cache
    from pubc.experiments.stage_versions import versions
    from pubc.experiments.stages import learn
    from pubc.formats import save
    from tests.policies.sets import tiny as trajectories

    save(tmp_path / "mine.npz", trajectories(trajectories=6, observations=3, actions=1))
    chosen = cells.LearnerSpec("bc", "Pendulum-v1", {"epochs": 1}, 1, reference=(-2000.0, 0.0))
    asked = cells.Cell("row", "x", cells.DatasetSpec(name="mine", sha256="0"), learner=chosen)
    cache = Cache(tmp_path / "cache", versions(), "cuda")
    with pytest.raises(UsageError, match="No CUDA device"):
        learn.learn(asked, tmp_path / "mine.npz", None, cache)
    with monkeypatch.context() as elsewhere:
        real = policies.trainer
        elsewhere.setattr(policies, "trainer", lambda *a, **k: real(*a, **{**k, "device": "cpu"}))
        elsewhere.setattr(learn, "_evaluate", lambda *_: {})
        learn.learn(asked, tmp_path / "mine.npz", None, cache)
    assert learn.learn(asked, tmp_path / "mine.npz", None, cache)["episodes"] == 1


def test_the_column_data_counts_only_the_trajectories_of_its_mixture(tmp_path):
    from pubc.experiments.stage_cache import Cache
    from pubc.experiments.stage_versions import versions
    from pubc.experiments.stages.learn import DATA, learn
    from pubc.formats import save
    from tests.policies.sets import tiny as trajectories

    both = trajectories(trajectories=6, observations=3, actions=1)
    save(tmp_path / "whole.npz", both)
    chosen = cells.LearnerSpec(DATA, "Pendulum-v1", {}, 1, reference=(-2000.0, 0.0))
    asked = cells.Cell("row", "Data", cells.DatasetSpec(name="mine", sha256="0"), learner=chosen)
    part = np.arange(6) < 2
    found = learn(asked, tmp_path / "whole.npz", part, Cache(tmp_path, versions()))
    assert found["episodes"] == 2
    assert found["return"]["mean"] == pytest.approx(both[part].total_rewards().mean())


def test_nothing_kept_is_a_reason_not_a_crash(tmp_path):
    from pubc.errors import DataError
    from pubc.experiments.stage_cache import Cache
    from pubc.experiments.stage_versions import versions
    from pubc.experiments.stages.learn import learn
    from pubc.formats import save
    from tests.policies.sets import tiny as trajectories

    save(tmp_path / "data.npz", trajectories(trajectories=3, observations=3, actions=1))
    asked = cells.Cell(
        "row",
        "column",
        cells.DatasetSpec(name="mine", sha256="0"),
        learner=cells.LearnerSpec("bc", "Pendulum-v1"),
    )
    with pytest.raises(DataError, match="kept no trajectories"):
        learn(asked, tmp_path / "data.npz", np.zeros(3, bool), Cache(tmp_path, versions()))


def test_the_paper_scale_has_the_papers_numbers():
    paper, small = cells.SCALES["paper"], cells.SCALES["small"]
    assert learner("iql", "ant", paper).options == {"recipe": "paper", "updates": 1_000_000}
    assert learner("dt", "ant", paper).evaluation_trajectories == 100
    assert learner("bc", "ant", paper).options == {"recipe": "paper"}
    assert learner("iql", "ant", small).options["updates"] == 3 * small.updates


@pytest.mark.parametrize("name", ["policy-scores", "d4rl"])
def test_every_cell_stands_in_the_table_beside_the_papers_figure(name: str):
    table = get_table(name)
    listed = table.cells(cells.SCALES["small"], 2, {})
    places = [(one.row, one.column, one.random_seed) for one in listed]
    assert len(set(places)) == len(places)
    assert {one.row for one in listed} == set(table.rows)
    assert {one.column for one in listed} == set(table.columns)
    assert all(one.paper is not None and one.measure == "score" for one in listed)


def test_totals_of_the_paper_are_the_sums_of_what_was_copied():
    """The paper prints totals over rows that we have, too: a slip of the pen would show."""
    from pubc.experiments.tables.d4rl_scores import PAPER as D4RL
    from pubc.experiments.tables.policy_scores import PAPER as SCORES

    printed = {
        "Ant": (2.22, 2.84, 2.56, 2.03, 2.76, 3.00, 2.12, 2.95, 3.16),
        "Humanoid": (2.76, 2.23, 2.48, 1.47, 3.02, 1.57, 1.85, 2.88, 3.40),
        "TriFinger-Sim": (1.44, 1.02, 1.24, 1.15, 1.53, 1.34, 1.32, 1.51, 1.72),
    }
    for body, totals in printed.items():
        rows = [r for name, r in SCORES.items() if name.startswith(body) and None not in r]
        for total, *parts in zip(totals, *rows, strict=True):
            assert sum(parts) == pytest.approx(total, abs=0.035)
    for row, total in zip(D4RL.values(), (3.72, 2.92, 3.51, 2.07, 4.37, 3.92), strict=True):
        assert sum(row) == pytest.approx(total, abs=0.015)
