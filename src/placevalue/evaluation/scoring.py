"""Score predictions and write the record; never loads a model.

A folder of predictions has `predictions.jsonl` and its record `prediction.json`; `score.json` is written next to them.
Instead of the former it may have `answers.jsonl.gz`, the same without what the data has.
A JSONL file without a record can be scored too; its scores then have no link to a model.
"""

import os
from array import array
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np

from placevalue.common import records
from placevalue.common.errors import DataError
from placevalue.common.files import file_hash
from placevalue.common.records import PREDICTION_RECORD, PREDICTIONS, SCORE_RECORD, Prediction, PredictionRecord
from placevalue.data.leakage import check_leakage
from placevalue.evaluation.answer_file import PACKED, each_answer
from placevalue.evaluation.metrics import EXTRACTIONS, METRICS, Values, metric_values, read_answer
from placevalue.evaluation.packed import Packed
from placevalue.evaluation.statistics import DRAWS, PairedTest, Units, paired_test, score_groups

COMPARED = ("accuracy_paper", "accuracy_exact", "cer_written", "cer_shortest")
_BLOCK = 4096  # predictions in memory at once
UNKNOWN = "no prediction record: what the model was trained on is unknown"


@dataclass(frozen=True)
class Predicted:
    """A file of predictions, with its record if it has one."""

    file: Path
    rows: list[Prediction]
    record: PredictionRecord | None


def load_predictions(path: str | os.PathLike[str]) -> Predicted:
    """Read the predictions of a folder or a JSONL file; a record next to them is checked against their checksum."""
    file, record = find_predictions(path)
    return Predicted(file, list(_each(file, record)), record)


def _each(file: Path, record: PredictionRecord | None) -> Iterator[Prediction]:
    if record and file.name == PACKED:
        return each_answer(file, record.predictions_sha256)
    return records.each_prediction(file, record.predictions_sha256 if record else None)


def find_predictions(path: str | os.PathLike[str]) -> tuple[Path, PredictionRecord | None]:
    """The file of predictions in a folder, or the JSONL file given, and its record if it has one."""
    path = Path(path)
    folder = path if path.is_dir() else path.parent
    has_record = (folder / PREDICTION_RECORD).exists()
    if not path.exists() and not has_record:
        raise DataError(f"{path} does not exist: give the folder of a finished prediction, or a JSONL file")
    if path.is_dir() and not has_record:
        raise DataError(f"{path} has no {PREDICTION_RECORD}: give the folder of a finished prediction, or a JSONL file")
    if not path.is_dir() and not (path.name == PREDICTIONS and has_record):
        return path, None
    record = records.read_record(folder / PREDICTION_RECORD, PredictionRecord)
    if Path(record.predictions_file).name != record.predictions_file:
        raise DataError(
            f"{folder / PREDICTION_RECORD}: predictions_file is {record.predictions_file!r}, expected the name of a "
            "file in the same folder: predict again"
        )
    file = folder / record.predictions_file
    return (folder / PACKED if not file.exists() and (folder / PACKED).exists() else file), record


def evaluate(
    path: str | os.PathLike[str],
    out: str | os.PathLike[str] | None = None,
    draws: int = DRAWS,
    seed: int = 0,
    allow_leakage: bool = False,
    max_answer: int | None = None,
) -> records.ScoreRecord:
    """Score predictions by set and by operation, and write the record.

    Args:
        path: A folder that `placevalue predict` wrote, or a JSONL file with `id`, `answer` and `prediction` on each
            line, and optionally `set`, `operation`, `reachable` and `readable`.
        out: Where the record goes; by default `score.json` in the folder, and nowhere for a file without a record.
        draws: Number of bootstrap resamples.
        seed: Of the resamples.
        allow_leakage: Score a model on problems that it was trained on; the record notes it.
        max_answer: The token limit, to find answers that do not fit; used if neither the predictions nor their record
            have one.

    Example:
        >>> evaluate("runs/digits").scores["fermat:Original"]["accuracy_paper"]["value"]  # doctest: +SKIP
        0.5
    """
    if draws < 1:
        raise DataError(f"draws={draws}: expected at least 1")
    file, record = find_predictions(path)
    recorded = record.config.get("max_answer") if record else None
    limit = recorded if isinstance(recorded, int) else max_answer
    answers = read_answers(_each(file, record), limit)
    tested = answers.sources
    trained, tested = (record.trained_on, tested | record.data.keys()) if record else ((), tested)
    leakage = check_leakage(trained, tested, allow_leakage)
    links: dict[str, Any] = {name: getattr(record, name, None) for name in ("train", "model", "method", "seed")}
    config = {"draws": draws, "seed": seed, "extractions": list(EXTRACTIONS), "max_answer": limit}
    score = records.ScoreRecord(
        prediction=records.record_hash(record) if record else None,
        **links,
        config=config | {"predictions_sha256": record.predictions_sha256 if record else file_hash(file)},
        **score_answers(answers, draws, seed),
        notes=leakage.overridden + leakage.notes + (() if record else (UNKNOWN,)),
        override_leakage=bool(leakage.overridden) or (record is not None and record.override_leakage),
        provenance=records.provenance(),
    )
    out = file.parent / SCORE_RECORD if out is None and record else out
    if out is None:
        return score
    records.write_record(score, out)
    return records.read_record(out, records.ScoreRecord)


@dataclass(frozen=True)
class Answers:
    """What scores are made of, in about a tenth of the memory of the predictions themselves."""

    values: Packed
    """Every metric of every prediction."""
    units: Units
    """See `problem_units`."""
    sets: Units
    """The number of each prediction's set in `set_names`."""
    set_names: list[str]
    operations: Units
    """The same of its operation; -1 for those without."""
    operation_names: list[str]
    sources: set[str]
    """The sets, and what the ids begin with."""


def read_answers(rows: Iterable[Prediction], max_answer: int | None = None) -> Answers:
    """Read predictions block by block, so that no more than a block is ever in memory."""
    sets: dict[str, int] = {}
    operations: dict[str, int] = {}
    sources: set[str] = set()
    keys, of_set, of_operation = [], array("i"), array("i")
    rows = iter(rows)

    def blocks() -> Iterator[Values]:
        while block := list(islice(rows, _BLOCK)):
            for row in block:
                of_set.append(sets.setdefault(row.set, len(sets)))
                code = -1 if row.operation is None else operations.setdefault(row.operation, len(operations))
                of_operation.append(code)
                sources.update((row.set, row.id.partition(":")[0]))
            keys.append(np.array([_unit_key(row).encode() for row in block]))
            yield metric_values(
                read_answer(row.answer, row.prediction, row.reachable, max_answer, row.readable) for row in block
            )

    values = Packed(blocks())
    units = np.unique(np.concatenate(keys), return_inverse=True)[1].astype(np.int32)
    codes = np.array(of_set, dtype=np.int32), np.array(of_operation, dtype=np.int32)
    return Answers(values, units, codes[0], list(sets), codes[1], list(operations), sources)


def score_answers(answers: Answers, draws: int, seed: int) -> dict[str, Any]:
    """Every metric with its interval: by set, by operation, by both, and as a mean over sets."""

    def score(*groups: Units) -> dict[str, dict[str, Any]]:
        found = score_groups(answers.values, answers.units, groups, draws, seed)
        return {name: asdict(each) for name, each in zip(METRICS, found, strict=True) if each is not None}

    sets = {name: np.flatnonzero(answers.sets == code) for code, name in enumerate(answers.set_names)}
    codes = list(enumerate(answers.operation_names))
    set_operations: dict[str, dict[str, Any]] = {}
    cells = answers.sets * (len(codes) + 1) + answers.operations
    for first in np.sort(np.unique(cells, return_index=True)[1]):  # in the order of the predictions
        set_, operation = answers.sets[first], answers.operations[first]
        if operation >= 0:
            found = score(np.flatnonzero((answers.sets == set_) & (answers.operations == operation)))
            set_operations.setdefault(answers.set_names[set_], {})[answers.operation_names[operation]] = found
    return {
        "scores": {name: score(rows) for name, rows in sets.items()},
        "operations": {name: score(np.flatnonzero(answers.operations == code)) for code, name in codes},
        "set_operations": set_operations,
        "averages": score(*sets.values()) if len(sets) > 1 else {},
    }


def problem_units(rows: Sequence[Prediction]) -> Units:
    """The number of each row's problem: `fermat:Original:407` and `fermat:1000+:407` are versions of one problem."""
    numbers: Units = np.unique([_unit_key(row) for row in rows], return_inverse=True)[1]
    return numbers


def _unit_key(row: Prediction) -> str:
    corpus, _, name = row.set.partition(":")
    rest = row.id.removeprefix(f"{row.set}:")
    return f"{corpus}:{rest}" if name and rest != row.id else row.id


def group_rows(keys: Sequence[Any]) -> dict[Any, Units]:
    """The rows of each key, in order of first occurrence, without those whose key is None."""
    found: dict[Any, list[int]] = {}
    for index, key in enumerate(keys):
        if key is not None:
            found.setdefault(key, []).append(index)
    return {key: np.array(indices) for key, indices in found.items()}


def compare(first: Predicted, second: Predicted, draws: int = DRAWS, seed: int = 0) -> dict[str, dict[str, PairedTest]]:
    """Compare two runs on the same problems, matched by id: a paired test of each set, and of all sets together."""
    ours, theirs = ({row.id: row for row in predicted.rows} for predicted in (first, second))
    if odd := sorted(set(ours) ^ set(theirs)):
        raise DataError(
            f"{first.file} and {second.file} do not answer the same problems: {len(odd)} ids occur in only one, "
            f"such as {', '.join(odd[:3])}"
        )
    if odd := sorted(id_ for id_, row in ours.items() if row.answer != theirs[id_].answer):
        raise DataError(f"{len(odd)} problems have different answers in the two files, such as {', '.join(odd[:3])}")
    rows = list(ours.values())
    mine, other = (
        metric_values([read_answer(each.answer, each.prediction, readable=each.readable) for each in chosen], COMPARED)
        for chosen in (rows, [theirs[row.id] for row in rows])
    )
    units, groups = problem_units(rows), group_rows([row.set for row in rows])
    if len(groups) > 1:
        groups["all sets"] = np.arange(len(rows))
    return {
        name: {
            metric: paired_test(mine[chosen, column], other[chosen, column], units[chosen], draws, seed)
            for column, metric in enumerate(COMPARED)
        }
        for name, chosen in groups.items()
    }
