"""The page itself and what it is told: columns of the dataset, marks, the verdicts of a run."""

from __future__ import annotations

import functools
from collections import Counter
from typing import Any

import numpy as np
from jinja2 import ChoiceLoader, Environment, PackageLoader
from markupsafe import Markup
from numpy.typing import NDArray

from pubc import __version__
from pubc.report.page import content_policy, environment
from pubc.report.payload import known_ids, pack, packed_bits, to_json
from pubc.review.desk import Desk
from pubc.review.rendered_films import RenderedFilms
from pubc.review.small_plots import CHUNK, POINTS
from pubc.runs.statuses import verdict

__all__ = ["episode_view", "page_policy", "progress_view", "proposals_view", "render_review"]

_SCRIPTS = (
    "base.js",
    "charts.js",
    "review_state.js",
    "review_cards.js",
    "review_grid.js",
    "review_look.js",
    "review_keys.js",
    "review_start.js",
)
_MOST_SOURCES = 200


def render_review(desk: Desk) -> str:
    """The page."""
    style, script = _style(), _script()
    return (
        _templates()
        .get_template("review.html")
        .render(
            policy=content_policy(style, script) + _ASK_THIS_SERVER,
            style=Markup(style),
            script=Markup(script),
            data=Markup(to_json(_payload(desk))),
            version=__version__,
            title=f"Review of {desk.data.name}",
            name=desk.data.name,
            count=len(desk.trajectories),
        )
    )


_ASK_THIS_SERVER = "; connect-src 'self'; media-src 'self'"


def page_policy() -> str:
    """What the page may do: our style and script, this server, and nothing else."""
    return content_policy(_style(), _script()) + _ASK_THIS_SERVER + "; frame-ancestors 'none'"


def episode_view(desk: Desk, at: int) -> dict[str, Any]:
    """A closer look at one trajectory."""
    clips = []
    for camera in range(len(desk.videos.cameras)):
        clip = desk.videos.clip(at, camera)
        if clip is not None:
            clips.append({"camera": camera, "start": clip.start, "stop": clip.stop})
    run, values = desk.run, None
    if run is not None:
        for _, found in run.steps_of(np.array([at], dtype=np.int64)):
            values = pack(found, "f4")
    return {"at": at, "clips": clips, "evidence": values, **desk.plots.close(at)}


def proposals_view(desk: Desk) -> list[dict[str, Any]]:
    """What to look at next."""
    return [{"at": p.at, "reason": p.reason, "words": p.words} for p in desk.proposals()]


def progress_view(desk: Desk) -> dict[str, Any]:
    """Where the run stands, and what it said once it is finished."""
    now = desk.job.progress()
    return {
        "state": now.state,
        "number": now.number,
        "rounds": now.rounds,
        "seconds": now.seconds,
        "error": now.error,
        "run": _run_view(desk),
        "command": desk.job.words(),
    }


def _payload(desk: Desk) -> dict[str, Any]:
    mixed, plots = desk.trajectories, desk.plots
    returns = desk.returns
    names, index = _sources(mixed.sources)
    return {
        "name": desk.data.name,
        "labels": str(desk.labels_path),
        "count": len(mixed),
        "ids": known_ids([str(name) for name in mixed.ids]),
        "lengths": pack(mixed.lengths, "i4"),
        "returns": pack(returns, "f8") if np.isfinite(returns).any() else None,
        "source_names": names,
        "sources": None if index is None else pack(index, "i4"),
        "chunk": CHUNK,
        "points": POINTS,
        "curves": plots.names(),
        "small": plots.small,
        "states": len(plots.states),
        "low": plots.low.tolist(),
        "high": plots.high.tolist(),
        "cameras": list(desk.videos.cameras),
        "fps": desk.videos.fps,
        "drawn": isinstance(desk.videos, RenderedFilms),
        "marks": {str(at): marks for at, marks in desk.marks().items()},
        "progress": progress_view(desk),
    }


def _run_view(desk: Desk) -> dict[str, Any] | None:
    run = desk.run
    if run is None:
        return None
    before = desk.run_before
    words = verdict(run.document)
    scores = run.scores
    return {
        "name": run.name,
        "tone": words.tone,
        "title": words.title,
        "sentence": words.sentence,
        "sound": bool(run.document.get("sound")),
        "threshold": run.document.get("threshold"),
        "advice": list(run.document.get("advice") or []),
        "confidence": pack(scores.confidence, "f8"),
        "keep": packed_bits(scores.keep),
        "unsure": packed_bits(scores.borderline),
        "seed": packed_bits(scores.seed),
        "before": None if before is None else packed_bits(before.scores.keep),
        "before_name": None if before is None else before.name,
    }


def _sources(sources: NDArray[np.str_] | None) -> tuple[list[str], NDArray[np.int64] | None]:
    if sources is None:
        return [], None
    words = [str(word) for word in sources]
    names = [name for name, _ in Counter(words).most_common()]
    if len(names) > _MOST_SOURCES:
        return [], None
    where = {name: at for at, name in enumerate(names)}
    return names, np.array([where[word] for word in words], dtype=np.int64)


@functools.cache
def _templates() -> Environment:
    both = ChoiceLoader(
        [PackageLoader("pubc.review", "assets"), PackageLoader("pubc.report", "assets")]
    )
    return environment().overlay(loader=both)


@functools.cache
def _style() -> str:
    return "\n".join(_source(name) for name in ("page.css", "review.css"))


@functools.cache
def _script() -> str:
    return "\n".join(_source(name) for name in _SCRIPTS)


def _source(name: str) -> str:
    loader = _templates().loader
    assert loader is not None
    return loader.get_source(_templates(), name)[0].strip()
