"""Several runs at once on one device, each in its own process with its output in a log."""

import multiprocessing
import os
import signal
import sys
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from multiprocessing import resource_tracker
from multiprocessing.connection import Connection, wait
from pathlib import Path
from types import TracebackType
from typing import Any, Protocol, Self

Work = Callable[..., Any]
"""Called with a piece of work and `progress=`; for `run_all` it returns None, or why it failed."""
Event = tuple[str, str, Any]
"""The name of a piece; `progress`, `done` or `died`; and what was reported, what the work returned, or why it died."""
SECONDS_TO_END = 10.0
"""How long a process that is told to end may take, to remove what it shares with others, before it is killed."""


class Room(Protocol):
    """Where pieces of work are done, each in its own process: on this machine, or on others."""

    @property
    def running(self) -> int:
        """How many pieces are being done."""

    @property
    def is_full(self) -> bool:
        """Whether another piece would have to wait."""

    def start(self, name: str, piece: Any) -> None:
        """Begin a piece."""

    def wait(self) -> list[Event]:
        """Wait until something happens, and say what."""


def run_at_once(
    work: Work, pieces: Mapping[str, Any], jobs: int, logs: Path, progress: Callable[..., object]
) -> dict[str, str]:
    """Do pieces of work, `jobs` at a time; returns why pieces failed, by name.

    If a process dies, only its own piece fails. Processes end with this one, however it ends. On a CPU they share its
    cores.
    """
    with Processes(work, jobs, logs) as room:
        return run_all(pieces, room, progress)


def run_all(pieces: Mapping[str, Any], room: Room, progress: Callable[..., object]) -> dict[str, str]:
    """Do pieces of work wherever there is room; returns why pieces failed, by name."""
    waiting = list(pieces.items())
    failures: dict[str, str] = {}
    while waiting or room.running:
        while waiting and not room.is_full:
            room.start(*waiting.pop(0))
        for name, kind, sent in room.wait():
            if kind == "progress":
                progress(*sent)
            elif sent is not None:
                failures[name] = sent
    return failures


class Processes:
    """Room for `jobs` pieces on this machine.

    Args:
        work: What each process does with its piece.
        jobs: How many at once.
        logs: The folder for the output of each piece.
        folder: The working directory of the processes. Default: that of this one.
    """

    def __init__(self, work: Work, jobs: int, logs: Path, folder: Path | None = None) -> None:
        self.work, self.jobs, self.logs, self.folder = work, jobs, logs, folder
        self.context = multiprocessing.get_context("spawn")
        self.processes: dict[Any, tuple[str, Any]] = {}
        logs.mkdir(parents=True, exist_ok=True)

    @property
    def running(self) -> int:
        """How many pieces are being done."""
        return len(self.processes)

    @property
    def is_full(self) -> bool:
        """Whether `jobs` are running."""
        return len(self.processes) >= self.jobs

    def start(self, name: str, piece: Any) -> None:
        """Begin a piece in a new process."""
        threads = max(1, (os.cpu_count() or 1) // self.jobs)
        ours, theirs = self.context.Pipe(duplex=False)
        arguments = (theirs, self.work, piece, self.logs / f"{name}.log", threads, self.folder)
        process = self.context.Process(target=_do_piece, args=arguments)
        with _out_of_reach_of_ctrl_c():
            process.start()
            self.processes[ours] = name, process
        theirs.close()

    def wait(self) -> list[Event]:
        """Wait until a process reports something or ends."""
        events: list[Event] = []
        ready: list[Any] = wait(list(self.processes))
        for pipe in ready:
            name, process = self.processes[pipe]
            try:
                kind, sent = pipe.recv()
            except EOFError:
                kind, sent = "died", "its process died; out of memory?"
            events.append((name, kind, sent))
            if kind != "progress":
                del self.processes[pipe]
                process.join()
        return events

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, _kind: type[BaseException] | None, _error: BaseException | None, _trace: TracebackType | None
    ) -> None:
        """End what still runs."""
        for _, process in self.processes.values():
            process.terminate()
        for _, process in self.processes.values():
            process.join(SECONDS_TO_END)
            process.kill()


@contextmanager
def _out_of_reach_of_ctrl_c() -> Iterator[None]:
    """Start processes that Ctrl-C in the terminal does not reach, since this one ends them."""
    if not hasattr(signal, "pthread_sigmask"):  # Windows
        yield
        return
    resource_tracker.ensure_running()  # when it starts, it lets the signal through again
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def _do_piece(pipe: Connection, work: Work, piece: Any, log: Path, threads: int, folder: Path | None) -> None:
    threading.Thread(target=_end_with_parent, daemon=True).start()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))  # so that what is shared with other processes is removed
    with log.open("a") as file:
        for number in (1, 2):  # the descriptors, so that output from C libraries is included
            os.dup2(file.fileno(), number)
    if folder is not None:
        os.chdir(folder)
    if "OMP_NUM_THREADS" not in os.environ:
        import torch

        torch.set_num_threads(threads)
    pipe.send(("done", work(piece, progress=lambda *event: pipe.send(("progress", event)))))


def _end_with_parent() -> None:
    parent = multiprocessing.parent_process()
    assert parent is not None
    parent.join()
    os._exit(1)
