"""The review page: look at trajectories, mark them, run the filter with the marks, look again."""
