"""What may stand in run.json: a run folder may come from a stranger, as a dataset may."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from pubc.errors import DataError
from pubc.formats import ReadOptions
from pubc.storage import check_settings

__all__ = ["check_complete", "check_types", "reading_options"]

_NUMBER = (int, float)
_WORD = (str, type(None))
_TYPES: Mapping[str, tuple[type, ...]] = {
    "version": (int,), "status": (str,), "data": (dict,), "reading": (dict,), "seed": (dict,),
    "bad": (dict,), "recipe": (dict,), "settings": (dict,), "random_seed": (int,),
    "device": (str,), "truth": _WORD, "to": _WORD, "mask": (bool,), "per_step": (bool,),
    "problems": (list,), "sound": (bool,), "threshold": (*_NUMBER, type(None)), "kept": (int,),
    "kept_steps": (int,), "kept_path": _WORD, "round": (int,), "rounds": (int,),
    "quality": (dict,), "advice": (list,), "truth_report": (dict, type(None)), "times": (dict,),
    "machine": (dict,),
    "data.path": _WORD, "data.format": _WORD, "data.fingerprint": (str,),
    "data.trajectories": (int,), "data.steps": (int,), "data.observation_size": (int,),
    "data.action_size": (int,),
    "seed.how": (str,), "seed.ids": (list,), "seed.positions": (list,), "seed.from": _WORD,
    "seed.outside": (dict,), "seed.outside.positions": (list,), "seed.outside.fingerprint": (str,),
    "bad.ids": (list,), "bad.stretches": (list,), "times.seconds": (dict,),
}  # fmt: skip
"""Types by key; a dot stands between a key and one inside it. Other keys are free."""
_LONGEST, _LONGEST_NAME = 1_000_000, 10_000
"""Characters of a text, and of a path or name. --seed-episodes may list many ids in one text."""
_ALWAYS = (
    "data.path", "data.format", "data.fingerprint", "data.trajectories", "data.steps",
    "data.observation_size", "data.action_size",
)  # fmt: skip
"""What every run says from its first second on."""


def check_types(path: Path, document: Mapping[str, Any]) -> None:
    """See that what run.json says has the types that pubc writes; other gaps are seen later.

    Raises:
        DataError: Naming the first key that has another type.
    """
    _check_lengths(path, document)
    _check_problems(path, document.get("problems"))
    for key, kinds in _TYPES.items():
        place: Any = document
        for word in key.split("."):
            place = place.get(word, _TYPES) if isinstance(place, Mapping) else _TYPES
        if place is _TYPES:
            continue
        if isinstance(place, str):
            _check_lengths(path, place, _LONGEST_NAME)
            if "\0" in place:  # no path and no name holds one
                raise DataError(
                    f"{path}: run.json: {key} holds a character of zero. `pubc verify {path}` says "
                    "whether the file was changed.",
                    code="bad_run",
                    field=key,
                )
        fits = isinstance(place, kinds) and (bool in kinds or not isinstance(place, bool))
        if not fits or (isinstance(place, int) and place < 0 and key != "random_seed"):
            raise DataError(
                f"{path}: run.json: {key} must be {_words(kinds)}. Found "
                f"{str(place)[:60]!r}. `pubc verify {path}` says whether the file was changed.",
                code="bad_run",
                field=key,
            )


def _check_problems(path: Path, problems: Any) -> None:
    """See that what the reader found says what it was, and what became of it."""
    for problem in problems if isinstance(problems, list) else ():
        words = problem if isinstance(problem, Mapping) else {}
        if not all(isinstance(words.get(name), str) for name in ("outcome", "message")):
            raise DataError(
                f"{path}: run.json: problems must be objects with outcome and message. `pubc "
                f"verify {path}` says whether the file was changed.",
                code="bad_run",
                field="problems",
            )


def _check_lengths(path: Path, value: Any, most: int = _LONGEST) -> None:
    """Refuse a text that no run says: pages and messages would repeat all of it."""
    if isinstance(value, str):
        if len(value) > most:
            raise DataError(
                f"{path}: run.json holds a text of {len(value):,} characters; the limit is "
                f"{most:,}. `pubc verify {path}` says whether the file was changed.",
                code="bad_run",
            )
    elif isinstance(value, Mapping):
        for name, inner in value.items():
            _check_lengths(path, name)
            _check_lengths(path, inner)
    elif isinstance(value, list):
        for inner in value:
            _check_lengths(path, inner)


def check_complete(path: Path, document: Mapping[str, Any]) -> None:
    """See that run.json says what no finished run is without.

    Raises:
        DataError: Naming the first key that is not there.
    """
    for key in _ALWAYS:
        outer, inner = key.split(".")
        if inner not in document.get(outer, {}):
            raise DataError(
                f"{path}: run.json says nothing of {key}, as every run does. `pubc verify {path}` "
                "says whether the file was changed.",
                code="bad_run",
                field=key,
            )


def reading_options(document: Mapping[str, Any]) -> ReadOptions:
    """How the data of a run was read.

    Raises:
        DataError: The document does not say so in a way that can be done again.
    """
    try:
        reading = dict(document["reading"])
        reading["observation_keys"] = tuple(reading["observation_keys"])
        options = ReadOptions(**reading)
        check_settings(options)
    except (KeyError, TypeError, ValueError) as error:
        raise DataError(
            f"run.json: reading cannot be read back ({error}).", code="bad_json", field="reading"
        ) from None
    return options


def _words(kinds: tuple[type, ...]) -> str:
    told = {dict: "an object", list: "a list", str: "text", bool: "true or false",
            int: "a whole number", float: "a number", type(None): "null"}  # fmt: skip
    return " or ".join(told[kind] for kind in kinds)
