"""How a pile is split by evidence: growth, cuts, the best of them, and a closer look."""
