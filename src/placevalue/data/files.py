"""Read bundled files and your own: JSONL, CSV, Parquet, folders of `datasets`; write generated ones."""

import csv
import gzip
import hashlib
import math
import os
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from importlib.resources import files
from pathlib import Path
from typing import Any

from placevalue.common.errors import DataError
from placevalue.common.files import file_hash, read_json, read_json_lines, write_json, write_whole
from placevalue.common.ownership import check_folder, read_mark
from placevalue.data.arithmetic import OPERATIONS
from placevalue.data.columns import SUFFIXES, FileName, parse_name
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
    """Read problems from a `.jsonl`, `.csv` or `.parquet` file or a folder that `datasets` saved; see `parse_name`.

    Every error is reported with its line. `question` and `answer` are required, `id`, `equation` and `operation`
    optional; other fields are ignored. An answer that is a JSON number is written in its shortest form.

    Example:
        >>> read_problems("mine.csv?question=Problem&answer=Result")  # doctest: +SKIP
    """
    made_from(path)  # refuses a generated file that was changed
    name, problems, faults, lines = parse_name(path), [], [], dict[str, int]()
    unit = "line" if name.path.suffix in (".jsonl", ".csv") else "row"
    for line, row in _reader(name)(name):
        values, wrong = _values({each: row.get(name.column(each)) for each in FIELDS}, name)
        values["id"] = identity = values.get("id") or f"{name.path.name}:{line}"
        if identity in lines:
            wrong.append(f"id {identity!r} is also in {unit} {lines[identity]}")
        lines.setdefault(identity, line)
        faults += [f"{name.path}, {unit} {line}: {fault}" for fault in wrong]
        if not wrong:
            problems.append(Problem(**values))
    if faults:
        more = [f"and {len(faults) - SHOWN_FAULTS} more"] if len(faults) > SHOWN_FAULTS else []
        raise DataError("\n".join(faults[:SHOWN_FAULTS] + more))
    if not problems:
        raise DataError(
            f"{name.path}: the file is empty: expected rows with {' and '.join(map(name.column, REQUIRED))}"
        )
    return problems


def content_hash(path: str | os.PathLike[str]) -> str:
    """The sha256 of a file of your own, or of all files of a folder."""
    found = parse_name(path).path
    if found.is_file():
        return file_hash(found)
    listed = (f"{file_hash(each)}  {each.relative_to(found)}\n" for each in sorted(found.rglob("*")) if each.is_file())
    return hashlib.sha256("".join(listed).encode()).hexdigest()


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
    name = parse_name(path)
    path = name.path
    if name.is_folder:
        return ()
    if path.suffix not in SUFFIXES:
        raise DataError(
            f"{path}: expected a file that ends in {' or '.join(SUFFIXES)}, or a folder that datasets saved"
        )
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


def _values(row: dict[str, Any], file: FileName) -> tuple[dict[str, Any], list[str]]:
    """The fields of a row as text, and their errors."""
    values: dict[str, Any] = {}
    faults = [f"{file.column(name)} is missing" for name in REQUIRED if row.get(name) is None]
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


def _reader(name: FileName) -> Callable[[FileName], Iterator[tuple[int, dict[str, Any]]]]:
    return _read_folder if name.is_folder else READERS[name.path.suffix]


def _read_jsonl(name: FileName) -> Iterator[tuple[int, dict[str, Any]]]:
    return read_json_lines(name.path)


def _read_csv(name: FileName) -> Iterator[tuple[int, dict[str, Any]]]:
    path, wanted = name.path, [name.column(each) for each in FIELDS]
    with path.open(encoding="utf-8-sig", newline="") as file:
        reader = csv.reader(file, strict=True)
        try:
            header = next(reader, [])
            if twice := [each for each in wanted if header.count(each) > 1]:
                raise DataError(f"{path}, line 1: {len(twice)} column name(s) twice, {' and '.join(twice)}: rename one")
            if header:
                _check_header(header, name, f"{path}, line 1")
            for row in reader:
                if len(row) not in (0, len(header)):
                    raise DataError(f"{path}, line {reader.line_num}: {len(row)} columns, expected {len(header)}")
                if row:
                    yield reader.line_num, {each: value for each, value in zip(header, row, strict=True) if value}
        except csv.Error as error:
            raise DataError(f"{path}, line {reader.line_num}: not CSV ({error})") from None
        except UnicodeDecodeError as error:
            raise DataError(f"{path}: not text in UTF-8 ({error.reason} at byte {error.start})") from None


def _read_parquet(name: FileName) -> Iterator[tuple[int, dict[str, Any]]]:
    try:
        from pyarrow import ArrowException
        from pyarrow.parquet import ParquetFile
    except ImportError:
        raise DataError(f"{name.path} needs pyarrow: pip install 'placevalue[all]'") from None
    try:
        with ParquetFile(name.path) as file:
            header = _check_header(file.schema_arrow.names, name, str(name.path))
            batches = file.iter_batches(columns=header)
            yield from enumerate((row for batch in batches for row in batch.to_pylist()), 1)
    except (ArrowException, OSError) as error:
        raise DataError(f"{name.path}: not a Parquet file ({str(error).splitlines()[0]})") from None


def _read_folder(name: FileName) -> Iterator[tuple[int, dict[str, Any]]]:
    """The rows of a folder that `save_to_disk` wrote."""
    try:
        from datasets import DatasetDict, load_from_disk
    except ImportError:
        raise DataError(f"{name.path} needs datasets: pip install 'placevalue[all]'") from None
    found = load_from_disk(str(name.path))
    if isinstance(found, DatasetDict):
        if name.split not in found:
            raise DataError(
                f"{name.path} has the splits {', '.join(found)}: choose one, {name.path}?split={next(iter(found))}"
            )
        found = found[name.split]
    elif name.split is not None:
        raise DataError(f"{name.path} has no splits: leave out split={name.split}")
    header = _check_header(found.column_names, name, str(name.path))
    yield from enumerate((dict(row) for row in found.select_columns(header)), 1)


def _check_header(header: list[str], name: FileName, where: str) -> list[str]:
    """The columns to read; refused if one is missing that is needed or named."""
    needed = [name.column(each) for each in FIELDS if each in REQUIRED or each in name.columns]
    if missing := [each for each in needed if each not in header]:
        raise DataError(
            f"{where}: no column {' and no column '.join(missing)}, found {header}: add it, or say which column it is "
            f"(data.columns in a recipe, or {name.path}?question=COLUMN&answer=COLUMN)"
        )
    return [each for each in map(name.column, FIELDS) if each in header]


READERS = {".jsonl": _read_jsonl, ".csv": _read_csv, ".parquet": _read_parquet}
