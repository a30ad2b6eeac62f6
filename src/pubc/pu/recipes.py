"""Named ways to filter. A recipe is a judge, a threshold and a loop; ablations are arguments."""

from __future__ import annotations

import dataclasses
import types
import typing
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any, Literal, Protocol

from pubc.errors import DataError, UnknownNameError
from pubc.pu.ensemble import Ensemble
from pubc.pu.filter import Loop
from pubc.pu.judge import StoredJudge
from pubc.pu.threshold import Threshold, find_valley, fixed

__all__ = [
    "RECIPES",
    "Paper",
    "Recipe",
    "get_recipe",
    "recipe_from_json",
    "recipe_to_json",
    "with_settings",
]


class Recipe(Protocol):
    """A judge, a threshold and a loop under one name; a frozen dataclass."""

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


@dataclass(frozen=True, slots=True)
class Paper:
    """The paper to the letter, guarded so that it never crashes."""

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

    @property
    def judge(self) -> StoredJudge:
        """Rates trajectories."""
        return self.ensemble

    @property
    def threshold(self) -> Threshold:
        """Cuts the ratings."""
        if isinstance(self.cut, str):
            return partial(find_valley, bins=self.bins, degree=self.order)
        return fixed(self.cut)


RECIPES: dict[str, type[Any]] = {"paper": Paper}
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
    if name not in RECIPES:
        raise DataError(f"The run was made with a recipe {name!r} that pubc does not know.")
    try:
        made: Recipe = _build(RECIPES[name], settings)
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
        hints = typing.get_type_hints(kind)
        return kind(**{name: _build(hints[name], inner) for name, inner in value.items()})
    origin = typing.get_origin(kind)
    if origin is tuple:
        return tuple(value)
    if origin in (typing.Union, types.UnionType) and isinstance(value, dict):
        (inner,) = (a for a in typing.get_args(kind) if dataclasses.is_dataclass(a))
        return _build(inner, value)
    return value
