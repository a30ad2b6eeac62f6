"""LeRobot with video, end to end: a set that lerobot recorded, filtered by pubc, used by lerobot.

    python -m venv lerobot-env && lerobot-env/bin/pip install lerobot==0.4.4
    python benchmarks/lerobot_video.py --lerobot lerobot-env/bin/python [--out record.json]

lerobot cannot share an environment with d3rlpy, so it runs in one of its own: there it records a
set with two cameras. pubc inspects it; `pubc review` serves its page, from which the films of an
episode are fetched and to which marks are sent as a browser would; `pubc filter` takes the marks.
Then lerobot opens what was kept, compares every picture with the source, and trains ACT for three
steps with the line that `pubc filter` printed. What happened goes to --out, with versions.
"""

import io
import json
import platform
import re
import shlex
import signal
import subprocess
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from importlib import metadata
from pathlib import Path

import numpy as np
from other_environment import PUBC, inside, main, run_pubc

CAMERAS = ("observation.images.top", "observation.images.wrist")
EPISODES, LENGTH, FPS, SIZE = 40, 30, 10, 96
GOOD, BAD = 3, 1
"""Marks: of what the page proposes, the first that push to the right, and to the left."""
INSPECT = "inspect pushes --json"
REVIEW = "review pushes --no-browser"
FILTER = "filter pushes --labels pushes-review/labels.json --out run"
QUICK = (
    "--steps=3 --batch_size=2 --num_workers=0 --save_checkpoint=false --wandb.enable=false "
    "--policy.device=cpu --policy.pretrained_backbone_weights=null --policy.chunk_size=8 "
    "--policy.n_action_steps=8 --dataset.video_backend=pyav"
)


def is_expert(episode: int) -> bool:
    """Every second episode pushes to the right, as is wanted; the others push to the left."""
    return episode % 2 == 0


def record(root: Path) -> dict:
    """In lerobot's environment: record the set."""
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
        side, state = (1.0 if is_expert(episode) else -1.0), rng.normal(0, 0.1, 4)
        for step in range(LENGTH):
            action = side * (state[:2] - state[2:]) + side + rng.normal(0, 0.02, 2)
            frame = {"observation.state": state, "action": action}
            frame = {name: values.astype(np.float32) for name, values in frame.items()}
            for camera, name in enumerate(CAMERAS):
                frame[name] = picture(number_of(episode, step, camera))
            data.add_frame({**frame, "task": "push"})
            state = 0.9 * state + 0.1 * np.tile(action, 2)
        data.save_episode()
    data.finalize()
    return versions("lerobot", "torch", "av")


def versions(*names: str) -> dict:
    """What this environment holds."""
    found = {name: metadata.version(name) for name in names}
    return {"python": platform.python_version(), **found}


def number_of(episode: int, step: int, camera: int) -> int:
    """What the picture of a camera at a step of the recorded set says."""
    return 2 * (episode * LENGTH + step) + camera


def picture(number: int):
    """Twelve patches, black or white: the bits of a number."""
    patches = np.array([(number >> bit) & 1 for bit in range(12)], dtype=np.uint8) * 200 + 25
    large = np.kron(patches.reshape(3, 4), np.ones((SIZE // 3, SIZE // 4), dtype=np.uint8))
    return np.repeat(large[..., None], 3, axis=2)


def said_by(image) -> int:
    """The number that one channel of a picture says, from 0 for black to 1 for white."""
    rows, columns = SIZE // 3, SIZE // 4
    patches = image[rows // 2 :: rows, columns // 2 :: columns].reshape(-1)
    return sum(int(value > 0.5) << bit for bit, value in enumerate(patches.tolist()))


def compare(kept: Path, keep: Path) -> dict:
    """In lerobot's environment: every frame of the kept set shows the picture of its source."""
    from lerobot.datasets.lerobot_dataset import LeRobotDataset

    source = json.loads(keep.read_text())["episodes"]
    data = LeRobotDataset("local/kept", root=kept, video_backend="pyav")
    wrong = 0
    for at in range(len(data)):
        frame = data[at]
        episode, step = source[int(frame["episode_index"])], int(frame["frame_index"])
        for camera, name in enumerate(CAMERAS):
            wrong += said_by(frame[name][0]) != number_of(episode, step, camera)
    pictures = len(data) * len(CAMERAS)
    return {"episodes": data.num_episodes, "pictures": pictures, "wrong_pictures": wrong}


def walk(python: Path, work: Path) -> dict:
    theirs = inside(python, "record", work / "pushes")
    seen = json.loads(run_pubc(INSPECT, work).stdout)
    with serving(work) as (address, server):
        visit = visit_page(address)
    marks = json.loads((work / "pushes-review" / "labels.json").read_text())["marks"]
    filtered = run_pubc(FILTER, work)
    kept = work / "run" / json.loads((work / "run" / "run.json").read_text())["kept_path"]
    opened = inside(python, "compare", kept, work / "run" / "keep.json")
    films = {
        name: sum(path.stat().st_size for path in folder.rglob("*.mp4"))
        for name, folder in (("source", work / "pushes"), ("kept", kept))
    }
    return {
        "environments": {
            "lerobot": theirs,
            "pubc": versions("torch", "av", "starlette", "uvicorn"),
        },
        "recorded": {"episodes": EPISODES, "steps": EPISODES * LENGTH, "cameras": len(CAMERAS)},
        "inspected": {"line": f"pubc {INSPECT}", **{k: seen[k] for k in ("trajectories", "steps")}},
        "reviewed": {
            "line": f"pubc {REVIEW}",
            **visit,
            "labels.json": {
                label: [int(m["episode"]) for m in marks if m["label"] == label]
                for label in ("good", "bad")
            },
            "exit_code": server.returncode,
        },
        "filtered": {
            "line": f"pubc {FILTER}",
            **judged(work / "run"),
            "exit_code": filtered.returncode,
        },
        "film_bytes": films,
        "opened_by_lerobot": opened,
        "three_steps_of_act": train(python, filtered.stdout, work),
    }


@contextmanager
def serving(work: Path) -> Iterator[tuple[str, subprocess.Popen]]:
    """`pubc review` while the block runs: its address and its process. Ctrl-C ends it."""
    words = [*PUBC, *shlex.split(REVIEW)]
    server = subprocess.Popen(words, cwd=work, stdout=subprocess.PIPE, text=True)
    try:
        lines = iter(server.stdout.readline, "")
        yield next(line.split()[1] for line in lines if line.startswith("Open ")), server
    finally:
        server.send_signal(signal.SIGINT)
        server.communicate(timeout=60)


def visit_page(address: str) -> dict:
    """Look at the page, at the films of an episode, and mark a few of those that it proposes."""
    page = fetch(address)[1].decode()
    data = json.loads(re.search(r'<script [^>]*id="data">(.*?)</script>', page, re.S)[1])
    plots = fetch(address + "plots/0")[1]
    proposed = [entry["at"] for entry in json.loads(fetch(address + "proposals")[1])]
    good = [at for at in proposed if is_expert(at)][:GOOD]
    bad = [at for at in proposed if not is_expert(at)][:BAD]
    clips = json.loads(fetch(f"{address}episode/{good[0]}")[1])["clips"]
    films = [watch(address, good[0], clip) for clip in clips]
    for label, chosen in (("good", good), ("bad", bad)):
        whole = [{"label": label, "start": None, "stop": None}]
        changes = {"episodes": [{"at": at, "marks": whole} for at in chosen]}
        saved = json.loads(fetch(address + "marks", json.dumps(changes).encode())[1])["saved"]
    return {
        "page": {"trajectories": data["count"], "plot_bytes": len(plots)},
        "proposed": proposed,
        "films": films,
        "marked": {"good": good, "bad": bad, "saved": saved},
    }


def watch(address: str, at: int, clip: dict) -> dict:
    """What the film of an episode shows between the times at which the page plays it."""
    import av

    camera = clip["camera"]
    status, raw = fetch(f"{address}video/{at}/{camera}", Range="bytes=0-")
    with av.open(io.BytesIO(raw)) as container:
        shown = [
            said_by(frame.to_ndarray(format="gray") / 255)
            for frame in container.decode(video=0)
            if clip["start"] - 0.5 / FPS < frame.time < clip["stop"] - 0.5 / FPS
        ]
    right = [number_of(at, step, camera) for step in range(LENGTH)]
    wrong = sum(a != b for a, b in zip(shown, right, strict=True))
    return {
        "camera": CAMERAS[camera],
        "status": status,
        "bytes": len(raw),
        "pictures": len(shown),
        "wrong_pictures": wrong,
    }


def fetch(url: str, body: bytes | None = None, **headers: str) -> tuple[int, bytes]:
    """Status and body of an answer, asked for without any proxy."""
    opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
    with opener.open(urllib.request.Request(url, body, headers), timeout=60) as answer:
        return answer.status, answer.read()


def judged(run: Path) -> dict:
    """What a run says of itself, and how right it is."""
    document = json.loads((run / "run.json").read_text())
    kept = set(json.loads((run / "keep.json").read_text())["episodes"])
    experts = {episode for episode in range(EPISODES) if is_expert(episode)}
    told = {name: document[name] for name in ("status", "sound", "kept", "kept_path")}
    return {**told, "kept_wrongly": len(kept - experts), "missed": len(experts - kept)}


def train(python: Path, printed: str, work: Path) -> dict:
    """Run the line that `pubc filter` printed, for three steps."""
    line = next(line for line in printed.splitlines() if line.startswith("lerobot-train "))
    command, *flags = shlex.split(line)
    words = [str(python.parent / command), *flags, *shlex.split(QUICK)]
    done = subprocess.run(words, cwd=work, capture_output=True, text=True)
    last = done.stderr.strip().splitlines()[-1:]
    return {
        "line": line.replace(str(work), "WORK"),
        "added": QUICK,
        "exit_code": done.returncode,
        "last_words": last,
    }


if __name__ == "__main__":
    main("lerobot", {"record": record, "compare": compare}, walk)
