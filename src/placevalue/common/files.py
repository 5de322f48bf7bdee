"""Write files atomically; read them with errors that name the file and the line."""

import contextlib
import hashlib
import json
import os
import secrets
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from placevalue.common.errors import DataError

LOCK = ".lock"


def write_whole(path: str | os.PathLike[str], content: str | bytes) -> Path:
    """Write to a temporary file, then rename it, so that an interrupted write leaves the old file intact."""
    path = Path(path)
    path.parent.mkdir(parents=True, exist_ok=True)
    temporary = path.with_name(f".{path.name}-{secrets.token_hex(4)}")
    try:
        with temporary.open("xb") as file:
            file.write(content.encode() if isinstance(content, str) else content)
            file.flush()
            os.fsync(file.fileno())
        temporary.replace(path)
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise
    return path


def write_json(path: str | os.PathLike[str], value: Any) -> Path:
    """Write one JSON value, indented, atomically."""
    return write_whole(path, json.dumps(value, indent=1, ensure_ascii=False) + "\n")


def read_json(path: str | os.PathLike[str]) -> Any:
    """Read a JSON file; an error names the damaged line."""
    try:
        return json.loads(Path(path).read_text(encoding="utf-8"))
    except json.JSONDecodeError as error:
        raise DataError(f"{path}, line {error.lineno}: not JSON ({error.msg}): restore the file") from None
    except UnicodeDecodeError as error:
        raise DataError(f"{path}: not text in UTF-8 ({error.reason} at byte {error.start})") from None


def read_json_lines(path: str | os.PathLike[str]) -> Iterator[tuple[int, dict[str, Any]]]:
    """Line numbers and objects of a JSONL file, without blank lines; an error names the damaged line."""
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
    """Lock a folder for one process, until the process ends in any way. Windows has no such locks.

    A second process gets an error or, with `wait`, waits until the folder is free.
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
