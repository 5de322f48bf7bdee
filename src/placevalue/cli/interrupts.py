"""Ctrl-C ends a verb in the same way, whatever it interrupts."""

import os
import signal
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any


class Interrupted(KeyboardInterrupt):
    """Ctrl-C. Not KeyboardInterrupt itself: once that has passed through `exec`, CPython ends with another status."""


@contextmanager
def watch_interrupts() -> Iterator[Callable[[], bool]]:
    """Raise `Interrupted` after Ctrl-C, and tell whether it was pressed, even if the code turned it into another error.

    Only the process that watches is interrupted: the processes that it forks, such as those that load data, are its to
    end. Nothing is watched if another handler is set, if Ctrl-C is ignored as in `nohup`, and in other threads.
    """
    watch = _Watch()
    alone = signal.getsignal(signal.SIGINT) is signal.default_int_handler
    if not alone or threading.current_thread() is not threading.main_thread():
        yield lambda: False
        return
    sys.unraisablehook = watch.raise_later
    signal.signal(signal.SIGINT, watch.interrupt)
    try:
        yield lambda: watch.pressed
    finally:
        signal.signal(signal.SIGINT, signal.default_int_handler)
        sys.unraisablehook = watch.report
        if watch.timer is not None:
            watch.timer.cancel()


class _Watch:
    def __init__(self) -> None:
        self.pressed = False
        self.owner, self.report = os.getpid(), sys.unraisablehook
        self.coming = False
        """Whether the timer is about to press Ctrl-C again."""
        self.timer: threading.Timer | None = None

    def interrupt(self, *_: object) -> None:
        """The handler of the signal."""
        if os.getpid() == self.owner:
            self.pressed = True
            if not self.coming:
                raise Interrupted

    def raise_later(self, unraisable: Any) -> None:
        """Python drops what a finalizer raises, so press Ctrl-C once more when it has ended."""
        if isinstance(unraisable.exc_value, Interrupted):
            self.coming = True
            self.timer = threading.Timer(0.01, self._press)
            self.timer.start()
        else:
            self.report(unraisable)

    def _press(self) -> None:
        self.coming = False
        signal.pthread_kill(threading.main_thread().ident or 0, signal.SIGINT)
