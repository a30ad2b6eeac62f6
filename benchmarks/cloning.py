"""How fast behaviour cloning trains: ours, d3rlpy's, and a plain PyTorch loop.

    python benchmarks/cloning.py [--device cpu|cuda] [--seconds 5] [--threads 2]

Same data, same network (256-256), same process, taking turns so that a busy machine is
unfair to none. Prints updates per second, the ratio to d3rlpy's, and how much of the rate
of the machine's matrix products each reaches; with --json as one JSON document.
"""

import argparse
import contextlib
import io
import itertools
import json
import time
import warnings

import numpy as np
import torch

from pubc.policies.cloning.bc import Clone
from pubc.policies.train_options import TrainOptions
from pubc.trajectory import Columns, TrajectorySet

OBSERVATIONS, ACTIONS, HIDDEN = 17, 6, 256
TRAJECTORIES, LENGTH = 50, 1000
TURN = 0.3
"""Seconds of a turn: short, so that each contestant also meets quiet moments."""


def dataset():
    rng = np.random.default_rng(0)
    rows = TRAJECTORIES * LENGTH
    seen = rng.normal(size=(rows, OBSERVATIONS)).astype(np.float32)
    acted = np.tanh(seen[:, :ACTIONS] + 0.1 * rng.normal(size=(rows, ACTIONS)))
    ends = np.zeros(rows, dtype=np.bool_)
    ends[LENGTH - 1 :: LENGTH] = True
    columns = Columns(
        seen, acted.astype(np.float32), np.zeros(rows, np.float32), np.zeros_like(ends), ends
    )
    return TrajectorySet.from_flat(columns, [LENGTH] * TRAJECTORIES)


def ours(data, batch, device):
    """Whole epochs, with everything an epoch of `pubc train` does."""
    options = TrainOptions(recipe="paper", batch_size=batch)
    run = Clone(data, options, random_seed=0, device=torch.device(device))
    epoch = 0

    def turn():
        nonlocal epoch
        run.advance(epoch)
        epoch += 1
        return data.steps // batch

    return turn


def d3rlpys(data, batch, device):
    with contextlib.redirect_stderr(io.StringIO()), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        import d3rlpy
        import structlog
    structlog.configure(wrapper_class=structlog.make_filtering_bound_logger(40))
    episodes = [
        d3rlpy.dataset.Episode(
            one.steps.observations, one.steps.actions, one.steps.rewards[:, None], False
        )
        for one in data
    ]
    buffer = d3rlpy.dataset.create_infinite_replay_buffer(episodes=episodes)
    config = d3rlpy.algos.BCConfig(batch_size=batch, learning_rate=1e-3)
    algorithm = config.create(device=device)
    algorithm.build_with_dataset(buffer)

    def turn(updates=20):
        for _ in range(updates):
            algorithm.update(buffer.sample_transition_batch(batch))
        return updates

    return turn


def plain(data, batch, device):
    layers = [
        torch.nn.Linear(OBSERVATIONS, HIDDEN), torch.nn.ReLU(),
        torch.nn.Linear(HIDDEN, HIDDEN), torch.nn.ReLU(),
        torch.nn.Linear(HIDDEN, ACTIONS), torch.nn.Tanh(),
    ]  # fmt: skip
    network = torch.nn.Sequential(*layers).to(device)
    optimiser = torch.optim.Adam(network.parameters(), lr=1e-3)
    flat = data.flat()
    seen = torch.from_numpy(np.array(flat.observations)).to(device)
    acted = torch.from_numpy(np.array(flat.actions)).to(device)

    def turn(updates=50):
        for _ in range(updates):
            rows = torch.randint(0, len(seen), (batch,), device=device)
            loss = torch.nn.functional.mse_loss(network(seen[rows]), acted[rows])
            optimiser.zero_grad()
            loss.backward()
            optimiser.step()
        return updates

    return turn


def work(batch):
    """Multiply-adds of the matrix products of one update, times two."""
    sizes = [OBSERVATIONS, HIDDEN, HIDDEN, ACTIONS]
    layers = [a * b for a, b in itertools.pairwise(sizes)]
    return 2 * batch * (3 * sum(layers) - layers[0])


def product_rate(batch, device, seconds):
    """Operations per second of the largest product of an update, alone."""
    a, b = torch.randn(batch, HIDDEN, device=device), torch.randn(HIDDEN, HIDDEN, device=device)
    out = torch.empty(batch, HIDDEN, device=device)
    best, end = 0.0, time.perf_counter() + seconds
    while time.perf_counter() < end:
        begun = time.perf_counter()
        for _ in range(200):
            torch.mm(a, b, out=out)
        synchronise(device)
        best = max(best, 200 * 2 * batch * HIDDEN**2 / (time.perf_counter() - begun))
    return best


def synchronise(device):
    if device == "cuda":
        torch.cuda.synchronize()


def race(turns, device, seconds):
    """Updates per second of each, in turns; the best turn of each counts."""
    for turn in turns.values():
        turn()
    synchronise(device)
    best = dict.fromkeys(turns, 0.0)
    for _ in range(max(3, int(seconds / TURN))):
        for name, turn in turns.items():
            done, begun = 0, time.perf_counter()
            while time.perf_counter() - begun < TURN:
                done += turn()
                synchronise(device)
                taken = time.perf_counter() - begun
            best[name] = max(best[name], done / taken)
    return best


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--device", choices=["cpu", "cuda"], default="cpu")
    parser.add_argument("--seconds", type=float, default=5, help="per contestant and batch")
    parser.add_argument("--threads", type=int, default=torch.get_num_threads())
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--without-d3rlpy", action="store_true")
    chosen = parser.parse_args()
    torch.set_num_threads(chosen.threads)
    data, results = dataset(), []
    for batch in (100, 1024):
        turns = {
            "ours": ours(data, batch, chosen.device),
            "plain loop": plain(data, batch, chosen.device),
        }
        if not chosen.without_d3rlpy:
            turns["d3rlpy"] = d3rlpys(data, batch, chosen.device)
        rates = race(turns, chosen.device, chosen.seconds)
        ceiling = product_rate(batch, chosen.device, 1.0)
        base = rates.get("d3rlpy")
        for name, rate in rates.items():
            results.append(
                {
                    "batch": batch,
                    "name": name,
                    "updates_per_second": rate,
                    "times_d3rlpy": rate / base if base else None,
                    "share_of_products": rate * work(batch) / ceiling,
                }
            )
    document = {"device": chosen.device, "threads": chosen.threads, "results": results}
    if chosen.json:
        print(json.dumps(document, indent=1))
        return
    print(f"{chosen.device}, {chosen.threads} threads, torch {torch.__version__}")
    print(f"{'batch':>5}  {'':<10} {'updates/s':>10} {'x d3rlpy':>9} {'of products':>12}")
    for one in results:
        times = "-" if one["times_d3rlpy"] is None else f"{one['times_d3rlpy']:.1f}"
        print(
            f"{one['batch']:>5}  {one['name']:<10} {one['updates_per_second']:>10,.0f} "
            f"{times:>9} {one['share_of_products']:>11.0%}"
        )


if __name__ == "__main__":
    main()
