"""The tables as data: one file for each, with the paper's figures."""
