"""A sealed folder tells of any bit that changed in it, its manifest included.

Goal R16 of docs/dev/check-full.md.
"""

import json
import os
import shutil
import subprocess
import sys

import numpy as np
import pytest

from pubc.errors import DataError, UsageError
from pubc.storage import MANIFEST, Fault, atomic_folder, read_manifest, seal, seal_file, verify
from pubc.storage.disk import this_host

TRIALS = 1000


@pytest.fixture
def folder(tmp_path):
    path = tmp_path / "result"
    rng = np.random.Generator(np.random.Philox(1))
    about = {"metadata": {"robot": "arm", "rate": 50.5}, "problems": []}
    with atomic_folder(path, kind="store", about=about) as new:
        (new / "deep").mkdir()
        for name in ("a.npy", "b.npy", "deep/c.bin", "empty"):
            (new / name).write_bytes(rng.bytes(0 if name == "empty" else 700))
    return path


def notices(path) -> bool:
    try:
        return bool(verify(path))
    except (DataError, UsageError):
        return True


def test_an_untouched_folder_is_intact(folder):
    assert verify(folder) == []
    assert read_manifest(folder, kind="store")["metadata"]["robot"] == "arm"


def test_any_flipped_bit_is_found_in_a_thousand_of_a_thousand_trials(folder):
    rng = np.random.Generator(np.random.Philox(2))
    files = [path for path in folder.rglob("*") if path.is_file() and path.stat().st_size]
    sizes = np.array([path.stat().st_size for path in files])
    found = 0
    for _ in range(TRIALS):
        path = files[rng.choice(len(files), p=sizes / sizes.sum())]
        data = bytearray(path.read_bytes())
        data[rng.integers(len(data))] ^= 1 << rng.integers(8)
        clean = path.read_bytes()
        path.write_bytes(data)
        found += notices(folder)
        path.write_bytes(clean)
    assert found == TRIALS
    assert verify(folder) == []


def test_every_single_bit_of_the_manifest_counts(folder):
    path = folder / MANIFEST
    clean = path.read_bytes()
    rng = np.random.Generator(np.random.Philox(3))
    for place in range(len(clean)):
        data = bytearray(clean)
        data[place] ^= 1 << rng.integers(8)
        path.write_bytes(data)
        assert notices(folder), f"byte {place} of the manifest"


def test_deleting_renaming_adding_and_swapping_are_found(folder, tmp_path):
    names = [p.relative_to(folder).as_posix() for p in folder.rglob("*") if p.is_file()]
    for name in names:
        copy = tmp_path / "copy"
        shutil.copytree(folder, copy)
        (copy / name).unlink()
        assert notices(copy), f"{name} deleted"
        shutil.rmtree(copy)
        shutil.copytree(folder, copy)
        (copy / name).rename(copy / "renamed")
        assert notices(copy), f"{name} renamed"
        shutil.rmtree(copy)
    (folder / "extra").write_text("x")
    assert verify(folder) == [Fault("extra", "not in the manifest")]
    (folder / "extra").unlink()
    a, b = folder / "a.npy", folder / "b.npy"
    a.rename(folder / "t")
    b.rename(a)
    (folder / "t").rename(b)
    assert [fault.file for fault in verify(folder)] == ["a.npy", "b.npy"]


def test_half_a_manifest_of_a_killed_process_is_no_part_of_the_folder(folder):
    dead = subprocess.Popen([sys.executable, "-c", ""])
    dead.wait()
    left = folder / f".manifest.json.tmp-{this_host()}-{dead.pid}-0a1b2c3d"
    left.write_text("{")
    (folder / "manifest.json").unlink()
    seal(folder, kind="test")
    assert not left.exists()
    assert verify(folder) == []


def test_a_link_is_not_the_file_it_points_to(folder, tmp_path):
    shutil.copy(folder / "a.npy", tmp_path / "same")
    (folder / "a.npy").unlink()
    (folder / "a.npy").symlink_to(tmp_path / "same")
    assert verify(folder) == [Fault("a.npy", "not a plain file")]
    os.symlink(tmp_path, folder / "elsewhere")
    assert Fault("elsewhere", "not in the manifest") in verify(folder)


def test_a_single_file_is_sealed_beside_itself(tmp_path):
    path = tmp_path / "data.npz"
    path.write_bytes(b"abc")
    with pytest.raises(UsageError, match="nothing to verify it against"):
        verify(path)
    seal_file(path, kind="npz")
    assert verify(path) == []
    path.write_bytes(b"abd")
    assert verify(path) == [Fault("data.npz", "its SHA-256 differs from the manifest's")]
    path.write_bytes(b"abcd")
    assert verify(path) == [Fault("data.npz", "4 bytes, the manifest says 3")]


def test_a_folder_without_a_manifest_cannot_be_verified(tmp_path):
    with pytest.raises(UsageError, match="nothing to verify it against"):
        verify(tmp_path)


def test_a_folder_of_another_kind_is_refused(folder):
    with pytest.raises(DataError, match="of kind 'policy', found 'store'"):
        read_manifest(folder, kind="policy")


def test_a_manifest_edited_by_hand_is_refused(folder):
    path = folder / MANIFEST
    document = json.loads(path.read_text())
    document["metadata"]["robot"] = "leg"
    path.write_text(json.dumps(document, indent=1) + "\n")
    with pytest.raises(DataError, match="seal does not fit") as caught:
        read_manifest(folder)
    assert caught.value.code == "bad_manifest"
