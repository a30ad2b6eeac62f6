"""Synthetic RLDS datasets: a small writer of TFRecord files and their Examples."""

import json
from pathlib import Path

import numpy as np
from crc32c import crc32c

from tests.formats.roundtrip import marker

OBSERVATION = {
    "state": {"tensor": {"shape": {"dimensions": ["3"]}, "dtype": "float32", "encoding": "none"}},
    "gripper": {"tensor": {"shape": {}, "dtype": "float32", "encoding": "none"}},
    "image": {"image": {"shape": {"dimensions": ["8", "8", "3"]}, "dtype": "uint8"}},
}
SCALAR = {"tensor": {"shape": {}, "dtype": "float32", "encoding": "none"}}
FLAG = {"tensor": {"shape": {}, "dtype": "bool", "encoding": "none"}}
ACTION = {"tensor": {"shape": {"dimensions": ["2"]}, "dtype": "float32", "encoding": "none"}}


def features(action: dict = ACTION, **steps: dict) -> dict:
    """A `features.json`."""
    inner = {
        "action": action,
        "is_first": FLAG,
        "is_last": FLAG,
        "is_terminal": FLAG,
        "language_instruction": {"text": {}},
        "observation": {"featuresDict": {"features": OBSERVATION}},
        "reward": SCALAR,
        **steps,
    }
    return {
        "featuresDict": {
            "features": {
                "episode_metadata": {"featuresDict": {"features": {"operator": {"text": {}}}}},
                "steps": {"sequence": {"feature": {"featuresDict": {"features": inner}}}},
            }
        }
    }


def episode(start: int, length: int, *, terminal: bool, operator: str = "anna") -> dict:
    """One trajectory whose first observation counts steps and whose first action marks them."""
    count = np.arange(start, start + length)
    state = np.stack([count, count * 0.5, -count], axis=1).astype(np.float32)
    last = np.zeros(length, dtype=np.int64)
    last[-1:] = 1
    return {
        "steps/action": np.stack([marker(count), count], axis=1).astype(np.float32),
        "steps/is_first": (np.arange(length) == 0).astype(np.int64),
        "steps/is_last": last,
        "steps/is_terminal": last * int(terminal),
        "steps/language_instruction": [b"push"] * length,
        "steps/observation/state": state,
        "steps/observation/gripper": (count % 5).astype(np.float32),
        "steps/observation/image": [b"\x89PNG" + bytes(40)] * length,
        "steps/reward": count.astype(np.float32),
        "episode_metadata/operator": [operator.encode()],
    }


def varint(value: int) -> bytes:
    value &= 2**64 - 1
    data = b""
    while value > 127:
        data += bytes([value & 127 | 128])
        value >>= 7
    return data + bytes([value])


def message(number: int, content: bytes) -> bytes:
    return varint(number << 3 | 2) + varint(len(content)) + content


def feature(values: np.ndarray | list[bytes]) -> bytes:
    if isinstance(values, list):
        return message(1, b"".join(message(1, word) for word in values))
    if values.dtype.kind == "f":
        return message(2, message(1, values.astype("<f4").tobytes()))
    return message(3, message(1, b"".join(varint(int(v)) for v in values.reshape(-1))))


def example(columns: dict) -> bytes:
    entries = (
        message(1, message(1, name.encode()) + message(2, feature(values)))
        for name, values in columns.items()
    )
    return message(1, b"".join(entries))


def masked(data: bytes) -> bytes:
    crc = crc32c(data)
    return (((crc >> 15 | crc << 17) + 0xA282EAD8) & 0xFFFFFFFF).to_bytes(4, "little")


def framed(records: list[bytes]) -> bytes:
    data = b""
    for record in records:
        size = len(record).to_bytes(8, "little")
        data += size + masked(size) + record + masked(record)
    return data


def write_rlds(
    folder: Path, shards: list[list[dict]], about: dict | None = None, split: str = "train"
) -> Path:
    """A TFDS folder with the given trajectories in each shard."""
    folder.mkdir(exist_ok=True)
    (folder / "features.json").write_text(json.dumps(about or features()))
    info = {
        "splits": [{"name": split, "shardLengths": [str(len(shard)) for shard in shards]}],
    }
    (folder / "dataset_info.json").write_text(json.dumps(info))
    for number, shard in enumerate(shards):
        name = f"robot-{split}.tfrecord-{number:05d}-of-{len(shards):05d}"
        (folder / name).write_bytes(framed([example(columns) for columns in shard]))
    return folder
