"""Printing for people: clean text, aligned facts, progress on a terminal.

Standard output carries the result. Progress and warnings go to standard error: a bar on a
terminal, a plain line now and then elsewhere.
"""

from __future__ import annotations

import contextlib
import os
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from pubc.cli.plain_text import clean, one_line
from pubc.runs.statuses import unsound_words

__all__ = [
    "Progress",
    "clean",
    "facts",
    "headline",
    "histogram",
    "one_line",
    "progress",
    "say",
    "warn",
    "warn_unsound",
    "warn_unsound_policy",
]

Progress = Callable[[int, str], None]
"""Called with the work done so far and a word on it."""

_TONES = {"plain": "1", "good": "1;32", "caution": "1;33", "bad": "1;31", "quiet": "2"}
_BARS = " ▁▂▃▄▅▆▇█"


def say(text: str = "") -> None:
    """Print a line of the result."""
    print(clean(text))


def warn(text: str) -> None:
    """Print a line about the run to standard error."""
    print(f"pubc: {clean(text)}", file=sys.stderr)


def warn_unsound(run: Path, document: Mapping[str, Any]) -> None:
    """Say of a filter run that is used further that its selection is not sound."""
    words = unsound_words(run, document)
    if words is not None:
        warn(words)


def warn_unsound_policy(policy: Path, config: Mapping[str, Any]) -> None:
    """Say of a policy that is used that the run which selected its data is not sound."""
    data = config.get("data")
    run = data.get("run") if isinstance(data, Mapping) else None
    if isinstance(run, Mapping) and run.get("sound") is False:
        warn(
            f"{policy} learned from the run {run.get('name')}, whose selection is not sound "
            f"(status {run.get('status')}); it may have learned from others than the expert."
        )


def headline(text: str, tone: str = "plain") -> None:
    """Print what a command came to, as the first line of its summary.

    Args:
        text: One sentence.
        tone: `good`, `caution` or `bad` colour it on a terminal; `plain` makes it bold.
    """
    print(_styled(one_line(text), tone))


def facts(rows: Sequence[tuple[str, str]]) -> None:
    """Print names and values in two aligned columns; names stand back on a terminal."""
    width = max((len(name) for name, _ in rows), default=0)
    for name, value in rows:
        print(_styled(f"{clean(name):<{width}}", "quiet") + f"  {one_line(value)}")


def _styled(text: str, tone: str) -> str:
    """Clean text in colour, where somebody looks at it who did not ask for none."""
    seen = sys.stdout is not None and sys.stdout.isatty()
    plain = not seen or "NO_COLOR" in os.environ or os.environ.get("TERM") == "dumb"
    return text if plain else f"\x1b[{_TONES[tone]}m{text}\x1b[0m"


def histogram(values: ArrayLike, bins: int = 40) -> str:
    """A one-line text histogram of finite values with its range."""
    finite = np.asarray(values, dtype=np.float64)
    finite = finite[np.isfinite(finite)]
    if not finite.size:
        return "unknown"
    low, high = float(finite.min()), float(finite.max())
    if low == high:
        return f"all {low:,.6g}" if finite.size > 1 else f"{low:,.6g}"
    counts, _ = np.histogram(finite, bins=bins)
    top = counts.max()
    bars = "".join(_BARS[0 if not c else 1 + int((len(_BARS) - 2) * c / top)] for c in counts)
    return f"{low:,.6g} |{bars}| {high:,.6g}"


@contextlib.contextmanager
def progress(label: str, total: int | None, *, quiet: bool = False) -> Iterator[Progress]:
    """Show progress: a bar on a terminal, a plain line every few seconds elsewhere.

    A total of None means that nobody knows how much there is to do.
    """
    if quiet:
        yield lambda done, word: None
        return
    if sys.stderr.isatty():
        from rich.console import Console
        from rich.progress import Progress as Bar

        with Bar(console=Console(stderr=True), transient=True) as bar:
            task = bar.add_task(label, total=total)
            yield lambda done, word: bar.update(
                task, completed=done, description=f"{label} {clean(word)}"
            )
        return
    last = time.monotonic()

    def line(done: int, word: str) -> None:
        nonlocal last
        now = time.monotonic()
        if now - last >= 5 or (total is not None and done >= total):
            last = now
            many = f"{done:,}" if total is None else f"{done:,} of {total:,}"
            print(f"{label}: {many} {clean(word)}".rstrip(), file=sys.stderr)

    yield line
