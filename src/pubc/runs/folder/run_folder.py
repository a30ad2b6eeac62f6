"""A run on disk: what is written when, and how an interrupted run finds its way back.

docs/run-folder.md describes the files. Order is what makes a kill harmless: networks are
shelved as they finish, a round's line in rounds.jsonl comes before its arrays, results come
after all rounds and after the list that speaks for them, and the manifest comes last.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pubc.errors import DataError, UsageError
from pubc.pu.rounds import Round
from pubc.runs.folder.document_types import check_complete, check_types
from pubc.runs.folder.round_files import read_rounds, save_round
from pubc.runs.folder.run_files import DRAFT, FOREIGN, KIND, unproven
from pubc.runs.folder.run_results import seal_run, staged_results
from pubc.storage import (
    MANIFEST,
    claim,
    read_json,
    read_manifest,
    read_sealed,
    replaced_mark,
    said_to_replace,
    take_place,
    verify,
    write_sealed,
)
from pubc.storage.disk import remove

__all__ = ["RunFolder", "is_run"]


@dataclass(frozen=True, slots=True)
class RunFolder:
    """The folder of one run."""

    path: Path
    """Where it is."""
    final: Path | None = None
    """The place of an earlier run that it takes when it is whole; None where it has its own."""

    @property
    def shelf(self) -> Path:
        """Where networks are kept."""
        return self.path / "classifiers"

    @property
    def shards(self) -> Path:
        """Where workers of an engine leave what they found, until the rounds are over."""
        return self.path / "shards"

    @property
    def finished(self) -> bool:
        """Whether the run came to its end."""
        return (self.path / MANIFEST).exists()

    def begin(self, document: Mapping[str, Any]) -> None:
        """Make the folder and write down what is to be done, and what it is to replace."""
        self.path.mkdir(parents=True, exist_ok=True)
        mark = {} if self.final is None else replaced_mark(self.final, "run.json")
        write_sealed(self.path / "run.json", {**document, **mark})

    def remove_shards(self) -> None:
        """Remove what the workers of an engine left.

        Raises:
            DataError: Something there was changed.
            UsageError: Somebody put something there.
        """
        if self.shards.exists():
            self.check_own(f"{self.shards.name}/")
            remove(self.shards)

    def _replaces(self) -> dict[str, str]:
        """Which earlier run this one may replace: the one that was there when it was begun."""
        if self.final is None:
            return {}
        if (self.path / "run.json").exists():
            return said_to_replace(read_json(self.path / "run.json"))
        return replaced_mark(self.final, "run.json")

    def check_own(self, under: str = "") -> None:
        """See that an unfinished run is as it left itself, and that nothing was added to it.

        Args:
            under: Only what lies under names that begin so.

        Raises:
            DataError: A file was changed, or is another run's.
            UsageError: Something was added.
        """
        for fault in unproven(self.path, under):
            if fault.reason == FOREIGN:
                raise UsageError(
                    f"{self.path} holds {fault.file}, which this unfinished run did not write and "
                    "might replace. Move it away."
                )
            raise DataError(
                f"{self.path} holds {fault.file}, which is not as this unfinished run wrote it. "
                "Move the run away and begin anew.",
                code="changed",
                field=fault.file,
            )

    def read(self) -> dict[str, Any]:
        """What run.json says.

        Raises:
            DataError: This is not the folder of a filter run.
        """
        document = read_json(self.path / "run.json")
        if document.get("kind") != KIND:
            raise DataError(
                f"{self.path}: expected the folder of a filter run, found kind "
                f"{document.get('kind')!r} in its run.json.",
                code="wrong_kind",
                field="kind",
            )
        check_types(self.path, document)
        return document

    def check_finished(self) -> dict[str, Any]:
        """What run.json says of a finished run.

        Raises:
            DataError: It is not finished, not a filter run, says too little to be one, or its
                run.json is not as the run left it.
        """
        document = self.read()
        if not self.finished or document.get("status") == "running":
            raise DataError(
                f"{self.path}: the run is not finished. Go on with: "
                f"pubc filter --resume {self.path}",
                code="unfinished",
            )
        read_manifest(self.path, kind=KIND)
        self.check_parts("run.json")
        check_complete(self.path, document)
        return document

    def check_networks(self) -> None:
        """See that the networks are as the run left them: others would rate without a word.

        Raises:
            DataError: A network was changed, is missing, or was added.
        """
        self.check_parts(f"{self.shelf.name}/", code="bad_weights")

    def check_parts(self, *names: str, code: str = "changed") -> None:
        """See that parts of a finished run are as it left them.

        Args:
            names: How the names of those parts begin; all of them where none is given.
            code: The short name of the fault.

        Raises:
            DataError: A part was changed, is missing, or was added.
        """
        for name in names or ("",):
            for fault in verify(self.path, under=name):
                raise DataError(
                    f"{self.path}: {fault.file} is not as `pubc filter` wrote it "
                    f"({fault.reason}). Run the filter again.",
                    code=code,
                    field=fault.file,
                )

    def kept(self) -> Path:
        """Where the kept trajectories lie.

        Raises:
            DataError: It is no finished run, it kept nothing, or what it kept was changed since.
        """
        name = self.check_finished().get("kept_path")
        if not isinstance(name, str) or Path(name).name != name:
            raise DataError(
                f"{self.path}: the filter kept no trajectories, so there is nothing to learn from.",
                code="empty",
            )
        self.check_parts(name)
        return self.path / name

    def save_round(self, done: Round, question: str) -> None:
        """Keep a finished round of the run that asks `question`."""
        save_round(self.path, done, question)

    def rounds(self, trajectories: int, question: str | None = None) -> list[Round]:
        """The rounds that are finished, in order; of the run that asks `question`, if given.

        Raises:
            DataError: A round's arrays do not fit its line or the number of trajectories.
        """
        return read_rounds(self.path, trajectories, question)

    def finish(
        self,
        document: Mapping[str, Any],
        report: Callable[[Path], object] = lambda stage: None,
    ) -> None:
        """Write the last word, have a report of it drawn, seal the folder, and take its place.

        Args:
            document: run.json as the run ended.
            report: Draws the report of the run into the folder that it is given.

        Raises:
            DataError: Somebody edited its run.json while it was at work.
            UsageError: Somebody put something where the report goes.
            EnvironmentFailure: The disk said no.
        """
        if (self.path / "run.json").exists():
            read_sealed(self.path / "run.json")
        mark = self._replaces()
        write_sealed(self.path / "run.json", {**document, **mark})
        with staged_results(self.path) as stage:
            report(stage)
        seal_run(self.path, mark)
        self.take_place()

    def take_place(self) -> None:
        """Put a whole run where it belongs; the earlier one there goes.

        Raises:
            UsageError: What is there by now must not be replaced.
            EnvironmentFailure: The disk said no, and the earlier run is still there.
        """
        if self.final is None:
            return
        if replaced_mark(self.final, "run.json") not in ({}, self._replaces()):
            raise UsageError(
                f"{self.final} holds another run than the one that was to be replaced, so it "
                f"stays; the new one is whole and lies in {self.path}. Move either away."
            )
        claim(self.final, KIND, force=True, draft=DRAFT)
        take_place(self.path, self.final)


def is_run(path: Path) -> bool:
    """Whether a path looks like the folder of a filter run.

    Raises:
        DataError: Its run.json cannot be read.
    """
    if not (path / "run.json").is_file():
        return False
    return read_json(path / "run.json").get("kind") == KIND
