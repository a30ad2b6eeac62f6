"""Folders that pubc writes for itself, as a stranger could send them, and who opens them.

For each kind: a sample, which of its files are edited, and what commands do with it. Commands are
called in this process, below the parsing of their flags: a thousand must take seconds.
"""

import contextlib
import functools
import io
import os
import resource
import shutil
import sys
import time
import warnings
from collections import Counter
from collections.abc import Callable
from contextlib import redirect_stderr, redirect_stdout
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import pytest

import pubc
from pubc.cli.main import _ours
from pubc.errors import PubcError
from pubc.runs.folder.run_files import COMING
from pubc.storage import MANIFEST, seal
from tests.cli.calling import main
from tests.policies.sets import random_policy
from tests.pu.piles import pile
from tests.reliability import quick_recipe
from tests.reliability.edits import Rng, edit, pick
from tests.report.build import make_run
from tests.report.tables.build import all_tables

assert quick_recipe  # imported for its recipe

Use = Callable[[Path, Rng], object]
SECONDS = 5.0
MEMORY = 512 << 20


@dataclass(frozen=True)
class Kind:
    """A kind of folder."""

    make: Callable[[Path], Path]
    """Makes a sample in a folder."""
    uses: tuple[Use, ...]
    """What commands do with it."""
    seals: str | None = None
    """The kind of its manifest, which its owner writes anew after an edit."""


@functools.cache
def _mixed(folder: Path) -> pubc.TrajectorySet:
    return pubc.load(folder / "mixed.npz")


def report(path: Path, rng: Rng) -> object:
    from pubc.cli.filtering.report_command import Report

    return Report((path,), out=path.parent / "page", force=True, json=True).run()


def read_finished(path: Path, rng: Rng) -> object:
    from pubc.api.expert_finder import ExpertFinder

    finder = ExpertFinder.load(path)
    return finder.score_samples(_mixed(path.parent))


def score(path: Path, rng: Rng) -> object:
    from pubc.cli.filtering.score_command import Score

    return Score(path.parent / "mixed.npz", filter=path, json=True, workers=1).run()


def go_on(path: Path, rng: Rng) -> object:
    from pubc.cli.filtering.filter_command import Filter
    from pubc.runs.filter_config import FilterConfig

    return Filter(resume=path, config=FilterConfig(workers=1), json=True).run()


def go_on_unfinished(path: Path, rng: Rng) -> object:
    if (path / MANIFEST).exists():  # what a kill leaves just before the manifest has its name
        (path / MANIFEST).rename(path / COMING)
    return go_on(path, rng)


def restored(path: Path, rng: Rng) -> object:
    """What --resume reads of an unfinished run; in one of ten it also goes on."""
    from pubc.nets import load_tensors
    from pubc.runs.filter_config import FilterConfig
    from pubc.runs.folder.run_document import restore
    from pubc.runs.folder.run_folder import RunFolder

    if rng.random() < 0.1:
        return go_on_unfinished(path, rng)
    folder = RunFolder(path)
    restore(folder.read(), FilterConfig())
    for network in sorted(folder.shelf.glob("*")):
        load_tensors(network)
    return folder.rounds(8)


def train(path: Path, rng: Rng) -> object:
    from pubc.cli.policies.from_run import kept_by

    return pubc.load(kept_by(path))


def weights(path: Path, rng: Rng) -> object:
    from pubc.cli.filtering.weights_command import Weights

    return Weights(path, "torch", path.parent / "weights.npz", force=True, json=True).run()


def verify(path: Path, rng: Rng) -> object:
    from pubc.cli.data.verify_command import Verify

    return Verify(path, json=True).run()


def act(path: Path, rng: Rng) -> object:
    from pubc.policies.policy_folder import load

    policy = load(path)
    actor = policy.begin(np.random.default_rng(0))
    return actor(np.zeros(policy.observation_size, np.float32), 0.0)


def as_module(path: Path, rng: Rng) -> object:
    from pubc.policies.export_card import card
    from pubc.policies.policy_folder import load, read_config

    policy = load(path)
    policy.module()
    return card(policy, read_config(path), ("observation",))


def act_zoo(path: Path, rng: Rng) -> object:
    from pubc import zoo

    policy = zoo.read(path / "mine.safetensors")
    return policy.begin(np.random.default_rng(0))(np.zeros(policy.observation_size, np.float32), 0)


def mark(path: Path, rng: Rng) -> object:
    from pubc.labels import parts_of, read_labels

    return parts_of(read_labels(path / "labels.json"), _mixed(path.parent))


def tables(path: Path, rng: Rng) -> object:
    from pubc.report.tables.pages.table_html import as_html
    from pubc.report.tables.pages.table_markdown import as_markdown
    from pubc.report.tables.pages.table_terminal import lines
    from pubc.report.tables.records_folder import find_records, read_tables

    found = read_tables(find_records(path) or path)
    return [as_html(found, {}), as_markdown(found, {}, "records"), *(lines(t.sheet) for t in found)]


def records(path: Path, rng: Rng) -> object:
    return report(path / "evaluated.jsonl", rng)


def drawn_run(folder: Path) -> Path:
    return make_run(folder / "run", 12, 2, steps=True)


def real_run(folder: Path) -> Path:
    words = ["filter", str(folder / "mixed.npz"), "--out", str(folder / "run"), "--recipe", "quick"]
    assert main([*words, "--seed-episodes", "0,1", "--workers", "1", "--json"]) == 0
    return folder / "run"


def policy(folder: Path) -> Path:
    from pubc.policies.policy_folder import save

    save(
        folder / "policy",
        random_policy(3, 2),
        about={
            "learner": "bc", "random_seed": 0, "reference": [0.0, 10.0],
            "data": {"name": "mixed", "observation_keys": [{"key": "seen", "size": 3}]},
            "options": {"hidden": [8]},
        },
        files={"metrics.jsonl": b'{"epoch": 1, "updates": 8, "loss": 0.5}\n' * 2},
    )  # fmt: skip
    return folder / "policy"


def zoo_policy(folder: Path) -> Path:
    from pubc import zoo

    rng = np.random.default_rng(0)
    sizes = [(3, 4), (4, 2)]
    arrays = {f"w{n}": rng.normal(size=size) for n, size in enumerate(sizes)}
    arrays |= {f"b{n}": rng.normal(size=size[1]) for n, size in enumerate(sizes)}
    card = {
        "network": "tanh", "observation_size": 3, "action_size": 2, "action_limit": 1.0,
        "environment": "ant", "name": "mine", "algorithm": "td3", "steps": 5,
    }  # fmt: skip
    (folder / "zoo").mkdir()
    zoo.write(folder / "zoo" / "mine.safetensors", arrays, card)
    return folder / "zoo"


def labels(folder: Path) -> Path:
    from pubc.labels import Labels, Mark, save_labels

    (folder / "labels").mkdir()
    marks = (Mark("0", "good", None, None), Mark("1", "bad", 3, 9), Mark("2", "bad", None, None))
    save_labels(folder / "labels" / "labels.json", Labels(marks))
    return folder / "labels"


def records_folder(folder: Path) -> Path:
    from pubc.results import Record, append

    made = all_tables(folder / "records")
    for seed in (0, 1):
        cell = {"kind": "evaluate", "policy": f"p{seed}", "environment": "ant", "episodes": 2}
        values = {"return": {"mean": 1.0, "std": 0.1, "interval": [0.9, 1.1]}, "score": 0.5}
        append(made / "evaluated.jsonl", Record(cell, {**values, "returns": [0.9, 1.1]}))
        append(made / "evaluated.jsonl", Record({**cell, "updates": 5 + seed}, values))
    return made


KINDS = {
    "drawn run": Kind(drawn_run, (report, report, verify, go_on), "filter"),
    "run": Kind(real_run, (score, read_finished, train, weights, verify, restored), "filter"),
    "policy": Kind(policy, (act, act, as_module, report), "policy"),
    "zoo": Kind(zoo_policy, (act_zoo,)),
    "labels": Kind(labels, (mark,)),
    "records": Kind(records_folder, (tables, tables, tables, records)),
}


@dataclass
class Tally:
    """How edits ended."""

    outcomes: Counter = field(default_factory=Counter)
    wrong: list[str] = field(default_factory=list)
    slowest: float = 0.0
    grown: int = 0

    def __str__(self) -> str:
        ended = ", ".join(f"{name} {count:,}" for name, count in sorted(self.outcomes.items()))
        grown = f"{self.grown >> 20} MiB more at most"
        return f"{ended}; slowest {self.slowest:.2f} s, {grown}, {len(self.wrong)} wrong"


def run_edits(name: str, folder: Path, count: int, seed: int) -> Tally:
    """Edit a fresh copy of a sample and use it, `count` times."""
    kind, tally = KINDS[name], Tally()
    with contextlib.ExitStack() as ends:
        # A flush to the disk takes longer than anything else here, and nothing is lost without it.
        ends.enter_context(pytest.MonkeyPatch.context()).setattr(os, "fsync", lambda handle: None)
        _edit_and_use(kind, folder, count, seed, tally)
    return tally


def _edit_and_use(kind: Kind, folder: Path, count: int, seed: int, tally: Tally) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        pubc.save(folder / "mixed.npz", pile([4, 4], steps=30, states=2))
        with redirect_stdout(io.StringIO()):
            sample = kind.make(folder)
    kept = shutil.copytree(sample, folder / "clean")
    for use in kind.uses:  # loads what they need, so that memory is that of the edits
        _use(use, sample, np.random.default_rng(0), Tally(), "clean")
    base = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss << 10
    files = sorted(p.relative_to(kept) for p in kept.rglob("*") if _editable(p, kind))
    for number in range(count):
        rng = np.random.Generator(np.random.Philox(key=[seed, number]))
        shutil.rmtree(sample)
        shutil.copytree(kept, sample)
        file = pick(rng, files)
        told = f"{number} {file}: {edit(sample / file, rng)}"
        if kind.seals and rng.random() < 0.8:
            seal(sample, kind=kind.seals)
        _use(pick(rng, kind.uses), sample, rng, tally, told)
    tally.grown = (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss << 10) - base


def _editable(path: Path, kind: Kind) -> bool:
    if not path.is_file() or path.suffix in (".html", ".md"):
        return False
    return path.name != MANIFEST or kind.seals is not None


def _use(use: Use, path: Path, rng: Rng, tally: Tally, told: str) -> None:
    began = time.process_time()
    quiet = io.StringIO()
    try:
        with warnings.catch_warnings(), redirect_stdout(quiet), redirect_stderr(quiet):
            warnings.simplefilter("ignore")
            use(path, rng)
        tally.outcomes["fine"] += 1
    except Exception as error:
        ours = _ours(error)
        tally.outcomes[f"exit {ours.exit_code}"] += 1
        if ours.exit_code not in (2, 3, 4) or (ours.exit_code == 4 and not _is_disk(error)):
            tally.wrong.append(f"{told}, {use.__name__}: {ours}")
    spent = time.process_time() - began
    tally.slowest = max(tally.slowest, spent)
    if spent > SECONDS:
        tally.wrong.append(f"{told}, {use.__name__}: {spent:.1f} s")
    sys.stdout.flush()


def _is_disk(error: Exception) -> bool:
    """Whether an exit with 4 blames the machine in words of ours, not a library's."""
    return isinstance(error, PubcError)
