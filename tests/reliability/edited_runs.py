"""258 run folders as a stranger could send them, each with the name of what was done to it.

The kinds are those that once ended in exit code 1 or in gigabytes: odd types, cut files, arrays of
wrong shapes, deep JSON, bombs, and names that lead out of the folder.
"""

import io
import json
import os
import zipfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
from safetensors.numpy import load, save

from pubc.storage import MANIFEST, seal
from tests.reliability.edits import promise

Edit = Callable[[Path], object]

DOCUMENT, LINES = "run.json", "rounds.jsonl"
ROUND, NETWORK = "rounds/round-001.npz", "classifiers/round-001-member-0.safetensors"
KEYS = (
    "data", "data.path", "data.format", "data.trajectories", "data.steps", "data.observation_size",
    "reading", "reading.format", "reading.isolate", "seed", "seed.ids", "seed.positions", "recipe",
    "recipe.ensemble", "recipe.bins", "recipe.loop", "settings", "random_seed", "quality",
    "threshold", "kept", "kept_path", "round", "advice", "times",
)  # fmt: skip
VALUES = (None, [], {"a": 1}, "text", -7, 1e308)
FILES = (
    DOCUMENT, LINES, ROUND, NETWORK, MANIFEST, "scores.csv", "keep.json", "kept.npz", "steps.npz",
    "borderline_steps.npz",
)  # fmt: skip
DEEP = {
    "lists": "[" * 3_000 + "]" * 3_000,
    "objects": '{"a":' * 3_000 + "1" + "}" * 3_000,
    "open lists": "[" * 100_000,
}


def changed(key: str, value: Any) -> Edit:
    """A key of run.json set to something else."""

    def edit(run: Path) -> None:
        document = json.loads((run / DOCUMENT).read_text())
        *outer, last = key.split(".")
        place = document
        for word in outer:
            place = place[word]
        place[last] = value
        (run / DOCUMENT).write_text(json.dumps(document))

    return edit


def changed_line(change: Callable[[dict[str, Any]], object]) -> Edit:
    def edit(run: Path) -> None:
        document = json.loads((run / LINES).read_text().splitlines()[0])
        change(document)
        (run / LINES).write_text(json.dumps(document) + "\n")

    return edit


def cut(name: str, share: float) -> Edit:
    def edit(run: Path) -> None:
        data = (run / name).read_bytes()
        (run / name).write_bytes(data[: min(int(len(data) * share), max(0, len(data) - 1))])

    return edit


def text(name: str, content: str) -> Edit:
    return lambda run: (run / name).write_text(content)


def array(name: str, key: str, shape: tuple[int, ...]) -> Edit:
    """An array of an archive with another shape."""

    def edit(run: Path) -> None:
        with np.load(run / name) as archive:
            arrays = {found: archive[found] for found in archive.files}
        arrays[key] = np.zeros(shape, arrays[key].dtype)
        np.savez(run / name, **arrays)

    return edit


def packed(name: str) -> Edit:
    """A hundred megabytes of zeros in a hundred kilobytes, under the name of the first array."""

    def edit(run: Path) -> None:
        with np.load(run / name) as archive:
            first = archive.files[0]
        data = io.BytesIO()
        np.save(data, np.zeros(100 << 17))
        member(f"{first}.npy", data.getvalue(), anew=True)(run / name)

    return edit


def member(name: str, data: bytes, *, anew: bool = False) -> Edit:
    def edit(path: Path) -> None:
        with zipfile.ZipFile(path, "w" if anew else "a", zipfile.ZIP_DEFLATED) as archive:
            archive.writestr(name, data)

    return edit


def added(name: str) -> Edit:
    """One more array in the archive of a round."""
    return lambda run: member(name, promise("(1,)") + bytes(8))(run / ROUND)


def promised(name: str, header: bytes) -> Edit:
    """An archive whose first array is a header alone."""

    def edit(run: Path) -> None:
        with np.load(run / name) as archive:
            first = archive.files[0]
        member(f"{first}.npy", header, anew=True)(run / name)

    return edit


def tensor(at: int, change: Callable[[np.ndarray], np.ndarray | None]) -> Edit:
    """A tensor of a network, the first or the last one, changed or left out."""

    def edit(run: Path) -> None:
        data = (run / NETWORK).read_bytes()
        size = int.from_bytes(data[:8], "little")
        about = json.loads(data[8 : 8 + size])["__metadata__"]
        arrays = load(data)
        name = sorted(arrays)[at]
        made = change(arrays.pop(name))
        if made is not None:
            arrays[name] = np.ascontiguousarray(made)
        (run / NETWORK).write_bytes(save(arrays, metadata=about))

    return edit


def headed(header: bytes, told: int | None = None) -> Edit:
    """A network with another header."""
    size = len(header) if told is None else told
    return lambda run: (run / NETWORK).write_bytes(size.to_bytes(8, "little") + header)


def listed(name: str) -> Edit:
    """A name in the manifest that is not in the folder."""

    def edit(run: Path) -> None:
        document = json.loads((run / MANIFEST).read_text())
        document["files"][name] = {"size": 1, "sha256": "0" * 64}
        (run / MANIFEST).write_text(json.dumps(document, indent=1))

    return edit


def link(name: str, to: str) -> Edit:
    def edit(run: Path) -> None:
        (run / name).unlink()
        os.symlink(to, run / name)

    return edit


def _types() -> Iterator[tuple[str, Edit]]:
    for key in KEYS:
        for value in VALUES:
            yield f"type: {key} is {json.dumps(value)}", changed(key, value)


def _truncations() -> Iterator[tuple[str, Edit]]:
    for name in FILES:
        for told, share in (("empty", 0.0), ("half", 0.5), ("all but a byte", 1.0)):
            yield f"truncation: {told} of {name}", cut(name, share)


def _shapes() -> Iterator[tuple[str, Edit]]:
    sizes: tuple[tuple[int, ...], ...] = ((), (0,), (3,), (5, 7))
    for shape in sizes:
        for key in ("selected", "votes", "confidence", "seed_confidence"):
            yield f"shape: {key} of {shape}", array(ROUND, key, shape)
        for key in ("observations", "actions"):
            yield f"shape: kept {key} of {shape}", array("kept.npz", key, shape)
    for told, at in (("first", 0), ("last", -1)):
        yield f"shape: {told} tensor gone", tensor(at, lambda found: None)
        yield f"shape: {told} tensor flat", tensor(at, lambda found: found.reshape(-1)[:1])
        yield f"shape: {told} tensor twice", tensor(at, lambda found: np.stack([found, found]))
        yield f"shape: {told} tensor whole numbers", tensor(at, lambda found: found.astype(int))


def _deep() -> Iterator[tuple[str, Edit]]:
    for name in (DOCUMENT, LINES, MANIFEST, "keep.json"):
        for told, content in DEEP.items():
            yield f"deep: {told} in {name}", text(name, content)


def _bombs() -> Iterator[tuple[str, Edit]]:
    for name in (ROUND, "kept.npz", "steps.npz", "borderline_steps.npz"):
        yield f"bomb: zeros in {name}", packed(name)
        yield f"bomb: eight terabytes in {name}", promised(name, promise())
        yield f"bomb: objects in {name}", promised(name, promise("(2,)", "'|O'"))
    entry = '"t{}":{{"dtype":"F32","shape":[0],"data_offsets":[0,0]}}'
    many = "{" + ",".join(entry.format(number) for number in range(100_000)) + "}"
    yield "bomb: a hundred thousand tensors", headed(many.encode())
    yield "bomb: a header of a terabyte", headed(b"{}", 2**40)
    yield "bomb: a header beyond numbers", headed(b"{}", 2**63)
    yield "bomb: a field of 200 kB in scores.csv", text("scores.csv", "episode\n" + "x" * 200_000)
    yield "bomb: a million columns in scores.csv", text("scores.csv", "," * 1_000_000 + "\n")
    yield "bomb: a number of 401 digits", changed("kept_steps", 10**400)
    yield "bomb: a name of 20 MB", changed("data.path", "x" * 20_000_000)


def _traversals() -> Iterator[tuple[str, Edit]]:
    for name in ("../../../etc/passwd", "/etc/passwd", "..", "a\x00b", "kept.npz/../../mixed.npz"):
        yield f"traversal: kept_path {name!r}", changed("kept_path", name)
    for name in ("../mixed.npz", "/etc/passwd"):
        yield f"traversal: {name} in the manifest", listed(name)
        yield (
            f"traversal: {name} for a round's arrays",
            changed_line(lambda line, name=name: line.update(arrays=name)),
        )
        yield (
            f"traversal: {name} for a network",
            changed_line(lambda line, name=name: line["training"][0].update(network=name)),
        )
    for name in ("../out.npy", "/abs.npy"):
        yield f"traversal: {name} in an archive", added(name)
    yield "traversal: kept.npz is a link", link("kept.npz", "/etc/passwd")
    yield "traversal: a network is a link", link(NETWORK, "/etc/passwd")


EDITS: dict[str, Edit] = {
    name: edit
    for kind in (_types, _truncations, _shapes, _deep, _bombs, _traversals)
    for name, edit in kind()
}
"""By name; the word before the colon is the kind."""


def apply(name: str, run: Path) -> None:
    """Edit a run, and seal it anew as its owner could; a manifest that was edited stays."""
    before = (run / MANIFEST).read_bytes()
    EDITS[name](run)
    if (run / MANIFEST).read_bytes() == before and not name.endswith("is a link"):
        seal(run, kind="filter")
