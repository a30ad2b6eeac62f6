"""A Gymnasium environment of five steps that draws itself: `QuickFilm-v0`."""

import gymnasium
import numpy as np


class QuickFilm(gymnasium.Env):
    """Sees three numbers and takes one; its pictures are eight by eight pixels."""

    metadata = {"render_modes": ["rgb_array"], "render_fps": 10}  # noqa: RUF012 as Gymnasium has it
    observation_space = gymnasium.spaces.Box(-1, 1, (3,), np.float32)
    action_space = gymnasium.spaces.Box(-1, 1, (1,), np.float32)

    def __init__(self, render_mode=None):
        self.render_mode = render_mode
        self.steps = 0

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.steps = 0
        return np.zeros(3, np.float32), {}

    def step(self, action):
        self.steps += 1
        return np.full(3, self.steps / 10, np.float32), 1.0, False, False, {}

    def render(self):
        return np.full((8, 8, 3), 40 * self.steps, np.uint8)


gymnasium.register("QuickFilm-v0", QuickFilm, max_episode_steps=5)
