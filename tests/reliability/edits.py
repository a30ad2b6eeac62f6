"""Changes to the files that pubc writes for itself: JSON, lines of JSON, CSV, arrays, weights.

Structure-aware: a document stays a document with one value replaced, an archive stays an archive
with one array of another shape. Every fourth change is one to plain bytes instead.
"""

import csv
import io
import json
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from safetensors.numpy import load, save

from tests.reliability.mutations import mutate_bytes

ODD: tuple[Any, ...] = (
    None, True, False, 0, 1, -1, 3.5, -7, 1e308, -1e308, 2**31, 2**63, 2**70, 10**400, "", "text",
    "0", "nan", "../../../etc/passwd", "/etc/passwd", "\x00", "\x1b[31m", "\ud800", "=1+1",
    "x" * 200_000, [], {}, [[]], [None], [1, "a"], {"a": 1}, {"": {}}, [1e308] * 3, ["x"] * 5,
)  # fmt: skip
"""What may stand where something else is expected."""
_DEEP = ("[" * 3_000 + "]" * 3_000, '{"a":' * 3_000 + "1" + "}" * 3_000, "[" * 100_000)
_WORDS = ("", "nan", "inf", "-inf", "1e308", "-1", "2", "1.5", "abc", "9" * 40, "x" * 200_000,
          "\x00", "'", '"', "=1", "kept", "0x10", "1_0", "\u0661")  # fmt: skip
_SHAPES = ((), (0,), (1,), (3,), (0, 0), (2, 0), (1, 1), (5, 7), (2, 2, 2))
_DTYPES = ("<f8", "<f4", "<f2", "<i8", "<i2", "|u1", "|b1", "<c8", "<U4", "|S3", ">f8", "<M8[s]")

Rng = np.random.Generator


def pick(rng: Rng, things: Any) -> Any:
    return things[int(rng.integers(len(things)))]


def edit(path: Path, rng: Rng) -> str:
    """Change one file, and say how."""
    kinds: dict[str, Callable[[Path, Rng], str]] = {
        ".json": _json, ".jsonl": _lines, ".csv": _csv, ".npz": _npz, ".npy": _npy,
        ".safetensors": _safetensors,
    }  # fmt: skip
    stub = path.stat().st_size < 16  # of a run that only looks like one
    if rng.random() < 0.25 or path.suffix not in kinds or stub:
        name, data = mutate_bytes(path.read_bytes(), rng)
        path.write_bytes(data)
        return f"bytes: {name}"
    return kinds[path.suffix](path, rng)


def _json(path: Path, rng: Rng) -> str:
    if rng.random() < 0.03:
        path.write_text(pick(rng, _DEEP))
        return "deep"
    told, text = _changed(json.loads(path.read_bytes()), rng)
    path.write_text(text)
    return told


def _lines(path: Path, rng: Rng) -> str:
    lines = path.read_bytes().splitlines()
    if not lines or rng.random() < 0.1:
        how = pick(rng, ("empty", "repeat", "blank"))
        path.write_bytes({"empty": b"", "repeat": b"\n".join(lines * 2), "blank": b"\n\n\n"}[how])
        return how
    at = int(rng.integers(len(lines)))
    told, text = _changed(json.loads(lines[at]), rng)
    lines[at] = pick(rng, _DEEP).encode() if rng.random() < 0.03 else text.encode()
    path.write_bytes(b"\n".join(lines) + b"\n")
    return told


def _changed(document: Any, rng: Rng) -> tuple[str, str]:
    """A document with one value replaced, removed or moved."""
    places = list(_places(document, ()))
    if not places:
        return "replaced", _dump(pick(rng, ODD))
    *outer, last = pick(rng, places)
    holder = document
    for word in outer:
        holder = holder[word]
    if rng.random() < 0.2:
        del holder[last]
        how = "removed"
    elif rng.random() < 0.1:
        holder[last] = [holder[last]]
        how = "wrapped"
    else:
        holder[last] = pick(rng, ODD)
        how = f"set to {str(holder[last])[:20]!r}"
    return f"{'.'.join(map(str, (*outer, last)))} {how}", _dump(document)


def _dump(value: Any) -> str:
    return json.dumps(value)  # lone surrogates become \ud800, which JSON allows


def _places(value: Any, here: tuple) -> Any:
    inside = value.items() if isinstance(value, dict) else enumerate(value)
    for key, entry in inside:
        yield (*here, key)
        if isinstance(entry, dict | list):
            yield from _places(entry, (*here, key))


def _csv(path: Path, rng: Rng) -> str:
    rows = list(csv.reader(io.StringIO(path.read_text(), newline="")))
    at = int(rng.integers(len(rows)))
    kind = pick(rng, ("cell", "cell", "cell", "column", "row", "wide"))
    if kind == "cell":
        column = int(rng.integers(len(rows[at])))
        rows[at][column] = pick(rng, _WORDS)
        kind = f"{rows[0][column]} of {at} set to {rows[at][column][:20]!r}"
    elif kind == "column":
        column = int(rng.integers(len(rows[0])))
        rows = [row[:column] + row[column + 1 :] for row in rows]
    elif kind == "row":
        del rows[at]
    else:
        rows[at].append("1")
    text = io.StringIO(newline="")
    csv.writer(text, lineterminator="\n").writerows(rows)
    path.write_text(text.getvalue())
    return kind


def _other(array: np.ndarray, rng: Rng) -> np.ndarray:
    """Another array in the place of one."""
    kind = pick(rng, ("shape", "dtype", "values", "cut", "odd"))
    if kind == "shape":
        return np.zeros(pick(rng, _SHAPES), array.dtype)
    if kind == "dtype":
        return np.zeros(array.shape, pick(rng, _DTYPES))
    if kind == "cut":
        return array[..., : array.shape[-1] // 2] if array.ndim else array
    if kind == "odd":
        return np.array(pick(rng, ("text", 1, 2.5, True)))
    with np.errstate(all="ignore"):
        return np.full(array.shape, pick(rng, (-1, 10**6, np.nan, np.inf, 1e300))).astype(
            array.dtype if array.dtype.kind in "fiub" else "<f8", casting="unsafe"
        )


def promise(shape: str = "(1000000000000,)", descr: str = "'<f8'") -> bytes:
    """The header of an array that is not there."""
    head = f"{{'descr': {descr}, 'fortran_order': False, 'shape': {shape}, }}".ljust(117) + "\n"
    return b"\x93NUMPY\x01\x00" + len(head).to_bytes(2, "little") + head.encode()


_PROMISES = (
    promise(), promise("(1 << 60,)"), promise("(-5,)"), promise("(3, 2**40)"), promise("()"),
    promise("(2,)", "'|O'"), promise("(2,)", "[('a', '<f8', (1000000,))]"), promise("(True,)"),
    promise("(2,)", "'<f3'"), b"\x93NUMPY\x09\x00", b"",
)  # fmt: skip


def _npz(path: Path, rng: Rng) -> str:
    with np.load(path, allow_pickle=False) as archive:
        arrays = {name: archive[name] for name in archive.files}
    name = pick(rng, sorted(arrays))
    kind = pick(rng, ("other", "other", "other", "gone", "packed", "bomb", "promise", "name"))
    if kind == "other":
        arrays[name] = _other(arrays[name], rng)
    elif kind in ("gone", "promise", "name"):
        del arrays[name]
    with np.errstate(all="ignore"):
        if kind == "bomb":
            arrays[name] = np.zeros(3_000_000)
        (np.savez_compressed if kind in ("packed", "bomb") else np.savez)(path, **arrays)
    with zipfile.ZipFile(path, "a") as archive:
        if kind == "promise":
            archive.writestr(f"{name}.npy", pick(rng, _PROMISES))
        if kind == "name":
            archive.writestr(pick(rng, ("../out.npy", "/abs.npy", "a\x00b.npy", "dir/")), promise())
    return f"{name}: {kind}"


def _npy(path: Path, rng: Rng) -> str:
    if rng.random() < 0.3:
        path.write_bytes(pick(rng, _PROMISES))
        return "promise"
    np.save(path, _other(np.load(path, allow_pickle=False), rng), allow_pickle=False)
    return "other"


def _safetensors(path: Path, rng: Rng) -> str:
    data = path.read_bytes()
    size = int.from_bytes(data[:8], "little")
    header = json.loads(data[8 : 8 + size])
    kind = pick(rng, ("array", "array", "gone", "header", "about", "size"))
    about = header.get("__metadata__")
    if kind in ("array", "gone"):
        arrays = load(data)
        name = pick(rng, sorted(arrays))
        changed = _other(arrays.pop(name), rng)
        if kind == "array" and changed.dtype.kind in "fiub" and changed.dtype.byteorder in "=|<":
            arrays[name] = np.ascontiguousarray(changed).reshape(changed.shape)
        path.write_bytes(save(arrays, metadata=about))
        return f"{name}: {kind}"
    if kind == "size":
        told = int(pick(rng, (0, 2**63, 2**40, size + 1)))
        path.write_bytes(told.to_bytes(8, "little") + data[8:])
        return kind
    if kind == "about" and about:
        header["__metadata__"] = {
            key: _changed(json.loads(text), rng)[1] if text[:1] in "[{" else pick(rng, ("", "{}"))
            for key, text in about.items()
        }
    else:
        _, text = _changed(header, rng)
        header = json.loads(text)
    new = json.dumps(header).encode()
    path.write_bytes(len(new).to_bytes(8, "little") + new + data[8 + size :])
    return kind
