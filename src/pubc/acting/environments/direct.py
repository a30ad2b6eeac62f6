"""MuJoCo robots of Gymnasium with less bookkeeping per step, and the same numbers to the last bit.

A step in Gymnasium spends up to a third of its time on views, dictionaries and sums that the
next line throws away. Here the views are made once, positions are kept from the step before,
and nothing is computed that is not returned. Weights and limits are read from Gymnasium's
own environment, which still does the resets.
"""

from __future__ import annotations

import ctypes
import gc
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from pubc.acting.environments.gym import GymEnvironment
from pubc.trajectory import Array

__all__ = ["DirectEnvironment", "nothing_but_playing"]


class DirectEnvironment(GymEnvironment):
    """What the robots have in common: the simulation is advanced without Gymnasium."""

    def __init__(self, name: str, id: str, arguments: Mapping[str, Any]) -> None:
        super().__init__(name, id, arguments, bare=True)
        import mujoco

        inner = self._environment
        self._model, self._data, self._frames = inner.model, inner.data, inner.frame_skip
        self._simulate, self._forces = mujoco.mj_step, mujoco.mj_rnePostConstraint
        # MuJoCo's arrays stay where they are for the life of the simulation.
        self._control = self._data.ctrl
        self._seconds = float(inner.dt)

    def _advance(self, action: Array) -> bool:
        """Simulate one step; whether it was the last one allowed."""
        self._control[:] = action
        self._simulate(self._model, self._data, self._frames)
        self._forces(self._model, self._data)
        self._steps += 1
        return self._steps >= self.time_limit


def nothing_but_playing() -> None:
    """Tune a process of ours that does nothing but play; the numbers stay the same.

    Python's collector of garbage would walk through every loaded module again and again, and
    MuJoCo reads the clock hundreds of times per step for a profile that nobody reads.
    """
    gc.freeze()
    home = getattr(sys.modules.get("mujoco"), "__file__", None)
    for library in Path(home).parent.glob("libmujoco.*") if home else ():
        try:
            clock = ctypes.c_void_p.in_dll(ctypes.CDLL(str(library)), "mjcb_time")
        except (OSError, ValueError):
            continue
        clock.value = None
