"""Which steps are the expert's: evidence for every step, and the segments that follow from it."""
