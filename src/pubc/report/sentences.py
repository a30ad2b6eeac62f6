"""What the report says in sentences: the verdict, its limits, and what to type next."""

from __future__ import annotations

import dataclasses
import shlex
from pathlib import Path
from typing import Any

from pubc import formats
from pubc.errors import PubcError
from pubc.formats.lerobot.lerobot_subset import has_pictures, train_command
from pubc.runs.folder.run_reading import Run
from pubc.runs.statuses import bad_words

__all__ = ["asked", "command", "limits", "next_commands"]


def asked(document: dict[str, Any]) -> str:
    """What was asked of the run, as one sentence."""
    seed = document["seed"]
    count = len(seed["ids"])
    inside = f"{count:,}" if count else "none of them a whole trajectory"
    bad = bad_words(document.get("bad") or {})
    known = f" Known to be bad: {bad}." if bad else ""
    return (
        f"Find the trajectories that act like the seeds: {_seeds(seed)} ({inside} in the dataset)."
        f"{known}"
    )


def command(run: Run) -> str:
    """The command, or the line of Python, that makes this run again."""
    document, seed = run.document, run.document["seed"]
    if document["data"]["path"] is None:
        return _call(document)
    words = ["pubc", "filter", str(document["data"]["path"]), "--out", str(run.place)]
    given = {
        "--labels": document.get("labels"),
        "--seed-top": seed["top"] if seed["how"] == "top" else None,
        "--seed-episodes": seed["episodes"],
        "--seed-from": seed["from"],
        "--seed-source": seed["source"],
        "--seed-count": seed.get("count") if seed["how"] == "source" else None,
        "--seed-steps-column": seed.get("steps_column"),
        "--bad-episodes": (document.get("bad") or {}).get("episodes"),
        "--recipe": document["recipe"].get("name"),
        **_settings(document),
        "--truth": document.get("truth"),
        "--random-seed": document["random_seed"],
        "--device": document.get("device"),
        "--to": document.get("to"),
        "--unsure": "keep" if document.get("unsure") == "keep" else None,
    }
    for flag, value in given.items():
        if value is not None:
            # A value that starts like a flag must hang on its own.
            words += [f"{flag}={value}"] if str(value).startswith("-") else [flag, str(value)]
    words += [f"--{name.replace('_', '-')}" for name in ("mask", "per_step") if document.get(name)]
    words += _segments(document.get("segments") or {})
    words += _reading(document.get("reading") or {})
    return " ".join(_quoted(word) for word in words)


def _call(document: dict[str, Any]) -> str:
    """What makes a run again whose data was made in memory."""
    recipe = document["recipe"].get("name")
    listed = ", ".join(repr(str(name)) for name in document["seed"]["ids"])
    return (
        f"pubc.ExpertFinder(recipe={recipe!r}, random_seed={document['random_seed']!r})"
        f".fit(mixed, seeds=[{listed}])"
    )


def limits(run: Run) -> list[str]:
    """What the report cannot tell, whatever its numbers say."""
    said = [
        "Whether the seeds are good. The filter finds what acts like them, not what is right: "
        "with clumsy seeds it finds clumsy trajectories.",
        "Whether a policy trained on the kept trajectories is better. Train and evaluate it: "
        "`pubc train`, then `pubc compare`.",
        "Two policies that choose nearly the same actions in the same states. To the filter they "
        "are one.",
        "Where a hand-over happened. A trajectory gets one label, even if somebody else took the "
        "controls half way; its confidence over time may show it.",
        "A probability of being good. Confidence ranks the trajectories of this run; it cannot "
        "be compared across runs, datasets or recipes.",
    ]
    if run.truth is None:
        said.append(
            "The true error. The expected share of wrong labels is read from the shape of the "
            "confidences alone; another expert that acts alike makes it too hopeful."
        )
    else:
        said.append(
            "The error on other data. Accuracy is measured on this dataset, against the names it "
            "gives to its policies."
        )
    return said


def next_commands(run: Run) -> list[tuple[str, str]]:
    """What to type next, for the users of each tool; empty where nothing was kept."""
    kept = run.document.get("kept_path")
    if not kept:
        return []
    place, name = run.place, run.document.get("to") or run.document["data"]["format"]
    data = _quoted(str(place / kept))
    return [
        ("pubc", f"pubc train {_quoted(str(place))} --algo bc --out policy"),
        ("Minari", _converted(data, name, "minari", "kept-minari")),
        ("LeRobot", _lerobot(run, data, name)),
        (
            "robomimic",
            _converted(data, name, "robomimic", "kept.hdf5")
            + "\npython -m robomimic.scripts.train --config bc.json --dataset "
            + (data if name == "robomimic" else "kept.hdf5"),
        ),
        (
            "d3rlpy",
            _converted(data, name, "d3rlpy", "kept.h5")
            + "\npython -c \"import d3rlpy; d3rlpy.dataset.ReplayBuffer.load('kept.h5', "
            'd3rlpy.dataset.InfiniteBuffer())"',
        ),
    ]


def _converted(data: str, have: str, want: str, target: str) -> str:
    if have == want:
        return f"# {data} is a {want} dataset already"
    return f"pubc convert {data} {target} --to {want}"


def _lerobot(run: Run, data: str, name: str) -> str:
    if name == "lerobot":
        kept = str(run.document["kept_path"])
        return train_command(run.place / kept, pictures=_pictures(run.path / kept), quote=_quoted)
    converted = _converted(data, name, "lerobot", "kept-lerobot")
    return f"{converted}\n{train_command(Path('kept-lerobot'), pictures=False)}"


def _pictures(kept: Path) -> bool:
    """Whether a kept set has pictures; where it is gone, the line is for one that has."""
    try:
        return has_pictures(kept)
    except (PubcError, OSError):
        return True


def _seeds(seed: dict[str, Any]) -> str:
    if seed["how"] == "top":
        return f"the {_share(seed['top'])} of the trajectories with the highest return"
    if seed["how"] == "from":
        return f"the trajectories of {seed['from']}"
    if seed["how"] == "source":
        return f"trajectories of the policy {seed['source']!r}"
    if seed["how"] == "labels":
        return f"what is marked good in {seed['labels']}"
    if seed["how"] == "steps_column":
        return f"the steps that the column {seed['steps_column']!r} marks"
    return "trajectories named one by one"


def _segments(settings: dict[str, Any]) -> list[str]:
    """Flags for the settings of `--segments`, where it was asked for."""
    if not settings.get("segments"):
        return []
    words = ["--segments", "--drop-idle"] if settings.get("drop_idle") else ["--segments"]
    for name in ("min_segment", "segment_margin"):
        words += [f"--{name.replace('_', '-')}", str(settings.get(name))]
    return words


def _reading(reading: dict[str, Any]) -> list[str]:
    """Flags for the reading options that are not as they would be without a flag."""
    usual = dataclasses.asdict(formats.FROM_COMMAND_LINE)
    words: list[str] = []
    for name, value in reading.items():
        flag, entries = name.replace("_", "-"), value if isinstance(value, list) else [value]
        if name not in usual or value == usual[name] or tuple(entries) == usual[name]:
            continue
        if isinstance(value, bool):
            words.append(f"--{flag}" if value else f"--no-{flag}")
        elif value is not None:
            words += [f"--{flag}", *map(str, entries)]
    return words


def _quoted(word: str) -> str:
    """A word for the command line that stays one word on one line, whatever is in it."""
    if word.isprintable():
        return shlex.quote(word)
    escaped = "".join(
        f"\\{c}" if c in "\\'" else c if c.isprintable() else _escape(c) for c in word
    )
    return f"$'{escaped}'"


def _escape(character: str) -> str:
    return "".join(f"\\x{byte:02x}" for byte in character.encode("utf-8", "surrogateescape"))


def _settings(document: dict[str, Any]) -> dict[str, Any]:
    settings = document.get("settings") or {}
    return {f"--{name.replace('_', '-')}": settings.get(name) for name in _FLAGS}


def _share(value: float) -> str:
    return f"{100 * value:.4g} %"


_FLAGS = ("classifiers", "order", "max_rounds")
