"""The map for newcomers names what exists, and the glossary the words that the code uses."""

import ast
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
PATH = re.compile(r"`((?:src|tests|docs|benchmarks)/[^`\s]*)`")
QUESTIONS = re.compile(r"^\| ([^|]+\?) \| `([^`]+)` \|$", re.MULTILINE)
PAGES = [ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").rglob("*.md"))]


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.relative_to(ROOT).as_posix())
def test_every_path_in_a_page_exists(page: Path):
    named = {path.partition("::")[0] for path in PATH.findall(page.read_text())}
    assert [path for path in sorted(named) if not (ROOT / path).exists()] == []


def test_twenty_questions_are_answered_by_a_path():
    text = (ROOT / "CONTRIBUTING.md").read_text().split("## Where is")[1]
    answers = dict(QUESTIONS.findall(text))
    assert len(answers) >= 20
    assert len(set(answers.values())) == len(answers), "two questions with one answer"


@pytest.mark.parametrize("kind", ["format", "learner", "environment", "table", "recipe"])
def test_the_map_says_where_a_thing_is_added(kind: str):
    text = (ROOT / "CONTRIBUTING.md").read_text()
    (row,) = re.findall(rf"^\| {kind} \| (.+) \| .+ \|$", text, re.MULTILINE)
    assert PATH.findall(row)


def identifiers() -> set[str]:
    """Every name that the source defines, and every file that it names."""
    found: set[str] = set()
    for path in (ROOT / "src" / "pubc").rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.FunctionDef | ast.ClassDef):
                found.add(node.name)
            elif isinstance(node, ast.arg):
                found.add(node.arg)
            elif isinstance(node, ast.Name):
                found.add(node.id)
            elif isinstance(node, ast.Constant) and isinstance(node.value, str):
                found.add(node.value)
    return found


def test_the_glossary_and_the_code_use_the_same_words():
    rows = re.findall(
        r"^\| ([^|]+) \| [^|]+ \| `([^`]+)` \|", (ROOT / "docs" / "glossary.md").read_text(), re.M
    )
    assert len(rows) >= 18
    known = identifiers()
    assert [f"{word}: {code}" for word, code in rows if code not in known] == []
