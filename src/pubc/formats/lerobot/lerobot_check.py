"""The three accounts of a LeRobot dataset, compared.

`meta/info.json`, the list of episodes and the frames must tell the same story. Nothing is read
by what the metadata says, but a lie in it is told.
"""

from __future__ import annotations

import numpy as np

from pubc.formats.core.findings import Findings
from pubc.formats.core.options import ReadOptions
from pubc.formats.lerobot.lerobot_meta import Episodes, Info
from pubc.formats.lerobot.lerobot_rows import Rows
from pubc.trajectory import Array

__all__ = ["cross_check"]


def cross_check(
    info: Info, episodes: Episodes | None, rows: Rows, options: ReadOptions, findings: Findings
) -> None:
    """Compare `meta/info.json`, the list of episodes and the frames; refuse a conflict."""
    _check_frames(rows, options, findings)
    if episodes is None:
        what = "meta/episodes.jsonl" if info.version == "v2.1" else "meta/episodes"
        _conflict(what, f"{what} is missing", 0, 1, options, findings)
    else:
        _check_list(episodes, rows, options, findings)
        _check_places(info, episodes, rows, options, findings)
    if rows.lost:
        return
    empty = 0 if episodes is None else int((episodes.lengths == 0).sum())
    totals = (
        ("total_episodes", len(rows.numbers) + empty),
        ("total_frames", int(rows.lengths.sum())),
    )
    for name, found in totals:
        declared = info.count(name)
        if declared != found:
            first = int(rows.numbers[-1]) if declared is None or declared > found else declared
            said = f"meta/info.json says {declared}, the data holds {found:,}"
            _conflict(name, said, first, 1, options, findings)


def _check_frames(rows: Rows, options: ReadOptions, findings: Findings) -> None:
    episode, frame = rows.columns["episode_index"], rows.columns["frame_index"]
    # The frames of an episode only ever rise, so its ends tell whether one is left out.
    ends = rows.starts + rows.lengths - 1
    if (frame[rows.starts] != 0).any() or (frame[ends] != rows.lengths - 1).any():
        gaps = frame != np.arange(len(frame)) - np.repeat(rows.starts, rows.lengths)
        row = int(np.argmax(gaps))
        _conflict(
            "frame_index",
            f"data: the frames of {len(np.unique(episode[gaps])):,} episodes are not numbered "
            f"0, 1, 2 ... (first: episode {int(episode[row])}, frame {int(frame[row])})",
            int(episode[row]),
            int(gaps.sum()),
            options,
            findings,
        )


def _check_list(episodes: Episodes, rows: Rows, options: ReadOptions, findings: Findings) -> None:
    listed = dict(zip(episodes.numbers.tolist(), episodes.lengths.tolist(), strict=True))
    found = dict(zip(rows.numbers.tolist(), rows.lengths.tolist(), strict=True))
    differ = {number for number, _ in listed.items() ^ found.items()}
    wrong = [
        number
        for number in sorted(differ - set(rows.lost))
        if listed.get(number) != found.get(number, 0)
    ]
    if wrong:
        first = wrong[0]
        _conflict(
            "length",
            f"{episodes.file} says that episode {first} has {listed.get(first, 'no entry')} "
            f"frames, the data has {found.get(first, 0)} ({len(wrong):,} such episodes)",
            first,
            len(wrong),
            options,
            findings,
        )


def _check_places(
    info: Info, episodes: Episodes, rows: Rows, options: ReadOptions, findings: Findings
) -> None:
    """File and row positions: never used for reading, but a lie about them is told."""
    found: set[int] = set()
    scattered: set[int] = set()
    for held in rows.files.values():
        scattered |= found & held
        found |= held
    wrong = [
        number
        for file, listed in rows.expected.items()
        for number in sorted(found.intersection(listed) - (rows.files.get(file, set()) - scattered))
    ]
    if wrong:
        first = next(file for file, held in rows.files.items() if wrong[0] in held)
        file = first.relative_to(info.root).as_posix()
        _conflict(
            "data/file_index",
            f"{episodes.file} points {len(wrong):,} episodes to a file that does not hold them "
            f"(first: episode {wrong[0]}, which lies in {file})",
            wrong[0],
            len(wrong),
            options,
            findings,
        )
    index = rows.columns.get("index")
    if index is None or index.ndim != 1:
        return
    begins = dict(zip(rows.numbers.tolist(), index[rows.starts].tolist(), strict=True))
    ends = rows.starts + rows.lengths - 1
    stops = dict(zip(rows.numbers.tolist(), (index[ends] + 1).tolist(), strict=True))
    for name, truth in (("dataset_from_index", begins), ("dataset_to_index", stops)):
        column = episodes.columns.get(name, [])
        pairs = zip(episodes.numbers.tolist(), column, strict=False)
        bad = [(n, said) for n, said in pairs if n in truth and said != truth[n]]
        if bad:
            number, said = bad[0]
            _conflict(
                name,
                f"{episodes.file} says {said} for episode {number}, its frames say "
                f"{truth[number]} ({len(bad):,} such episodes)",
                number,
                len(bad),
                options,
                findings,
            )
    _check_index(rows, index, options, findings)


def _check_index(rows: Rows, index: Array, options: ReadOptions, findings: Findings) -> None:
    spans = index.dtype.kind in "iu" and int(index[-1]) - int(index[0]) == len(index) - 1
    if spans and (index[1:] > index[:-1]).all():
        return  # whole numbers that rise this far in so many steps rise by one
    inner = np.ones(len(index) - 1, dtype=np.bool_)
    if rows.lost:
        inner[rows.starts[1:] - 1] = False
    broken = (np.diff(index) != 1) & inner
    if broken.any():
        row = int(np.argmax(broken)) + 1
        number = int(rows.columns["episode_index"][row])
        _conflict(
            "index",
            f"data: the running number jumps from {int(index[row - 1])} to {int(index[row])} in "
            f"episode {number} ({int(broken.sum()):,} jumps)",
            number,
            int(broken.sum()),
            options,
            findings,
        )


def _conflict(
    name: str, said: str, first: int, count: int, options: ReadOptions, findings: Findings
) -> None:
    if options.trust == "data":
        findings.repair(
            "meta_conflict",
            f"{said}; the index was rebuilt from the data.",
            field=name,
            count=count,
            first=first,
        )
        return
    findings.refuse(
        "meta_conflict",
        f"{said}. --trust data rebuilds the index from the frames.",
        field=name,
        index=first,
        count=count,
    )
