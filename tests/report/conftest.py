"""One browser for all tests of a process, and the runs that they look at."""

import pytest

from pubc.report import write_report
from tests.report.browser import CHROMIUM, browser
from tests.report.build import make_run


@pytest.fixture(scope="session")
def chromium():
    if CHROMIUM is None:
        pytest.skip("chromium is not installed (Debian: apt-get install chromium)")
    with browser() as one:
        yield one


@pytest.fixture(scope="session")
def run(tmp_path_factory):
    """A finished run with everything in it, and its report."""
    path = make_run(tmp_path_factory.mktemp("runs") / "ant", steps=True)
    write_report([path])
    return path
