"""Steps and segments of a run: judged, written, read back, and handed to others."""
