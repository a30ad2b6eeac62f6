"""Learners of offline reinforcement learning, with losses of d3rlpy."""
