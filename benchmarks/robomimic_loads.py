"""robomimic's own loader reads the segments of `pubc filter --segments`, and a mask of weights.

    python -m venv robomimic-env
    robomimic-env/bin/pip install torch==2.13.0 h5py tqdm psutil termcolor imageio tensorboardX
    robomimic-env/bin/pip install --no-deps robomimic==0.3.0
    python benchmarks/robomimic_loads.py --robomimic robomimic-env/bin/python [--out record.json]

Hopper trajectories with lapses are collected, written as a robomimic file and filtered. In an
environment of its own robomimic's `SequenceDataset` loads the kept segments, and the copy of the
source by its mask; every step that it serves is held against the source. What happened goes to
--out.
"""

from importlib import metadata
from pathlib import Path

from other_environment import main, make_and_read

MASK = "pubc_expert"
LINES = [
    "collect hopper:lapses lapses.npz --steps-per-source 4000 --seed-steps 3000",
    "convert lapses.npz lapses.hdf5 --to robomimic",
    "convert lapses-seed.npz seeds.hdf5 --to robomimic",
    "filter lapses.hdf5 --seed-from seeds.hdf5 --out run --segments",
    "weights run --for robomimic --least 0.3 --out masked.hdf5",
]


def load(kept: Path, masked: Path) -> dict:
    """In robomimic's environment: what its loader makes of both files."""
    import h5py
    import numpy as np
    import robomimic.utils.obs_utils as obs_utils
    from robomimic.utils.dataset import SequenceDataset

    with h5py.File(masked) as file:
        demos = sorted(file["data"], key=lambda name: int(name.split("_")[1]))
        keys = sorted(file["data"][demos[0]]["obs"])
        source = [
            (
                np.concatenate([file["data"][d]["obs"][k][:].reshape(n, -1) for k in keys], 1),
                file["data"][d]["actions"][:],
            )
            for d in demos
            for n in [len(file["data"][d]["actions"])]
        ]
        wanted = {name.decode() for name in file["mask"][MASK][:]}
    obs_utils.initialize_obs_utils_with_obs_specs({"obs": {"low_dim": keys}})
    given = {"obs_keys": keys, "dataset_keys": ["actions"], "hdf5_cache_mode": "low_dim"}
    with h5py.File(kept) as file:
        places = {
            name: (
                demos.index(f"demo_{demo.attrs['pubc_source_id']}"),
                int(demo.attrs["pubc_first_step"]),
            )
            for name, demo in file["data"].items()
        }
    segments = SequenceDataset(str(kept), **given)
    equal = 0
    for index in range(len(segments)):
        name = segments._index_to_demo_id[index]
        step = index - segments._demo_id_to_start_indices[name]
        served = segments[index]
        demo, first = places[name]
        states, actions = source[demo]
        state = np.concatenate([served["obs"][key][0].reshape(-1) for key in keys])
        same = np.array_equal(state, states[first + step])
        equal += bool(same and np.array_equal(served["actions"][0], actions[first + step]))
    chosen = SequenceDataset(str(masked), filter_by_attribute=MASK, **given)
    return {
        "robomimic": metadata.version("robomimic"),
        "segments": len(segments.demos),
        "steps_of_segments": len(segments),
        "steps_equal_to_the_source": equal,
        "demonstrations": len(demos),
        "demonstrations_of_the_mask": len(wanted),
        "mask_loads_these_alone": set(chosen.demos) == wanted,
        "steps_of_the_mask": len(chosen),
    }


if __name__ == "__main__":
    main("robomimic", {"read": load}, make_and_read(LINES, ["run/kept.hdf5", "masked.hdf5"]))
