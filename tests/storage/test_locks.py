"""One run per folder; a dead run holds nothing."""

import signal
import subprocess
import sys

import pytest

from pubc.errors import LockedError, UsageError
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


def test_what_a_killed_run_left_goes_and_a_living_one_is_heeded(tmp_path):
    unlock_dead(tmp_path)
    left = tmp_path / ".lock"
    left.write_text('{"pid": 1}')
    unlock_dead(tmp_path)
    assert not left.exists()
    with lock(tmp_path), pytest.raises(LockedError):
        unlock_dead(tmp_path)
    assert not left.exists()


@pytest.mark.parametrize("content", ["mine", "{}", '{"name": 1}'])
def test_a_file_that_only_has_the_name_of_a_lock_stays(tmp_path, content):
    (tmp_path / ".lock").write_text(content)
    with pytest.raises(UsageError, match="not a lock of pubc"), lock(tmp_path):
        pass
    with pytest.raises(UsageError, match="not a lock of pubc"):
        unlock_dead(tmp_path)
    assert (tmp_path / ".lock").read_text() == content


def test_the_lock_of_a_process_killed_at_once_is_empty_and_free(tmp_path):
    (tmp_path / ".lock").touch()
    with lock(tmp_path):
        pass
    assert not (tmp_path / ".lock").exists()
