"""Read bundled files and your own JSONL and CSV files; write generated ones."""

import csv
import gzip
import hashlib
import math
import os
from collections import Counter
from collections.abc import Iterator, Mapping
from importlib.resources import files
from pathlib import Path
from typing import Any

from placevalue.common.errors import DataError
from placevalue.common.files import file_hash, read_json, read_json_lines, write_json, write_whole
from placevalue.common.ownership import check_folder, read_mark
from placevalue.data.arithmetic import OPERATIONS
from placevalue.data.problem import FIELDS, Problem, to_json_lines
from placevalue.numbers.numerals import shortest_form

RECORD = "data.json"
"""The file next to generated ones that says how they were made."""
REQUIRED = ("question", "answer")
SHOWN_FAULTS = 10


def read_bundled(name: str) -> bytes:
    """Read a file of the package, check its checksum, and decompress it if its name ends in `.gz`."""
    try:
        content = _bundled(name)
    except FileNotFoundError:
        raise DataError(f"{name} is missing from placevalue's data: install placevalue again") from None
    found, expected = hashlib.sha256(content).hexdigest(), bundled_checksum(name)
    if found != expected:
        raise DataError(f"{name} is damaged: its sha256 is {found}, expected {expected}: install placevalue again")
    return gzip.decompress(content) if name.endswith(".gz") else content


def bundled_checksum(name: str) -> str:
    """The sha256 that a file of the package must have."""
    lines = _bundled("SHA256SUMS").decode().splitlines()
    return next(line.partition("  ")[0] for line in lines if line.endswith(f"  {name}"))


def _bundled(name: str) -> bytes:
    return (files("placevalue.data") / "bundled" / name).read_bytes()


def read_problems(path: str | os.PathLike[str]) -> list[Problem]:
    """Read problems from a `.jsonl` or `.csv` file; every error is reported with its line.

    `question` and `answer` are required, `id`, `equation` and `operation` optional; other fields are ignored. An answer
    that is a JSON number is written in its shortest form.
    """
    made_from(path)  # refuses a generated file that was changed
    path, problems, faults, lines = Path(path), [], [], dict[str, int]()
    for line, row in READERS[path.suffix](path):
        values, wrong = _values(row)
        values["id"] = identity = values.get("id") or f"{path.name}:{line}"
        if identity in lines:
            wrong.append(f"id {identity!r} is also in line {lines[identity]}")
        lines.setdefault(identity, line)
        faults += [f"{path}, line {line}: {fault}" for fault in wrong]
        if not wrong:
            problems.append(Problem(**values))
    if faults:
        more = [f"and {len(faults) - SHOWN_FAULTS} more"] if len(faults) > SHOWN_FAULTS else []
        raise DataError("\n".join(faults[:SHOWN_FAULTS] + more))
    if not problems:
        raise DataError(f"{path}: the file is empty: expected rows with {' and '.join(REQUIRED)}")
    return problems


def write_generated(
    folder: str | os.PathLike[str], parts: Mapping[str, list[Problem]], record: dict[str, Any]
) -> dict[str, Any]:
    """Write each part as `PART.jsonl` and, last, `data.json`: the record, with its `sources`, and all checksums."""
    described: dict[str, Any] = {}
    check_generated(folder)
    if not (Path(folder) / RECORD).exists():  # from the beginning, something must say whose folder this is
        write_json(Path(folder) / RECORD, record | {"files": described})
    for part, problems in parts.items():
        path = write_whole(Path(folder) / f"{part}.jsonl", to_json_lines(problems))
        found = Counter(problem.operation for problem in problems if problem.operation)
        described[path.name] = {
            "rows": len(problems),
            "distinct_questions": len({problem.question for problem in problems}),
            "operations": {name: found[name] for name in OPERATIONS if found},
            "sha256": file_hash(path),
        }
    record = record | {"files": described}
    write_json(Path(folder) / RECORD, record)
    return record


def check_generated(folder: str | os.PathLike[str]) -> None:
    """Refuse a folder with files, unless data was generated into it."""
    check_folder(folder, {"sources", "files"} <= read_mark(Path(folder) / RECORD).keys())


def made_from(path: str | os.PathLike[str]) -> tuple[str, ...]:
    """Which corpora a generated file's text comes from, by the record next to it; empty for other files."""
    path = Path(path)
    if path.suffix not in READERS:
        raise DataError(f"{path}: expected a file that ends in {' or '.join(READERS)}")
    if not path.is_file():
        raise DataError(f"{path}: no such file: check the path")
    record = read_json(path.with_name(RECORD)) if path.with_name(RECORD).is_file() else None
    if not isinstance(record, dict) or "sources" not in record or path.name not in record.get("files", {}):
        return ()
    if record["files"][path.name]["sha256"] != file_hash(path):
        raise DataError(
            f"{path} differs from the file that {path.with_name(RECORD)} describes, so it was changed or is "
            "incomplete: generate it again, or rename it"
        )
    return tuple(record["sources"])


def _values(row: dict[str, Any]) -> tuple[dict[str, Any], list[str]]:
    """The fields of a row as text, and their errors."""
    values: dict[str, Any] = {}
    faults = [f"{name} is missing" for name in REQUIRED if row.get(name) is None]
    for name in (name for name in FIELDS if row.get(name) is not None):
        value = row[name]
        if isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value):
            value = shortest_form(value)
        if not isinstance(value, str):
            faults.append(f"{name} is {value!r}, expected text or a number")
        elif name in REQUIRED and not value.strip():
            faults.append(f"{name} is empty")
        elif value:
            values[name] = value
    return values, faults


def _read_csv(path: Path) -> Iterator[tuple[int, dict[str, Any]]]:
    with path.open(encoding="utf-8-sig", newline="") as file:
        reader = csv.reader(file, strict=True)
        try:
            header = next(reader, [])
            missing = [name for name in REQUIRED if name not in header]
            if twice := [name for name in FIELDS if header.count(name) > 1]:
                raise DataError(f"{path}, line 1: {len(twice)} column name(s) twice, {' and '.join(twice)}: rename one")
            if header and missing:
                raise DataError(f"{path}, line 1: no column {' and no column '.join(missing)}, found {header}: add it")
            for row in reader:
                if len(row) not in (0, len(header)):
                    raise DataError(f"{path}, line {reader.line_num}: {len(row)} columns, expected {len(header)}")
                if row:
                    yield reader.line_num, {name: value for name, value in zip(header, row, strict=True) if value}
        except csv.Error as error:
            raise DataError(f"{path}, line {reader.line_num}: not CSV ({error})") from None
        except UnicodeDecodeError as error:
            raise DataError(f"{path}: not text in UTF-8 ({error.reason} at byte {error.start})") from None


READERS = {".jsonl": read_json_lines, ".csv": _read_csv}
