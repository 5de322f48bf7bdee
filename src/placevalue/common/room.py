"""Say which path found no room on its disk, and how much it needs."""

import errno
import os
import re
import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from placevalue.common.errors import RoomError

FULL = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)
"""What the system says of a full disk, a full share of it, and a file longer than it takes."""
# Libraries in Rust and C++ raise errors of their own: with the system's words or, as torch, without.
_TOLD = re.compile(
    "|".join([*map(os.strerror, FULL), "PytorchStreamWriter failed writing", "unexpected pos", "iostream error"])
)


@contextmanager
def room_for(
    path: str | os.PathLike[str], needed: int | Callable[[], int] | None = None, whole: bool = False
) -> Iterator[None]:
    """Turn the error of a full disk into one that names the path and how many bytes it needs, if that is known.

    An error that names a path already is left as it is, unless `path` is the `whole` that it is a part of.
    """
    try:
        yield
    except Exception as error:
        reason = _reason(error)
        if reason is None or (isinstance(error, RoomError) and not whole):
            raise
        size = needed() if callable(needed) else needed
        needs = "" if size is None else f"it needs {_size(size)}, and "
        raise RoomError(
            f"{path} could not be written: {needs}{_size(_free(Path(path)))} are free on its disk ({reason}). Make "
            "room, or choose a folder on another disk"
        ) from error


def _reason(error: BaseException | None) -> str | None:
    """What says that an error, or one that led to it, is that of a full disk; None if nothing does."""
    if error is None:
        return None
    if isinstance(error, OSError) and error.errno in FULL:
        return error.strerror
    found = None if isinstance(error, OSError | RoomError) else _TOLD.search(str(error))
    return found[0] if found else _reason(error.__cause__ or error.__context__)


def _free(path: Path) -> int:
    """The free bytes of the disk that a path is or would be on."""
    return shutil.disk_usage(next(each for each in (path, *path.absolute().parents) if each.exists())).free


def _size(count: int) -> str:
    return f"{count:,} bytes" if count < 1_000_000 else f"{count / 1_000_000:,.0f} MB"
