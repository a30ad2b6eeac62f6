"""Text from data, made safe for a terminal.

Apart from `console`, because the sentence that ends a command must come out also where there is
no memory left to load numpy.
"""

from __future__ import annotations

__all__ = ["clean", "one_line"]


def clean(text: str) -> str:
    """Text from data, made safe for a terminal: control characters become '?'."""
    return "".join(c if c.isprintable() or c == "\n" else "?" for c in text)


def one_line(text: str) -> str:
    """Text from data as a single safe line."""
    return clean(text).replace("\n", " ")
