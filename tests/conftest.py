"""What every test shares: a cache of its own, so that no run sees another's copies."""

import pytest


@pytest.fixture(autouse=True)
def own_cache(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PUBC_CACHE", str(tmp_path_factory.mktemp("cache")))
