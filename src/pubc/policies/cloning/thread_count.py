"""How many threads training uses: as many as are faster, if they change no bit."""

from __future__ import annotations

from collections.abc import Callable

import torch

__all__ = ["Pace"]


class Pace:
    """Chooses the number of threads by the clock; it changes the speed and nothing else.

    Threads that wait for one another spin. Beside other busy processes that makes two threads
    many times slower than one. So work begins with one, and now and then all are tried.
    """

    _TRIAL = 4
    """Updates per trial."""
    _SHARE = 40
    """Trials take at most one part in this many of the time."""
    _FIRST = 0.2
    """Seconds of work before the first trial; less work than that needs no help."""

    def __init__(self, most: int, agrees: Callable[[int], bool]) -> None:
        """Start with one thread.

        Args:
            most: Threads that could have something to do.
            agrees: Whether so many threads give the result of one; asked once.
        """
        self._choices = sorted({1, min(most, torch.get_num_threads())})
        self._agrees: Callable[[int], bool] | None = agrees
        self._best = 1
        self._trials: list[int] = []
        self._seconds: dict[int, float] = {}
        self._until_next = self._FIRST

    def next(self, left: int) -> tuple[int, int]:
        """How many updates to do next, and with how many threads."""
        if not self._trials and len(self._choices) > 1 and self._until_next <= 0:
            if self._agrees is not None and not self._agrees(self._choices[-1]):
                self._choices = [1]
                return left, 1
            self._agrees = None
            self._trials = list(self._choices)
        if self._trials:
            return min(self._TRIAL, left), self._trials[0]
        return left, self._best

    def took(self, seconds: float, updates: int) -> None:
        """Say how long the updates took."""
        if not self._trials:
            self._until_next -= seconds
            return
        self._seconds[self._trials.pop(0)] = seconds / updates
        if not self._trials:
            self._best = min(self._choices, key=self._seconds.__getitem__)
            self._until_next = self._SHARE * self._TRIAL * sum(self._seconds.values())
