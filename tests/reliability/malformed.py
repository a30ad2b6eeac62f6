"""The malformed corpus: named faults, how each is made, and what pubc does about it.

The table in docs/reliability.md is generated from this list, so it says what is tested.
"""

import json
import shutil
import subprocess
import sys
import zipfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import h5py
import numpy as np

from tests.formats.zarr_sets import diffusion_arrays, trifinger_arrays
from tests.reliability import samples
from tests.reliability.samples import LENGTHS, ROWS, Arrays, flat


@dataclass(frozen=True)
class Fault:
    """One way to spoil a dataset, and the documented answer."""

    name: str
    """What is wrong, in words."""
    format: str
    """The format it is made in."""
    make: Callable[[Path], Path]
    """Writes the dataset into a folder and returns its path."""
    outcome: str
    """`refused`, `repaired`, `warned` or `noticed`."""
    code: str
    """Stable name of the fault."""
    field: str | None = None
    """Array, key or file that the message must name."""
    first: int | tuple[int, ...] | None = None
    """First bad place that the message must name, where there is one."""
    flags: tuple[str, ...] = ()
    """Flags of the command that reads it."""

    @property
    def exit_code(self) -> int:
        return 3 if self.outcome == "refused" else 0


def spoiled(change: Callable[[Arrays], None], write: Callable[..., Path]) -> Callable:
    """The flat sample with something changed, written in a flat format."""

    def make(folder: Path) -> Path:
        arrays = flat()
        change(arrays)
        return write(folder, arrays)

    return make


def put(name: str, place: object, value: object) -> Callable[[Arrays], None]:
    def change(arrays: Arrays) -> None:
        arrays[name] = np.array(arrays[name])
        arrays[name][place] = value

    return change


def replace(name: str, value: object) -> Callable[[Arrays], None]:
    def change(arrays: Arrays) -> None:
        arrays[name] = value(arrays[name]) if callable(value) else np.asarray(value)

    return change


def drop(*names: str) -> Callable[[Arrays], None]:
    def change(arrays: Arrays) -> None:
        for name in names:
            del arrays[name]

    return change


def both(*changes: Callable[[Arrays], None]) -> Callable[[Arrays], None]:
    def change(arrays: Arrays) -> None:
        for one in changes:
            one(arrays)

    return change


def repeat_first(arrays: Arrays) -> None:
    """A fourth trajectory that is the first one again."""
    for name, values in arrays.items():
        arrays[name] = np.concatenate([values, values[: LENGTHS[0]]])


def one_step(arrays: Arrays) -> None:
    for name, values in arrays.items():
        last = values[-1:].copy() if name not in ("observations", "actions") else values[:1] + 1
        arrays[name] = np.concatenate([values, last])


def no_end(arrays: Arrays) -> None:
    arrays["timeouts"][:] = False
    arrays["terminals"][:] = False


# Faults of flat arrays: each is made as an archive and as an HDF5 file.
FLAT: list[tuple] = [
    ("NaN in an observation", put("observations", (6, 1), np.nan), "refused", "nonfinite",
     "observations", (1, 1, 1)),
    ("infinity in an action", put("actions", (14, 0), np.inf), "refused", "nonfinite",
     "actions", (2, 5, 0)),
    ("NaN in an observation, asked to drop", put("observations", (6, 1), np.nan), "repaired",
     "nonfinite", "observations", 1, ("--nonfinite", "drop-episode")),
    ("NaN in a reward", put("rewards", 9, np.nan), "warned", "nonfinite_rewards", "rewards", 2),
    ("value beyond float32", replace("observations", lambda v: np.where(
        np.arange(v.size).reshape(v.shape) == 7, 1e300, v.astype(np.float64))), "refused",
     "beyond_float32", "observations", 2),
    ("too few actions", replace("actions", lambda v: v[:-2]), "refused", "unequal_lengths",
     "actions", 13),
    ("too few rewards", replace("rewards", lambda v: v[:-1]), "refused", "unequal_lengths",
     "rewards", 14),
    ("too many end marks", replace("timeouts", lambda v: np.append(v, v)), "refused",
     "unequal_lengths", "timeouts", ROWS),
    ("end mark of 2", both(replace("terminals", lambda v: v.astype(np.int64)),
     put("terminals", 4, 2)), "refused", "not_boolean", "terminals", 4),
    ("end marks of -1 and 1", replace("timeouts", lambda v: v * 2.0 - 1), "refused",
     "not_boolean", "timeouts", 0),
    ("end mark of NaN", both(replace("timeouts", lambda v: v.astype(float)),
     put("timeouts", 3, np.nan)), "refused", "not_boolean", "timeouts", 3),
    ("end marks as text", replace("timeouts", lambda v: np.where(v, b"yes", b"no")), "refused",
     "bad_dtype", "timeouts", None),
    ("no end marks", drop("terminals", "timeouts"), "refused", "no_ends", "timeouts", None),
    ("end marks that mark nothing", no_end, "refused", "no_ends", "timeouts", None),
    ("steps after the last end mark", put("timeouts", ROWS - 1, False), "repaired",
     "unmarked_tail", "timeouts", 9),
    ("steps after the last end mark, asked to drop", put("timeouts", ROWS - 1, False),
     "repaired", "unmarked_tail", "timeouts", 9, ("--trailing", "drop")),
    ("steps after the last end mark, asked to refuse", put("timeouts", ROWS - 1, False),
     "refused", "unmarked_tail", "timeouts", 9, ("--trailing", "error")),
    ("terminal and timeout at one step", put("timeouts", 4, True), "noticed", "both_flags",
     "timeouts", 4),
    ("trajectory of one step", one_step, "noticed", "one_step", "lengths", 3),
    ("all actions equal", replace("actions", np.zeros((ROWS, 2), np.float32)), "refused",
     "equal_actions", "actions", None),
    ("observation dimension that never changes", put("observations", (slice(None), 2), 4.0),
     "warned", "constant_feature", "observations", 2),
    ("observation dimension that hardly changes", replace("observations", lambda v:
     v.astype(np.float64) * [1, 1e-7, 1]), "warned", "near_constant", "observations", 1),
    ("trajectory twice in a set", repeat_first, "warned", "duplicates", "observations", 3),
    ("observations as text", replace("observations", np.full((ROWS, 3), b"1.0")), "refused",
     "bad_dtype", "observations", None),
    ("pictures as observations", replace("observations", np.zeros((ROWS, 20, 20, 3), np.uint8)),
     "refused", "bad_shape", "observations", None),
    ("no observations", drop("observations"), "refused", "missing_key", "observations", None),
    ("no actions", drop("actions"), "refused", "missing_key", "actions", None),
    ("no steps", lambda arrays: arrays.update({n: v[:0] for n, v in arrays.items()}), "refused",
     "empty", "observations", None),
    ("key that is not there", lambda arrays: None, "refused", "missing_key", "torque", None,
     ("--action-key", "torque")),
]  # fmt: skip


def cut(sample: str, share: float = 0.6, inside: str = "") -> Callable[[Path], Path]:
    """A valid dataset whose file lost its end."""

    def make(folder: Path) -> Path:
        path = samples.SAMPLES[sample](folder)
        file = next(f for f in sorted([path, *path.rglob("*")]) if f.match(inside or "*"))
        data = file.read_bytes()
        file.write_bytes(data[: int(len(data) * share)])
        return path

    return make


def hdf5(sample: str, edit: Callable[[h5py.File], None], inside: str = "") -> Callable:
    """A valid HDF5 dataset with an edit made to it."""

    def make(folder: Path) -> Path:
        path = samples.SAMPLES[sample](folder)
        (path / "manifest.json").unlink(missing_ok=True) if path.is_dir() else None
        file = path if not inside else next(path.rglob(inside))
        with h5py.File(file, "r+") as opened:
            edit(opened)
        return path

    return make


def set_item(name: str, value: object) -> Callable[[h5py.File], None]:
    def edit(file: h5py.File) -> None:
        data = value(file[name][()]) if callable(value) else value
        del file[name]
        file[name] = data

    return edit


def set_attribute(group: str, name: str, value: object) -> Callable[[h5py.File], None]:
    def edit(file: h5py.File) -> None:
        file[group].attrs[name] = value

    return edit


def remove(*names: str) -> Callable[[h5py.File], None]:
    def edit(file: h5py.File) -> None:
        for name in names:
            del file[name]

    return edit


def json_edit(sample: str, inside: str, **changes: object) -> Callable[[Path], Path]:
    """A valid folder with entries of one JSON file changed."""

    def make(folder: Path) -> Path:
        path = samples.SAMPLES[sample](folder)
        (path / "manifest.json").unlink(missing_ok=True)
        file = next(path.rglob(inside))
        document = json.loads(file.read_text())
        document.update(changes)
        file.write_text(json.dumps(document))
        return path

    return make


def without(sample: str, inside: str) -> Callable[[Path], Path]:
    """A valid folder that lacks a file."""

    def make(folder: Path) -> Path:
        path = samples.SAMPLES[sample](folder)
        next(path.rglob(inside)).unlink()
        return path

    return make


def columns_edit(sample: str, inside: str, change: Callable[[dict], None]) -> Callable:
    """A valid LeRobot set with columns of a Parquet file changed."""

    def make(folder: Path) -> Path:
        path = samples.SAMPLES[sample](folder)
        (path / "manifest.json").unlink(missing_ok=True)
        file = next(path.rglob(inside))
        import pyarrow.parquet as pq

        table = pq.read_table(file)
        columns = {name: table[name].to_pylist() for name in table.column_names}
        change(columns)
        import pyarrow as pa

        pq.write_table(pa.table(columns), file)
        return path

    return make


def npz_twice(folder: Path) -> Path:
    path = samples.npz(folder)
    data = zipfile.ZipFile(path).read("actions.npy")
    import warnings

    with zipfile.ZipFile(path, "a") as archive, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        archive.writestr("actions.npy", data)
    return path


def store_edit(name: str, change: Callable[[bytes], bytes] | None) -> Callable[[Path], Path]:
    def make(folder: Path) -> Path:
        path = samples.SAMPLES["store"](folder)
        data = (path / name).read_bytes()
        (path / name).unlink()
        if change is not None:
            (path / name).write_bytes(change(data))
        return path

    return make


def zarr_without_chunk(folder: Path) -> Path:
    path = samples.diffusion(folder)
    (path / "data" / "state" / "1.0").unlink()
    return path


def trifinger_with(**changes: np.ndarray) -> Callable[[Path], Path]:
    return lambda folder: samples.trifinger(folder, trifinger_arrays(LENGTHS) | changes)


def diffusion_with(**changes: np.ndarray) -> Callable[[Path], Path]:
    renamed = {key.replace("__", "/"): value for key, value in changes.items()}
    return lambda folder: samples.diffusion(folder, diffusion_arrays(LENGTHS) | renamed)


def empty_folder(folder: Path) -> Path:
    (folder / "set").mkdir()
    return folder / "set"


def not_a_dataset(folder: Path) -> Path:
    (folder / "notes.txt").write_text("nothing here")
    return folder / "notes.txt"


def single_npy(folder: Path) -> Path:
    np.save(folder / "x.npy", np.zeros(3))
    return folder / "x.npy"


def copied_store(folder: Path) -> Path:
    """A store whose lengths array was swapped for another of the same size."""
    path = samples.SAMPLES["store"](folder)
    shutil.copy(path / "terminals.npy", path / "timeouts.npy")
    return path


def set_column(name: str, place: int, value: object) -> Callable[[dict], None]:
    def change(columns: dict) -> None:
        columns[name][place] = value

    return change


DYING_WRITER = """
import os, sys
import h5py
from tests.reliability.samples import flat
file = h5py.File(sys.argv[1], "w", libver="latest")
for name, values in flat().items():
    file[name] = values
file.flush()
os._exit(0)
"""


def writer_died(folder: Path) -> Path:
    path = folder / "set.hdf5"
    subprocess.run(
        [sys.executable, "-c", DYING_WRITER, str(path)],
        check=True,
        cwd=Path(__file__).parents[2],
    )
    return path


CORPUS: list[Fault] = [
    *(
        Fault(row[0], name, spoiled(row[1], write), *row[2:])
        for name, write in (("npz", samples.npz), ("d4rl", samples.d4rl))
        for row in FLAT
    ),
    Fault("lost its end", "npz", cut("npz"), "refused", "truncated"),
    Fault("holds an array twice", "npz", npz_twice, "refused", "duplicate_key", "actions"),
    Fault("lengths that do not sum to the steps", "npz", spoiled(
        lambda a: a.update(lengths=np.array([5, 4, 5])), samples.npz), "refused",
        "unequal_lengths", "lengths", 3),
    Fault("a negative length", "npz", spoiled(
        lambda a: a.update(lengths=np.array([16, -1])), samples.npz), "refused", "bad_lengths",
        "lengths", 0),
    Fault("a trajectory without a step", "npz", spoiled(
        lambda a: a.update(lengths=np.array([5, 0, 4, 6])), samples.npz), "repaired",
        "zero_length", "lengths", 1),
    Fault("an end mark before the end", "npz", spoiled(
        lambda a: a.update(lengths=np.array([9, 6])), samples.npz), "warned", "marks_inside",
        "terminals", 4),
    Fault("ids that are not different", "npz", spoiled(
        lambda a: a.update(lengths=np.array(LENGTHS), ids=np.array(list("aba"))), samples.npz),
        "refused", "bad_ids", "ids", 2),
    Fault("too few sources", "npz", spoiled(
        lambda a: a.update(sources=np.array(["x", "y"])), samples.npz), "refused",
        "unequal_lengths", "sources", 2),
    Fault("final observations of another width", "npz", spoiled(
        lambda a: a.update(final_observations=np.zeros((3, 2))), samples.npz), "refused",
        "bad_shape", "final_observations"),
    Fault("NaN in a final observation", "npz", spoiled(
        lambda a: a.update(final_observations=np.full((3, 3), np.nan)), samples.npz),
        "refused", "nonfinite", "final_observations", (0, 5, 0)),
    Fault("metadata that is not JSON", "npz", spoiled(
        lambda a: a.update(metadata=np.array("{half")), samples.npz), "warned", "bad_metadata",
        "metadata"),
    Fault("an array that is no row per step", "npz", spoiled(
        lambda a: a.update(gains=np.zeros(4)), samples.npz), "noticed", "extra_left_out",
        "gains"),
    Fault("an array lost its end", "store", store_edit("actions.npy", lambda d: d[:-3]),
        "refused", "truncated", "actions"),
    Fault("an array is missing", "store", store_edit("timeouts.npy", None), "refused",
        "missing_file", "timeouts"),
    Fault("the manifest lost its end", "store", store_edit("manifest.json", lambda d: d[:99]),
        "refused", "bad_json"),
    Fault("the manifest was edited", "store", store_edit("manifest.json", lambda d:
        d.replace(b'"steps": 15', b'"steps": 16')), "refused", "bad_manifest"),
    Fault("the file lost its end", "d4rl", cut("d4rl"), "refused", "truncated"),
    Fault("the writer died", "d4rl", writer_died, "refused", "not_closed"),
    Fault("the data file lost its end", "minari", cut("minari", inside="*.hdf5"), "refused",
        "truncated"),
    Fault("fewer episodes than the metadata counts", "minari", hdf5("minari", remove(
        "episode_2"), "*.hdf5"), "refused", "meta_conflict", "total_episodes"),
    Fault("fewer episodes than the metadata counts, data trusted", "minari", hdf5("minari",
        remove("episode_2"), "*.hdf5"), "repaired", "meta_conflict", "metadata.json", None,
        ("--trust", "data")),
    Fault("an episode without actions", "minari", hdf5("minari", remove("episode_1/actions"),
        "*.hdf5"), "refused", "missing_key", "actions", 1),
    Fault("an episode with too few rewards", "minari", hdf5("minari", set_item(
        "episode_1/rewards", lambda v: v[:-1]), "*.hdf5"), "refused", "unequal_lengths",
        "rewards", 1),
    Fault("metadata that is not JSON", "minari", cut("minari", 0.5, "metadata.json"), "refused",
        "bad_json"),
    Fault("the file lost its end", "robomimic", cut("robomimic"), "refused", "truncated"),
    Fault("a demonstration without actions", "robomimic", hdf5("robomimic", remove(
        "data/demo_1/actions")), "refused", "missing_key", "actions", 1),
    Fault("a demonstration with too few observations", "robomimic", hdf5("robomimic", set_item(
        "data/demo_2/obs/eef_pos", lambda v: v[:-3])), "refused", "unequal_lengths",
        "obs", 2),
    Fault("another number of samples than declared", "robomimic", hdf5("robomimic",
        set_attribute("data/demo_0", "num_samples", 50)), "refused", "meta_conflict",
        "num_samples"),
    Fault("another total than declared", "robomimic", hdf5("robomimic", set_attribute(
        "data", "total", 16)), "refused", "meta_conflict", "total"),
    Fault("an action outside the usual bounds", "robomimic", hdf5("robomimic", set_item(
        "data/demo_1/actions", lambda v: v * 1e6)), "warned", "action_bounds", "actions", 5),
    Fault("the metadata lost its end", "lerobot", cut("lerobot", 0.5, "info.json"), "refused",
        "bad_json"),
    Fault("another number of frames than declared", "lerobot", json_edit("lerobot", "info.json",
        total_frames=99), "refused", "meta_conflict", "total_frames"),
    Fault("another number of frames than declared, data trusted", "lerobot", json_edit(
        "lerobot", "info.json", total_frames=99), "repaired", "meta_conflict", "total_frames",
        None, ("--trust", "data")),
    Fault("a data file is missing", "lerobot", without("lerobot", "data/**/*.parquet"),
        "refused", "missing_file"),
    Fault("a data file without its footer", "lerobot", cut("lerobot", 0.8,
        "*/data/*/*.parquet"), "refused", "truncated"),
    Fault("a gap in the frame numbers", "lerobot", columns_edit("lerobot",
        "data/**/*.parquet", set_column("frame_index", 7, 40)), "refused", "meta_conflict",
        "frame_index"),
    Fault("a version that nobody wrote", "lerobot", json_edit("lerobot", "info.json",
        codebase_version="v9.9"), "refused", "unknown_version", "codebase_version"),
    Fault("a data file is missing", "lerobot-v2.1", without("lerobot-v2.1",
        "data/**/episode_000001.parquet"), "refused", "missing_file"),
    Fault("a data file without its footer, asked to skip", "lerobot-v2.1", cut("lerobot-v2.1",
        0.8, "*/episode_000001.parquet"), "repaired", "truncated", None, None,
        ("--skip-bad-files",)),
    Fault("the database lost its end", "trifinger", cut("trifinger", 0.4, "*.mdb"), "refused",
        "truncated"),
    Fault("ends that do not increase", "trifinger", trifinger_with(
        episode_ends=np.array([8, 4, 14])), "refused", "bad_index", "episode_ends", 1),
    Fault("ends beyond the steps", "trifinger", trifinger_with(
        episode_ends=np.array([4, 8, 20])), "refused", "meta_conflict", "episode_ends", 2),
    Fault("timeouts that are not at ends", "trifinger", trifinger_with(
        timeouts=np.arange(ROWS) == 2), "warned", "timeouts_elsewhere", "timeouts", 2),
    Fault("a missing chunk", "diffusion", zarr_without_chunk, "refused", "missing_file",
        "data/state"),
    Fault("ends as fractions", "diffusion", diffusion_with(
        meta__episode_ends=np.array([4.5, 15.0])), "refused", "bad_dtype", "meta/episode_ends"),
    Fault("steps after the last end", "diffusion", diffusion_with(
        meta__episode_ends=np.array([5, 9])), "repaired", "unmarked_tail", None, 9),
    Fault("an archive that lost its end", "diffusion-zip", cut("diffusion-zip"), "refused",
        "truncated"),
    Fault("the file lost its end", "d3rlpy", cut("d3rlpy"), "refused", "truncated"),
    Fault("an episode without actions", "d3rlpy", hdf5("d3rlpy", remove("actions_1")),
        "refused", "meta_conflict", "num_episodes"),
    Fault("a folder that holds nothing", "none", empty_folder, "refused", "unknown_format"),
    Fault("a file of no known format", "none", not_a_dataset, "refused", "unknown_format"),
    Fault("a pickled or single array", "none", single_npy, "refused", "pickle"),
]  # fmt: skip


def table() -> str:
    """The corpus as a Markdown table."""
    lines = ["| format | fault | outcome | code | exit |", "|---|---|---|---|---|"]
    for fault in sorted(CORPUS, key=lambda fault: (fault.format == "none", fault.format)):
        flags = f" (`{' '.join(fault.flags)}`)" if fault.flags else ""
        lines.append(
            f"| {fault.format} | {fault.name}{flags} | {fault.outcome} | `{fault.code}` | "
            f"{fault.exit_code} |"
        )
    return "\n".join(lines) + "\n"
