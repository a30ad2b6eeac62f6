"""Ten thousand episodes on the review page: seconds to the first paint, and frames while scrolling.

    python -m tests.review.scrolling --record docs/dev/review-scrolling.jsonl

measures on this machine, five times, and appends one line with every figure and how busy the
machine was. tests/review/test_page_view.py asks the same functions.
"""

import argparse
import datetime
import json
import os
import platform
import sys
import tempfile
from pathlib import Path

import numpy as np

from pubc import formats
from pubc.formats import ReadOptions
from pubc.review.desk import Desk, open_desk
from pubc.review.serve import serving
from pubc.trajectory import Columns, TrajectorySet
from tests.report.browser import Browser, browser

COUNT = 10_000
TIMES = 5
FRAMES = """new Promise(done => {
  const times = []; let last = performance.now(), y = window.scrollY;
  const end = last + 2500;
  const tick = (now) => {
    times.push(now - last); last = now; y += 300;
    window.scrollTo({ top: y, behavior: "instant" });
    if (now < end) requestAnimationFrame(tick); else done(times.slice(1));
  };
  requestAnimationFrame(tick);
})"""


def many(folder: Path) -> Desk:
    """A desk with ten thousand short episodes."""
    rng = np.random.default_rng(0)
    lengths = rng.integers(20, 60, COUNT)
    steps = int(lengths.sum())
    flags = np.zeros(steps, bool)
    columns = Columns(
        rng.normal(size=(steps, 8)).astype(np.float32),
        rng.normal(size=(steps, 4)).astype(np.float32),
        rng.normal(size=steps).astype(np.float32),
        flags,
        flags,
    )
    formats.save(folder / "many.npz", TrajectorySet.from_flat(columns, lengths))
    return open_desk(folder / "many.npz", ReadOptions())


def scrolled(chromium: Browser, address: str) -> dict[str, float]:
    """Open the page and scroll for 2.5 seconds, 300 pixels a frame."""
    chromium.open(address, width=1440)
    paint = chromium.first_paint()
    chromium.wait("document.documentElement.dataset.proposed >= '1'")
    before = _busy(chromium)
    frames = chromium.run(FRAMES)
    work = (_busy(chromium) - before) / len(frames)
    assert chromium.run("document.querySelectorAll('.ep').length") < 200
    assert chromium.run("window.scrollY") >= 300 * (len(frames) - 1) > 1000
    return {
        "first_paint_s": round(paint, 3),
        "longest_frame_ms": round(max(frames), 1),
        "work_per_frame_ms": round(work * 1000, 2),
        "frames": len(frames),
    }


def _busy(chromium: Browser) -> float:
    """Seconds of processor time that the page's main thread has used."""
    chromium.send("Performance.enable", timeDomain="threadTicks")
    found = {m["name"]: m["value"] for m in chromium.send("Performance.getMetrics")["metrics"]}
    return found["TaskDuration"]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--record", type=Path, help="file for the line")
    asked = parser.parse_args()
    load = round(os.getloadavg()[0], 2)
    with tempfile.TemporaryDirectory() as folder, browser() as chromium:
        with serving(many(Path(folder))) as address:
            times = [scrolled(chromium, address) for _ in range(TIMES)]
        version = chromium.send("Browser.getVersion")["product"]
    about = {
        "date": datetime.datetime.now(datetime.UTC).date().isoformat(),
        "machine": platform.platform(),
        "cores": os.cpu_count(),
        "load": load,
        "browser": version,
        "episodes": COUNT,
    }
    line = json.dumps({**about, "times": times})
    sys.stdout.write(line + "\n")
    if asked.record:
        with asked.record.open("a", encoding="utf-8") as file:
            file.write(line + "\n")


if __name__ == "__main__":
    main()
