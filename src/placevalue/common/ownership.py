"""What placevalue may write to: folders and files that bear a mark of its own, or nothing yet."""

import hashlib
import logging
import os
import re
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from placevalue.common.errors import DataError
from placevalue.common.files import read_json, write_whole

logger = logging.getLogger(__name__)
ASIDE = "set-aside"
_SHOWN = 3
_SIGNED = re.compile(r"(.*)<!-- placevalue rewrites this file unless it is edited: (\w+) -->\n", re.DOTALL)


def check_folder(folder: str | os.PathLike[str], ours: bool, but: Iterable[str] = ()) -> None:
    """Refuse to write to a folder with files, unless it is ours.

    Args:
        folder: The folder; it may not exist yet.
        ours: Whether the folder bears a mark of ours.
        but: Names of files that are no reason to refuse it. Hidden files are none either.
    """
    folder = Path(folder)
    if folder.exists() and not folder.is_dir():
        raise DataError(f"{folder} is a file, expected a folder: choose another name")
    if ours or not folder.exists():
        return
    found = sorted(each.name for each in folder.iterdir() if not each.name.startswith(".") and each.name not in but)
    if found:
        more = f" and {len(found) - _SHOWN} more" if len(found) > _SHOWN else ""
        raise DataError(
            f"{folder} holds {', '.join(found[:_SHOWN])}{more}, and nothing in it says that placevalue wrote it for "
            "this: choose a new or an empty folder"
        )


def read_mark(path: Path) -> dict[str, Any]:
    """The JSON object of a file that may mark a folder as ours; empty if there is none, or another kind of file."""
    try:
        found = read_json(path) if path.is_file() else None
    except DataError:
        return {}
    return found if isinstance(found, dict) else {}


def replace_own(path: str | os.PathLike[str], content: str, mark: str) -> Path:
    """Write a text file whole; a file that is already there is only replaced if it contains `mark` too."""
    path = Path(path)
    assert mark in content
    if path.exists() and mark.encode() not in path.read_bytes():
        raise DataError(f"{path} exists and is not a file that placevalue wrote for this: choose another name")
    return write_whole(path, content)


def signed(text: str) -> str:
    """A Markdown text with a line that tells whether anybody edited it since."""
    return f"{text}<!-- placevalue rewrites this file unless it is edited: {_hash(text)} -->\n"


def may_rewrite(path: Path) -> bool:
    """Whether there is no such file, or it is `signed` and nobody edited it."""
    if not path.exists():
        return True
    found = _SIGNED.fullmatch(path.read_text(encoding="utf-8", errors="replace"))
    return found is not None and _hash(found[1]) == found[2]


def _hash(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()[:16]


def set_aside(path: Path, why: str) -> Path:
    """Rename a file or folder so that nothing takes it for a good one, and say why; nothing is deleted."""
    number = 1
    while os.path.lexists(target := path.with_name(f"{ASIDE}-{path.name}-{number}")):
        number += 1
    path.rename(target)
    logger.warning("%s %s: it is now %s", path, why, target)
    return target
