"""Named ways to filter, and what a recipe has to offer.

A recipe is a frozen dataclass of settings: `recipe_to_json` writes every field into run.json, and
`recipe_from_json` builds it again, so a field is a number, a word, a tuple or another such
dataclass. Entered in `RECIPES`, it has a name that `pubc filter --recipe` takes. It offers

`rounds(pile, key) -> Iterator[Round]`
    The method. Rounds are numbered 1, 2, ... in the order in which they are yielded, and the last
    one has a status that `pubc.runs.statuses` has words for. `pile.mixed` holds the unlabelled
    trajectories without rewards and sources, `pile.seed_positives` the seeds, which need not be
    part of it; `pile.known` says which of the mixed trajectories are seeds and `pile.known_bad`
    which are known not to be the expert's. All randomness comes from `key`. Networks go to
    `pile.bench.shelf`. `pile.done` holds the rounds of an interrupted run: they are yielded again,
    the same, without being trained again (`guarded_rounds` sees to that).
`judge`
    Applies the networks of a finished round to other trajectories, and rates single steps.
`threshold`, `loop`
    Where the ratings are cut, and when rounds end.
`uses_known_bad`
    Whether `rounds` looks at `pile.known_bad`; False where a recipe does not say. Where it does
    not look, the user is told.

A `Round` holds what was thought of every trajectory (`Verdict`: confidences of members, also in
the seeds), where that was cut (`Cut`), and which trajectories count as the expert's after it
(`selected`). `pubc.runs.find_expert.conclude` makes a `Result` of the rounds.
"""

from __future__ import annotations

import dataclasses
import types
import typing
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar, Literal, Protocol

from pubc.errors import DataError, UnknownNameError, UsageError
from pubc.pu.auto.opening import rounds_from_evidence
from pubc.pu.auto.ratio_cut import RatioCut
from pubc.pu.auto.residual import Residual
from pubc.pu.guarded_rounds import Loop, PatientLoop, guarded_rounds
from pubc.pu.judge import StoredJudge, Threshold
from pubc.pu.paper.ensemble import Ensemble
from pubc.pu.paper.threshold import fixed, valley
from pubc.pu.rounds import Pile, Round
from pubc.pu.second_opinion.looks.pile_views import OpinionSettings
from pubc.pu.steps.step_settings import StepSettings
from pubc.storage import check_settings
from pubc.streams import Key

__all__ = [
    "RECIPES",
    "Paper",
    "PaperGuarded",
    "Recipe",
    "get_recipe",
    "recipe_from_json",
    "recipe_to_json",
    "with_settings",
]


class Recipe(Protocol):
    """A judge, a threshold and a loop under one name; a frozen dataclass."""

    def rounds(self, pile: Pile, key: Key) -> Iterator[Round]:
        """Yield the rounds of a run."""
        ...

    @property
    def judge(self) -> StoredJudge:
        """Rates trajectories."""
        ...

    @property
    def threshold(self) -> Threshold:
        """Cuts the ratings."""
        ...

    @property
    def loop(self) -> Loop:
        """When the rounds end."""
        ...

    @property
    def step_settings(self) -> StepSettings:
        """How single steps are judged after the rounds."""
        ...


@dataclass(frozen=True, slots=True)
class Paper:
    """The published method; what would be a crash or an endless loop is a status instead."""

    uses_known_bad: ClassVar[bool] = False
    """The paper knows positives and unlabelled trajectories only."""
    step_settings: ClassVar[StepSettings] = StepSettings()
    """How single steps are judged, which the paper does not do."""
    ensemble: Ensemble = field(default_factory=Ensemble)
    """The judge: K bagged classifiers."""
    cut: Literal["valley"] | float = "valley"
    """The adaptive threshold, or a fixed one for the ablation."""
    order: int = 10
    """Order of the polynomial through the histogram."""
    bins: int = 100
    """Bins of the histogram."""
    loop: Loop = field(default_factory=Loop)
    """When the rounds end."""

    def __post_init__(self) -> None:
        if not 1 <= self.order < self.bins:
            raise UsageError(
                f"The order of the polynomial lies between 1 and the {self.bins} bins of the "
                f"histogram. Got {self.order}."
            )

    @property
    def judge(self) -> StoredJudge:
        """Rates trajectories."""
        return self.ensemble

    def rounds(self, pile: Pile, key: Key) -> Iterator[Round]:
        """Yield the rounds of Algorithm 1, guarded."""
        judge, threshold = self.judge, self.threshold
        return guarded_rounds(pile, judge=judge, threshold=threshold, key=key, loop=self.loop)

    @property
    def threshold(self) -> Threshold:
        """Cuts the ratings."""
        if isinstance(self.cut, str):
            return valley(self.bins, self.order)
        return fixed(self.cut)


@dataclass(frozen=True, slots=True)
class PaperGuarded(Paper):
    """The published method with bounds of ours on the threshold and on the work of a round."""

    ensemble: Ensemble = field(default_factory=lambda: Ensemble(subset=32_768))
    """The judge; more steps than this cost time and memory and changed nothing that was
    measured."""
    below: float = 0.96
    """Dips count below this share of the range of the confidences."""
    least: float = 0.05
    """Dips count with at least this share of the trajectories above them."""

    @property
    def threshold(self) -> Threshold:
        """Cuts the ratings."""
        if isinstance(self.cut, str):
            return valley(self.bins, self.order, self.below, self.least)
        return fixed(self.cut)


@dataclass(frozen=True, slots=True)
class Auto:
    """Evidence of several kinds splits the pile; imitators of both sides, out of fold, test it."""

    residual: Residual = field(default_factory=Residual)
    """The judge."""
    cut: RatioCut = field(default_factory=RatioCut)
    """The threshold."""
    loop: PatientLoop = field(default_factory=PatientLoop)
    """When the rounds end."""
    opinion: OpinionSettings = field(default_factory=OpinionSettings)
    """How evidence is gathered that splits the pile before the rounds, and that they are weighed
    against."""
    uses_known_bad: ClassVar[bool] = True
    """What is known to be bad is never on the expert's side."""
    step_settings: ClassVar[StepSettings] = StepSettings()
    """How single steps are judged after the rounds."""

    def rounds(self, pile: Pile, key: Key) -> Iterator[Round]:
        """Yield the opening, then the rounds that go on from its split."""
        return rounds_from_evidence(
            pile,
            judge=self.residual,
            threshold=self.cut,
            key=key,
            loop=self.loop,
            settings=self.opinion,
        )

    @property
    def judge(self) -> StoredJudge:
        """Rates trajectories."""
        return self.residual

    @property
    def threshold(self) -> Threshold:
        """Cuts the ratings."""
        return self.cut


RECIPES: dict[str, type[Any]] = {
    "auto": Auto,
    "paper": Paper,
    "paper-guarded": PaperGuarded,
}
"""Every recipe by name."""


def get_recipe(name: str) -> Recipe:
    """A recipe with its default settings.

    Raises:
        UnknownNameError: No recipe has that name.
    """
    if name not in RECIPES:
        raise UnknownNameError("recipe", name, RECIPES)
    made: Recipe = RECIPES[name]()
    return made


def recipe_to_json(recipe: Recipe) -> dict[str, Any]:
    """A recipe as JSON values: its name and every setting."""
    assert dataclasses.is_dataclass(recipe)
    names = [name for name, kind in RECIPES.items() if type(recipe) is kind]
    settings = dataclasses.asdict(recipe)
    return {"name": names[0] if names else type(recipe).__name__, **settings}


def recipe_from_json(document: Mapping[str, Any]) -> Recipe:
    """The recipe that `recipe_to_json` described.

    Raises:
        DataError: The document describes none.
    """
    settings = dict(document)
    name = settings.pop("name", None)
    if not isinstance(name, str) or name not in RECIPES:
        raise DataError(f"The run was made with a recipe {name!r} that pubc does not know.")
    try:
        made: Recipe = _build(RECIPES[name], settings)
        check_settings(made)
    except (TypeError, ValueError, KeyError) as error:
        raise DataError(f"The settings of recipe {name!r} cannot be read ({error}).") from None
    return made


def with_settings(recipe: Recipe, settings: Mapping[str, Any]) -> Recipe:
    """The recipe with some settings changed; `ensemble.classifiers` reaches inside."""
    changed: Any = recipe
    for path, value in settings.items():
        changed = _replace(changed, path.split("."), value)
    result: Recipe = changed
    return result


def _replace(thing: Any, path: list[str], value: Any) -> Any:
    known = [f.name for f in dataclasses.fields(thing)]
    if path[0] not in known:
        raise UnknownNameError("setting", path[0], known)
    inner = value if len(path) == 1 else _replace(getattr(thing, path[0]), path[1:], value)
    return replace(thing, **{path[0]: inner})


def _build(kind: Any, value: Any) -> Any:
    """A value of a field's type from JSON: dataclasses from objects, tuples from lists."""
    if isinstance(kind, type) and dataclasses.is_dataclass(kind):
        if not isinstance(value, Mapping):
            raise TypeError(f"expected settings of {kind.__name__}, found {str(value)[:60]!r}")
        hints = typing.get_type_hints(kind)
        return kind(**{name: _build(hints[name], inner) for name, inner in value.items()})
    origin = typing.get_origin(kind)
    if origin is tuple:
        return tuple(value)
    if origin in (typing.Union, types.UnionType) and isinstance(value, dict):
        (inner,) = (a for a in typing.get_args(kind) if dataclasses.is_dataclass(a))
        return _build(inner, value)
    return value
