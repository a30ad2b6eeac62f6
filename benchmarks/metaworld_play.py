"""Let an exported policy act in a Meta-World task, and count how often it succeeds.

    python benchmarks/metaworld_play.py policy.onnx door-open-v3 [--episodes 40] [--seed 1000]

Needs `metaworld==3.1.1` and `onnxruntime`. POLICY is what `pubc export` wrote, or the word
`expert` for the scripted one. Observations are those of the piles of metaworld_piles.py: 39
numbers, the goal among them. With --absolute, actions are places for the hand instead of steps.
Starts come from `MT1(task, seed)`, whose fifty goals differ from those of the piles as long as
the seed does. An episode succeeds when the task is solved at any of its 150 steps. Prints one
JSON line: the rate, and the Wilson interval that holds it with 95 %.
"""

import argparse
import json
import os
import time
import warnings

os.environ.setdefault("MUJOCO_GL", "disable")

import metaworld
import numpy as np
from metaworld.policies import ENV_POLICY_MAP

STEPS = 150
NORMAL = 1.959964
"""Standard deviations to each side that hold 95 %."""


def wilson(hits, trials):
    """Wilson's interval for a rate."""
    if not trials:
        return 0.0, 1.0
    rate, square = hits / trials, NORMAL**2
    middle = (rate + square / (2 * trials)) / (1 + square / trials)
    spread = rate * (1 - rate) / trials + square / (4 * trials**2)
    half = NORMAL * spread**0.5 / (1 + square / trials)
    return max(0.0, middle - half), min(1.0, middle + half)


def scripted(task):
    """The expert of a task; its observation is copied because some experts write into it."""
    policy = ENV_POLICY_MAP[task]()
    return lambda seen: policy.get_action(seen.copy())


def exported(path):
    """The policy in an ONNX file: observation to action."""
    import onnxruntime

    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = 1
    options.log_severity_level = 3
    session = onnxruntime.InferenceSession(path, options, providers=["CPUExecutionProvider"])
    inputs = [one.name for one in session.get_inputs()]
    if inputs != ["observation"]:
        raise SystemExit(f"{path} wants {inputs}; only policies of one observation can play here.")
    return lambda seen: session.run(None, {"observation": seen[None].astype(np.float32)})[0][0]


def episode(env, act, absolute):
    """Play from here; the step at which the task was first solved, or None."""
    seen, _ = env.reset()
    for step in range(STEPS):
        action = np.array(act(seen), dtype=float)
        if absolute:
            action[:3] = (action[:3] - seen[:3]) / env.action_scale
        seen, _, _, _, info = env.step(np.clip(action, -1, 1).astype(np.float32))
        if info["success"]:
            return step
    return None


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("policy", help="an ONNX file of `pubc export`, or the word expert")
    parser.add_argument("task", choices=list(ENV_POLICY_MAP), metavar="TASK")
    parser.add_argument("--episodes", type=int, default=40)
    parser.add_argument("--seed", type=int, default=1000, help="of the starts")
    parser.add_argument("--absolute", action="store_true", help="actions are places for the hand")
    chosen = parser.parse_args()
    warnings.filterwarnings("ignore", message="Constant", category=UserWarning)
    begun = time.perf_counter()
    bench = metaworld.MT1(chosen.task, seed=chosen.seed)
    env, starts = bench.train_classes[chosen.task](), bench.train_tasks
    play_expert = chosen.policy == "expert"
    act = None if play_expert else exported(chosen.policy)
    solved = []
    for number in range(chosen.episodes):
        env.set_task(starts[number % len(starts)])
        one = scripted(chosen.task) if play_expert else act
        solved.append(episode(env, one, chosen.absolute and not play_expert))
    hits = sum(step is not None for step in solved)
    low, high = wilson(hits, chosen.episodes)
    document = {
        "policy": chosen.policy,
        "task": chosen.task,
        "absolute": chosen.absolute,
        "seed": chosen.seed,
        "episodes": chosen.episodes,
        "successes": hits,
        "success": round(hits / max(1, chosen.episodes), 4),
        "low": round(low, 4),
        "high": round(high, 4),
        "solved_at": solved,
        "seconds": round(time.perf_counter() - begun, 1),
    }
    print(json.dumps(document))


if __name__ == "__main__":
    main()
