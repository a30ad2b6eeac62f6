"""Documentation runs: every `python` and `sh` block of README.md and docs/ is executed.

The blocks of a page run in order in one empty folder, as a reader would type them. In their
commands `auto` trains less (tests/brisk.py). README.md starts every command anew, for the other
pages the libraries are loaded once (tests/warm_pubc.py). A block that cannot run in a test (it
installs, or takes hours) has a comment above it that says so: `<!-- not run: REASON -->`.
"""

import importlib
import json
import os
import re
import shlex
import subprocess
import sys
from itertools import groupby
from pathlib import Path

import pytest

from pubc.cli.main import COMMANDS

ROOT = Path(__file__).parent.parent
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
PYTHON_PAGES = sorted((ROOT / "docs" / "python").glob("*.md"))
BLOCK = re.compile(
    r"(?P<skip><!-- not run: [^\n]+ -->\n+)?^```(?P<language>python|sh)\n(?P<code>.*?)^```",
    re.MULTILINE | re.DOTALL,
)


IN_TURN = """
import json, sys
for number, code in json.loads(sys.argv.pop()).items():
    exec(compile(code, f"block {number}", "exec"), {"__name__": "__main__"})
"""
"""Blocks of Python that follow one another: a namespace each, and libraries are loaded once."""


def blocks(page: Path) -> list[re.Match[str]]:
    return [match for match in BLOCK.finditer(page.read_text()) if not match["skip"]]


def surroundings(folder: Path, words: list[str]) -> dict[str, str]:
    """Variables of a shell in which `pubc` means other words."""
    script = folder / "bin" / "pubc"
    script.parent.mkdir()
    script.write_text(f'#!/bin/sh\nexec {shlex.join(words)} "$@"\n')
    script.chmod(0o755)
    places = [str(script.parent), str(Path(sys.executable).parent), os.environ["PATH"]]
    return os.environ | {"PATH": os.pathsep.join(places), "PUBC_CACHE": str(folder / "cache")}


@pytest.mark.timeout(600)
@pytest.mark.parametrize(
    "page", [p for p in PAGES if blocks(p)], ids=lambda p: p.relative_to(ROOT).as_posix()
)
def test_every_block_runs(page: Path, tmp_path: Path, warm: list[str]):
    pubc, python = [*warm, "pubc"], [*warm, "python"]
    if page.name == "README.md":
        pubc = [sys.executable, "-P", str(ROOT / "tests" / "brisk.py")]
    environment = surroundings(tmp_path, pubc)
    work = tmp_path / "work"
    work.mkdir()
    numbered = list(enumerate(blocks(page), 1))
    for language, some in groupby(numbered, lambda pair: pair[1]["language"]):
        codes = {number: match["code"] for number, match in some}
        if language == "python":
            commands = [([*python, IN_TURN, json.dumps(codes)], codes)]
        else:
            words = ["bash", "-e", "-u", "-o", "pipefail", "-c"]
            commands = [([*words, code], {number: code}) for number, code in codes.items()]
        for command, shown in commands:
            done = subprocess.run(
                command, cwd=work, env=environment, capture_output=True, text=True
            )
            assert done.returncode == 0, (
                f"{page.name} ended with {done.returncode} in {shown}\n{done.stdout}\n{done.stderr}"
            )


def test_no_block_for_researchers_is_longer_than_twelve_lines():
    found = [
        (page, match["code"]) for page in PYTHON_PAGES for match in BLOCK.finditer(page.read_text())
    ]
    assert len(found) > 10
    for page, code in found:
        assert len(code.splitlines()) <= 12, f"{page.name}:\n{code}"


def test_every_command_is_documented():
    text = "\n".join(page.read_text() for page in PAGES)
    missing = [name for name in COMMANDS if f"pubc {name}" not in text]
    assert not missing, f"no page of the documentation shows: {missing}"


LINK = re.compile(r"\]\((?!https?:|mailto:|#)([^)#\s]+)")


@pytest.mark.parametrize("page", PAGES, ids=lambda p: p.relative_to(ROOT).as_posix())
def test_every_link_leads_somewhere(page: Path):
    for target in LINK.findall(page.read_text()):
        assert (page.parent / target).exists(), f"{page.name} links to {target}"


ROW = re.compile(
    r"^\| (?P<part>[^|]+) \| `(?P<name>pubc[^`]+)` \| `(?P<test>tests/[^`]+)` \|$", re.M
)


def test_the_paper_map_names_what_exists():
    rows = list(ROW.finditer((ROOT / "docs" / "paper-map.md").read_text()))
    assert len(rows) > 20
    for row in rows:
        module, _, name = row["name"].rpartition(".")
        assert hasattr(importlib.import_module(module), name), row["part"]
        file, _, test = row["test"].partition("::")
        assert f"def {test}(" in (ROOT / file).read_text(), row["part"]


PROMISE = re.compile(
    r"^\| (?P<goal>R\d+) \| (?P<promise>[^|]+) \| (?P<tests>[^|]+) \| (?P<figure>[^|]+) \|$", re.M
)


def test_every_promise_of_reliability_names_its_tests_and_a_figure():
    text = (ROOT / "docs" / "reliability.md").read_text()
    rows = {row["goal"]: row for row in PROMISE.finditer(text)}
    assert set(rows) == {"R6", "R9", "R15", "R16", "R17", "R18", "R19"}
    for goal, row in rows.items():
        assert re.search(r"tests/[\w/]+\.py", row["tests"]), f"{goal} names no test"
        assert re.search(r"\d", row["figure"]), f"{goal} has no figure"


@pytest.mark.parametrize("name", ["reliability.md", "dev/check-full.md"])
def test_every_test_that_a_page_names_exists(name: str):
    named = set(re.findall(r"`(tests/[\w/]+\.py)", (ROOT / "docs" / name).read_text()))
    assert len(named) > 5
    assert [file for file in sorted(named) if not (ROOT / file).is_file()] == []
