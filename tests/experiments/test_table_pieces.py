"""A long table in short calls: what travels between machines comes back as it was."""

import importlib.util
from pathlib import Path

import pytest

SCRIPT = Path(__file__).parents[2] / "benchmarks" / "table_pieces.py"


@pytest.fixture(scope="module")
def pieces():
    spec = importlib.util.spec_from_file_location("table_pieces", SCRIPT)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture
def table(tmp_path: Path) -> dict[str, bytes]:
    """Files by their names; weights do not shrink."""
    import numpy as np

    rng = np.random.default_rng(0)
    files = {
        "records/policy-scores.jsonl": b"{}",
        "cache/datasets/d/data.npz": rng.bytes(9000),
        "cache/policies/p/manifest.json": b"{}",
        "cache/policies/p/policy/policy.safetensors": rng.bytes(3000),
        "cache/stacks/s.json": b'{"policies": ["p", "q"]}',
        "cache/stacks/s.training/work.json": b"{}",
        "cache/stacks/s.training/checkpoint-000001.safetensors": rng.bytes(5000),
        "cache/stacks/s.training/checkpoint-000002.safetensors": rng.bytes(5000),
    }
    for name, content in files.items():
        path = tmp_path / "table" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)
    return files


def back(pieces, tmp_path: Path, piece: float, total: float) -> dict[str, bytes]:
    pieces.pack(tmp_path / "table", tmp_path / "pieces", piece / pieces.MIB, total / pieces.MIB)
    pieces.unpack(tmp_path / "pieces", tmp_path / "other")
    found = (path for path in (tmp_path / "other").rglob("*") if path.is_file())
    return {str(path.relative_to(tmp_path / "other")): path.read_bytes() for path in found}


def test_everything_but_datasets_and_old_checkpoints_travels(pieces, table, tmp_path, capsys):
    found = back(pieces, tmp_path, 4096, 1e6)
    assert all(table[name] == content for name, content in found.items())
    assert set(table) - set(found) == {
        "cache/datasets/d/data.npz",
        "cache/stacks/s.training/checkpoint-000001.safetensors",
    }
    sizes = [path.stat().st_size for path in sorted((tmp_path / "pieces").iterdir())]
    assert len(sizes) > 1
    assert set(sizes[:-1]) == {4096}
    pieces.tell(tmp_path / "table")
    assert "stack s of 2: checkpoint-000001 checkpoint-000002" in capsys.readouterr().out


def test_checkpoints_that_do_not_fit_are_named_and_left_out(pieces, table, tmp_path, capsys):
    found = back(pieces, tmp_path, 1e6, 6000)
    assert "cache/policies/p/policy/policy.safetensors" in found
    assert not any("checkpoint" in name for name in found)
    assert "checkpoint-000002" in capsys.readouterr().out
