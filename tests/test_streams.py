import numpy as np

from pubc.streams import Key


def test_a_name_has_one_generator():
    key = Key(7).at("round", 2).at("member", 1)
    assert key == Key(7, ("round", 2, "member", 1))
    assert np.array_equal(key.rng().random(5), key.rng().random(5))


def test_other_names_and_seeds_have_others():
    names = [(), ("a",), ("a", 1), ("a", "1"), ("a1",), (1, "a")]
    drawn = [Key(seed, name).rng().random() for seed in (0, 1) for name in names]
    assert len(set(drawn)) == len(drawn)
