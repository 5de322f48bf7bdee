"""Predictions to scores and their record; never loads a model.

A folder of predictions holds `predictions.jsonl` and its record `prediction.json`; `score.json` is written beside
them. A bare JSONL file of anybody's predictions is scored as well: its scores are linked to nothing.
"""

import os
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np

from placevalue.common.errors import DataError
from placevalue.common.files import file_hash
from placevalue.common.records import (
    PREDICTION_RECORD,
    PREDICTIONS,
    SCORE_RECORD,
    Prediction,
    PredictionRecord,
    ScoreRecord,
    provenance,
    read_predictions,
    read_record,
    record_hash,
    write_record,
)
from placevalue.data.leakage import check_leakage
from placevalue.evaluation.metrics import EXTRACTIONS, METRICS, Values, metric_values, read_answer
from placevalue.evaluation.statistics import (
    DRAWS,
    Interval,
    PairedTest,
    Units,
    bootstrap,
    borders,
    drawn_means,
    paired_test,
)

COMPARED = ("accuracy_paper", "accuracy_exact", "cer_written", "cer_shortest")
UNKNOWN = "no prediction record: what the model was trained on is unknown"


@dataclass(frozen=True)
class Predicted:
    """A file of predictions with its record, if it has one."""

    file: Path
    rows: list[Prediction]
    record: PredictionRecord | None

    @property
    def sources(self) -> set[str]:
        """Everything that says which corpora the problems are from."""
        named = set(self.record.data) if self.record else set()
        return named | {row.set for row in self.rows} | {row.id.partition(":")[0] for row in self.rows}


def load_predictions(path: str | os.PathLike[str]) -> Predicted:
    """The predictions of a folder, or of a JSONL file; a record beside them is read and its checksum held to them."""
    path = Path(path)
    is_folder = path.is_dir()
    beside = (path if is_folder else path.parent) / PREDICTION_RECORD
    if is_folder and not beside.exists():
        raise DataError(
            f"{path} holds no {PREDICTION_RECORD}: expected the folder of a finished prediction run, or a JSONL file"
        )
    if not is_folder and not (path.name == PREDICTIONS and beside.exists()):
        return Predicted(path, read_predictions(path), None)
    record = read_record(beside, PredictionRecord)
    file = beside.parent / record.predictions_file
    return Predicted(file, read_predictions(file, record.predictions_sha256), record)


def evaluate(
    path: str | os.PathLike[str],
    out: str | os.PathLike[str] | None = None,
    draws: int = DRAWS,
    seed: int = 0,
    allow_leakage: bool = False,
    max_answer: int | None = None,
) -> ScoreRecord:
    """Score predictions by set and by operation, and write the record.

    Args:
        path: A folder that a prediction run wrote, or a JSONL file with `id`, `answer` and `prediction` on each line,
            and where known `set`, `operation` and `reachable`.
        out: Where the record goes; `score.json` in the folder by default, and nowhere for a file without a record.
        draws: Resamples behind the intervals.
        seed: Makes the resamples.
        allow_leakage: Score a model on problems that it has seen; the record says so.
        max_answer: The target tokens that were allowed, to tell answers that cannot be written; what the predictions
            or their record say comes first.

    Example:
        >>> evaluate("runs/digits").scores["fermat:Original"]["accuracy_paper"]["value"]  # doctest: +SKIP
        0.5
    """
    if draws < 1:
        raise DataError(f"draws={draws}: expected at least 1")
    predicted = load_predictions(path)
    record = predicted.record
    leakage = check_leakage(record.trained_on if record else (), predicted.sources, allow_leakage)
    room = _max_answer(record, max_answer)
    config = {"draws": draws, "seed": seed, "extractions": list(EXTRACTIONS), "max_answer": room}
    score = ScoreRecord(
        **_links(record),
        config=config | {"predictions_sha256": file_hash(predicted.file)},
        **score_rows(predicted.rows, draws, seed, room),
        notes=leakage.overridden + leakage.notes + (() if record else (UNKNOWN,)),
        override_leakage=bool(leakage.overridden) or (record is not None and record.override_leakage),
        provenance=provenance(),
    )
    out = predicted.file.parent / SCORE_RECORD if out is None and record else out
    if out is None:
        return score
    write_record(score, out)
    return read_record(out, ScoreRecord)


def _links(record: PredictionRecord | None) -> dict[str, Any]:
    """What a score record takes over from the predictions' own; all of it absent where there is none."""
    if record is None:
        return dict.fromkeys(("prediction", "train", "model", "method", "seed"))
    own = {name: getattr(record, name) for name in ("train", "model", "method", "seed")}
    return own | {"prediction": record_hash(record)}


def _max_answer(record: PredictionRecord | None, given: int | None) -> int | None:
    recorded = record.config.get("max_answer") if record else None
    return recorded if isinstance(recorded, int) else given


def score_rows(rows: Sequence[Prediction], draws: int, seed: int, max_answer: int | None = None) -> dict[str, Any]:
    """Every metric with its interval: by set, by operation over all sets and in each, and as a mean over sets."""
    values = metric_values(read_answer(row.answer, row.prediction, row.reachable, max_answer) for row in rows)
    units = problem_units(rows)

    def score(chosen: Units) -> dict[str, dict[str, Any]]:
        found = bootstrap(values[chosen], _renumbered(units[chosen]), draws, seed)
        return {name: asdict(each) for name, each in zip(METRICS, found, strict=True) if each is not None}

    sets = group_rows([row.set for row in rows])
    operations = group_rows([row.operation for row in rows])
    cells = group_rows([None if row.operation is None else (row.set, row.operation) for row in rows])
    set_operations: dict[str, dict[str, Any]] = {}
    for (name, operation), chosen in cells.items():
        set_operations.setdefault(name, {})[operation] = score(chosen)
    return {
        "scores": {name: score(chosen) for name, chosen in sets.items()},
        "operations": {name: score(chosen) for name, chosen in operations.items()},
        "set_operations": set_operations,
        "averages": _averages(values, units, sets, draws, seed) if len(sets) > 1 else {},
    }


def problem_units(rows: Sequence[Prediction]) -> Units:
    """The number of each row's problem: `fermat:Original:407` and `fermat:1000+:407` are one, rewritten."""
    keys = []
    for row in rows:
        corpus, _, name = row.set.partition(":")
        rest = row.id.removeprefix(f"{row.set}:")
        keys.append(f"{corpus}:{rest}" if name and rest != row.id else row.id)
    return _renumbered(np.array(keys))


def _renumbered(keys: Any) -> Units:
    numbers: Units = np.unique(keys, return_inverse=True)[1]
    return numbers


def group_rows(keys: Sequence[Any]) -> dict[Any, Units]:
    """Which rows have each key, in the order the keys come; rows without one are left out."""
    found: dict[Any, list[int]] = {}
    for index, key in enumerate(keys):
        if key is not None:
            found.setdefault(key, []).append(index)
    return {key: np.array(indices) for key, indices in found.items()}


def _averages(
    values: Values, units: Units, sets: Mapping[str, Units], draws: int, seed: int
) -> dict[str, dict[str, Any]]:
    """Means over the sets in which a metric has a value, a set with few problems counting as much as any; n is sets."""
    rows, metrics = values.shape
    apart = np.full((rows, len(sets), metrics), np.nan)
    for index, chosen in enumerate(sets.values()):
        apart[chosen, index] = values[chosen]
    drawn = drawn_means(apart.reshape(rows, -1), units, draws, seed).reshape(draws, len(sets), metrics)
    averages = {}
    for column, name in enumerate(METRICS):
        having = [index for index in range(len(sets)) if not np.isnan(apart[:, index, column]).all()]
        if having:
            mean = float(np.mean([np.nanmean(apart[:, index, column]) for index in having]))
            low, high = borders(drawn[:, having, column].mean(1))
            averages[name] = asdict(Interval(mean, low, high, len(having)))
    return averages


def compare(first: Predicted, second: Predicted, draws: int = DRAWS, seed: int = 0) -> dict[str, dict[str, PairedTest]]:
    """Two runs on the same problems, matched by id: a paired test of each set, and of all sets together."""
    ours, theirs = ({row.id: row for row in predicted.rows} for predicted in (first, second))
    if odd := sorted(set(ours) ^ set(theirs)):
        raise DataError(
            f"{first.file} and {second.file} do not answer the same problems: {len(odd)} ids stand in one alone, "
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
            metric: paired_test(mine[chosen, column], other[chosen, column], _renumbered(units[chosen]), draws, seed)
            for column, metric in enumerate(COMPARED)
        }
        for name, chosen in groups.items()
    }
