"""A second opinion on a pile: evidence of other kinds than the rounds use, and controls."""
