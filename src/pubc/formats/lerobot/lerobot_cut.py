"""A film with some of its episodes left out, in a process of its own, without encoding again.

LeRobot v3.0 joins many episodes in one file, and each begins with a picture that needs no other:
what is stored of an episode can be copied as it is, picture for picture. A film comes from a
stranger, so PyAV (the extra `video`) reads it in a child with limited memory and time; where the
child finds no clean cut, or ends badly, the caller keeps the whole file.
"""

from __future__ import annotations

import importlib.util
import json
import os
import resource
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

__all__ = ["Span", "can_cut", "cut"]

MEMORY = 2 << 30
"""Bytes of address space; packets are copied one by one, whatever the film weighs."""


@dataclass(frozen=True, slots=True)
class Span:
    """One episode in a film."""

    begin: float
    """Seconds from the beginning of the film to its first picture."""
    end: float
    """Seconds to the first picture after it."""
    frames: int
    """Pictures in it."""


def can_cut() -> bool:
    """Whether PyAV is installed."""
    return importlib.util.find_spec("av") is not None


def cut(source: Path, target: Path, spans: Sequence[Span]) -> list[float] | None:
    """Copy the given episodes of a film, one after the other, into a new film.

    Args:
        source: The film; it is not modified.
        target: Where to write.
        spans: The episodes to keep, in the order of the film.

    Returns:
        Where each begins in the new film, in seconds; None where no clean cut was found, and
        nothing was written.
    """
    request = {
        "source": str(source.resolve()),
        "target": str(target.resolve()),
        "spans": [asdict(span) for span in spans],
    }
    home = str(Path(__file__).resolve().parents[3])
    paths = [home, *filter(None, [os.environ.get("PYTHONPATH")])]
    seconds = 60 + source.stat().st_size // (1 << 20)
    try:
        done = subprocess.run(
            [sys.executable, "-P", "-W", "ignore", "-m", "pubc.formats.lerobot.lerobot_cut"],
            input=json.dumps(request).encode(),
            capture_output=True,
            env={**os.environ, "PYTHONPATH": os.pathsep.join(paths)},
            timeout=seconds,
            check=False,
        )
        answer = json.loads(done.stdout)
        begins = [float(begin) for begin in answer["begins"]]
    except (subprocess.TimeoutExpired, ValueError, KeyError, TypeError):
        begins = []
    if len(begins) != len(spans) or not target.is_file():
        target.unlink(missing_ok=True)
        return None
    return begins


def _main() -> None:
    """The child: read a request, answer it."""
    answering = os.dup(1)
    os.dup2(2, 1)  # whatever a library prints must not pass for the answer
    request = json.loads(sys.stdin.buffer.read())
    import av  # loaded before memory is limited

    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
    spans = [Span(**span) for span in request["spans"]]
    begins = _copy(av, request["source"], request["target"], spans)
    os.write(answering, json.dumps({"begins": begins}).encode())


def _copy(av: Any, source: str, target: str, spans: list[Span]) -> list[float]:
    # The container is named, so that a play list in disguise cannot lead to other files.
    options = {"protocol_whitelist": "file"}
    begins: list[float] = []
    with (
        av.open(source, format="mp4", options=options) as film,
        av.open(target, "w", format="mp4") as new,
    ):
        stream = film.streams.video[0]
        out = new.add_stream_from_template(stream)
        unit = stream.time_base
        rest = iter(spans)
        here, place = next(rest), 0
        held: list[Any] = []
        for packet in film.demux(stream):
            if packet.pts is None:
                continue  # the empty packet that ends a film
            half = (here.end - here.begin) / here.frames / 2
            moment = float(packet.pts * unit)
            if moment < here.begin - half:
                continue
            if moment >= here.end - half and len(held) == here.frames:
                place = _write(new, out, held, place, here, begins)
                following = next(rest, None)
                if following is None:
                    return begins
                here, held = following, []
                half = (here.end - here.begin) / here.frames / 2
                if moment < here.begin - half:
                    continue
            held.append(packet)
        if held:
            _write(new, out, held, place, here, begins)
    return begins


def _write(new: Any, out: Any, held: list[Any], place: int, span: Span, begins: list[float]) -> int:
    """Write the packets of one episode from `place` on, and return where the next begins."""
    times = sorted(packet.pts for packet in held)
    if not held[0].is_keyframe or len(held) != span.frames:
        raise ValueError("the episode does not begin with a whole picture")
    unit = held[0].time_base
    shift = place - times[0]
    end = place + round((span.end - span.begin) / float(unit))
    begins.append(span.begin + float(shift * unit))
    for packet in held:
        packet.pts += shift
        packet.dts = None if packet.dts is None else packet.dts + shift
        packet.stream = out
        new.mux(packet)
    return end


if __name__ == "__main__":
    _main()
