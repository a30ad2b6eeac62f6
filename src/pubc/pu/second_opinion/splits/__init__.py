"""How a pile is split by evidence: growth, cuts, and the best of them."""
