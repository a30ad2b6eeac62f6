"""The command that computes tables."""
