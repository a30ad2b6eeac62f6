"""Recorded updates are the updates that were recorded."""

import contextlib
import gc

import numpy as np
import pytest
import torch

from pubc.policies import OFFLINE, trainer
from pubc.policies.cuda_graphs import Updates, recording
from pubc.policies.train_options import TrainOptions
from tests.policies.sets import acts, tiny

cuda = pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a CUDA device")


def test_without_a_cuda_device_an_update_is_called():
    weight = torch.zeros(1)

    def work(batch, way):
        weight.add_(batch["x"].sum())
        return {way: weight.clone()}

    updates = Updates(work, lambda: [weight], torch.device("cpu"))
    assert updates({"x": torch.ones(2)}, "a") == {"a": torch.tensor([2.0])}
    assert updates({"x": torch.ones(3)}, "b") == {"b": torch.tensor([5.0])}


def test_no_garbage_is_collected_while_a_graph_is_recorded(monkeypatch):
    monkeypatch.setattr(torch.cuda, "graph", lambda _: contextlib.nullcontext())
    assert gc.isenabled()
    with contextlib.suppress(ZeroDivisionError), recording(None):
        assert not gc.isenabled()
        raise ZeroDivisionError
    assert gc.isenabled()


@cuda
def test_a_recording_leaves_no_trace_and_draws_anew_every_time():
    device = torch.device("cuda")
    weight = torch.zeros(1, device=device)
    made: list[torch.Tensor] = []

    def work(batch, way):
        if not made:
            made.append(torch.zeros(1, device=device))
        weight.add_(batch["x"].sum())
        made[0].add_(1)
        return {"drawn": torch.rand(1, device=device), "count": made[0].clone()}

    updates = Updates(work, lambda: [weight, *made], device)
    drawn = []
    for number in range(1, 4):
        losses = updates({"x": torch.ones(2, device=device)}, "a")
        drawn.append(float(losses["drawn"]))
        assert float(losses["count"]) == number
        assert float(weight) == 2 * number
    assert len(set(drawn)) == 3


@cuda
@pytest.mark.parametrize("name", [*OFFLINE, "dwbc"])
def test_a_learner_on_cuda_that_continues_learns_the_same_bits(name: str):
    pytest.importorskip("d3rlpy")
    options = TrainOptions(updates=1200, batch_size=16)
    data, found = tiny(), []
    positives = data[:2] if name == "dwbc" else None
    for continued in (False, True):
        run = trainer(name, data, options, device="cuda", positives=positives)
        run.advance(0)
        if continued:
            fresh = trainer(name, data, options, device="cuda", positives=positives)
            fresh.restore(*run.state())
            run = fresh
        losses = run.advance(1)
        assert all(np.isfinite(value) for value in losses.values())
        found.append((losses, acts(run.policy())))
    assert found[0][0] == found[1][0]
    assert np.array_equal(found[0][1], found[1][1])
