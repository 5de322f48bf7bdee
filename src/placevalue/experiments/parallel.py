"""Several pieces of work at once, each in a process of its own, on one device; what they print goes to logs."""

import multiprocessing
import os
import sys
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from multiprocessing.connection import Connection, wait
from pathlib import Path
from typing import Any

Work = Callable[..., str | None]
"""Does one piece of work, given as its argument and `progress=`; returns why it failed, where it did."""
_DIED = "its process died; out of memory?"


@dataclass
class _Worker:
    """A process, the pipe to it, and the name of what it is doing."""

    process: Any
    pipe: Connection
    name: str


def run_at_once(
    work: Work, pieces: Mapping[str, Any], jobs: int, logs: Path, progress: Callable[..., object]
) -> dict[str, str]:
    """Do pieces of work, `jobs` at a time; why those failed that did, by name.

    A process that dies takes its own piece with it and no other. Workers end when this process does, however it ends.
    On a CPU they share its cores.
    """
    waiting = list(pieces.items())
    workers: list[_Worker] = []
    failures: dict[str, str] = {}
    threads = max(1, (os.cpu_count() or 1) // jobs)
    try:
        while waiting or workers:
            while waiting and len(workers) < jobs:
                workers.append(_start(work, *waiting.pop(0), logs, threads))
            ready = wait([worker.pipe for worker in workers])
            for worker in [each for each in workers if each.pipe in ready]:
                try:
                    kind, told = worker.pipe.recv()
                except EOFError:
                    kind, told = "done", _DIED
                if kind == "told":
                    progress(*told)
                    continue
                if told is not None:
                    failures[worker.name] = told
                if told == _DIED or not waiting:
                    worker.pipe.close()
                    workers.remove(worker)
                else:
                    worker.name, piece = waiting.pop(0)
                    worker.pipe.send((worker.name, piece))
    finally:
        for worker in workers:
            worker.process.terminate()
    return failures


def _start(work: Work, name: str, piece: Any, logs: Path, threads: int) -> _Worker:
    context = multiprocessing.get_context("spawn")
    ours, theirs = context.Pipe()
    process = context.Process(target=_serve, args=(theirs, work, logs, threads), daemon=True)
    process.start()
    theirs.close()
    ours.send((name, piece))
    return _Worker(process, ours, name)


def _serve(pipe: Connection, work: Work, logs: Path, threads: int) -> None:
    """Do one piece after the other, until the pipe is closed."""
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
            why = work(piece, progress=lambda *event: pipe.send(("told", event)))
        pipe.send(("done", why))


def _end_with_parent() -> None:
    parent = multiprocessing.parent_process()
    assert parent is not None
    parent.join()
    os._exit(1)


@contextmanager
def _printed_to(path: Path) -> Iterator[None]:
    """Send what this process prints to the end of a file, whatever below Python prints included."""
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
