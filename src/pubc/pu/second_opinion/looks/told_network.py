"""One network that imitates everybody and is told who acts.

Every trajectory gets a code, a few numbers that are learned with the network: its prediction is a
mean action plus a code's mixture of learned directions. What one policy does everywhere ends up in
its codes, what the situation asks for in the network. The network treats all trajectories
alike and never hears which ones are seeds, so nobody is judged by what was fitted to them alone.
Once it is trained, the best code of any set of trajectories is a small linear system.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise

import numpy as np
import torch
from torch import Tensor

from pubc.nets import GroupedAdam
from pubc.pu.second_opinion.looks.rows import Rows

__all__ = ["Actors", "learn_actors", "on_rows"]

_WIDTH = 192
_BATCH = 512
_AT_ONCE = 8192
_RATES = (2e-3, 5e-2)
_SMALL = 1e-3
_SHRINK = 0.02


@dataclass(frozen=True, slots=True, eq=False)
class Actors:
    """A trained network, applied to the rows of a pile."""

    network: dict[str, Tensor]
    """Weights and biases of its three layers."""
    basis: Tensor
    """Mean action and directions at every row, shape (rows, 1 + size, action columns)."""
    gram: Tensor
    """Products of directions, a matrix for each trajectory."""
    aim: Tensor
    """Products of directions with what the mean action leaves over, for each trajectory."""
    ridge: Tensor
    """What keeps codes small."""

    @property
    def width(self) -> int:
        """Of its hidden layers."""
        return len(self.network["bias1"])

    def hidden(self, states: Tensor) -> Tensor:
        """What its last hidden layer makes of states."""
        with torch.no_grad():
            return _hidden(self.network, states)

    def code(self, trajectories: Tensor) -> Tensor:
        """The code that explains some trajectories best."""
        size = self.gram.shape[1]
        keep = self.ridge * torch.eye(size, device=self.gram.device) / max(1, len(trajectories))
        matrix, aim = self.gram[trajectories].mean(0) + keep, self.aim[trajectories].mean(0)
        code: Tensor = torch.linalg.solve(matrix, aim)
        return code

    def own_codes(self) -> Tensor:
        """The code that explains each trajectory best, shape (trajectories, size)."""
        keep = self.ridge * torch.eye(self.gram.shape[1], device=self.gram.device)
        codes: Tensor = torch.linalg.solve(self.gram + keep, self.aim)
        return codes

    def told(self, code: Tensor, rows: slice | None = None) -> Tensor:
        """What the actor with a code, or with a code for each row, would do."""
        basis = self.basis if rows is None else self.basis[rows]
        mixed = torch.einsum("tka,k->ta" if code.dim() == 1 else "tka,tk->ta", basis[:, 1:], code)
        return basis[:, 0] + mixed


def learn_actors(rows: Rows, size: int, updates: int, rng: np.random.Generator) -> Actors:
    """Train the network on a pile.

    Args:
        rows: The pile.
        size: Numbers in a code.
        updates: Gradient steps.
        rng: All randomness.
    """
    generator = torch.Generator().manual_seed(int(rng.integers(2**62)))
    network = _new_network(rows, size, generator)
    codes = torch.randn(rows.count, size, generator=generator).to(rows.device)
    learned = [value.requires_grad_() for value in (*network.values(), codes)]
    optimiser = GroupedAdam([(learned[:-1], _RATES[0]), (learned[-1:], _RATES[1])])
    draws = torch.randint(len(rows.states), (updates, _BATCH), generator=generator).to(rows.device)
    for update in range(updates):
        picked = draws[update]
        code = codes[rows.owner[picked]]
        basis = _basis(network, _hidden(network, rows.states[picked]), size)
        guess = basis[:, 0] + torch.einsum("tka,tk->ta", basis[:, 1:], code)
        loss = (guess - rows.actions[picked]).square().mean() + _SMALL * code.square().mean()
        loss.backward()  # type: ignore[no-untyped-call]
        optimiser.step()
        optimiser.learning_rates = [rate * (1 - (update + 1) / updates) for rate in _RATES]
    return on_rows({name: value.detach() for name, value in network.items()}, rows, size)


def on_rows(network: dict[str, Tensor], rows: Rows, size: int) -> Actors:
    """A trained network on the rows of a pile, not necessarily the one it was trained on."""
    with torch.no_grad():
        parts = torch.split(rows.states, _AT_ONCE)
        basis = torch.cat([_basis(network, _hidden(network, part), size) for part in parts])
        directions, left = basis[:, 1:], rows.actions - basis[:, 0]
        gram = rows.mean(torch.einsum("tka,tla->tkl", directions, directions).flatten(1))
        aim = rows.mean(torch.einsum("tka,ta->tk", directions, left))
    gram = gram.view(rows.count, size, size)
    ridge = _SHRINK * gram.diagonal(dim1=1, dim2=2).mean() + 1e-9
    return Actors(network, basis, gram, aim, ridge)


def _new_network(rows: Rows, size: int, generator: torch.Generator) -> dict[str, Tensor]:
    sizes = [rows.states.shape[1], _WIDTH, _WIDTH, rows.actions.shape[1] * (size + 1)]
    network: dict[str, Tensor] = {}
    for layer, (wide, out) in enumerate(pairwise(sizes)):
        bound = 1 / max(1, wide) ** 0.5
        weight = (2 * torch.rand(out, wide, generator=generator) - 1) * bound
        bias = (2 * torch.rand(out, generator=generator) - 1) * bound
        network[f"weight{layer}"] = weight.to(rows.device)
        network[f"bias{layer}"] = bias.to(rows.device)
    return network


def _hidden(network: dict[str, Tensor], states: Tensor) -> Tensor:
    hidden = states
    for layer in range(2):
        hidden = torch.nn.functional.linear(
            hidden, network[f"weight{layer}"], network[f"bias{layer}"]
        )
        hidden = torch.nn.functional.gelu(hidden)
    return hidden


def _basis(network: dict[str, Tensor], hidden: Tensor, size: int) -> Tensor:
    out = torch.nn.functional.linear(hidden, network["weight2"], network["bias2"])
    return out.view(len(hidden), size + 1, -1)
