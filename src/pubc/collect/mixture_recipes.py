"""Recipes as data: which policies act where, and how much of each goes into the mixture.

The paper's letters: E is the target expert E+, a second E another expert E-, W a weak policy,
N noise. The order of the sources is the order of their shares; the first one is the expert
that a filter should find.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from pubc import zoo
from pubc.acting import environments
from pubc.collect.lapses import NOISE_LAPSE, REPEAT_LAPSE, Lapse
from pubc.errors import UnknownNameError, UsageError

__all__ = ["NOISE", "RECIPES", "Recipe", "Source", "custom", "find"]

NOISE = "N"
"""The source that no policy plays: uniform noise within the ranges of the others."""


@dataclass(frozen=True, slots=True)
class Source:
    """One policy of a mixture."""

    name: str
    """What `sources` calls it in the dataset."""
    policy: str | None
    """A zoo name (`ant/expert`), the path of a policy file, or None for noise."""
    share: float = 1.0
    """How much of it, as a multiple of `--steps-per-source`."""
    action_noise: float = 0.0
    """Standard deviation of Gaussian noise on its actions, in halves of their range."""
    lapses: tuple[Lapse, ...] = ()
    """Who stands in for it, and for how much of its steps."""


@dataclass(frozen=True, slots=True)
class Recipe:
    """A mixture before it is collected."""

    name: str
    """What the user asked for."""
    environment: str
    """Name in `pubc.acting.environments`, or a Gymnasium id."""
    sources: tuple[Source, ...]
    """The policies; the first is the expert to be found."""
    trusted: bool = False
    """Whether the user trusts the pickles inside stable-baselines3 archives."""

    @property
    def expert(self) -> Source:
        """The source that a filter should find."""
        return self.sources[0]


_MIXTURES = {
    "E": ("E+",),
    "E+E": ("E+", "E-"),
    "E+W": ("E+", "W"),
    "E+N": ("E+", "N"),
    "E+E+W+N": ("E+", "E-", "W", "N"),
    # Not in the paper: small enough to try things on, with one thing left out at a time.
    "E+E+W": ("E+", "E-", "W"),
    "E+E+N": ("E+", "E-", "N"),
    "E+W+N": ("E+", "W", "N"),
}
_PLAYED_BY = {"E+": "expert", "E-": "other_expert", "W": "weak", "N": None}


def _paper(environment: str, sources: Sequence[str]) -> tuple[Source, ...]:
    players = ((name, _PLAYED_BY[name]) for name in sources)
    return tuple(Source(name, who and f"{environment}/{who}") for name, who in players)


def _lapsing(environment: str, *lapses: Lapse) -> tuple[Source, ...]:
    return (Source("expert", f"{environment}/expert", lapses=lapses),)


RECIPES: dict[str, tuple[str, tuple[Source, ...]]] = {
    **{
        f"{environment}:{letters}": (environment, _paper(environment, sources))
        for environment in ("ant", "humanoid")
        for letters, sources in _MIXTURES.items()
    },
    **{
        f"{environment}:medium-expert": (
            environment,
            (Source("expert", f"{environment}/expert"), Source("medium", f"{environment}/medium")),
        )
        for environment in ("halfcheetah", "hopper", "walker2d")
    },
    # Every trajectory is the expert's with lapses; a third of the steps is somebody else's.
    "ant:lapses": (
        "ant",
        _lapsing("ant", Lapse("ant/other_expert", 0.15, 30), Lapse("ant/weak", 0.15, 30)),
    ),
    "halfcheetah:lapses": (
        "halfcheetah",
        _lapsing(
            "halfcheetah", Lapse("halfcheetah/medium", 0.15, 30), Lapse(REPEAT_LAPSE, 0.15, 20)
        ),
    ),
    "hopper:lapses": ("hopper", _lapsing("hopper", Lapse("hopper/medium", 0.3, 30))),
    # The mixed sets of the robot challenge are half expert and half weaker; the weaker half of
    # push averages 0.4 of the best return there, as these two checkpoints do together.
    "trifinger-push:mixed": (
        "trifinger-push",
        (
            Source("expert", "push_expert"),
            Source("checkpoint_600", "push_checkpoint_600", share=0.5),
            Source("checkpoint_1200", "push_checkpoint_1200", share=0.5),
        ),
    ),
    "trifinger-lift:mixed": (
        "trifinger-lift",
        (Source("expert", "lift_expert"), Source("other_expert", "lift_other_expert")),
    ),
}
"""Every recipe by name: its environment and its sources."""

_SUFFIXES = (".safetensors", ".npz", ".pt", ".zip")
_PUBLIC_NAMES = {"push_expert": "push", "lift_expert": "lift"}
"""What rr-learning/trifinger-rl-example calls its policies."""


def find(name: str, *, policies: Path | None = None, trusted: bool = False) -> Recipe:
    """A recipe by name.

    Args:
        name: For example `ant:E+W`.
        policies: Folder with the policy files of recipes that the zoo has none for.
        trusted: Whether the user trusts pickles among those files.

    Raises:
        UnknownNameError: No such recipe; the message names the nearest.
        UsageError: The recipe needs policy files that are not there.
    """
    if name not in RECIPES:
        raise UnknownNameError("recipe", name, [*RECIPES, "custom"])
    environment, sources = RECIPES[name]
    known = zoo.names()
    found = tuple(
        source
        if source.policy is None or source.policy in known
        else replace(source, policy=_file(source.policy, name, policies))
        for source in sources
    )
    return Recipe(name, environment, found, trusted)


def custom(
    environment: str,
    policies: Mapping[str, str],
    *,
    shares: Mapping[str, float] | None = None,
    action_noise: Mapping[str, float] | None = None,
    lapses: Sequence[Lapse] = (),
    trusted: bool = False,
) -> Recipe:
    """A recipe of one's own.

    Args:
        environment: Name in `pubc.acting.environments`, or a Gymnasium id.
        policies: Source name to zoo name or policy file, the expert first; the source `N`
            is noise, whatever it is set to.
        shares: Source name to multiple of the steps per source; 1 where omitted.
        action_noise: Source name to standard deviation, in halves of the action range.
        lapses: Who stands in for the expert now and then.
        trusted: Whether the user trusts the pickles in stable-baselines3 archives.

    Raises:
        UsageError: No policy, noise alone, or a share or noise for a source that is not there.
    """
    environments.spec(environment)
    shares, action_noise = shares or {}, action_noise or {}
    names = list(policies)
    if not names or names[0] == NOISE:
        raise UsageError(
            "A custom recipe needs at least one policy, the expert first, for example "
            "--policy expert=ant/expert."
        )
    for given in (*shares, *action_noise):
        if given not in policies:
            raise UnknownNameError("source", given, names)
    if any(not 0 < share <= 1000 for share in shares.values()):
        raise UsageError(f"Shares must lie above 0 and at most at 1000. Got {dict(shares)}.")
    if any(not 0 <= noise <= 10 for noise in action_noise.values()):
        raise UsageError(f"Action noise must lie between 0 and 10. Got {dict(action_noise)}.")
    if sum(lapse.share for lapse in lapses) >= 1:
        raise UsageError("The shares of all lapses together must lie below 1.")
    found = tuple(replace(lapse, policy=_resolve(lapse.policy)) for lapse in lapses)
    sources = [
        Source(
            name,
            None if name == NOISE else _resolve(policy),
            shares.get(name, 1.0),
            action_noise.get(name, 0.0),
            found if name == names[0] else (),
        )
        for name, policy in policies.items()
    ]
    return Recipe("custom", environment, tuple(sources), trusted)


def _resolve(policy: str) -> str:
    """A policy as any process finds it, whatever folder it works in."""
    named = policy in zoo.names() or policy in (NOISE_LAPSE, REPEAT_LAPSE)
    return policy if named else str(Path(policy).resolve())


def _file(stem: str, recipe: str, folder: Path | None) -> str:
    names = [stem, *([_PUBLIC_NAMES[stem]] if stem in _PUBLIC_NAMES else [])]
    if folder is not None:
        for name in names:
            for suffix in _SUFFIXES:
                if (folder / f"{name}{suffix}").is_file():
                    return str((folder / f"{name}{suffix}").resolve())
    where = "no folder was named" if folder is None else f"{folder} has none of these names"
    raise UsageError(
        f"{recipe} needs the policy file {' or '.join(names)} ({', '.join(_SUFFIXES)}) in "
        f"--policies FOLDER; {where}. The public repository rr-learning/trifinger-rl-example "
        "holds push.pt and lift.pt; a weaker half can be made with `pubc collect custom` and "
        "--action-noise."
    )
