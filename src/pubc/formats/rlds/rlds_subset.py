"""A part of an RLDS dataset: the records of the kept trajectories, byte by byte.

A record is a trajectory with everything that was recorded, pictures and texts included, so a part
loses nothing. Each split becomes one file, and `dataset_info.json` counts what is left.
"""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from pubc.errors import DataError
from pubc.formats.core.findings import Findings
from pubc.formats.core.options import ReadOptions
from pubc.formats.rlds.rlds_files import record_files
from pubc.formats.rlds.tfrecords import read_records, write_records
from pubc.storage import atomic_folder, read_json, write_json

__all__ = ["copy_records"]

INFO = "dataset_info.json"
_SUFFIX = ".tfrecord"


def copy_records(
    source: Path, target: Path, ids: list[str], options: ReadOptions, *, overwrite: bool
) -> None:
    """Copy the records of the given trajectories into a new dataset folder.

    Args:
        source: The dataset.
        target: Where to write.
        ids: SPLIT/NUMBER of each, as reading with `options` gives them.
        options: How the dataset was read.
        overwrite: Replace an existing folder that pubc wrote.
    """
    wanted = set(ids)
    with atomic_folder(target, kind="rlds", overwrite=overwrite) as folder:
        for file in sorted(source.iterdir()):
            if file.is_file() and _SUFFIX not in file.name and file.name != "manifest.json":
                shutil.copyfile(file, folder / file.name)
        counts: dict[str, dict[str, Any]] = {}
        for split, start in _splits(source, options).items():
            new = folder / f"{start}-00000-of-00001"
            count = write_records(new, _chosen(source, split, wanted, options))
            if count:
                size = str(new.stat().st_size)
                counts[split] = {"shardLengths": [str(count)], "numBytes": size}
            else:
                new.unlink()
        if (folder / INFO).is_file():
            write_json(folder / INFO, _counted(read_json(folder / INFO), counts), overwrite=True)


def _splits(source: Path, options: ReadOptions) -> dict[str, str]:
    """Every split with the beginning of the names of its files."""
    files = record_files(source, options, Findings(source))
    return {split: file.name.split(_SUFFIX)[0] + _SUFFIX for split, _, file in files}


def _chosen(source: Path, asked: str, wanted: set[str], options: ReadOptions) -> Iterator[bytes]:
    number = 0
    for split, _, file in record_files(source, options, Findings(source)):
        if split != asked:
            continue
        try:
            for record in read_records(file):
                if f"{split}/{number}" in wanted:
                    yield bytes(record)
                number += 1
        except DataError as error:
            if not options.skip_bad_files or error.code not in ("truncated", "checksum"):
                raise


def _counted(info: dict[str, Any], counts: dict[str, dict[str, Any]]) -> dict[str, Any]:
    splits = info.get("splits")
    known = [s for s in (splits if isinstance(splits, list) else []) if isinstance(s, dict)]
    left = [
        split | counts[str(split.get("name"))] for split in known if split.get("name") in counts
    ]
    return {**info, "splits": left}
