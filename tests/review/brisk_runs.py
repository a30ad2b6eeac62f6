"""Runs behind the page that train little, in forks of a process that has loaded torch.

python -m tests.review.brisk_runs WARM review ...    `pubc review ...` with such runs; WARM is JSON
"""

import json
import subprocess
import sys
from collections.abc import Sequence
from types import SimpleNamespace

from pubc.cli.main import main
from pubc.review import filter_job

CHILD = "import sys; from pubc.review.filter_child import main; sys.exit(main())"


def processes(warm: Sequence[str]) -> SimpleNamespace:
    """The module `subprocess` as `filter_job` is to see it."""

    def start(words: Sequence[str], **options: object) -> subprocess.Popen[bytes]:
        assert words[-1] == "pubc.review.filter_child"
        return subprocess.Popen([*warm, "python", CHILD], **options)

    return SimpleNamespace(**{**vars(subprocess), "Popen": start})


if __name__ == "__main__":
    filter_job.subprocess = processes(json.loads(sys.argv[1]))
    sys.exit(main(sys.argv[2:]))
