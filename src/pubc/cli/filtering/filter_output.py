"""What `pubc filter` says on the screen: its plan, its rounds, its result, what to type next."""

from __future__ import annotations

import shlex
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from pubc.cli.console import facts, headline, histogram, say, warn
from pubc.runs.statuses import bad_words, verdict
from pubc.storage import read_json

if TYPE_CHECKING:
    from pubc.pu.rounds import Round
    from pubc.runs.filter_run import Finished
    from pubc.runs.find_expert import Prepared, Result

__all__ = ["next_commands", "round_line", "seed_words", "show_plan", "show_result"]


def show_plan(document: dict[str, Any], ready: Prepared) -> None:
    """What would be done."""
    data, seed = document["data"], document["seed"]
    facts(
        [
            ("data", f"{data['path']} ({data['format']})"),
            ("mixed", str(ready.mixed)),
            ("seeds", f"{ready.seed_positives}: {seed_words(seed)}"),
            *_bad_row(document),
            ("recipe", document["recipe"]["name"]),
            ("written", "nothing (--dry-run)"),
        ]
    )
    for problem in ready.problems:
        warn(problem.message)


def round_line(current: Round) -> str:
    """One line about a round."""
    threshold = current.threshold
    cut = "none" if threshold is None else f"{threshold:.3f}"
    end = "" if current.status is None else f"   {current.status}"
    return (
        f"round {current.number:>2}   threshold {cut:>7}   kept {current.kept:>6,}"
        f"   changed {current.changed:>6.1%}{end}"
    )


def show_result(document: dict[str, Any], result: Result, path: Path) -> None:
    """What was found."""
    quality = result.quality
    total = len(result.mask)
    rows = [
        ("seeds", seed_words(document["seed"])),
        *_bad_row(document),
        ("confidence", histogram(result.confidence)),
        (
            "kept",
            f"{document['kept']:,} of {total:,} trajectories"
            + ("" if "kept_segments" in document else f", {document['kept_steps']:,} steps"),
        ),
        *([("segments", _segments(document))] if "kept_segments" in document else []),
        ("unsure", f"{int(result.unsure.sum()):,}"),
        ("status", document["status"]),
    ]
    if quality.seeds_kept is not None and quality.held_out_seeds:
        found = f"{quality.seeds_kept:.0%} of {quality.held_out_seeds} kept, each judged unseen"
        rows.append(("seeds found", found))
    opinion, controls = document["second_opinion"], document["controls"]
    if opinion is not None:
        decided = ", and decided" if opinion["decided"] else ""
        rows.append(("evidence", f"agrees with the rounds on {opinion['agreement']:.1%}{decided}"))
        told = ", ".join(f"{name} {value:.2f}" for name, value in controls.items())
        rows.append(("told apart by", f"{told} (0.5 not at all, 1 perfectly)"))
    if document["chance_wrong"] is not None:
        rows.append(("chance wrong", f"{document['chance_wrong']:.1%} of a label"))
    if document["truth_report"] is not None:
        report = document["truth_report"]
        rows.append(("accuracy", f"{report['accuracy']:.1%} (against source {report['expert']!r})"))
        rows.append(("AUC", "unknown" if report["auc"] is None else f"{report['auc']:.4f}"))
    rows.append(("results", str(path)))
    rows.append(("report", str(path / "report.html")))
    end = verdict(document)
    say()
    headline(f"{end.title}: kept {document['kept']:,} of {total:,} trajectories", end.tone)
    facts(rows)
    _show_doubtful(document, result, path)
    for problem in result.problems:
        warn(problem.message)
    for sentence in result.advice:
        warn(sentence)


def _show_doubtful(document: dict[str, Any], result: Result, path: Path) -> None:
    """The trajectories that are the expert's in part, step by step."""
    from pubc.report.step_strips import most_doubtful, text_strip
    from pubc.runs.segments.steps_file import read_steps

    confidence, segments = read_steps(path, document["data"]["steps"])
    lengths = np.zeros(len(result.mask), dtype=np.int64)
    np.maximum.at(lengths, segments["trajectory"], segments["end"])
    chosen = most_doubtful(confidence, segments, lengths)
    if not chosen:
        return
    ends = np.cumsum(lengths)
    say()
    say("steps (# the expert, . somebody else, + in between), the most divided first")
    facts(
        [(f"at {at}", text_strip(confidence[ends[at] - lengths[at] : ends[at]])) for at in chosen]
    )


def _segments(document: dict[str, Any]) -> str:
    share = document["kept_steps"] / max(1, document["data"]["steps"])
    return (
        f"{document['kept_segments']:,} of all trajectories, {document['kept_steps']:,} steps "
        f"({share:.0%} of the data), in {document['kept_path'] or 'no file'}"
    )


def next_commands(folder: Path, finished: Finished) -> list[str]:
    """What users of other tools can type next."""
    from pubc.runs.kept_files import MASKED

    planned, mask = finished.plan, finished.result.mask
    name, data = finished.document["data"]["format"], planned.data
    if not mask.any() or data is None:
        return []
    if planned.config.to not in (None, name):
        return []
    kept = folder / str(finished.document["kept_path"])
    if name == "lerobot":
        from pubc.formats.lerobot.lerobot_read import has_pictures, train_command

        return ["", "next", train_command(kept, pictures=has_pictures(kept))]
    if name == "minari":
        return ["", "next", _to_minari(kept)]
    if name == "robomimic":
        told = f"train.data={folder / 'kept.hdf5'}"
        if planned.config.mask:
            told = f"train.data={folder / MASKED} train.hdf5_filter_key=pubc_keep"
        return ["", "next", f"in the configuration of robomimic: {told}"]
    return []


def _to_minari(kept: Path) -> str:
    """The line that puts a kept set where Minari finds it by its id."""
    from pubc.formats.minari import minari_ids

    about = read_json(kept / "data" / "metadata.json")
    place = minari_ids.root() / str(about["dataset_id"])
    made = shlex.join(["mkdir", "-p", str(place.parent)])
    return f"{made} && {shlex.join(['cp', '-r', str(kept), str(place)])}"


def seed_words(seed: dict[str, Any]) -> str:
    """Which trajectories were the seeds, and how they were found."""
    found = {
        "labels": "marked good",
        "top": "with the highest returns",
        "episodes": "as named",
        "from": f"from {seed.get('from')}",
        "steps_column": f"marked in the column {seed.get('steps_column')}",
        "source": f"drawn from those by {seed.get('source')}",
    }.get(str(seed.get("how")), str(seed.get("how")))
    ids = seed.get("ids") or []
    if not ids:
        return f"{found}, none of them a whole trajectory of the data"
    return f"{len(ids):,} {found}: {_some(ids)}"


def _bad_row(document: dict[str, Any]) -> list[tuple[str, str]]:
    """What is known to be bad, where something is."""
    words = bad_words(document.get("bad") or {})
    return [("known bad", words)] if words else []


def _some(names: list[str]) -> str:
    return ", ".join(names[:8]) + (", ..." if len(names) > 8 else "")
