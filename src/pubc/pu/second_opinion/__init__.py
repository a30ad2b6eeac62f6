"""Evidence of several kinds that splits a pile before any round, and controls of the result."""
