"""The hostile corpus: datasets made to run code or to read what is not theirs."""

import json
import os
import pickle
import zipfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import h5py
import numpy as np

from pubc.storage import seal
from tests.formats.zarr_sets import diffusion_arrays, write_folder, write_lmdb, zarr_keys
from tests.reliability import samples
from tests.reliability.malformed import hdf5
from tests.reliability.samples import LENGTHS, ROWS, flat


@dataclass(frozen=True)
class Place:
    """Where a hostile dataset is made, and what it is after."""

    folder: Path
    """The dataset goes here."""
    outside: Path
    """Files that are none of its business."""
    canary: Path
    """A file that its code would make."""

    @property
    def command(self) -> str:
        return f"touch {self.canary}"


@dataclass(frozen=True)
class Trap:
    """One hostile dataset."""

    name: str
    make: Callable[[Place], Path]
    refused: bool = True
    """Whether the dataset is refused; else it is read, and the trap does nothing."""


class Evil:
    """Runs a command when it is unpickled."""

    def __init__(self, command: str) -> None:
        self.command = command

    def __reduce__(self):
        return os.system, (self.command,)


def payload(place: Place) -> bytes:
    return pickle.dumps(Evil(place.command))


def npz_with(**arrays: Callable[[Place], np.ndarray]) -> Callable[[Place], Path]:
    def make(place: Place) -> Path:
        more = {name: value(place) for name, value in arrays.items()}
        return samples.npz(place.folder, flat() | more)

    return make


def npz_entry(name: str, content: Callable[[Place], bytes]) -> Callable[[Place], Path]:
    """A valid archive with one more entry."""

    def make(place: Place) -> Path:
        path = samples.npz(place.folder)
        with zipfile.ZipFile(path, "a") as archive:
            archive.writestr(zipfile.ZipInfo(name), content(place))
        return path

    return make


def npy(header: str, data: bytes = b"") -> bytes:
    text = header.encode() + b"\n"
    return b"\x93NUMPY\x01\x00" + len(text).to_bytes(2, "little") + text + data


def objects(place: Place) -> np.ndarray:
    return np.array([Evil(place.command)] * ROWS, dtype=object)


def object_header(place: Place) -> bytes:
    header = f"{{'descr': '|O', 'fortran_order': False, 'shape': ({ROWS},)}}"
    return npy(header, payload(place))


def code_header(place: Place) -> bytes:
    code = f"__import__('os').system({place.command!r})"
    return npy(f"{{'descr': {code}, 'fortran_order': False, 'shape': (1,)}}")


def raw_file(name: str, content: Callable[[Place], bytes]) -> Callable[[Place], Path]:
    def make(place: Place) -> Path:
        (place.folder / name).write_bytes(content(place))
        return place.folder / name

    return make


def torch_zip(place: Place) -> Path:
    path = place.folder / "model.npz"
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("archive/data.pkl", payload(place))
        archive.writestr("archive/version", "3")
    return path


def edited(sample: str, edit: Callable[[h5py.File, Place], None], inside: str = "") -> Callable:
    """A valid HDF5 dataset with a trick in it."""

    def make(place: Place) -> Path:
        return hdf5(sample, lambda file: edit(file, place), inside)(place.folder)

    return make


def secret_file(place: Place) -> Path:
    path = place.outside / "secret.h5"
    with h5py.File(path, "w") as file:
        for name, values in flat().items():
            file[name] = values
    return path


def external_link(file: h5py.File, place: Place) -> None:
    del file["actions"]
    file["actions"] = h5py.ExternalLink(str(secret_file(place)), "/actions")


def external_group(file: h5py.File, place: Place) -> None:
    del file["data/demo_1"]
    file["data/demo_1"] = h5py.ExternalLink(str(secret_file(place)), "/")


def external_episode(file: h5py.File, place: Place) -> None:
    del file["episode_1"]
    file["episode_1"] = h5py.ExternalLink(str(secret_file(place)), "/")


def external_storage(file: h5py.File, place: Place) -> None:
    secret = place.outside / "secret.raw"
    secret.write_bytes(bytes(ROWS * 8))
    del file["actions"]
    file.create_dataset(
        "actions", shape=(ROWS, 2), dtype="f4", external=[(str(secret), 0, ROWS * 8)]
    )


def virtual(file: h5py.File, place: Place) -> None:
    source = h5py.VirtualSource(str(secret_file(place)), "actions", shape=(ROWS, 2))
    layout = h5py.VirtualLayout(shape=(ROWS, 2), dtype="f4")
    layout[...] = source
    del file["actions"]
    file.create_virtual_dataset("actions", layout)


def soft_link(file: h5py.File, place: Place) -> None:
    del file["actions"]
    file["actions"] = h5py.SoftLink(f"{secret_file(place)}/actions")


def plugin(file: h5py.File, place: Place) -> None:
    del file["rewards"]
    plan = h5py.h5p.create(h5py.h5p.DATASET_CREATE)
    plan.set_chunk((ROWS,))
    plan.set_filter(32013, h5py.h5z.FLAG_OPTIONAL, (1,))
    space = h5py.h5s.create_simple((ROWS,))
    h5py.h5d.create(file.id, b"rewards", h5py.h5t.NATIVE_FLOAT, space, dcpl=plan)


def opaque(file: h5py.File, place: Place) -> None:
    del file["actions"]
    data = np.void(payload(place))
    file.create_dataset("actions", data=np.array([data] * ROWS))


def compound(file: h5py.File, place: Place) -> None:
    del file["actions"]
    file["actions"] = np.zeros(ROWS, dtype=[("code", "S64"), ("x", "f4")])


def references(file: h5py.File, place: Place) -> None:
    del file["actions"]
    made = file.create_dataset("actions", shape=(ROWS,), dtype=h5py.ref_dtype)
    made[0] = file["rewards"].ref


def attribute(group: str, name: str, text: Callable[[Place], str]) -> Callable:
    def edit(file: h5py.File, place: Place) -> None:
        file[group].attrs[name] = text(place)

    return edit


def entry_point(place: Place) -> str:
    return json.dumps(
        {
            "id": "Evil-v0",
            "entry_point": "os:system",
            "kwargs": {"command": place.command},
            "additional_wrappers": [{"name": "X", "entry_point": "os:system", "kwargs": {}}],
        }
    )


def eval_text(place: Place) -> str:
    return f"__import__('os').system('{place.command}')"


def user_block(place: Place) -> Path:
    path = place.folder / "set.hdf5"
    with h5py.File(path, "w", userblock_size=512) as file:
        for name, values in flat().items():
            file[name] = values
    data = bytearray(path.read_bytes())
    script = f"#!/bin/sh\n{place.command}\n".encode()
    data[: len(script)] = script
    path.write_bytes(data)
    return path


def folder_json(sample: str, inside: str, **changes: Callable[[Place], object]) -> Callable:
    """A valid folder with entries of one JSON file changed."""

    def make(place: Place) -> Path:
        path = samples.SAMPLES[sample](place.folder)
        (path / "manifest.json").unlink(missing_ok=True)
        file = next(path.rglob(inside))
        document = json.loads(file.read_text())
        document.update({name: value(place) for name, value in changes.items()})
        file.write_text(json.dumps(document))
        return path

    return make


def linked(sample: str, inside: str) -> Callable[[Place], Path]:
    """A valid folder, one file of which is a link to a place outside."""

    def make(place: Place) -> Path:
        path = samples.SAMPLES[sample](place.folder)
        file = next(f for f in sorted(path.rglob("*")) if f.match(inside))
        away = place.outside / file.name
        file.rename(away)
        file.symlink_to(away)
        return path

    return make


def linked_folder(sample: str, inside: str) -> Callable[[Place], Path]:
    def make(place: Place) -> Path:
        path = samples.SAMPLES[sample](place.folder)
        folder = next(f for f in sorted(path.rglob("*")) if f.is_dir() and f.match(inside))
        away = place.outside / folder.name
        folder.rename(away)
        folder.symlink_to(away)
        return path

    return make


def extension_type(place: Place) -> Path:
    import pyarrow as pa
    import pyarrow.parquet as pq

    path = samples.lerobot_foreign(place.folder)
    file = next(path.rglob("data/**/*.parquet"))
    table = pq.read_table(file)
    fields = [
        field.with_metadata(
            {
                "ARROW:extension:name": "arrow.py_extension_type",
                "ARROW:extension:metadata": payload(place).decode("latin-1"),
            }
        )
        if field.name == "action"
        else field
        for field in table.schema
    ]
    pq.write_table(table.cast(pa.schema(fields)), file)
    return path


def zarr_array(sample: str, array: str, **changes: object) -> Callable[[Place], Path]:
    """A zarr dataset whose description of one array was changed."""

    def make(place: Place) -> Path:
        arrays = diffusion_arrays(LENGTHS)
        keys = zarr_keys(arrays)
        document = json.loads(keys[f"{array}/.zarray"])
        document.update(changes)
        keys[f"{array}/.zarray"] = json.dumps(document).encode()
        place_ = place.folder / "replay.zarr"
        place_.mkdir()
        return write_folder(place_, keys)

    return make


def zarr_v3_codec(place: Place) -> Path:
    import zarr

    path = place.folder / "replay.zarr"
    group = zarr.open_group(str(path), mode="w", zarr_format=3)
    for name, values in diffusion_arrays(LENGTHS).items():
        group.create_array(name, data=values)
    file = path / "data" / "action" / "zarr.json"
    document = json.loads(file.read_text())
    document["codecs"] = [{"name": "numcodecs.pickle", "configuration": {}}]
    file.write_text(json.dumps(document))
    return path


def zip_traversal(place: Place) -> Path:
    path = samples.diffusion_zip(place.folder)
    with zipfile.ZipFile(path, "a") as archive:
        archive.writestr("../../evil/.zarray", "{}")
        archive.writestr(f"{place.canary}/.zarray", "{}")
    return path


def lmdb_codec(place: Place) -> Path:
    from tests.formats.zarr_sets import trifinger_arrays

    keys = zarr_keys(trifinger_arrays(LENGTHS))
    document = json.loads(keys["actions/.zarray"])
    document["filters"] = [{"id": "pickle", "protocol": 5}]
    keys["actions/.zarray"] = json.dumps(document).encode()
    path = place.folder / "push.zarr"
    path.mkdir()
    return write_lmdb(path, keys)


def store_with(extras: Callable[[Place], dict[str, str]], **files: str) -> Callable[[Place], Path]:
    """A sealed store whose manifest names other files; the seal is right, the names are not."""

    def make(place: Place) -> Path:
        path = samples.SAMPLES["store"](place.folder)
        np.save(place.outside / "secret.npy", np.zeros(ROWS))
        about = json.loads((path / "manifest.json").read_text())
        (path / "manifest.json").unlink()
        named = extras(place)
        for name in named.values():
            target = path / f"{name}.npy"
            if not target.exists() and "/" not in name:
                np.save(target, np.zeros(ROWS))
        keep = {k: v for k, v in about.items() if k not in ("kind", "version", "files", "seal")}
        seal(path, kind="store", about=keep | {"extras": named})
        document = json.loads((path / "manifest.json").read_text())
        size = (place.outside / "secret.npy").stat().st_size
        for name in named.values():
            document["files"].setdefault(f"{name}.npy", {"size": size, "sha256": "0" * 64})
        from pubc.storage import manifest

        manifest.write_sealed(
            path / "manifest.json", {k: v for k, v in document.items() if k != "seal"}
        )
        return path

    return make


def store_pickle(place: Place) -> Path:
    path = samples.SAMPLES["store"](place.folder)
    with (path / "rewards.npy").open("wb") as file:
        np.save(file, objects(place), allow_pickle=True)
    about = json.loads((path / "manifest.json").read_text())
    keep = {k: v for k, v in about.items() if k not in ("kind", "version", "files", "seal")}
    seal(path, kind="store", about=keep)
    return path


def secrets_path(place: Place) -> str:
    return str(place.outside / "secret")


TRAPS: list[Trap] = [
    Trap("npz: pickled observations", npz_with(observations=objects)),
    Trap("npz: pickled extra array", npz_with(infos=objects)),
    Trap("npz: pickled ids", npz_with(ids=objects)),
    Trap("npz: object header over a pickle", npz_entry("infos.npy", object_header)),
    Trap("npz: code in the header of an array", npz_entry("infos.npy", code_header)),
    Trap("npz: entry ../evil.npy", npz_entry("../evil.npy", lambda p: npy("{}"))),
    Trap("npz: entry with an absolute name", npz_entry("/tmp/evil.npy", lambda p: npy("{}"))),
    Trap("npz: entry with a backslash", npz_entry("..\\evil.npy", lambda p: npy("{}"))),
    Trap("npz: a Python module beside the arrays", npz_entry(
        "sitecustomize.py", lambda p: eval_text(p).encode()), refused=False),
    Trap("npz: a pickle beside the arrays", npz_entry("data.pkl", payload), refused=False),
    Trap("npz: code in the metadata", npz_with(
        metadata=lambda p: np.array(entry_point(p))), refused=False),
    Trap("npz: really a torch checkpoint", torch_zip),
    Trap("npy: a pickled dictionary", raw_file("data.npy", object_header)),
    Trap("pickle with an innocent name", raw_file("data.npz", payload)),
    Trap("pickle with an HDF5 name", raw_file("data.hdf5", payload)),
    Trap("d4rl: external link", edited("d4rl", external_link)),
    Trap("d4rl: external storage", edited("d4rl", external_storage)),
    Trap("d4rl: virtual dataset", edited("d4rl", virtual)),
    Trap("d4rl: soft link out", edited("d4rl", soft_link)),
    Trap("d4rl: filter from a plug-in", edited("d4rl", plugin)),
    Trap("d4rl: opaque elements", edited("d4rl", opaque)),
    Trap("d4rl: compound elements", edited("d4rl", compound)),
    Trap("d4rl: references", edited("d4rl", references)),
    Trap("d4rl: environment with an entry point", edited("d4rl", attribute(
        "/", "env_spec", entry_point)), refused=False),
    Trap("d4rl: a script before the file", user_block),
    Trap("robomimic: code in env_args", edited("robomimic", attribute(
        "data", "env_args", entry_point)), refused=False),
    Trap("robomimic: eval in env_args", edited("robomimic", attribute(
        "data", "env_args", eval_text)), refused=False),
    Trap("robomimic: model file that includes another", edited("robomimic", attribute(
        "data/demo_0", "model_file", lambda p:
        f'<mujoco><include file="{p.outside}/secret"/></mujoco>')), refused=False),
    Trap("robomimic: external group", edited("robomimic", external_group)),
    Trap("minari: env_spec with an entry point", folder_json(
        "minari", "metadata.json", env_spec=entry_point), refused=False),
    Trap("minari: code as a space", folder_json(
        "minari", "metadata.json", observation_space=eval_text), refused=False),
    Trap("minari: external episode", edited("minari", external_episode, "*.hdf5")),
    Trap("minari: data file is a link out", linked("minari", "main_data.hdf5")),
    Trap("minari: metadata is a link out", linked("minari", "metadata.json")),
    Trap("minari: table is a link out", linked("minari-parquet", "1/0.parquet")),
    Trap("lerobot: attribute in the path template", folder_json(
        "lerobot", "info.json", data_path=lambda p: "{chunk_index.__class__.__init__}")),
    Trap("lerobot: path template that leads out", folder_json(
        "lerobot", "info.json", data_path=lambda p: f"../../{p.outside.name}/secret.parquet")),
    Trap("lerobot: absolute path template", folder_json(
        "lerobot", "info.json", data_path=lambda p: secrets_path(p))),
    Trap("lerobot: endless number in the template", folder_json(
        "lerobot", "info.json", data_path=lambda p: "data/{chunk_index:0999999999d}.parquet")),
    Trap("lerobot: data file is a link out", linked("lerobot", "data/*/*.parquet")),
    Trap("lerobot: metadata is a link out", linked("lerobot", "info.json")),
    Trap("lerobot: data folder is a link out", linked_folder("lerobot", "data")),
    Trap("lerobot: Arrow type that holds a pickle", extension_type),
    Trap("lerobot 2.1: episode list is a link out", linked("lerobot-v2.1", "episodes.jsonl")),
    Trap("trifinger: codec that holds a pickle", lmdb_codec),
    Trap("diffusion: filter that holds a pickle", zarr_array(
        "diffusion", "data/action", filters=[{"id": "pickle", "protocol": 5}])),
    Trap("diffusion: filter json2", zarr_array(
        "diffusion", "data/action", filters=[{"id": "json2"}])),
    Trap("diffusion: filter vlen-utf8", zarr_array(
        "diffusion", "data/action", filters=[{"id": "vlen-utf8"}])),
    Trap("diffusion: unknown compressor", zarr_array(
        "diffusion", "data/action", compressor={"id": "evil", "command": "x"})),
    Trap("diffusion: object elements", zarr_array("diffusion", "data/action", dtype="|O")),
    Trap("diffusion: codec of zarr 3 that holds a pickle", zarr_v3_codec),
    Trap("diffusion: chunk is a link out", linked("diffusion", "data/state/1.0")),
    Trap("diffusion: description is a link out", linked("diffusion", "data/action/.zarray")),
    Trap("diffusion: folder is a link out", linked_folder("diffusion", "state")),
    Trap("diffusion zip: names that lead out", zip_traversal),
    Trap("store: extra named ../outside/secret", store_with(
        lambda p: {"x": f"../{p.outside.name}/secret"})),
    Trap("store: extra with an absolute name", store_with(
        lambda p: {"x": str(p.outside / "secret")})),
    Trap("store: array is a link out", linked("store", "actions.npy")),
    Trap("store: manifest is a link out", linked("store", "manifest.json")),
    Trap("store: pickled rewards under a right seal", store_pickle),
    Trap("rlds: shard is a link out", linked("rlds", "*00001-of-00002")),
    Trap("rlds: features are a link out", linked("rlds", "features.json")),
    Trap("rlds: class to load in the features", folder_json(
        "rlds", "features.json", pythonClassName=lambda p: "os.system"), refused=False),
    Trap("d3rlpy: pickle as the version", edited("d3rlpy", lambda file, place: [
        file.__delitem__("version"), file.create_dataset("version", data=np.void(payload(place)))
    ])),
]  # fmt: skip
