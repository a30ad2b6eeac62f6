"""Defects that users met, each by its code; a test here fails where the old behaviour returns."""

import json
import os
import re
import shlex
import subprocess
import sys
import tomllib
from importlib import metadata
from pathlib import Path

import h5py
import numpy as np
import pytest

import pubc
from pubc.cli.commands import COMMANDS
from pubc.errors import MissingExtraError
from tests.cli.calling import run

ROOT = Path(pubc.__file__).parents[2]
needs_checkout = pytest.mark.skipif(
    not (ROOT / "pyproject.toml").is_file(), reason="pubc is installed, not a checkout"
)


def project() -> dict:
    return tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]


@needs_checkout
def test_w9_an_extra_is_announced_with_a_line_that_works_in_a_checkout():
    line = str(MissingExtraError("Reading Parquet", "lerobot")).split("Install it with: ")[1]
    pip, verb, flag, bounds, target = shlex.split(line)
    assert (pip, verb, flag) == ("pip", "install", "--constraint")
    assert Path(bounds).is_file()
    folder, _, extra = target.partition("[")
    assert (Path(folder) / "pyproject.toml").is_file()
    assert extra.rstrip("]") in project()["optional-dependencies"]


def test_w9_outside_a_checkout_the_packages_themselves_are_named(monkeypatch, tmp_path):
    from pubc import errors

    monkeypatch.setattr(errors, "__file__", str(tmp_path / "a/b/c/errors.py"))
    told = ["numpy>=2.0", "pyarrow>=15; extra == 'lerobot'", 'zarr>=3; extra == "zarr"']
    monkeypatch.setattr(metadata, "requires", lambda name: told)
    assert str(MissingExtraError("It", "lerobot")).endswith("pip install 'pyarrow>=15'")
    assert str(MissingExtraError("It", "zarr")).endswith("pip install 'zarr>=3'")


def test_w9_a_suffix_without_a_format_points_to_the_flag_that_names_one(capsys, tmp_path):
    from tests.reliability import samples

    code, _, err = run(capsys, "convert", samples.npz(tmp_path), tmp_path / "out.xyz")
    assert code == 2
    assert "--format" not in err
    assert "name the format with --to" in err
    code, _, _ = run(capsys, "convert", tmp_path / "set.npz", tmp_path / "out.xyz", "--to", "npz")
    assert code in (0, 2)


@needs_checkout
def test_w9_w10_no_page_installs_without_the_constraints_or_from_an_index():
    pages = [ROOT / "README.md", *(ROOT / "docs").rglob("*.md")]
    # `some-env/bin/pip` is that of another program's environment.
    lines = [
        line for page in pages for line in re.findall(r"(?<!/)pip install [^`\n]+", read(page))
    ]
    assert len(lines) >= 6
    for line in lines:
        assert re.search(r"--constraint \S*constraints\.txt '[./]", line) or "whl/cpu" in line, line


def read(page: Path) -> str:
    return page.read_text(encoding="utf-8")


@needs_checkout
@pytest.mark.parametrize("page", ["README.md", "docs/quickstart.md"])
def test_w10_the_small_build_of_torch_is_named(page):
    text = read(ROOT / page)
    pinned = re.search(r"^torch==(\S+)$", (ROOT / "constraints.txt").read_text(), re.M)[1]
    assert f"torch=={pinned} --index-url https://download.pytorch.org/whl/cpu" in text


@needs_checkout
def test_e5_the_project_has_addresses_and_one_extra_with_everything():
    facts = project()
    assert all(url.startswith("https://") for url in facts["urls"].values())
    extras = set(facts["optional-dependencies"]) - {"dev", "all"}
    (everything,) = facts["optional-dependencies"]["all"]
    assert set(re.fullmatch(r"pubc\[(.+)\]", everything)[1].split(",")) == extras


def test_e5_python_dash_m_pubc_is_the_command():
    done = subprocess.run(
        [sys.executable, "-m", "pubc", "--version"], capture_output=True, text=True, check=True
    )
    assert done.stdout == f"pubc {pubc.__version__}\n"


@pytest.mark.parametrize("command", COMMANDS)
def test_e5_help_ends_with_examples_and_shows_no_types_of_python(capsys, command):
    _, out, _ = run(capsys, command, "--help")
    assert "None" not in out
    tail = out.split("\nexamples:\n")[1].rstrip().splitlines()
    assert tail
    assert all(line.startswith(f"  pubc {command}") for line in tail)


def complete(script: Path, line: str) -> list[str]:
    """What bash would offer for the last word of a line."""
    words = line.split(" ")
    asked = (
        f"source {script}; COMP_WORDS=({' '.join(map(shlex.quote, words))}); "
        f"COMP_CWORD={len(words) - 1}; _pubc; printf '%s\\n' \"${{COMPREPLY[@]}}\""
    )
    done = subprocess.run(["bash", "-c", asked], capture_output=True, text=True, check=True)
    return done.stdout.split()


def test_e5_bash_completes_commands_flags_and_choices(tmp_path):
    script = tmp_path / "completion.bash"
    made = [sys.executable, "-m", "pubc", "completion", "bash"]
    script.write_text(subprocess.run(made, capture_output=True, text=True, check=True).stdout)
    assert complete(script, "pubc ins") == ["inspect"]
    assert complete(script, "pubc filter data.npz --seed-e") == ["--seed-episodes"]
    assert complete(script, "pubc filter data.npz --device c") == ["cpu", "cuda"]
    assert complete(script, "pubc filter --obs") == ["--observation-keys"]


def test_e5_every_shell_is_told_every_flag(capsys):
    from pubc.cli.filtering.filter_command import Filter
    from pubc.cli.parsing import flags_of

    for shell in ("bash", "zsh", "fish"):
        _, out, _ = run(capsys, "completion", shell)
        for flag in flags_of(Filter):
            assert flag.name.removeprefix("--") in out


@pytest.mark.parametrize(
    ("words", "meant"),
    [
        (["filter", "x", "--seed-episode", "3"], "Did you mean --seed-episodes?"),
        (["filter", "x", "--sed-top=0.1"], "Did you mean --seed-top?"),
        (["inspect", "x", "--observation_key", "a"], "Did you mean --observation-keys?"),
        (["train", "x", "--out", "y", "--epoch", "3"], "Did you mean --epochs?"),
        (["filter", "x", "--out", "y", "--recipe", "papr"], "Did you mean 'paper'?"),
    ],
)
def test_e4_a_misspelled_flag_or_recipe_is_answered_with_what_was_meant(capsys, words, meant):
    code, _, err = run(capsys, *words)
    assert code == 2
    assert meant in err


def test_e4_a_value_that_is_no_number_is_refused_in_words(capsys):
    for flag, value in (("--workers", "two"), ("--random-seed", "1.5"), ("--max-rounds", "ten")):
        code, _, err = run(capsys, "filter", "x", "--out", "y", flag, value)
        assert code == 2
        assert f"{flag}: expected a whole number, found '{value}'" in err
        assert "None" not in err


def test_no_environment_of_the_shell_is_needed_for_help(tmp_path):
    bare = {"PATH": os.environ["PATH"], "PYTHONPATH": os.pathsep.join(sys.path)}
    done = subprocess.run(
        [sys.executable, "-m", "pubc", "filter", "--help"],
        env=bare,
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=True,
    )
    assert "examples:" in done.stdout


@pytest.fixture
def in_place(tmp_path, monkeypatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


def refused(capsys, *words: object) -> str:
    code, _, err = run(capsys, "inspect", *words, "--isolate", "off", "--no-cache")
    assert code in (2, 3)
    return err


def test_e4_stacked_trajectories_are_told_how_to_lie(capsys, in_place):
    rng = np.random.default_rng(0)
    stacked = {"observations": rng.normal(size=(5, 10, 3)), "actions": rng.normal(size=(5, 10, 2))}
    np.savez("three.npz", **stacked)
    told = refused(capsys, "three.npz")
    assert "5 trajectories of 10 steps" in told
    assert "--episode-length 10" in told
    flat = {name: values.reshape(-1, values.shape[-1]) for name, values in stacked.items()}
    np.savez("flat.npz", **flat)
    code, out, _ = run(capsys, "inspect", "flat.npz", "--episode-length", "10", "--json")
    assert (code, json.loads(out)["trajectories"]) == (0, 5)


@pytest.mark.parametrize("suffix", ["npz", "hdf5"])
def test_e4_arrays_called_obs_and_act_get_flags_that_work(capsys, in_place, suffix):
    rng = np.random.default_rng(0)
    arrays = {"obs": rng.normal(size=(50, 3)), "act": rng.normal(size=(50, 2))}
    if suffix == "npz":
        np.savez("keys.npz", **arrays)
    else:
        with h5py.File("keys.hdf5", "w") as file:
            for name, values in arrays.items():
                file[name] = values
    flags = "--observation-keys obs --action-key act"
    assert f"If these are the ones you mean: {flags}." in refused(capsys, f"keys.{suffix}")
    words = [*flags.split(), "--episode-length", "10"]
    assert run(capsys, "inspect", f"keys.{suffix}", *words)[0] == 0


def test_e4_a_tfds_folder_without_its_version_is_told_the_version(capsys, in_place):
    place = in_place / "tfds/robot/1.0.0"
    place.mkdir(parents=True)
    (place / "features.json").write_text("{}")
    (place / "robot-train.tfrecord-00000-of-00001").write_bytes(b"")
    for path in ("tfds", "tfds/robot"):
        assert "named with its version: tfds/robot/1.0.0." in refused(capsys, path)


def test_e4_a_part_of_a_lerobot_folder_is_told_the_folder(capsys, in_place):
    root = in_place / "pick"
    (root / "meta").mkdir(parents=True)
    (root / "meta/info.json").write_text("{}")
    (root / "data/chunk-000").mkdir(parents=True)
    (root / "data/chunk-000/file-000.parquet").write_bytes(b"PAR1")
    for path in ("pick/data", "pick/data/chunk-000/file-000.parquet"):
        assert f"name the folder {root}." in refused(capsys, path)


def test_e4_a_repository_of_lerobot_is_found_in_its_cache_or_told_how_to_fetch(
    capsys, in_place, monkeypatch
):
    monkeypatch.setenv("HF_LEROBOT_HOME", str(in_place / "home"))
    told = refused(capsys, "lerobot/pusht")
    assert "hf download lerobot/pusht --repo-type dataset --local-dir pusht" in told
    meta = in_place / "home/lerobot/pusht/meta"
    meta.mkdir(parents=True)
    (meta / "info.json").write_text("{}")
    assert f"keeps a dataset of that name: {meta.parent}." in refused(capsys, "lerobot/pusht")
    assert refused(capsys, "some/file.npz") == "pubc: some/file.npz does not exist.\n"


@needs_checkout
def test_w12_the_page_says_what_is_opened_outside_the_child():
    text = " ".join((ROOT / "docs/reliability.md").read_text().split())
    assert "Commands parse everything" not in text
    assert "Two things are done by the command itself" in text
    assert "the tables of LeRobot with pyarrow" in text


@needs_checkout
def test_e5_the_index_names_every_page_for_users_and_the_completion():
    text = (ROOT / "docs/index.md").read_text()
    records = {"index.md", "check-full.md", "results-small.md"}
    pages = {page.name for page in (ROOT / "docs").glob("*.md")} - records
    assert {page for page in pages if f"({page})" not in text} == set()
    for shell in ("bash", "zsh", "fish"):
        assert f"pubc completion {shell}" in text


def test_e4_a_share_may_be_said_in_percent(capsys):
    from pubc.cli.filtering.filter_command import Filter
    from pubc.cli.parsing import parse

    for word, share in (("5%", 0.05), ("0.05", 0.05), ("100%", 1.0)):
        asked = parse(Filter, "filter", ["x", "--seed-top", word])
        assert getattr(asked, "config", asked).seed_top == pytest.approx(share)
    code, _, err = run(capsys, "filter", "x", "--seed-top", "some%")
    assert code == 2
    assert "--seed-top: expected a number, found 'some%'" in err


@needs_checkout
def test_e7_tables_call_the_figure_published_and_keep_paper_for_the_recipe():
    text = (ROOT / "docs/results.md").read_text()
    assert "(published " in text
    assert "(paper " not in text


@needs_checkout
def test_w2_w4_no_page_speaks_of_expected_wrong_or_unseen_seeds():
    shown = [*(ROOT / "src/pubc").rglob("*.py"), *(ROOT / "src/pubc").rglob("assets/*")]
    shown += [ROOT / "README.md", *(ROOT / "docs").glob("*.md")]
    for path in shown:
        text = path.read_text(encoding="utf-8").lower()
        assert "expected wrong" not in text, path
        assert "unseen seeds" not in text, path


def test_w3_a_run_that_something_contradicts_is_not_told_otherwise():
    from pubc.runs.statuses import SOUND, STATUSES, verdict

    assert "nothing contradicts" in verdict({"status": "converged", "sound": True}).sentence
    assert "nothing contradicts" not in verdict({"status": "converged", "sound": False}).sentence
    for status in STATUSES:
        if status not in SOUND:
            assert "nothing contradicts" not in verdict({"status": status}).sentence
