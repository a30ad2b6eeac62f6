"""The report as Markdown and as JSON, for pull requests, notebooks and programs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from pubc.report import sentences as words
from pubc.report import summary
from pubc.report.payload import borderline_order
from pubc.report.summary import told
from pubc.runs.folder.run_reading import Run
from pubc.runs.statuses import verdict

__all__ = ["as_document", "as_markdown", "indented", "safe"]

_LISTED = 20
_ESCAPED = "\\`*_{}[])<>#+-.!|~&$:@="


def as_document(
    run: Run | None, facts: Mapping[str, Any] | None, policies: Mapping[str, Any] | None
) -> dict[str, Any]:
    """Everything the page says, as JSON values."""
    document: dict[str, Any] = {"kind": "report", "version": 1}
    if run is not None:
        end = verdict(run.document)
        document["run"] = {
            "name": run.name,
            "asked": words.asked(run.document),
            "verdict": {"tone": end.tone, "title": end.title, "sentence": end.sentence},
            "kept": run.document["kept"],
            "trajectories": len(run.scores),
            "quality": run.document["quality"],
            "advice": run.document.get("advice") or [],
            "rounds": [
                {
                    "round": done.number,
                    "threshold": done.threshold,
                    "kept": done.kept,
                    "changed": done.changed,
                    "reason": done.cut.reason,
                }
                for done in run.rounds
            ],
            "groups": summary.groups(run),
            "sources": summary.sources(run),
            "truth": run.document.get("truth_report"),
            "confusions": summary.confusions(run),
            "borderline": [run.scores.ids[at] for at in borderline_order(run).tolist()],
            "limits": words.limits(run),
            "next": [{"tool": tool, "command": text} for tool, text in words.next_commands(run)],
            "command": words.command(run),
        }
    if facts is not None:
        document["comparison"] = dict(facts)
    if policies is not None:
        document["policies"] = dict(policies)
    return document


def as_markdown(
    run: Run | None, facts: Mapping[str, Any] | None, policies: Mapping[str, Any] | None
) -> str:
    """The same, shorter, as Markdown."""
    parts: list[str] = []
    if run is not None:
        parts += _run_parts(run)
    if facts is not None:
        parts += _comparison_parts(facts)
    if policies is not None:
        parts += _policy_parts(policies)
    return "\n\n".join(part for part in parts if part) + "\n"


def _run_parts(run: Run) -> list[str]:
    document = run.document
    end = verdict(document)
    tiles = [*summary.tiles(run), *summary.truth_tiles(run)]
    rounds = [
        [str(r.number), told(r.threshold), told(r.kept), told(r.changed, "share")]
        for r in run.rounds
    ]
    parts = [
        f"# Kept {told(document['kept'])} of {told(len(run.scores))} trajectories",
        safe(words.asked(document)),
        f"**{safe(end.title)}.** {safe(end.sentence)}",
        "\n".join(f"- {safe(sentence)}" for sentence in document.get("advice") or []),
        _table(["", "", ""], [[t.label, told(t.value, t.kind), t.hint] for t in tiles]),
        "## Rounds",
        _table(["Round", "Cut at", "Kept", "Changed"], rounds),
        "## Kept against dropped",
        _table(
            ["", "Trajectories", "Steps", "Median length", "Median return"],
            [
                [
                    g["name"],
                    told(g["count"]),
                    told(g["steps"]),
                    told(g["length"]),
                    told(g["median"]),
                ]
                for g in summary.groups(run)
            ],
        ),
    ]
    wrong = summary.confusions(run)
    if wrong:
        header = ["round", "true_positives", "false_positives", "false_negatives", "true_negatives"]
        parts += [
            "## Right and wrong, round by round",
            _table(
                ["Round", "TP", "FP", "FN", "TN"], [[told(r[n]) for n in header] for r in wrong]
            ),
        ]
    return [*parts, *_borderline_parts(run), *_closing_parts(run)]


def _borderline_parts(run: Run) -> list[str]:
    chosen = borderline_order(run)[:_LISTED].tolist()
    if not chosen:
        return ["## Borderline", "None: every label is clear by the confidences."]
    scores = run.scores
    rows = [
        [
            scores.ids[at],
            told(float(scores.confidence[at])),
            "kept" if scores.keep[at] else "dropped",
        ]
        for at in chosen
    ]
    return [
        "## Borderline, nearest to the cut first",
        _table(["Trajectory", "Confidence", ""], rows),
    ]


def _closing_parts(run: Run) -> list[str]:
    said = "\n".join(f"- {safe(sentence)}" for sentence in words.limits(run))
    parts = ["## What this cannot tell you", said, "## Next"]
    parts += [f"{tool}:\n\n{indented(text)}" for tool, text in words.next_commands(run)]
    parts += ["## Where this comes from", indented(words.command(run))]
    known = [*summary.provenance(run), *summary.settings(run)]
    rows = [[name, told(value, kind)] for _, name, value, kind in known]
    return [*parts, _table(["", ""], rows)]


def _comparison_parts(facts: Mapping[str, Any]) -> list[str]:
    header = ["", *facts["names"]]
    rows = [[r["words"], *(told(v, r["kind"]) for v in r["values"])] for r in facts["rows"]]
    parts = [f"# {safe(' against '.join(facts['names']))}", _table(header, rows)]
    if facts["same"]:
        some = ", ".join(safe(name) for name in facts["disagreements"][:_LISTED])
        more = ", …" if facts["disagree"] > _LISTED else ""
        parts.append(
            f"They disagree on {told(facts['disagree'])} of {told(facts['count'])} trajectories"
            + (f": {some}{more}." if some else ".")
        )
    else:
        parts.append("They judge different data, so trajectories cannot be compared one by one.")
    return parts


def _policy_parts(policies: Mapping[str, Any]) -> list[str]:
    rows = [
        [
            row["name"],
            row["environment"],
            told(row["mean"]),
            f"{told(row['low'])} to {told(row['high'])}",
            told(row["score"]),
        ]
        for row in policies["scores"]
    ]
    if not rows:
        return []
    header = ["Policy", "Environment", "Mean return", "95 % interval", "Score"]
    return ["## Policies", _table(header, rows)]


def _table(header: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    lines = [header, ["---"] * len(header), *rows]
    body = [[cell if line is lines[1] else safe(cell) for cell in line] for line in lines]
    return "\n".join("| " + " | ".join(cells) + " |" for cells in body)


def safe(text: str) -> str:
    """Text from data as one line of Markdown that means nothing but itself."""
    line = " ".join("".join(c if c.isprintable() else " " for c in text).split())
    return "".join(
        f"\\{c}" if c in _ESCAPED and not _plain(line, i) else c for i, c in enumerate(line)
    )


def _plain(line: str, index: int) -> bool:
    """Whether a mark means nothing where it stands, so that it need not be escaped."""
    mark, before, after = line[index], line[:index], line[index + 1 : index + 2]
    if mark in ".)":
        # After a number and before a space it would begin a list.
        return not before.isdigit() or after.strip() != ""
    if mark in "-+=":
        return index > 0
    return mark == ":" and (before[-1:].isalnum() or after == " ")


def indented(text: str) -> str:
    """Text from data as a block of code."""
    clean = "".join(c if c.isprintable() or c == "\n" else "?" for c in text)
    return "\n".join(f"    {line}" for line in clean.splitlines())
