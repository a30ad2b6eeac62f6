"""What every test shares: a cache of its own, and a Ctrl-C that means something."""

import signal

import pytest

# A shell makes its background jobs deaf to Ctrl-C, and they hand that on to whatever tests start.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)


@pytest.fixture(autouse=True)
def own_cache(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PUBC_CACHE", str(tmp_path_factory.mktemp("cache")))
