"""What a judge is asked, what it answers, and the bench it works at.

The filter loop knows no networks: it hands a `Task` to a judge and gets a `Verdict` back.
The paper's ensemble, its baselines and the residual judge are all judges.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol, TypeVar

import numpy as np
from numpy.typing import NDArray

from pubc.errors import UsageError
from pubc.pu.pile_statistics import Survey
from pubc.streams import Key
from pubc.threads import cores, one_thread, threads
from pubc.trajectory import TrajectorySet

__all__ = [
    "Bench",
    "Cut",
    "Judge",
    "Shards",
    "Standing",
    "StoredJudge",
    "Task",
    "Threshold",
    "Training",
    "Verdict",
    "mean_confidence",
]

Floats = NDArray[np.float64]
Mask = NDArray[np.bool_]
Item = TypeVar("Item")
Made = TypeVar("Made")


class Shards(Protocol):
    """A dataset spread over the workers of an engine; `pubc.pu.shards` has them."""

    def map(
        self,
        work: Callable[[TrajectorySet], Mapping[str, NDArray[Any]]],
        name: str,
        trajectories: TrajectorySet,
    ) -> Iterator[dict[str, NDArray[Any]]]:
        """Apply a function to every shard of the dataset; yield what it found, in order."""
        ...


@dataclass(frozen=True, slots=True, eq=False)
class Bench:
    """Where and how a judge works; nothing here changes its answer on one device."""

    workers: int = 0
    """Networks trained or applied at the same time; 0 means one per core."""
    device: str = "auto"
    """`auto`, `cpu` or `cuda`."""
    shelf: Path | None = None
    """Folder in which finished networks are kept, so that a killed run need not redo them."""
    question: str = ""
    """Hash of what is asked of the run, written into each network: it is no other run's."""
    memory: dict[str, Any] = field(default_factory=dict)
    """What a judge prepared once and needs again in the next round; never part of an answer."""
    shards: Shards | None = None
    """Workers that go over the whole pile; without any, threads of this process do."""
    tell: Callable[[str], None] = lambda word: None
    """Told what was just finished."""
    stopped: threading.Event = field(default_factory=threading.Event)
    """Set to make everything at this bench stop soon."""

    def __post_init__(self) -> None:
        if self.workers < 0:
            raise UsageError(f"Workers are at least 1, or 0 for one per core. Got {self.workers}.")

    @property
    def hands(self) -> int:
        """Workers as a number of at least one."""
        return self.workers or cores()

    def map(self, work: Callable[[Item], Made], items: Sequence[Item]) -> list[Made]:
        """Do a piece of work for each item, several at a time, and keep their order."""
        with threads(1), ThreadPoolExecutor(self.hands, initializer=one_thread) as pool:
            futures = [pool.submit(work, item) for item in items]
            try:
                return [future.result() for future in futures]
            except BaseException:
                self.stopped.set()
                for future in futures:
                    future.cancel()
                raise


@dataclass(frozen=True, slots=True, eq=False)
class Cut:
    """A threshold and the evidence for it, or the reason why there is none."""

    threshold: float | None
    """Confidence a classifier needs to vote for a trajectory; None where none was found."""
    reason: str
    """One sentence: how the cut was found, or why not."""
    status: str | None = None
    """Why the cut is not to be trusted; None where it is. With a threshold it is a working
    cut: rounds may go on from it, but do not end well on it. `guess` is a mere start."""
    evidence: float | None = None
    """How sure the valley is, where that was tested: 1 and above is significant."""
    centres: Floats = field(default_factory=lambda: np.zeros(0))
    """Middle of each histogram bin, shape (bins,)."""
    counts: Floats = field(default_factory=lambda: np.zeros(0))
    """Trajectories in each bin, shape (bins,)."""
    curve: Floats = field(default_factory=lambda: np.zeros(0))
    """Curve that the cut was read from, at the centres, shape (bins,)."""


@dataclass(frozen=True, slots=True, eq=False)
class Standing:
    """How things stood after a round."""

    verdict: Verdict
    """What the judge thought."""
    cut: Cut
    """Where that was cut."""
    selected: Mask
    """What counted as the expert's, shape (trajectories,)."""
    changed: float
    """Share of trajectories whose membership had changed."""
    start: bool = False
    """Whether this is no round but a split to start from."""


@dataclass(frozen=True, slots=True, eq=False)
class Task:
    """One round of work for a judge."""

    number: int
    """1 for the first round."""
    mixed: TrajectorySet
    """The trajectories to judge."""
    positives: TrajectorySet
    """What counts as the expert's in this round."""
    seed_positives: TrajectorySet
    """The seed positives, known to be the expert's."""
    standing: Standing | None
    """How the round before ended; None in the first."""
    facts: Survey
    """Ranges and moments of the mixed set."""
    key: Key
    """Names the randomness of this round."""
    bench: Bench
    """Where to work."""


@dataclass(frozen=True, slots=True)
class Training:
    """How the training of one network went."""

    network: str
    """Name of its file."""
    loss: tuple[float, ...]
    """Mean training loss of each epoch."""
    updates: int
    """Gradient steps in all."""


@dataclass(frozen=True, slots=True, eq=False)
class Verdict:
    """What a judge thinks of every trajectory."""

    confidence: Floats
    """Of each member in each mixed trajectory, shape (members, trajectories); NaN where a
    member abstains because it trained on that trajectory."""
    seed_confidence: Floats
    """The same for the seeds, shape (members, seeds)."""
    training: tuple[Training, ...] = ()
    """How each member was trained."""
    held_out: bool = False
    """Whether every seed was judged by networks that did not train on it."""
    split: tuple[Mask, Mask] | None = None
    """For judges that compare two sides: the positives and the rest behind the confidences,
    each of shape (trajectories,); between the two lie the unsure."""
    history: Floats = field(default_factory=lambda: np.zeros((0, 0)))
    """Confidences of single rounds, where a judge averages several; (rounds, trajectories)."""
    seed_history: Floats = field(default_factory=lambda: np.zeros((0, 0)))
    """The same for the seeds, shape (rounds, seeds)."""
    first: Floats = field(default_factory=lambda: np.zeros(0))
    """How well each trajectory fits imitators of the seeds alone, shape (trajectories,); NaN
    for the seeds. Empty for judges that do not look."""
    seed_first: Floats = field(default_factory=lambda: np.zeros(0))
    """The same for the held-out seeds, shape (seeds,)."""


Threshold = Callable[[Verdict], Cut]
"""Maps what a judge thinks of every trajectory, and of the seeds, to a cut."""


class Judge(Protocol):
    """Trains on the positives of a task, then rates its mixed trajectories."""

    def __call__(self, task: Task) -> Verdict:
        """Return the confidence of every member in every trajectory."""
        ...


class StoredJudge(Judge, Protocol):
    """A judge whose networks can be used again later."""

    def apply(self, shelf: Path, number: int, trajectories: TrajectorySet, bench: Bench) -> Floats:
        """Rate other trajectories with the networks that a round left on the shelf."""
        ...

    def steps(
        self, shelf: Path, number: int, trajectories: TrajectorySet, bench: Bench
    ) -> Iterator[NDArray[np.float32]]:
        """Stream a value per step in order: what it adds to its trajectory's confidence."""
        ...


def mean_confidence(confidence: Floats) -> Floats:
    """Mean over the members that do not abstain; over nobody it is NaN."""
    present = ~np.isnan(confidence)
    total = np.where(present, confidence, 0.0).sum(axis=0)
    count = present.sum(axis=0)
    return np.where(count > 0, total / np.maximum(count, 1), np.nan)
