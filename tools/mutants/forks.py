"""Run tests in forks of one process that has imported the libraries, but nothing of placevalue.

Importing torch and transformers takes longer than most tests, and each bug needs a fresh placevalue.
"""

import importlib
import io
import json
import os
import resource
import signal
import subprocess
import sys
import tarfile
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from types import FrameType
from typing import Any

import pytest

_LIBRARIES = (
    "torch", "transformers", "hypothesis", "accelerate", "datasets", "peft", "scipy.stats", "trl", "zoo"
)  # fmt: skip
_MEMORY = 16 << 30  # a bug may ask for all there is
UNFINISHED = 256
"""The status of a task that ran out of time."""
FOUND = "\nfound: "
"""What a watched run prints last begins with this."""


def export(root: Path, folder: Path) -> str:
    """Copy the last commit, so that no bug is ever in the working tree; returns its name."""
    name = subprocess.run(["git", "rev-parse", "HEAD"], cwd=root, check=True, capture_output=True, text=True).stdout
    archive = subprocess.run(["git", "archive", name.strip()], cwd=root, check=True, capture_output=True).stdout
    with tarfile.open(fileobj=io.BytesIO(archive)) as tar:
        tar.extractall(folder, filter="data")
    return name.strip()


def warm_up(copy: Path) -> None:
    """Import the libraries and train the small tokenizers that all tests share."""
    os.environ |= {"HF_HUB_OFFLINE": "1", "TOKENIZERS_PARALLELISM": "false"}
    sys.path.insert(0, str(copy / "tests"))
    for name in _LIBRARIES:
        importlib.import_module(name)
    import torch

    torch.set_num_threads(1)  # threads do not survive a fork
    families = importlib.import_module("families")
    for family in families.FAMILIES:
        families.base_tokenizer(family)
    sys.path.remove(str(copy / "tests"))


def in_forks(
    copies: Sequence[Path], tasks: Sequence[Callable[[Path], int]], limits: Sequence[float]
) -> Iterator[tuple[int, tuple[int, str]]]:
    """Run each task in a fork, one at a time in each copy; yields the index of each that ends, its status and output.

    Args:
        copies: Folders for tasks to run in.
        tasks: Take their copy and return an exit status.
        limits: Seconds after which each task is killed.
    """
    waiting, free = list(enumerate(tasks)), list(copies)
    running: dict[int, tuple[int, Path, float]] = {}
    while waiting or running:
        while waiting and free:
            index, task = waiting.pop(0)
            copy = free.pop()
            running[_fork(task, copy)] = index, copy, time.monotonic() + limits[index]
        for process, (index, copy, end) in list(running.items()):
            ended, status = os.waitpid(process, os.WNOHANG)
            late = not ended and time.monotonic() > end
            if late:
                os.killpg(process, signal.SIGKILL)
                os.waitpid(process, 0)
            if ended or late:
                del running[process]
                free.append(copy)
                code = UNFINISHED if late else os.waitstatus_to_exitcode(status)
                yield index, (code, _output(copy).read_text(errors="replace"))
        time.sleep(0.02)


def _output(copy: Path) -> Path:
    return copy.with_suffix(".out")


def _fork(task: Callable[[Path], int], copy: Path) -> int:
    process = os.fork()
    if process:
        return process
    os.setsid()  # to be killed with all it has started
    with _output(copy).open("wb") as file:
        os.dup2(file.fileno(), 1)
        os.dup2(file.fileno(), 2)
    status = 70
    try:
        resource.setrlimit(resource.RLIMIT_AS, (_MEMORY, _MEMORY))
        status = task(copy)
    finally:
        sys.stdout.flush()
        os._exit(status & 0xFF)


def run_tests(copy: Path, files: Sequence[str], *plugins: object) -> int:
    """Run test files of a copy until the first fails; returns pytest's exit status."""
    for name in [name for name in sys.modules if name.partition(".")[0] == "placevalue"]:
        del sys.modules[name]
    os.chdir(copy)
    sys.path.insert(0, str(copy / "src"))
    os.environ["PYTHONPATH"] = str(copy / "src")  # for tests that start processes
    options = ["-q", "-x", "-p", "no:cacheprovider", "-m", "not slow and not cluster", "--tb", "line"]
    return int(pytest.main([*options, *files], plugins=list(plugins)))


class Watch:
    """A pytest plugin that prints which lines of placevalue a run executes, and how long each test takes."""

    def __init__(self, source: Path) -> None:
        self.root, self.source = f"{source.parent}{os.sep}", f"{source}{os.sep}"
        self.lines: dict[str, set[int]] = {}
        self.seconds: dict[str, float] = {}
        threading.settrace(self._trace)
        sys.settrace(self._trace)

    def _trace(self, frame: FrameType, *_: Any) -> Any:
        file = frame.f_code.co_filename
        if not file.startswith(self.source):
            return None
        lines = self.lines.setdefault(file.removeprefix(self.root), set())

        def note(frame: FrameType, *_: Any) -> Any:
            lines.add(frame.f_lineno)
            return note

        return note(frame)

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Note the time of each phase of a test."""
        self.seconds[report.nodeid] = self.seconds.get(report.nodeid, 0) + report.duration

    def pytest_unconfigure(self) -> None:
        """Print what was seen."""
        sys.settrace(None)
        lines = {name: sorted(found) for name, found in self.lines.items()}
        print(FOUND + json.dumps({"lines": lines, "seconds": self.seconds}))


class FastestFirst:
    """A pytest plugin that runs the fastest tests first."""

    def __init__(self, seconds: dict[str, float]) -> None:
        self.seconds = seconds

    def pytest_collection_modifyitems(self, items: list[pytest.Item]) -> None:
        """Sort by time, roughly, so that the tests of a file stay together where it matters little."""
        items.sort(key=lambda item: max(self.seconds.get(item.nodeid, 0.0), 0.05))
