"""Files written whole or not at all, and read with errors that name the file and the line."""

import contextlib
import hashlib
import json
import os
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from placevalue.common.errors import DataError

LOCK = ".lock"


def write_whole(path: str | os.PathLike[str], content: str | bytes) -> Path:
    """Write beside, then rename: whoever is stopped in between leaves the old file or none.

    Example:
        >>> write_whole("results/README.md", "# Results")  # doctest: +SKIP
    """
    path = Path(path)
    path.parent.mkdir(parents=True, exist_ok=True)
    handle, beside = tempfile.mkstemp(prefix=f".{path.name}-", dir=path.parent)
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(content.encode() if isinstance(content, str) else content)
            file.flush()
            os.fsync(file.fileno())
        Path(beside).chmod(0o666 & ~_umask())
        Path(beside).replace(path)
    except BaseException:
        with contextlib.suppress(OSError):
            Path(beside).unlink()
        raise
    return path


def write_json(path: str | os.PathLike[str], value: Any) -> Path:
    """One JSON value, indented, written whole or not at all."""
    return write_whole(path, json.dumps(value, indent=1, ensure_ascii=False) + "\n")


def read_json(path: str | os.PathLike[str]) -> Any:
    """The value in a JSON file; a damaged one is named with the line where it breaks."""
    try:
        return json.loads(Path(path).read_text(encoding="utf-8"))
    except json.JSONDecodeError as error:
        raise DataError(
            f"{path}, line {error.lineno}: not JSON ({error.msg}): restore the file or make it again"
        ) from None
    except UnicodeDecodeError as error:
        raise DataError(f"{path}: not text in UTF-8 ({error.reason} at byte {error.start})") from None


def read_json_lines(path: str | os.PathLike[str]) -> Iterator[tuple[int, dict[str, Any]]]:
    """Line numbers and objects of a JSONL file, blank lines left out; a damaged line is named."""
    with Path(path).open("rb") as file:
        for number, line in enumerate(file, 1):
            if not line.strip():
                continue
            try:
                value = json.loads(line.decode())
            except ValueError as error:
                raise DataError(f"{path}, line {number}: not a JSON object ({error})") from None
            if not isinstance(value, dict):
                raise DataError(f"{path}, line {number}: expected a JSON object, found {line[:40]!r}")
            yield number, value


def file_hash(path: str | os.PathLike[str]) -> str:
    """The sha256 of a file's bytes, in hexadecimal."""
    with Path(path).open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


@contextlib.contextmanager
def locked(folder: str | os.PathLike[str], wait: bool = False) -> Iterator[None]:
    """Keep a folder to one process at a time; where that one is killed, the folder is free again.

    A second process is refused, or with `wait` waits until the folder is free.

    Windows has no such locks: there it is the user who must not start two.
    """
    path = Path(folder) / LOCK
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("a") as file:
        try:
            import fcntl

            fcntl.flock(file, fcntl.LOCK_EX if wait else fcntl.LOCK_EX | fcntl.LOCK_NB)
        except ImportError:
            pass
        except OSError:
            raise DataError(f"{folder} is in use by another process: wait for it, or choose another folder") from None
        yield


def _umask() -> int:
    mask = os.umask(0)
    os.umask(mask)
    return mask
