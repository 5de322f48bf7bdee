"""A checkpoint and problems to a folder of predictions, `predictions.jsonl` and its record, for `evaluate`.

Questions are encoded as in training, sorted by length and answered in batches. Each finished batch is kept at once, so
that a run that was stopped goes on where it stood and ends with the predictions it would have had.
"""

import json
import os
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import torch

from placevalue.common.errors import ConfigError, DataError
from placevalue.common.files import write_whole
from placevalue.common.hub import device_name
from placevalue.common.records import (
    PREDICTION_RECORD,
    PREDICTIONS,
    Prediction,
    PredictionRecord,
    provenance,
    write_predictions,
    write_record,
)
from placevalue.common.validation import find_differences
from placevalue.data import data_sources
from placevalue.evaluation.scoring import load_predictions
from placevalue.experiments.generator import Answerer, load_answerer
from placevalue.experiments.prompts import Assignment, assign_problems
from placevalue.experiments.recipe import GenerationConfig

PARTIAL = "predictions.partial.jsonl"
Progress = Callable[[int, int], object]
"""Called with how many problems are answered, and how many there are."""


def predict(
    checkpoint: str | os.PathLike[str],
    data: Sequence[str],
    out: str | os.PathLike[str],
    *,
    beams: int = GenerationConfig.beams,
    batch_size: int = GenerationConfig.batch_size,
    max_question: int | None = None,
    max_answer: int | None = None,
    precision: str = GenerationConfig.precision,
    device: str | None = None,
    allow_leakage: bool = False,
    progress: Progress | None = None,
) -> PredictionRecord:
    """Answer problems with a checkpoint, and return the record that now stands in the folder beside the predictions.

    A folder that holds the same run is left as it is, or taken up where it was stopped; one that holds another is
    refused with what differs.

    Args:
        checkpoint: A run of `placevalue train` or one of its checkpoints, any folder with a model and its tokenizer,
            a hub name, or a name that `placevalue fetch` knows.
        data: What `load_data` takes, and `SHORTHANDS`: `mawps:test`, `fermat`, `mine.jsonl`.
        out: The folder for `predictions.jsonl` and `prediction.json`.
        beams: Beams of the search; 1 is greedy.
        batch_size: Problems at a time.
        max_question: Questions are cut at this many tokens; by default as in training, else 128.
        max_answer: Answers have at most this many, their end included; by default as in training, else 16.
        precision: What is computed in: float32, bfloat16 or float16.
        device: As torch names it; by default `cuda` where there is one.
        allow_leakage: Answer problems that the model has seen, and say so in the record.
        progress: Called after each batch.

    Example:
        >>> predict("runs/digits-42", ["mawps:test", "fermat"], "runs/digits-42/predictions")  # doctest: +SKIP
    """
    assignment = assign_problems(
        checkpoint,
        data,
        beams=beams,
        batch_size=batch_size,
        max_question=max_question,
        max_answer=max_answer,
        precision=precision,
        allow_leakage=allow_leakage,
    )
    return answer_problems(assignment, out, device, progress)


generate = predict  # what it was called first


def answer_problems(
    assignment: Assignment, out: str | os.PathLike[str], device: str | None = None, progress: Progress | None = None
) -> PredictionRecord:
    """Do what was assigned; see `predict`."""
    out = Path(out)
    if (finished := _finished(assignment, out)) is not None:
        return finished
    device = device or ("cuda" if torch.cuda.is_available() else "cpu")
    partial = Partial(out / PARTIAL, assignment)
    began = time.monotonic()
    config = assignment.config
    answerer = load_answerer(assignment.checkpoint, config["beams"], config["max_answer"], config["precision"], device)
    loaded = time.monotonic()
    _answer_batches(assignment, answerer, partial, progress or (lambda _done, _all: None))
    file_sha256 = write_predictions(_predictions(assignment, partial), out / PREDICTIONS)
    record = PredictionRecord(
        **assignment.links,
        trained_on=assignment.checkpoint.trained_on,
        counts=assignment.counts,
        durations={"load": loaded - began, "generate": partial.seconds},
        predictions_file=PREDICTIONS,
        predictions_sha256=file_sha256,
        override_leakage=bool(assignment.leakage.overridden),
        provenance=provenance(device_name(device)),
    )
    write_record(record, out / PREDICTION_RECORD)
    partial.path.unlink()
    return record


def _finished(assignment: Assignment, out: Path) -> PredictionRecord | None:
    if not (out / PREDICTION_RECORD).exists():
        return None
    record = load_predictions(out).record
    assert record is not None
    _refuse_other({name: getattr(record, name) for name in assignment.links}, assignment, out / PREDICTION_RECORD)
    (out / PARTIAL).unlink(missing_ok=True)
    return record


def read_links(out: Path) -> dict[str, Any] | None:
    """What the answers in a folder are of, finished or not, as `Assignment.links` has it; none where there are none."""
    if (out / PREDICTION_RECORD).exists():
        record = load_predictions(out).record
        assert record is not None
        return {"train": record.train, "data": record.data, "config": record.config}
    if not (out / PARTIAL).exists():
        return None
    with (out / PARTIAL).open(encoding="utf-8") as file:
        found: dict[str, Any] = json.loads(file.readline())["run"]
    return found


def _refuse_other(found: dict[str, Any], assignment: Assignment, path: Path) -> None:
    if changed := find_differences(found, assignment.links):
        raise DataError(f"{path} is of another run: {'; '.join(changed)}. Choose another folder, or remove it yourself")


class Partial:
    """The finished batches of a run, a line each below one that says which run it is."""

    def __init__(self, path: Path, assignment: Assignment) -> None:
        self.path = path
        self.texts: dict[int, list[str]] = {}
        self.seconds = 0.0
        lines = self._read(assignment) if path.exists() else []
        header = json.dumps({"run": assignment.links}, ensure_ascii=False)
        write_whole(path, "".join(line + "\n" for line in [header, *lines]))

    def _read(self, assignment: Assignment) -> list[str]:
        """Take up what is there, up to a line that was not written to its end."""
        lines: list[str] = []
        header, *batches = self.path.read_bytes().split(b"\n")[:-1] or [b""]
        for line in batches:
            try:
                values = json.loads(line)
            except ValueError:
                break
            self._keep(values)
            lines.append(line.decode())
        if lines:
            _refuse_other(json.loads(header)["run"], assignment, self.path)
        return lines

    def _keep(self, values: dict[str, Any]) -> None:
        self.texts[values["batch"]] = values["predictions"]
        self.seconds += values["seconds"]

    def add(self, batch: int, texts: list[str], seconds: float) -> None:
        """Keep a finished batch, in memory and on disk."""
        values = {"batch": batch, "seconds": round(seconds, 6), "predictions": texts}
        with self.path.open("a", encoding="utf-8") as file:
            file.write(json.dumps(values, ensure_ascii=False) + "\n")
        self._keep(values)


def _answer_batches(assignment: Assignment, answerer: Answerer, partial: Partial, progress: Progress) -> None:
    total = len(assignment.questions)
    done = sum(map(len, partial.texts.values()))
    progress(done, total)
    for number, batch in enumerate(assignment.batches):
        if number in partial.texts:
            continue
        began = time.monotonic()
        try:
            texts = answerer.answer([assignment.questions[index] for index in batch])
        except torch.OutOfMemoryError as error:
            raise ConfigError(
                f"batch_size={assignment.config['batch_size']} does not fit into memory: {error}"
            ) from None
        partial.add(number, texts, time.monotonic() - began)
        done += len(batch)
        progress(done, total)


def _predictions(assignment: Assignment, partial: Partial) -> list[Prediction]:
    """The rows in the data's order. FERMAT's questions are left out: they are kept apart from their answers."""
    texts = {
        index: text
        for number, batch in enumerate(assignment.batches)
        for index, text in zip(batch, partial.texts[number], strict=True)
    }
    rows: list[Prediction] = []
    for name, problems in assignment.sets.items():
        apart = any(source.startswith("fermat") for source in data_sources(name))
        for problem in problems:
            index = len(rows)
            question = None if apart else problem.question
            reachable = assignment.reachable[index]
            rows.append(
                Prediction(problem.id, problem.answer, texts[index], name, question, problem.operation, reachable)
            )
    return rows
