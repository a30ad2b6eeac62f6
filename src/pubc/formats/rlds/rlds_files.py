"""Which files of a TFDS folder hold records, and how many its description promises."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

from pubc.formats.core.findings import Findings
from pubc.formats.core.options import ReadOptions
from pubc.storage import read_json

__all__ = ["compare_counts", "declared_counts", "record_files"]

_FILE = re.compile(r"^(?P<start>.+-(?P<split>[^-]+)\.tfrecord)(?:-(?P<shard>\d+)-of-(?P<of>\d+))?$")


def record_files(
    path: Path, options: ReadOptions, findings: Findings
) -> Iterator[tuple[str, int, Path]]:
    """Every shard with its split; shards that should be there and are not are told."""
    shards: dict[str, dict[int, tuple[str, Path]]] = {}
    wanted: dict[str, int] = {}
    for file in sorted(path.iterdir()):
        match = _FILE.match(file.name)
        if match is None or not file.is_file():
            continue
        if not file.resolve().is_relative_to(path.resolve()):
            findings.refuse("outside", "leads out of the dataset folder.", field=file.name)
        number = int(match["shard"] or 0)
        shards.setdefault(match["start"], {})[number] = (match["split"], file)
        wanted[match["start"]] = max(wanted.get(match["start"], 0), int(match["of"] or 1))
    missing = [
        f"{start}-{number:05d}-of-{wanted[start]:05d}"
        for start in shards
        for number in range(min(wanted[start], 1_000_000))
        if number not in shards[start]
    ]
    if missing:
        said = f"{len(missing):,} shards are missing: {', '.join(missing[:5])}"
        if not options.skip_bad_files and options.trust != "data":
            findings.refuse(
                "missing_file",
                f"{said}. Finish the download, or go on without them: --skip-bad-files.",
                field=missing[0],
                count=len(missing),
            )
        findings.repair("missing_file", f"{said}; left out.", field=missing[0], count=len(missing))
    for start in shards:
        for number in sorted(shards[start]):
            split, file = shards[start][number]
            yield split, number, file


def declared_counts(path: Path) -> dict[tuple[str, int], int]:
    """Records of each shard, as `dataset_info.json` has them; empty without that file."""
    if not (path / "dataset_info.json").is_file():
        return {}
    splits = read_json(path / "dataset_info.json").get("splits")
    return {
        (str(split.get("name")), shard): int(count)
        for split in (splits if isinstance(splits, list) else [])
        if isinstance(split, dict) and isinstance(split.get("shardLengths"), list)
        for shard, count in enumerate(split["shardLengths"])
        if str(count).isdigit()
    }


def compare_counts(
    file: str, told: int | None, found: int, options: ReadOptions, findings: Findings
) -> None:
    """Refuse a shard that does not hold the promised records, or go by it where data is trusted."""
    if told is None or told == found:
        return
    said = f"dataset_info.json says {told:,} records in {file}, there are {found:,}"
    if options.trust != "data" and not options.skip_bad_files:
        findings.refuse(
            "meta_conflict",
            f"{said}. --trust data goes by the files.",
            field="shardLengths",
            index=min(told, found),
        )
    findings.repair("meta_conflict", f"{said}; went by the file.", field="shardLengths")
