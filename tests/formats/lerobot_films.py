"""LeRobot v3.0 datasets with films whose every picture says which frame it is."""

import json
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from tests.formats.lerobot_sets import read_listed, write_episodes, write_v3

CAMERAS = ("observation.images.top", "observation.images.wrist")
TEMPLATE = "videos/{video_key}/chunk-{chunk_index:03d}/file-{file_index:03d}.mp4"
FPS = 10
SIZE = 64


def picture(frame: int, camera: int) -> np.ndarray:
    """A field of twelve patches, black or white: the number of the frame, and the camera."""
    bits = [(frame >> bit) & 1 for bit in range(11)] + [camera]
    patches = np.array(bits, dtype=np.uint8).reshape(3, 4) * 200 + 25
    large = np.kron(patches, np.ones((SIZE // 3 + 1, SIZE // 4), dtype=np.uint8))[:SIZE]
    return np.repeat(large[..., None], 3, axis=2)


def number(image: np.ndarray) -> int:
    """The frame that a picture says it is."""
    rows = [int((row + 0.5) * (SIZE // 3 + 1)) for row in range(3)]
    rows[-1] = min(rows[-1], SIZE - 4)
    columns = [int((column + 0.5) * (SIZE // 4)) for column in range(4)]
    bits = [int(image[row, column, 0] > 128) for row in rows for column in columns]
    return sum(bit << place for place, bit in enumerate(bits[:11]))


def film(path: Path, lengths: list[int], start: int, camera: int, *, whole: bool = True) -> None:
    """Encode episodes one after the other; each begins with a whole picture, or only the first."""
    import av

    path.parent.mkdir(parents=True, exist_ok=True)
    begins = set(np.cumsum([0, *lengths]).tolist()) if whole else {0}
    with av.open(str(path), "w", format="mp4") as container:
        stream = container.add_stream("libx264", rate=FPS, options={"g": "100", "bf": "0"})
        stream.width = stream.height = SIZE
        stream.pix_fmt = "yuv420p"
        for place in range(sum(lengths)):
            frame = av.VideoFrame.from_ndarray(picture(start + place, camera), format="rgb24")
            frame.pict_type = av.video.frame.PictureType.I if place in begins else 0
            container.mux(stream.encode(frame))
        container.mux(stream.encode(None))


def pictures(path: Path) -> dict[float, int]:
    """What each picture of a film says, by its time."""
    import av

    with av.open(str(path)) as container:
        return {
            round(frame.time, 4): number(frame.to_ndarray(format="rgb24"))
            for frame in container.decode(video=0)
        }


def write_with_films(
    root: Path, files: list[list[int]], lengths: list[int], **film_options
) -> Path:
    """A v3.0 set with two cameras; `files` says which episodes share a film."""
    write_v3(root, [(0, 0, list(range(len(lengths))))], lengths)
    starts = np.cumsum([0, *lengths])
    rows = read_listed(root)
    for place, episodes in enumerate(files):
        for index, camera in enumerate(CAMERAS):
            path = root / TEMPLATE.format(video_key=camera, chunk_index=0, file_index=place)
            own = [lengths[n] for n in episodes]
            film(path, own, int(starts[episodes[0]]), index, **film_options)
            begin = 0.0
            for n in episodes:
                end = begin + lengths[n] / FPS
                rows[n] |= {
                    f"videos/{camera}/chunk_index": 0,
                    f"videos/{camera}/file_index": place,
                    f"videos/{camera}/from_timestamp": begin,
                    f"videos/{camera}/to_timestamp": end,
                }
                begin = end
    write_episodes(root, rows)
    info = json.loads((root / "meta/info.json").read_text())
    info["video_path"] = TEMPLATE
    for camera in CAMERAS:
        info["features"][camera] = {"dtype": "video", "shape": [SIZE, SIZE, 3], "names": None}
    (root / "meta/info.json").write_text(json.dumps(info))
    return root


def seen(root: Path) -> dict[str, list[list[int]]]:
    """By camera, what every frame of every episode shows, found the way lerobot finds it."""
    data = pa.concat_tables([pq.read_table(f) for f in sorted(root.glob("data/*/*.parquet"))])
    frames = data.select(["episode_index", "timestamp"]).to_pylist()
    found: dict[str, list[list[int]]] = {}
    for camera in CAMERAS:
        for row in read_listed(root):
            path = root / TEMPLATE.format(
                video_key=camera,
                chunk_index=row[f"videos/{camera}/chunk_index"],
                file_index=row[f"videos/{camera}/file_index"],
            )
            shown = pictures(path)
            times = np.array(sorted(shown))
            own = [f["timestamp"] for f in frames if f["episode_index"] == row["episode_index"]]
            asked = [row[f"videos/{camera}/from_timestamp"] + time for time in own]
            near = [times[np.argmin(np.abs(times - time))] for time in asked]
            assert np.allclose(near, asked, atol=1e-4)  # the tolerance of lerobot
            found.setdefault(camera, []).append([shown[float(time)] for time in near])
    return found
