"""`pubc export`: a policy as one file for a robot."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

import tyro

from pubc.cli.console import facts
from pubc.errors import UsageError

__all__ = ["COMMAND", "Export"]


@dataclass(frozen=True)
class Export:
    """Write a policy as one ONNX or TorchScript file, with its normaliser inside.

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
        from pubc.policies.policy_folder import load

        if not self.policy.exists() and str(self.policy) in zoo.names():
            raise UsageError("Zoo policies are already plain files; train one to export it.")
        policy = load(self.policy)
        written = export(policy, self.out, overwrite=self.force)
        document = {
            "policy": str(self.policy),
            "out": str(written.path),
            "bytes": written.path.stat().st_size,
            "inputs": list(written.inputs),
            "observation_size": policy.observation_size,
            "action_size": policy.action_size,
            "max_difference": written.difference,
            "milliseconds": written.milliseconds,
        }
        if not self.json:
            facts(
                [
                    ("written", f"{written.path} ({document['bytes']:,} bytes)"),
                    ("inputs", ", ".join(written.inputs)),
                    ("largest difference", f"{written.difference:.2g}"),
                    ("one action", f"{written.milliseconds:.3f} ms"),
                ]
            )
        return document


COMMAND = Export
