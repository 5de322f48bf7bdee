"""Score predictions and write the record; never loads a model.

A folder of predictions has `predictions.jsonl` and its record `prediction.json`; `score.json` is written next to them.
A JSONL file without a record can be scored too; its scores then have no link to a model.
"""

import os
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np

from placevalue.common import records
from placevalue.common.errors import DataError
from placevalue.common.files import file_hash
from placevalue.common.records import PREDICTION_RECORD, PREDICTIONS, SCORE_RECORD, Prediction, PredictionRecord
from placevalue.data.leakage import check_leakage
from placevalue.evaluation.metrics import EXTRACTIONS, METRICS, metric_values, read_answer
from placevalue.evaluation.statistics import DRAWS, Interval, PairedTest, Units, bootstrap, bootstrap_mean, paired_test

COMPARED = ("accuracy_paper", "accuracy_exact", "cer_written", "cer_shortest")
UNKNOWN = "no prediction record: what the model was trained on is unknown"


@dataclass(frozen=True)
class Predicted:
    """A file of predictions, with its record if it has one."""

    file: Path
    rows: list[Prediction]
    record: PredictionRecord | None


def load_predictions(path: str | os.PathLike[str]) -> Predicted:
    """Read the predictions of a folder or a JSONL file; a record next to them is checked against their checksum."""
    path = Path(path)
    folder = path if path.is_dir() else path.parent
    has_record = (folder / PREDICTION_RECORD).exists()
    if not path.exists() and not has_record:
        raise DataError(f"{path} does not exist: give the folder of a finished prediction, or a JSONL file")
    if path.is_dir() and not has_record:
        raise DataError(f"{path} has no {PREDICTION_RECORD}: give the folder of a finished prediction, or a JSONL file")
    if not path.is_dir() and not (path.name == PREDICTIONS and has_record):
        return Predicted(path, records.read_predictions(path), None)
    record = records.read_record(folder / PREDICTION_RECORD, PredictionRecord)
    if Path(record.predictions_file).name != record.predictions_file:
        raise DataError(
            f"{folder / PREDICTION_RECORD}: predictions_file is {record.predictions_file!r}, expected the name of a "
            "file in the same folder: predict again"
        )
    file = folder / record.predictions_file
    return Predicted(file, records.read_predictions(file, record.predictions_sha256), record)


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
            line, and optionally `set`, `operation` and `reachable`.
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
    predicted = load_predictions(path)
    record = predicted.record
    tested = {name for row in predicted.rows for name in (row.set, row.id.partition(":")[0])}
    trained, tested = (record.trained_on, tested | record.data.keys()) if record else ((), tested)
    leakage = check_leakage(trained, tested, allow_leakage)
    recorded = record.config.get("max_answer") if record else None
    limit = recorded if isinstance(recorded, int) else max_answer
    links: dict[str, Any] = {name: getattr(record, name, None) for name in ("train", "model", "method", "seed")}
    config = {"draws": draws, "seed": seed, "extractions": list(EXTRACTIONS), "max_answer": limit}
    score = records.ScoreRecord(
        prediction=records.record_hash(record) if record else None,
        **links,
        config=config | {"predictions_sha256": file_hash(predicted.file)},
        **score_rows(predicted.rows, draws, seed, limit),
        notes=leakage.overridden + leakage.notes + (() if record else (UNKNOWN,)),
        override_leakage=bool(leakage.overridden) or (record is not None and record.override_leakage),
        provenance=records.provenance(),
    )
    out = predicted.file.parent / SCORE_RECORD if out is None and record else out
    if out is None:
        return score
    records.write_record(score, out)
    return records.read_record(out, records.ScoreRecord)


def score_rows(rows: Sequence[Prediction], draws: int, seed: int, max_answer: int | None = None) -> dict[str, Any]:
    """Every metric with its interval: by set, by operation, by both, and as a mean over sets."""
    values = metric_values(read_answer(row.answer, row.prediction, row.reachable, max_answer) for row in rows)
    units = problem_units(rows)

    def named(found: Sequence[Interval | None]) -> dict[str, dict[str, Any]]:
        return {name: asdict(each) for name, each in zip(METRICS, found, strict=True) if each is not None}

    def score(chosen: Units) -> dict[str, dict[str, Any]]:
        return named(bootstrap(values[chosen], units[chosen], draws, seed))

    sets = group_rows([row.set for row in rows])
    operations = group_rows([row.operation for row in rows])
    cells = group_rows([None if row.operation is None else (row.set, row.operation) for row in rows])
    set_operations: dict[str, dict[str, Any]] = {name: {} for name, _ in cells}
    for (name, operation), chosen in cells.items():
        set_operations[name][operation] = score(chosen)
    return {
        "scores": {name: score(chosen) for name, chosen in sets.items()},
        "operations": {name: score(chosen) for name, chosen in operations.items()},
        "set_operations": set_operations,
        "averages": named(bootstrap_mean(values, units, list(sets.values()), draws, seed)) if len(sets) > 1 else {},
    }


def problem_units(rows: Sequence[Prediction]) -> Units:
    """The number of each row's problem: `fermat:Original:407` and `fermat:1000+:407` are versions of one problem."""
    keys = []
    for row in rows:
        corpus, _, name = row.set.partition(":")
        rest = row.id.removeprefix(f"{row.set}:")
        keys.append(f"{corpus}:{rest}" if name and rest != row.id else row.id)
    numbers: Units = np.unique(keys, return_inverse=True)[1]
    return numbers


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
        metric_values([read_answer(each.answer, each.prediction) for each in chosen], COMPARED)
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
