"""The third stage of a cell: a learner on what was selected, and what its policy earns.

The column `Data` has no learner: it is what the dataset earned.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from pubc import formats
from pubc.acting.evaluate import Outcome, evaluate, summary
from pubc.errors import DataError
from pubc.experiments.cell import Cell, LearnerSpec
from pubc.experiments.stage_cache import Cache
from pubc.experiments.stages.assignments import Assignment, assignment_of, policy_key
from pubc.experiments.stages.steps_to_learn import judged_of, lesson_of
from pubc.metrics import REFERENCES, normalised_score
from pubc.results import Record, key_of, read
from pubc.storage import read_json, write_json
from pubc.trajectory import TrajectorySet

if TYPE_CHECKING:
    from pubc.policies.checkpoints_scored import ScoredCheckpoints
    from pubc.policies.policy_folder import TrainedPolicy

__all__ = ["DATA", "learn", "reference_of", "train"]

DATA = "data"
"""The name of a learner that learns nothing: its returns are those of the dataset."""
_SUMMARY = ("episodes", "return", "steps", "score", "reference")


def learn(
    cell: Cell, path: Path, selection: NDArray[np.bool_] | None, cache: Cache
) -> dict[str, Any]:
    """Train on the selected trajectories, evaluate, and say what came out.

    Args:
        cell: What is asked for.
        path: Where its dataset lies.
        selection: Which trajectories to learn from; all of them without one.
        cache: Where policies and evaluations are shared.

    Raises:
        DataError: The filter kept nothing, or the learner cannot use the data.
        MissingExtraError: The learner or the environment is not installed.
    """
    assert cell.learner is not None
    spec = cell.learner
    if spec.algo == DATA:
        return _of_data(lesson_of(cell, formats.read(path), selection, cache).trajectories, spec)
    given = assignment_of(cell, path, selection, cache)
    made, chosen = train(given, cache), given.lesson.trajectories
    learned: dict[str, Any] = {"trajectories": len(chosen), "steps": chosen.steps}
    if given.lesson.expert_share is not None:
        learned["expert_share"] = given.lesson.expert_share
    values = {**_evaluate(made / "policy", made.name, cell, cache), "learned_from": learned}
    values.update(judged_of(cell, cache))
    stack = read_json(made / "policy" / "config.json").get("stack")
    if stack is not None:
        values["stack"] = stack
    if spec.curve_every is not None:
        values["curve"] = _curve(cell, read(made / "policy" / "evaluations.jsonl"))
    return values


def train(given: Assignment, cache: Cache) -> Path:
    """Train a policy if it is missing; its folder in the cache, named by its key."""
    return cache.make(
        "policies",
        policy_key(given, cache),
        lambda folder: _train(folder, given, cache.device),
    )


def reference_of(spec: LearnerSpec) -> tuple[float, float, str] | None:
    """Returns that count as scores 0 and 1."""
    if spec.reference is not None:
        return (*spec.reference, "the table")
    return REFERENCES.get(spec.environment)


def _of_data(mixed: TrajectorySet, spec: LearnerSpec) -> dict[str, Any]:
    """What the sources earned, each counting the same, as in the paper's column."""
    if mixed.columns.rewards is None:
        raise DataError(
            "The dataset has no rewards, so what it earned is unknown.",
            code="no_rewards",
            field="rewards",
        )
    returns, names = mixed.total_rewards(), mixed.sources
    parts = [returns] if names is None else [returns[names == name] for name in np.unique(names)]
    mean, known = float(np.mean([part.mean() for part in parts])), reference_of(spec)
    return {
        "episodes": len(mixed),
        "return": {"mean": mean, "std": float(returns.std(ddof=1)) if len(mixed) > 1 else 0.0},
        "score": None if known is None else normalised_score(mean, known[:2]),
        "reference": None if known is None else _named(known),
    }


def _train(folder: Path, given: Assignment, device: str) -> None:
    from pubc.policies import trainer
    from pubc.policies.train_options import TrainOptions
    from pubc.policies.training_run import Session

    cell, spec = given.cell, given.spec
    run = trainer(
        spec.algo,
        given.lesson.trajectories,
        TrainOptions(**spec.options),
        random_seed=cell.random_seed,
        device=device,
        positives=given.positives,
        weights=given.lesson.weights,
    )
    about = {"learner": spec.algo, "random_seed": cell.random_seed}
    # Nobody would go on from a checkpoint: a folder that is not whole is thrown away.
    session = Session(
        run, folder / "policy", about, every=float("inf"), checkups=_checkups(cell, spec)
    )
    for _ in session.epochs():
        pass


def _checkups(cell: Cell, spec: LearnerSpec) -> ScoredCheckpoints | None:
    from pubc.policies.checkpoints_scored import ScoredCheckpoints

    if spec.curve_every is None:
        return None

    def measure(policy: TrainedPolicy, updates: int) -> Record:
        found = _play(policy, spec, spec.curve_trajectories, cell.random_seed)
        asked = {"kind": "evaluate", "policy": spec.algo, "environment": spec.environment,
                 "random_seed": cell.random_seed, "updates": updates}  # fmt: skip
        return Record(asked, found)

    return ScoredCheckpoints(spec.curve_every, measure)


def _evaluate(policy: Path, key: str, cell: Cell, cache: Cache) -> dict[str, Any]:
    from pubc.policies.policy_folder import load

    spec = cell.learner
    assert spec is not None
    asked = key_of({"policy": key, "episodes": spec.evaluation_trajectories})

    def build(folder: Path) -> None:
        found = _play(load(policy), spec, spec.evaluation_trajectories, cell.random_seed)
        write_json(folder / "result.json", found)

    return read_json(cache.make("evaluations", asked, build) / "result.json")


def _play(policy: Any, spec: LearnerSpec, episodes: int, random_seed: int) -> dict[str, Any]:
    played = list(
        evaluate(lambda: policy, spec.environment, episodes=episodes, random_seed=random_seed)
    )
    found = summary(Outcome.of(played), reference_of(spec))
    return {name: found[name] for name in _SUMMARY}


def _curve(cell: Cell, points: Sequence[Record]) -> dict[str, Any]:
    """A learning curve as the figure of the table wants it."""
    known: list[tuple[int, Mapping[str, Any]]] = [(p.cell["updates"], p.values) for p in points]
    row, _, line = cell.row.partition(" ")
    return {
        "panel": f"{row}, {cell.column}",
        "line": line,
        "x": [updates for updates, _ in known],
        "y": [round(float(found["score"]), 4) for _, found in known],
    }


def _named(known: tuple[float, float, str]) -> dict[str, Any]:
    return {"min": known[0], "max": known[1], "from": known[2]}
