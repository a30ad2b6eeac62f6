"""The paper's judge: K bagged classifiers, each trained on positives and made-up negatives.

Unbiased and non-negative PU are this ensemble with another loss and recorded pairs as
negatives; "no bagging" is `classifiers=1`; the other classification function is
`rule="sum_log"`. Each classifier is one piece of work on one thread, a pure function of the
data, the configuration and its key.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Literal

import numpy as np
import torch
from numpy.typing import NDArray

from pubc.errors import DataError, UsageError
from pubc.nets import (
    Classifier,
    Normaliser,
    Schedule,
    fit_classifier,
    initialise,
    load_tensors,
    pick_device,
    save_tensors,
)
from pubc.pu import shards
from pubc.pu.judge import Bench, Task, Training, Verdict
from pubc.pu.paper.losses import LOSSES
from pubc.pu.paper.negatives import EQUAL_SHARES, Pairs, make_negatives, take_pairs
from pubc.pu.paper.scoring import Rule, Scorer, score_steps, score_trajectories, step_values
from pubc.select import locate
from pubc.streams import Key
from pubc.trajectory import TrajectorySet

__all__ = ["Ensemble", "load_scorer"]

Integers = NDArray[np.int64]

MEMORY = 64 << 20
"""Bytes that the positives of one classifier may take where subsets are bounded; its negatives
take as many."""


@dataclass(frozen=True, slots=True)
class Ensemble:
    """Trains K classifiers on bootstrap subsets of the positives and lets each one judge."""

    classifiers: int = 3
    """K; odd, so that votes cannot tie."""
    loss: Literal["bce", "unbiased_pu", "non_negative_pu", "non_negative_pu_clamp"] = "bce"
    """What the classifiers minimise; see `pubc.pu.paper.losses`."""
    negatives: Literal["seven", "unlabelled"] = "seven"
    """Made-up pairs of the seven kinds, or recorded pairs of the mixed set as they are."""
    shares: tuple[float, ...] = EQUAL_SHARES
    """Weights n1 to n7 of the seven kinds."""
    bag: Literal["step", "trajectory"] = "step"
    """Whether subsets are drawn step by step or trajectory by trajectory. In the latter case
    a classifier abstains from judging the trajectories that it trained on."""
    subset: int | None = None
    """Most steps in the subset of one classifier; None for a bootstrap of the usual size, as
    many steps as there are positives."""
    rule: Rule = "mean"
    """How a trajectory's steps become one confidence."""
    schedule: Schedule = field(default_factory=Schedule)
    """Epochs, batch and learning rate."""

    def __post_init__(self) -> None:
        if self.classifiers < 1 or self.classifiers % 2 == 0:
            raise UsageError(
                f"The number of classifiers must be odd, so that votes cannot tie. "
                f"Got {self.classifiers}."
            )

    def __call__(self, task: Task) -> Verdict:
        """Train the classifiers and rate every trajectory."""
        limit = self._limit(task)

        def train(member: int) -> _Member:
            return self._member(task, member, limit)

        members = task.bench.map(train, range(self.classifiers))
        scorers = [member.scorer for member in members]
        confidence = self._confidence(task, scorers)
        task.bench.tell(f"round {task.number}: scored {task.mixed.steps:,} steps")
        seeds = score_trajectories(scorers, task.seed_positives, task.bench, rule=self.rule)
        for row, member in enumerate(members):
            own = task.positives[member.trajectories]
            confidence[row, _found(task.mixed, own)] = np.nan
            seeds[row, _found(task.seed_positives, own)] = np.nan
        return Verdict(confidence, seeds, tuple(member.training for member in members))

    def _confidence(self, task: Task, scorers: list[Scorer]) -> NDArray[np.float64]:
        """Of every classifier in every mixed trajectory."""
        bench = task.bench
        if bench.shards is None or bench.shelf is None:
            return score_trajectories(scorers, task.mixed, bench, rule=self.rule)
        return shards.rate(self, bench.shelf, task.number, task.mixed, bench)

    def apply(
        self, shelf: Path, number: int, trajectories: TrajectorySet, bench: Bench
    ) -> NDArray[np.float64]:
        """Rate other trajectories with the classifiers of a finished round."""
        scorers = self._stored(shelf, number, bench)
        return score_trajectories(scorers, trajectories, bench, rule=self.rule)

    def steps(
        self, shelf: Path, number: int, trajectories: TrajectorySet, bench: Bench
    ) -> Iterator[NDArray[np.float32]]:
        """Stream the value of each step, averaged over the classifiers of a round."""
        for logits in score_steps(self._stored(shelf, number, bench), trajectories, bench):
            yield step_values(logits, self.rule).mean(axis=0).astype(np.float32)

    def _stored(self, shelf: Path, number: int, bench: Bench) -> list[Scorer]:
        device = pick_device(bench.device)
        names = [_name(number, member) for member in range(self.classifiers)]
        return [load_scorer(shelf / f"{name}.safetensors", device)[0] for name in names]

    def _limit(self, task: Task) -> int:
        if self.subset is None:
            return task.positives.steps
        row = 4 * (task.mixed.observation_size + task.mixed.action_size)
        return max(1024, min(self.subset, MEMORY // row))

    def _member(self, task: Task, member: int, limit: int) -> _Member:
        """One trained classifier, from the shelf where it is finished already."""
        key = task.key.at("member", member)
        rng = key.rng()
        steps, trajectories = self._subset(task.positives, limit, rng)
        name = _name(task.number, member)
        path = None if task.bench.shelf is None else task.bench.shelf / f"{name}.safetensors"
        if path is not None and path.exists():
            scorer, loss, updates = load_scorer(path, pick_device(task.bench.device))
            return _Member(scorer, Training(name, tuple(loss), updates), trajectories)
        pairs = self._pairs(task, take_pairs(task.positives, steps), rng)
        network, loss, updates = self._train(task, pairs, key.at("weights"))
        observations, actions = _normalisers(task)
        if path is not None:
            about = {
                "kind": "classifier",
                "question": task.bench.question,
                "observation_size": task.mixed.observation_size,
                "action_size": task.mixed.action_size,
                "round": task.number,
                "member": member,
                "loss": loss,
                "updates": updates,
            }
            save_tensors(path, _tensors(network, observations, actions), about)
        task.bench.tell(f"round {task.number}: classifier {member + 1} of {self.classifiers}")
        scorer = Scorer.of(network, observations, actions)
        return _Member(scorer, Training(name, tuple(loss), updates), trajectories)

    def _subset(
        self, positives: TrajectorySet, limit: int, rng: np.random.Generator
    ) -> tuple[Integers, Integers]:
        """Step positions of a bootstrap subset, and the trajectories to abstain from."""
        nobody = np.zeros(0, dtype=np.int64)
        if self.bag == "step":
            return rng.integers(0, positives.steps, size=min(positives.steps, limit)), nobody
        chosen = rng.integers(0, len(positives), size=len(positives))
        starts, lengths = positives.offsets[chosen], positives.lengths[chosen]
        steps = np.concatenate([np.arange(s, s + n) for s, n in zip(starts, lengths, strict=True)])
        if len(steps) > limit:
            steps = rng.choice(steps, size=limit, replace=False)
        return steps, np.unique(chosen)

    def _pairs(
        self, task: Task, positives: Pairs, rng: np.random.Generator
    ) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
        """Normalised tensors of positives and negatives, and which are positive."""
        count = len(positives)
        negatives = take_pairs(task.mixed, rng.integers(0, task.mixed.steps, size=count))
        if self.negatives == "seven":
            negatives = make_negatives(
                positives,
                negatives,
                count,
                ranges=(task.facts.observations, task.facts.actions),
                rng=rng,
                shares=self.shares,
                recorded=task.mixed.blocks,
            )
        observations, actions = _normalisers(task)
        device = pick_device(task.bench.device)
        positive = torch.zeros(2 * count, dtype=torch.bool)
        positive[:count] = True
        states = np.concatenate([positives.observations, negatives.observations])
        acts = np.concatenate([positives.actions, negatives.actions])
        return (
            torch.from_numpy(observations(states)).to(device),
            torch.from_numpy(actions(acts)).to(device),
            positive.to(device),
        )

    def _train(
        self, task: Task, pairs: tuple[torch.Tensor, torch.Tensor, torch.Tensor], key: Key
    ) -> tuple[Classifier, list[float], int]:
        """Train; a classifier whose loss leaves the numbers starts again ten times slower."""
        for rate in (self.schedule.learning_rate, self.schedule.learning_rate / 10):
            rng = key.rng()
            network = Classifier(pairs[0].shape[1], pairs[1].shape[1])
            initialise(network, rng)
            network.to(pairs[0].device)
            loss = fit_classifier(
                network,
                pairs,
                loss=LOSSES[self.loss],
                schedule=replace(self.schedule, learning_rate=rate),
                rng=rng,
                stop=task.bench.stopped.is_set,
            )
            if math.isfinite(loss[-1]):
                updates = len(loss) * math.ceil(len(pairs[2]) / self.schedule.batch)
                return network, loss, updates
        raise DataError(
            "The training loss of a classifier is not a number, also at a tenth of the "
            "learning rate. Look for extreme values with `pubc inspect`.",
            code="diverged",
        )


@dataclass(frozen=True, slots=True, eq=False)
class _Member:
    """One trained classifier."""

    scorer: Scorer
    training: Training
    trajectories: Integers


def load_scorer(path: Path, device: torch.device) -> tuple[Scorer, list[float], int]:
    """Read a stored classifier with its training loss and number of updates."""
    tensors, about = load_tensors(path)
    try:
        network = Classifier(int(about["observation_size"]), int(about["action_size"]))
        weights = {k.removeprefix("network."): v for k, v in tensors.items() if "." in k}
        network.load_state_dict(weights)
        observations = Normaliser(
            tensors["observation_mean"].numpy(), tensors["observation_scale"].numpy()
        )
        actions = Normaliser(tensors["action_mean"].numpy(), tensors["action_scale"].numpy())
        loss, updates = [float(v) for v in about["loss"]], int(about["updates"])
    except (KeyError, TypeError, ValueError, RuntimeError) as error:
        raise DataError(f"{path}: not a stored classifier ({error}).", code="bad_weights") from None
    network.eval()
    return Scorer.of(network.to(device), observations, actions), loss, updates


def _name(number: int, member: int) -> str:
    return f"round-{number:03d}-member-{member}"


def _tensors(
    network: Classifier, observations: Normaliser, actions: Normaliser
) -> dict[str, torch.Tensor]:
    return {
        **{f"network.{name}": tensor for name, tensor in network.state_dict().items()},
        "observation_mean": torch.from_numpy(observations.mean),
        "observation_scale": torch.from_numpy(observations.scale),
        "action_mean": torch.from_numpy(actions.mean),
        "action_scale": torch.from_numpy(actions.scale),
    }


def _normalisers(task: Task) -> tuple[Normaliser, Normaliser]:
    states, acts = task.facts.observations, task.facts.actions
    return (
        Normaliser.from_moments(states.mean, states.deviation),
        Normaliser.from_moments(acts.mean, acts.deviation),
    )


def _found(where: TrajectorySet, which: TrajectorySet) -> Integers:
    if not len(which):
        return np.zeros(0, dtype=np.int64)
    places = locate(where, which)
    return places[places >= 0]
