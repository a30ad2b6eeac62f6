"""What to try next, said when the run asks for it."""

from __future__ import annotations

from collections.abc import Sequence

from pubc.pu.auto.quality import Quality
from pubc.pu.rounds import Round
from pubc.runs.statuses import words_for

__all__ = ["advise"]


def advise(last: Round, rounds: Sequence[Round], quality: Quality, seeds: int) -> tuple[str, ...]:
    """What to try next, in words; nothing where the run went well.

    Args:
        last: The round that holds the result.
        rounds: All rounds of the run.
        quality: The label-free estimate of the result.
        seeds: How many seed trajectories there were.
    """
    status = last.status or "max_rounds"
    said = []
    if status != "converged":
        said.append(f"Status {status}: {words_for(status).meaning}. {last.cut.reason}".strip())
    said += _by_status(status, rounds, seeds)
    said += _by_quality(quality)
    return tuple(said)


def _by_status(status: str, rounds: Sequence[Round], seeds: int) -> list[str]:
    if status in ("no_valley", "weak_valley", "collapsed_all"):
        return [
            "The confidences form one hump. Usual causes: the set holds one policy only, the "
            f"seeds are too few (there were {seeds}), or trajectories are good in parts. Add seed "
            "trajectories, name bad ones with --bad-episodes, or mark both with pubc review.",
        ]
    if status in ("collapsed_empty", "collapsed_seeds"):
        return [
            "Only the seeds look like the seeds: the judge remembers them instead of "
            "generalising, or the mixed set holds nothing else of that expert. Add seed "
            "trajectories that differ from each other.",
        ]
    if status.startswith(("cycle", "max_rounds")):
        kept = [int(r.selected.sum()) for r in rounds]
        return [
            f"The selection keeps changing (kept per round: {', '.join(map(str, kept))}). Add "
            "seed trajectories.",
        ]
    if status == "seed_incoherent":
        return [
            "Check where the seeds come from: they should all be by one policy. Leave out the "
            "ones with low confidence in scores.csv, or name others with --seed-episodes.",
        ]
    return []


def _by_quality(quality: Quality) -> list[str]:
    said = []
    if quality.seeds_kept is not None and quality.seeds_kept < 0.8:
        said.append(
            f"The cut rejects {1 - quality.seeds_kept:.0%} of the seeds, which are known to be "
            "the expert's."
        )
    return said
