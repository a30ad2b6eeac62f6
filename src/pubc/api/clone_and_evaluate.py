"""From a set to a policy, and from a policy to the returns that it earns."""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pubc.acting.evaluate import Outcome
from pubc.acting.evaluate import evaluate as play_episodes
from pubc.acting.rollout import Policy
from pubc.errors import UnknownNameError, UsageError
from pubc.metrics import REFERENCES, check_reference, interval, normalised_score
from pubc.policies import trainer
from pubc.policies.export_policy import Exported
from pubc.policies.export_policy import export as export_policy
from pubc.policies.policy_folder import open_policy
from pubc.policies.train_options import TrainOptions
from pubc.policies.training_run import Session
from pubc.trajectory import TrajectorySet

__all__ = ["Evaluation", "clone", "evaluate", "export", "load_policy"]


@dataclass(frozen=True, slots=True, eq=False)
class Evaluation:
    """What a policy earned."""

    returns: NDArray[np.float64]
    """Return of each trajectory, shape (episodes,)."""
    steps: NDArray[np.int64]
    """Length of each."""
    interval: tuple[float, float]
    """95 % bootstrap interval of the mean return."""
    score: float | None
    """The paper's normalised score of the mean; None where no reference returns are known."""

    @property
    def mean(self) -> float:
        """Mean return."""
        return float(self.returns.mean())

    def __repr__(self) -> str:
        low, high = self.interval
        return (
            f"Evaluation({self.mean:,.1f} in {len(self.returns)} trajectories, 95 % interval "
            f"{low:,.1f} to {high:,.1f})"
        )


def clone(
    trajectories: TrajectorySet,
    *,
    algo: str = "bc",
    positives: TrajectorySet | None = None,
    random_seed: int = 0,
    device: str = "auto",
    out: Path | str | None = None,
    overwrite: bool = False,
    on_epoch: Callable[[int, Mapping[str, float]], None] = lambda epoch, metrics: None,
    **options: Any,
) -> Any:
    """Learn a policy from trajectories.

    Args:
        trajectories: What to learn from; for example `mixed[finder.mask_]`.
        algo: `bc`, `10%bc`, `dwbc` and, through d3rlpy, `iql`, `crr`, `td3bc`, `plas`, `dt`.
        positives: Seed positives, for `dwbc`.
        random_seed: Same seed, same data, same machine: same policy.
        device: `auto`, `cpu` or `cuda`.
        out: Also write the policy folder that `pubc train` writes, with checkpoints on the way.
        overwrite: Replace `out` if it is a policy folder.
        on_epoch: Called with the number of each finished epoch and its metrics.
        options: Fields of `pubc.policies.train_options.TrainOptions`, such as `epochs`.

    Returns:
        A policy. `policy.predict(observation)` gives an action and a state, as
        stable-baselines3 has it.

    Raises:
        UsageError: There is nothing to learn from, or no such learner or option.
        MissingExtraError: The learner needs a library that is not installed.
        DataError: It needs rewards and there are none.
    """
    if not isinstance(trajectories, TrajectorySet) or not len(trajectories):
        found = repr(trajectories) if isinstance(trajectories, TrajectorySet) else "something else"
        raise UsageError(f"clone takes a TrajectorySet that holds trajectories. Got {found}.")
    run = trainer(
        algo,
        trajectories,
        _options(options),
        random_seed=random_seed,
        device=device,
        positives=positives,
    )
    if out is not None:
        about = {"learner": algo, "options": dict(options), "random_seed": random_seed}
        session = Session(run, Path(out), about, overwrite=overwrite)
        for epoch in session.epochs():
            on_epoch(epoch.number, epoch.metrics)
        return load_policy(out)
    for number in range(run.epochs):
        if run.settled:
            break
        on_epoch(number + 1, run.advance(number))
    return run.policy()


def load_policy(name: Path | str) -> Any:
    """The policy in a folder of `pubc train` or `pubc.clone`, or one of the zoo by its name.

    Raises:
        UsageError: There is neither.
        DataError: A file of it is damaged.
    """
    return open_policy(str(name))


def evaluate(
    policy: Policy | Path | str,
    environment: str,
    *,
    episodes: int = 100,
    random_seed: int = 0,
    processes: int = 1,
    reference: tuple[float, float] | None = None,
) -> Evaluation:
    """Let a policy act, and count what it earns.

    Args:
        policy: A policy, a policy folder, or the name of a policy of the zoo.
        environment: One of ours, such as `ant`, or any Gymnasium id.
        episodes: Trajectories to play.
        random_seed: Fixes every start; two policies with the same seed meet the same starts.
        processes: Trajectories to play at a time; it does not change them.
        reference: Returns that count as score 0 and 1, instead of the known ones.

    Raises:
        UsageError: A number is out of range, or the environment is unknown.
        MissingExtraError: The environment's simulator is not installed.
        DataError: The policy does not fit the environment.
    """
    if reference is not None:
        check_reference(reference)
    make: Callable[[], Policy] = (
        functools.partial(open_policy, str(policy))
        if isinstance(policy, Path | str)
        else functools.partial(_itself, policy)
    )
    played = play_episodes(
        make, environment, episodes=episodes, random_seed=random_seed, processes=processes
    )
    outcome = Outcome.of(list(played))
    known = reference or REFERENCES.get(environment, (None, None))[:2]
    mean = float(outcome.returns.mean())
    low, high = known
    scored = None if low is None or high is None else normalised_score(mean, (low, high))
    return Evaluation(outcome.returns, outcome.steps, interval(outcome.returns), scored)


def export(policy: Any, path: Path | str, *, overwrite: bool = False) -> Exported:
    """Write a policy as one ONNX or TorchScript file, check it against the policy, and time it.

    Args:
        policy: A policy of `clone` or `load_policy`, or a policy folder.
        path: Ends in .onnx or .pt.
        overwrite: Replace an existing file.

    Raises:
        UnknownNameError: The suffix is neither.
        MissingExtraError: ONNX was asked for and is not installed.
        DataError: The export acts differently from the policy; nothing was written.
    """
    made = load_policy(policy) if isinstance(policy, Path | str) else policy
    return export_policy(made, Path(path), overwrite=overwrite)


def _options(given: Mapping[str, Any]) -> TrainOptions:
    known = TrainOptions.__dataclass_fields__
    for name in given:
        if name not in known:
            raise UnknownNameError("option of training", name, known)
    return TrainOptions(**given)


def _itself(policy: Policy) -> Policy:
    """A policy as what makes it, for other processes."""
    return policy
