"""How to read a dataset: the choices a user can make, said once.

The dataclass is the Python argument, the command-line flags (through tyro) and their help.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

__all__ = ["FROM_COMMAND_LINE", "ReadOptions"]


@dataclass(frozen=True, slots=True)
class ReadOptions:
    """Choices that change what is read."""

    format: str | None = None
    """Name of the format, as `pubc formats` lists them. Found by content if omitted."""
    observation_keys: tuple[str, ...] = ()
    """Keys to concatenate into the observation, in this order. Formats with named
    observations default to all vectors in the order of the file; images are left out."""
    action_key: str | None = None
    """Key of the action, where it is not the format's usual one."""
    reward_key: str | None = None
    """Key of the reward, where it is not the format's usual one."""
    source_key: str | None = None
    """Key that names the policy or quality of each trajectory, for evaluation only."""
    episode_length: int | None = None
    """Length of every trajectory, for flat files that mark no ends."""
    trailing: Literal["keep", "drop", "error"] = "keep"
    """Steps after the last end mark: keep as an unmarked trajectory, drop, or refuse."""
    nonfinite: Literal["refuse", "drop-episode"] = "refuse"
    """NaN or infinity in observations or actions: refuse the file, or drop the
    trajectories that hold them."""
    trust: Literal["both", "data"] = "both"
    """Where metadata and data disagree: refuse, or rebuild the index from the data."""
    last_step: Literal["keep", "drop"] = "keep"
    """RLDS: keep the last step of each trajectory, or drop it because strict RLDS leaves
    its action without meaning."""
    skip_bad_files: bool = False
    """In a dataset of many files, leave out unreadable ones and say which."""
    strict: bool = False
    """Refuse whatever would only be repaired or warned about."""
    cache: bool = True
    """Keep a flat copy of slow formats in $PUBC_CACHE for the next opening."""
    verify: bool = False
    """Read every byte of such a copy and compare it with its checksums, not only a part."""
    isolate: Literal["auto", "on", "off"] = "off"
    """Parse in a child process with limited memory, so that a damaged or hostile file can
    end nothing but its reader. `auto` does so for all but pubc's own formats and cached
    copies."""


FROM_COMMAND_LINE = ReadOptions(isolate="auto")
"""What commands start from: a file named on the command line may come from a stranger."""
