"""What a reader finds on its way: refused, repaired or warned about, never silent."""

from __future__ import annotations

from pathlib import Path
from typing import NoReturn, TypedDict, Unpack

from pubc.errors import DataError
from pubc.trajectory import Problem

__all__ = ["Findings", "Where", "plural", "verb"]


def plural(count: int, word: str) -> str:
    """A count with its word: `1 trajectory`, `2 trajectories`, `1,000 steps`."""
    if count == 1:
        return f"1 {word}"
    return f"{count:,} {word[:-1]}ies" if word.endswith("y") else f"{count:,} {word}s"


def verb(count: int, one: str = "is", many: str = "are") -> str:
    """The verb that goes with a count."""
    return one if count == 1 else many


class Where(TypedDict, total=False):
    """The place of a problem, as `Problem` has it."""

    field: str | None
    """Name of the array or entry."""
    count: int
    """How often it occurs; once if omitted."""
    first: int | None
    """Where it occurs first."""


class Findings:
    """Collects the problems of one file; `strict` turns every one into a refusal."""

    def __init__(self, path: Path, *, strict: bool = False) -> None:
        self.path = path
        self.strict = strict
        self.problems: list[Problem] = []

    def refuse(
        self,
        code: str,
        message: str,
        *,
        field: str | None = None,
        index: int | tuple[int, ...] | None = None,
        count: int | None = None,
    ) -> NoReturn:
        """Stop: the message says what is wrong and how to go on."""
        where = f"{self.path}: {field}: " if field else f"{self.path}: "
        raise DataError(where + message, code=code, field=field, index=index, count=count)

    def repair(self, code: str, message: str, **where: Unpack[Where]) -> None:
        """Record a documented fix that was made."""
        self._record(Problem(code, "repaired", message, **where))

    def warn(self, code: str, message: str, **where: Unpack[Where]) -> None:
        """Record something odd that was accepted as it is."""
        self._record(Problem(code, "warned", message, **where))

    def notice(self, code: str, message: str, **where: Unpack[Where]) -> None:
        """Record what was accepted or chosen for the user; never refused."""
        self.problems.append(Problem(code, "noticed", message, **where))

    def _record(self, problem: Problem) -> None:
        if self.strict:
            self.refuse(
                problem.code,
                f"{problem.message} (refused: --strict)",
                field=problem.field,
                index=problem.first,
                count=problem.count,
            )
        self.problems.append(problem)
