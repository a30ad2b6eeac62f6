"""How a pile is looked at: its steps, a network told who acts, numbers for trajectories."""
