"""The door to d3rlpy: its learners, their hyper-parameters, and how to read their networks.

d3rlpy gives losses and networks. Its import changes global settings of torch and prints; both
are undone here. Its loop, its datasets and its files are not used, nor its way through an
update, which waits for the device to read every loss.
"""

from __future__ import annotations

import contextlib
import io
import logging
import warnings
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import torch
from torch import Tensor, nn

from pubc.errors import MissingExtraError
from pubc.policies.networks import Layer

__all__ = [
    "GREEDY",
    "HYPERPARAMETERS",
    "LAYERS",
    "UPDATES",
    "create",
    "library",
    "torch_seed",
    "update",
    "way",
]

HYPERPARAMETERS: dict[str, dict[str, Any]] = {
    "iql": {
        "actor_learning_rate": 3e-4,
        "critic_learning_rate": 3e-4,
        "batch_size": 256,
        "expectile": 0.7,
        "weight_temp": 3.0,
    },
    "crr": {
        "actor_learning_rate": 3e-4,
        "critic_learning_rate": 3e-4,
        "batch_size": 256,
        "beta": 1.0,
    },
    "td3bc": {
        "actor_learning_rate": 3e-4,
        "critic_learning_rate": 3e-4,
        "batch_size": 256,
        "alpha": 2.5,
    },
    "plas": {
        "actor_learning_rate": 1e-4,
        "critic_learning_rate": 1e-3,
        "warmup_steps": 500_000,
        "beta": 0.5,
    },
    "dt": {"batch_size": 64, "learning_rate": 1e-4, "context_size": 20, "max_timestep": 1000},
}
"""Table 7 of the paper; the Decision Transformer, which it leaves out, as d3rlpy has it."""

_CONFIGS = {
    "iql": "IQLConfig",
    "crr": "CRRConfig",
    "td3bc": "TD3PlusBCConfig",
    "plas": "PLASConfig",
    "dt": "DecisionTransformerConfig",
}
UPDATES = {"paper": 1_000_000, "auto": 100_000}


@contextlib.contextmanager
def library() -> Iterator[Any]:
    """The library; whatever its import changes or prints is put back or swallowed.

    Meanwhile distributions do not look at their parameters: each look waits for the device, and
    a policy that went wrong shows in its loss.
    """
    precision = torch.get_float32_matmul_precision()
    try:
        with (
            warnings.catch_warnings(),
            contextlib.redirect_stderr(io.StringIO()),
            contextlib.redirect_stdout(io.StringIO()),
        ):
            warnings.simplefilter("ignore")
            import d3rlpy
            import structlog
    except ImportError:
        raise MissingExtraError("This learner", "d3rlpy") from None
    finally:
        torch.set_float32_matmul_precision(precision)
    if torch.cuda.is_available():
        torch._dynamo.config.compiled_autograd = False
    structlog.configure(wrapper_class=structlog.make_filtering_bound_logger(logging.ERROR))
    validates = torch.distributions.Distribution._validate_args
    torch.distributions.Distribution.set_default_validate_args(False)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            yield d3rlpy
    finally:
        torch.distributions.Distribution.set_default_validate_args(validates)


def create(
    d3: Any,
    name: str,
    chosen: Mapping[str, Any],
    sizes: tuple[int, int],
    device: torch.device,
) -> Any:
    """A learner with fresh networks.

    Args:
        d3: The library.
        name: Of the learner.
        chosen: Its hyper-parameters.
        sizes: Dimensions of observation and action.
        device: Where to train.
    """
    config = getattr(d3.algos, _CONFIGS[name])(**chosen)
    algorithm = config.create(device=str(device))
    algorithm.create_impl((sizes[0],), sizes[1])
    for wrapper in vars(algorithm.impl.modules).values():
        # The same arithmetic in one pass over the weights, where d3rlpy would make a dozen.
        for group in getattr(getattr(wrapper, "optim", None), "param_groups", ()):
            group.update(fused=True, foreach=False, capturable=device.type == "cuda")
    return algorithm


def way(impl: Any, name: str, number: int) -> str:
    """Which of its ways an update takes: the same for all updates that do the same work."""
    if name == "td3bc":
        return "all" if number % impl._update_actor_interval == 0 else "critic"
    if name == "crr":
        return "sync" if number % impl._target_update_interval == 0 else "all"
    if name == "plas":
        return "imitate" if number < impl._warmup_steps else "all"
    return "all"


def update(impl: Any, name: str, batch: Any, taken: str) -> dict[str, Tensor]:
    """One update of a learner, in d3rlpy's order.

    Args:
        impl: The learner's implementation.
        name: Of the learner.
        batch: What it learns from.
        taken: The `way` of this update.

    Returns:
        Its losses, still on the device.
    """
    if name == "dt":
        loss = impl.compute_grad(batch)["loss"]
        impl.modules.optim.step()
        return {"loss": loss.detach()}
    if taken == "imitate":
        loss = impl.compute_imitator_grad(batch)["loss"]
        impl.modules.vae_optim.step()
        return {"vae_loss": loss.detach()}
    losses = vars(impl.compute_critic_grad(batch)).copy()
    impl.modules.critic_optim.step()
    if taken != "critic":
        losses.update(vars(impl.compute_actor_grad(batch)))
        impl.modules.actor_optim.step()
        _follow(impl, name, taken)
    return {kind: value.detach() for kind, value in losses.items()}


def _follow(impl: Any, name: str, taken: str) -> None:
    """The target networks, where and how the learner has them."""
    if name == "crr":
        if taken == "sync":
            impl.sync_critic_target()
            impl.sync_actor_target()
        return
    impl.update_critic_target()
    if name != "iql":
        impl.update_actor_target()


@contextlib.contextmanager
def torch_seed(seed: int) -> Iterator[None]:
    """d3rlpy draws from torch's global generator; it is seeded here and put back after."""
    with torch.random.fork_rng():
        torch.manual_seed(seed)
        yield


def _linears(*parts: nn.Module) -> tuple[Layer, ...]:
    found = [m for part in parts for m in part.modules() if isinstance(m, nn.Linear)]
    return tuple(
        (m.weight.detach().cpu().numpy().T.copy(), m.bias.detach().cpu().numpy().copy())
        for m in found
    )


def _normal(modules: Any) -> tuple[tuple[Layer, ...]]:
    return (_linears(modules.policy._encoder, modules.policy._mu),)


def _deterministic(modules: Any) -> tuple[tuple[Layer, ...]]:
    return (_linears(modules.policy._encoder, modules.policy._fc),)


def _latent(modules: Any) -> tuple[tuple[Layer, ...], tuple[Layer, ...]]:
    decoder = modules.vae_decoder
    return _deterministic(modules)[0], _linears(decoder._encoder, decoder._fc)


LAYERS: dict[str, Callable[[Any], Any]] = {
    "iql": _normal,
    "crr": _normal,
    "td3bc": _deterministic,
    "plas": _latent,
}
"""How to read the layers of each learner's policy."""

GREEDY: dict[str, Callable[[Any, Tensor], Tensor]] = {
    "iql": lambda impl, x: impl.inner_predict_best_action(x),
    "crr": lambda impl, x: impl.modules.policy(x).squashed_mu,
    "td3bc": lambda impl, x: impl.inner_predict_best_action(x),
    "plas": lambda impl, x: impl.inner_predict_best_action(x),
}
"""What each learner's own greedy action is."""
