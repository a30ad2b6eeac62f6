"""What to try next, said when the run asks for it."""

from __future__ import annotations

from collections.abc import Sequence

from pubc.pu.auto.quality import Quality
from pubc.pu.rounds import Round
from pubc.runs.statuses import SOUND, words_for

__all__ = ["advise"]


def advise(
    status: str, last: Round, rounds: Sequence[Round], quality: Quality, seeds: int, named: int = 0
) -> tuple[str, ...]:
    """What to try next, in words; nothing where the run went well.

    Args:
        status: How the run ended.
        last: The round that holds the result of the rounds.
        rounds: All rounds of the run.
        quality: The label-free estimate of the result.
        seeds: How many seed trajectories there were.
        named: How many of them were named already as another policy's.
    """
    if status in SOUND:
        return ()
    said = [f"Status {status}: {words_for(status).meaning}. {last.cut.reason}".strip()]
    if not (named and status == "seed_incoherent"):
        said += _by_status(status, rounds, seeds)
    if quality.seeds_kept is not None and quality.seeds_kept < 0.8:
        said.append(
            f"The cut rejects {1 - quality.seeds_kept:.0%} of the seeds, which are known to be "
            "the expert's."
        )
    return tuple(said)


def _by_status(status: str, rounds: Sequence[Round], seeds: int) -> list[str]:
    if status in ("no_valley", "weak_valley", "collapsed_all"):
        return [
            "Imitators of the two sides do not tell them apart. Usual causes: the set holds one "
            f"policy only, the seeds are too few (there were {seeds}), or trajectories are good "
            "in parts. Add seed trajectories, name some bad ones with --bad-episodes, or mark "
            "both with pubc review.",
        ]
    if status in ("collapsed_empty", "collapsed_seeds"):
        return [
            "Only the seeds look like the seeds: the mixed set holds nothing else of that "
            "expert, or the seeds are too much alike. Add seed trajectories that differ from "
            "each other.",
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
