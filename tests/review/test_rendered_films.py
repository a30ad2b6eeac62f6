"""Films that a simulator draws from recorded states; where none can be drawn, a sentence."""

import io
import json
from dataclasses import replace

import numpy as np
import pytest

from pubc import formats
from pubc.errors import EnvironmentFailure, PubcError
from pubc.formats import ReadOptions
from pubc.review.desk import open_desk
from pubc.review.rendered_films import RenderedFilms, draw_film, environment_of
from pubc.review.serve import serving
from pubc.trajectory import Columns, TrajectorySet
from tests.report.browser import needs_browser
from tests.review.asking import ask

POLE = "InvertedPendulum-v5"


def swinging(count=2, steps=10, size=4, speed=0.0, **metadata):
    """A pole on a cart that swings from one side to the other, or a robot that runs."""
    rows = np.zeros((count * steps, size), np.float32)
    rows[:, size // 2 :] = speed
    rows[:, 1] = np.tile(np.linspace(-1, 1, steps), count)
    flags = np.zeros((2, count * steps), dtype=np.bool_)
    flags[1, steps - 1 :: steps] = True
    columns = Columns(rows, rows[:, 1:2].copy(), None, *flags)
    whole = TrajectorySet.from_flat(columns, np.full(count, steps))
    return replace(whole, metadata=metadata)


@pytest.fixture(scope="module")
def can_draw():
    for name in ("gymnasium", "mujoco", "av"):
        pytest.importorskip(name)
    films = RenderedFilms(POLE, swinging(1, 2))
    try:
        films.open(0, 0)
    except EnvironmentFailure as error:
        pytest.skip(f"this machine cannot draw: {error}")
    finally:
        films.close()


@pytest.mark.parametrize(
    ("metadata", "name"),
    [
        ({}, None),
        ({"environment": "ant", "environment_id": "Ant-v5"}, "ant"),
        ({"environment": "trifinger-push", "environment_id": "push"}, "trifinger-push"),
        ({"environment": "my own", "environment_id": "Swimmer-v5"}, "Swimmer-v5"),
        ({"env_spec": json.dumps({"id": "Hopper-v4", "kwargs": {}})}, "Hopper-v4"),
        ({"env_spec": "[1"}, None),
        ({"env_spec": "[1]"}, None),
        ({"env_spec": 3}, None),
        ({"environment": "evil_module:Ant-v5"}, None),
        ({"environment": "../Ant-v5"}, None),
        ({"environment": ["ant"]}, None),
    ],
)
def test_a_dataset_says_where_it_was_recorded(metadata, name):
    assert environment_of(metadata) == name


def test_every_recorded_state_is_a_frame(can_draw):
    import av

    films = RenderedFilms(POLE, swinging())
    clip = films.open(1, 0)
    with av.open(str(clip.path)) as film:
        frames = [frame.to_ndarray(format="rgb24") for frame in film.decode(video=0)]
        assert float(film.streams.video[0].average_rate) == films.fps
    assert len(frames) == 10
    assert frames[0].shape == (180, 240, 3)
    # It swings from one side to the other.
    assert np.abs(frames[0].astype(int) - frames[-1]).mean() > 0.2
    assert films.open(1, 0) == clip
    assert films.open(2, 0) is films.open(0, 1) is None
    films.close()
    assert not clip.path.exists()


@pytest.mark.parametrize(
    ("name", "size", "words"),
    [
        ("Pusher-v5", 23, "do not hold all joints"),
        (POLE, 3, "observes at least 4 numbers, the dataset has 3"),
        ("CartPole-v1", 4, "none of Gymnasium's MuJoCo robots"),
        ("Nobody-v5", 4, "none of Gymnasium's MuJoCo robots"),
    ],
)
def test_what_cannot_be_drawn_is_said_in_a_sentence(name, size, words):
    pytest.importorskip("mujoco")
    pytest.importorskip("av")
    with pytest.raises(PubcError, match=words):
        draw_film(name, np.zeros((3, size)), every=1, fps=50.0)


def test_a_crash_of_the_driver_is_a_sentence_too(monkeypatch):
    monkeypatch.setattr("pubc.review.rendered_films.draw_film", _crash)
    films = RenderedFilms(POLE, swinging(1, 2))
    with pytest.raises(
        EnvironmentFailure, match=r"could not draw .* \(the process that draws crashed\)"
    ):
        films.open(0, 0)
    films.close()


def _crash(*asked, **how):
    import os

    os._exit(11)


def test_a_walking_robot_stays_on_the_floor(can_draw):
    import av

    films = RenderedFilms("HalfCheetah-v3", swinging(1, 6, size=17, speed=1000.0))
    with av.open(str(films.open(0, 0).path)) as film:
        frames = [frame.to_ndarray(format="rgb24") for frame in film.decode(video=0)]
    films.close()
    assert len(frames) == 6
    assert min(frame[-20:].std() for frame in frames) > 5, "the floor has tiles in every frame"


@pytest.mark.slow
def test_trifinger_is_drawn_with_its_cube():
    pytest.importorskip("trifinger_rl_datasets")
    av = pytest.importorskip("av")
    from pubc.acting import environments

    world = environments.make("trifinger-push")
    first = world.reset(0).astype(np.float64)
    with av.open(io.BytesIO(draw_film("trifinger-push", first[None], every=1, fps=50.0))) as film:
        frame = next(film.decode(video=0)).to_ndarray(format="rgb24").astype(int)
    red = (frame[..., 0] > 150) & (frame[..., 1] < 90) & (frame[..., 2] < 90)
    assert red.sum() > 20, "a side of the cube is red"
    with pytest.raises(PubcError, match="observes 97 numbers, the dataset has 4"):
        draw_film("trifinger-push", np.zeros((1, 4)), every=1, fps=50.0)


@needs_browser
def test_the_page_shows_drawn_films_and_says_where_there_are_none(can_draw, tmp_path, chromium):
    formats.save(tmp_path / "drawn.npz", swinging(2, 10, environment_id=POLE))
    formats.save(tmp_path / "flat.npz", swinging(2, 10, size=3, environment_id=POLE))
    for name, wanted in (("drawn", "video"), ("flat", ".no-film")):
        desk = open_desk(tmp_path / f"{name}.npz", ReadOptions())
        with serving(desk) as address:
            chromium.open(address)
            chromium.press("a", "Enter")
            there = "v.duration > 0" if wanted == "video" else "v.textContent"
            shown = f"[...document.querySelectorAll('#look {wanted}')].filter((v) => {there})"
            chromium.wait(f"{shown}.length === 2", seconds=120)
            if wanted == ".no-film":
                said = chromium.run("document.querySelector('.no-film').textContent")
                assert "observes at least 4 numbers" in said
            status, _, _ = ask(address, "video/7/0")
            assert status == 404
