"""Several processes in one folder: one writes, and a dead one is in nobody's way."""

import os
import signal
import socket
import time
from collections.abc import Callable
from multiprocessing.context import ForkServerProcess
from pathlib import Path
from typing import Any
from unittest import mock

from placevalue.common import lock
from placevalue.experiments.predict import PARTIAL, predict
from placevalue.experiments.recipe import make_recipe
from placevalue.experiments.train import train
from tools.faults.bench import Bench, run_verb, start_child, weights

SILENCE = 3.0
"""Seconds after which the lock of a process on another machine is taken over here."""


def _impatient() -> Any:
    return mock.patch.multiple(lock, HEARTBEAT=SILENCE / 10, LEASE=SILENCE)


def _resume(bench: Bench) -> tuple[int, str]:
    with _impatient():
        return run_verb("train", bench.recipe_file(), "--resume", "--out", bench.place / "run")


def _hold_at(bench: Bench, step: int, host: str | None) -> None:
    """Train in `run`, and stay at this step until the file `go on` is there; by name on another machine."""

    def hold(done: int, _all: int) -> None:
        while done == step and not (bench.place / "go on").exists():
            (bench.place / "held").touch()
            time.sleep(0.05)

    if host is not None:
        socket.gethostname = lambda: host
    with _impatient():
        train(make_recipe(bench.values()).run(), bench.place / "run", progress=hold)


def _held(bench: Bench, host: str | None = None) -> ForkServerProcess:
    """A process that trains in `run` and stays at the third step."""
    process = start_child(_hold_at, bench, 3, host)
    _wait_for((bench.place / "held").exists, process)
    return process


def _wait_for(condition: Callable[[], bool], process: ForkServerProcess) -> None:
    deadline = time.monotonic() + 120
    while not condition():
        assert process.is_alive() and time.monotonic() < deadline
        time.sleep(0.05)


def two_trainings(bench: Bench) -> str:
    """Two processes train in one folder."""
    first = _held(bench)
    status, shown = _resume(bench)
    assert status == 1 and f"is in use by process {first.pid}" in " ".join(shown.split()), shown
    (bench.place / "go on").touch()
    first.join()
    assert first.exitcode == 0 and weights(bench.place / "run") == bench.weights()
    return "the second is refused and names the first, which ends with the same weights"


def killed_here(bench: Bench) -> str:
    """The process that trains in a folder is killed."""
    first = _held(bench)
    first.kill()
    first.join()
    status, shown = _resume(bench)
    assert status == 0 and "waiting" not in shown and weights(bench.place / "run") == bench.weights(), shown
    return "taken over at once; same weights"


def killed_elsewhere(bench: Bench) -> str:
    """The process that trains in a folder is killed on another machine."""
    first = _held(bench, "elsewhere")
    status, shown = _resume(bench)
    assert status == 1 and f"by process {first.pid} on elsewhere" in " ".join(shown.split()), shown
    first.kill()
    first.join()
    status, shown = _resume(bench)
    assert status == 0 and "waiting" in shown and weights(bench.place / "run") == bench.weights(), shown
    return "refused while it lives; then taken over after its silence; same weights"


def suspended(bench: Bench) -> str:
    """The process that trains in a folder sleeps for longer than its lock lasts, and wakes up."""
    first = _held(bench)
    assert first.pid is not None
    os.kill(first.pid, signal.SIGSTOP)
    status, shown = _resume(bench)
    assert status == 0, shown
    (bench.place / "go on").touch()
    os.kill(first.pid, signal.SIGCONT)
    first.join()
    assert first.exitcode == 1 and weights(bench.place / "run") == bench.weights()
    return "taken over; when it wakes up, it stops before it writes; same weights"


def _answer_slowly(bench: Bench) -> None:
    def hold(done: int, _all: int) -> None:
        while done and not (bench.place / "go on").exists():
            (bench.place / "held").touch()
            time.sleep(0.05)

    predict(bench.place / "run", [bench.data], bench.place / "answers", batch_size=4, progress=hold)


def two_predictions(bench: Bench) -> str:
    """Two processes answer into one folder."""
    run = bench.train("run", max_steps=1)
    first = start_child(_answer_slowly, bench)
    _wait_for((bench.place / "held").exists, first)
    words = ("predict", run, "--data", bench.data, "--batch-size", 4)
    status, shown = run_verb(*words, "--out", bench.place / "answers")
    assert status == 1 and f"is in use by process {first.pid}" in " ".join(shown.split()), shown
    (bench.place / "go on").touch()
    first.join()
    assert first.exitcode == 0 and not (bench.place / "answers" / PARTIAL).exists()
    assert run_verb(*words, "--out", bench.place / "undisturbed")[0] == 0
    one, other = (Path(bench.place / name / "predictions.jsonl").read_bytes() for name in ("answers", "undisturbed"))
    assert one == other
    return "the second is refused and names the first, which ends with the same predictions"


FAULTS = {
    "two processes train in one folder": two_trainings,
    "the process that trains in a folder is killed": killed_here,
    "the process that trains in a folder is killed on another machine": killed_elsewhere,
    "the process that trains in a folder is suspended for longer than its lock lasts": suspended,
    "two processes answer into one folder": two_predictions,
}
