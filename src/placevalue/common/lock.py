"""One writer a folder, on all the machines that share it."""

import logging
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from placevalue.common.errors import DataError
from placevalue.common.room import room_for

if TYPE_CHECKING:
    from filelock import SoftFileLease

logger = logging.getLogger(__name__)
LOCK = ".in-use"
HEARTBEAT, LEASE = 2.0, 120.0
"""In seconds: how often an owner shows that it lives, and after what silence its lock may be taken over.

Network file systems may show changes a minute late. All processes that share a folder must agree on the second.
"""
POLL = 0.2
ROOM = 1_000  # bytes that a lock may have


@contextmanager
def locked(folder: Path, wait: bool = False, name: str = LOCK) -> Iterator[Callable[[], None]]:
    """Keep a folder for this process; yields a function that raises an error if another process took it over.

    The lock is a file that names its owner, so it works where the file system has no locks. If the owner was killed,
    the lock is taken over: at once on the same machine, elsewhere after `LEASE` seconds of silence. A process that was
    suspended for so long may find that it is not the owner any more.

    Args:
        folder: The folder; it is created if it does not exist.
        wait: Wait until the folder is free, rather than raise an error.
        name: The name of the lock's file.
    """
    from filelock import SoftFileLease

    lease = SoftFileLease(folder / name, lease_duration=LEASE, heartbeat_interval=HEARTBEAT)
    with room_for(folder / name, ROOM):
        folder.mkdir(parents=True, exist_ok=True)
        _acquire(lease, folder, wait)
    token = lease.token

    def check() -> None:
        owner = lease.owner
        if owner is None or owner.token != token:
            raise DataError(
                f"{folder} was taken over by {_name(lease)} while this process was suspended, so this one stops: what "
                "it wrote until then is kept"
            )

    try:
        yield check
    finally:
        lease.release()


def _acquire(lease: "SoftFileLease", folder: Path, wait: bool) -> None:
    from filelock import LeaseSettingsMismatch, Timeout

    first, began, told = _last_sign(lease), time.monotonic(), False

    def refuse() -> bool:
        """Whether the owner showed that it lives."""
        nonlocal told
        if lease.is_lock_held_by_us or _last_sign(lease) not in (first, None):
            return True
        if not told and time.monotonic() - began > 3 * HEARTBEAT:
            told = True
            logger.warning("%s is locked by %s: waiting up to %.0f s for a sign of life", folder, _name(lease), LEASE)
        return False

    try:
        if wait:
            lease.acquire(poll_interval=POLL)
        else:
            lease.acquire(timeout=2 * LEASE, poll_interval=POLL, cancel_check=refuse)
    except (Timeout, LeaseSettingsMismatch):  # the latter if another version of placevalue has the lock
        raise DataError(f"{folder} is in use by {_name(lease)}: wait for it, or choose another folder") from None


def _last_sign(lease: "SoftFileLease") -> int | None:
    """When the lock's owner last touched its file; None if there is none."""
    try:
        return Path(lease.lock_file).stat().st_mtime_ns
    except FileNotFoundError:
        return None


def _name(lease: "SoftFileLease") -> str:
    owner = lease.owner
    return "another process" if owner is None else f"process {owner.pid} on {owner.hostname.partition('?')[0]}"
