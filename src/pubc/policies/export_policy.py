"""A policy for a robot: one ONNX or TorchScript file with normaliser and range baked in.

Every export is checked against the policy it came from, and timed for a single action: a
controller that runs a thousand times a second cannot wait.
"""

from __future__ import annotations

import contextlib
import io
import json
import logging
import os
import time
import warnings
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from pubc.errors import DataError, MissingExtraError, UnknownNameError
from pubc.policies.export_card import CARD, card, properties
from pubc.policies.networks import NetworkPolicy
from pubc.policies.policy_folder import TrainedPolicy
from pubc.storage import claim, sealed_file
from pubc.threads import threads

__all__ = ["SUFFIXES", "TOLERANCE", "Exported", "export"]

SUFFIXES = {".onnx": "ONNX", ".pt": "TorchScript"}
"""What can be written, by the suffix of its file."""
TOLERANCE = 1e-5
"""Largest difference between an export and its policy that is let through."""

KIND = "export"
_CHECKS = 64
_TIMED = 200
Run = Callable[[tuple[Tensor, ...]], NDArray[np.float32]]


@dataclass(frozen=True, slots=True)
class Exported:
    """What was written, and how it compares."""

    path: Path
    """The file."""
    difference: float
    """Largest difference of an action from the policy's own, over random observations."""
    milliseconds: float
    """Median time for one action, measured here."""
    inputs: tuple[str, ...]
    """Names of the inputs in order."""
    card: Mapping[str, Any]
    """What the file says of itself."""


def export(
    policy: TrainedPolicy,
    path: Path,
    *,
    about: Mapping[str, Any] | None = None,
    overwrite: bool = False,
) -> Exported:
    """Write a policy as one file, check it, and time it.

    Args:
        policy: A trained policy.
        path: Ends in .onnx or .pt.
        about: config.json of the policy's folder, for what the file says of itself.
        overwrite: Replace an earlier export, as NAME.manifest.json beside it proves one.

    Raises:
        UnknownNameError: The suffix is neither.
        UsageError: `path` exists, and is not an export or not to be replaced.
        MissingExtraError: ONNX was asked for and is not installed.
        DataError: The export acts differently from the policy; nothing was written.
    """
    if path.suffix not in SUFFIXES:
        raise UnknownNameError("export suffix", path.suffix, SUFFIXES)
    claim(path, KIND, force=overwrite, file=True)
    module = policy.module().eval()
    names, examples = _examples(policy)
    told = card(policy, about or {}, names)
    with sealed_file(path, kind=KIND, overwrite=overwrite) as temporary:
        if path.suffix == ".onnx":
            run = _to_onnx(module, names, examples[0], temporary, told)
        else:
            run = _to_torchscript(module, examples[0], temporary, told)
        original = _original(policy, module)
        worst = max(float(np.abs(run(one) - original(one)).max()) for one in examples)
        if not worst <= TOLERANCE:
            raise DataError(
                f"The export acts differently from the policy: an action differs by {worst:.2g}, "
                f"more than {TOLERANCE:g}. Nothing was written.",
                code="export_differs",
            )
        milliseconds = _time(run, examples[0])
    return Exported(path, worst, milliseconds, names, told)


def _original(policy: TrainedPolicy, module: torch.nn.Module) -> Run:
    """How the policy itself acts: a network policy in numpy, a transformer in torch."""
    if isinstance(policy, NetworkPolicy):
        return lambda inputs: policy.act(inputs[0].numpy())

    def run(inputs: tuple[Tensor, ...]) -> NDArray[np.float32]:
        with torch.no_grad():
            return np.asarray(module(*inputs).numpy())

    return run


def _examples(policy: TrainedPolicy) -> tuple[tuple[str, ...], list[tuple[Tensor, ...]]]:
    """Random inputs that look like the training data; one row each, as a robot gives them."""
    rng = np.random.default_rng(0)
    tensors = policy.tensors()
    mean, scale = tensors["observation.mean"], tensors["observation.scale"]

    def observations(*shape: int) -> Tensor:
        drawn = mean + scale * rng.standard_normal((*shape, len(mean)))
        return torch.from_numpy(drawn.astype(np.float32))

    chosen: dict[str, Any] = policy.config().get("transformer", {})
    if not chosen:
        return ("observation",), [(observations(1),) for _ in range(_CHECKS)]
    length = int(chosen["context_size"])
    wish = float(policy.config()["target_return"])
    low, high = tensors["action.low"], tensors["action.high"]
    names = ("observations", "actions", "returns_to_go", "time_steps", "mask")
    examples: list[tuple[Tensor, ...]] = []
    for _ in range(_CHECKS // 8):
        acts = rng.uniform(low, high, size=(1, length, len(low))).astype(np.float32)
        times = torch.arange(1, length + 1, dtype=torch.float32).reshape(1, length, 1)
        wishes, mask = torch.full((1, length, 1), wish), torch.ones(1, length, 1)
        examples.append((observations(1, length), torch.from_numpy(acts), wishes, times, mask))
    return names, examples


def _to_onnx(
    module: torch.nn.Module,
    names: tuple[str, ...],
    example: tuple[Tensor, ...],
    path: Path,
    told: Mapping[str, Any],
) -> Run:
    # Else it would write `.ses` among temporary files and report to its makers.
    os.environ.setdefault("ORT_DISABLE_TELEMETRY", "1")
    try:
        import onnx
        import onnxruntime
        import onnxscript  # noqa: F401  (torch's exporter needs it)
    except ImportError:
        raise MissingExtraError("ONNX export", "onnx") from None
    rows = {0: torch.export.Dim("rows")} if len(names) == 1 else None
    with _silence(), torch.no_grad():
        program = torch.onnx.export(
            module,
            example,
            dynamo=True,
            input_names=list(names),
            output_names=["action"],
            dynamic_shapes=(rows,) if rows else None,
            verbose=False,
        )
        assert program is not None
        model = program.model_proto
        onnx.helper.set_model_props(model, properties(told))
        path.write_bytes(model.SerializeToString())
        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = 1
        options.log_severity_level = 3
        session = onnxruntime.InferenceSession(
            path.read_bytes(), options, providers=["CPUExecutionProvider"]
        )

    def run(inputs: tuple[Tensor, ...]) -> NDArray[np.float32]:
        fed = {name: rows.numpy() for name, rows in zip(names, inputs, strict=True)}
        (action,) = session.run(None, fed)
        return np.asarray(action)

    return run


def _to_torchscript(
    module: torch.nn.Module, example: tuple[Tensor, ...], path: Path, told: Mapping[str, Any]
) -> Run:
    with _silence(), torch.no_grad():
        traced = torch.jit.trace(module, example, check_trace=False)  # type: ignore[no-untyped-call]
        # By open files: torch takes no name that is not UTF-8.
        with path.open("wb") as file:
            torch.jit.save(traced, file, _extra_files={CARD: json.dumps(told)})
        with path.open("rb") as stored:
            loaded = torch.jit.load(stored)  # type: ignore[no-untyped-call]

    def run(inputs: tuple[Tensor, ...]) -> NDArray[np.float32]:
        # One thread: for a single row, waking others takes longer than the work.
        with torch.no_grad(), threads(1):
            return np.asarray(loaded(*inputs).numpy())

    return run


def _time(run: Run, example: tuple[Tensor, ...]) -> float:
    run(example)
    taken = []
    for _ in range(_TIMED):
        begun = time.perf_counter()
        run(example)
        taken.append(time.perf_counter() - begun)
    return float(np.median(taken)) * 1e3


@contextlib.contextmanager
def _silence() -> Iterator[None]:
    """The exporters talk at length about their own age."""
    kept = logging.root.manager.disable
    logging.disable(logging.WARNING)
    try:
        with (
            warnings.catch_warnings(),
            contextlib.redirect_stdout(io.StringIO()),
            contextlib.redirect_stderr(io.StringIO()),
        ):
            warnings.simplefilter("ignore")
            yield
    finally:
        logging.disable(kept)
