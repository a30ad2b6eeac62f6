"""The folder of a run: its document, its rounds, its tables, and how all of it is read back."""
