"""Pictures of a policy at work: one trajectory as frames, or as a film."""

from __future__ import annotations

import os
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from pubc.acting import environments
from pubc.acting.rollout import Policy, play
from pubc.errors import EnvironmentFailure, MissingExtraError, UsageError
from pubc.storage import atomic_file, atomic_folder, check_target
from pubc.streams import stream
from pubc.trajectory import Array

__all__ = ["check_film", "film"]

_FILMS: dict[str, dict[str, Any]] = {
    ".gif": {"format": "GIF", "duration": 40, "loop": 0},
    ".mp4": {"format": "FFMPEG", "fps": 25},
}
_EVERY = 2
"""Simulators run faster than films: every second step is a frame."""


def check_film(environment: str, out: Path) -> None:
    """See that a film can be made, before anything is played for it.

    Raises:
        UsageError: Something is at its place, or the environment cannot be drawn.
    """
    check_target(out)
    if os.path.lexists(out):
        raise UsageError(f"{out} exists already. Choose another name with --frames.")
    if environments.spec(environment).maker == "trifinger":
        raise UsageError(f"{environment} cannot be drawn; Gymnasium's environments can.")


def film(policy: Policy, environment: str, out: Path, random_seed: int) -> None:
    """Play trajectory 0 of an evaluation and write what it looks like.

    Args:
        policy: Who acts.
        environment: Where.
        out: A .gif or .mp4 file, or a folder for numbered .png files.
        random_seed: The evaluation's, so that the film shows its first trajectory.

    Raises:
        UsageError: `check_film` says no.
        EnvironmentFailure: This machine cannot draw.
    """
    check_film(environment, out)
    world = environments.make(environment)
    played = play(world, policy, random_seed=random_seed, source="evaluation", index=0)
    start = int(stream(random_seed, "evaluation", 0, "environment").integers(2**31))
    frames = _frames(environment, played.steps.actions, start)
    if out.suffix in _FILMS:
        with atomic_file(out) as temporary:
            _write_film(temporary, frames, out.suffix)
        return
    from matplotlib import image

    with atomic_folder(out, kind="frames") as folder:
        for number, frame in enumerate(frames):
            image.imsave(folder / f"{number:05d}.png", frame)


def _frames(environment: str, actions: Array, start: int) -> Iterator[Array]:
    wanted = environments.spec(environment)
    import gymnasium

    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            world: Any = gymnasium.make(wanted.id, render_mode="rgb_array", **wanted.arguments)
            model = getattr(world.unwrapped, "model", None)
            if model is not None:
                # Without a graphics card soft edges and shadows take ten times as long.
                model.vis.quality.offsamples = model.vis.quality.shadowsize = 0
            world.reset(seed=start)
            world.render()
    except Exception as error:
        # Each way to draw without a screen fails with an error of its own.
        raise EnvironmentFailure(
            f"This machine could not draw {environment} ({error}). Without a screen, set the "
            "environment variable MUJOCO_GL to egl or osmesa."
        ) from None
    for number, action in enumerate(actions):
        if number % _EVERY == 0:
            yield world.render()
        world.step(action)
    world.close()


def _write_film(path: Path, frames: Iterator[Array], suffix: str) -> None:
    try:
        import imageio.v2 as imageio

        writer = imageio.get_writer(path, **_FILMS[suffix])
    except (ImportError, ValueError):
        raise MissingExtraError(f"A {suffix} film", "mujoco") from None
    with writer:
        for frame in frames:
            writer.append_data(frame)
