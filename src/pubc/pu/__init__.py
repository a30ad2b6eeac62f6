"""The method: from a few seed positives to every trajectory of the same expert."""
