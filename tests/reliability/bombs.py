"""Small files that promise the world."""

import json
import zipfile
import zlib
from collections.abc import Callable
from pathlib import Path

import h5py
import numpy as np

from tests.formats.zarr_sets import diffusion_arrays, trifinger_arrays, write_folder, write_lmdb
from tests.formats.zarr_sets import zarr_keys as keys_of
from tests.reliability import samples
from tests.reliability.hostile import npy
from tests.reliability.samples import LENGTHS, flat


def npz_zeros(folder: Path) -> Path:
    """Six hundred megabytes of zeros in three."""
    path = samples.npz(folder)
    header = npy("{'descr': '|u1', 'fortran_order': False, 'shape': (603979776,)}")
    with (
        zipfile.ZipFile(path, "a", zipfile.ZIP_DEFLATED, compresslevel=1) as archive,
        archive.open("zeros.npy", "w", force_zip64=True) as entry,
    ):
        entry.write(header)
        block = bytes(1 << 24)
        for _ in range(603_979_776 // len(block)):
            entry.write(block)
    return path


def npz_header(folder: Path) -> Path:
    """An array of 128 bytes that claims a terabyte."""
    path = samples.npz(folder)
    header = npy("{'descr': '<f8', 'fortran_order': False, 'shape': (137438953472,)}", bytes(64))
    with zipfile.ZipFile(path, "a") as archive:
        archive.writestr("x.npy", header)
    return path


def npz_nested_header(folder: Path) -> Path:
    path = samples.npz(folder)
    with zipfile.ZipFile(path, "a") as archive:
        archive.writestr("x.npy", npy("{'descr': " + "(" * 9000 + ")" * 9000 + "}"))
    return path


def npz_lengths(folder: Path) -> Path:
    arrays = flat() | {"lengths": np.array([2**62, 2**62, 2**62, 2**62, 15])}
    return samples.npz(folder, arrays)


def hdf5_sparse(folder: Path) -> Path:
    """A kilobyte that declares 64 GiB."""
    path = folder / "set.hdf5"
    with h5py.File(path, "w") as file:
        file.create_dataset("observations", shape=(2**30, 8), dtype="f8", chunks=(1024, 8))
        for name in ("actions", "rewards", "terminals"):
            file.create_dataset(name, shape=(2**30,), dtype="f8", chunks=(1024,))
    return path


def hdf5_gzip(folder: Path) -> Path:
    """Six hundred megabytes of zeros in six hundred kilobytes."""
    path = folder / "set.hdf5"
    with h5py.File(path, "w") as file:
        made = file.create_dataset(
            "observations", (1 << 18, 600), "f4", chunks=(1 << 12, 600), compression="gzip"
        )
        block = zlib.compress(np.zeros((1 << 12, 600), "f4"))
        for start in range(0, 1 << 18, 1 << 12):
            made.id.write_direct_chunk((start, 0), block)
        for name in ("actions", "rewards", "terminals"):
            file[name] = np.zeros(1 << 18, "f4")
    return path


def hdf5_groups(folder: Path) -> Path:
    """A million links to groups."""
    path = folder / "set.hdf5"
    with h5py.File(path, "w", libver="latest") as file:
        for name, values in flat().items():
            file[name] = values
        place = file.create_group("infos").id
        group = h5py.h5g.create(place, b"one")
        for number in range(1_000_100):
            h5py.h5o.link(group, place, b"%d" % number)
    return path


def hdf5_deep(folder: Path) -> Path:
    path = folder / "set.hdf5"
    with h5py.File(path, "w") as file:
        for name, values in flat().items():
            file[name] = values
        file.create_group("infos" + "/x" * 5000)
    return path


def parquet_runs(folder: Path) -> Path:
    """Millions of rows of one number, as Parquet stores them: almost nothing."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    path = samples.lerobot_foreign(folder)
    file = next(path.rglob("data/**/*.parquet"))
    table = pq.read_table(file)
    rows = 1 << 21
    columns = {name: pa.array(np.zeros(rows, np.float32)) for name in table.column_names}
    zeros = pa.table({**columns, "episode_index": pa.array(np.zeros(rows, np.int64))})
    with pq.ParquetWriter(file, zeros.schema, compression="zstd") as writer:
        for _ in range(6):
            writer.write_table(zeros)
    return path


def zarr_shape(folder: Path) -> Path:
    keys = keys_of(diffusion_arrays(LENGTHS))
    document = json.loads(keys["data/state/.zarray"])
    document["shape"] = [2**40, 5]
    keys["data/state/.zarray"] = json.dumps(document).encode()
    path = folder / "replay.zarr"
    path.mkdir()
    return write_folder(path, keys)


def zarr_chunk(folder: Path) -> Path:
    keys = keys_of(diffusion_arrays(LENGTHS))
    document = json.loads(keys["data/state/.zarray"])
    document["chunks"] = [2**40, 5]
    keys["data/state/.zarray"] = json.dumps(document).encode()
    path = folder / "replay.zarr"
    path.mkdir()
    return write_folder(path, keys)


def zarr_many_chunks(folder: Path) -> Path:
    keys = keys_of(trifinger_arrays(LENGTHS))
    document = json.loads(keys["actions/.zarray"])
    document["shape"], document["chunks"] = [2**34, 3], [1, 3]
    keys["actions/.zarray"] = json.dumps(document).encode()
    path = folder / "push.zarr"
    path.mkdir()
    return write_lmdb(path, keys)


def zip_zeros(folder: Path) -> Path:
    path = folder / "replay.zarr.zip"
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for key, value in keys_of(diffusion_arrays(LENGTHS)).items():
            archive.writestr(key, bytes(300 << 20) if key == "data/state/0.0" else value)
    return path


def deep_json(sample: str, inside: str) -> Callable[[Path], Path]:
    def make(folder: Path) -> Path:
        path = samples.SAMPLES[sample](folder)
        next(path.rglob(inside)).write_text('{"a":' * 2_000_000 + "1" + "}" * 2_000_000)
        return path

    return make


def large_json(sample: str, inside: str) -> Callable[[Path], Path]:
    def make(folder: Path) -> Path:
        path = samples.SAMPLES[sample](folder)
        text = '{"files": [' + "{}," * 25_000_000 + "{}]}"
        next(path.rglob(inside)).write_text(text)
        return path

    return make


def tfrecord_length(folder: Path) -> Path:
    from tests.formats.rlds_sets import masked

    path = samples.rlds(folder)
    shard = next(path.glob("*00000-of*"))
    size = (2**40).to_bytes(8, "little")
    shard.write_bytes(size + masked(size) + bytes(100))
    return path


def episode_numbers(folder: Path) -> Path:
    """Metadata that counts ten thousand million episodes."""
    path = samples.SAMPLES["lerobot-v2.1"](folder)
    (path / "manifest.json").unlink(missing_ok=True)
    info = path / "meta" / "info.json"
    document = json.loads(info.read_text())
    document["total_episodes"] = document["total_frames"] = 10**10
    info.write_text(json.dumps(document))
    return path


BOMBS: dict[str, Callable[[Path], Path]] = {
    "npz: 600 megabytes of zeros": npz_zeros,
    "npz: 128 bytes that claim a terabyte": npz_header,
    "npz: header nested without end": npz_nested_header,
    "npz: lengths that overflow to the right sum": npz_lengths,
    "d4rl: a kilobyte that declares 64 GiB": hdf5_sparse,
    "d4rl: 600 megabytes of zeros": hdf5_gzip,
    "d4rl: groups nested without end": hdf5_deep,
    "lerobot: runs of one number": parquet_runs,
    "lerobot: ten thousand million episodes": episode_numbers,
    "lerobot: JSON nested without end": deep_json("lerobot", "info.json"),
    "minari: JSON nested without end": deep_json("minari", "metadata.json"),
    "store: manifest of 100 megabytes": large_json("store", "manifest.json"),
    "diffusion: shape of a petabyte": zarr_shape,
    "diffusion: chunk of a petabyte": zarr_chunk,
    "diffusion zip: chunk of 300 megabytes of zeros": zip_zeros,
    "trifinger: seventeen thousand million chunks": zarr_many_chunks,
    "rlds: record of a terabyte": tfrecord_length,
}

SLOW_TO_MAKE: dict[str, Callable[[Path], Path]] = {"d4rl: a million groups": hdf5_groups}
