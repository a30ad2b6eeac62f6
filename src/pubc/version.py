"""Which pubc this is, and where it lies: known without loading anything of it."""

from __future__ import annotations

from pathlib import Path

__all__ = ["SOURCE_FOLDER", "__version__"]

__version__ = "0.1.0"
SOURCE_FOLDER = Path(__file__).resolve().parents[1]
"""The folder that holds the package; a child process that gets it as path finds this very pubc."""
