"""Networks are pure functions of data and generator, and survive the disk."""

import numpy as np
import pytest
import torch

from pubc.errors import DataError, InterruptedRun, UnknownNameError
from pubc.nets import (
    Adam,
    Classifier,
    FoldedClassifier,
    GroupedAdam,
    Normaliser,
    Schedule,
    fit_classifier,
    initialise,
    load_tensors,
    pick_device,
    save_tensors,
)
from pubc.pu.paper.losses import bce


def small(rng_seed: int = 0) -> Classifier:
    network = Classifier(3, 2, encoder=(8, 8), head=(8,))
    initialise(network, np.random.default_rng(rng_seed))
    return network


def separable(count: int = 256):
    rng = np.random.default_rng(5)
    states = rng.normal(size=(count, 3)).astype(np.float32)
    positive = rng.random(count) < 0.5
    actions = np.where(positive[:, None], states[:, :2], -states[:, :2]).astype(np.float32)
    return torch.from_numpy(states), torch.from_numpy(actions), torch.from_numpy(positive)


def test_the_published_sizes():
    network = Classifier(27, 8)
    sizes = [tuple(p.shape) for n, p in network.named_parameters() if p.ndim == 2]
    assert sizes == [
        (512, 27), (512, 512), (256, 512), (128, 256), (16, 128),
        (128, 24), (128, 128), (1, 128),
    ]  # fmt: skip


def test_torchs_global_generator_is_left_alone():
    before = torch.random.get_rng_state()
    network = small()
    fit_classifier(
        network, separable(), loss=bce, schedule=Schedule(1, 64), rng=np.random.default_rng(0)
    )
    assert torch.equal(before, torch.random.get_rng_state())


def test_training_learns_and_repeats():
    runs = []
    for _ in range(2):
        network = small()
        history = fit_classifier(
            network,
            separable(),
            loss=bce,
            schedule=Schedule(20, 64, 1e-2),
            rng=np.random.default_rng(1),
        )
        runs.append((history, network(*separable()[:2]).detach()))
    assert runs[0][0][-1] < 0.5 * runs[0][0][0]
    assert runs[0][0] == runs[1][0]
    assert torch.equal(runs[0][1], runs[1][1])


def test_folding_batch_norms_changes_nothing_but_rounding():
    network = small()
    pairs = separable()
    fit_classifier(network, pairs, loss=bce, schedule=Schedule(3, 64), rng=np.random.default_rng(0))
    folded = FoldedClassifier(network)(*pairs[:2])
    assert torch.allclose(folded, network(*pairs[:2]), atol=1e-5)


def test_training_stops_when_told():
    with pytest.raises(InterruptedRun):
        fit_classifier(
            small(),
            separable(),
            loss=bce,
            schedule=Schedule(),
            rng=np.random.default_rng(0),
            stop=lambda: True,
        )


def test_still_dimensions_are_not_scaled_and_outliers_are_cut():
    rows = np.array([[1.0, 5.0, 0.0], [3.0, 5.0, 0.0]])
    normaliser = Normaliser.from_moments(rows.mean(axis=0), rows.std(axis=0))
    assert normaliser.scale.tolist() == [1.0, 1.0, 1.0]
    assert np.abs(normaliser(np.array([[1e6, 5.0, -1e6]]))).tolist() == [[10.0, 0.0, 10.0]]


def test_a_dimension_that_hardly_moves_is_not_blown_up():
    normaliser = Normaliser.from_moments(np.array([100.0]), np.array([1e-5]))
    assert abs(float(normaliser(np.array([[100.0001]]))[0, 0])) < 0.01


def test_weights_survive_the_disk(tmp_path):
    network = small()
    path = tmp_path / "net.safetensors"
    about = {"kind": "test", "loss": [0.5]}
    save_tensors(path, network.state_dict(), about)
    first = path.read_bytes()
    tensors, told = load_tensors(path)
    assert told == about
    assert all(torch.equal(tensors[name], value) for name, value in network.state_dict().items())
    save_tensors(path, network.state_dict(), about)
    assert path.read_bytes() == first


@pytest.mark.parametrize("content", [b"", b"not weights", b"\x08\x00\x00\x00\x00\x00\x00\x00{}"])
def test_damaged_weights_are_refused(tmp_path, content: bytes):
    path = tmp_path / "net.safetensors"
    path.write_bytes(content)
    with pytest.raises(DataError, match="weights"):
        load_tensors(path)


def test_an_unknown_device_is_refused():
    with pytest.raises(UnknownNameError, match="tpu"):
        pick_device("tpu")
    assert pick_device("cpu") == torch.device("cpu")


@pytest.mark.parametrize("decay", [0.0, 0.1])
def test_adam_steps_like_torchs_own(decay: float):
    rng = np.random.default_rng(0)
    start = [torch.from_numpy(rng.normal(size=shape)) for shape in ((3, 2), (4,))]
    ours = [tensor.clone().requires_grad_() for tensor in start]
    theirs = [tensor.clone().requires_grad_() for tensor in start]
    mine = Adam(ours, learning_rate=0.05, betas=(0.9, 0.99), weight_decay=decay)
    reference = torch.optim.AdamW(theirs, lr=0.05, betas=(0.9, 0.99), weight_decay=decay)
    for _ in range(10):
        for parameters in (ours, theirs):
            loss = sum((parameter**2).sin().sum() for parameter in parameters)
            loss.backward()
        mine.step()
        reference.step()
        reference.zero_grad()
    for one, other in zip(ours, theirs, strict=True):
        assert torch.allclose(one, other, atol=1e-12)


def test_training_does_not_load_the_compiler():
    import subprocess
    import sys

    code = (
        "import sys, numpy as np, torch, pubc.nets as nets\n"
        "from pubc.pu.paper.losses import bce\n"
        "net = nets.Classifier(2, 1, encoder=(4,), head=(4,))\n"
        "nets.initialise(net, np.random.default_rng(0))\n"
        "x = torch.zeros(8, 2); y = torch.zeros(8, 1); m = torch.zeros(8, dtype=torch.bool)\n"
        "nets.fit_classifier(net, (x, y, m), loss=bce, schedule=nets.Schedule(1, 8),"
        " rng=np.random.default_rng(0))\n"
        "print('torch._dynamo' in sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "False"


def test_a_flipped_bit_in_a_stored_network_is_found(tmp_path):
    path = tmp_path / "network.safetensors"
    save_tensors(path, {"w": torch.arange(8.0), "b": torch.zeros(0)}, {"number": 1})
    tensors, about = load_tensors(path)
    assert about == {"number": 1}
    assert torch.equal(tensors["w"], torch.arange(8.0))
    data = bytearray(path.read_bytes())
    data[-3] ^= 1
    path.write_bytes(bytes(data))
    with pytest.raises(DataError, match="not the file that pubc wrote"):
        load_tensors(path)


def test_grouped_adam_moves_as_torchs_own_does_to_the_bit():
    def train(steps):
        rng = np.random.default_rng(0)
        tensors = [torch.from_numpy(rng.normal(size=n)).float().requires_grad_() for n in (37, 5)]
        aim = torch.from_numpy(rng.normal(size=(37, 5))).float()
        for step in steps(tensors):
            (torch.outer(*tensors) - aim).square().sum().backward()
            step()
        return [tensor.detach() for tensor in tensors]

    def ours(tensors):
        optimiser = GroupedAdam([(tensors[:1], 1e-2), (tensors[1:], 3e-2)])
        for number in range(25):
            optimiser.learning_rates = [1e-2, 3e-2 / (1 + number)]
            yield optimiser.step

    def torchs(tensors):
        groups = [{"params": [tensors[0]], "lr": 1e-2}, {"params": [tensors[1]]}]
        optimiser = torch.optim.Adam(groups)
        for number in range(25):
            optimiser.param_groups[1]["lr"] = 3e-2 / (1 + number)
            yield optimiser.step
            optimiser.zero_grad()

    for one, other in zip(train(ours), train(torchs), strict=True):
        assert torch.equal(one, other)
