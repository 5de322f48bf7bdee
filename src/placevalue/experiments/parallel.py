"""Several runs at once on one device, each in its own process with its output in a log."""

import multiprocessing
import os
import sys
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from multiprocessing.connection import Connection, wait
from pathlib import Path
from typing import Any

Work = Callable[..., str | None]
"""Called with a piece of work and `progress=`; returns None, or why it failed."""
_DIED = "its process died; out of memory?"


def run_at_once(
    work: Work, pieces: Mapping[str, Any], jobs: int, logs: Path, progress: Callable[..., object]
) -> dict[str, str]:
    """Do pieces of work, `jobs` at a time; returns why pieces failed, by name.

    If a process dies, only its own piece fails. Workers end with this process, however it ends. On a CPU they share its
    cores.
    """
    waiting = list(pieces.items())
    workers: dict[Connection, Any] = {}
    names: dict[Connection, str] = {}
    failures: dict[str, str] = {}

    def give_work(pipe: Connection) -> None:
        names[pipe], piece = waiting.pop(0)
        pipe.send((names[pipe], piece))

    try:
        while waiting or workers:
            while waiting and len(workers) < jobs:
                pipe, process = _start(work, logs, max(1, (os.cpu_count() or 1) // jobs))
                workers[pipe] = process
                give_work(pipe)
            for pipe in [each for each in wait(list(workers)) if isinstance(each, Connection)]:
                try:
                    kind, sent = pipe.recv()
                except EOFError:
                    kind, sent = "done", _DIED
                if kind == "progress":
                    progress(*sent)
                    continue
                if sent is not None:
                    failures[names[pipe]] = sent
                if sent == _DIED or not waiting:
                    pipe.close()
                    del workers[pipe]
                else:
                    give_work(pipe)
    finally:
        for process in workers.values():
            process.terminate()
    return failures


def _start(work: Work, logs: Path, threads: int) -> tuple[Connection, Any]:
    context = multiprocessing.get_context("spawn")
    ours, theirs = context.Pipe()
    process = context.Process(target=_serve, args=(theirs, work, logs, threads), daemon=True)
    process.start()
    theirs.close()
    return ours, process


def _serve(pipe: Connection, work: Work, logs: Path, threads: int) -> None:
    """Do one piece of work after the other, until the pipe is closed."""
    threading.Thread(target=_end_with_parent, daemon=True).start()
    if "OMP_NUM_THREADS" not in os.environ:
        import torch

        torch.set_num_threads(threads)
    while True:
        try:
            name, piece = pipe.recv()
        except EOFError:
            return
        with _printed_to(logs / f"{name}.log"):
            why = work(piece, progress=lambda *event: pipe.send(("progress", event)))
        pipe.send(("done", why))


def _end_with_parent() -> None:
    parent = multiprocessing.parent_process()
    assert parent is not None
    parent.join()
    os._exit(1)


@contextmanager
def _printed_to(path: Path) -> Iterator[None]:
    """Append the output of this process to a file, output from C libraries included."""
    path.parent.mkdir(parents=True, exist_ok=True)
    kept = [os.dup(number) for number in (1, 2)]
    with path.open("a") as file:
        for number in (1, 2):
            os.dup2(file.fileno(), number)
    try:
        yield
    finally:
        for stream, number, old in zip((sys.stdout, sys.stderr), (1, 2), kept, strict=True):
            stream.flush()
            os.dup2(old, number)
            os.close(old)
