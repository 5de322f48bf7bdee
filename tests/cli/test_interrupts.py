"""Ctrl-C, wherever a verb is: one line, how to go on, and status 130."""

import os
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest
import torch

import placevalue as pv
from command_lines import ACTIONS, command_lines, make_home
from placevalue.cli.interrupts import Interrupted, watch_interrupts
from placevalue.cli.main import main

SOURCE = str(Path(pv.__file__).parents[1])
SLOW = ("neighbours", "data list", "train", "reproduce", "sweep")


@pytest.fixture(scope="module")
def home(tmp_path_factory):
    return make_home(tmp_path_factory.mktemp("home"))


@pytest.fixture(autouse=True)
def cache(home, monkeypatch):
    monkeypatch.setenv("PLACEVALUE_CACHE", str(home / "cache"))


def press():
    os.kill(os.getpid(), signal.SIGINT)


def interrupted_at(call, words):
    """The status of a verb that is interrupted when it calls a function for the nth time."""
    count = 0

    def called(_frame, event, _argument):
        nonlocal count
        count += event == "call"
        if count == call and event == "call":
            press()

    sys.setprofile(called)
    try:
        return main(words)
    finally:
        sys.setprofile(None)
        torch.set_grad_enabled(True)  # it may have been interrupted on its way into or out of no_grad


@pytest.mark.parametrize(
    "name", [pytest.param(each, marks=pytest.mark.slow if each in SLOW else []) for each in ACTIONS]
)
def test_every_verb_ends_with_one_line_wherever_it_is(name, home, tmp_path, capsys):
    assert main(command_lines(home, tmp_path / "whole")[name]) == 0  # imports what it needs
    before = signal.getsignal(signal.SIGINT), sys.unraisablehook
    call, status = 1000, 130
    while status == 130:
        capsys.readouterr()
        status = interrupted_at(call, command_lines(home, tmp_path / str(call))[name])
        told = capsys.readouterr().err.splitlines()
        if status == 130:
            assert len([line for line in told if "interrupted. Run the same command" in line]) == 1
            assert not any("Traceback" in line or "rror" in line for line in told)
        call *= 6
    assert status == 0 and call > 6000
    assert (signal.getsignal(signal.SIGINT), sys.unraisablehook) == before


class TestWatching:
    def test_what_a_library_makes_of_it_is_an_interruption_too(self, monkeypatch, capsys):
        def dies(_options):
            try:
                press()
            except KeyboardInterrupt:
                raise RuntimeError("a worker exited unexpectedly") from None

        monkeypatch.setattr("placevalue.cli.fetch.run", dies)
        assert main(["fetch", "x"]) == 130 and "interrupted" in capsys.readouterr().err
        monkeypatch.setattr("placevalue.cli.fetch.run", lambda _: [][0])
        with pytest.raises(IndexError):
            main(["fetch", "x"])

    def test_a_finalizer_does_not_swallow_it(self, capsys):
        class Finalized:
            def __del__(self):
                press()

        with watch_interrupts() as interrupted, pytest.raises(Interrupted):
            Finalized()
            time.sleep(30)
        assert interrupted() and not capsys.readouterr().err

    def test_a_forked_process_leaves_it_to_its_parent(self):
        with watch_interrupts():
            child = os.fork()
            if not child:
                press()
                os._exit(7)
            assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 7

    def test_a_handler_that_is_there_stays(self):
        mine = lambda *_: None  # noqa: E731
        before = signal.signal(signal.SIGINT, mine)
        try:
            with watch_interrupts() as interrupted:
                press()
                assert signal.getsignal(signal.SIGINT) is mine and not interrupted()
        finally:
            signal.signal(signal.SIGINT, before)

    def test_other_threads_can_run_verbs(self, home, tmp_path):
        found = []
        words = command_lines(home, tmp_path)["data show"]
        thread = threading.Thread(target=lambda: found.append(main(words)))
        thread.start()
        thread.join()
        assert found == [0]


def start(words, code=None):
    """A verb in a process group of its own, as in a terminal; everything it prints goes to one pipe."""
    command = [sys.executable, *(["-m", "placevalue.cli"] if code is None else ["-c", code]), *words]
    environment = {**os.environ, "PYTHONPATH": SOURCE, "OMP_NUM_THREADS": "1"}
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.STDOUT, "text": True}
    return subprocess.Popen(command, env=environment, start_new_session=True, **pipes)


def end(process):
    """What a process printed, after it ended with status 130 and its group with it."""
    printed, _ = process.communicate(timeout=60)
    assert process.returncode == 130, printed
    deadline = time.monotonic() + 15
    while group_lives(process.pid) and time.monotonic() < deadline:
        time.sleep(0.05)
    assert not group_lives(process.pid)
    for unwanted in ("Traceback", "leaked", "Error", "rror:"):
        assert unwanted not in printed
    assert printed.count("placevalue: interrupted. Run the same command") == 1
    return printed


def group_lives(group):
    try:
        os.killpg(group, 0)
    except ProcessLookupError:
        return False
    return True


@pytest.mark.slow
@pytest.mark.parametrize("moment", ["logs/*.log", "*/checkpoints/checkpoint-2"])
def test_the_processes_of_several_jobs_end_silently_and_whole(moment, home, tmp_path):
    words = ["reproduce", str(home / "toy.yaml"), "--out", str(tmp_path), "--jobs", "2", "training.max_steps=400"]
    process = start([*words, "training.checkpoint_every=2", "training.keep_checkpoints=400"])
    deadline = time.monotonic() + 120
    while len(list(tmp_path.glob(moment))) < 2 and time.monotonic() < deadline and process.poll() is None:
        time.sleep(0.02)
    assert process.poll() is None
    os.killpg(process.pid, signal.SIGINT)
    assert end(process).rstrip().endswith("placevalue: interrupted. Run the same command again to continue.")
    assert not any("KeyboardInterrupt" in path.read_text() for path in tmp_path.glob("logs/*.log"))


COUNTING = """
import os, signal, sys
from placevalue.cli.main import main
count, call = 0, int(sys.argv.pop(1))
def called(_frame, event, _argument):
    global count
    count += event == "call"
    if count == call and event == "call":
        os.kill(os.getpid(), signal.SIGINT)
sys.setprofile(called)
sys.exit(main())
"""


@pytest.mark.slow
@pytest.mark.parametrize("call", [3_000, 30_000, 300_000, 1_000_000])
def test_imports_are_interrupted_in_the_same_way(call, home, tmp_path):
    end(start([str(call), *command_lines(home, tmp_path)["train"]], COUNTING))
