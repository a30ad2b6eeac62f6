"""Looks at a policy while it is still being trained: what it earns after so many updates.

The points make learning curves of scores, the paper's Figure 5. How to measure is the caller's
business; this module says when.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from pubc.errors import UsageError
from pubc.policies.policy_folder import TrainedPolicy
from pubc.results import Record

__all__ = ["ScoredCheckpoints"]


@dataclass(frozen=True, slots=True)
class ScoredCheckpoints:
    """Evaluations on the way, and one at the end."""

    every: int
    """Updates between two of them; each waits for the end of its epoch."""
    measure: Callable[[TrainedPolicy, int], Record]
    """Evaluates the policy after so many updates."""

    def __post_init__(self) -> None:
        if self.every < 1:
            raise UsageError(f"A policy is looked at every 1 or more updates. Got {self.every}.")

    def due(self, before: int, after: int) -> bool:
        """Whether one falls into the updates of an epoch.

        Args:
            before: Updates when the epoch began.
            after: Updates when it ended.

        Example:
            >>> looks = ScoredCheckpoints(1000, lambda policy, updates: Record({}, {}))
            >>> looks.due(900, 999), looks.due(999, 1100)
            (False, True)
        """
        return after // self.every > before // self.every
