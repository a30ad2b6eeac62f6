"""Making datasets: recipes, policies that act, and the mixtures the paper's evidence rests on.

request = Request(find("ant:E+W"), steps_per_source=100_000)
collect(request, "ant-mixed.npz")
"""

from pubc.collect.mixture_recipes import RECIPES, Recipe, Source, custom, find
from pubc.collect.mixtures import Collected, Progress, collect, collecting
from pubc.collect.request import Request

__all__ = [
    "RECIPES",
    "Collected",
    "Progress",
    "Recipe",
    "Request",
    "Source",
    "collect",
    "collecting",
    "custom",
    "find",
]
