"""LeRobot with video, end to end: a set that lerobot recorded, filtered by pubc, used by lerobot.

    python -m venv lerobot-env && lerobot-env/bin/pip install lerobot
    python benchmarks/lerobot_video.py --lerobot lerobot-env/bin/python [--out record.json]

lerobot cannot share an environment with d3rlpy, so it runs in one of its own: there it records a
set with two cameras, opens what pubc kept, compares every picture with the source, and trains ACT
for three steps with the line that pubc prints. What happened goes to --out, with versions.
"""

import argparse
import json
import shlex
import subprocess
import sys
import tempfile
from importlib import metadata
from pathlib import Path

CAMERAS = ("observation.images.top", "observation.images.wrist")
EPISODES, LENGTH, FPS, SIZE = 16, 24, 10, 96
QUICK = (
    "--steps=3 --batch_size=2 --num_workers=0 --save_checkpoint=false --wandb.enable=false "
    "--policy.device=cpu --policy.pretrained_backbone_weights=null --policy.chunk_size=8 "
    "--policy.n_action_steps=8 --dataset.video_backend=pyav"
)


def record(root: Path) -> dict:
    """In lerobot's environment: half of the episodes push to the left, half to the right."""
    import numpy as np
    from lerobot.datasets.lerobot_dataset import LeRobotDataset

    image = {"dtype": "video", "shape": (SIZE, SIZE, 3), "names": ["height", "width", "channels"]}
    features = {
        "observation.state": {"dtype": "float32", "shape": (4,), "names": list("abcd")},
        "action": {"dtype": "float32", "shape": (2,), "names": list("xy")},
        **dict.fromkeys(CAMERAS, image),
    }
    data = LeRobotDataset.create(
        "local/pushes", fps=FPS, features=features, root=root, vcodec="h264"
    )
    rng = np.random.default_rng(0)
    for episode in range(EPISODES):
        side, state = (-1.0 if episode % 2 else 1.0), rng.normal(0, 0.1, 4)
        for step in range(LENGTH):
            action = side * (state[:2] - state[2:]) + side + rng.normal(0, 0.02, 2)
            frame = {"observation.state": state, "action": action}
            frame = {name: values.astype(np.float32) for name, values in frame.items()}
            for number, camera in enumerate(CAMERAS):
                frame[camera] = picture(np, episode * LENGTH + step, number)
            data.add_frame({**frame, "task": "push"})
            state = 0.9 * state + 0.1 * np.tile(action, 2)
        data.save_episode()
    data.finalize()
    return {"lerobot": metadata.version("lerobot")}


def picture(np, frame: int, camera: int):
    """Twelve patches, black or white: the number of the frame, and of the camera."""
    bits = [(frame >> bit) & 1 for bit in range(11)] + [camera]
    patches = np.array(bits, dtype=np.uint8).reshape(3, 4) * 200 + 25
    large = np.kron(patches, np.ones((SIZE // 3, SIZE // 4), dtype=np.uint8))
    return np.repeat(large[..., None], 3, axis=2)


def number(image) -> int:
    """The frame that a picture (channels, height, width) says it is."""
    rows, columns = SIZE // 3, SIZE // 4
    patches = image[0, rows // 2 :: rows, columns // 2 :: columns].reshape(-1)
    return sum(int(value > 0.5) << place for place, value in enumerate(patches[:11].tolist()))


def compare(kept: Path, expected: list[int]) -> dict:
    """In lerobot's environment: every frame of the kept set shows the picture of its source."""
    from lerobot.datasets.lerobot_dataset import LeRobotDataset

    data = LeRobotDataset("local/kept", root=kept, video_backend="pyav")
    wrong = 0
    for at in range(len(data)):
        frame = data[at]
        place = int(frame["frame_index"])
        right = expected[int(frame["episode_index"])] * LENGTH + place
        wrong += any(number(frame[camera]) != right for camera in CAMERAS)
    return {"episodes": data.num_episodes, "frames": len(data), "wrong_pictures": wrong}


def inside(python: Path, *words: object) -> dict:
    """Run this file in lerobot's environment, and read the JSON in its last line."""
    command = [str(python), str(Path(__file__).resolve()), *map(str, words)]
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode:
        raise SystemExit(f"{shlex.join(command)} failed:\n{done.stderr[-3000:]}")
    return json.loads(done.stdout.splitlines()[-1])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--lerobot", type=Path, required=True)
    parser.add_argument("--out", type=Path)
    given = parser.parse_args()
    python = given.lerobot.absolute()
    with tempfile.TemporaryDirectory() as folder:
        found = walk(python, Path(folder))
    found["command"] = shlex.join(["python", "benchmarks/lerobot_video.py", *sys.argv[1:]])
    print(json.dumps(found, indent=1))
    if given.out is not None:
        given.out.write_text(json.dumps(found, indent=1) + "\n")


def walk(python: Path, work: Path) -> dict:
    import numpy as np

    from pubc import formats
    from pubc.formats.core.options import ReadOptions
    from pubc.formats.lerobot.lerobot_read import has_pictures, train_command

    root, kept = work / "pushes", work / "run" / "kept.lerobot"
    made = inside(python, "record", root)
    pubc = [sys.executable, "-m", "pubc"]
    looked = subprocess.run([*pubc, "inspect", root, "--json"], capture_output=True, text=True)
    assert looked.returncode == 0, looked.stderr
    mixed = formats.read(root, ReadOptions(cache=False))
    chosen = np.arange(0, EPISODES, 2)
    remarks = formats.save_subset(root, kept, mixed, chosen, ReadOptions(cache=False))
    opened = inside(python, "compare", kept, *chosen.tolist())
    line = train_command(kept, pictures=has_pictures(kept))
    command, *flags = shlex.split(line)
    words = [str(python.parent / command), *flags, *shlex.split(QUICK)]
    trained = subprocess.run(words, cwd=work, capture_output=True, text=True)
    sizes = [sum(f.stat().st_size for f in place.rglob("*.mp4")) for place in (root, kept)]
    return {
        **made,
        "pubc": metadata.version("pubc"),
        "av": metadata.version("av"),
        "recorded": {"episodes": EPISODES, "frames": EPISODES * LENGTH, "cameras": len(CAMERAS)},
        "inspected": json.loads(looked.stdout)["trajectories"],
        "film_bytes": {"source": sizes[0], "kept": sizes[1]},
        "remarks": list(remarks),
        "opened_by_lerobot": opened,
        "line": line.replace(str(work), "WORK"),
        "three_steps_of_act": {
            "exit_code": trained.returncode,
            "last_words": trained.stderr.strip().splitlines()[-1:],
        },
    }


if __name__ == "__main__":
    if sys.argv[1:2] == ["record"]:
        print(json.dumps(record(Path(sys.argv[2]))))
    elif sys.argv[1:2] == ["compare"]:
        print(json.dumps(compare(Path(sys.argv[2]), [int(word) for word in sys.argv[3:]])))
    else:
        main()
