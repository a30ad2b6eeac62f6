"""Behaviour cloning: maximise the likelihood of the recorded actions.

The recipe `paper` is the paper's: Adam at 1e-3, batches of 100, 200 epochs. The recipe
`auto` makes 20,000 updates, a tenth of those for 100,000 steps, with a learning rate that falls to
zero, and keeps the weights that did best on trajectories it held out. Batches four times as large
were tried: they earn the same, and take four times as long on a CPU.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from pubc.errors import DataError, UsageError
from pubc.policies.cloning.flat_weights import LAYOUT, check_layout, initial_parameters, split
from pubc.policies.cloning.fused_steps import FusedStep
from pubc.policies.networks import NetworkPolicy, layers_from_flat
from pubc.policies.train_options import TrainOptions, check_rate
from pubc.policies.training_rows import MEMORY, TrainingRows, facts_of
from pubc.streams import stream
from pubc.threads import threads
from pubc.trajectory import Array, TrajectorySet

__all__ = ["CHECKED", "CHUNK", "Clone", "Plan", "hold_out", "learning_rate", "plan"]

CHUNK = 64
"""Updates between two looks at the learning rate, and one graph on a CUDA device."""
CHECKED = 20_000
"""Held-out steps that are looked at after every epoch, spread over all of them."""
_BLOCK = 4096
_WARM_UP = 0.05
"""Share of all updates in which the falling schedule first rises."""


@dataclass(frozen=True, slots=True)
class Plan:
    """A recipe applied to a set: every number that training needs."""

    batch_size: int
    learning_rate: float
    epochs: int
    updates_per_epoch: int
    falling: bool
    """Whether the learning rate rises for a moment and then falls to zero."""
    held_out: int
    """Trajectories that are not trained on."""
    patience: int
    """Epochs without a better held-out loss after which to stop."""


def plan(trajectories: TrajectorySet, options: TrainOptions) -> Plan:
    """Apply the recipe to a set.

    Raises:
        UsageError: An option is out of range.
    """
    paper = options.recipe == "paper"
    share = options.held_out if options.held_out is not None else (0.0 if paper else 0.05)
    if not 0 <= share < 1:
        raise UsageError(f"--held-out is a share from 0 to less than 1. Got {share}.")
    held = min(math.ceil(share * len(trajectories)), len(trajectories) // 5)
    steps = math.floor(trajectories.steps * (1 - held / max(1, len(trajectories))))
    usual = 100 if paper else min(128, max(64, 2 ** int(math.log2(max(1, steps / 64)))))
    batch = min(options.batch_size or usual, steps)
    check_rate(options)
    rate = options.learning_rate or 1e-3
    if batch < 1 or min(options.hidden, default=1) < 1:
        raise UsageError(
            f"Batch size and layer widths must be above zero. Got {batch} and {options.hidden}."
        )
    per_epoch = max(1, steps // batch)
    if options.updates is not None:
        epochs = math.ceil(options.updates / per_epoch)
    elif options.epochs is not None:
        epochs = options.epochs
    else:
        epochs = 200 if paper else min(500, max(10, math.ceil(20_000 / per_epoch)))
    if epochs < 1:
        raise UsageError(f"Training takes at least one epoch. Got {epochs}.")
    return Plan(batch, rate, epochs, per_epoch, not paper, held, max(10, epochs // 5))


def hold_out(trajectories: int, count: int, random_seed: int) -> NDArray[np.bool_]:
    """Which trajectories a run with this random seed does not train on."""
    out = np.zeros(trajectories, dtype=np.bool_)
    if count:
        out[stream(random_seed, "bc", "held out").permutation(trajectories)[:count]] = True
    return out


def learning_rate(chosen: Plan, epoch: float) -> float:
    """The step size after so many epochs and parts of one."""
    if not chosen.falling:
        return chosen.learning_rate
    done = epoch / chosen.epochs
    if done < _WARM_UP:
        return chosen.learning_rate * (0.1 + 0.9 * done / _WARM_UP)
    return chosen.learning_rate * 0.5 * (1 + math.cos(math.pi * done))


class Clone:
    """A behaviour cloning run: advance it epoch by epoch, take the policy at the end."""

    def __init__(
        self,
        trajectories: TrajectorySet,
        options: TrainOptions,
        *,
        random_seed: int,
        device: torch.device,
        memory: int = MEMORY,
        weights: NDArray[np.float32] | None = None,
    ) -> None:
        self.plan = plan(trajectories, options)
        self.epochs = self.plan.epochs
        self.options, self.random_seed, self.device = options, random_seed, device
        self.facts = facts_of(trajectories)
        self.fingerprint = self.facts.fingerprint
        kept, held = self._hold_out(trajectories)
        self._odds, self._held_odds = self._weigh(trajectories, weights)
        self._feed = TrainingRows(kept, self.facts, device=device, memory=memory)
        self._held = self._sample(held)
        wide = trajectories.action_size * (2 if options.head == "gaussian" else 1)
        self.sizes = (trajectories.observation_size, *options.hidden, wide)
        flat = initial_parameters(self.sizes, stream(random_seed, "bc", "weights"))
        self._step = FusedStep(
            self.sizes,
            self.plan.batch_size,
            options.head,
            torch.from_numpy(flat).to(device),
            chunk=min(CHUNK, max(1, kept.steps // self.plan.batch_size)),
        )
        self._best = self._step.parameters.clone()
        self._best_loss, self._best_epoch, self._waited = math.inf, -1, 0

    def advance(self, epoch: int) -> dict[str, float]:
        """Train one epoch and say how it went.

        Raises:
            DataError: The loss is not finite any more.
        """
        step, batch = self._step, self.plan.batch_size
        order = self._order(stream(self.random_seed, "bc", "order", epoch))
        updates = max(1, self._feed.steps // batch)
        for start in range(0, updates, step.chunk):
            count = min(step.chunk, updates - start)
            rows = order[start * batch : (start + count) * batch]
            inputs, targets = step.inputs[:count], step.targets[:count]
            with threads(1):
                self._feed.gather(rows, inputs.flatten(0, -2), targets.flatten(0, -2))
            step.run(count, learning_rate(self.plan, epoch + start / updates))
        result = {"loss": step.take_loss() / (updates * batch)}
        if not math.isfinite(result["loss"]):
            raise DataError(
                f"The loss became {result['loss']} in epoch {epoch + 1}, so training stopped. "
                f"Lower --learning-rate (it was {self.plan.learning_rate:g}), or look for "
                "extreme values with `pubc inspect`.",
                code="nonfinite_loss",
            )
        result["learning_rate"] = learning_rate(self.plan, epoch + 1)
        if self._held is not None:
            result["held_out_loss"] = self._judge(epoch)
        return result

    @property
    def settled(self) -> bool:
        """Whether the held-out loss has stopped falling."""
        return self._held is not None and self._waited >= self.plan.patience

    def updates_after(self, epochs: int) -> int:
        """Updates that so many epochs make."""
        return epochs * max(1, self._feed.steps // self.plan.batch_size)

    def state(self) -> tuple[dict[str, Array], dict[str, Any]]:
        """Everything that training changes, to go on from later."""
        step = self._step
        arrays = {
            "parameters": step.parameters,
            "first": step.first,
            "second": step.second,
            "best": self._best,
        }
        # JSON has no infinity.
        best = self._best_loss if math.isfinite(self._best_loss) else None
        facts = {"layout": LAYOUT, "step": float(step.step), "best_loss": best,
                 "best_epoch": self._best_epoch, "waited": self._waited}  # fmt: skip
        return {name: t.cpu().numpy().copy() for name, t in arrays.items()}, facts

    def restore(self, arrays: Mapping[str, Array], facts: Mapping[str, Any]) -> None:
        """Go back to a state.

        Raises:
            UsageError: The state is of another layout.
        """
        check_layout(facts)
        step = self._step
        for name, target in (
            ("parameters", step.parameters),
            ("first", step.first),
            ("second", step.second),
            ("best", self._best),
        ):
            target.copy_(torch.from_numpy(np.array(arrays[name])))
        step.step.fill_(facts["step"])
        self._best_loss = math.inf if facts["best_loss"] is None else float(facts["best_loss"])
        self._best_epoch, self._waited = int(facts["best_epoch"]), int(facts["waited"])

    def policy(self) -> NetworkPolicy:
        """What was learned: the best weights on held-out trajectories, else the last."""
        chosen = self._step.parameters if self._held is None else self._best
        return NetworkPolicy(
            self.facts.normaliser,
            self.facts.actions,
            layers_from_flat(chosen.cpu().numpy(), self.sizes),
            gaussian=self.options.head == "gaussian",
        )

    def about(self) -> dict[str, Any]:
        """The plan as JSON values."""
        return asdict(self.plan)

    def _order(self, rng: np.random.Generator) -> NDArray[np.int64]:
        """The steps of one epoch: every one once, or as often as its weight has it."""
        if self._odds is None:
            return rng.permutation(self._feed.steps)
        return rng.choice(self._feed.steps, self._feed.steps, p=self._odds)

    def _weigh(
        self, trajectories: TrajectorySet, weights: NDArray[np.float32] | None
    ) -> tuple[NDArray[np.float64] | None, NDArray[np.float64] | None]:
        """How often each step is drawn, of those trained on and of those held out."""
        if weights is None:
            return None, None
        out = hold_out(len(trajectories), self.plan.held_out, self.random_seed)
        at = np.repeat(out, trajectories.lengths)
        return _odds(weights[~at]), _odds(weights[at]) if out.any() else None

    def _hold_out(self, trajectories: TrajectorySet) -> tuple[TrajectorySet, TrajectorySet | None]:
        if not self.plan.held_out:
            return trajectories, None
        out = hold_out(len(trajectories), self.plan.held_out, self.random_seed)
        return trajectories[~out], trajectories[out]

    def _sample(self, held: TrajectorySet | None) -> tuple[torch.Tensor, torch.Tensor] | None:
        if held is None:
            return None
        rows = np.unique(np.linspace(0, held.steps - 1, CHECKED).astype(np.int64))
        if self._held_odds is not None:
            rng = stream(self.random_seed, "bc", "held out steps")
            rows = rng.choice(held.steps, min(CHECKED, held.steps), p=self._held_odds)
        inputs = torch.empty(len(rows), held.observation_size + 1, device=self.device)
        targets = torch.empty(len(rows), held.action_size, device=self.device)
        TrainingRows(held, self.facts, device=self.device, memory=0).gather(rows, inputs, targets)
        return inputs, targets

    def _judge(self, epoch: int) -> float:
        loss = self._held_out_loss()
        if loss < self._best_loss:
            self._best_loss, self._best_epoch, self._waited = loss, epoch, 0
            self._best.copy_(self._step.parameters)
        else:
            self._waited += 1
        return loss

    @torch.no_grad()
    def _held_out_loss(self) -> float:
        assert self._held is not None
        layers = split(self._step.parameters, self.sizes)
        total, size = 0.0, self._held[1].shape[1]
        with threads(1):
            for x, y in zip(*(torch.split(part, _BLOCK) for part in self._held), strict=True):
                below = x
                for layer in layers[:-1]:
                    hidden = torch.relu_(below @ layer)
                    below = torch.cat([hidden, x[:, -1:]], dim=1)
                units = torch.tanh_(below @ layers[-1])
                errors = torch.square(units[:, :size] - y)
                if self.options.head == "gaussian":
                    width = -1.5 + 3.5 * units[:, size:]
                    errors = 0.5 * errors * torch.exp(-2 * width) + width
                total += float(errors.double().sum())
        return total / (len(self._held[1]) * size)


def _odds(weights: NDArray[np.float32]) -> NDArray[np.float64]:
    """Weights as chances; even ones where nothing weighs anything."""
    sure = weights.astype(np.float64)
    return sure / sure.sum() if sure.sum() > 0 else np.full(len(sure), 1 / len(sure))
