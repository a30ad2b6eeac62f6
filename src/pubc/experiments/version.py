"""Which code computed a number: a digest for each stage of a cell.

A record is found again only if the code that would compute it is the one that did. Each stage
has a digest of its own, so a change to a learner leaves the filters as they are; comments and
docstrings do not count.
"""

from __future__ import annotations

import ast
import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import pubc

__all__ = ["Versions", "versions"]

_LOW = ("trajectory", "streams.py", "threads.py")
# Of the formats only the one that collected data goes through: the others are read as they are.
_SHARED = (*_LOW, "rollout.py", "environments", "formats/store.py")
_NETS = ("nets", "losses.py", "select.py")
_STAGES: dict[str, tuple[str, ...]] = {
    "dataset": (*_SHARED, "collect", "zoo", "experiments/datasets.py"),
    "filter": (*_LOW, *_NETS, "pu", "metrics.py", "experiments/filters.py"),
    "learner": (*_SHARED, *_NETS, "policies", "evaluate.py", "experiments/learn.py"),
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
    root = Path(pubc.__file__).parent
    return Versions(**{stage: _digest(root, parts) for stage, parts in _STAGES.items()})


def _digest(root: Path, parts: Sequence[str]) -> str:
    words = []
    for part in sorted(parts):
        place = root / part
        for path in sorted(place.rglob("*.py")) if place.is_dir() else [place]:
            words.append(f"{path.relative_to(root).as_posix()}\n{_meaning(path)}")
    return _short("\n".join(words))


def _meaning(path: Path) -> str:
    """The code without comments, docstrings and layout."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    for node in ast.walk(tree):
        for name in ("body", "orelse", "finalbody"):
            block = getattr(node, name, None)
            if isinstance(block, list):
                setattr(node, name, [line for line in block if not _is_text(line)])
    return ast.dump(tree)


def _is_text(line: ast.AST) -> bool:
    return (
        isinstance(line, ast.Expr)
        and isinstance(line.value, ast.Constant)
        and isinstance(line.value.value, str)
    )


def _short(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()[:16]
