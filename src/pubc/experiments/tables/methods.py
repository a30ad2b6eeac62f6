"""Filters by the names of their columns: the paper's baselines, its recipe, ours, and variants."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal

from pubc.experiments.cell import FilterSpec, Scale, SeedSpec

__all__ = ["DEVELOPED_ON", "METHODS", "method"]

DEVELOPED_ON = (
    "auto was developed on the locomotion policies of the zoo, on one simulated TriFinger push "
    "set and on the lift set of these tables (docs/method.md), so its figures on these flatter it."
)
"""What every table with a column for auto must say."""


def _baseline(loss: str) -> tuple[str, Mapping[str, Any]]:
    return "paper-guarded", {"ensemble.loss": loss, "ensemble.negatives": "unlabelled"}


METHODS: dict[str, tuple[str, Mapping[str, Any]]] = {
    "upu": _baseline("unbiased_pu"),
    "nnpu": _baseline("non_negative_pu"),
    "nnpu-clamp": _baseline("non_negative_pu_clamp"),
    "paper": ("paper", {}),
    "paper-guarded": ("paper-guarded", {}),
    "auto": ("auto", {}),
}
"""Column to recipe and the settings that differ from its own. The baselines have the paper's
loop, bagging, vote and threshold (Section 4.2: "we also employed the techniques"), with the
guards on the threshold, without which they keep a handful of trajectories in nearly every row."""


def method(
    name: str,
    scale: Scale,
    seeds: SeedSpec,
    *,
    settings: Mapping[str, Any] | None = None,
    decision: Literal["trajectory", "step"] = "trajectory",
) -> FilterSpec:
    """A filter of `METHODS`, at a scale, with further settings changed."""
    from pubc.pu.recipes import get_recipe, recipe_to_json, with_settings

    recipe, changes = METHODS[name]
    bounded = recipe != "auto" and scale.subset is not None
    sizes = {"ensemble.subset": scale.subset} if bounded else {}
    made = with_settings(get_recipe(recipe), {**sizes, **changes, **(settings or {})})
    return FilterSpec("pu", recipe=_plain(recipe_to_json(made)), seeds=seeds, decision=decision)


def _plain(value: Any) -> Any:
    if isinstance(value, dict):
        return {name: _plain(entry) for name, entry in value.items()}
    return [_plain(entry) for entry in value] if isinstance(value, list | tuple) else value
