"""`pubc review`: look at trajectories in the browser, mark them, filter with the marks."""

from __future__ import annotations

import contextlib
import signal
import sys
import threading
import webbrowser
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

import tyro

from pubc import formats
from pubc.acting.environments.known_environments import spec
from pubc.cli.console import facts, say, warn, warn_unsound
from pubc.cli.dataset_flag import Dataset
from pubc.errors import UsageError

__all__ = ["COMMAND", "Review"]

_LAST_PORT = 65_535


@dataclass(frozen=True)
class Review:
    """Look at trajectories side by side, mark good and bad ones, and filter with the marks.

    Opens a page in the browser that nobody but this machine can reach. Every mark is saved at
    once to labels.json, which `pubc filter --labels` takes too. Ctrl-C ends it; the same command
    goes on where it was. docs/review.md shows the page and its keys.
    """

    path: Annotated[Dataset, tyro.conf.Positional]
    """A dataset, or the folder of a finished filter run."""
    out: Path | None = None
    """Folder for labels and runs; NAME-review beside the dataset or run by default."""
    labels: Path | None = None
    """File of marks to go on with; labels.json in the folder by default."""
    environment: str | None = None
    """Environment that it was recorded in (`ant`, `trifinger-push`, `Swimmer-v5`), to draw films of
    the episodes; what the dataset says of itself by default."""
    port: int = 0
    """Port on this machine; 0 means any free one."""
    browser: bool = True
    """Open the page in the default browser."""
    reading: formats.ReadOptions = formats.FROM_COMMAND_LINE
    """How to read the data."""
    json: bool = False
    """Print one JSON document at the end instead of text; the address goes to standard error."""

    def run(self) -> dict[str, Any]:
        """Serve the page until interrupted."""
        if not 0 <= self.port <= _LAST_PORT:
            raise UsageError(
                f"--port: expected a number from 0 to {_LAST_PORT}, found {self.port}. Leave it "
                "away for a free one."
            )
        from pubc.review.desk import open_desk
        from pubc.review.serve import serve
        from pubc.runs.folder.given_data import tell_rebuilt

        if self.environment is not None:
            spec(self.environment)  # a name that means nothing is refused before anything is read
        desk = open_desk(
            self.path,
            self.reading,
            folder=self.out,
            labels=self.labels,
            environment=self.environment,
        )
        self._announce()
        tell_rebuilt(desk.data, desk.trajectories, warn)
        document: dict[str, Any] = {
            "data": str(desk.data),
            "trajectories": len(desk.trajectories),
            "labels": str(desk.labels_path),
            "marks": len(desk.labels),
        }

        def ready(address: str) -> None:
            document["address"] = address
            self._tell(document)
            if self.browser:
                webbrowser.open(address)

        alone = threading.current_thread() is threading.main_thread()
        if alone and signal.getsignal(signal.SIGINT) is not signal.SIG_IGN:
            # Ctrl-C is how a review ends, and asyncio takes it from Python's own handler alone.
            signal.signal(signal.SIGINT, signal.default_int_handler)
        with contextlib.suppress(KeyboardInterrupt):
            serve(desk, self.port, ready)
        if not self.json:
            say(f"{len(desk.labels):,} marks in {desk.labels_path}")
        return {**document, "marks": len(desk.labels)}

    def _announce(self) -> None:
        from pubc.runs.folder.given_data import check_given, check_manifest
        from pubc.runs.folder.run_folder import RunFolder, is_run

        if self.labels is not None and not self.labels.exists():
            warn(f"{self.labels} does not exist yet; the first mark makes it.")
        if is_run(self.path):
            warn_unsound(self.path, RunFolder(self.path).read())
        else:
            check_given(self.path, warn)
            check_manifest(self.path, self.reading)

    def _tell(self, document: dict[str, Any]) -> None:
        if self.json:
            print(document["address"], file=sys.stderr, flush=True)
            return
        facts([(name, str(document[name])) for name in ("data", "trajectories", "labels")])
        say(f"\nOpen {document['address']}\nCtrl-C ends it.")


COMMAND = Review
