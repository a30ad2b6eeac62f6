"""A file from a stranger is walked before anything is read, whatever reads it."""

import os
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import h5py
import numpy as np
import pytest

from pubc import formats
from pubc.errors import DataError
from pubc.formats import ReadOptions
from pubc.formats.core.findings import Findings
from pubc.formats.hdf5 import hdf5_walk
from pubc.formats.hdf5.hdf5_read import open_checked, root_names

SECRET = b"\x07" * 800


def flat(file: h5py.File, rows: int = 20) -> None:
    """A good D4RL file, to be spoiled."""
    steps = np.arange(rows)
    file["observations"] = np.stack([steps, steps / 3], 1)
    file["actions"] = -steps[:, None] / 7
    file["rewards"] = steps * 1.0
    file["terminals"] = steps % 10 == 9
    file["timeouts"] = np.zeros(rows, dtype=bool)


def replace(file: h5py.File, name: str) -> None:
    if name in file:
        del file[name]


def external_link(file: h5py.File, folder: Path) -> None:
    replace(file, "rewards")
    file["rewards"] = h5py.ExternalLink(str(folder / "other.h5"), "/rewards")


def external_link_in_a_corner(file: h5py.File, folder: Path) -> None:
    file.create_group("infos/deep")["x"] = h5py.ExternalLink("/etc/hostname", "/x")


def external_storage(file: h5py.File, folder: Path) -> None:
    (folder / "secret").write_bytes(SECRET)
    file.create_dataset(
        "infos/x", shape=(20, 5), dtype="f8", external=[(str(folder / "secret"), 0, 800)]
    )


def virtual(file: h5py.File, folder: Path) -> None:
    layout = h5py.VirtualLayout(shape=(20,), dtype="f8")
    layout[:] = h5py.VirtualSource(str(folder / "other.h5"), "rewards", shape=(20,))
    file.create_virtual_dataset("infos/x", layout)


def dangling(file: h5py.File, folder: Path) -> None:
    replace(file, "rewards")
    file["rewards"] = h5py.SoftLink("/nowhere")


def circle(file: h5py.File, folder: Path) -> None:
    group = file.create_group("infos")
    group["again"] = file["/"]


def nested(file: h5py.File, folder: Path) -> None:
    file.create_group("/".join(["a"] * 100))


def unknown_filter(file: h5py.File, folder: Path) -> None:
    plan = h5py.h5p.create(h5py.h5p.DATASET_CREATE)
    plan.set_chunk((20,))
    plan.set_filter(32013, h5py.h5z.FLAG_OPTIONAL, (1,))
    space = h5py.h5s.create_simple((20,))
    h5py.h5d.create(file.id, b"zfp", h5py.h5t.NATIVE_DOUBLE, space, dcpl=plan)


def bomb(file: h5py.File, folder: Path) -> None:
    replace(file, "observations")
    file.create_dataset("observations", shape=(2**30, 8), dtype="f8", chunks=(1024, 8))


def many_small_bombs(file: h5py.File, folder: Path) -> None:
    for number in range(8):
        file.create_dataset(f"infos/{number}", shape=(2**20, 6), dtype="f8", chunks=(1024, 6))


def text(file: h5py.File, folder: Path) -> None:
    replace(file, "actions")
    file.create_dataset("actions", data=["x"] * 20, dtype=h5py.string_dtype())


def ragged(file: h5py.File, folder: Path) -> None:
    replace(file, "actions")
    kind = h5py.vlen_dtype(np.float64)
    dataset = file.create_dataset("actions", shape=(20,), dtype=kind)
    dataset[0] = [1.0, 2.0]


def references(file: h5py.File, folder: Path) -> None:
    replace(file, "actions")
    dataset = file.create_dataset("actions", shape=(20,), dtype=h5py.ref_dtype)
    dataset[0] = file["rewards"].ref


def opaque(file: h5py.File, folder: Path) -> None:
    replace(file, "actions")
    file.create_dataset("actions", data=np.zeros(20, dtype="V8"))


def compound(file: h5py.File, folder: Path) -> None:
    replace(file, "actions")
    file.create_dataset("actions", data=np.zeros(20, dtype=[("x", "f8")]))


def odd_boolean(file: h5py.File, folder: Path) -> None:
    replace(file, "terminals")
    values = np.zeros(20, dtype=np.uint8)
    values[9], values[13] = 1, 2
    dataset = file.create_dataset("terminals", shape=(20,), dtype=bool)
    dataset.id.write(h5py.h5s.ALL, h5py.h5s.ALL, values, mtype=dataset.id.get_type())


def no_space(file: h5py.File, folder: Path) -> None:
    replace(file, "actions")
    file["actions"] = h5py.Empty("f8")


FAULTS: list[tuple[Callable, str, str]] = [
    (external_link, "link", "rewards"),
    (external_link_in_a_corner, "link", "infos/deep/x"),
    (external_storage, "external_storage", "infos/x"),
    (virtual, "external_storage", "infos/x"),
    (dangling, "link", "rewards"),
    (circle, "link", "infos/again"),
    (nested, "link", "/".join(["a"] * 33)),
    (unknown_filter, "unknown_filter", "zfp"),
    (bomb, "bomb", "observations"),
    (many_small_bombs, "bomb", "infos/1"),
    (text, "bad_dtype", "actions"),
    (ragged, "bad_dtype", "actions"),
    (references, "bad_dtype", "actions"),
    (opaque, "bad_dtype", "actions"),
    (compound, "bad_dtype", "actions"),
    (odd_boolean, "not_boolean", "terminals"),
    (no_space, "bad_shape", "actions"),
]


@pytest.mark.parametrize(("spoil", "code", "field"), FAULTS, ids=[f[0].__name__ for f in FAULTS])
def test_a_trick_is_refused_with_its_file_and_field(
    tmp_path: Path, spoil: Callable, code: str, field: str
):
    with h5py.File(tmp_path / "other.h5", "w") as other:
        flat(other)
    path = tmp_path / "set.hdf5"
    with h5py.File(path, "w") as file:
        flat(file)
        spoil(file, tmp_path)
    start = time.perf_counter()
    with pytest.raises(DataError) as caught:
        formats.read(path, ReadOptions(format="d4rl"))
    assert time.perf_counter() - start < 5
    assert (caught.value.code, caught.value.field) == (code, field)
    assert str(path) in str(caught.value)


def test_a_good_file_with_every_builtin_filter_and_a_soft_link_inside_is_read(tmp_path: Path):
    path = tmp_path / "set.hdf5"
    with h5py.File(path, "w") as file:
        flat(file)
        values = np.arange(20.0)
        file.create_dataset("infos/a", data=values, compression="gzip", shuffle=True)
        file.create_dataset("infos/b", data=values, compression="lzf", fletcher32=True)
        file.create_dataset("infos/c", data=values.astype("i4"), scaleoffset=0)
        file["infos/d"] = h5py.SoftLink("/infos/a")
        file["infos/e"] = h5py.SoftLink("../rewards")
    extras = formats.read(path).columns.extras
    assert {name: column.tolist() for name, column in extras.items()} == {
        f"infos/{name}": np.arange(20).tolist() for name in "abcde"
    }


def test_flags_that_are_all_false_may_shrink_without_bound(tmp_path: Path):
    path = tmp_path / "set.hdf5"
    with h5py.File(path, "w") as file:
        flat(file, rows=20)
        file.create_dataset("metadata/big", data=np.zeros(8 << 20, "u1"), compression="gzip")
    assert len(formats.read(path)) == 2


@pytest.mark.parametrize("share", [0.2, 0.6, 0.95])
def test_a_truncated_file_says_how_much_is_missing(tmp_path: Path, share: float):
    path = tmp_path / "set.hdf5"
    with h5py.File(path, "w") as file:
        flat(file)
    whole = path.read_bytes()
    path.write_bytes(whole[: int(len(whole) * share)])
    with pytest.raises(DataError) as caught:
        formats.read(path)
    assert caught.value.code == "truncated"
    has = f"{int(len(whole) * share):,}"
    assert f"expected >= {len(whole):,} bytes, has {has}" in str(caught.value)


def test_a_file_whose_writer_died_is_refused_with_the_tool_that_helps(tmp_path: Path):
    path = tmp_path / "set.hdf5"
    script = (
        "import h5py, os, sys\n"
        "f = h5py.File(sys.argv[1], 'w', libver='latest')\n"
        "f['observations'] = [1.0]; f.swmr_mode = True; f.flush(); os._exit(0)"
    )
    subprocess.run([sys.executable, "-c", script, str(path)], check=True)
    with pytest.raises(DataError, match="h5clear") as caught:
        formats.read(path)
    assert caught.value.code == "not_closed"


def test_more_objects_than_the_limit_are_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    path = tmp_path / "set.hdf5"
    with h5py.File(path, "w") as file:
        flat(file)
        for number in range(100):
            file.create_group(f"infos/{number}")
    monkeypatch.setattr(hdf5_walk, "OBJECT_LIMIT", 99)
    with pytest.raises(DataError, match="more than 99 objects") as caught:
        formats.read(path, ReadOptions(format="d4rl"))
    assert caught.value.code == "bomb"


def test_a_wide_tree_is_refused_by_its_links_alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    path = tmp_path / "set.hdf5"
    with h5py.File(path, "w") as file:
        for number in range(20):
            for inner in range(20):
                file.create_group(f"{number}/{inner}")
    opened = []
    real = hdf5_walk.h5o.open

    def counting(group: object, name: bytes) -> object:
        opened.append(name)
        return real(group, name)

    monkeypatch.setattr(hdf5_walk, "OBJECT_LIMIT", 400)
    monkeypatch.setattr(hdf5_walk.h5o, "open", counting)
    with pytest.raises(DataError, match="more than 400 objects"):
        formats.read(path, ReadOptions(format="d4rl"))
    assert len(opened) <= 20


def test_one_large_text_shared_by_many_elements_is_refused(tmp_path: Path):
    path = tmp_path / "set.hdf5"
    with h5py.File(path, "w") as file:
        dataset = file.create_dataset("words", shape=(1000,), dtype=h5py.string_dtype())
        dataset[...] = ["x" * 100_000] * 1000
    findings = Findings(path)
    with open_checked(path, findings) as file, pytest.raises(DataError) as caught:
        file.words("words")
    assert caught.value.code == "bomb"


def test_millions_of_declared_texts_are_refused_at_once(tmp_path: Path):
    path = tmp_path / "set.hdf5"
    with h5py.File(path, "w") as file:
        file.create_dataset("words", shape=(4_000_000,), dtype=h5py.string_dtype(), chunks=(1000,))
    with open_checked(path, Findings(path)) as file, pytest.raises(DataError) as caught:
        file.words("words")
    assert caught.value.code == "bomb"


def test_an_attribute_that_is_no_plain_value_is_left_out(tmp_path: Path):
    path = tmp_path / "set.hdf5"
    with h5py.File(path, "w") as file:
        file.attrs["word"] = "arm"
        file.attrs["number"] = 3
        file.attrs["list"] = [1.5, 2.5]
        file.attrs["nan"] = np.nan
        file.attrs["link"] = file.ref
        file.attrs["long"] = np.zeros(20_000, "u1")
        file.attrs["empty"] = h5py.Empty("f8")
        kept = {"word": "arm", "number": 3, "list": [1.5, 2.5]}
    with open_checked(path, Findings(path)) as file:
        assert file.attributes() == kept


def test_the_walk_leaves_the_file_as_it_was(tmp_path: Path):
    path = tmp_path / "set.hdf5"
    with h5py.File(path, "w") as file:
        flat(file)
    before = (path.read_bytes(), path.stat().st_mtime_ns)
    path.chmod(0o444)
    formats.read(path)
    assert (path.read_bytes(), path.stat().st_mtime_ns) == before


def test_no_plugin_can_come_from_outside():
    assert os.environ["HDF5_PLUGIN_PATH"] == "/nonexistent"


def test_names_at_the_top_are_listed_without_following_them(tmp_path: Path):
    path = tmp_path / "set.hdf5"
    with h5py.File(path, "w") as file:
        file["x"] = h5py.ExternalLink("/nowhere.h5", "/x")
    assert root_names(path) == ["x"]


def test_random_damage_never_shows_a_foreign_error(tmp_path: Path):
    path = tmp_path / "set.hdf5"
    with h5py.File(path, "w") as file:
        flat(file)
    whole = bytearray(path.read_bytes())
    rng = np.random.Generator(np.random.Philox(3))
    codes = []
    for _ in range(300):
        broken = bytearray(whole)
        for place in rng.integers(0, len(whole), 3):
            broken[place] = rng.integers(256)
        path.write_bytes(broken)
        try:
            formats.read(path, ReadOptions(format="d4rl"))
        except DataError as error:
            codes.append(error.code)
    assert len(codes) > 20
    assert "unreadable" not in codes


def test_an_index_of_a_group_that_runs_in_a_circle_does_not_hold_anybody(tmp_path):
    """libhdf5 follows the siblings of an index for ever when it measures it; so nobody asks."""
    path = tmp_path / "set.hdf5"
    with h5py.File(path, "w") as file:
        flat(file)
    whole = formats.read(path, ReadOptions(cache=False))
    data = bytearray(path.read_bytes())
    place = data.index(b"TREE\0")
    right = slice(place + 16, place + 24)
    assert data[right] == b"\xff" * 8, "no sibling yet"
    data[right] = place.to_bytes(8, "little")
    path.write_bytes(data)
    read = formats.read(path, ReadOptions(cache=False, isolate="on"))
    assert read.lengths.tolist() == whole.lengths.tolist()
    assert read.columns.observations.tobytes() == whole.columns.observations.tobytes()
