"""CPU and GPU decide differently about borderline trajectories alone (goal R9).

What sets a GPU apart is the order in which it adds: the last bits of every product differ. CI has
no GPU, so there what an H200 said is read from its record; `make check-full` also has every sum of
a network's products run backwards, and where there is a CUDA device, `pytest -m gpu` asks it.
"""

import json

import numpy as np
import pytest
import torch

from tests.reliability.other_device import RECORD, found, scored_pile, scores

CUDA = pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a CUDA device")


def backwards(product):
    """A product whose inner sums run from the last term to the first."""

    def other(added, left, right, **more):
        return product(added, left.flip(-1), right.flip(-2), **more)

    return other


@pytest.fixture(
    params=[
        "recorded",
        pytest.param("backwards", marks=pytest.mark.slow),
        pytest.param("cuda", marks=[pytest.mark.gpu, CUDA]),
    ]
)
def elsewhere(request, monkeypatch):
    """Asks another device: for `scores`, or for what is `found` in a pile by its name."""

    def ask(name: str):
        if request.param == "recorded":
            told = json.loads(RECORD.read_text(encoding="utf-8"))[name]
            if isinstance(told, list):
                return np.array(told)
            return {key: np.array(values) for key, values in told.items()}
        if request.param == "backwards":
            for product in ("addmm", "baddbmm"):
                monkeypatch.setattr(torch, product, backwards(getattr(torch, product)))
        device = "cuda" if request.param == "cuda" else "cpu"
        return scores(scored_pile(), device) if name == "scores" else found(name, device)

    return ask


def test_the_same_weights_give_the_same_scores_up_to_rounding(elsewhere):
    here = scores(scored_pile(), "cpu")
    there = elsewhere("scores")
    assert np.abs(here - there).max() <= 1e-5
    assert np.any(here != there), "the other device must round otherwise"


@pytest.mark.parametrize("name", [pytest.param("clear", marks=pytest.mark.slow), "blurred"])
def test_the_same_seed_decides_differently_about_borderline_trajectories_alone(name, elsewhere):
    here, there = found(name, "cpu"), elsewhere(name)
    apart = here["mask"] != there["mask"]
    assert not np.any(apart & ~(here["borderline"] | there["borderline"]))
    either, both = (here["mask"] | there["mask"]).sum(), (here["mask"] & there["mask"]).sum()
    assert both >= 0.99 * either
    assert np.any(here["confidence"] != there["confidence"]), "the device must round otherwise"
