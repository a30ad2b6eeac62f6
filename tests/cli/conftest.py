"""A folder of one's own for commands that write beside themselves."""

from pathlib import Path

import pytest


@pytest.fixture
def in_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path
