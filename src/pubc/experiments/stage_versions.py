"""Which code computed a number: a digest for each stage of a cell.

A record is found again only if the code that would compute it is the one that did. Each stage
has a digest of its own, so a change to a learner leaves the filters as they are; comments and
docstrings do not count.
"""

from __future__ import annotations

import ast
import hashlib
import io
import tokenize
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from pubc.version import SOURCE_FOLDER

__all__ = ["Versions", "versions"]

_LOW = ("trajectory", "streams.py", "threads.py")
# Of the formats only the one that collected data goes through: the others are read as they are.
_SHARED = (*_LOW, "acting/rollout.py", "acting/environments", "formats/store.py")
_NETS = ("nets", "pu/paper/losses.py", "select.py")
_STAGES: dict[str, tuple[str, ...]] = {
    "dataset": (*_SHARED, "collect", "zoo", "experiments/stages/datasets.py"),
    "filter": (*_LOW, *_NETS, "pu", "metrics.py", "experiments/stages/filters.py"),
    "learner": (
        *_SHARED,
        *_NETS,
        "policies",
        "acting/evaluate.py",
        "metrics.py",
        "experiments/stages/learn.py",
    ),
}


@dataclass(frozen=True, slots=True)
class Versions:
    """A digest of the code of each stage."""

    dataset: str
    """Of what makes datasets."""
    filter: str
    """Of what selects trajectories."""
    learner: str
    """Of what learns and evaluates policies."""

    @property
    def all(self) -> str:
        """One digest of everything."""
        return _short("\n".join((self.dataset, self.filter, self.learner)))


@cache
def versions() -> Versions:
    """The digests of the code that is installed."""
    root = SOURCE_FOLDER / "pubc"
    return Versions(**{stage: _digest(root, parts) for stage, parts in _STAGES.items()})


def _digest(root: Path, parts: Sequence[str]) -> str:
    words = []
    for part in sorted(parts):
        place = root / part
        for path in sorted(place.rglob("*.py")) if place.is_dir() else [place]:
            words.append(f"{path.relative_to(root).as_posix()}\n{_meaning(path)}")
    return _short("\n".join(words))


def _meaning(path: Path) -> str:
    """The code without comments and docstrings, the same for every version of Python."""
    source = path.read_text(encoding="utf-8")
    lines = source.split("\n")
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Expr) and _is_text(node.value):
            assert node.end_lineno is not None
            for line in range(node.lineno - 1, node.end_lineno):
                lines[line] = ""
    tokens = tokenize.generate_tokens(io.StringIO(source).readline)
    for row, column in (token.start for token in tokens if token.type == tokenize.COMMENT):
        lines[row - 1] = lines[row - 1][:column]
    return "\n".join(line.rstrip() for line in lines if line.strip())


def _is_text(value: ast.expr) -> bool:
    return isinstance(value, ast.Constant) and isinstance(value.value, str)


def _short(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()[:16]
