"""`pubc train`, `evaluate`, `compare`, `export`: exit codes, sentences and documents."""

import json
from pathlib import Path

import pytest

import pubc
from pubc.errors import EnvironmentFailure, UsageError
from pubc.formats import write_inside
from pubc.policies.policy_folder import save
from pubc.storage import seal
from tests.cli.calling import run_line
from tests.policies.sets import random_policy, tiny
from tests.report.build import make_run

pytest.importorskip("gymnasium")
pytestmark = pytest.mark.usefixtures("in_folder")


@pytest.fixture
def data(in_folder: Path) -> Path:
    pubc.save("data.npz", tiny(observations=3, actions=1))
    return in_folder / "data.npz"


def test_a_policy_is_trained_evaluated_compared_and_exported(data: Path, capsys):
    pytest.importorskip("onnxruntime")
    code, out, err = run_line("train data.npz --out a --epochs 2", capsys)
    assert code == 0
    assert "learned from" in out
    assert "epochs" in err
    code, out, _ = run_line("train data.npz --out b --algo 50%bc --epochs 1 --json", capsys)
    assert code == 0
    assert json.loads(out)["learner"] == "50%bc"

    words = "--env Pendulum-v1 --episodes 3"
    code, out, err = run_line(
        f"evaluate a {words} --reference -2000 0 --record r.jsonl --json", capsys
    )
    document = json.loads(out)
    assert (code, err) == (0, "")
    assert document["environment"] == "Pendulum-v1"
    assert document["score"] == pytest.approx((document["return"]["mean"] + 2000) / 2000)
    assert {"mean", "std", "interval"} <= set(document["return"])

    code, out, _ = run_line(f"compare a b {words} --plot c.svg --record r.jsonl", capsys)
    assert code == 0
    assert "against the first" in out
    assert Path("c.svg").read_text().startswith("<?xml")
    assert len(Path("r.jsonl").read_text().splitlines()) == 3

    code, out, _ = run_line("export a a.onnx --json", capsys)
    assert code == 0
    assert json.loads(out)["max_difference"] <= 1e-5


def test_a_policy_is_evaluated_on_the_way_and_the_report_draws_it(data: Path, capsys):
    from pubc.report.policies import policies

    for seed in (0, 1):
        words = "--updates 16 --batch-size 64 --evaluate-every 8 --env Pendulum-v1"
        code, _, _ = run_line(
            f"train data.npz --out p{seed} --random-seed {seed} {words} --evaluate-episodes 2",
            capsys,
        )
        assert code == 0
        assert run_line(f"verify p{seed}", capsys)[0] == 0
    found = policies([Path("p0"), Path("p1")], [])
    assert found is not None
    (curve,) = (one for one in found["curves"] if one["metric"] == "return")
    assert (curve["seeds"], curve["x"], found["xLabel"]) == (2, [8.0, 16.0], "updates")
    assert curve["low"][-1] < curve["high"][-1] < 0
    (loss,) = (one for one in found["curves"] if one["metric"] == "loss")
    assert loss["x"] == [8.0, 16.0]


@pytest.mark.parametrize("seconds", ["nan", "-1"])
def test_no_time_between_checkpoints_is_refused(data: Path, seconds: str, capsys):
    words = f"train data.npz --out p --epochs 1 --checkpoint-seconds={seconds}"
    code, _, err = run_line(words, capsys)
    assert (code, err) == (2, f"pubc: --checkpoint-seconds is from 0 on. Got {float(seconds)}.\n")
    assert not Path("p").exists()


def test_evaluating_on_the_way_needs_to_know_where(data: Path, capsys):
    for words in ("--evaluate-every 100", "--env Pendulum-v1"):
        code, _, err = run_line(f"train data.npz --out p {words}", capsys)
        assert code == 2
        assert "--evaluate-every and --env go together" in err
    code, _, err = run_line("train data.npz --out p --evaluate-every 9 --env antt", capsys)
    assert code == 2
    assert "ant" in err


def test_what_a_filter_kept_is_trained_on(data: Path, capsys):
    made = make_run(Path("RUN"), 12, 1)
    (made / "kept.npz").unlink()
    write_inside(made / "kept.npz", tiny(trajectories=7, observations=3, actions=1))
    seal(made, kind="filter")
    code, out, _ = run_line("train RUN --out p --epochs 1 --json", capsys)
    assert code == 0
    assert json.loads(out)["trajectories"] == 7
    document = json.loads((made / "run.json").read_text())
    document |= {"status": "no_valley", "kept_path": None}
    (made / "run.json").write_text(json.dumps(document))
    seal(made, kind="filter")
    code, _, err = run_line("train RUN --out q", capsys)
    assert (code, "kept no trajectories" in err) == (3, True)


@pytest.mark.parametrize(
    ("words", "code", "said"),
    [
        ("train data.npz --out p --algo bcc", 2, "Did you mean 'bc'"),
        ("train data.npz --out p --positives data.npz", 2, "belong to dwbc"),
        ("train data.npz --out p --algo dwbc", 2, "--positives"),
        ("train data.npz --out p --algo dwbc --positives wide.npz", 3, "has 3 observation and 1"),
        ("train data.npz --out p --device cuda", 2, "No CUDA device"),
        ("train data.npz --out p --tensorboard t", 2, "the extra 'tensorboard'"),
        ("train data.npz --out p --wandb t", 2, "the extra 'wandb'"),
        ("train absent.npz --out p", 2, "absent.npz"),
        ("evaluate absent --env Pendulum-v1", 2, "no such policy folder"),
        ("evaluate wide", 2, "--env"),
        ("evaluate wide --env Pendulum-v1 --episodes 1", 3, "trained for another environment"),
        ("evaluate wide --env Pendulm-v1 --episodes 1", 2, "Did you mean 'Pendulum-v1'"),
        ("compare wide --env Pendulum-v1", 2, "two policies or more"),
        ("compare wide other --env Pendulum-v1 --plot x.jpg", 2, ".png or .svg"),
        ("export wide x.onx", 2, "Did you mean '.onnx'"),
        ("export ant/expert x.pt", 2, "already plain files"),
    ],
)
def test_errors_are_one_sentence_with_the_right_code(
    words: str, code: int, said: str, data: Path, capsys, monkeypatch: pytest.MonkeyPatch
):
    import sys

    monkeypatch.setitem(sys.modules, "torch.utils.tensorboard", None)
    monkeypatch.setitem(sys.modules, "wandb", None)
    pubc.save("wide.npz", tiny())
    save(Path("wide"), random_policy(), about={})
    before = sorted(Path().rglob("*"))
    found, out, err = run_line(words, capsys)
    assert found == code
    assert said in err
    assert err.count("\n") == 1
    assert out == ""
    assert sorted(Path().rglob("*")) == before


def test_a_film_of_a_policy(in_folder: Path, capsys, monkeypatch: pytest.MonkeyPatch):
    pytest.importorskip("imageio")
    import numpy as np

    from pubc.cli.policies import film

    def drawn(environment: str, actions: np.ndarray, start: int) -> list[np.ndarray]:
        assert len(actions) == 200
        return [np.full((8, 8, 3), shade, np.uint8) for shade in (0, 100, 200)]

    monkeypatch.setattr(film, "_frames", drawn)
    save(in_folder / "p", random_policy(3, 1), about={})
    words = "evaluate p --env Pendulum-v1 --episodes 1 --json --frames"
    assert run_line(f"{words} x.gif", capsys)[0] == 0
    assert Path("x.gif").read_bytes().startswith(b"GIF8")
    assert run_line(f"{words} pictures", capsys)[0] == 0
    assert len(list(Path("pictures").glob("*.png"))) == 3


def test_an_environment_that_cannot_be_drawn_says_so(
    in_folder: Path, capsys, monkeypatch: pytest.MonkeyPatch
):
    import gymnasium

    save(in_folder / "p", random_policy(3, 1), about={})
    make = gymnasium.make

    def blind(id: str, **given):
        if "render_mode" in given:
            raise RuntimeError("no screen")
        return make(id, **given)

    monkeypatch.setattr(gymnasium, "make", blind)
    code, _, err = run_line(
        "evaluate p --env Pendulum-v1 --episodes 1 --frames x.gif --json", capsys
    )
    assert code == 4
    assert "could not draw Pendulum-v1 (no screen)" in err
    assert not Path("x.gif").exists()


def test_metrics_arrive_in_tensorboard(data: Path, capsys):
    events = pytest.importorskip("tensorboard.backend.event_processing.event_accumulator")
    code, _, _ = run_line("train data.npz --out p --epochs 3 --tensorboard board", capsys)
    assert code == 0
    found = events.EventAccumulator("board").Reload()
    written = [json.loads(line) for line in Path("p/metrics.jsonl").read_text().splitlines()]
    assert "loss" in found.Tags()["scalars"]
    told = [(point.step, point.value) for point in found.Scalars("loss")]
    assert told == [(line["epoch"], pytest.approx(line["loss"])) for line in written]


def test_metrics_are_sent_to_weights_and_biases(data: Path, capsys, monkeypatch):
    """The library itself is not needed: what it would be told is what is checked."""
    import sys
    import types

    told: list[dict] = []
    began: list[dict] = []

    def init(**given):
        began.append(given)
        return types.SimpleNamespace(log=told.append, finish=lambda: told.append({"end": True}))

    monkeypatch.setitem(sys.modules, "wandb", types.SimpleNamespace(init=init))
    code, _, _ = run_line("train data.npz --out p --epochs 2 --wandb mine", capsys)
    assert code == 0
    (given,) = began
    assert given["project"] == "mine"
    written = [json.loads(line) for line in Path("p/metrics.jsonl").read_text().splitlines()]
    assert [one["loss"] for one in told if "loss" in one] == [one["loss"] for one in written]
    assert told[-1] == {"end": True}


def test_e6_weights_and_biases_gets_the_whole_configuration_and_the_returns(
    data: Path, capsys, monkeypatch
):
    import sys
    import types

    told: list[dict] = []
    began: list[dict] = []

    def init(**given):
        began.append(given)
        return types.SimpleNamespace(log=told.append, finish=lambda: None)

    monkeypatch.setitem(sys.modules, "wandb", types.SimpleNamespace(init=init))
    words = "--updates 16 --batch-size 64 --evaluate-every 8 --env Pendulum-v1"
    line = f"train data.npz --out p --wandb mine --evaluate-episodes 2 --random-seed 3 {words}"
    assert run_line(line, capsys)[0] == 0
    config = began[0]["config"]
    written = json.loads(Path("p/config.json").read_text())
    assert config["options"] == written["options"]
    assert config["data"] == written["data"]
    assert config["random_seed"] == 3
    assert {**config["training"], "epochs": written["training"]["epochs"]} == written["training"]
    assert config["command"]["evaluate_every"] == 8
    lines = Path("p/evaluations.jsonl").read_text().splitlines()
    earned = [json.loads(line)["return"]["mean"] for line in lines]
    assert [one["return/mean"] for one in told if "return/mean" in one] == earned
    assert earned


def test_e6_tensorboard_gets_the_configuration_and_the_returns(data: Path, capsys):
    events = pytest.importorskip("tensorboard.backend.event_processing.event_accumulator")
    words = "--updates 16 --batch-size 64 --evaluate-every 8 --env Pendulum-v1"
    line = f"train data.npz --out p --tensorboard board --evaluate-episodes 2 {words}"
    assert run_line(line, capsys)[0] == 0
    found = events.EventAccumulator("board").Reload()
    assert {"return/mean", "return/std", "loss"} <= set(found.Tags()["scalars"])
    (text,) = found.Tensors("configuration/text_summary")
    told = text.tensor_proto.string_val[0].decode()
    assert json.loads("".join(told.splitlines()))["learner"] == "bc"


def test_several_random_seeds_are_trained_at_once(data: Path, capsys):
    code, out, err = run_line(
        "train data.npz --out many --random-seeds 0-1,4 --epochs 2 --json", capsys
    )
    assert (code, err) == (0, "")
    assert json.loads(out)["random_seeds"] == [0, 1, 4]
    assert sorted(path.name for path in Path("many").iterdir()) == ["seed-0", "seed-1", "seed-4"]
    assert run_line("verify many/seed-4", capsys)[0] == 0
    assert json.loads(Path("many/seed-4/config.json").read_text())["random_seed"] == 4


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        ("--random-seeds a", "given as 0-9"),
        ("--random-seeds 0,0", "each once"),
        ("--random-seeds 3-1", "at least one"),
        ("--random-seeds 0-1 --algo dt", "one random seed at a time"),
        ("--random-seeds 0-1 --evaluate-every 9 --env Pendulum-v1", "one --random-seed"),
    ],
)
def test_random_seeds_that_mean_nothing_are_refused(data: Path, capsys, words: str, sentence: str):
    code, _, err = run_line(f"train data.npz --out many {words}", capsys)
    assert code == 2
    assert sentence in err


@pytest.mark.parametrize("seeds", ["--random-seed 0", "--random-seeds 0-1"])
def test_a_folder_of_others_is_refused_before_anything_is_read(in_folder, capsys, seeds):
    for place in ("mine", "mine/seed-1"):
        Path(place).mkdir()
        Path(place, "thesis.txt").write_text("years of work")
    code, _, err = run_line(f"train missing.npz --out mine --force {seeds}", capsys)
    assert code == 2
    assert "--force does not replace it" in err
    assert Path("mine/seed-1/thesis.txt").exists()


def test_robots_of_gymnasium_can_be_filmed_and_trifinger_cannot(tmp_path):
    from pubc.cli.policies.film import check_film

    for name in ("ant", "humanoid", "hopper", "Swimmer-v5"):
        check_film(name, tmp_path / "film.gif")
    with pytest.raises(UsageError, match="trifinger-push cannot be drawn"):
        check_film("trifinger-push", tmp_path / "film.gif")


def test_a_damaged_checkpoint_is_named_and_training_goes_on_without_it(
    data: Path, capsys, monkeypatch
):
    words = "train data.npz --out a --epochs 3 --checkpoint-seconds 0"

    def full(*given, **named):
        raise EnvironmentFailure("The disk is full.")

    with monkeypatch.context() as at_the_end:
        at_the_end.setattr("pubc.policies.training_run.save", full)
        assert run_line(words, capsys)[0] == 4
    newest = max(Path("a.training").glob("checkpoint-*"))
    newest.write_bytes(newest.read_bytes()[:-1] + b"?")
    code, _, err = run_line(f"{words} --resume", capsys)
    assert code == 2
    assert f"holds {newest.name}, which is not as pubc wrote it" in err
    newest.rename("moved")
    assert run_line(f"{words} --resume", capsys)[0] == 0
    assert not Path("a.training").exists()
