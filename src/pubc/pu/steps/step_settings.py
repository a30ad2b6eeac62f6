"""Every number that shapes the evidence of steps, in one place; run.json records them."""

from __future__ import annotations

from dataclasses import dataclass, replace

__all__ = ["StepSettings"]


@dataclass(frozen=True, slots=True)
class StepSettings:
    """How the evidence of steps is gathered.

    docs/segments.md says on what the numbers were chosen, and how well they do.
    """

    looks: int = 2
    """Independent looks, each with features of its own; their evidence is averaged."""
    waves: int = 64
    """Random features of each of two scales."""
    width: int = 96
    """Features that a small network learns from all actions of the pile."""
    updates: int = 1000
    """Gradient steps of that network."""
    rows: int = 24_000
    """At most about so many steps are learned from, spread over the trajectories."""
    trajectories: int = 240
    """At most so many trajectories, the seeds among them."""
    folds: int = 4
    """No step is judged by a fit that saw its trajectory."""
    rounds: int = 2
    """Rounds in which steps that look wrong lose their weight and others gain some."""
    seed_weight: float = 3.0
    """Weight of a seed's step; a step of another kept trajectory weighs 1."""
    growth: float = 0.3
    """Most weight of a step of a trajectory that is not kept, for the bold half of the imitators;
    where the seeds are alone, none."""
    careful: float = 0.03
    """The same for the careful half. Bold ones know the way back from a detour, careful ones do
    not learn a fault that is in many trajectories; their evidence is averaged."""
    alone: float = 0.2
    """Seeds from elsewhere are alone where the filter keeps less of the pile than this."""
    lone_looks: int = 1
    """There, instead of `looks`: what more of them say of new situations was no better."""
    lone_updates: int = 200
    """There, instead of `updates`: features that fit the pile's acts closely know fewer places."""
    ridge: float = 1.0
    """How much the imitator of the expert is held back."""
    other_ridge: float = 3.0
    """The same for the imitator of everybody else."""
    unknown: float = 0.005
    """How fast a situation counts as unknown with its distance, in usual distances."""
    temper: float = 0.4
    """What the evidence of one step is worth: neighbours repeat each other."""
    stay_expert: float = 0.98
    """Chance that a step of the expert is followed by another one."""
    stay_other: float = 0.96
    """Chance that a step of somebody else is followed by another one."""
    prior: float = 0.6
    """Chance that a trajectory begins with a step of the expert."""
    ventures: int = 1
    """Where the seeds are alone: further rounds, which learn from new situations too. More gain
    little and cost a tenth of the filter each."""
    near: float = 10.0
    """There a situation is near the seeds' up to this distance, in usual distances."""
    new_unknown: float = 0.05
    """There, instead of `unknown`: far away an imitator says next to nothing."""
    new_stay_other: float = 0.94
    """There, instead of `stay_other`: lapses end sooner."""
    intercept: float = -1.358
    """Calibration of the confidence: the constant (benchmarks/step_evidence.py --learn)."""
    by_chain: float = 0.0
    """Calibration: weight of the log-odds that the chain gives the step; beside the window it
    says nothing more, unless the seeds are alone."""
    by_window: float = 0.906
    """Calibration: weight of the mean evidence of the eleven steps around it."""
    lone_intercept: float = -0.284
    """The calibration where the seeds are alone: the constant."""
    lone_by_chain: float = 0.143
    """There, the weight of the chain."""
    lone_by_window: float = 0.131
    """There, the weight of the window."""

    def lone(self) -> StepSettings:
        """The same where the seeds are alone."""
        return replace(
            self,
            looks=self.lone_looks,
            updates=self.lone_updates,
            intercept=self.lone_intercept,
            by_chain=self.lone_by_chain,
            by_window=self.lone_by_window,
        )
