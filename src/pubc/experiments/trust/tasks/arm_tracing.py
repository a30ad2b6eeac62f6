"""A built-in task of another kind: an arm of two links traces a loop, moved by torques.

Nothing is grasped and there are no phases: the arm follows a point round an ellipse, and every
controller settles into a cycle of its own. Choices made on one task are judged on the other.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from pubc.experiments.trust.tasks.behaviour import Style
from pubc.trajectory.arrays import Floats, Integers

__all__ = ["ArmTracing", "Pose"]

_DT = 0.05
_LINK = 0.5
_TORQUE = 2.0
"""Torque of the largest command."""


@dataclass(frozen=True, slots=True, eq=False)
class Pose:
    """Where the arm and the point are; one row per trajectory."""

    angles: Floats
    """Of the joints, shape (trajectories, 2)."""
    speeds: Floats
    """Of the joints."""
    centre: Floats
    """Of the ellipse, shape (trajectories, 2)."""
    radii: Floats
    """Of the ellipse."""
    phase: Floats
    """Where on it the point is, shape (trajectories,)."""
    turn: Floats
    """How far it moves in one step."""
    shift: Floats
    """By how much the tip seems to be elsewhere."""


class ArmTracing:
    """The task."""

    name = "arm tracing"
    steps = 100
    action_size = 2
    usual = 0.4
    """How large commands usually are; noise and faults are multiples of it."""
    hand = slice(6, 8)
    """Where the observation has the position that absolute actions refer to."""

    def reset(self, count: int, rng: np.random.Generator, places: Integers, kinds: int) -> Pose:
        """Fresh arms; with several kinds of task each has its ellipse elsewhere."""
        away = rng.uniform(0.5, 0.7, count)
        angle = rng.uniform(-0.6, 0.6, count)
        if kinds > 1:
            angle = 2 * np.pi * places / kinds + 0.1 * angle
        centre = away[:, None] * np.stack([np.cos(angle), np.sin(angle)], axis=1)
        bend = 2.0 * np.arccos(away / (2 * _LINK))
        spread = rng.normal(0.0, 0.15, (2, count))
        return Pose(
            angles=np.stack([angle - bend / 2 + spread[0], bend + spread[1]], axis=1),
            speeds=rng.normal(0.0, 0.1, (count, 2)),
            centre=centre,
            radii=rng.uniform(0.1, 0.2, (count, 2)),
            phase=rng.uniform(0.0, 2 * np.pi, count),
            turn=rng.uniform(0.10, 0.14, count),
            shift=np.zeros((count, 2)),
        )

    def sense(self, scene: Pose, rng: np.random.Generator) -> Pose:
        """What the sensors say: joints are off by a tenth of a degree."""
        count = len(scene.angles)
        angles, speeds = rng.normal(0.0, 1.0, (2, count, 2))
        return replace(
            scene, angles=scene.angles + 0.002 * angles, speeds=scene.speeds + 0.01 * speeds
        )

    def observe(self, scene: Pose) -> Floats:
        """Observations, shape (trajectories, 12)."""
        tip, _, _ = _reach(scene)
        point, moves = _point(scene)
        joints = (np.cos(scene.angles), np.sin(scene.angles), scene.speeds)
        return np.concatenate([*joints, tip, point, moves], axis=1)

    def mistake(self, scene: Pose, offset: Floats) -> Pose:
        """The pose as somebody sees it who takes the tip to be elsewhere."""
        return replace(scene, shift=0.06 * offset[:, :2])

    def intend(self, scene: Pose, style: Style) -> Floats:
        """What a controller of that style does, shape (trajectories, 2)."""
        point, moves = _point(scene)
        return self._toward(scene, style, point, moves)

    def head_for(self, scene: Pose, style: Style, place: Floats) -> Floats:
        """The way to another place, given as directions of length about 1."""
        return self._toward(scene, style, 0.6 * place[:, :2], np.zeros((len(place), 2)))

    def give_up(self, scene: Pose, style: Style) -> Floats:
        """Stand still: only speed is braked."""
        return np.clip(-0.8 * scene.speeds / _TORQUE, -1.0, 1.0)

    def under_way(self, scene: Pose, step: int) -> Floats:
        """1 where giving up would be seen: half of the loops are drawn."""
        return np.full(len(scene.angles), float(step >= self.steps // 2))

    def advance(self, scene: Pose, action: Floats) -> Pose:
        """The poses one step later: two links of one kilogram, no gravity, some friction."""
        torque = _TORQUE * action - 0.3 * scene.speeds
        cos2, sin2 = np.cos(scene.angles[:, 1]), np.sin(scene.angles[:, 1])
        first, second = scene.speeds.T
        square = _LINK**2
        m11, m12, m22 = square * (1.8 + cos2), square * (0.4 + 0.5 * cos2), square * 0.4
        pull = 0.5 * square * sin2
        right = torque + np.stack([pull * second * (2 * first + second), -pull * first**2], 1)
        scale = m11 * m22 - m12**2
        gain = np.stack(
            [m22 * right[:, 0] - m12 * right[:, 1], m11 * right[:, 1] - m12 * right[:, 0]], axis=1
        )
        speeds = np.clip(scene.speeds + _DT * gain / scale[:, None], -8.0, 8.0)
        angles = scene.angles + _DT * speeds
        return replace(scene, angles=angles, speeds=speeds, phase=scene.phase + scene.turn)

    def menu(self) -> Floats:
        """The actions of the discrete version, shape (choices, 2)."""
        return np.array([[a, b] for a in (-0.6, 0.0, 0.6) for b in (-0.6, 0.0, 0.6)])

    def _toward(self, scene: Pose, style: Style, point: Floats, moves: Floats) -> Floats:
        tip, moving, jacobian = _reach(scene)
        error = point - tip - scene.shift
        error = error + style.side[:, None] * np.stack([-error[:, 1], error[:, 0]], axis=1)
        force = 40.0 * style.gain[:, None] * error
        force = force + 6.0 * style.damping[:, None] * (moves / _DT - moving)
        torque = np.einsum("nij,ni->nj", jacobian, force)
        torque = torque - 0.2 * style.height[:, None] * scene.speeds
        most = style.pace[:, None]
        return np.asarray(np.clip(torque / _TORQUE, -most, most))


def _reach(scene: Pose) -> tuple[Floats, Floats, Floats]:
    """Tip, its velocity, and how both follow from the joints."""
    first, both = scene.angles[:, 0], scene.angles.sum(axis=1)
    upper = _LINK * np.stack([np.cos(first), np.sin(first)], axis=1)
    lower = _LINK * np.stack([np.cos(both), np.sin(both)], axis=1)
    tip = upper + lower
    turned = np.stack([-tip[:, 1], tip[:, 0]], axis=1)
    jacobian = np.stack([turned, np.stack([-lower[:, 1], lower[:, 0]], axis=1)], axis=2)
    return tip, np.einsum("nij,nj->ni", jacobian, scene.speeds), jacobian


def _point(scene: Pose) -> tuple[Floats, Floats]:
    """Where the point is, and how far it moves in one step."""
    cos, sin = np.cos(scene.phase), np.sin(scene.phase)
    point = scene.centre + scene.radii * np.stack([cos, sin], axis=1)
    return point, scene.turn[:, None] * scene.radii * np.stack([-sin, cos], axis=1)
