"""CPU milliseconds of a step of the TriFinger: the platform's own ticks against ours.

    python benchmarks/trifinger_ticks.py [--steps 200] [--rounds 5]

Rounds of both alternate on one core, with the same random actions; medians are compared, and
whether both observed and earned the same to the last bit. It needs the extra `trifinger`.
"""

import argparse
import os
import statistics
import time

os.environ.update(OMP_NUM_THREADS="1", OPENBLAS_NUM_THREADS="1")

import numpy as np

from pubc.acting import environments


def play(environment, actions):
    """What was observed and earned, and the CPU milliseconds of a step."""
    seen, earned = [environment.reset(0)], []
    began = time.process_time()
    for action in actions:
        observation, reward, *_ = environment.step(action)
        seen.append(observation)
        earned.append(reward)
    took = time.process_time() - began
    return np.array(seen), np.array(earned), 1000 * took / len(actions)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--steps", type=int, default=200)
    parser.add_argument("--rounds", type=int, default=5)
    chosen = parser.parse_args()
    print("environment     the platform's ticks  ours      the same")
    for name in ("trifinger-push", "trifinger-lift"):
        ours, theirs = environments.make(name), environments.make(name)
        del theirs._environment._append_desired_action  # what the class has is behind it
        draw = np.random.default_rng(0).uniform
        actions = [draw(ours.low, ours.high).astype(np.float32) for _ in range(chosen.steps)]
        rounds = [(play(theirs, actions), play(ours, actions)) for _ in range(chosen.rounds)]
        slow, fast = (statistics.median(both[i][2] for both in rounds) for i in (0, 1))
        same = all(
            np.array_equal(one, other)
            for before, after in rounds
            for one, other in zip(before[:2], after[:2], strict=True)
        )
        print(f"{name:<15} {slow:>17.2f} ms  {fast:>5.2f} ms  {'yes' if same else 'NO'}")


if __name__ == "__main__":
    main()
