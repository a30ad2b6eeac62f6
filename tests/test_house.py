"""The rules of the house, held by the script that `make house` calls."""

from pathlib import Path

import pytest

from tests.house import RULES, SOURCE, House, measure

HOUSE = House.read(SOURCE)


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule.__name__)
def test_the_house_keeps_its_rules(rule):
    assert rule(HOUSE).broken == []


def write(root: Path, name: str, text: str) -> None:
    path = root / "pubc" / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)


def broken(root: Path) -> dict[str, list[str]]:
    rules = measure(root / "pubc")[1]
    return {check.__name__: rule.broken for check, rule in zip(RULES, rules, strict=True)}


def test_every_rule_can_fail(tmp_path: Path):
    copied = "".join(f"x{i} = {i}\n" for i in range(6))
    write(tmp_path, "__init__.py", "")
    for number in range(13):
        write(tmp_path, f"full/m{number}.py", "")
    write(tmp_path, "long.py", "\n" * 301)
    write(tmp_path, "wide.py", "def f():\n" + "".join(f"    y{i} = {i}\n" for i in range(61)))
    write(tmp_path, "a.py", copied + "def f():\n    from pubc.room import b\n")
    write(tmp_path, "room/b.py", copied + "if TYPE_CHECKING:\n    from pubc.a import f\n")
    write(tmp_path, "other/b.py", "")
    assert broken(tmp_path) == {
        "folders": ["full/ has 13"],
        "files": ["long.py has 301"],
        "functions": ["wide.py: f has 62"],
        "circles": ["a.py, room/b.py"],
        "names": ["other/b.py and room/b.py"],
        "repetition": ["a.py: lines 1 to 6 (6 lines)", "room/b.py: lines 1 to 6 (6 lines)"],
    }


def test_a_package_and_its_modules_are_no_circle_unless_they_need_one_another(tmp_path: Path):
    write(tmp_path, "__init__.py", "")
    write(tmp_path, "room/__init__.py", "from pubc.room.inner import thing\n")
    write(tmp_path, "room/inner.py", "from pubc.room.low import thing\n")
    write(tmp_path, "room/low.py", "thing = 1\n")
    assert broken(tmp_path)["circles"] == []
    write(tmp_path, "room/low.py", "from pubc.room import thing\n")
    assert broken(tmp_path)["circles"] == ["room/__init__.py, room/inner.py, room/low.py"]
