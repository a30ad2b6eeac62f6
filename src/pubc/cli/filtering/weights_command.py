"""`pubc weights`: what a run knows of single steps, for other people's trainers."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Literal

import tyro

from pubc.cli.console import facts, say, warn, warn_unsound
from pubc.errors import UsageError
from pubc.storage import claim

__all__ = ["COMMAND", "Weights"]

_SUFFIX = {"lerobot": ".parquet", "torch": ".npy", "d3rlpy": ".h5", "robomimic": ".hdf5"}
_LOADER = """import numpy as np, pubc, torch
from torch.utils.data import DataLoader, TensorDataset, WeightedRandomSampler
steps, weights = pubc.load({data!r}).flat(), np.load({out!r})
data = TensorDataset(torch.tensor(steps.observations), torch.tensor(steps.actions))
loader = DataLoader(data, 256, sampler=WeightedRandomSampler(weights.tolist(), len(data)))"""


@dataclass(frozen=True)
class Weights:
    """Write what a run knows of single steps, for other people's trainers.

    lerobot: the table that RA-BC reads, weight 1 for the expert's frames and 0 for others, and the
    lerobot-train line (policies that take weights: PI0, PI0.5, SmolVLA). torch: a flat array with
    one weight per step, and a DataLoader that uses it. d3rlpy: the expert's segments as a replay
    buffer. robomimic: a copy of the file whose mask pubc_expert names the demonstrations that are
    the expert's almost throughout.
    """

    run_folder: Annotated[Path, tyro.conf.Positional, tyro.conf.arg(metavar="RUN")]
    """Folder of a finished `pubc filter` run."""
    trainer: Annotated[
        Literal["lerobot", "torch", "d3rlpy", "robomimic"], tyro.conf.arg(name="for")
    ]
    """Who reads it."""
    out: Path | None = None
    """Where to write; beside RUN if omitted."""
    chunk: int = 50
    """lerobot: chunk size of the policy that will be trained."""
    weighting: Literal["soft", "hard"] = "soft"
    """torch: the confidence itself, or 1 from one half on and 0 below."""
    min_segment: int = 10
    """d3rlpy: fewest steps of a segment."""
    least: float = 0.9
    """robomimic: share of a demonstration's steps that are the expert's."""
    force: bool = False
    """Replace an earlier file of `pubc weights`; for d3rlpy and robomimic, which get datasets, any
    dataset that pubc wrote there."""
    json: bool = False
    """Print one JSON document instead of text."""

    def run(self) -> dict[str, Any]:
        """Write the file, and say what to type next."""
        from pubc.runs.segments.trainer_tables import TABLE_KIND, read_judged

        judged = read_judged(self.run_folder)
        warn_unsound(self.run_folder, judged.document)
        name = self.run_folder.resolve().name
        out = self.out or self.run_folder.with_name(f"{name}-{self.trainer}{_SUFFIX[self.trainer]}")
        data = judged.document["data"]["path"]
        sources = (self.run_folder, None if data is None else Path(data))
        claim(out, TABLE_KIND, "dataset", force=self.force, file=True, sources=sources)
        document = {
            "run": str(self.run_folder),
            "for": self.trainer,
            "written": str(out),
            "steps": len(judged.confidence),
            "expert_steps": int((judged.confidence >= 0.5).sum()),
            **self._write(judged, out),
        }
        if not self.json:
            _show(document)
        return document

    def _write(self, judged: Any, out: Path) -> dict[str, Any]:
        from pubc.runs.segments import trainer_tables as tables
        from pubc.runs.segments.weights import weigh_steps

        data = judged.document["data"]["path"] or "DATA"
        if self.trainer == "lerobot":
            if judged.document["data"]["format"] != "lerobot":
                raise UsageError(
                    f"The table is for LeRobot datasets, and {data} is "
                    f"{judged.document['data']['format']}."
                )
            tables.write_progress(out, judged, chunk=self.chunk, overwrite=self.force)
            return {"next": tables.lerobot_line(Path(data), out)}
        if self.trainer == "torch":
            weights = weigh_steps(judged.confidence, self.weighting)
            tables.write_weights(out, weights, overwrite=self.force)
            return {"next": _LOADER.format(data=data, out=str(out))}
        if self.trainer == "d3rlpy":
            count = tables.write_buffer(
                out, judged, warn, shortest=self.min_segment, overwrite=self.force
            )
            return {
                "segments": count,
                "next": f"d3rlpy.dataset.ReplayBuffer.load({str(out)!r}, ...)",
            }
        count = tables.write_mask_file(out, judged, warn, least=self.least, overwrite=self.force)
        told = f"train.data={out} train.hdf5_filter_key={tables.MASK}"
        return {"demonstrations": count, "next": f"in the configuration of robomimic: {told}"}


COMMAND = Weights


def _show(document: dict[str, Any]) -> None:
    shown = ("run", "for", "written", "segments", "demonstrations")
    rows = [(name, str(document[name])) for name in shown if name in document]
    share = document["expert_steps"] / max(1, document["steps"])
    rows.append(("steps", f"{document['expert_steps']:,} of {document['steps']:,} ({share:.0%})"))
    facts(rows)
    say()
    say("next")
    say(document["next"])
