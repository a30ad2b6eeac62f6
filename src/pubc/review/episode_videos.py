"""Where the video of an episode lies: which file of a LeRobot dataset, and which seconds of it.

Paths come from a stranger's metadata, so each is filled by the reader's own careful formatter and
must lead to a file inside the dataset; the browser names an episode and a camera by number only.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from pubc.errors import DataError
from pubc.formats.core.findings import Findings
from pubc.formats.lerobot.lerobot_meta import Info, read_episodes, read_info
from pubc.formats.lerobot.lerobot_paths import fill, inside
from pubc.formats.lerobot.lerobot_read import numbers_of
from pubc.trajectory import TrajectorySet

__all__ = ["Clip", "Videos", "no_videos", "videos_of"]

_PATHS = {
    "v2.1": "videos/chunk-{episode_chunk:03d}/{video_key}/episode_{episode_index:06d}.mp4",
    "v3.0": "videos/{video_key}/chunk-{chunk_index:03d}/file-{file_index:03d}.mp4",
}


@dataclass(frozen=True, slots=True)
class Clip:
    """The part of a video file that shows one episode."""

    path: Path
    """The file, inside the dataset."""
    start: float
    """Second at which the episode begins."""
    stop: float | None
    """Second at which it ends; None for the end of the file."""


@dataclass(frozen=True, slots=True)
class Videos:
    """The videos of a dataset."""

    cameras: tuple[str, ...]
    """Names of the video features."""
    fps: float
    """Steps per second."""
    info: Info | None = None
    """What the dataset says of itself."""
    numbers: tuple[int, ...] = ()
    """`episode_index` of each trajectory."""
    rows: Mapping[int, int] = field(default_factory=dict)
    """Line of each episode in the list of episodes."""
    columns: Mapping[str, list[Any]] = field(default_factory=dict)
    """The list of episodes."""

    def clip(self, at: int, camera: int) -> Clip | None:
        """The clip of a trajectory; None where the dataset has none that can be shown."""
        if self.info is None or not 0 <= camera < len(self.cameras):
            return None
        if not 0 <= at < len(self.numbers):
            return None
        try:
            found = self._place(self.numbers[at], self.cameras[camera])
            if found is None:
                return None
            name, start, stop = found
            path = inside(self.info.root, self.info.root / name)
        except DataError:
            return None
        return Clip(path, start, stop) if path.is_file() else None

    def open(self, at: int, camera: int) -> Clip | None:
        """The same: these films are there already."""
        return self.clip(at, camera)

    def _place(self, number: int, key: str) -> tuple[str, float, float | None] | None:
        assert self.info is not None
        template = str(self.info.document.get("video_path") or _PATHS[self.info.version])
        if self.info.version == "v2.1":
            size = max(1, self.info.count("chunks_size") or 1000)
            names: dict[str, int | str] = {
                "episode_chunk": number // size,
                "episode_index": number,
                "video_key": key,
            }
            return fill(template, names), 0.0, None
        row = self.rows.get(number)
        values: list[Any] = [
            None if row is None else self.columns.get(f"videos/{key}/{name}", {row: None})[row]
            for name in ("chunk_index", "file_index", "from_timestamp", "to_timestamp")
        ]
        chunk, file, start, stop = values
        if not isinstance(chunk, int) or not isinstance(file, int) or not _is_time(start):
            return None
        named = fill(template, {"chunk_index": chunk, "file_index": file, "video_key": key})
        return named, float(start), float(stop) if _is_time(stop) else None


def no_videos() -> Videos:
    """For datasets without any."""
    return Videos((), 0.0)


def videos_of(path: Path, trajectories: TrajectorySet) -> Videos:
    """The videos of a LeRobot dataset."""
    findings = Findings(path)
    info = read_info(path, findings)
    if not info.videos:
        return no_videos()
    listed = read_episodes(info, findings, stats=True)
    fps = info.document.get("fps")
    return Videos(
        cameras=tuple(info.videos),
        fps=float(fps) if _is_time(fps) and fps else 30.0,
        info=info,
        numbers=tuple(numbers_of(path, [str(name) for name in trajectories.ids])),
        rows={} if listed is None else {int(n): at for at, n in enumerate(listed.numbers)},
        columns={} if listed is None else listed.columns,
    )


def _is_time(value: Any) -> bool:
    number = isinstance(value, int | float) and not isinstance(value, bool)
    return number and math.isfinite(value) and 0 <= value < 1e9
