"""What judging steps and cutting segments adds to a filter of whole trajectories.

    pubc collect hopper:lapses hopper.npz --steps-per-source 50000 --seed-steps 5000
    OMP_NUM_THREADS=1 python benchmarks/segments_cost.py hopper.npz [MORE.npz ...]

Seeds are the trajectories of NAME-seed.npz where that lies beside a file, else five of the source
`expert`. CPU seconds of this process, because machines are shared; the best of --times: finding
the trajectories and writing those that are kept, and the same with every step judged, steps.npz
and the segments written instead.
"""

import argparse
import json
import tempfile
import time
from pathlib import Path

import numpy as np

import pubc
from pubc import formats
from pubc.runs.find_expert import find_expert, prepare
from pubc.runs.named_trajectories import seeds_in
from pubc.runs.segments.run_steps import judge_steps
from pubc.runs.segments.segment_set import cut_segments
from pubc.runs.segments.steps_file import read_steps, write_steps_file
from pubc.streams import Key


def seeds_of(path, mixed):
    beside = path.with_name(f"{path.stem}-seed{path.suffix}")
    if beside.exists():
        return pubc.load(beside)
    experts = np.flatnonzero(mixed.sources == "expert")
    return np.sort(Key(0, ("segments cost",)).rng().choice(experts, 5, replace=False)).tolist()


def once(mixed, seeds, folder):
    """CPU seconds of each part."""
    marks = [time.process_time()]

    def mark():
        marks.append(time.process_time())

    found = find_expert(mixed, seeds, workers=1)
    mark()
    kept = mixed[found.mask] if found.mask.any() else mixed[:1]
    formats.save(folder / "kept.npz", kept, overwrite=True)
    mark()
    ready = prepare(mixed, seeds_in(mixed, seeds))
    write_steps_file(folder, judge_steps(ready, found, Key(0)), mixed.steps)
    mark()
    confidence, _ = read_steps(folder, mixed.steps)
    nobody = np.zeros(len(mixed), dtype=bool)
    cut = cut_segments(mixed, confidence, nobody, shortest=10, margin=2)
    if cut is not None:
        formats.save(folder / "segments.npz", cut, overwrite=True)
    mark()
    return np.diff(marks)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("files", nargs="+", type=Path)
    parser.add_argument("--times", type=int, default=3)
    asked = parser.parse_args()
    for path in asked.files:
        mixed = pubc.load(path)
        seeds = seeds_of(path, mixed)
        with tempfile.TemporaryDirectory() as folder:
            runs = [once(mixed, seeds, Path(folder)) for _ in range(asked.times)]
        find, write, judge, cut = np.min(runs, axis=0)
        line = {
            "file": path.stem, "trajectories": len(mixed), "steps": mixed.steps,
            "filter_seconds": round(find + write, 2), "judging_seconds": round(judge, 2),
            "segments_seconds": round(cut, 2),
            "ratio": round((find + judge + cut) / (find + write), 2),
        }  # fmt: skip
        print(json.dumps(line), flush=True)


if __name__ == "__main__":
    main()
