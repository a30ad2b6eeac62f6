"""The Decision Transformer as a policy: it acts on its last steps and the return it wants."""

from __future__ import annotations

import copy
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from pubc.acting.rollout import Actor
from pubc.errors import DataError
from pubc.nets import CLIP, Normaliser
from pubc.policies.offline_rl.d3rlpy_learners import HYPERPARAMETERS, create, library, torch_seed
from pubc.policies.predict import Predictor
from pubc.policies.training_rows import ActionRange
from pubc.threads import threads
from pubc.trajectory import Array

__all__ = ["FORM", "TransformerModule", "TransformerPolicy"]

FORM = "transformer"
"""What config.json calls this kind of policy."""


@dataclass(frozen=True, slots=True, eq=False)
class TransformerPolicy(Predictor):
    """A Decision Transformer: acts on its last steps and the return it still wants."""

    normaliser: Normaliser
    """Applied to every observation."""
    actions: ActionRange
    """Brings the network's output to actions."""
    algorithm: Any
    """d3rlpy's, with its weights."""
    chosen: Mapping[str, Any]
    """Its hyper-parameters."""
    target: float
    """Return to wish for."""
    scale: float
    """Returns are divided by this before the network sees them."""

    @property
    def observation_size(self) -> int:
        """Dimensions of one observation."""
        return len(self.normaliser.mean)

    @property
    def action_size(self) -> int:
        """Dimensions of one action."""
        return len(self.actions.low)

    def begin(self, rng: np.random.Generator) -> Actor:
        """A fresh actor with an empty memory."""
        module = self.module()
        length = int(self.chosen["context_size"])
        most = self.algorithm.config.max_timestep
        seen = torch.zeros(1, length, self.observation_size)
        acts = torch.zeros(1, length, self.action_size)
        wish, time, mask = (torch.zeros(1, length, n) for n in (1, 1, 1))
        left, step = self.target, 0

        def act(observation: Array, reward: float) -> Array:
            nonlocal left, step
            left, step = left - reward, step + 1
            for memory in (seen, acts, wish, time, mask):
                memory[:, :-1] = memory[:, 1:].clone()
            seen[0, -1] = torch.from_numpy(np.array(observation, dtype=np.float32))
            acts[0, -1] = 0.0
            wish[0, -1], time[0, -1], mask[0, -1] = left, min(step, most - 1), 1.0
            with torch.no_grad(), threads(1):
                action = module(seen, acts, wish, time, mask)[0]
            acts[0, -1] = action
            return np.asarray(action.numpy())

        return act

    def tensors(self) -> dict[str, Array]:
        """Every array of the policy by name."""
        weights = self.algorithm.impl.modules.transformer.state_dict()
        return {
            "observation.mean": self.normaliser.mean,
            "observation.scale": self.normaliser.scale,
            "action.low": self.actions.low,
            "action.high": self.actions.high,
            **{f"transformer.{k}": v.detach().cpu().numpy() for k, v in weights.items()},
        }

    def config(self) -> dict[str, Any]:
        """What `config.json` has to say beside the arrays."""
        return {
            "form": FORM,
            "transformer": dict(self.chosen),
            "target_return": self.target,
            "return_scale": self.scale,
        }

    @classmethod
    def build(cls, config: Mapping[str, Any], tensors: Mapping[str, Array]) -> TransformerPolicy:
        """The policy that `config` and `tensors` describe.

        Raises:
            DataError: Something is missing, or does not fit.
        """
        try:
            chosen = {k: config["transformer"][k] for k in HYPERPARAMETERS["dt"]}
            normaliser = Normaliser(tensors["observation.mean"], tensors["observation.scale"])
            actions = ActionRange(tensors["action.low"], tensors["action.high"])
            sizes = (len(normaliser.mean), len(actions.low))
            if actions.low.shape != actions.high.shape:
                raise ValueError("as many lowest as highest actions are needed")
            if not normaliser.fits():
                raise ValueError("one scale above zero is needed for each mean")
            target, scale = float(config["target_return"]), float(config["return_scale"])
            weights = {
                name.removeprefix("transformer."): torch.from_numpy(np.array(array))
                for name, array in tensors.items()
                if name.startswith("transformer.")
            }
            _check_sizes(chosen, sizes, weights)
            with library() as d3, torch_seed(0):
                made = create(d3, "dt", chosen, sizes, torch.device("cpu"))
            made.impl.modules.transformer.load_state_dict(weights)
        except (KeyError, TypeError, ValueError, OverflowError, RuntimeError) as error:
            raise DataError(
                f"The transformer's arrays do not fit its description ({error}).",
                code="bad_policy",
            ) from None
        return cls(normaliser, actions, made, chosen, target, scale)

    def module(self) -> nn.Module:
        """The policy for torch: the last steps in, one action out."""
        return TransformerModule(self).eval()


def _check_sizes(
    chosen: Mapping[str, Any], sizes: tuple[int, int], weights: Mapping[str, Tensor]
) -> None:
    """Refuse sizes that the arrays do not have, before a network of those sizes takes memory.

    Raises:
        KeyError: An array is missing.
        ValueError: An array is of another size.
    """
    declared = {
        "_position_encoding._embed.weight": (0, chosen["max_timestep"] + 2),
        "_gpt2._transformer.0._attention._mask": (3, 3 * chosen["context_size"]),
        "_encoder._layers.0.weight": (1, sizes[0]),
        "_action_embed.weight": (1, sizes[1]),
    }
    for name, (axis, size) in declared.items():
        if weights[name].shape[axis : axis + 1] != (size,):
            raise ValueError(f"{name} is of another size than described")


class TransformerModule(nn.Module):
    """Observations, actions, returns to go, time steps and masks, each (1, context, n)."""

    mean: Tensor
    std: Tensor
    low: Tensor
    high: Tensor
    centre: Tensor
    reach: Tensor

    def __init__(self, policy: TransformerPolicy) -> None:
        super().__init__()
        # A copy: the original may still be in training, on another device.
        self.transformer = copy.deepcopy(policy.algorithm.impl.modules.transformer).cpu()
        for name, array in {
            "mean": policy.normaliser.mean,
            "std": policy.normaliser.scale,
            "low": policy.actions.low,
            "high": policy.actions.high,
            "centre": policy.actions.centre,
            "reach": policy.actions.half,
        }.items():
            self.register_buffer(name, torch.from_numpy(np.array(array, dtype=np.float32)))
        self.scale = policy.scale

    def forward(
        self, seen: Tensor, acts: Tensor, wish: Tensor, time: Tensor, mask: Tensor
    ) -> Tensor:
        """The next action, shape (1, action dimensions)."""
        x = torch.clamp((seen - self.mean) / self.std, -CLIP, CLIP) * mask
        before = (acts - self.centre) / self.reach * mask
        units = self.transformer(
            x, before, wish / self.scale * mask, time[..., 0].long(), 1 - mask[..., 0]
        )[:, -1]
        wide = self.centre + self.reach * units
        return torch.minimum(torch.maximum(wide, self.low), self.high)
