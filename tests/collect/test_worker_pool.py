"""Workers and what they are told while they play."""

from pathlib import Path

import pytest

from pubc.collect.worker_pool import Limit, Task, WorkerPool

pytest.importorskip("mujoco")
SETUP = {
    "environment": "ant",
    "random_seed": 0,
    "trusted": False,
    "sources": {"E+": {"policy": "ant/expert", "action_noise": 0.0, "lapses": []}},
}


@pytest.mark.parametrize(("most", "least"), [(30, 30), (0, 0)])
def test_a_task_under_way_ends_when_it_is_told_that_less_of_it_is_needed(
    tmp_path: Path, most: int, least: int
):
    tasks = [
        Task("E+", 0, 1, most=20, folder=str(tmp_path)),
        Task("E+", 1, 8, most=8000, folder=str(tmp_path)),
    ]
    under_way = {0, 1}
    answers = []
    with WorkerPool(SETUP, 2, tmp_path) as pool:
        pool.sizes()
        for answer in pool.work(
            lambda: tasks.pop(0) if tasks else None,
            lambda: [Limit("E+", first, most) for first in under_way],
        ):
            under_way.remove(answer.first)
            answers.append(answer)
    short, long = answers
    assert (short.first, short.lengths) == (0, (20,))
    assert least <= sum(long.lengths) < 8000
    assert (len(long.lengths) == 0) == (most == 0)
    written = {path.name for path in tmp_path.glob("*.safetensors")}
    count = len(long.lengths)
    assert written == {"00-E_-0000000x1.safetensors"} | (
        {f"00-E_-0000001x{count}.safetensors"} if count else set()
    )
