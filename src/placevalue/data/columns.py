"""Names of your own files, with the columns that hold question and answer: `mine.csv?question=Problem&answer=Result`.

A name says everything, so records, predictions and the command line need nothing else to find the same problems.
"""

import os
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from urllib.parse import unquote

from placevalue.common.errors import ConfigError
from placevalue.common.validation import one_of
from placevalue.data.problem import FIELDS

SUFFIXES = (".jsonl", ".csv", ".parquet")
_FOLDERS = ("dataset_dict.json", "state.json")  # what `save_to_disk` of datasets writes


@dataclass(frozen=True)
class FileName:
    """A file or folder of your own, and how to read it."""

    path: Path
    columns: Mapping[str, str] = field(default_factory=dict)
    """The column of a field of `Problem`, where it has another name."""
    split: str | None = None
    """A split of a folder that `datasets` saved."""

    def column(self, name: str) -> str:
        """The column of a field."""
        return self.columns.get(name, name)

    @property
    def is_folder(self) -> bool:
        """Whether `datasets` saved it."""
        return any((self.path / name).is_file() for name in _FOLDERS)

    def __str__(self) -> str:
        parts = dict(self.columns) | ({} if self.split is None else {"split": self.split})
        return f"{self.path}?{'&'.join(f'{name}={_quoted(value)}' for name, value in parts.items())}".rstrip("?")


def parse_name(name: str | os.PathLike[str]) -> FileName:
    """The file, its columns and its split."""
    text = os.fspath(name)
    path, _, query = (text, "", "") if Path(text).exists() else text.partition("?")
    parts = dict(part.partition("=")[::2] for part in query.split("&")) if query else {}
    check_columns(parts, f"{text!r}: ")
    if empty := [key for key, value in parts.items() if not value]:
        raise ConfigError(f"{text!r}: {empty[0]} has no value, expected a name, such as {empty[0]}=Name")
    values = {key: unquote(value) for key, value in parts.items()}
    return FileName(Path(path), values, values.pop("split", None))


def check_columns(columns: Mapping[str, str], where: str) -> None:
    """Refuse columns of fields that problems do not have."""
    if unknown := [name for name in columns if name not in (*FIELDS, "split")]:
        raise ConfigError(f"{where}{unknown[0]!r} is unknown, expected {one_of((*FIELDS, 'split'), unknown[0])}")


def with_columns(name: str, columns: Mapping[str, str]) -> str:
    """The name of a file with these columns, where it does not give them itself; other names as they are."""
    if not columns or not names_file(name):
        return name
    found = parse_name(name)
    split = found.split or columns.get("split")
    named = {key: value for key, value in columns.items() if key != "split"}
    return str(FileName(found.path, named | dict(found.columns), split))


def names_file(name: str | os.PathLike[str]) -> bool:
    """Whether a name is that of a file or folder to read, not of a corpus."""
    found = parse_name(name) if "?" in os.fspath(name) else FileName(Path(name))
    return found.path.suffix in SUFFIXES or found.is_folder


def _quoted(value: str) -> str:
    return re.sub("[%&=?]", lambda each: f"%{ord(each[0]):02X}", value)
