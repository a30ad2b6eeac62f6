"""A small valid dataset in every format; the corpora are made by spoiling these."""

import json
import zipfile
from collections.abc import Callable
from pathlib import Path

import h5py
import numpy as np

from pubc import formats
from pubc.formats.lerobot import lerobot_read as lerobot
from pubc.trajectory import Columns, TrajectorySet
from tests.formats.rlds_sets import episode, write_rlds
from tests.formats.zarr_sets import (
    diffusion_arrays,
    trifinger_arrays,
    write_folder,
    write_lmdb,
    zarr_keys,
)

LENGTHS = (5, 4, 6)
ROWS = sum(LENGTHS)
Arrays = dict[str, np.ndarray]


def flat() -> Arrays:
    """Flat columns that nothing is wrong with, as an npz or a D4RL file holds them."""
    rng = np.random.Generator(np.random.Philox(5))
    ends = np.zeros(ROWS, dtype=bool)
    ends[np.cumsum(LENGTHS) - 1] = True
    terminals = ends.copy()
    terminals[-1] = False
    return {
        "observations": rng.normal(size=(ROWS, 3)).astype(np.float32),
        "actions": rng.uniform(-1, 1, size=(ROWS, 2)).astype(np.float32),
        "rewards": rng.normal(size=ROWS).astype(np.float32),
        "terminals": terminals,
        "timeouts": ends & ~terminals,
    }


def trajectories() -> TrajectorySet:
    arrays = flat()
    return TrajectorySet.from_flat(
        Columns(*(arrays[n] for n in ("observations", "actions", "rewards")),
                arrays["terminals"], arrays["timeouts"]),
        LENGTHS,
    )  # fmt: skip


def npz(folder: Path, arrays: Arrays | None = None, *, compressed: bool = False) -> Path:
    path = folder / "set.npz"
    save = np.savez_compressed if compressed else np.savez
    save(path, **(flat() if arrays is None else arrays))
    return path


def d4rl(folder: Path, arrays: Arrays | None = None) -> Path:
    path = folder / "set.hdf5"
    with h5py.File(path, "w") as file:
        for name, values in (flat() if arrays is None else arrays).items():
            file[name] = values
    return path


def robomimic(folder: Path) -> Path:
    path = folder / "demo.hdf5"
    arrays, start = flat(), 0
    with h5py.File(path, "w") as file:
        data = file.create_group("data")
        data.attrs["env_args"] = json.dumps({"env_name": "Lift", "type": 1, "env_kwargs": {}})
        data.attrs["total"] = ROWS
        for number, length in enumerate(LENGTHS):
            rows = slice(start, start + length)
            demo = data.create_group(f"demo_{number}")
            demo.attrs["num_samples"] = length
            demo["actions"] = arrays["actions"][rows]
            demo["rewards"] = arrays["rewards"][rows]
            demo["dones"] = (np.arange(length) == length - 1).astype(np.int64)
            demo["obs/eef_pos"] = arrays["observations"][rows]
            demo["obs/object"] = arrays["observations"][rows, :1]
            start += length
    return path


def saved(name: str, file: str) -> Callable[[Path], Path]:
    """The set as pubc writes it in a format."""

    def make(folder: Path) -> Path:
        path = folder / file
        formats.save(path, trajectories(), format=name)
        return path

    return make


def lerobot_v21(folder: Path) -> Path:
    path = folder / "set-v21"
    lerobot.write(path, trajectories(), overwrite=False, version="v2.1")
    return path


def lerobot_foreign(folder: Path) -> Path:
    """A v3.0 set without pubc's own notes, as lerobot writes one."""
    path = saved("lerobot", "set-v3")(folder)
    for note in ("meta/pubc.json", "manifest.json"):
        (path / note).unlink(missing_ok=True)
    return path


def trifinger(folder: Path, arrays: Arrays | None = None, **options) -> Path:
    path = folder / "push.zarr"
    path.mkdir()
    return write_lmdb(path, zarr_keys(arrays or trifinger_arrays(LENGTHS), **options))


def diffusion(folder: Path, arrays: Arrays | None = None, **options) -> Path:
    path = folder / "replay.zarr"
    path.mkdir()
    return write_folder(path, zarr_keys(arrays or diffusion_arrays(LENGTHS), **options))


def diffusion_zip(folder: Path) -> Path:
    path = folder / "replay.zarr.zip"
    with zipfile.ZipFile(path, "w") as archive:
        for key, value in zarr_keys(diffusion_arrays(LENGTHS)).items():
            archive.writestr(key, value)
    return path


def minari_parquet(folder: Path) -> Path:
    """The Parquet layout as minari writes it: one folder per episode, padded by one row."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    path, arrays, start = folder / "set-v0", flat(), 0
    data = path / "data"
    for number, length in enumerate(LENGTHS):
        rows = slice(start, start + length)
        place = data / str(number)
        place.mkdir(parents=True)
        observed = np.concatenate([arrays["observations"][rows], np.ones((1, 3), "f4")])
        padded = {
            "actions": arrays["actions"][rows],
            "rewards": arrays["rewards"][rows],
            "terminations": arrays["terminals"][rows],
            "truncations": arrays["timeouts"][rows],
        }
        columns = {"observations": pa.array(list(observed))}
        for name, values in padded.items():
            values = np.concatenate([values, values[-1:]])
            columns[name] = pa.array(list(values))
        pq.write_table(pa.table(columns), place / "0.parquet", write_page_checksum=True)
        about = {"id": number, "total_steps": length}
        (place / "metadata.json").write_text(json.dumps(about))
        start += length
    about = {"total_episodes": 3, "total_steps": ROWS, "data_format": "parquet"}
    (data / "metadata.json").write_text(json.dumps(about))
    return path


def rlds(folder: Path) -> Path:
    shards = [
        [episode(0, 5, terminal=True), episode(5, 4, terminal=True)],
        [episode(9, 6, terminal=False)],
    ]
    return write_rlds(folder / "1.0.0", shards)


SAMPLES: dict[str, Callable[[Path], Path]] = {
    "npz": npz,
    "store": saved("store", "set.store"),
    "d4rl": d4rl,
    "minari": saved("minari", "set-v0"),
    "minari-parquet": minari_parquet,
    "robomimic": robomimic,
    "lerobot": lerobot_foreign,
    "lerobot-v2.1": lerobot_v21,
    "trifinger": trifinger,
    "diffusion": diffusion,
    "diffusion-zip": diffusion_zip,
    "d3rlpy": saved("d3rlpy", "set.h5"),
    "rlds": rlds,
}
"""How to make a valid dataset of each layout in a folder."""
