"""`pubc export`: a policy as one file for a robot."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

import tyro

from pubc.cli.console import facts, warn_unsound_policy
from pubc.errors import UsageError

__all__ = ["COMMAND", "Export"]


@dataclass(frozen=True)
class Export:
    """Write a policy as one ONNX or TorchScript file, with its normaliser inside.

    The file also says of itself in which order the observation is put together, how it is
    normalised inside, the limits of the action, and where the policy came from (docs/policies.md).

    The file is checked against the policy (the largest difference is printed; more than 1e-5
    is refused) and timed for one action. A Decision Transformer takes its last steps as inputs.
    """

    policy: Annotated[Path, tyro.conf.Positional]
    """Policy folder of `pubc train`."""
    out: Annotated[Path, tyro.conf.Positional]
    """File to write: .onnx or .pt (TorchScript)."""
    force: bool = False
    """Replace an earlier export."""
    json: bool = False
    """Print one JSON document instead of text."""

    def run(self) -> dict[str, Any]:
        """Load, write, check, time."""
        from pubc import zoo
        from pubc.policies.export_policy import export
        from pubc.policies.policy_folder import load, read_config

        if not self.policy.exists() and str(self.policy) in zoo.names():
            raise UsageError("Zoo policies are already plain files; train one to export it.")
        policy, about = load(self.policy), read_config(self.policy)
        warn_unsound_policy(self.policy, about)
        written = export(policy, self.out, about=about, overwrite=self.force)
        document = {
            "policy": str(self.policy),
            "out": str(written.path),
            "bytes": written.path.stat().st_size,
            "inputs": list(written.inputs),
            "observation_size": policy.observation_size,
            "action_size": policy.action_size,
            "max_difference": written.difference,
            "milliseconds": written.milliseconds,
            "card": dict(written.card),
        }
        if not self.json:
            facts(
                [
                    ("written", f"{written.path} ({document['bytes']:,} bytes)"),
                    ("inputs", ", ".join(written.inputs)),
                    ("observation", _keys(written.card)),
                    ("action", _limits(written.card)),
                    ("largest difference", f"{written.difference:.2g}"),
                    ("one action", f"{written.milliseconds:.3f} ms"),
                ]
            )
        return document


COMMAND = Export


def _keys(card: Mapping[str, Any]) -> str:
    return ", ".join(f"{part['key']} ({part['size']})" for part in card["observation"]["keys"])


def _limits(card: Mapping[str, Any]) -> str:
    action = card["action"]
    low, high = min(action["low"]), max(action["high"])
    return f"{action['key']} ({action['size']}), from {low:.4g} to {high:.4g}"
