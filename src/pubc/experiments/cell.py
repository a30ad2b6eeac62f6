"""A cell: one number of a table before it is computed, and everything that fixes it.

A cell names a dataset, a filter, a learner and a random seed as plain data. Its hash, with
the version of the code that computes it, is the key of its record, so a finished cell is never
computed twice. Where it stands in a table is not part of the hash: tables share what is equal.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any, Literal

from pubc.errors import UsageError

__all__ = [
    "SCALES",
    "Cell",
    "DatasetSpec",
    "FilterSpec",
    "LearnerSpec",
    "Scale",
    "SeedSpec",
    "StepFilterSpec",
    "Table",
]


@dataclass(frozen=True, slots=True)
class DatasetSpec:
    """A recipe of `pubc.collect` with its size, or a user's file by its content."""

    recipe: str | None = None
    """Name of a recipe, such as `ant:E+W`; None for a file."""
    trajectories_per_source: int | None = None
    """Whole trajectories of each source."""
    steps_per_source: int | None = None
    """Steps of each source instead."""
    seed_steps: int = 0
    """Steps of the expert that are collected beside the mixture, to draw seed positives from."""
    random_seed: int = 0
    """Of the collection."""
    sources: tuple[str, ...] | None = None
    """Only the trajectories of these sources; all if omitted. Mixtures of the same sources are
    cut from one collection."""
    name: str | None = None
    """What `--data` calls a user's file."""
    sha256: str | None = None
    """Hash of its content; None while the user has not given it."""

    def __post_init__(self) -> None:
        if (self.recipe is None) == (self.name is None):
            raise UsageError("A dataset is either a recipe or a file with a name.")

    @property
    def given(self) -> bool:
        """Whether there is something to compute on."""
        return self.recipe is not None or self.sha256 is not None


@dataclass(frozen=True, slots=True)
class SeedSpec:
    """How seed positives are drawn: one of the four ways."""

    trajectories: int | None = None
    """So many of the expert's trajectories inside the mixed set, at random."""
    steps: int | None = None
    """The expert's trajectories, at random, until they hold so many steps; none is cut. They are
    those that were collected beside the mixed set, or inside it where there are no others."""
    share: float | None = None
    """The same with a share of all steps of the mixed set; the last trajectory is cut."""
    top: float | None = None
    """The share of all trajectories with the highest returns, at least two."""

    def __post_init__(self) -> None:
        if sum(value is not None for value in asdict(self).values()) != 1:
            raise UsageError("Seeds are drawn in one way: trajectories, steps, share or top.")


@dataclass(frozen=True, slots=True)
class FilterSpec:
    """Which trajectories a learner sees."""

    kind: Literal["none", "top_returns", "pu"] = "none"
    """All of them, those with the highest returns, or those that a recipe selects."""
    share: float | None = None
    """For `top_returns`: of all trajectories."""
    recipe: Mapping[str, Any] | None = None
    """For `pu`: what `pubc.pu.recipes.recipe_to_json` makes of the recipe."""
    seeds: SeedSpec | None = None
    """The seed positives of a recipe, or of a learner that wants some."""
    decision: Literal["trajectory", "step"] = "trajectory"
    """Whether whole trajectories are judged, or every step on its own."""

    def __post_init__(self) -> None:
        asked = {"none": True, "top_returns": self.share, "pu": self.recipe and self.seeds}
        if not asked[self.kind]:
            raise UsageError(f"A filter {self.kind!r} lacks its share, or its recipe and seeds.")


JUDGING = 2
"""How often judging steps has come to give something else; raised by hand."""


@dataclass(frozen=True, slots=True)
class StepFilterSpec(FilterSpec):
    """A recipe that selects trajectories, after which every step of all of them is judged.

    A kind of its own, so that the hashes of all other filters stay what they are.
    """

    shortest: int = 10
    """Fewest steps of a segment, as in `--min-segment`."""
    margin: int = 2
    """Steps left out next to a fault, as in `--segment-margin`."""
    judging: int = JUDGING
    """Which version of judging steps it is."""


@dataclass(frozen=True, slots=True)
class LearnerSpec:
    """What learns from the selected trajectories, and how it is measured."""

    algo: str
    """A learner of `pubc.policies`."""
    environment: str
    """Where it is evaluated."""
    options: Mapping[str, Any] = field(default_factory=dict)
    """Of `pubc.policies.train_options.TrainOptions`."""
    evaluation_trajectories: int = 100
    """How many trajectories are played."""
    reference: tuple[float, float] | None = None
    """Returns that count as scores 0 and 1; those of `pubc.metrics` if omitted."""
    curve_every: int | None = None
    """Updates between two points of a learning curve; None for no curve."""
    curve_trajectories: int = 10
    """How many trajectories are played for a point."""


@dataclass(frozen=True, slots=True)
class Cell:
    """One number of a table."""

    row: str
    """Where it stands."""
    column: str
    """Where it stands."""
    dataset: DatasetSpec
    """What it is computed on."""
    filter: FilterSpec | None = None
    """What is selected; None where nothing is asked of a filter."""
    learner: LearnerSpec | None = None
    """What learns from that; None where the selection itself is measured."""
    random_seed: int = 0
    """Of the seeds that are drawn, the filter and the learner."""
    part: str | None = None
    """The source to look at, for cells about a dataset itself; which steps to learn from, for
    learners on judged steps."""
    paper: float | str | None = None
    """The paper's figure, or its mark for a failure; None where it has none."""
    measure: str = "accuracy"
    """The value that the table shows."""
    details: tuple[str, ...] = ()
    """Large values that the record shall hold too, such as `trace`."""

    def identity(self) -> dict[str, Any]:
        """Everything that fixes the result but the code, as JSON values."""
        return {
            "dataset": _plain(asdict(self.dataset)),
            "filter": None if self.filter is None else _plain(asdict(self.filter)),
            "learner": None if self.learner is None else _plain(asdict(self.learner)),
            "part": self.part,
            "random_seed": self.random_seed,
        }


@dataclass(frozen=True, slots=True)
class Scale:
    """How large everything is."""

    name: str
    """What the user asks for."""
    trajectories_per_source: int | None = None
    """Trajectories of each source of a mixture."""
    steps_per_source: int | None = None
    """Steps of each source instead."""
    seeds: SeedSpec = field(default_factory=lambda: SeedSpec(steps=2000))
    """Seed positives of the locomotion mixtures."""
    seed_pool: int = 20_000
    """Steps of the expert beside a mixture; every random seed draws its seed positives there."""
    subset: int | None = None
    """Most steps on which one classifier of the paper's recipes and of the baselines trains;
    None for what the recipe says."""
    updates: int = 1_000_000
    """Gradient steps of a learner."""
    fixed_updates: int | None = None
    """Gradient steps of every learner, cloning too; None for what the table says of each."""
    evaluation_trajectories: int = 100
    """Trajectories that a learned policy plays."""

    def dataset(self, recipe: str, sources: tuple[str, ...] | None = None) -> DatasetSpec:
        """A mixture at this scale, or some sources of it."""
        sizes = (self.trajectories_per_source, self.steps_per_source)
        return DatasetSpec(recipe, *sizes, seed_steps=self.seed_pool, sources=sources)


SCALES: dict[str, Scale] = {
    "small": Scale(
        "small",
        steps_per_source=100_000,
        subset=4096,
        updates=10_000,
        evaluation_trajectories=20,
    ),
    "paper": Scale("paper", steps_per_source=500_000),
}
"""The scales that a user can ask for."""

MakeCells = Callable[[Scale, int, Mapping[str, DatasetSpec]], Sequence[Cell]]
"""Maps a scale, a number of random seeds and the user's files by name to cells."""


@dataclass(frozen=True, slots=True)
class Table:
    """A table of the paper, or one of ours."""

    name: str
    """What the user asks for."""
    title: str
    """One line."""
    caption: str
    """What the numbers are and how they were made."""
    scaled_down: Mapping[str, str]
    """For each scale: what differs from the paper, in words."""
    rows: tuple[str, ...]
    """Rows in order."""
    columns: tuple[str, ...]
    """Columns in order."""
    cells: MakeCells
    """Lists the cells."""
    unit: Literal["percent", "score", "count", "return"] = "percent"
    """How a value is shown."""
    direction: Literal["higher", "lower", "neither"] = "higher"
    """What is better."""
    data: Mapping[str, str] = field(default_factory=dict)
    """Files that the user can give, by name, with what each one must be."""
    extra: Mapping[str, Any] = field(default_factory=dict)
    """Further figures of the paper that a page may show beside ours, as JSON values."""
    quick: Scale | None = None
    """What `--quick` computes, in minutes; None where `small` is the smallest."""

    def differences(self, scale: Scale) -> str:
        """What differs from the paper at a scale, in words."""
        said = self.scaled_down.get(scale.name, "")
        if scale.fixed_updates is None:
            return said
        return f"{said} Every learner makes {scale.fixed_updates:,} updates.".strip()

    def file(self, name: str, data: Mapping[str, DatasetSpec]) -> DatasetSpec:
        """A user's file; one that is not given stays a name."""
        return data.get(name, DatasetSpec(name=name))


def _plain(value: Any) -> Any:
    """Tuples as lists, as JSON gives them back."""
    if isinstance(value, Mapping):
        return {str(key): _plain(entry) for key, entry in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(entry) for entry in value]
    return value
