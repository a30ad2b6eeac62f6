"""What a reader finds on its way: refused, repaired or warned about, never silent."""

from __future__ import annotations

from pathlib import Path
from typing import NoReturn

from pubc.errors import DataError
from pubc.trajectory import Problem

__all__ = ["Findings", "plural", "verb"]


def plural(count: int, word: str) -> str:
    """A count with its word: `1 trajectory`, `2 trajectories`, `1,000 steps`."""
    if count == 1:
        return f"1 {word}"
    return f"{count:,} {word[:-1]}ies" if word.endswith("y") else f"{count:,} {word}s"


def verb(count: int, one: str = "is", many: str = "are") -> str:
    """The verb that goes with a count."""
    return one if count == 1 else many


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

    def repair(
        self,
        code: str,
        message: str,
        *,
        field: str | None = None,
        count: int = 1,
        first: int | None = None,
    ) -> None:
        """Record a documented fix that was made."""
        self._record("repaired", code, message, field, count, first)

    def warn(
        self,
        code: str,
        message: str,
        *,
        field: str | None = None,
        count: int = 1,
        first: int | None = None,
    ) -> None:
        """Record something odd that was accepted as it is."""
        self._record("warned", code, message, field, count, first)

    def notice(
        self,
        code: str,
        message: str,
        *,
        field: str | None = None,
        count: int = 1,
        first: int | None = None,
    ) -> None:
        """Record what was accepted or chosen for the user; never refused."""
        self.problems.append(Problem(code, "noticed", message, field, count, first))

    def _record(
        self,
        outcome: str,
        code: str,
        message: str,
        field: str | None,
        count: int,
        first: int | None,
    ) -> None:
        if self.strict:
            self.refuse(
                code,
                f"{message} (refused: --strict)",
                field=field,
                index=first,
                count=count,
            )
        self.problems.append(Problem(code, outcome, message, field, count, first))
