"""Minari datasets: a folder with `metadata.json` and one group or folder per episode.

The HDF5 layout is read and written with h5py alone, the Arrow and Parquet layouts are read
with pyarrow. What Minari has no place for lies in attributes of the episodes (`pubc_id`,
`pubc_no_final`) and under the key `pubc` of `metadata.json`, which Minari passes over.
"""

from __future__ import annotations

import re
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from pubc.formats.core.assemble import Raw, assemble
from pubc.formats.core.findings import Findings
from pubc.formats.core.named_parts import PARTS, record_parts
from pubc.formats.core.options import ReadOptions
from pubc.formats.core.selection import Selection
from pubc.formats.episodes.episode_source import Episode, Layout, Source
from pubc.formats.episodes.gather_episodes import gather
from pubc.formats.hdf5.hdf5_disk import new_hdf5
from pubc.formats.hdf5.hdf5_read import Checked, open_checked
from pubc.formats.minari import minari_spaces as spaces
from pubc.formats.minari.minari_ids import kept_id
from pubc.formats.minari.minari_tables import open_tables
from pubc.formats.minari.minari_write import MAIN, write
from pubc.storage import atomic_folder, read_json, write_json
from pubc.trajectory import TrajectorySet

__all__ = ["EXTRA", "SLOW", "read", "subset", "write"]

EXTRA = None
SLOW = True
LAYOUT = Layout(
    observations="observations",
    terminals="terminations",
    timeouts="truncations",
    is_extra=lambda path: path.startswith("infos/"),
)
_EPISODE = re.compile(r"episode_(0|[1-9]\d{0,8})")


@dataclass(slots=True)
class _Dataset:
    """An open dataset: its description and its episodes."""

    folder: Path
    metadata: dict[str, Any]
    source: Source
    episodes: list[Episode]
    attributes: dict[int, dict[str, Any]]
    """Attributes of each episode that matter here, by its number."""

    @property
    def own(self) -> dict[str, Any]:
        """What pubc wrote into the description."""
        own = self.metadata.get("pubc")
        if not isinstance(own, dict):
            return {}
        kinds = {"metadata": dict, "names": dict, "absent": list}
        return own if all(isinstance(own.get(k), kind) for k, kind in kinds.items()) else {}


def read(path: Path, options: ReadOptions, findings: Findings) -> TrajectorySet:
    """Read a dataset folder, its `data` folder, or its main file."""
    with _open(path, options, findings) as dataset:
        images = spaces.image_keys(spaces.parse(dataset.metadata.get("observation_space")))
        raw, parts = gather(dataset.source, dataset.episodes, LAYOUT, images, options, findings)
    _check_totals(dataset, raw, options, findings)
    if options.action_key is None:
        raw.action_bounds = spaces.bounds(
            spaces.parse(dataset.metadata.get("action_space")), raw.actions
        )
    raw.ids = _ids(dataset)
    raw.sources = _sources(dataset, options, findings)
    facts: dict[str, Any] = {k: v for k, v in dataset.metadata.items() if k != "pubc"}
    if parts:
        facts[PARTS] = record_parts(parts)
    own = dataset.own
    if own and not options.observation_keys:
        facts = own["metadata"]
    raw.metadata = facts
    if "rewards" in own.get("absent", ()) and options.reward_key is None:
        raw.rewards = None
    names = own.get("names", {})
    raw.extras = {str(names.get(path, path)): column for path, column in raw.extras.items()}
    _leave_out_padding(dataset, raw)
    return assemble(raw, options, findings)


def subset(selection: Selection, target: Path, *, overwrite: bool) -> None:
    """Copy whole episodes, numbered anew because Minari counts them; `pubc_id` keeps the old."""
    chosen = selection.read(read)
    source = selection.source
    with (
        _open(source, selection.options, Findings(source)) as dataset,
        atomic_folder(target, kind="minari", overwrite=overwrite) as folder,
    ):
        numbers = dict(zip(_ids(dataset), (e.number for e in dataset.episodes), strict=True))
        data = folder / "data"
        data.mkdir()
        order = [(numbers[str(word)], str(word)) for word in chosen.ids]
        if isinstance(dataset.source, Checked):
            dataset.source.check_heaps()
            with new_hdf5(data / MAIN) as file:
                for new, (old, word) in enumerate(order):
                    name = f"episode_{new}"
                    dataset.source.file.copy(f"episode_{old}", file, name)
                    file[name].attrs["id"] = new
                    file[name].attrs["pubc_id"] = word
                    file.check()
        else:
            for new, (old, word) in enumerate(order):
                shutil.copytree(dataset.folder / str(old), data / str(new))
                facts = data / str(new) / "metadata.json"
                about = read_json(facts) if facts.exists() else {}
                write_json(facts, about | {"id": new, "pubc_id": word}, overwrite=True)
        size = sum(file.stat().st_size for file in data.rglob("*") if file.is_file())
        named = str(dataset.metadata.get("dataset_id") or source.resolve().name)
        document = dataset.metadata | {
            "dataset_id": kept_id(named),
            "total_episodes": len(chosen),
            "total_steps": chosen.steps,
            "dataset_size": round(size / 1e6, 1),
        }
        write_json(data / "metadata.json", document)


@contextmanager
def _open(path: Path, options: ReadOptions, findings: Findings) -> Iterator[_Dataset]:
    folder = _locate(path)
    about = folder / "metadata.json"
    metadata = read_json(about) if about.exists() else {}
    wanted = ("pubc_id", "pubc_no_final", options.source_key or "source")
    if (folder / MAIN).exists():
        with open_checked(folder / MAIN, findings) as file:
            episodes = _hdf5_episodes(file)
            attributes = _attributes(file, episodes, wanted)
            _refuse_none(episodes, findings)
            yield _Dataset(folder, metadata, file, episodes, attributes)
        return
    tables, episodes, attributes = open_tables(folder, wanted, options, findings)
    _refuse_none(episodes, findings)
    yield _Dataset(folder, metadata, tables, episodes, attributes)


def _locate(path: Path) -> Path:
    """The folder that holds the data."""
    if path.is_file():
        return path.parent
    inner = path / "data"
    return inner if (inner / "metadata.json").exists() or (inner / MAIN).exists() else path


def _hdf5_episodes(file: Checked) -> list[Episode]:
    found: dict[str, dict[str, Any]] = {}
    for group in file.groups:
        if _EPISODE.fullmatch(group):
            found[group] = {}
    for name, node in file.datasets.items():
        group, _, rest = name.partition("/")
        if group in found:
            found[group][rest] = node
    episodes = [Episode(int(name.removeprefix("episode_")), found[name]) for name in found]
    return sorted(episodes, key=lambda episode: episode.number)


def _attributes(
    file: Checked, episodes: list[Episode], wanted: tuple[str, ...]
) -> dict[int, dict[str, Any]]:
    return {
        episode.number: {
            name: value
            for name in wanted
            if (value := file.attribute(f"episode_{episode.number}", name)) is not None
        }
        for episode in episodes
    }


def _refuse_none(episodes: list[Episode], findings: Findings) -> None:
    if not episodes:
        findings.refuse("empty", "the dataset holds no episode.", field="episode_0")


def _check_totals(dataset: _Dataset, raw: Raw, options: ReadOptions, findings: Findings) -> None:
    """Metadata that counts other episodes or steps than the data hold is a partial copy."""
    for name, found in (
        ("total_episodes", len(dataset.episodes)),
        ("total_steps", len(raw.actions)),
    ):
        said = dataset.metadata.get(name, found)
        if said == found:
            continue
        message = f"metadata.json says {said}, the data hold {found:,}"
        if options.trust != "data":
            findings.refuse(
                "meta_conflict",
                message + ": a partial download? --trust data goes by the data.",
                field=name,
            )
        findings.repair("meta_conflict", message + "; the data were taken.", field=name)


def _ids(dataset: _Dataset) -> list[str]:
    plain = [str(episode.number) for episode in dataset.episodes]
    ids = [
        str(dataset.attributes.get(episode.number, {}).get("pubc_id", name))
        for episode, name in zip(dataset.episodes, plain, strict=True)
    ]
    return ids if len(set(ids)) == len(ids) else plain


def _sources(dataset: _Dataset, options: ReadOptions, findings: Findings) -> list[str] | None:
    key = options.source_key or "source"
    values = [dataset.attributes.get(e.number, {}).get(key) for e in dataset.episodes]
    if all(value is None for value in values):
        if options.source_key:
            findings.refuse("missing_key", "no episode has such an attribute.", field=key)
        return None
    missing = sum(value is None for value in values)
    if missing:
        findings.warn(
            "unknown_source",
            f"{missing:,} episodes do not say which policy acted; called 'unknown'.",
            field=key,
            count=missing,
        )
    return ["unknown" if value is None else str(value) for value in values]


def _leave_out_padding(dataset: _Dataset, raw: Raw) -> None:
    padded = [
        bool(dataset.attributes.get(episode.number, {}).get("pubc_no_final", False))
        for episode in dataset.episodes
    ]
    if any(padded) and raw.has_final is not None:
        raw.has_final = raw.has_final & ~np.array(padded)
    if raw.has_final is None or not raw.has_final.any():
        raw.final_observations = raw.has_final = None
    if "final_observations" in dataset.own.get("absent", ()):
        raw.final_observations = raw.has_final = None
