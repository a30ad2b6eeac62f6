"""Where reports go: beside the run they are about, or into a folder of their own."""

from __future__ import annotations

import contextlib
import json
import os
from collections.abc import Callable, Sequence
from pathlib import Path

from pubc.errors import DataError, PubcError, UsageError
from pubc.runs.folder.round_files import UNREADABLE
from pubc.runs.folder.run_folder import is_run
from pubc.runs.folder.run_reading import Run, read_run, unreadable
from pubc.storage import (
    atomic_file,
    atomic_folder,
    claim,
    lock,
    page_bytes,
    read_manifest,
    renew_files,
    verify,
)

__all__ = ["Found", "draw_report", "find", "folder_for", "write_report"]

KIND = "report"
_SUBJECTS = "subjects"
"""Names, in the manifest of a report, the folders that it is about."""
NAMES = ("report.html", "report.md", "report.json")
"""The three forms of a report."""


class Found:
    """What the paths of one report hold."""

    def __init__(self, paths: Sequence[Path], *, sealed: bool = True) -> None:
        from pubc.policies.policy_folder import read_config
        from pubc.report.policies import is_policy, is_records

        self.runs: list[Run] = []
        self.folders: list[Path] = []
        self.files: list[Path] = []
        for path in paths:
            if is_run(path):
                self.runs.append(read_run(path, sealed=sealed))
            elif is_policy(path):
                read_config(path)  # refuses a folder that is not as its manifest says
                self.folders.append(path)
            elif is_records(path):
                self.files.append(path)
            elif not path.exists():
                raise UsageError(f"{path}: no such file or folder.")
            else:
                raise DataError(
                    f"{path}: expected the folder of a filter run, a policy folder, a .jsonl file "
                    "of records or a folder of `pubc reproduce` with heads beside its records, "
                    "found none of these.",
                    code="wrong_kind",
                )


def find(paths: Sequence[Path]) -> Found:
    """Read everything that a report is to be about.

    Raises:
        UsageError: There is nothing at a path.
        DataError: What is there is not for a report, or damaged.
    """
    if not paths:
        raise UsageError("Name at least one run folder, policy folder or file of records.")
    return Found(paths)


def folder_for(folders: Sequence[Path], out: Path | None) -> Path | None:
    """The folder that a report gets; None where it goes into the run that it is about."""
    own = out is None and sum(map(is_run, folders)) == 1
    return out or _beside(folders) if folders and not own else None


def write_report(
    folders: Sequence[Path],
    out: Path | None = None,
    *,
    force: bool = False,
    first: Callable[[Found], object] = lambda found: None,
) -> Path:
    """Write report.html, report.md and report.json, and return the path of the page.

    The report of one run goes into its folder, whose manifest is renewed; all other files must be
    as the manifest says. Any other report gets a folder of its own.

    Args:
        folders: Run folders, policy folders and files of records.
        out: Folder for the report; by default the run's own, or one beside the first path
            named after all of them.
        force: Replace an earlier report at `out`. One of the same folders at the place of our
            own choice is always replaced, unless somebody edited it.
        first: Writes what belongs to the report and can be written again. It comes before the
            report, whose presence would have the same command refused after a kill.

    Raises:
        UsageError: There is nothing at a path, or `out` is not ours to write.
        DataError: What is there is not for a report, or damaged.
        EnvironmentFailure: The disk said no.
    """
    place = folder_for(folders, out)
    about = {_SUBJECTS: [str(folder.resolve()) for folder in folders]}
    if place is not None:
        force = force or (out is None and _is_about(place, about))
        claim(place, KIND, force=force)
    found = find(folders)
    texts = _texts(found, folders[0])
    first(found)
    if place is None:
        run = found.runs[0].path
        with lock(run):
            _refuse_damage(run)
            renew_files(run, texts)
        return run / NAMES[0]
    with atomic_folder(place, kind=KIND, overwrite=force, about=about) as new:
        _write(new, texts)
    return place / NAMES[0]


def _is_about(place: Path, about: dict[str, list[str]]) -> bool:
    """Whether an earlier report is about the same folders: others may have the same last names."""
    with contextlib.suppress(PubcError, OSError):
        return bool(read_manifest(place).get(_SUBJECTS) == about[_SUBJECTS])
    return False


def draw_report(run: Path, place: Path) -> None:
    """Write the report of a run that is being finished, and will be sealed with it.

    Args:
        run: The folder of the run.
        place: The folder that the report goes to.

    Raises:
        DataError: Its files contradict each other.
        EnvironmentFailure: The disk said no.
    """
    _write(place, _texts(Found([run], sealed=False), run))


def _texts(found: Found, first: Path) -> dict[str, bytes]:
    try:
        return _drawn(found)
    except PubcError:
        raise
    except UNREADABLE as error:
        # A run, policy or records of a stranger may lack what ours always say.
        raise unreadable(first, error) from error


def _drawn(found: Found) -> dict[str, bytes]:
    from pubc.report.compare_runs import comparison
    from pubc.report.page import render
    from pubc.report.policies import policies
    from pubc.report.run_markdown import as_document, as_markdown

    run = found.runs[0] if len(found.runs) == 1 else None
    facts = comparison(found.runs) if len(found.runs) > 1 else None
    learned = policies(found.folders, found.files)
    if run is None and facts is None and learned is None:
        raise DataError("There is no record in these files to report.", code="no_records")
    document = as_document(run, facts, learned)
    return {
        NAMES[0]: page_bytes(render(run, found.runs, facts, learned)),
        NAMES[1]: page_bytes(as_markdown(run, facts, learned)),
        NAMES[2]: page_bytes(json.dumps(document, indent=1, allow_nan=False) + "\n"),
    }


def _write(place: Path, texts: dict[str, bytes]) -> None:
    for name, text in texts.items():
        with atomic_file(place / name, overwrite=True) as new:
            new.write_bytes(text)


def _refuse_damage(run: Path) -> None:
    # Sealing anew would declare damaged files to be as they should be.
    ours: Callable[[str], bool] = NAMES.__contains__
    found = verify(run)
    edited = [
        fault.file for fault in found if ours(fault.file) and os.path.lexists(run / fault.file)
    ]
    if edited:
        raise UsageError(
            f"{run / edited[0]} was changed since pubc wrote it, so it stays. Move it away, or "
            "write the report elsewhere with --out."
        )
    faults = [fault for fault in found if not ours(fault.file)]
    if faults:
        first = faults[0]
        raise DataError(
            f"{run}: {first.file} is not as the run left it ({first.reason}), and a new report "
            f"would hide that. `pubc verify {run}` lists all differences; write the report "
            "elsewhere with --out.",
            code="damaged",
            field=first.file,
        )


def _beside(paths: Sequence[Path]) -> Path:
    names = [path.resolve().name.removesuffix(".jsonl") for path in paths]
    return paths[0].resolve().parent / ("-vs-".join(names[:4]) + "-report")
