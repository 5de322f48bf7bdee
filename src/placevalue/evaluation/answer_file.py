"""Predictions as ids and answers, compressed, for results that are kept for long.

Questions and right answers are in the data, so they are left out and put back when the file is read. The checksum in
the record is that of the whole predictions, so data that has changed since is noticed.
"""

import gzip
import hashlib
import json
from collections.abc import Iterator
from itertools import groupby
from pathlib import Path
from typing import Any

from placevalue.common.errors import DataError, PlacevalueError
from placevalue.common.files import write_whole
from placevalue.common.records import PREDICTION_RECORD, Prediction, PredictionRecord, prediction_line, read_record
from placevalue.common.records import each_prediction as each_line
from placevalue.data import load_data
from placevalue.data.problem import Problem

PACKED = "answers.jsonl.gz"
SCHEMA = "placevalue/answers/1"


def pack_answers(folder: Path) -> Path | None:
    """Replace a folder's predictions by ids and answers, if nothing is lost by it.

    Returns the file, or None if it stays as it was: the data is not available any more, or not what was asked.
    """
    record = read_record(folder / PREDICTION_RECORD, PredictionRecord)
    file, packed = folder / record.predictions_file, folder / PACKED
    if not file.exists():
        return packed
    rows = list(each_line(file, record.predictions_sha256))
    lines = [json.dumps({"schema": SCHEMA})]
    for name, chosen in groupby(rows, key=lambda row: row.set):
        own = list(chosen)
        lines.append(json.dumps({"set": name, "question": own[0].question is not None}))
        lines += [json.dumps(_short(row), ensure_ascii=False) for row in own]
    write_whole(packed, gzip.compress("".join(f"{line}\n" for line in lines).encode(), mtime=0))
    try:
        list(each_answer(packed, record.predictions_sha256))
    except (PlacevalueError, OSError):
        packed.unlink()
        return None
    file.unlink()
    return packed


def _short(row: Prediction) -> list[Any]:
    values = [row.id, row.prediction, row.reachable, row.readable]
    while values[-1] is None:
        values.pop()
    return values


def each_answer(path: Path, sha256: str) -> Iterator[Prediction]:
    """Read packed predictions as they were written; whether their checksum fits is known after the last one."""
    whole = hashlib.sha256()
    problems: dict[str, Problem] = {}
    head: dict[str, Any] = {}
    try:
        lines = gzip.decompress(path.read_bytes()).decode().split("\n")
        found = [json.loads(line) for line in lines if line]
    except (OSError, EOFError, ValueError) as error:
        raise DataError(f"{path} is damaged ({error}): restore it, or predict again") from None
    if not found or found[0] != {"schema": SCHEMA}:
        raise DataError(f"{path} does not begin with the schema {SCHEMA!r}: upgrade placevalue, or predict again")
    for values in found[1:]:
        if isinstance(values, dict):
            head, problems = values, {problem.id: problem for problem in load_data(values["set"])}
            continue
        id_, text, reachable, readable = [*values, None, None][:4]
        if id_ not in problems:
            raise DataError(f"{path}: {head['set']} has no problem {id_!r} any more: predict again")
        problem = problems[id_]
        question = problem.question if head["question"] else None
        row = Prediction(id_, problem.answer, text, head["set"], question, problem.operation, reachable, readable)
        whole.update(prediction_line(row).encode())
        yield row
    if whole.hexdigest() != sha256:
        raise DataError(
            f"{path}: with the questions and answers of today's data these are other predictions: predict again"
        )
