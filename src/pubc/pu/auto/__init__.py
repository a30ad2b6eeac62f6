"""The default recipe."""
