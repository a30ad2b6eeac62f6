"""What other people's trainers read: tables, arrays, buffers and masks made of judged steps."""

from __future__ import annotations

import shlex
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pubc import formats
from pubc.errors import DataError, UsageError
from pubc.pu.pile_statistics import survey
from pubc.pu.steps.cut_segments import LEVEL, worst_of
from pubc.runs.folder.document_types import reading_options
from pubc.runs.folder.given_data import SELECTED_BY, Tell, read_checked, selected_by
from pubc.runs.folder.run_folder import RunFolder
from pubc.runs.segments.segment_set import cut_segments
from pubc.runs.segments.steps_file import STEPS_FILE, read_steps
from pubc.storage import sealed_file
from pubc.trajectory import TrajectorySet

__all__ = [
    "MASK",
    "TABLE_KIND",
    "JudgedRun",
    "lerobot_line",
    "rabc_progress",
    "read_judged",
    "write_buffer",
    "write_mask_file",
    "write_progress",
    "write_weights",
]

Floats = NDArray[np.float32]
TABLE_KIND = "weights"
"""What manifests call such a file."""
_RISE = 0.05
"""How far progress rises or falls over a chunk: above LeRobot's threshold of 0.01."""
MASK = "pubc_expert"
"""Name of the mask in a robomimic file."""


class JudgedRun:
    """A finished run with its judged steps, and the data that it judged."""

    def __init__(self, folder: Path, document: dict[str, Any]) -> None:
        self.folder = folder
        self.document = document
        steps = int(document["data"]["steps"])
        self.confidence, self.segments = read_steps(folder, steps)
        known, at = int(document["data"]["trajectories"]), self.segments["trajectory"]
        inside = known <= steps and not ((at < 0) | (at >= known)).any()
        if not inside or int(self.lengths.sum()) != steps:
            raise DataError(
                f"{folder}: {STEPS_FILE} has segments that do not cover the {steps:,} steps of "
                f"{known:,} trajectories. `pubc verify {folder}` says whether a file was changed.",
                code="bad_run",
                field=STEPS_FILE,
            )

    @property
    def lengths(self) -> NDArray[np.int64]:
        """Steps of each trajectory, as the segments cover them."""
        at, end = self.segments["trajectory"], self.segments["end"]
        lengths = np.zeros(int(self.document["data"]["trajectories"]), dtype=np.int64)
        np.maximum.at(lengths, at, end)
        return lengths

    def check_data(self, trajectories: TrajectorySet) -> None:
        """See that some data is what the run judged.

        Raises:
            DataError: It is not.
        """
        known = self.document["data"]
        same = trajectories.steps == known["steps"]
        if not same or survey(trajectories).fingerprint != known["fingerprint"]:
            raise DataError(
                f"{self.folder} judged other data: expected the {known['steps']:,} steps of "
                f"{known['path'] or 'data in memory'} as they were, found {trajectories.steps:,}. "
                "Filter this data, and use that run.",
                code="other_data",
            )


def read_judged(folder: Path) -> JudgedRun:
    """Open a finished run for its steps.

    Raises:
        DataError: It is no finished run, or its steps are not as it left them.
        UsageError: It says nothing of steps.
    """
    run = RunFolder(folder)
    document = run.check_finished()
    run.check_parts(STEPS_FILE)
    return JudgedRun(folder, document)


def _data_of_run(run: JudgedRun, tell: Tell) -> tuple[Path, formats.ReadOptions, TrajectorySet]:
    """The data behind a run, read as the run read it.

    Raises:
        UsageError: It was made in memory.
        DataError: It changed since.
    """
    place = run.document["data"]["path"]
    if place is None:
        raise UsageError(f"{run.folder}: its data was made in memory, so there is no file of it.")
    options = reading_options(run.document)
    trajectories = read_checked(Path(place), options, tell)
    run.check_data(trajectories)
    return Path(place), options, trajectories


def rabc_progress(
    confidence: Floats, lengths: NDArray[np.int64], chunk: int
) -> NDArray[np.float64]:
    """Progress from which LeRobot's RA-BC gives weight 1 to the expert's frames and 0 to others.

    LeRobot looks at how far progress rises from a frame to the one a chunk later, or to the last
    of the episode. Built from the end, exactly that difference is positive for every frame of the
    expert and negative for every other; the last frame of an episode has no difference.
    """
    rise = np.where(confidence >= LEVEL, _RISE, -_RISE)
    progress = np.zeros(len(confidence))
    start = 0
    for length in lengths.tolist():
        last = start + length - 1
        for step in range(last - 1, start - 1, -1):
            progress[step] = progress[min(step + chunk, last)] - rise[step]
        start += length
    return progress


def write_progress(out: Path, run: JudgedRun, *, chunk: int, overwrite: bool) -> None:
    """Write the table that LeRobot's RA-BC reads."""
    from pubc.formats.parquet.parquet_write import make_table, write_tables

    if chunk < 1:
        raise UsageError(f"--chunk is a number of steps, at least 1. Got {chunk}.")
    lengths = run.lengths
    starts = np.repeat(np.cumsum(lengths) - lengths, lengths)
    index = np.arange(len(run.confidence))
    table = make_table(
        {
            "index": index,
            "episode_index": np.repeat(np.arange(len(lengths)), lengths),
            "frame_index": index - starts,
            "progress_sparse": rabc_progress(run.confidence, lengths, chunk),
            "pubc_confidence": run.confidence,
        }
    )
    with sealed_file(out, kind=TABLE_KIND, overwrite=overwrite) as place:
        write_tables(place, [table])


def lerobot_line(data: Path, table: Path) -> str:
    """The line that trains with LeRobot on the whole dataset, weighted by the table."""
    words = [
        "lerobot-train", "--policy.type=smolvla", "--policy.push_to_hub=false",
        f"--dataset.repo_id=local/{data.name}", f"--dataset.root={data.resolve()}",
        "--sample_weighting.type=rabc", f"--sample_weighting.progress_path={table.resolve()}",
        "--sample_weighting.head_mode=sparse", f"--output_dir=outputs/{data.name}",
    ]  # fmt: skip
    return shlex.join(words)


def write_weights(out: Path, weights: Floats, *, overwrite: bool) -> None:
    """Write a flat array with one weight per step."""
    with sealed_file(out, kind=TABLE_KIND, overwrite=overwrite) as place, place.open("wb") as file:
        np.save(file, weights, allow_pickle=False)


def write_buffer(out: Path, run: JudgedRun, tell: Tell, *, shortest: int, overwrite: bool) -> int:
    """Write the expert's segments as a d3rlpy buffer; how many there are.

    `tell` is told, in a sentence each, what a user should know of the data.

    Raises:
        UsageError: None is long enough.
    """
    _, _, trajectories = _data_of_run(run, tell)
    nobody = np.zeros(len(trajectories), dtype=np.bool_)
    said: list[str] = []
    made = cut_segments(
        trajectories, run.confidence, nobody, shortest=shortest, margin=2, warn=said.append
    )
    if made is None:
        raise UsageError(said[0][0].upper() + said[0][1:])
    about = {SELECTED_BY: selected_by(run.folder)}
    formats.save_sealed(out, made, format="d3rlpy", overwrite=overwrite, about=about)
    return len(made)


def write_mask_file(out: Path, run: JudgedRun, tell: Tell, *, least: float, overwrite: bool) -> int:
    """Copy a robomimic file with a mask of demonstrations that are the expert's almost throughout.

    `tell` is told, in a sentence each, what a user should know of the data.

    Raises:
        UsageError: The data is no robomimic file, or no demonstration is.
    """
    from pubc.formats.robomimic.robomimic_read import write_mask

    place, options, _ = _data_of_run(run, tell)
    if run.document["data"]["format"] != "robomimic":
        raise UsageError(
            f"A mask is for robomimic files, and {place} is {run.document['data']['format']}."
        )
    share = 1 - worst_of(run.segments, len(run.lengths))
    chosen = np.flatnonzero(share >= least)
    if not len(chosen):
        raise UsageError(
            f"No demonstration has {least:.0%} of the expert's steps (the best has "
            f"{share.max():.0%}). Lower --least."
        )
    selection = formats.Selection(place, chosen, options)
    with sealed_file(out, kind="dataset", overwrite=overwrite) as new:
        write_mask(selection, new, name=MASK, overwrite=False)
    return len(chosen)
