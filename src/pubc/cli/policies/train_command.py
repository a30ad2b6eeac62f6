"""`pubc train`: a policy from a dataset, or from what a filter kept."""

from __future__ import annotations

import contextlib
import dataclasses
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import tyro

from pubc import formats
from pubc.cli.console import facts, headline, progress
from pubc.cli.dataset_flag import Dataset
from pubc.cli.policies.from_run import Lesson, data_of, judged_by, read_lesson, read_weights
from pubc.cli.policies.metric_followers import Follower, open_followers
from pubc.cli.policies.positives_flag import read_positives
from pubc.cli.policies.seeds_flag import parse_seeds
from pubc.errors import UsageError
from pubc.formats.core.named_parts import PARTS
from pubc.policies.train_options import TrainOptions
from pubc.storage import check_apart, check_target, claim

if TYPE_CHECKING:
    from pubc.policies.checkpoints_scored import ScoredCheckpoints
    from pubc.policies.policy_folder import TrainedPolicy
    from pubc.policies.training_run import Epoch, Session
    from pubc.trajectory import TrajectorySet

__all__ = ["COMMAND", "Train"]


@dataclass(frozen=True)
class Train:
    """Learn a policy from a dataset, or from what `pubc filter` kept.

    ALGO is one of bc, 10%bc, 50%bc (any N%bc), dwbc, dwbc-paper, and through d3rlpy iql, crr,
    td3bc, plas, dt. The policy folder holds config.json, policy.safetensors with the normaliser,
    and metrics.jsonl; `pubc evaluate` and `pubc export` take it. A run that was stopped goes on
    with --resume, and ends with the same bytes.
    """

    out: Path
    """Policy folder to write."""
    data: Annotated[Dataset | None, tyro.conf.Positional] = None
    """Dataset in any format that `pubc formats` lists, or a folder of `pubc filter`; with
    --weights that run's data if omitted."""
    algo: str = "bc"
    """Learner."""
    training: TrainOptions = field(default_factory=TrainOptions)
    """How to train."""
    weights: Path | None = None
    """bc: clone all of the data, each step as much as this run of `pubc filter` takes it for the
    expert's."""
    weighting: Literal["soft", "hard"] = "soft"
    """With --weights: by the confidence itself, or by 1 from one half on and 0 below."""
    seeds: bool = True
    """bc from a run whose seeds came from another file (--seed-from): learn from them too."""
    positives: Dataset | None = None
    """dwbc: dataset of seed positives, for example what `pubc collect` writes beside."""
    top: float | None = None
    """dwbc: take this share with the highest returns as seed positives instead."""
    random_seed: int = 0
    """Same seed, same data, same machine: same policy, with any number of threads."""
    random_seeds: str | None = None
    """Train with several random seeds at once, such as 0-9 or 0,3,7: the policy of each goes to
    OUT/seed-N. Ten take about as long as one on a GPU; each is what it would be alone, up to
    rounding."""
    device: Literal["auto", "cpu", "cuda"] = "auto"
    """Where to train; auto takes a GPU where there is one."""
    resume: bool = False
    """Go on with a run that was stopped."""
    checkpoint_seconds: float = 30.0
    """Time between checkpoints."""
    evaluate_every: int | None = None
    """Let the policy act after so many updates, and again; `pubc report POLICY` draws what it
    earned as a curve. Needs --env."""
    env: str | None = None
    """Environment of --evaluate-every, one of ours or any Gymnasium id."""
    evaluate_episodes: int = 10
    """Trajectories of each such evaluation."""
    tensorboard: Path | None = None
    """Also write the metrics for TensorBoard into this folder."""
    wandb: str | None = None
    """Also send the metrics to this Weights & Biases project."""
    force: bool = False
    """Replace the policy folder if it exists."""
    reading: formats.ReadOptions = formats.FROM_COMMAND_LINE
    """How to read the dataset."""
    json: bool = False
    """Print one JSON document instead of text."""

    def run(self) -> dict[str, Any]:
        """Read, train with progress, and say what was learned."""
        if self.data is None:
            data, reading = data_of(self.weights)
            return dataclasses.replace(self, data=data, reading=reading).run()
        self._check()
        followers = open_followers(self.tensorboard, self.wandb)
        with contextlib.ExitStack() as ends:
            return self._train(followers, ends)

    @property
    def _source(self) -> Path:
        assert self.data is not None
        return self.data

    def _train(self, followers: list[Follower], ends: contextlib.ExitStack) -> dict[str, Any]:
        seeded = (self.weights or self._source) if self.seeds and self.algo == "bc" else None
        lesson = read_lesson(self._source, self.reading, seeded)
        session = self._session(lesson)
        run = session.trainer
        for follower in followers:
            told = {**session.about, "training": run.about(), "command": self._flags()}
            follower.begin(told, ends)
        began, last = time.monotonic(), None
        with progress("training", run.epochs, quiet=self.json) as report:
            for last in session.epochs():
                report(last.number, f"epochs, {_words(last)}")
                for follower in followers:
                    follower.tell(last)
        document = self._document(lesson, last, time.monotonic() - began)
        if not self.json:
            _show(document)
        return document

    def _session(self, lesson: Lesson) -> Session:
        """The run with its place on disk: of one random seed, or of several."""
        from pubc.policies import stacked_trainer, trainer
        from pubc.policies.stacked.many_policies import ManySession
        from pubc.policies.training_run import Session

        trajectories = lesson.trajectories
        given: dict[str, Any] = {"device": self.device, "positives": self._positives(trajectories)}
        learner = self.algo, trajectories, self.training
        about = self._about(lesson)
        kept: dict[str, Any] = {
            "resume": self.resume,
            "overwrite": self.force,
            "every": self.checkpoint_seconds,
        }
        if self.random_seeds is not None:
            many = stacked_trainer(*learner, random_seeds=parse_seeds(self.random_seeds), **given)
            about["data"]["fingerprint"] = many.fingerprint
            return ManySession(many, self.out, about, **kept)
        if self.weights is not None:
            given["weights"] = read_weights(self.weights, self.weighting, lesson)
        run = trainer(*learner, random_seed=self.random_seed, **given)
        about["data"]["fingerprint"] = run.fingerprint
        return Session(run, self.out, about, checkups=self._checkups(about), **kept)

    def _checkups(self, about: dict[str, Any]) -> ScoredCheckpoints | None:
        from pubc.acting.evaluate import Outcome, evaluate, summary
        from pubc.cli.policies.evaluate_command import known_reference
        from pubc.policies.checkpoints_scored import ScoredCheckpoints
        from pubc.results import Record

        if self.evaluate_every is None:
            return None
        asked = {
            "kind": "evaluate",
            "policy": f"{self.algo} on {self._source.name}",
            "environment": self.env,
            "random_seed": self.random_seed,
            "episodes": self.evaluate_episodes,
        }

        def measure(policy: TrainedPolicy, updates: int) -> Record:
            assert self.env is not None
            played = evaluate(
                lambda: policy,
                self.env,
                episodes=self.evaluate_episodes,
                random_seed=self.random_seed,
            )
            known = known_reference(about["reference"], self.env)
            return Record({**asked, "updates": updates}, summary(Outcome.of(list(played)), known))

        return ScoredCheckpoints(self.evaluate_every, measure)

    def _check(self) -> None:
        from pubc.acting import environments
        from pubc.policies import check_name
        from pubc.policies.policy_folder import KIND
        from pubc.policies.training_run import check_unfinished, unfinished

        check_name(self.algo)
        if not self.checkpoint_seconds >= 0:
            raise UsageError(f"--checkpoint-seconds is from 0 on. Got {self.checkpoint_seconds}.")
        for place in self._places():
            forced = self.force or (self.resume and place != self.out)
            claim(place, KIND, force=forced, sources=(self.data, self.weights, self.positives))
        check_unfinished(self.out, resume=self.resume)
        if self.tensorboard is not None:
            events = self.tensorboard / "events"  # what goes into it
            check_target(events)
            check_apart(events, unfinished(self.out).path, *self._places())
        if (self.evaluate_every is None) != (self.env is None):
            raise UsageError("--evaluate-every and --env go together: how often, and where.")
        if self.random_seeds is not None and self.evaluate_every is not None:
            raise UsageError(
                "--evaluate-every goes with one --random-seed. `pubc evaluate OUT/seed-N` measures "
                "each policy of --random-seeds."
            )
        if self.weights is not None and (self.algo != "bc" or self.random_seeds is not None):
            raise UsageError("--weights is for --algo bc with one --random-seed.")
        if self.env is not None:
            environments.spec(self.env)

    def _places(self) -> list[Path]:
        """Every policy folder that is to be written."""
        from pubc.policies.stacked.many_policies import folder_of

        if self.random_seeds is None:
            return [self.out]
        return [folder_of(self.out, seed) for seed in parse_seeds(self.random_seeds)]

    def _positives(self, trajectories: TrajectorySet) -> TrajectorySet | None:
        return read_positives(
            self.algo, trajectories, self._source, self.positives, self.top, self.reading
        )

    def _about(self, lesson: Lesson) -> dict[str, Any]:
        from pubc.metrics import as_reference
        from pubc.nets import pick_device
        from pubc.policies.export_card import observation_keys

        options = dataclasses.asdict(self.training)
        options["hidden"] = list(options["hidden"])
        known, size = lesson.trajectories.metadata, lesson.trajectories.observation_size
        said = [known.get("ref_min_score"), known.get("ref_max_score")]
        return {
            "learner": self.algo,
            "options": options,
            **self._named_seeds(),
            **({} if self.weights is None else {"weights": [self.weights.name, self.weighting]}),
            "device": pick_device(self.device).type,
            "evaluated": {"every": self.evaluate_every, "episodes": self.evaluate_episodes}
            if self.evaluate_every
            else None,
            "data": {
                "name": self._source.name,
                **lesson.facts(),
                "observation_keys": observation_keys(known.get(PARTS), size),
                "action_key": known.get("action_key"),
                **judged_by(self.weights, self._source, self.positives),
            },
            "reference": said if as_reference(said) else [None, None],
        }

    def _flags(self) -> dict[str, Any]:
        """Every flag of the command, as somebody who does it again would give them."""
        flags = dataclasses.asdict(self).items()
        return {name: str(value) if isinstance(value, Path) else value for name, value in flags}

    def _named_seeds(self) -> dict[str, Any]:
        if self.random_seeds is None:
            return {"random_seed": self.random_seed}
        return {"random_seeds": list(parse_seeds(self.random_seeds))}

    def _document(self, lesson: Lesson, last: Epoch | None, seconds: float) -> dict[str, Any]:
        return {
            "policy": str(self.out),
            "learner": self.algo,
            "data": str(self.data),
            **lesson.facts(),
            **self._named_seeds(),
            "epochs": None if last is None else last.number,
            "metrics": None if last is None else dict(last.metrics),
            "seconds": seconds,
        }


COMMAND = Train


def _words(epoch: Epoch) -> str:
    return ", ".join(f"{name.replace('_', ' ')} {v:.4g}" for name, v in epoch.metrics.items())


def _show(document: dict[str, Any]) -> None:
    learned = f"{document['trajectories']:,} trajectories"
    if "seeds" in document:
        learned += f", {document['seeds']:,} of them seeds from another file"
    rows = [
        ("policy", document["policy"]),
        ("learner", document["learner"]),
        ("learned from", learned),
        ("epochs", f"{document['epochs']}"),
    ]
    for name, value in (document["metrics"] or {}).items():
        rows.append((name.replace("_", " "), f"{value:.5g}"))
    rows.append(("seconds", f"{document['seconds']:.1f}"))
    headline(f"{document['learner']} learned from {document['trajectories']:,} trajectories")
    facts(rows)
