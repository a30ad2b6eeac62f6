"""Threads are limited inside a context and put back after it."""

import subprocess
import sys

import pytest
import torch

from pubc.threads import threads


@pytest.fixture
def three():
    before = torch.get_num_threads()
    torch.set_num_threads(3)
    yield
    torch.set_num_threads(before)


@pytest.mark.parametrize(("limit", "inside"), [(0, 1), (1, 1), (2, 2), (9, 3)])
def test_a_limit_holds_inside_and_ends_with_the_context(three, limit, inside):
    with threads(limit):
        assert torch.get_num_threads() == inside
    assert torch.get_num_threads() == 3


def test_torch_loads_only_where_threads_are_limited():
    program = "import pubc.threads, sys; sys.exit('torch' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", program], check=False).returncode == 0


def test_a_limit_ends_with_an_error(three):
    with pytest.raises(KeyError), threads(1):
        raise KeyError
    assert torch.get_num_threads() == 3
