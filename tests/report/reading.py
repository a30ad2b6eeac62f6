"""A page read back: its numbers, its data and its structure."""

import base64
import json
from html.parser import HTMLParser

import numpy as np

VOID = {"meta", "br", "input", "link", "img", "hr"}


class Page(HTMLParser):
    """What a browser without JavaScript sees."""

    def __init__(self, text: str) -> None:
        super().__init__(convert_charrefs=True)
        self.tags: list[tuple] = []
        self.numbers: list[tuple[str, object, str]] = []
        self.data: dict = {}
        self.policy = ""
        self._stack: list[tuple[str, dict]] = []
        self._words = ""
        self.feed(text)
        self.close()
        assert not self._stack, f"left open: {self._stack}"

    def handle_starttag(self, tag, attributes):
        given = dict(attributes)
        self.tags.append((tag, tuple(sorted(given))))
        if given.get("http-equiv") == "Content-Security-Policy":
            self.policy = given["content"]
        if tag not in VOID:
            self._stack.append((tag, given))
        self._words = ""

    def handle_endtag(self, tag):
        name, given = self._stack.pop()
        assert name == tag, f"<{name}> closed by </{tag}>"
        if given.get("data-value") is not None:
            self.numbers.append((given["data-key"], json.loads(given["data-value"]), self._words))
        if given.get("id") == "data":
            self.data = json.loads(self._words)
        self._words = ""

    def handle_data(self, words):
        self._words += words


def unpack(packed: dict) -> np.ndarray:
    return np.frombuffer(base64.b64decode(packed["data"]), dtype=f"<{packed['type']}")
