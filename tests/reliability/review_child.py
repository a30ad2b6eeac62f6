"""The process that filters behind the review page, with a recipe of a few milliseconds.

Words: the dataset, the labels, the run's folder.
"""

import dataclasses
import json
import os
import sys
from pathlib import Path

from pubc.formats import ReadOptions
from pubc.pu.recipes import RECIPES
from pubc.review import filter_child
from tests.reliability.quick_recipe import Quick


def main(words: list[str]) -> int:
    """Be the child of a server that stays; the exit code."""
    data, labels, out = (str(Path(word).resolve()) for word in words)
    reading = dataclasses.asdict(ReadOptions())
    request = {"data": data, "labels": labels, "out": out, "reading": reading}
    RECIPES["auto"] = Quick
    end, begin = os.pipe()
    os.dup2(end, 0)
    os.write(begin, json.dumps(request).encode() + b"\n")
    sys.stdin = os.fdopen(0)
    return filter_child.main()
