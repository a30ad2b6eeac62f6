"""One self-contained HTML page: our own text, style and script, and the data as data.

Everything from data is escaped where it enters: by the template, or inside a block of JSON
that nothing executes. The content-security policy allows this one script and this one style
by their hashes and nothing else, so that even a hole in the escaping would run nothing.
"""

from __future__ import annotations

import base64
import functools
import hashlib
import json
import math
from collections.abc import Mapping, Sequence
from typing import Any

from jinja2 import Environment, PackageLoader, StrictUndefined, UndefinedError
from markupsafe import Markup, escape

from pubc.errors import DataError
from pubc.report import sentences as words
from pubc.report import summary
from pubc.report.compare_runs import comparison_payload
from pubc.report.payload import run_payload, to_json
from pubc.report.step_strips import WIDTH, step_strips
from pubc.runs.folder.run_reading import Run
from pubc.runs.segments.steps_file import STEPS_FILE
from pubc.runs.statuses import verdict
from pubc.version import __version__

__all__ = ["asset", "content_policy", "environment", "render"]

_LONGEST = 28
"""Characters of a word in a table of runs."""
_SCRIPTS = ("base.js", "charts.js", "table.js", "run.js", "main.js")


def render(
    run: Run | None,
    compared: Sequence[Run] = (),
    facts: Mapping[str, Any] | None = None,
    policies: Mapping[str, Any] | None = None,
) -> str:
    """The page of one run, of a comparison, of policies, or of a run with policies.

    Args:
        run: The run, where there is just one.
        compared: The runs, where there are several.
        facts: Their comparison.
        policies: What policies learned and earned.

    Raises:
        DataError: A run does not say something that every run says.
    """
    style = asset("page.css")
    script = "\n".join(asset(name) for name in _SCRIPTS)
    data: dict[str, Any] = {}
    if run is not None:
        data["run"] = run_payload(run)
    if facts is not None:
        data["comparison"] = comparison_payload(compared, dict(facts))
    if policies is not None:
        data["policies"] = policies
    template = environment().get_template("page.html")
    try:
        return template.render(
            policy=content_policy(style, script),
            style=Markup(style),
            script=Markup(script),
            data=Markup(to_json(data)),
            version=__version__,
            comparison=facts,
            policies=policies,
            title=_title(run, facts),
            sections=_sections(run, facts, policies),
            **(_about(run, data["run"]) if run is not None else {"run": None}),
        )
    except UndefinedError as error:
        name = "the runs" if run is None else str(run.path)
        raise DataError(
            f"{name}: run.json does not say all that a page shows ({error}). `pubc verify` says "
            "whether the file was changed.",
            code="bad_run",
        ) from None


@functools.cache
def environment() -> Environment:
    """Our templates, which escape everything that they are given."""
    made = Environment(
        loader=PackageLoader("pubc.report", "assets"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
    )
    made.filters |= {"told": summary.told, "short": _short, "exact": _exact, "ticks": _ticks}
    return made


def asset(name: str) -> str:
    """The text of a file of ours."""
    loader = environment().loader
    assert loader is not None
    return loader.get_source(environment(), name)[0].strip()


def content_policy(style: str, script: str = "", *, images: bool = False) -> str:
    """What the page may do: this style, this script, pictures inside it, and nothing else."""
    rules = ["default-src 'none'", f"style-src {_hash(style)}"]
    rules += [f"script-src {_hash(script)}"] if script else []
    rules += ["img-src data:"] if images else []
    return "; ".join([*rules, "base-uri 'none'", "form-action 'none'"])


def _about(run: Run, drawn: Mapping[str, Any]) -> dict[str, Any]:
    document = run.document
    return {
        "run": run,
        "asked": words.asked(document),
        "verdict": verdict(document),
        "tiles": summary.tiles(run),
        "advice": document.get("advice") or [],
        "problems": [p for p in document.get("problems") or [] if p["outcome"] != "noticed"],
        "groups": summary.groups(run),
        "sparks": bool(drawn["sparks"]),
        "strips": step_strips(run),
        "strip_width": WIDTH,
        "steps_kept": (run.path / STEPS_FILE).exists(),
        "sources": summary.sources(run),
        "truth": None if run.truth is None else document["truth_report"],
        "truth_tiles": summary.truth_tiles(run),
        "confusions": summary.confusions(run),
        "limits": words.limits(run),
        "commands": words.next_commands(run),
        "command": words.command(run),
        "provenance": {"facts": summary.provenance(run), "settings": summary.settings(run)},
    }


def _sections(run: Run | None, facts: Any, policies: Any) -> list[tuple[str, str]]:
    found = []
    if run is not None:
        found += [("cut", "The cut"), ("groups", "Kept and dropped"), ("borderline", "Borderline")]
        if (run.path / STEPS_FILE).exists():
            found.append(("steps", "Steps"))
        if run.scores.sources is not None:
            found.append(("sources", "Truth" if run.truth is not None else "Sources"))
        found.append(("all", "All trajectories"))
    if facts is not None:
        found.append(("compare", "Side by side"))
        if facts["same"]:
            found.append(("disagreements", "Disagreements"))
    if policies is not None:
        found.append(("policies", "Policies"))
    if run is not None:
        found.append(("limits", "Limits"))
        if run.document.get("kept_path"):
            found.append(("next", "Next"))
        found.append(("provenance", "Provenance"))
    return found


def _title(run: Run | None, facts: Mapping[str, Any] | None) -> str:
    if run is not None:
        kept, total = run.document["kept"], run.document["data"]["trajectories"]
        return f"{run.name}: kept {kept:,} of {total:,} trajectories"
    return " against ".join(facts["names"]) if facts is not None else "Policies"


def _hash(text: str) -> str:
    digest = hashlib.sha256(text.encode("utf-8")).digest()
    return f"'sha256-{base64.b64encode(digest).decode('ascii')}'"


def _exact(value: Any) -> str:
    known = not isinstance(value, float) or math.isfinite(value)
    return json.dumps(value if known else None, default=str)


def _ticks(text: str) -> Markup:
    """Words between backticks as code; everything else stays text."""
    parts = [escape(part) for part in text.split("`")]
    return Markup("").join(
        Markup("<code>{}</code>").format(part) if index % 2 else part
        for index, part in enumerate(parts)
    )


def _short(text: str) -> str:
    """A word that leaves room for others: the start of a fingerprint, the end of a path."""
    if len(text) <= _LONGEST or " " in text:
        return text
    if set(text) <= set("0123456789abcdef"):
        return f"{text[:12]}…"
    return f"…{text[1 - _LONGEST :]}"
