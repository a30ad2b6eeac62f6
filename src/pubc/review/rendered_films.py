"""Films of episodes that were never filmed: the simulator draws the states that were recorded.

Observations of Gymnasium's MuJoCo robots begin with the joints' positions and velocities; only how
far the robot has come is left out, and follows from its velocity. TriFinger's hold the joints and
the cube. Nothing is simulated: every frame shows a recorded state. A process of its own draws, on
demand, because drivers of graphics cards crash and belong to one thread; films are small and lie
in a temporary folder that goes with the server.
"""

from __future__ import annotations

import contextlib
import functools
import os
import re
import shutil
import threading
import weakref
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any

import numpy as np

from pubc.acting.environments.known_environments import ENVIRONMENTS
from pubc.engine import WORKER_DIED, as_error
from pubc.engine.processes import Processes
from pubc.errors import EnvironmentFailure, MissingExtraError, PubcError, UsageError
from pubc.review.episode_videos import Clip
from pubc.storage import make_scratch, parse_json
from pubc.trajectory import Array, TrajectorySet

__all__ = ["RenderedFilms", "environment_of"]

_SIZE = (240, 180)
_MOST_FRAMES = 120
"""Of a film; of longer episodes every so many steps are drawn."""
_ID = re.compile(r"([A-Za-z0-9]{1,60})-v\d{1,3}")
_NEWEST = 5
"""Version of Gymnasium's MuJoCo robots; older ones observe the same joints."""
_EYE, _AT = (0.45, -0.35, 0.45), (0.0, 0.0, 0.05)


def environment_of(metadata: Mapping[str, Any]) -> str | None:
    """The environment that a dataset says it was recorded in, as a name of ours."""
    said = [metadata.get("environment"), metadata.get("environment_id")]
    with contextlib.suppress(ValueError, TypeError, AttributeError, KeyError):
        said.append(parse_json(metadata["env_spec"]).get("id"))  # of Minari
    names = (name for name in said if isinstance(name, str))
    return next((name for name in names if name in ENVIRONMENTS or _ID.fullmatch(name)), None)


@dataclass(eq=False)
class RenderedFilms:
    """Films of a dataset, each drawn when it is first asked for."""

    environment: str
    """Where it was recorded."""
    trajectories: TrajectorySet
    """What was recorded."""
    cameras: tuple[str, ...] = ("drawn by the simulator",)
    """One view."""
    fps: float = 50.0
    """Steps per second on the page's clock."""
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def __post_init__(self) -> None:
        self._folder = make_scratch("films")
        # It goes with the desk, whether somebody closes that or not.
        self._remove = weakref.finalize(self, shutil.rmtree, self._folder, ignore_errors=True)
        self._process = Processes(1)

    def clip(self, at: int, camera: int) -> Clip | None:
        """Where the film of a trajectory is, or will be when it is opened."""
        if camera or not 0 <= at < len(self.trajectories):
            return None
        return Clip(self._folder / f"{at}.mp4", 0.0, None)

    def open(self, at: int, camera: int) -> Clip | None:
        """The film of a trajectory, drawn if need be.

        Raises:
            PubcError: It cannot be drawn; the sentence says why.
        """
        clip = self.clip(at, camera)
        if clip is None:
            return None
        with self._lock:
            if not clip.path.exists():
                clip.path.write_bytes(self._draw(at))
        return clip

    def close(self) -> None:
        """End the process that draws, and take the films away."""
        with self._lock:
            self._process.close()
        self._remove()

    def _draw(self, at: int) -> bytes:
        rows = self.trajectories[[at]].flat().observations
        every = -(-len(rows) // _MOST_FRAMES)
        rows = np.asarray(rows, dtype=np.float64)
        work = functools.partial(draw_film, self.environment, every=every, fps=self.fps)
        (found,) = self._process.map(work, [rows])
        if found.error is None:
            film: bytes = found.value
            return film
        error, why = as_error(found.error), found.error.message
        if found.error.kind == WORKER_DIED:
            why = "the process that draws crashed"
        elif type(error) is not PubcError:
            raise error
        # Each way to draw without a screen fails with an error of its own, or ends the process.
        raise EnvironmentFailure(
            f"No film: this machine could not draw {self.environment} ({why[:200]})."
        )


def draw_film(environment: str, rows: Array, *, every: int, fps: float) -> bytes:
    """The film of one trajectory as an MP4 file; runs in a process of its own.

    Args:
        environment: Where it was recorded.
        rows: Its observations, one row per step.
        every: Steps from one frame to the next.
        fps: Steps per second.

    Raises:
        PubcError: It cannot be drawn; the sentence says why.
    """
    if not os.environ.get("DISPLAY"):
        os.environ.setdefault("MUJOCO_GL", "egl")
    if environment in ENVIRONMENTS and ENVIRONMENTS[environment].maker == "trifinger":
        frames = _trifinger_frames(environment, rows, every)
    else:
        frames = _mujoco_frames(environment, rows, every)
    return _encode(frames, Fraction(fps).limit_denominator(1000) / every)


def _mujoco_frames(environment: str, rows: Array, every: int) -> Iterator[Array]:
    robot = _robot(environment)
    import mujoco

    model, data = robot.model, mujoco.MjData(robot.model)
    structure = getattr(robot, "observation_structure", None) or {}
    skipped, size = structure.get("skipped_qpos", 0), structure.get("qpos", 0)
    if skipped + size != model.nq or structure.get("qvel") != model.nv:
        raise UsageError(f"No film: observations of {environment} do not hold all joints.")
    if rows.shape[1] < size + model.nv:
        raise UsageError(
            f"No film: {environment} observes at least {size + model.nv} numbers, the dataset "
            f"has {rows.shape[1]}."
        )
    velocity = rows[:, size : size + skipped]
    come = _on_the_floor(model, np.cumsum(velocity, axis=0) * robot.dt)
    model.vis.quality.offsamples = model.vis.quality.shadowsize = 0
    with contextlib.closing(mujoco.Renderer(model, _SIZE[1], _SIZE[0])) as renderer:
        # Without a graphics card the sky alone takes twenty times as long as the robot.
        for flag in ("SHADOW", "REFLECTION", "SKYBOX"):
            renderer.scene.flags[getattr(mujoco.mjtRndFlag, f"mjRND_{flag}")] = 0
        for step in range(0, len(rows), every):
            data.qpos[:skipped], data.qpos[skipped:] = come[step], rows[step, :size]
            data.qvel[:] = rows[step, size : size + model.nv]
            mujoco.mj_forward(model, data)
            renderer.update_scene(data, camera=0 if model.ncam else -1)
            yield renderer.render()


def _on_the_floor(model: Any, come: Array) -> Array:
    """How far a robot has come, without leaving the floor: it begins again by whole tiles."""
    import mujoco

    floors = np.flatnonzero(model.geom_type == mujoco.mjtGeom.mjGEOM_PLANE)
    half = float(model.geom_size[floors[0], 0]) if len(floors) else 0.0
    if half <= 0:
        return come
    material = int(model.geom_matid[floors[0]])
    tile = 2 * half / max(1.0, float(model.mat_texrepeat[material, 0]) if material >= 0 else 1.0)
    period = max(tile, tile * np.floor(half / tile))
    wrapped: Array = (come + period / 2) % period - period / 2
    return wrapped


def _robot(environment: str) -> Any:
    """Gymnasium's own robot of that name; packages that a name points to are not imported."""
    known = ENVIRONMENTS.get(environment)
    matched = _ID.fullmatch(environment if known is None else known.id)
    from pubc.acting.environments.gym import make_wrapped

    try:
        from gymnasium.envs.registration import registry
    except ImportError:
        raise MissingExtraError("A film", "mujoco") from None
    newest = f"{matched[1]}-v{_NEWEST}" if matched else ""
    found = registry.get(newest)
    if found is None or not str(found.entry_point).startswith("gymnasium.envs.mujoco."):
        raise UsageError(f"No film: {environment} is none of Gymnasium's MuJoCo robots.")
    return make_wrapped(newest).unwrapped


def _trifinger_frames(environment: str, rows: Array, every: int) -> Iterator[Array]:
    from pubc.acting import environments
    from pubc.acting.environments.trifinger import TriFingerEnvironment

    world = environments.make(environment)
    assert isinstance(world, TriFingerEnvironment)
    if rows.shape[1] != world.observation_size:
        raise UsageError(
            f"No film: {environment} observes {world.observation_size} numbers, the dataset has "
            f"{rows.shape[1]}."
        )
    world.reset(0)
    for step in range(0, len(rows), every):
        yield world.picture(rows[step], _SIZE, _EYE, _AT)


def _encode(frames: Iterator[Array], rate: Fraction) -> bytes:
    try:
        import av
    except ImportError:
        raise MissingExtraError("A film", "video") from None
    import io

    file = io.BytesIO()
    with av.open(file, "w", format="mp4") as film:
        stream = film.add_stream("libx264", rate=rate, options={"crf": "28", "preset": "veryfast"})
        stream.width, stream.height, stream.pix_fmt, stream.gop_size = *_SIZE, "yuv420p", 12
        for frame in frames:
            film.mux(stream.encode(av.VideoFrame.from_ndarray(frame, format="rgb24")))
        film.mux(stream.encode())
    return file.getvalue()
