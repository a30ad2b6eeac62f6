"""From a pile and a few seeds to the expert: the one call most users need.

`find_expert` is `prepare`, a loop over the rounds of a recipe, and `conclude`; whoever wants to
own the loop calls the three parts.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pubc.errors import UsageError
from pubc.pu.auto.opening import decisive
from pubc.pu.auto.quality import Quality, estimate
from pubc.pu.judge import Bench
from pubc.pu.pile_statistics import Survey, survey
from pubc.pu.recipes import Recipe, get_recipe, recipe_to_json
from pubc.pu.rounds import Pile, Round
from pubc.pu.second_opinion.opinion import Opinion, form_opinion
from pubc.runs.advice import advise
from pubc.runs.named_trajectories import Named, bad_in, seeds_in
from pubc.runs.soundness import Weighed, asks_again, confirms, weigh
from pubc.runs.statuses import SOUND
from pubc.select import check_seeds, distinct, locate
from pubc.streams import Key
from pubc.trajectory import Columns, Problem, TrajectorySet

__all__ = ["Prepared", "Result", "conclude", "find_expert", "prepare"]

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]
Mask = NDArray[np.bool_]


@dataclass(frozen=True, slots=True, eq=False)
class Prepared:
    """A pile and its seeds, checked, without anything that a filter may not see."""

    mixed: TrajectorySet
    """Observations and actions only: no rewards, no sources, no extras."""
    seed_positives: TrajectorySet
    """The same of the seeds."""
    seeds: Mask
    """Which mixed trajectories are seeds."""
    known_bad: Mask
    """Which mixed trajectories are known not to be the expert's."""
    facts: Survey
    """Ranges, moments and fingerprint of the pile."""
    problems: tuple[Problem, ...]
    """What is odd about the seeds, in words."""
    seed_steps: Mask | None = None
    """Which steps of `mixed` are the expert's for sure, where that was said of steps."""
    foretold: tuple[bool, ...] = ()
    """For each mark that a run had said something of before, whether it was right."""
    bad_stretches: tuple[tuple[int, int, int], ...] = ()
    """Bad steps of other trajectories: position, first step, the step after the last."""

    def pile(self, bench: Bench, done: Sequence[Round] = ()) -> Pile:
        """Ready for a recipe to go over it."""
        return Pile(
            self.mixed, self.seed_positives, self.seeds, self.facts, bench, done, self.known_bad
        )


@dataclass(frozen=True, slots=True, eq=False)
class Result:
    """Which trajectories are the expert's, how sure that is, and why."""

    mask: Mask
    """True for the expert's, shape (trajectories,)."""
    confidence: Floats
    """Confidence in each, shape (trajectories,): the mean of the last round, or where evidence
    decided how much speaks for a trajectory, from 0 to 1."""
    votes: Integers
    """Votes of the last round, shape (trajectories,)."""
    threshold: float | None
    """Where the confidences were cut; None where no cut was found."""
    status: str
    """How the run ended; see `pubc.runs.statuses.STATUSES`."""
    seeds: Mask
    """Which mixed trajectories are seeds."""
    round: int
    """Number of the round that holds the result."""
    rounds: tuple[Round, ...]
    """Every round with its evidence."""
    quality: Quality
    """Label-free estimate of how right the mask is."""
    advice: tuple[str, ...]
    """What to try next, in words."""
    problems: tuple[Problem, ...]
    """What was odd about the seeds."""
    unsure: Mask
    """Trajectories that could be either; none of them is in `mask`."""
    reasons: tuple[str, ...]
    """Why each trajectory is unsure or dropped; empty for kept ones."""
    opinion: Opinion | None
    """What evidence of several kinds says; None for recipes that gather none."""
    weighed: Weighed
    """How rounds, evidence and controls were weighed."""
    network_threshold: float | None
    """Where confidences of the networks of `round` are cut; other than `threshold` where evidence
    decided."""

    @property
    def sound(self) -> bool:
        """Whether the mask can be trusted: the rounds agreed, and nothing contradicts them."""
        return self.status in SOUND

    def __repr__(self) -> str:
        kept = int(self.mask.sum())
        return f"Result({kept:,} of {len(self.mask):,} kept, {self.status})"


def find_expert(
    mixed: TrajectorySet,
    seed_positives: Named,
    *,
    bad: Named | None = None,
    recipe: str | Recipe = "auto",
    random_seed: int = 0,
    device: str = "auto",
    workers: int = 0,
    on_round: Callable[[Round], None] = lambda done: None,
) -> Result:
    """Find every trajectory of the expert that the seed positives come from.

    Args:
        mixed: The pile. Its sources, if it has any, are not looked at.
        seed_positives: A few trajectories of the expert: a set, or which of `mixed` they are,
            by ids, positions or a boolean mask.
        bad: Trajectories of `mixed` that are known not to be the expert's, named likewise.
            Not every recipe looks at them.
        recipe: `auto`, `paper`, or a recipe of your own.
        random_seed: Same seed, same data, same machine: same result.
        device: `auto`, `cpu` or `cuda`.
        workers: Networks trained at the same time; 0 means one per core.
        on_round: Called with each finished round.

    Example:
        >>> import pubc
        >>> mixed = pubc.load("mixed.npz")  # doctest: +SKIP
        >>> found = pubc.find_expert(mixed, [3, 17])  # doctest: +SKIP
        >>> pubc.save("expert.npz", mixed[found.mask])  # doctest: +SKIP
    """
    chosen = get_recipe(recipe) if isinstance(recipe, str) else recipe
    ready = prepare(mixed, seeds_in(mixed, seed_positives), bad_in(mixed, bad), chosen)
    bench = Bench(workers=workers, device=device)
    rounds = []
    for done in chosen.rounds(ready.pile(bench), Key(random_seed)):
        rounds.append(done)
        on_round(done)
    return conclude(ready, rounds, chosen, Key(random_seed), bench)


def prepare(
    mixed: TrajectorySet,
    seed_positives: TrajectorySet,
    known_bad: Mask | None = None,
    recipe: Recipe | None = None,
) -> Prepared:
    """Check the seeds, and take away everything that a filter may not see.

    A seed that repeats another counts once.

    Args:
        mixed: The pile.
        seed_positives: A few trajectories of the expert.
        known_bad: Which mixed trajectories are known not to be the expert's.
        recipe: What will filter; told about what it does not look at.

    Raises:
        DataError: The seeds cannot belong to the pile, or there is nothing to tell apart.
        UsageError: There are no seeds.
    """
    problems = check_seeds(mixed, seed_positives)
    single = distinct(seed_positives)
    if len(single) < len(seed_positives):
        seed_positives = seed_positives[single]
    places = locate(mixed, seed_positives)
    seeds = np.zeros(len(mixed), dtype=np.bool_)
    seeds[places[places >= 0]] = True
    if seeds.all():
        raise UsageError(
            "Every trajectory of the mixed set is a seed, so there is nothing to find."
        )
    bad = np.zeros(len(mixed), dtype=np.bool_) if known_bad is None else known_bad
    problems += _about_bad(mixed, seeds, bad, recipe)
    blind_mixed = _blind(mixed)
    if seed_positives.columns is mixed.columns:
        blind_seeds = replace(_blind(seed_positives), columns=blind_mixed.columns)
    elif (places >= 0).all():
        # Copies of mixed trajectories: the originals stand in for them.
        blind_seeds = blind_mixed[places]
    else:
        blind_seeds = _blind(seed_positives)
    return Prepared(blind_mixed, blind_seeds, seeds, bad, survey(blind_mixed), problems)


def conclude(
    ready: Prepared, rounds: Sequence[Round], recipe: Recipe, key: Key, bench: Bench
) -> Result:
    """The result of finished rounds, weighed against evidence where the recipe gathers some."""
    last = decisive(rounds)
    status = last.status or "max_rounds"
    quality = estimate(last)
    settings, opinion = getattr(recipe, "opinion", None), None
    if settings is not None:
        pile = ready.pile(bench)
        opinion = form_opinion(pile, key, settings)
        if opinion is not None and asks_again(opinion, last.selected, status):
            again = form_opinion(pile, key, settings, last.selected)
            if again is not None and confirms(again, last.selected):
                opinion = again
    bench.memory.pop("looks", None)  # What comes next needs the room.
    found = last.selected, quality.borderline, status
    if opinion is None:
        weighed = _without_opinion(*found)
    else:
        weighed = weigh(*found, opinion, ready.seeds, ready.known_bad, ready.foretold)
    evident = opinion is not None and weighed.by_evidence
    seeds, named = len(ready.seed_positives), len(weighed.lonely_seeds)
    advice = advise(weighed.status, last, rounds, quality, seeds, named)
    partly = np.zeros_like(weighed.kept)
    partly[[at for at, _, _ in ready.bad_stretches]] = True
    return Result(
        mask=weighed.kept & ~ready.known_bad & ~partly,
        confidence=opinion.belief if opinion is not None and evident else last.confidence,
        votes=last.votes,
        threshold=0.5 if evident else last.cut.threshold,
        status=weighed.status,
        seeds=ready.seeds,
        round=last.number,
        rounds=tuple(rounds),
        quality=quality,
        advice=(*weighed.doubts, *advice),
        problems=ready.problems,
        unsure=weighed.unsure | (weighed.kept & partly & ~ready.known_bad),
        reasons=_with_marks(weighed.reasons, ready),
        opinion=opinion,
        weighed=weighed,
        network_threshold=last.cut.threshold,
    )


def _with_marks(reasons: tuple[str, ...], ready: Prepared) -> tuple[str, ...]:
    """Why each trajectory is not kept, where somebody has said so too."""
    said = list(reasons)
    for at in np.flatnonzero(ready.known_bad).tolist():
        said[at] = "named or marked as bad"
    for at, start, stop in reversed(ready.bad_stretches):
        said[at] = f"steps {start} to {stop - 1} are marked bad"
    return tuple(said)


def _about_bad(
    mixed: TrajectorySet, seeds: Mask, bad: Mask, recipe: Recipe | None
) -> tuple[Problem, ...]:
    """See that what is known to be bad can be, and say so where it is not looked at."""
    both = np.flatnonzero(seeds & bad)
    if len(both):
        raise UsageError(
            f"Trajectory {mixed.ids[both[0]]!s} is named as a seed and as bad. It cannot be both."
        )
    if recipe is None or not bad.any() or getattr(recipe, "uses_known_bad", False):
        return ()
    name = recipe_to_json(recipe)["name"]
    return (
        Problem(
            "bad_ignored",
            "warned",
            f"{int(bad.sum()):,} trajectories are named as bad, and recipe {name} does not look "
            "at them; they are only left out of what is kept.",
            count=int(bad.sum()),
        ),
    )


def _blind(trajectories: TrajectorySet) -> TrajectorySet:
    """Only what a filter may see: observations, actions, and where trajectories lie."""
    columns = trajectories.columns
    shown: dict[str, Any] = {"sources": None, "final_observations": None, "has_final": None}
    return replace(
        trajectories,
        columns=Columns(
            columns.observations, columns.actions, None, columns.terminals, columns.timeouts
        ),
        metadata={},
        problems=(),
        **shown,
    )


def _without_opinion(selected: Mask, borderline: Mask, status: str) -> Weighed:
    """The split of a recipe that gathers no other evidence."""
    reasons = np.where(selected, "", np.where(borderline, "near the cut", "unlike the seeds"))
    return Weighed(selected, np.zeros_like(selected), tuple(reasons.tolist()), status)
