"""Which array was probably meant, where a file calls it by another name than its format does."""

from __future__ import annotations

from collections.abc import Iterable

__all__ = ["key_flags"]

_USUAL = {
    "observations": ("--observation-keys", ("obs", "observation", "state", "states", "ob")),
    "actions": ("--action-key", ("act", "action", "acts")),
    "rewards": ("--reward-key", ("rew", "reward", "rews")),
}


def key_flags(known: Iterable[str]) -> str:
    """A sentence with the flags that name the arrays of a file; empty where nothing is close.

    Args:
        known: The names that the file has.

    Example:
        >>> key_flags(["obs", "act", "done"])
        ' If these are the ones you mean: --observation-keys obs --action-key act.'
        >>> key_flags(["pictures"])
        ''
    """
    names = {name.lower(): name for name in known}
    flags = []
    for usual, (flag, spellings) in _USUAL.items():
        close = [names[word] for word in spellings if word in names]
        if usual not in names and close:
            flags.append(f"{flag} {close[0]}")
    return f" If these are the ones you mean: {' '.join(flags)}." if flags else ""
