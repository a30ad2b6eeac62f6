"""A built-in task: a hand with a gripper finds a thing, grasps it and carries it to a goal.

All trajectories of a recording are simulated side by side, one row each. The controller has
no memory: what it does follows from what it sees.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from pubc.experiments.trust.tasks.behaviour import Style
from pubc.trajectory.arrays import Floats, Integers

__all__ = ["PickPlace", "Scene"]

_SPEED = 0.025
"""Distance of one step at full command."""
_NEAR = 0.03
"""Closer than this counts as there."""
_FUNNEL = 0.06
"""Distance on which the hand goes down."""
_HOLD = 0.35
"""Opening of the gripper below which it holds a thing."""


@dataclass(frozen=True, slots=True, eq=False)
class Scene:
    """Where everything is; one row per trajectory."""

    hand: Floats
    """Shape (trajectories, 3)."""
    velocity: Floats
    """Of the hand, per step."""
    before: Floats
    """Where the hand was one step earlier."""
    opening: Floats
    """Of the gripper, 0 to 1, shape (trajectories,)."""
    thing: Floats
    """Where the thing is."""
    goal: Floats
    """Where the thing shall be."""
    held: Floats
    """1 where the gripper holds the thing, shape (trajectories,)."""


class PickPlace:
    """The task."""

    name = "pick-place"
    steps = 80
    action_size = 4
    usual = 0.6
    """How large commands usually are; noise and faults are multiples of it."""
    hand = slice(0, 3)
    """Where the observation has the position that absolute actions refer to."""

    def reset(self, count: int, rng: np.random.Generator, places: Integers, kinds: int) -> Scene:
        """Fresh scenes; with several kinds of task each has its own region for thing and goal."""
        hand = np.array([0.0, 0.0, 0.2]) + rng.uniform(-0.02, 0.02, (count, 3))
        angle = 2 * np.pi * places / kinds
        toward = np.stack([np.cos(angle), np.sin(angle)], axis=1)
        left = np.stack([-toward[:, 1], toward[:, 0]], axis=1)
        spread = 0.1 if kinds == 1 else 0.04
        thing = 0.15 * toward + 0.05 * left + rng.uniform(-spread, spread, (count, 2))
        goal = -0.08 * toward - 0.15 * left + rng.uniform(-spread, spread, (count, 2))
        flat = np.zeros((count, 1))
        return Scene(
            hand=hand,
            velocity=np.zeros((count, 3)),
            before=hand,
            opening=np.ones(count),
            thing=np.concatenate([thing, flat], axis=1),
            goal=np.concatenate([goal, flat], axis=1),
            held=np.zeros(count),
        )

    def sense(self, scene: Scene, rng: np.random.Generator) -> Scene:
        """What the sensors say: places are off by a millimetre."""
        count = len(scene.hand)
        hand, thing = rng.normal(0.0, 0.001, (2, count, 3))
        return replace(scene, hand=scene.hand + hand, thing=scene.thing + thing)

    def observe(self, scene: Scene) -> Floats:
        """Observations, shape (trajectories, 16)."""
        parts = (scene.hand, scene.velocity, scene.opening[:, None], scene.thing, scene.goal)
        return np.concatenate([*parts, scene.before], axis=1)

    def mistake(self, scene: Scene, offset: Floats) -> Scene:
        """The scene as somebody sees it who takes the hand to be elsewhere."""
        return replace(scene, hand=scene.hand + 0.04 * offset[:, :3])

    def intend(self, scene: Scene, style: Style) -> Floats:
        """What a controller of that style does, shape (trajectories, 4)."""
        clearance = 0.1 * style.height
        target, grip = _plan(scene, clearance)
        return self._toward(scene, style, target, grip)

    def head_for(self, scene: Scene, style: Style, place: Floats) -> Floats:
        """The way to another place, given as directions of length about 1."""
        target = np.array([0.0, 0.0, 0.15]) + place[:, :3] * np.array([0.25, 0.25, 0.08])
        return self._toward(scene, style, target, np.where(scene.held > 0, 1.0, -1.0))

    def give_up(self, scene: Scene, style: Style) -> Floats:
        """Let go, and stay where the hand is."""
        return self._toward(scene, style, scene.hand, np.full(len(scene.hand), -1.0))

    def under_way(self, scene: Scene, step: int) -> Floats:
        """1 where giving up would be seen: the thing is held, off the table."""
        return np.where((scene.held > 0) & (scene.thing[:, 2] > 0.05), 1.0, 0.0)

    def advance(self, scene: Scene, action: Floats) -> Scene:
        """The scenes one step later."""
        velocity = 0.5 * scene.velocity + 0.5 * _SPEED * action[:, :3]
        hand = np.clip(scene.hand + velocity, [-0.35, -0.35, 0.0], [0.35, 0.35, 0.3])
        opening = np.clip(scene.opening - 0.2 * action[:, 3], 0.0, 1.0)
        close = np.linalg.norm(scene.hand - scene.thing, axis=1) < 0.035
        held = (opening < _HOLD) & ((scene.held > 0) | close)
        fallen = scene.thing - np.array([0.0, 0.0, 0.03])
        fallen[:, 2] = np.maximum(fallen[:, 2], 0.0)
        thing = np.where(held[:, None], hand, fallen)
        return Scene(hand, velocity, scene.hand, opening, thing, scene.goal, held.astype(float))

    def menu(self) -> Floats:
        """The actions of the discrete version, shape (choices, 4)."""
        moves = 0.5 * np.concatenate([np.zeros((1, 3)), np.eye(3), -np.eye(3)])
        return np.array([[*move, grip] for grip in (-1.0, 1.0) for move in moves])

    def _toward(self, scene: Scene, style: Style, target: Floats, grip: Floats) -> Floats:
        error = target - scene.hand
        left = np.stack([-error[:, 1], error[:, 0], np.zeros(len(error))], axis=1)
        error = error + style.side[:, None] * left
        push = 14.0 * style.gain[:, None] * error
        push = push - 8.0 * style.damping[:, None] * scene.velocity
        # The direction is kept where the command is cut.
        size = np.linalg.norm(push, axis=1, keepdims=True) / style.pace[:, None]
        return np.concatenate([push / np.maximum(size, 1.0), grip[:, None]], axis=1)


def _plan(scene: Scene, clearance: Floats) -> tuple[Floats, Floats]:
    """Where the hand should go now, and what the gripper should do.

    The way to the thing and to the goal is a funnel: high while far, low when above it. The
    gripper closes round the thing as the hand gets there, and opens as it gets to the goal.
    """
    up = np.zeros_like(scene.hand)
    up[:, 2] = clearance
    down_to_thing, thing_away = _funnel(scene.thing, scene.hand, up)
    down_to_goal, goal_away = _funnel(scene.goal, scene.hand, up)
    held = scene.held > 0
    done = ~held & (np.linalg.norm((scene.thing - scene.goal)[:, :2], axis=1) < 0.04)
    cases = [done, held]
    target = np.select(
        [case[:, None] for case in cases], [scene.goal + 1.5 * up, down_to_goal], down_to_thing
    )
    nothing = np.full(len(held), -1.0)
    grip = np.select(cases, [nothing, _switch(goal_away)], -_switch(thing_away))
    return target, grip


def _funnel(place: Floats, hand: Floats, up: Floats) -> tuple[Floats, Floats]:
    """Where to go on the way to a place, and how far away it is."""
    flat = np.linalg.norm((place - hand)[:, :2], axis=1)
    height = np.clip((flat - 0.015) / _FUNNEL, 0.0, 1.0)
    return place + height[:, None] * up, np.linalg.norm(place - hand, axis=1)


def _switch(away: Floats) -> Floats:
    """From -1 near a place to 1 elsewhere."""
    return np.clip((away - _NEAR) / (0.5 * _NEAR), -1.0, 1.0)
