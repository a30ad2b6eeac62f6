"""`ExpertFinder`: the filter as an estimator, which is a run folder once it is fitted.

It follows the rules of scikit-learn's estimators (parameters, cloning, representation, fitting
again) without needing scikit-learn. What `fit` trains lies in a run folder in a temporary place;
`save` completes that folder with everything `pubc filter` writes, `load` opens either.
"""

from __future__ import annotations

import importlib
import inspect
import shutil
import warnings
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from numpy.typing import NDArray

from pubc.api.fitted_in_memory import FittedInMemory, NetworksPlace, refuse_damage
from pubc.errors import UnknownNameError, UsageError
from pubc.pu.judge import Bench
from pubc.pu.recipes import Recipe, get_recipe, recipe_from_json, with_settings
from pubc.runs.apply_run import TrainedFilter, open_filter
from pubc.runs.filter_config import FilterConfig
from pubc.runs.filter_run import Clock, run_rounds
from pubc.runs.find_expert import Result, conclude
from pubc.runs.folder.run_files import KIND
from pubc.runs.folder.run_folder import RunFolder
from pubc.runs.folder.run_reading import Run, read_run
from pubc.runs.folder.stored_result import result_of
from pubc.runs.named_trajectories import Named
from pubc.runs.plan_run import plan_in_memory
from pubc.runs.segments.steps_file import read_steps
from pubc.runs.segments.weights import step_sampler
from pubc.storage import MANIFEST, atomic_folder
from pubc.streams import Key
from pubc.trajectory import TrajectorySet

if TYPE_CHECKING:
    from torch.utils.data import WeightedRandomSampler

__all__ = ["ExpertFinder"]

Mask = NDArray[np.bool_]


class ExpertFinder:
    """Finds the trajectories of the expert that a few seed trajectories come from.

    Args:
        recipe: `auto`, `paper`, or a recipe of your own.
        settings: Settings of the recipe to change, for example
            `{"ensemble.classifiers": 5}` for `paper`.
        random_seed: Same seed, same data, same machine: same result.
        device: `auto`, `cpu` or `cuda`.
        workers: Networks trained at the same time; 0 means one per core.

    Attributes:
        mask_: Which trajectories are the expert's, shape (trajectories,).
        confidence_: How much each looks like the expert's, shape (trajectories,).
        status_: How the run ended, in a word; `pubc.runs.statuses` says what it means.
        sound_: Whether the mask can be trusted.
        steps_: The chance that each step is the expert's, shape (steps,).
        result_: All of it with the evidence, a `pubc.Result`.

    Example:
        >>> import pubc
        >>> mixed = pubc.load("pile.hdf5")  # doctest: +SKIP
        >>> finder = pubc.ExpertFinder().fit(mixed, seeds=["demo_3", "demo_17"])  # doctest: +SKIP
        >>> policy = pubc.clone(mixed[finder.mask_])  # doctest: +SKIP
    """

    mask_: Mask
    confidence_: NDArray[np.float64]
    status_: str
    sound_: bool
    result_: Result

    def __init__(
        self,
        *,
        recipe: str | Recipe = "auto",
        settings: Mapping[str, Any] | None = None,
        random_seed: int = 0,
        device: Literal["auto", "cpu", "cuda"] = "auto",
        workers: int = 0,
    ) -> None:
        self.recipe = recipe
        self.settings = settings
        self.random_seed = random_seed
        self.device = device
        self.workers = workers

    def fit(
        self, mixed: TrajectorySet, seeds: Named | None = None, bad: Named | None = None
    ) -> ExpertFinder:
        """Find the expert in a pile.

        Args:
            mixed: The pile. Its rewards and sources are not looked at.
            seeds: A few trajectories of the expert: ids, positions or a boolean mask into
                `mixed`, or a set, which may come from elsewhere.
            bad: Trajectories of `mixed` that are known not to be the expert's, named likewise.

        Raises:
            UsageError: Seeds are missing, or named in a way that means nothing.
            DataError: The seeds cannot belong to the pile.
        """
        if not isinstance(mixed, TrajectorySet):
            raise UsageError(
                f"fit takes a TrajectorySet. Got {type(mixed).__name__}; make one with "
                "pubc.load, pubc.from_arrays or pubc.from_episodes."
            )
        if seeds is None:
            raise UsageError(
                "Which trajectories are known to be the expert's? Pass seeds: ids, positions, a "
                "boolean mask or a set."
            )
        clock = Clock()
        with clock.measure("read"):
            planned = plan_in_memory(self._config(), mixed, seeds, bad, self._recipe())
        for problem in planned.ready.problems:
            warnings.warn(problem.message, stacklevel=2)
        place = NetworksPlace()
        folder = RunFolder(place.path)
        bench = Bench(workers=self.workers, device=self.device, shelf=folder.shelf)
        rounds = run_rounds(planned, folder, bench, clock)
        result = conclude(
            planned.ready, rounds, planned.recipe, Key(planned.config.random_seed), bench
        )
        data = planned.document["data"]
        trained = TrainedFilter(
            judge=planned.recipe.judge,
            shelf=folder.shelf,
            number=result.round,
            threshold=result.threshold,
            sizes=(data["observation_size"], data["action_size"]),
            name="this finder",
        )
        self._set(result, trained, FittedInMemory(planned, result, clock, place))
        return self

    def predict(self, trajectories: TrajectorySet) -> Mask:
        """Which trajectories of other data look like the expert's, shape (trajectories,).

        Trajectories that the finder was fitted on are rated too high: for those use `mask_`.

        Raises:
            UsageError: The finder is not fitted.
            DataError: The fit found no threshold, or the data is of another robot.
        """
        return self._fitted().apply(trajectories, self._bench()).keep

    def score_samples(self, trajectories: TrajectorySet) -> NDArray[np.float64]:
        """How much each trajectory of other data looks like the expert's.

        Raises:
            UsageError: The finder is not fitted.
            DataError: The data is of another robot.
        """
        return self._fitted().confidence(trajectories, self._bench())

    def score_steps(self, trajectories: TrajectorySet) -> NDArray[np.float32]:
        """What each step adds to the confidence in its trajectory, in order, shape (steps,).

        Raises:
            UsageError: The finder is not fitted.
            DataError: The data is of another robot.
        """
        blocks = list(self._fitted().steps(trajectories, self._bench()))
        return np.concatenate(blocks) if blocks else np.zeros(0, dtype=np.float32)

    @property
    def steps_(self) -> NDArray[np.float32]:
        """The chance that each step of the fitted pile is the expert's, shape (steps,).

        Judged when first asked for; a saved run has it in steps.npz.
        """
        if not hasattr(self, "_home"):
            raise AttributeError("An ExpertFinder has steps_ once it is fitted.")
        if isinstance(self._home, FittedInMemory):
            return self._home.steps()
        return read_steps(self._home.path, int(self._home.scores.lengths.sum()))[0]

    def sampler(self, steps: int | None = None) -> WeightedRandomSampler:
        """Draws steps of the fitted pile as often as they are the expert's, for a DataLoader.

        Args:
            steps: Steps in one pass; as many as the pile is expected to hold of the expert's
                if omitted.

        Raises:
            UsageError: No step looks like the expert's.
        """
        return step_sampler(self.steps_, steps)

    def save(self, path: Path | str, *, overwrite: bool = False) -> None:
        """Write the run folder that `pubc filter` would have written.

        Raises:
            UsageError: The finder is not fitted, or something is there already.
            EnvironmentFailure: The disk said no.
        """
        self._fitted()
        if isinstance(self._home, FittedInMemory):
            self._home.write(Path(path), overwrite)
            return
        source = self._home.path
        refuse_damage(source)
        with atomic_folder(Path(path), kind=KIND, overwrite=overwrite) as new:
            ignored = shutil.ignore_patterns(MANIFEST, ".lock")
            shutil.copytree(source, new, dirs_exist_ok=True, ignore=ignored)

    @classmethod
    def load(cls, path: Path | str) -> ExpertFinder:
        """The finder behind a run folder, from `save` or from `pubc filter`.

        Raises:
            DataError: It is no finished run, or its networks are not as the run left them.
        """
        trained, document = open_filter(Path(path))
        run = read_run(Path(path))
        recipe = recipe_from_json(document["recipe"])
        name = str(document["recipe"]["name"])
        finder = cls(
            recipe=name if recipe == get_recipe(name) else recipe,
            random_seed=document["random_seed"],
            device=document["device"],
        )
        finder._set(result_of(run), trained, run)
        return finder

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """Every parameter by name, as scikit-learn asks for them."""
        return {name: getattr(self, name) for name in _parameters()}

    def set_params(self, **parameters: Any) -> ExpertFinder:
        """Change parameters by name; takes effect at the next `fit`.

        Raises:
            UnknownNameError: There is no such parameter.
        """
        for name, value in parameters.items():
            if name not in _parameters():
                raise UnknownNameError("parameter of ExpertFinder", name, _parameters())
            setattr(self, name, value)
        return self

    def __repr__(self) -> str:
        usual = _parameters()
        given = [
            f"{name}={value!r}" for name, value in self.get_params().items() if value != usual[name]
        ]
        return f"ExpertFinder({', '.join(given)})"

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "_home")

    def __sklearn_tags__(self) -> Any:
        # Only scikit-learn asks for these, so where they are asked for it is installed.
        sklearn = importlib.import_module("sklearn.utils")
        target = sklearn.TargetTags(required=False)
        return sklearn.Tags(estimator_type=None, target_tags=target)

    def _set(self, result: Result, trained: TrainedFilter, home: FittedInMemory | Run) -> None:
        self.result_ = result
        self.mask_, self.confidence_ = result.mask, result.confidence
        self.status_, self.sound_ = result.status, result.sound
        self._trained, self._home = trained, home

    def _fitted(self) -> TrainedFilter:
        if not hasattr(self, "_home"):
            raise UsageError(
                "This ExpertFinder is not fitted yet. Call fit(mixed, seeds=...), or "
                "ExpertFinder.load(run)."
            )
        return self._trained

    def _bench(self) -> Bench:
        return Bench(workers=self.workers, device=self.device)

    def _recipe(self) -> Recipe:
        named = get_recipe(self.recipe) if isinstance(self.recipe, str) else self.recipe
        return with_settings(named, self.settings or {})

    def _config(self) -> FilterConfig:
        return FilterConfig(
            recipe=self.recipe if isinstance(self.recipe, str) else type(self.recipe).__name__,
            random_seed=self.random_seed,
            device=self.device,
            workers=self.workers,
        )


def _parameters() -> dict[str, Any]:
    """Names and defaults of the parameters."""
    found = inspect.signature(ExpertFinder).parameters.values()
    return {parameter.name: parameter.default for parameter in found}
