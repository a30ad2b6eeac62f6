"""How long each learner trains at each scale, said once for every table that has learners."""

from __future__ import annotations

from typing import Any

from pubc import zoo
from pubc.experiments.cell import LearnerSpec, Scale
from pubc.experiments.stages.learn import DATA
from pubc.metrics import REFERENCES

__all__ = ["SCALED_DOWN", "attainable", "learner"]

_SHARE = {"bc": 2.0, "iql": 3.0, "crr": 3.0, "dwbc": 3.0, "td3bc": 4.0, "plas": 6.0, "dt": 0.1}
"""Updates at scale `small`, as a share of what the scale says. Learners with a critic need more;
TD3+BC updates its policy in every second one only, and half of those of PLAS train its encoder.
One update of the Decision Transformer costs as much as fifty of the others."""
_SLOW = "dt"
_SLOW_TO_PLAY = "trifinger"
"""How environments are called in which a trajectory takes ten seconds and more."""

SCALED_DOWN = (
    "Cloning uses pubc's recipe `auto` within 20,000 updates of 128 steps. Instead of a million "
    "updates IQL, CRR and DWBC make 30,000, TD3+BC 40,000, which update its policy 20,000 times, "
    "PLAS 60,000, of which half train its encoder, as in the paper, and the decision transformer "
    "1,000 of 64 contexts of 20 steps. A policy plays 20 trajectories instead of 100 (10 in "
    "the simulation of the TriFinger; the decision transformer 5)."
)
"""What differs from the paper at scale `small`."""


def learner(
    algo: str, environment: str, scale: Scale, *, curve_points: int | None = None
) -> LearnerSpec:
    """A learner at a scale.

    Args:
        algo: A learner of `pubc.policies`, or `data`.
        environment: Where it is evaluated.
        scale: How large everything is.
        curve_points: Points of its learning curve; None for no curve.
    """
    small = scale.name != "paper"
    fixed = scale.fixed_updates
    updates = fixed or max(1, round(scale.updates * (_SHARE.get(algo, 1.0) if small else 1.0)))
    options: dict[str, Any] = {"recipe": "auto" if small else "paper"}
    # The paper's cloning is counted in epochs, 200 of them; its recipe says so.
    if algo != DATA and (small or fixed or algo != "bc"):
        options["updates"] = updates
    if algo == "dt":
        options["target_return"] = attainable(environment)
    parts = 1
    if small:
        parts = 4 if algo == _SLOW else 2 if environment.startswith(_SLOW_TO_PLAY) else 1
    return LearnerSpec(
        algo,
        environment,
        {} if algo == DATA else options,
        evaluation_trajectories=max(1, scale.evaluation_trajectories // parts),
        curve_every=None if curve_points is None else max(1, updates // curve_points),
    )


def attainable(environment: str) -> float:
    """The highest return known to be attainable, which the Decision Transformer is asked for.

    The score of 1 where rewards are bounded; elsewhere the best trajectory of any policy of the
    zoo, if that is more.
    """
    cards = (zoo.card(name) for name in zoo.names() if name.startswith(f"{environment}/"))
    known = [float(card["returns"]["max"]) for card in cards]
    return max(known + [REFERENCES[environment][1]] * (environment in REFERENCES))
