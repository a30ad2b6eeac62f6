"""Where randomness comes from: one generator for every piece of work, found by its name.

A piece of work asks for the generator of its own name (stage, round, member). No state is
passed from piece to piece, so any piece can be done alone, in any order, or again after a
kill, with the same result.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass

import numpy as np

__all__ = ["Key", "stream"]


@dataclass(frozen=True, slots=True)
class Key:
    """The name of a piece of work."""

    random_seed: int
    """The user's seed."""
    path: tuple[str | int, ...] = ()
    """Stage, round, member and so on."""

    def at(self, *names: str | int) -> Key:
        """The key of a part of this piece of work."""
        return Key(self.random_seed, (*self.path, *names))

    def rng(self) -> np.random.Generator:
        """A fresh Philox generator that belongs to this name alone."""
        words = repr((int(self.random_seed), *self.path)).encode()
        key = int.from_bytes(hashlib.sha256(words).digest()[:16], "little")
        return np.random.Generator(np.random.Philox(key=key))


def stream(random_seed: int, *path: str | int) -> np.random.Generator:
    """The generator of a name in one call, for example `stream(0, "E+", 17, "policy")`."""
    return Key(random_seed, path).rng()
