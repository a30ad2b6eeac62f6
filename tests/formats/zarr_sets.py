"""Synthetic zarr datasets in the layouts of TriFinger and Diffusion Policy."""

from pathlib import Path

import lmdb
import numpy as np
import zarr

from tests.formats.roundtrip import marker


def flat(lengths: tuple[int, ...], size: int = 5) -> dict[str, np.ndarray]:
    """Columns whose first observation counts the steps and whose first action marks it."""
    rows = sum(lengths)
    rng = np.random.Generator(np.random.Philox(7))
    observations = rng.normal(size=(rows, size)).astype(np.float32)
    observations[:, 0] = np.arange(rows)
    actions = rng.normal(size=(rows, 3)).astype(np.float32)
    actions[:, 0] = marker(np.arange(rows))
    return {
        "observations": observations,
        "actions": actions,
        "rewards": rng.normal(size=rows).astype(np.float32),
    }


def zarr_keys(arrays: dict[str, np.ndarray], **options) -> dict[str, bytes]:
    """A zarr v2 group as its keys."""
    store = zarr.storage.MemoryStore()
    group = zarr.open_group(store, mode="w", zarr_format=2)
    for name, values in arrays.items():
        chunks = tuple(max(1, n // 3) for n in values.shape[:1]) + values.shape[1:]
        array = group.create_array(
            name,
            shape=values.shape,
            dtype=values.dtype,
            chunks=chunks,
            config={"write_empty_chunks": True},
            **options,
        )
        array[...] = values
    return {key: value.to_bytes() for key, value in store._store_dict.items()}


def trifinger_arrays(lengths: tuple[int, ...] = (4, 6, 5)) -> dict[str, np.ndarray]:
    arrays = flat(lengths)
    ends = np.cumsum(lengths) - 1
    arrays["episode_ends"] = ends.astype(np.int64)
    arrays["timeouts"] = np.zeros(sum(lengths), dtype=bool)
    arrays["timeouts"][ends] = True
    return arrays


def write_lmdb(folder: Path, keys: dict[str, bytes]) -> Path:
    """Keys into `folder/data.mdb`."""
    environment = lmdb.open(str(folder), map_size=1 << 28)
    with environment.begin(write=True) as transaction:
        for key, value in keys.items():
            transaction.put(key.encode(), value)
    environment.close()
    (folder / "lock.mdb").unlink()
    return folder


def write_folder(folder: Path, keys: dict[str, bytes]) -> Path:
    """Keys as files below a folder."""
    for key, value in keys.items():
        (folder / key).parent.mkdir(parents=True, exist_ok=True)
        (folder / key).write_bytes(value)
    return folder


def diffusion_arrays(lengths: tuple[int, ...] = (4, 6, 5)) -> dict[str, np.ndarray]:
    arrays = flat(lengths)
    return {
        "data/state": arrays["observations"],
        "data/action": arrays["actions"],
        "meta/episode_ends": np.cumsum(lengths).astype(np.int64),
    }
