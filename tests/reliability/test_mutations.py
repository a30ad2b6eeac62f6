"""No change to the bytes of a dataset escapes, hangs, or alters its structure in silence.

Goal R1 of docs/dev/check-full.md.
"""

import contextlib
import sys

import numpy as np
import pytest

from pubc.errors import PubcError
from pubc.storage import verify
from tests.reliability.mutations import Mutator, Reader, Tally, put
from tests.reliability.samples import SAMPLES


def run(sample: str, folder, count: int, seed: int) -> Tally:
    reader = Reader()
    try:
        return Mutator(sample, reader, folder).run(count, seed)
    finally:
        reader.close()


def check(tally: Tally, count: int) -> None:
    sys.stdout.write(f"{tally}\n")  # `pytest -rP` shows it
    assert tally.failures == []
    assert tally.silent == []
    ended = tally.outcomes
    assert sum(ended[name] for name in ("set", "error", "escaped", "died", "hung")) == count
    assert ended["error"] > count / 4, "the mutations must hurt"
    assert sum(tally.unforeseen.values()) <= count / 50, tally.unforeseen


@pytest.mark.timeout(600)
@pytest.mark.parametrize("sample", SAMPLES)
def test_a_thousand_mutations_are_survived(sample: str, tmp_path):
    check(run(sample, tmp_path, 1000, seed=1), 1000)


@pytest.mark.slow
@pytest.mark.timeout(3600)
@pytest.mark.parametrize("sample", SAMPLES)
def test_ten_thousand_mutations_are_survived(sample: str, tmp_path):
    check(run(sample, tmp_path, 10_000, seed=2), 10_000)


def test_a_store_that_verifies_has_not_changed_at_all(tmp_path):
    class Nobody:
        def read(self, path):
            return {"set": {"problems": []}}

    mutator = Mutator("store", Nobody(), tmp_path)
    unseen = 0
    for number in range(1000):
        rng = np.random.Generator(np.random.Philox(key=[3, number]))
        file, _ = mutator.spoil(rng)
        changed = file.read_bytes() != mutator.clean[file]
        with contextlib.suppress(PubcError):
            unseen += changed and verify(mutator.path) == []
        put(file, mutator.clean[file])
    assert unseen == 0
