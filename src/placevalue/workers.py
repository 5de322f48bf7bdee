"""Several pieces of work at once, each in a process of its own, on one device; what they print goes to logs."""

import multiprocessing
import os
import sys
import threading
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ProcessPoolExecutor, as_completed
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager
from pathlib import Path
from typing import Any

Work = Callable[..., str | None]
"""Does one piece of work, given as its argument and `tell=`; returns why it failed, where it did."""
_inherited: dict[str, Any] = {}  # what a worker got when it began


def run_at_once(
    work: Work, pieces: Mapping[str, Any], jobs: int, logs: Path, tell: Callable[..., object]
) -> dict[str, str]:
    """Do pieces of work, `jobs` at a time; why those failed that did, by name.

    Workers end when this process does, however it ends. On a CPU they share its cores.
    """
    context = multiprocessing.get_context("spawn")
    events = context.Queue()
    listener = threading.Thread(target=_listen, args=(events, tell), daemon=True)
    listener.start()
    given = {"events": events, "logs": logs, "threads": max(1, (os.cpu_count() or 1) // jobs)}
    failures: dict[str, str] = {}
    with ProcessPoolExecutor(jobs, context, _begin, (given,)) as pool:
        futures = {pool.submit(_do, work, name, piece): name for name, piece in pieces.items()}
        try:
            for future in as_completed(futures):
                try:
                    why = future.result()
                except BrokenProcessPool:
                    why = "its process died, or another one did: out of memory?"
                if why is not None:
                    failures[futures[future]] = why
        except BaseException:
            pool.shutdown(wait=False, cancel_futures=True)
            for process in multiprocessing.active_children():
                process.terminate()
            raise
    events.put(None)
    listener.join()
    return failures


def _listen(events: Any, tell: Callable[..., object]) -> None:
    while (event := events.get()) is not None:
        tell(*event)


def _begin(given: dict[str, Any]) -> None:
    """Make a new process ready for work."""
    _inherited.update(given)
    threading.Thread(target=_end_with_parent, daemon=True).start()
    if "OMP_NUM_THREADS" not in os.environ:
        import torch

        torch.set_num_threads(given["threads"])


def _end_with_parent() -> None:
    parent = multiprocessing.parent_process()
    assert parent is not None
    parent.join()
    os._exit(1)


def _do(work: Work, name: str, piece: Any) -> str | None:
    with _printed_to(_inherited["logs"] / f"{name}.log"):
        return work(piece, tell=lambda *event: _inherited["events"].put(event))


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
