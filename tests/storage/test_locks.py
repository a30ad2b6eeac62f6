"""One run per folder; a dead run holds nothing."""

import signal
import subprocess
import sys
from pathlib import Path

import pytest

from pubc.errors import LockedError
from pubc.storage import lock, unlock_dead

HOLD = """
import sys, time
from pathlib import Path
from pubc.storage import lock
with lock(Path(sys.argv[1])):
    print("held", flush=True)
    time.sleep(60)
"""


@pytest.fixture
def holder(tmp_path):
    process = subprocess.Popen(
        [sys.executable, "-c", HOLD, str(tmp_path)], stdout=subprocess.PIPE, text=True
    )
    assert process.stdout is not None
    assert process.stdout.readline() == "held\n"
    yield process
    process.kill()
    process.communicate()


def test_a_second_run_is_refused_and_told_who_holds_the_folder(tmp_path, holder):
    told = f"written by process {holder.pid} on"
    with pytest.raises(LockedError, match=told) as caught, lock(tmp_path):
        pass
    assert caught.value.exit_code == 4
    assert holder.poll() is None


def test_the_lock_of_a_killed_run_is_free(tmp_path, holder):
    holder.send_signal(signal.SIGKILL)
    holder.wait()
    assert (tmp_path / ".lock").exists()
    with lock(tmp_path):
        pass
    assert not (tmp_path / ".lock").exists()


def test_the_same_process_does_not_enter_twice(tmp_path):
    with lock(tmp_path):
        with pytest.raises(LockedError), lock(tmp_path):
            pass
        assert (tmp_path / ".lock").exists()
    with lock(tmp_path):
        pass


def test_a_lock_file_that_says_nothing_is_no_obstacle(tmp_path):
    Path(tmp_path / ".lock").write_bytes(b"\xff not json")
    with lock(tmp_path):
        pass


def test_what_a_killed_run_left_goes_and_a_living_one_is_heeded(tmp_path):
    unlock_dead(tmp_path)
    left = tmp_path / ".lock"
    left.write_text("{}")
    unlock_dead(tmp_path)
    assert not left.exists()
    with lock(tmp_path), pytest.raises(LockedError):
        unlock_dead(tmp_path)
    assert not left.exists()
