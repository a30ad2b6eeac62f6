"""Formats that keep one group of arrays per episode: from groups to flat columns."""
