"""Policies that act: environments, one trajectory, and evaluation over many."""
