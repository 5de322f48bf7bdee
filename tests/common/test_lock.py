"""With owners that are real processes, on this machine or, by the name they go by, on another."""

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

import placevalue
from placevalue.common import lock
from placevalue.common.errors import DataError
from placevalue.common.lock import locked

OWNER = """
import socket, sys
from pathlib import Path
from placevalue.common import lock
lock.HEARTBEAT, lock.LEASE = 0.1, 1.0
if len(sys.argv) > 2:
    socket.gethostname = lambda: sys.argv[2]
with lock.locked(Path(sys.argv[1])) as check:
    print("locked", flush=True)
    for _ in sys.stdin:
        try:
            check()
            print("ours", flush=True)
        except lock.DataError as error:
            print(error, flush=True)
"""


@pytest.fixture(autouse=True)
def quick(monkeypatch):
    monkeypatch.setattr(lock, "HEARTBEAT", 0.1)
    monkeypatch.setattr(lock, "LEASE", 1.0)


class Owner:
    """A process that has the lock of a folder."""

    def __init__(self, folder, *host):
        environment = os.environ | {"PYTHONPATH": str(Path(placevalue.__file__).parents[1])}
        command = [sys.executable, "-c", OWNER, str(folder), *host]
        pipes = dict(stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        self.process = subprocess.Popen(command, env=environment, **pipes)
        assert self.process.stdout.readline() == "locked\n"

    def asked(self):
        self.process.stdin.write("still?\n")
        self.process.stdin.flush()
        return self.process.stdout.readline()

    def end(self):
        self.process.stdin.close()
        assert self.process.wait() == 0
        self.process.stdout.close()

    def kill(self):
        self.process.kill()
        self.process.wait()


@pytest.mark.parametrize("host", [[], ["elsewhere"]])
def test_a_second_process_is_refused_while_the_first_lives(tmp_path, host):
    owner = Owner(tmp_path, *host)
    told = rf"is in use by process {owner.process.pid} on .*: wait for it, or choose another folder"
    with pytest.raises(DataError, match=told), locked(tmp_path):
        pass
    assert owner.asked() == "ours\n"
    owner.end()
    with locked(tmp_path) as check:
        check()
    assert not list(tmp_path.iterdir())


def test_in_the_same_process_too(tmp_path):
    with locked(tmp_path), pytest.raises(DataError, match=f"in use by process {os.getpid()} on"), locked(tmp_path):
        pass


def test_the_lock_of_a_killed_process_is_taken_over_at_once(tmp_path, monkeypatch):
    """Long before its silence would allow it."""
    owner = Owner(tmp_path)
    text = (tmp_path / lock.LOCK).read_text()
    owner.kill()
    (tmp_path / lock.LOCK).write_text(text.replace("duration=1.0", "duration=3600.0"))
    monkeypatch.setattr(lock, "LEASE", 3600.0)
    with locked(tmp_path) as check:
        check()


def test_on_another_machine_it_is_taken_over_after_silence(tmp_path, caplog):
    Owner(tmp_path, "elsewhere").kill()
    with locked(tmp_path) as check:
        check()
    assert "on elsewhere: waiting up to" in caplog.text


def test_one_waits_for_the_other(tmp_path):
    owner = Owner(tmp_path)
    second = subprocess.Popen(
        [sys.executable, "-c", OWNER.replace("(Path(sys.argv[1]))", "(Path(sys.argv[1]), wait=True)"), str(tmp_path)],
        env=os.environ | {"PYTHONPATH": str(Path(placevalue.__file__).parents[1])},
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    assert owner.asked() == "ours\n" and second.poll() is None
    owner.end()
    assert second.stdout.readline() == "locked\n"
    second.communicate("")


def test_an_owner_that_slept_through_notices(tmp_path):
    owner = Owner(tmp_path, "elsewhere")
    owner.process.send_signal(signal.SIGSTOP)
    with locked(tmp_path) as check:
        owner.process.send_signal(signal.SIGCONT)
        assert f"was taken over by process {os.getpid()} on" in owner.asked()
        check()
        owner.end()
        check()
    assert not list(tmp_path.iterdir())


def test_locks_of_version_0_1_0_are_no_obstacle(tmp_path):
    (tmp_path / ".lock").touch()
    with locked(tmp_path):
        pass
    assert [path.name for path in tmp_path.iterdir()] == [".lock"]
