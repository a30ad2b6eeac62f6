"""Arrays become sets by the same rules as files."""

import numpy as np
import pytest

import pubc
from pubc.errors import DataError, UsageError

RNG = np.random.default_rng(3)
SEEN, ACTED = RNG.normal(size=(10, 3)), RNG.normal(size=(10, 2))


def test_flat_arrays_with_lengths():
    found = pubc.from_arrays(SEEN, ACTED, [4, 6], rewards=np.arange(10.0), ids=["a", "b"])
    assert found.lengths.tolist() == [4, 6]
    assert found.ids.tolist() == ["a", "b"]
    assert found.total_rewards().tolist() == [6.0, 39.0]
    assert np.array_equal(found[1].steps.observations, SEEN[4:])


def test_end_marks_instead_of_lengths():
    ends = np.zeros(10, dtype=bool)
    ends[[3, 9]] = True
    assert pubc.from_arrays(SEEN, ACTED, timeouts=ends).lengths.tolist() == [4, 6]


def test_blocks_of_equal_length_and_padded_ones():
    seen, acted = SEEN[:9].reshape(3, 3, 3), ACTED[:9].reshape(3, 3, 2)
    whole = pubc.from_arrays(seen, acted)
    assert whole.lengths.tolist() == [3, 3, 3]
    assert np.array_equal(whole.flat().observations, SEEN[:9])
    padded = pubc.from_arrays(seen, acted, [3, 1, 2])
    assert np.array_equal(padded.flat().actions, ACTED[[0, 1, 2, 3, 6, 7]])


def test_episodes_with_and_without_a_last_observation():
    found = pubc.from_episodes(
        [(SEEN[:4], ACTED[:3]), {"observations": SEEN[4:], "actions": ACTED[4:]}]
    )
    assert found.lengths.tolist() == [3, 6]
    assert np.array_equal(found[0].final_observation, SEEN[3])
    assert found[1].final_observation is None


def test_a_set_from_memory_is_the_set_from_its_file(tmp_path):
    made = pubc.from_episodes([(SEEN[:4], ACTED[:4]), (SEEN[4:], ACTED[4:])])
    pubc.save(tmp_path / "set.npz", made)
    read = pubc.load(tmp_path / "set.npz")
    assert np.array_equal(read.flat().observations, made.flat().observations)
    assert read.lengths.tolist() == made.lengths.tolist()


@pytest.mark.parametrize(
    ("call", "error", "said"),
    [
        (lambda: pubc.from_arrays(SEEN, ACTED), UsageError, "Where do trajectories end"),
        (lambda: pubc.from_arrays(SEEN, ACTED, [4, 5]), DataError, "9|10"),
        (lambda: pubc.from_arrays(SEEN, ACTED[:9], [4, 6]), DataError, "actions has 9"),
        (lambda: pubc.from_arrays(SEEN, ACTED, [4.0, 6.0]), UsageError, "one integer"),
        (lambda: pubc.from_arrays(SEEN * np.nan, ACTED, [4, 6]), DataError, "observations"),
        (lambda: pubc.from_episodes([]), UsageError, "There is no trajectory"),
        (lambda: pubc.from_episodes([SEEN]), UsageError, "Trajectory 0: expected"),
        (lambda: pubc.from_episodes([(SEEN, ACTED[:5])]), UsageError, r"\(10, 3\) and \(5, 2\)"),
        (
            lambda: pubc.from_episodes([(SEEN, ACTED), (SEEN[:, :2], ACTED)]),
            UsageError,
            "differ in the shape of their observations",
        ),
        (
            lambda: pubc.from_episodes([(SEEN, ACTED), (SEEN, ACTED, np.ones(10))]),
            UsageError,
            "Some trajectories have rewards",
        ),
    ],
)
def test_wrong_arrays_are_refused_in_words(call, error, said):
    with pytest.raises(error, match=said):
        call()


def test_saving_replaces_only_what_pubc_wrote_and_nobody_changed(tmp_path):
    from pubc.storage import verify
    from tests.policies.sets import tiny

    mine, own = tmp_path / "thesis.npz", tmp_path / "own.npz"
    mine.write_bytes(b"years of work")
    with pytest.raises(UsageError, match="did not write"):
        pubc.save(mine, tiny(2, 5), overwrite=True)
    assert mine.read_bytes() == b"years of work"
    pubc.save(own, tiny(2, 5))
    pubc.save(own, tiny(3, 5), overwrite=True)
    assert verify(own) == []
    assert len(pubc.load(own)) == 3
    own.write_bytes(own.read_bytes() + b"x")
    with pytest.raises(UsageError, match="is not the file that"):
        pubc.save(own, tiny(2, 5), overwrite=True)
