"""Write files atomically; read them with errors that name the file and the line."""

import glob
import hashlib
import json
import os
import re
import secrets
import shutil
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from typing import Any

from placevalue.common.errors import DataError
from placevalue.common.room import room_for

DEEPEST = 50
"""How deeply JSON and YAML may be nested; records need five levels."""
_HALF = re.compile(r"\\u[dD][89a-fA-F]")


def write_whole(path: str | os.PathLike[str], content: str | bytes | Iterable[str]) -> Path:
    """Write to a temporary file, then rename it, so that an interrupted write leaves the old file intact.

    Texts that are made one by one are written as they come.
    """
    path, size = Path(path), 0

    def encoded() -> Iterator[bytes]:
        nonlocal size
        for text in [content] if isinstance(content, str | bytes) else content:
            part = text.encode() if isinstance(text, str) else text
            size += len(part)
            yield part

    def whole_size() -> int:
        for _ in parts:  # what is left
            pass
        return size

    parts = encoded()
    with room_for(path, whole_size):
        path.parent.mkdir(parents=True, exist_ok=True)
        with _temporary(path) as temporary, temporary.open("xb") as file:
            file.writelines(parts)
            file.flush()
            os.fsync(file.fileno())
    return path


@contextmanager
def _temporary(path: Path) -> Iterator[Path]:
    """A file beside `path` that takes its place if all goes well."""
    temporary = path.with_name(f".{path.name}-{secrets.token_hex(4)}")
    try:
        yield temporary
        temporary.replace(path)
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise


def write_json(path: str | os.PathLike[str], value: Any) -> Path:
    """Write one JSON value, indented, atomically."""
    return write_whole(path, json.dumps(value, indent=1, ensure_ascii=False) + "\n")


def read_json(path: str | os.PathLike[str]) -> Any:
    """Read a JSON file; an error names the damaged line."""
    try:
        return _parse(Path(path).read_text(encoding="utf-8"))
    except json.JSONDecodeError as error:
        raise DataError(f"{path}, line {error.lineno}: not JSON ({error.msg}): restore the file") from None
    except UnicodeDecodeError as error:
        raise DataError(f"{path}: not text in UTF-8 ({error.reason} at byte {error.start})") from None
    except ValueError as error:
        raise DataError(f"{path}: {error}: restore the file") from None


def read_object(path: str | os.PathLike[str]) -> dict[str, Any]:
    """Read a JSON file that holds one object."""
    value = read_json(path)
    if not isinstance(value, dict):
        raise DataError(f"{path}: expected a JSON object, found {str(value)[:40]!r}: restore the file")
    return value


def read_json_lines(path: str | os.PathLike[str]) -> Iterator[tuple[int, dict[str, Any]]]:
    """Line numbers and objects of a JSONL file, without blank lines; an error names the damaged line."""
    with Path(path).open("rb") as file:
        for number, line in enumerate(file, 1):
            if not line.strip():
                continue
            try:
                value = _parse(line.decode())
            except ValueError as error:
                raise DataError(f"{path}, line {number}: not a JSON object ({error})") from None
            if not isinstance(value, dict):
                raise DataError(f"{path}, line {number}: expected a JSON object, found {line[:40]!r}")
            yield number, value


def _parse(text: str) -> Any:
    """The value of a JSON text; a ValueError if it could not be used or written again."""
    try:
        value = json.loads(text)
    except RecursionError:
        raise ValueError("nested too deeply") from None
    if _HALF.search(text):
        try:
            json.dumps(value, ensure_ascii=False).encode()
        except UnicodeEncodeError as error:
            raise ValueError(f"{error.object[error.start]!r}, half of a surrogate pair, is not text") from None
    if text.count("[") + text.count("{") > DEEPEST and is_deep(value):
        raise ValueError("nested too deeply")
    return value


def is_deep(value: Any) -> bool:
    """Whether lists and objects are nested deeper than `DEEPEST`, so that code that follows them could fail."""
    level = [value]
    for _ in range(DEEPEST):
        inner = [each.values() if isinstance(each, dict) else each for each in level if isinstance(each, dict | list)]
        level = [child for each in inner for child in each]
    return bool(level)


def file_hash(path: str | os.PathLike[str]) -> str:
    """The sha256 of a file's bytes, in hexadecimal."""
    with Path(path).open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def known_hash(path: Path) -> str:
    """A file's sha256, computed once until the file changes: weights are large, and one command asks for it often."""
    return _known_hash(path, path.stat().st_mtime_ns, path.stat().st_size)


@cache
def _known_hash(path: Path, _changed: int, _size: int) -> str:
    return file_hash(path)


def copy_whole(source: Path, target: Path) -> Path:
    """Copy a file, whole or not at all; one process at a time may copy to a target."""
    for left in target.parent.glob(f".{glob.escape(target.name)}-{'[0-9a-f]' * 8}"):  # by a process that was killed
        left.unlink()
    size = source.stat().st_size
    with room_for(target, size), _temporary(target) as temporary, source.open("rb") as old, temporary.open("xb") as new:
        shutil.copyfileobj(old, new, 1 << 20)
        new.flush()
        os.fsync(new.fileno())
    return target
