"""Many trainings at once: the weights of all members side by side, one computation for all."""
