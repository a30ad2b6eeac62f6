"""Measure the house: whether things can be found, read at one sitting, and changed one at a time.

    python -m tests.house

prints the figures and what breaks a rule; it ends with 6 if something does. `make house` calls it,
and tests/test_house.py asks the same functions.
"""

from __future__ import annotations

import ast
import sys
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

__all__ = ["RULES", "SOURCE", "House", "Rule", "measure"]

SOURCE = Path(__file__).parents[1] / "src" / "pubc"
MODULES, LINES, FUNCTION, REPEATED, WINDOW = 12, 300, 60, 0.01, 6
"""Modules in a folder, lines of a file, lines of a function, share of repeated lines, and how many
equal lines in a row count as repeated."""


@dataclass(frozen=True)
class House:
    """The source, read once."""

    root: Path
    texts: dict[Path, str]

    @classmethod
    def read(cls, root: Path) -> House:
        """Everything under `root`."""
        return cls(root, {p: p.read_text(encoding="utf-8") for p in sorted(root.rglob("*.py"))})

    def name(self, path: Path) -> str:
        """Where a file is, in words of the house."""
        return path.relative_to(self.root).as_posix()

    @property
    def lines(self) -> int:
        """All lines of all files."""
        return sum(text.count("\n") for text in self.texts.values())

    def trees(self) -> Iterator[tuple[Path, ast.Module]]:
        """Each file and what it says."""
        for path, text in self.texts.items():
            yield path, ast.parse(text)


@dataclass(frozen=True)
class Rule:
    """One thing that is asked of the house."""

    title: str
    figure: str
    broken: list[str]


def folders(house: House) -> Rule:
    """Folders whose contents do not fit on a screen."""
    count = Counter(p.parent for p in house.texts if p.name != "__init__.py")
    broken = [f"{house.name(p)}/ has {n}" for p, n in sorted(count.items()) if n > MODULES]
    return Rule(f"modules in a folder, at most {MODULES}", str(max(count.values())), broken)


def files(house: House) -> Rule:
    """Files that nobody reads at one sitting."""
    count = {path: text.count("\n") for path, text in house.texts.items()}
    broken = [f"{house.name(p)} has {n}" for p, n in count.items() if n > LINES]
    return Rule(f"lines of a file, at most {LINES}", str(max(count.values())), broken)


def functions(house: House) -> Rule:
    """Functions that do more than one thing."""
    longest, broken = 0, []
    for path, tree in house.trees():
        for node in ast.walk(tree):
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
                assert node.end_lineno is not None
                length = node.end_lineno - node.lineno + 1
                longest = max(longest, length)
                if length > FUNCTION:
                    broken.append(f"{house.name(path)}: {node.name} has {length}")
    return Rule(f"lines of a function, at most {FUNCTION}", str(longest), broken)


def names(house: House) -> Rule:
    """File names that say too little: two files have them."""
    places = defaultdict(list)
    for path in house.texts:
        if path.name != "__init__.py":
            places[path.name].append(house.name(path))
    broken = [" and ".join(found) for found in places.values() if len(found) > 1]
    return Rule("file names that occur twice", str(len(broken)), broken)


def circles(house: House) -> Rule:
    """Files that need one another, also through imports inside functions and for types alone."""
    edges = {path: set(_imports(house, path, tree)) for path, tree in house.trees()}
    found = [sorted(map(house.name, group)) for group in _strongly_connected(edges)]
    return Rule("circles of files", str(len(found)), [", ".join(group) for group in sorted(found)])


def _imports(house: House, path: Path, tree: ast.Module) -> Iterator[Path]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            asked = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            asked = [f"{node.module}.{alias.name}" for alias in node.names]
        else:
            continue
        for dotted in asked:
            target = _file_of(house, dotted)
            if target is not None and target != path:
                yield target


def _file_of(house: House, dotted: str) -> Path | None:
    """The file that `dotted` is, or is defined in."""
    first, *rest = dotted.split(".")
    if first != house.root.name:
        return None
    while True:
        place = house.root.joinpath(*rest)
        for path in (place.with_suffix(".py"), place / "__init__.py"):
            if path in house.texts and rest:
                return path
        if not rest:
            return house.root / "__init__.py"
        rest.pop()


def _strongly_connected(edges: dict[Path, set[Path]]) -> list[list[Path]]:
    """Groups of two and more that reach one another."""
    reached = {path: _reach(edges, path) for path in edges}
    groups = {
        frozenset(other for other in reached[path] if path in reached[other]) | {path}
        for path in edges
    }
    return [sorted(group) for group in groups if len(group) > 1]


def _reach(edges: dict[Path, set[Path]], start: Path) -> set[Path]:
    seen: set[Path] = set()
    todo = [start]
    while todo:
        for target in edges.get(todo.pop(), ()):
            if target not in seen:
                seen.add(target)
                todo.append(target)
    return seen


def repetition(house: House) -> Rule:
    """Code that was copied: a run of equal lines, indents, comments and imports apart."""
    said = {path: list(_said(text)) for path, text in house.texts.items()}
    places = defaultdict(list)
    for path, lines in said.items():
        for at in range(len(lines) - WINDOW + 1):
            places[tuple(text for _, text in lines[at : at + WINDOW])].append((path, at))
    repeated: dict[Path, set[int]] = defaultdict(set)
    for found in places.values():
        if len(found) > 1:
            for path, at in found:
                repeated[path] |= {number for number, _ in said[path][at : at + WINDOW]}
    total = sum(map(len, said.values()))
    share = sum(map(len, repeated.values())) / max(1, total)
    broken = [f"{house.name(p)}: lines {_spans(n)}" for p, n in repeated.items()]
    title = f"repeated lines ({WINDOW} and more in a row), at most {REPEATED:.0%}"
    return Rule(title, f"{share:.2%}", broken if share > REPEATED else [])


def _said(text: str) -> Iterator[tuple[int, str]]:
    imports = {
        line
        for node in ast.walk(ast.parse(text))
        if isinstance(node, ast.Import | ast.ImportFrom)
        for line in range(node.lineno, (node.end_lineno or node.lineno) + 1)
    }
    for number, line in enumerate(text.split("\n"), 1):
        plain = " ".join(line.split())
        if plain and not plain.startswith("#") and number not in imports:
            yield number, plain


def _spans(numbers: Iterable[int]) -> str:
    ordered = sorted(numbers)
    return f"{ordered[0]} to {ordered[-1]} ({len(ordered)} lines)"


RULES = (folders, files, functions, circles, names, repetition)


def measure(root: Path = SOURCE) -> tuple[House, list[Rule]]:
    """Every rule, asked of the source under `root`."""
    house = House.read(root)
    return house, [rule(house) for rule in RULES]


def main() -> int:
    """Print the figures; 0 if every rule holds."""
    house, rules = measure()
    said = [f"{house.lines:,} lines in {len(house.texts)} files"]
    for rule in rules:
        said += [f"{rule.figure:>8}  {rule.title}", *(f"          - {b}" for b in rule.broken)]
    sys.stdout.write("\n".join(said) + "\n")
    return 6 if any(rule.broken for rule in rules) else 0


if __name__ == "__main__":
    sys.exit(main())
