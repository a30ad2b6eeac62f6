"""From files that keep one group of arrays per episode to flat columns.

Some layouts store one observation more than actions: the one after the last action. Public
sets lack it in a few episodes, so that is looked at episode by episode.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pubc.formats.core.assemble import Raw
from pubc.formats.core.findings import Findings
from pubc.formats.core.named_parts import Part, choose_parts, is_image, joined_dtype
from pubc.formats.core.options import ReadOptions
from pubc.formats.episodes.episode_source import Episode, Layout, Source
from pubc.trajectory import Array

__all__ = ["gather"]

_ACTIONS = "actions"


class _Gatherer:
    def __init__(
        self, source: Source, episodes: Sequence[Episode], layout: Layout, findings: Findings
    ) -> None:
        self.source = source
        self.episodes = episodes
        self.layout = layout
        self.findings = findings

    def need(self, path: str) -> None:
        for episode in self.episodes:
            if path not in episode.leaves:
                known = ", ".join(sorted(episode.leaves)[:20]) or "nothing"
                self.findings.refuse(
                    "missing_key",
                    f"episode {episode.number} has no such array. It holds: {known}.",
                    field=path,
                    index=episode.number,
                )

    def part(self, path: str, key: str) -> Part | None:
        leaf = self.episodes[0].leaves[path]
        if not leaf.shape or not self.source.is_numeric(leaf):
            return None
        return Part(key, tuple(leaf.shape[1:]), self.source.dtype(leaf))

    def check(self, episode: Episode, path: str, part: Part) -> Any:
        leaf = episode.leaves[path]
        dtype = self.source.dtype(leaf)
        if tuple((leaf.shape or (0,))[1:]) != part.shape or dtype != part.dtype:
            self.findings.refuse(
                "bad_shape",
                f"episode {episode.number} has shape {leaf.shape} and {dtype}, where earlier "
                f"ones have rows of {part.shape} and {part.dtype}.",
                field=path,
                index=episode.number,
            )
        return leaf

    def column(self, path: str, lengths: NDArray[np.int64]) -> Array:
        """One array with one row per step."""
        self.need(path)
        part = self.part(path, path)
        if part is None:
            self.findings.refuse("bad_dtype", "expected one row of numbers per step.", field=path)
        out = np.empty((int(lengths.sum()), *part.shape), dtype=part.dtype)
        start = 0
        for episode, length in zip(self.episodes, lengths.tolist(), strict=True):
            leaf = self.check(episode, path, part)
            if episode.rows(path) != length:
                self.findings.refuse(
                    "unequal_lengths",
                    f"episode {episode.number} has {length:,} actions but {episode.rows(path):,} "
                    "rows here.",
                    field=path,
                    index=episode.number,
                )
            if length:
                self.source.fill(leaf, out[start : start + length])
            start += length
        return out

    def joined(self, paths: Sequence[str], parts: Sequence[Part], rows: NDArray[np.int64]) -> Array:
        """Arrays side by side, `rows` of each episode."""
        size = sum(part.size for part in parts)
        out = np.empty((int(rows.sum()), size), dtype=joined_dtype(parts))
        alone = len(parts) == 1 and len(parts[0].shape) == 1
        start = 0
        for episode, length in zip(self.episodes, rows.tolist(), strict=True):
            stop, column = start + length, 0
            for path, part in zip(paths, parts, strict=True):
                leaf = self.check(episode, path, part)
                if alone and length:
                    self.source.fill(leaf, out[start:stop])
                elif length:
                    piece = np.empty((length, *part.shape), dtype=part.dtype)
                    self.source.fill(leaf, piece)
                    out[start:stop, column : column + part.size] = piece.reshape(length, -1)
                column += part.size
            start = stop
        return out


def gather(
    source: Source,
    episodes: Sequence[Episode],
    layout: Layout,
    images: set[str],
    options: ReadOptions,
    findings: Findings,
) -> tuple[Raw, list[Part]]:
    """Read every episode into flat columns.

    Args:
        source: Reads the leaves.
        episodes: In their order.
        layout: What their arrays are called.
        images: Observation keys that the dataset's own description calls pictures.
        options: Keys to use.
        findings: Told what was left out.

    Returns:
        The raw columns, and the pieces of the observation (none where it is one array).
    """
    gatherer = _Gatherer(source, episodes, layout, findings)
    action = _action_path(episodes[0], options)
    gatherer.need(action)
    lengths = np.array([episode.rows(action) for episode in episodes], dtype=np.int64)
    paths, parts, named = _observation(gatherer, images, options)
    observations, final, has = _observations(gatherer, paths, parts, lengths)
    reward = options.reward_key or "rewards"
    # What one episode has, all must have: a lost name must not drop a column in silence.
    known = {path for episode in episodes for path in episode.leaves}
    rewards = None
    if options.reward_key or reward in known:
        rewards = gatherer.column(reward, lengths)
    flags = [
        gatherer.column(name, lengths) if name in known and name else None
        for name in (layout.terminals, layout.timeouts)
    ]
    raw = Raw(
        observations=observations,
        actions=gatherer.column(action, lengths),
        rewards=rewards,
        terminals=flags[0],
        timeouts=flags[1],
        lengths=lengths,
        final_observations=final,
        has_final=has,
        extras=_extras(gatherer, lengths, {action, reward}),
    )
    return raw, parts if named else []


def _action_path(first: Episode, options: ReadOptions) -> str:
    key = options.action_key
    if key is None:
        return _ACTIONS
    return key if key in first.leaves else f"{_ACTIONS}/{key}"


def _observation(
    gatherer: _Gatherer, images: set[str], options: ReadOptions
) -> tuple[list[str], list[Part], bool]:
    """Paths and pieces of the observation, and whether the dataset names them."""
    first, name = gatherer.episodes[0].leaves, gatherer.layout.observations
    if name in first:
        found = {name: None if "" in images else gatherer.part(name, name)}
        parts = choose_parts(found, options, gatherer.findings)
        return [name], parts[:1], False
    prefix = f"{name}/"
    found = {}
    for path in dict.fromkeys(path for e in gatherer.episodes for path in e.leaves):
        if path.startswith(prefix):
            gatherer.need(path)
            key = path.removeprefix(prefix)
            found[key] = None if key in images else gatherer.part(path, key)
    parts = choose_parts(found, options, gatherer.findings)
    paths = [prefix + part.key for part in parts]
    for path in paths:
        gatherer.need(path)
    return paths, parts, True


def _observations(
    gatherer: _Gatherer, paths: list[str], parts: list[Part], lengths: NDArray[np.int64]
) -> tuple[Array, Array | None, NDArray[np.bool_] | None]:
    gatherer.need(paths[0])
    rows = np.array([e.rows(paths[0]) for e in gatherer.episodes], dtype=np.int64)
    for episode, length, count in zip(gatherer.episodes, lengths, rows, strict=True):
        counts = {episode.rows(path) for path in paths}
        if counts != {int(count)} or count not in (length, length + 1):
            gatherer.findings.refuse(
                "unequal_lengths",
                f"episode {episode.number} has {int(length):,} actions but "
                f"{sorted(counts)} observations; expected {int(length) + 1:,}, or as many.",
                field=gatherer.layout.observations,
                index=episode.number,
            )
    everything = gatherer.joined(paths, parts, rows)
    has = rows == lengths + 1
    if not has.any():
        return everything, None, None
    if not has.all():
        gatherer.findings.warn(
            "no_final_observation",
            f"{int((~has).sum()):,} episodes lack the observation after their last action "
            f"(first: episode {gatherer.episodes[int(np.argmin(has))].number}).",
            field=gatherer.layout.observations,
            count=int((~has).sum()),
            first=int(np.argmin(has)),
        )
    last = np.cumsum(rows) - 1
    steps = np.ones(len(everything), dtype=np.bool_)
    steps[last[has]] = False
    return everything[steps], everything[np.maximum(last, 0)], has


def _extras(gatherer: _Gatherer, lengths: NDArray[np.int64], used: set[str]) -> dict[str, Array]:
    """Step-wise arrays that every episode has alike; the rest is left out with a notice."""
    extras: dict[str, Array] = {}
    longer = []
    for path in gatherer.episodes[0].leaves:
        if path in used or not gatherer.layout.is_extra(path):
            continue
        column, more = _extra(gatherer, path, lengths)
        if column is None:
            gatherer.findings.notice(
                "extra_left_out",
                f"{path} is not one row of numbers per step in every episode and was left out.",
                field=path,
            )
            continue
        extras[path] = column
        longer += [path] * more
    if longer:
        gatherer.findings.notice(
            "extra_row_left_out",
            f"{len(longer)} arrays hold a row for the final observation too, which was left out: "
            f"{', '.join(longer[:10])}.",
            field=longer[0],
        )
    return extras


def _extra(gatherer: _Gatherer, path: str, lengths: NDArray[np.int64]) -> tuple[Array | None, bool]:
    part = gatherer.part(path, path)
    if part is None or is_image(part.shape):
        return None, False
    for episode, length in zip(gatherer.episodes, lengths.tolist(), strict=True):
        leaf = episode.leaves.get(path)
        if leaf is None or not gatherer.source.is_numeric(leaf):
            return None, False
        alike = gatherer.source.dtype(leaf) == part.dtype and leaf.shape[1:] == part.shape
        if not alike or episode.rows(path) - length not in (0, 1):
            return None, False
    rows = np.array([episode.rows(path) for episode in gatherer.episodes], dtype=np.int64)
    out = np.empty((int(rows.sum()), *part.shape), dtype=part.dtype)
    start = 0
    for episode, count in zip(gatherer.episodes, rows.tolist(), strict=True):
        if count:
            gatherer.source.fill(episode.leaves[path], out[start : start + count])
        start += count
    if (rows == lengths).all():
        return out, False
    keep = np.ones(len(out), dtype=np.bool_)
    keep[(np.cumsum(rows) - 1)[rows > lengths]] = False
    return out[keep], True
