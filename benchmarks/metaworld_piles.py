"""Piles of scripted Meta-World demonstrations: an expert among experts with one fault each.

    python benchmarks/metaworld_piles.py --out data/metaworld [--piles door-open-v3 ...] [--seed 0]
    python benchmarks/metaworld_piles.py --out data/unseen --unseen

Needs `metaworld==3.1.1`, in an environment of its own. Writes one compressed NPZ per pile, laid
out like the shared manipulation files: 40 trajectories of Meta-World's scripted expert with small
noise that all succeed, and 18 of each fault, 150 steps each, shuffled. `sources` names who acted,
`expert_steps` says at which steps the action is the expert's own, `success` whether the task was
solved at any step. Piles whose name ends in `-absolute` record where the hand is sent (hand
position plus scaled action) instead of the step that it is asked to take; nothing else differs.

The same seed gives the same file. Starts are drawn from the fifty of `MT1(task, seed)`.
Prints one JSON line per pile: counts, success per kind, how far the acts are from the expert's.
"""

import argparse
import functools
import json
import os
import time
import warnings
import zlib
from pathlib import Path

os.environ.setdefault("MUJOCO_GL", "disable")

import metaworld
import numpy as np
from metaworld.policies import ENV_POLICY_MAP

STEPS = 150
EXPERTS = 40
FAULTY = 18
NOISE = 0.1
"""Spread of the noise on every action, the expert's too."""
ATTEMPTS = 40
"""Tries for a trajectory (an expert that succeeds, a fault that has begun) before giving up."""

KNOWN = ("early", "detour", "slow", "shaky", "aim")
"""Kinds of the shared files."""
HANDS_FREE = ("detour", "slow", "shaky", "aim")
"""The same where nothing is held, so that nobody lets go early."""
UNSEEN = {
    "button-press-wall-v3": HANDS_FREE,
    "door-unlock-v3": HANDS_FREE,
    "pick-out-of-hole-v3": KNOWN,
    "push-wall-v3": KNOWN,
    "button-press-topdown-wall-v3": ("weak", "late", "wander", "overshoot", "drift"),
    "handle-pull-side-v3": ("weak", "pause", "jerky", "wander", "drift"),
    "plate-slide-back-v3": ("weak", "late", "jerky", "wander", "drift"),
    "plate-slide-back-side-v3": ("late", "pause", "overshoot", "jerky", "drift"),
}
"""Piles on which nothing of recipe `auto` was chosen but one bar, set back after a look. The
confidence of single steps was calibrated on them too, and their steps were looked at meanwhile."""
PILES = {
    "peg-insert-side-v3": KNOWN,
    "door-open-v3": ("detour", "slow", "shaky", "aim", "early"),
    "pick-place-v3": KNOWN,
    "drawer-close-v3": HANDS_FREE,
    "stick-push-v3": ("weak", "late", "fumble", "wander", "drift"),
    "push-v3": ("pause", "jerky", "overshoot", "fumble", "late"),
    "drawer-open-v3": ("weak", "drift", "pause", "wander", "jerky"),
    "box-close-v3": ("late", "fumble", "overshoot", "pause", "drift"),
    "faucet-open-v3": ("weak", "jerky", "wander", "late", "overshoot"),
    "shelf-place-v3": ("drift", "fumble", "pause", "weak", "wander"),
    "lever-pull-v3": ("jerky", "late", "drift", "wander", "pause"),
    "soccer-v3": ("weak", "overshoot", "drift", "jerky", "wander"),
    "reach-v3": ("weak", "late", "drift", "pause", "overshoot"),
    "handle-press-v3": ("late", "weak", "jerky", "wander", "drift"),
    "peg-insert-side-v3-absolute": KNOWN,
    "drawer-open-v3-absolute": ("weak", "late", "pause", "wander", "overshoot"),
    "box-close-v3-absolute": ("late", "fumble", "jerky", "pause", "drift"),
    "door-close-v3": HANDS_FREE,
    "window-close-v3": HANDS_FREE,
    "coffee-push-v3": KNOWN,
    "disassemble-v3": KNOWN,
    "dial-turn-v3": ("weak", "late", "wander", "overshoot", "drift"),
    "handle-pull-v3": ("weak", "jerky", "wander", "late", "drift"),
    "button-press-topdown-v3": ("weak", "pause", "overshoot", "wander", "drift"),
    "bin-picking-v3": ("late", "fumble", "weak", "drift", "wander"),
    "door-lock-v3": HANDS_FREE,
    "faucet-close-v3": HANDS_FREE,
    "push-back-v3": KNOWN,
    "sweep-v3": KNOWN,
    "pick-place-wall-v3": KNOWN,
    "hand-insert-v3": KNOWN,
    "coffee-button-v3": ("weak", "late", "wander", "overshoot", "drift"),
    "plate-slide-side-v3": ("weak", "jerky", "wander", "late", "drift"),
    "handle-press-side-v3": ("weak", "pause", "overshoot", "wander", "drift"),
    "stick-pull-v3": ("late", "fumble", "weak", "drift", "wander"),
    "peg-unplug-side-v3": ("jerky", "pause", "late", "drift", "overshoot"),
    "reach-wall-v3": ("weak", "late", "pause", "overshoot", "jerky"),
    **UNSEEN,
}
"""Kinds of faults in each pile."""
ABSOLUTE = "-absolute"


def task_of(pile):
    """Name of the Meta-World task of a pile, and whether its actions are absolute targets."""
    return pile.removesuffix(ABSOLUTE), pile.endswith(ABSOLUTE)


# Who acts. A kind is made for one trajectory from the expert (observation -> action in [-1, 1]), a
# random generator, and the steps that a demonstration of this task usually takes. It answers
# (step, observation) with an action, before noise, and whether that is the expert's own.


def expert(own, rng, usual):
    return lambda step, seen: (own(seen), True)


def early(own, rng, usual):
    """Lets go half way and does not close the hand again."""
    begin, gone = int(rng.integers(35, 60)), False

    def act(step, seen):
        nonlocal gone
        action = own(seen)
        gone = gone or (step >= begin and action[3] > 0)
        return (np.append(action[:3], -1.0), False) if gone else (action, True)

    return act


def detour(own, rng, usual):
    """Goes to a wrong place for 25 steps first."""
    away, place = rng.uniform(-0.15, 0.15, 3), None

    def act(step, seen):
        nonlocal place
        action = own(seen)
        if step >= 25:
            return action, True
        place = seen[:3] + away if place is None else place
        return np.append(np.clip(10 * (place - seen[:3]), -1, 1), action[3]), False

    return act


def scaled(gain):
    """Moves with a part or a multiple of the expert's gain; the gripper does as it should."""

    def make(own, rng, usual):
        gains = np.array([gain, gain, gain, 1.0])
        return lambda step, seen: (own(seen) * gains, False)

    return make


def shaky(own, rng, usual):
    """Trembles: noise that lasts about ten steps."""
    tremor = 0.6 * rng.standard_normal(4)

    def act(step, seen):
        nonlocal tremor
        tremor = 0.9 * tremor + 0.26 * rng.standard_normal(4)
        return own(seen) + tremor, False

    return act


def aim(own, rng, usual):
    """Sees its hand 4 cm off, in a direction of its own."""
    offset = np.zeros(39)
    offset[:3] = 0.04 * direction(rng)
    return lambda step, seen: (own(seen + offset), False)


def late(own, rng, usual):
    """Acts on what it saw 4 steps ago."""
    memory = []

    def act(step, seen):
        memory.append(seen)
        return own(memory[max(0, step - 4)]), step == 0

    return act


def drift(own, rng, usual):
    """Is pushed one way all the time."""
    push = np.append(0.35 * direction(rng), 0.0)
    return lambda step, seen: (own(seen) + push, False)


def fumble(own, rng, usual):
    """Opens the hand for 15 steps in the middle, where the expert would hold."""
    begin, left = int(rng.integers(int(0.3 * usual), int(0.8 * usual) + 1)), 15

    def act(step, seen):
        nonlocal left
        action = own(seen)
        begun = step >= begin and (left < 15 or action[3] > 0)
        if not begun or left == 0:
            return action, True
        left -= 1
        return np.append(action[:3], -1.0), False

    return act


def pause(own, rng, usual):
    """Stops for 20 steps on the way, then goes on."""
    begin = int(rng.integers(int(0.15 * usual), int(0.75 * usual) + 1))

    def act(step, seen):
        action = own(seen)
        if begin <= step < begin + 20:
            return np.append(np.zeros(3), action[3]), False
        return action, True

    return act


def jerky(own, rng, usual):
    """Decides every fifth step only, and repeats itself in between."""
    held = None

    def act(step, seen):
        nonlocal held
        if step % 5 == 0:
            held = own(seen)
        return held, step % 5 == 0

    return act


def wander(own, rng, usual):
    """Loses its way for 20 to 30 steps at some time: a random walk of the action."""
    length = int(rng.integers(20, 31))
    begin = int(rng.integers(0, int(0.8 * usual) + 1))
    walk = rng.uniform(-0.7, 0.7, 3)

    def act(step, seen):
        nonlocal walk
        action = own(seen)
        if not begin <= step < begin + length:
            return action, True
        walk = np.clip(walk + 0.3 * rng.standard_normal(3), -1, 1)
        return np.append(walk, action[3]), False

    return act


KINDS = {
    "expert": expert,
    "early": early,
    "detour": detour,
    "slow": scaled(0.5),
    "shaky": shaky,
    "aim": aim,
    "weak": scaled(0.6),
    "overshoot": scaled(1.6),
    "late": late,
    "drift": drift,
    "fumble": fumble,
    "pause": pause,
    "jerky": jerky,
    "wander": wander,
}


def direction(rng):
    drawn = rng.standard_normal(3)
    return drawn / np.linalg.norm(drawn)


class Scene:
    """One Meta-World task with its fifty starts and its scripted expert."""

    def __init__(self, task, seed):
        bench = metaworld.MT1(task, seed=seed)
        self.env = bench.train_classes[task]()
        self.starts = bench.train_tasks
        self.policy = ENV_POLICY_MAP[task]

    def begin(self, number):
        """Reset to a start; the first observation."""
        self.env.set_task(self.starts[number % len(self.starts)])
        return self.env.reset()[0]

    def expert(self):
        """The scripted expert, fresh, its actions clipped to what the robot can do."""
        policy = self.policy()
        # A copy: the policy of door-open-v3 and others write into what they are shown.
        return lambda seen: np.clip(policy.get_action(seen.copy()), -1, 1).astype(float)


def play(scene, kind, rng, usual):
    """One trajectory of a kind, as a dictionary of arrays."""
    seen = scene.begin(int(rng.integers(len(scene.starts))))
    act = KINDS[kind](scene.expert(), rng, usual)
    ideal = scene.expert()
    rows = {name: [] for name in ("observations", "actions", "rewards", "expert_steps")}
    solved, wrong = [], []
    for step in range(STEPS):
        chosen, own = act(step, seen)
        action = np.clip(chosen + NOISE * rng.standard_normal(4), -1, 1)
        rows["observations"].append(seen.astype(np.float32))
        rows["actions"].append(action.astype(np.float32))
        rows["expert_steps"].append(own)
        wrong.append(np.abs(np.clip(chosen, -1, 1) - ideal(seen)).mean())
        seen, reward, _, _, info = scene.env.step(rows["actions"][-1])
        rows["rewards"].append(np.float32(reward))
        solved.append(bool(info["success"]))
    made = {name: np.array(values) for name, values in rows.items()}
    made["solved_at"] = solved.index(True) if any(solved) else None
    made["wrong"] = float(np.mean(wrong))
    return made


def acceptable(kind, made):
    """An expert succeeds; a fault shows for ten steps or more."""
    if kind == "expert":
        return made["solved_at"] is not None
    return (~made["expert_steps"]).sum() >= 10


def collect(scene, kind, count, usual, key):
    """So many trajectories of a kind; each has random numbers of its own."""
    kept = []
    for number in range(count):
        for attempt in range(ATTEMPTS):
            rng = np.random.default_rng([*key, zlib.crc32(kind.encode()), number, attempt])
            made = play(scene, kind, rng, usual)
            if acceptable(kind, made):
                kept.append(made)
                break
        else:
            raise SystemExit(f"{kind}: no usable trajectory in {ATTEMPTS} tries; leave it out.")
    return kept


def pile(name, seed, experts=EXPERTS, faulty=FAULTY):
    """Record a pile: its arrays, and what there is to say about it."""
    begun = time.perf_counter()
    task, absolute = task_of(name)
    key = (seed, zlib.crc32(name.encode()))
    scene = Scene(task, seed)
    made = {"expert": collect(scene, "expert", experts, STEPS, key)}
    usual = int(np.median([one["solved_at"] for one in made["expert"]]))
    for kind in PILES[name]:
        made[kind] = collect(scene, kind, faulty, usual, key)
    pairs = [(kind, one) for kind, several in made.items() for one in several]
    pairs = [pairs[i] for i in np.random.default_rng(key).permutation(len(pairs))]
    arrays = {
        column: np.concatenate([one[column] for _, one in pairs])
        for column in ("observations", "actions", "rewards", "expert_steps")
    }
    if absolute:
        hand = arrays["observations"][:, :3]
        arrays["actions"][:, :3] = hand + scene.env.action_scale * arrays["actions"][:, :3]
    arrays["terminals"] = np.zeros(len(pairs) * STEPS, dtype=bool)
    arrays["timeouts"] = np.tile(np.arange(STEPS) == STEPS - 1, len(pairs))
    arrays["sources"] = np.array([kind for kind, _ in pairs])
    arrays["success"] = np.array([int(one["solved_at"] is not None) for _, one in pairs])
    average = functools.partial(np.mean, dtype=float)
    facts = {
        "pile": name,
        "seed": seed,
        "trajectories": len(pairs),
        "usual_steps": usual,
        "kinds": {kind: len(several) for kind, several in made.items()},
        "success": {
            kind: round(average([one["solved_at"] is not None for one in several]), 2)
            for kind, several in made.items()
        },
        "off_the_expert": {
            kind: round(average([one["wrong"] for one in several]), 3)
            for kind, several in made.items()
        },
        "seconds": round(time.perf_counter() - begun, 1),
    }
    return arrays, facts


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--out", type=Path, required=True, help="folder for the files")
    parser.add_argument("--piles", nargs="*", default=list(PILES), choices=PILES, metavar="PILE")
    parser.add_argument("--unseen", action="store_true", help="only those nothing was chosen on")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--experts", type=int, default=EXPERTS)
    parser.add_argument("--faulty", type=int, default=FAULTY, help="of each kind")
    parser.add_argument("--force", action="store_true", help="replace files that exist")
    chosen = parser.parse_args()
    warnings.filterwarnings("ignore", message="Constant", category=UserWarning)
    chosen.out.mkdir(parents=True, exist_ok=True)
    for name in UNSEEN if chosen.unseen else chosen.piles:
        path = chosen.out / f"{name}.npz"
        if path.exists() and not chosen.force:
            continue
        arrays, facts = pile(name, chosen.seed, chosen.experts, chosen.faulty)
        unfinished = path.with_suffix(".part.npz")
        np.savez_compressed(unfinished, **arrays)
        unfinished.replace(path)
        print(json.dumps(facts), flush=True)


if __name__ == "__main__":
    main()
