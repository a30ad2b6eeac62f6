"""What can be asked of a run: the settings that `pubc filter` takes as flags.

One dataclass is the configuration in Python, the flags of the command and, as JSON, the first
half of run.json. It loads nothing heavy, so that `pubc filter --help` answers at once.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from pubc import formats
from pubc.runs.spread import HERE, Spread

if TYPE_CHECKING:
    from pubc.pu.judge import Bench
    from pubc.pu.recipes import Recipe

__all__ = ["DEFAULTS", "FilterConfig"]


@dataclass(frozen=True, slots=True)
class FilterConfig:
    """How to filter a pile of trajectories."""

    labels: Path | None = None
    """File of marks: labels.json of `pubc review`, or the flags of LeRobot's visualiser. What is
    good there, whole or in part, are the seeds; what is bad as a whole is never
    kept, and a trajectory with a bad stretch is unsure."""
    seed_top: float | None = None
    """Seeds are this share of the trajectories, by highest return, such as 0.05 or 5%; at least
    two. This is the default, with 0.004."""
    seed_episodes: str | None = None
    """Seeds are these trajectories: ids separated by commas, ranges by their ends,
    such as 3,17,40-45."""
    seed_from: Path | None = None
    """Seeds are all trajectories of this other dataset."""
    seed_source: str | None = None
    """Seeds are trajectories of this policy, drawn by --random-seed; needs a dataset that
    says which policy acted."""
    seed_steps_column: str | None = None
    """Seeds are the steps that this column of the dataset marks, such as LeRobot's intervention:
    true or 1 where the expert acts."""
    seed_count: int = 2
    """How many to draw with --seed-source."""
    bad_episodes: str | None = None
    """Trajectories that are known not to be the expert's: ids separated by commas. They are never
    kept; recipe paper does not look at them otherwise."""
    recipe: str = "auto"
    """`auto`; `paper` for the published method; `paper-guarded` for that with bounds of ours on
    its threshold and on the work of a round."""
    classifiers: int | None = None
    """Recipe paper: size of the ensemble, odd; more make the vote steadier."""
    order: int | None = None
    """Recipe paper: order of the polynomial through the histogram."""
    max_rounds: int | None = None
    """Most rounds before giving up."""
    truth: str | None = None
    """Name of the expert among the dataset's sources: measure accuracy. The filter itself
    never sees it."""
    random_seed: int = 0
    """Same seed, same data, same machine: same result."""
    device: Literal["auto", "cpu", "cuda"] = "auto"
    """Where to compute."""
    workers: int = 0
    """Networks trained at the same time; 0 means one per core. Does not change results."""
    to: str | None = None
    """Format for the kept trajectories. If omitted it is the input's own, or a store where pubc
    reads that format but does not write it (trifinger, diffusion)."""
    mask: bool = False
    """robomimic: also write masked.hdf5, a copy of the whole file whose mask `pubc_keep` names
    the kept demonstrations, for `train.hdf5_filter_key`."""
    unsure: Literal["drop", "keep"] = "drop"
    """What happens to trajectories that could be either: kept.* and keep.json leave them out, or
    hold them too. keep.json lists them apart in any case."""
    segments: bool = False
    """kept.* holds the expert's segments, cut out of all trajectories, each with the place that
    it comes from; docs/segments.md."""
    min_segment: int = 10
    """With --segments: fewest steps of a segment."""
    segment_margin: int = 2
    """With --segments: steps left out next to a fault."""
    drop_idle: bool = False
    """With --segments: leave out stretches that stand still where the seeds moved on and never
    stood still."""
    per_step: bool = False
    """Also write a value for every step, steps.npy."""
    reading: formats.ReadOptions = formats.FROM_COMMAND_LINE
    """How to read the data."""
    spread: Spread = HERE
    """Which workers go over the data."""

    def make_recipe(self) -> Recipe:
        """The recipe with the settings that were given.

        Raises:
            UnknownNameError: No recipe has that name, or it has no such setting.
            UsageError: A setting has an impossible value.
        """
        from pubc.pu.recipes import get_recipe, with_settings

        settings = {
            "ensemble.classifiers": self.classifiers,
            "order": self.order,
            "loop.max_rounds": self.max_rounds,
        }
        given = {name: value for name, value in settings.items() if value is not None}
        return with_settings(get_recipe(self.recipe), given)

    def make_bench(self) -> Bench:
        """Who works.

        Raises:
            UsageError: There is no such number of workers.
        """
        from pubc.pu.judge import Bench

        return Bench(workers=self.workers, device=self.device)


DEFAULTS = FilterConfig()
"""What is done where nothing is asked for."""
