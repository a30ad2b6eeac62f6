"""How fast is the filter? Three ways to the same answer, in one process on the same data.

    pubc collect ant:E+E+W+N ant.npz --trajectories-per-source 100 --seed-steps 0
    python benchmarks/filtering.py ant.npz                the paper's loop, `paper` and `auto`
    python benchmarks/filtering.py ant.npz --rounds 0 --recipes auto --seeds 5        only `auto`
    python benchmarks/filtering.py --scoring              floating-point rate of scoring
    python benchmarks/filtering.py --growth               time and memory against steps
    python benchmarks/filtering.py ant.npz --cuda         CPU against CUDA

(a) is the paper's loop as its text says, written straightforwardly: a torch Dataset, a
DataLoader, Adam, batch normalisation, numpy's polynomial fit. Where it finds no valley it
stops. --rounds limits how many rounds (a) may take; the paper took 3. CPU time is printed
beside wall time because it also holds on a busy machine, with OMP_NUM_THREADS=1.
"""

import argparse
import itertools
import resource
import sys
import time
from pathlib import Path

import numpy as np
import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset

import pubc
from pubc.metrics import confusion
from pubc.nets import BLOCK, Classifier, FoldedClassifier, Normaliser, initialise
from pubc.pu.judge import Bench
from pubc.pu.paper.scoring import Scorer, score_trajectories
from pubc.trajectory import Columns, TrajectorySet


class Pairs(Dataset):
    def __init__(self, states, actions, labels):
        self.states, self.actions, self.labels = states, actions, labels

    def __len__(self):
        return len(self.labels)

    def __getitem__(self, index):
        return self.states[index], self.actions[index], self.labels[index]


class Network(nn.Module):
    """The published classifier, layer by layer."""

    def __init__(self, state, action):
        super().__init__()

        def stack(sizes):
            layers = []
            for i, o in itertools.pairwise(sizes):
                layers += [nn.Linear(i, o), nn.BatchNorm1d(o), nn.ReLU()]
            return nn.Sequential(*layers)

        self.encoder = stack([state, 512, 512, 256, 128, 2 * action])
        self.head = nn.Sequential(stack([3 * action, 128, 128]), nn.Linear(128, 1), nn.Sigmoid())

    def forward(self, state, action):
        return self.head(torch.cat([self.encoder(state), action], dim=1)).squeeze(1)


def straightforward_negatives(positive, mixed, count, rng):
    states, actions = [], []
    pools = {"+": positive, "mix": mixed}
    kinds = [
        ("+", "mix"),
        ("+", "~"),
        ("mix", "+"),
        ("mix", "~"),
        ("~", "+"),
        ("~", "mix"),
        ("~", "~"),
    ]
    for number, (s, a) in enumerate(kinds):
        n = count // 7 + (number < count % 7)
        for kind, which, made in ((s, 0, states), (a, 1, actions)):
            if kind == "~":
                rows = mixed[which]
                made.append(rng.uniform(rows.min(0), rows.max(0), (n, rows.shape[1])))
            else:
                rows = pools[kind][which]
                made.append(rows[rng.integers(0, len(rows), n)])
    return np.concatenate(states).astype(np.float32), np.concatenate(actions).astype(np.float32)


def straightforward(mixed, seeds, *, classifiers=3, epochs=20, max_rounds=3):
    """The paper's loop; yields the selection after each round."""
    rng = np.random.default_rng(0)
    flat = mixed.flat()
    mean, std = flat.observations.mean(0), flat.observations.std(0) + 1e-6
    states = ((flat.observations - mean) / std).astype(np.float32)
    actions = np.array(flat.actions, np.float32)
    offsets = mixed.offsets
    selected = np.zeros(len(mixed), bool)
    selected[seeds] = True
    for _ in range(max_rounds):
        rows = np.concatenate(
            [np.arange(offsets[i], offsets[i + 1]) for i in np.flatnonzero(selected)]
        )
        confidence = []
        for _ in range(classifiers):
            chosen = rng.choice(rows, len(rows))
            positive = states[chosen], actions[chosen]
            negative = straightforward_negatives(positive, (states, actions), len(rows), rng)
            data = Pairs(
                torch.from_numpy(np.concatenate([positive[0], negative[0]])),
                torch.from_numpy(np.concatenate([positive[1], negative[1]])),
                torch.cat([torch.ones(len(rows)), torch.zeros(len(rows))]),
            )
            network = Network(states.shape[1], actions.shape[1])
            optimiser = torch.optim.Adam(network.parameters(), lr=1e-3)
            for _ in range(epochs):
                for s, a, label in DataLoader(data, batch_size=1024, shuffle=True):
                    loss = nn.functional.binary_cross_entropy(network(s, a), label)
                    optimiser.zero_grad()
                    loss.backward()
                    optimiser.step()
            network.eval()
            with torch.no_grad():
                confidence.append(
                    [
                        float(
                            network(
                                torch.from_numpy(states[i:j]), torch.from_numpy(actions[i:j])
                            ).mean()
                        )
                        for i, j in itertools.pairwise(offsets)
                    ]
                )
        confidence = np.array(confidence)
        counts, edges = np.histogram(confidence.mean(0), bins=100)
        centres = (edges[:-1] + edges[1:]) / 2
        curve = np.polynomial.Polynomial.fit(centres, counts, 10)(centres)
        dips = [i for i in range(1, 99) if curve[i - 1] > curve[i] <= curve[i + 1]]
        if not dips:
            return
        new = (confidence >= centres[dips[-1]]).sum(0) > classifiers / 2
        changed = np.mean(new != selected)
        selected = new
        yield selected
        if changed <= 0.02 or not selected.any():
            return


def time_straightforward(mixed, seeds, truth, rounds):
    """Wall and CPU seconds of the paper's loop."""
    began, used = time.perf_counter(), time.process_time()
    for number, selected in enumerate(straightforward(mixed, seeds, max_rounds=rounds), 1):
        right = confusion(selected, truth).accuracy
        print(
            f"(a) round {number}: {time.perf_counter() - began:.1f} s, accuracy {right:.2%}",
            flush=True,
        )
    slow, busy = time.perf_counter() - began, time.process_time() - used
    print(
        f"(a) straightforward  {slow:8.1f} s   cpu {busy:8.1f} s   accuracy {right:.2%}", flush=True
    )
    return slow, busy


def compare(path, rounds, recipes, count):
    mixed = pubc.load(path)
    truth = mixed.sources == "E+"
    seeds = np.flatnonzero(truth)[:count]
    print(f"{mixed}, {len(seeds)} seeds, torch threads {torch.get_num_threads()}")
    slow = busy = float("nan")
    if rounds:
        slow, busy = time_straightforward(mixed, seeds, truth, rounds)
    for name in recipes:
        began, used = time.perf_counter(), time.process_time()
        found = pubc.find_expert(mixed, seeds, recipe=name, device="cpu")
        took, work = time.perf_counter() - began, time.process_time() - used
        right = confusion(found.mask, truth).accuracy
        print(
            f"    {name:<15}  {took:8.1f} s   cpu {work:8.1f} s   accuracy {right:.2%}   "
            f"{slow / took:6.1f} x   cpu {busy / work:6.1f} x   {len(found.rounds)} rounds, "
            f"{found.status}",
            flush=True,
        )


def scoring():
    """Share of a plain product's rate that scoring reaches on one core, same shapes."""
    torch.set_num_threads(1)
    rng = np.random.default_rng(0)
    sizes = [
        (27, 512),
        (512, 512),
        (512, 256),
        (256, 128),
        (128, 16),
        (24, 128),
        (128, 128),
        (128, 1),
    ]
    flops = 2 * BLOCK * sum(i * o for i, o in sizes)
    inputs = [torch.randn(BLOCK, i) for i, _ in sizes]
    weights = [torch.randn(i, o) for i, o in sizes]
    network = Classifier(27, 8)
    initialise(network, rng)
    network.eval()
    plain = Normaliser(np.zeros(27, np.float32), np.ones(27, np.float32))
    acts = Normaliser(np.zeros(8, np.float32), np.ones(8, np.float32))
    scorer = Scorer(FoldedClassifier(network), plain, acts, torch.device("cpu"))
    rows = 16 * BLOCK
    flags = np.zeros(rows, bool)
    block = Columns(
        rng.normal(size=(rows, 27)).astype(np.float32),
        rng.normal(size=(rows, 8)).astype(np.float32),
        None,
        flags,
        flags,
    )
    best = {"matmul": np.inf, "scoring": np.inf}
    for _ in range(12):
        began = time.process_time()
        for _ in range(16):
            for x, w in zip(inputs, weights, strict=True):
                x @ w
        best["matmul"] = min(best["matmul"], time.process_time() - began)
        began = time.process_time()
        scorer(block)
        best["scoring"] = min(best["scoring"], time.process_time() - began)
    rates = {name: 16 * flops / seconds / 1e9 for name, seconds in best.items()}
    print(f"plain product {rates['matmul']:.1f} GFLOP/s, scoring {rates['scoring']:.1f} GFLOP/s")
    print(f"scoring reaches {rates['scoring'] / rates['matmul']:.0%} of the plain product's rate")


def growth():
    """Time and peak memory of recipe auto at 1e5, 3e5 and 1e6 steps."""
    for steps in (100_000, 300_000, 1_000_000):
        count, length = steps // 1000, 1000
        rng = np.random.default_rng(0)
        policies = rng.normal(size=(2, 27, 8)) / 5
        states = rng.normal(size=(steps, 27)).astype(np.float32)
        owner = np.repeat(np.arange(count) % 2, length)
        actions = np.empty((steps, 8), np.float32)
        for k in (0, 1):
            actions[owner == k] = np.tanh(states[owner == k] @ policies[k])
        flags = np.zeros(steps, bool)
        mixed = TrajectorySet.from_flat(
            Columns(states, actions, None, flags, flags), [length] * count
        )
        began, used = time.perf_counter(), time.process_time()
        found = pubc.find_expert(mixed, [0, 2], device="cpu")
        right = confusion(found.mask, np.arange(count) % 2 == 0).accuracy
        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**10
        print(
            f"auto    {steps:>9,} steps  {time.perf_counter() - began:7.1f} s  cpu "
            f"{time.process_time() - used:7.1f} s  peak {peak:,.0f} MiB  accuracy {right:.2%}",
            flush=True,
        )
        network = Classifier(27, 8)
        initialise(network, rng)
        network.eval()
        one = Normaliser(np.zeros(27, np.float32), np.ones(27, np.float32))
        two = Normaliser(np.zeros(8, np.float32), np.ones(8, np.float32))
        began = time.process_time()
        score_trajectories([Scorer.of(network, one, two)], mixed, Bench(device="cpu"))
        print(f"scoring {steps:>9,} steps  cpu {time.process_time() - began:7.1f} s", flush=True)


def cuda(path):
    """The same selection on CPU and CUDA, and how much of the GPU scoring uses."""
    mixed = pubc.load(path)
    seeds = np.flatnonzero(mixed.sources == "E+")[:2]
    found = {}
    for device in ("cuda", "cpu"):
        pubc.find_expert(mixed, seeds, device=device)  # loads kernels
        began = time.perf_counter()
        found[device] = pubc.find_expert(mixed, seeds, device=device)
        print(f"auto on {device}: {time.perf_counter() - began:.1f} s, {found[device]}", flush=True)
    apart = found["cuda"].mask != found["cpu"].mask
    unsure = found["cuda"].quality.borderline | found["cpu"].quality.borderline
    shift = np.abs(found["cuda"].confidence - found["cpu"].confidence).max()
    print(f"{apart.sum()} labels differ, {(apart & ~unsure).sum()} of them not borderline")
    print(f"largest difference of a confidence {shift:.1e}")
    network = Classifier(mixed.observation_size, mixed.action_size)
    initialise(network, np.random.default_rng(0))
    network.eval()
    one, two = (
        Normaliser(np.zeros(n, np.float32), np.ones(n, np.float32))
        for n in (mixed.observation_size, mixed.action_size)
    )
    scores = {}
    for device in ("cuda", "cpu"):
        scorer = Scorer(FoldedClassifier(network.to(device)), one, two, torch.device(device))
        best = np.inf
        for _ in range(3):
            began = time.perf_counter()
            scores[device] = score_trajectories([scorer], mixed, Bench(device=device))
            best = min(best, time.perf_counter() - began)
        print(f"scoring on {device}: {mixed.steps / best:,.0f} steps per second", flush=True)
    print(f"largest difference of a score {np.abs(scores['cuda'] - scores['cpu']).max():.1e}")


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("data", nargs="?", type=Path)
    parser.add_argument("--rounds", type=int, default=3, help="of the paper's loop; 0 for none")
    parser.add_argument("--recipes", nargs="*", default=["paper", "auto"])
    parser.add_argument("--seeds", type=int, default=2, help="trajectories of the expert")
    parser.add_argument("--scoring", action="store_true")
    parser.add_argument("--growth", action="store_true")
    parser.add_argument("--cuda", action="store_true", help="compare CPU and CUDA on the data")
    arguments = parser.parse_args()
    if arguments.data and arguments.cuda:
        cuda(arguments.data)
    elif arguments.data:
        compare(arguments.data, arguments.rounds, arguments.recipes, arguments.seeds)
    if arguments.scoring:
        scoring()
    if arguments.growth:
        growth()
    return 0


if __name__ == "__main__":
    sys.exit(main())
