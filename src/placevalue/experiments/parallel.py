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
from typing import Any

Work = Callable[..., str | None]
"""Called with a piece of work and `progress=`; returns None, or why it failed."""
SECONDS_TO_END = 10.0
"""How long a process that is told to end may take, to remove what it shares with others, before it is killed."""


def run_at_once(
    work: Work, pieces: Mapping[str, Any], jobs: int, logs: Path, progress: Callable[..., object]
) -> dict[str, str]:
    """Do pieces of work, `jobs` at a time; returns why pieces failed, by name.

    If a process dies, only its own piece fails. Processes end with this one, however it ends. On a CPU they share its
    cores.
    """
    context = multiprocessing.get_context("spawn")
    threads = max(1, (os.cpu_count() or 1) // jobs)
    logs.mkdir(parents=True, exist_ok=True)
    waiting = list(pieces.items())
    running: dict[Any, tuple[str, Any]] = {}
    failures: dict[str, str] = {}
    try:
        while waiting or running:
            while waiting and len(running) < jobs:
                name, piece = waiting.pop(0)
                ours, theirs = context.Pipe(duplex=False)
                arguments = (theirs, work, piece, logs / f"{name}.log", threads)
                process = context.Process(target=_do_piece, args=arguments)
                with _out_of_reach_of_ctrl_c():
                    process.start()
                    running[ours] = name, process
                theirs.close()
            ready: list[Any] = wait(list(running))
            for pipe in ready:
                name, process = running[pipe]
                try:
                    kind, sent = pipe.recv()
                except EOFError:
                    kind, sent = "done", "its process died; out of memory?"
                if kind == "progress":
                    progress(*sent)
                    continue
                if sent is not None:
                    failures[name] = sent
                del running[pipe]
                process.join()
    finally:
        for _, process in running.values():
            process.terminate()
        for _, process in running.values():
            process.join(SECONDS_TO_END)
            process.kill()
    return failures


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


def _do_piece(pipe: Connection, work: Work, piece: Any, log: Path, threads: int) -> None:
    threading.Thread(target=_end_with_parent, daemon=True).start()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))  # so that what is shared with other processes is removed
    with log.open("a") as file:
        for number in (1, 2):  # the descriptors, so that output from C libraries is included
            os.dup2(file.fileno(), number)
    if "OMP_NUM_THREADS" not in os.environ:
        import torch

        torch.set_num_threads(threads)
    pipe.send(("done", work(piece, progress=lambda *event: pipe.send(("progress", event)))))


def _end_with_parent() -> None:
    parent = multiprocessing.parent_process()
    assert parent is not None
    parent.join()
    os._exit(1)
