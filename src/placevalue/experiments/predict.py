"""predict(): a checkpoint and problems to a folder with `predictions.jsonl` and its record.

Questions are encoded as in training, sorted by length and answered in batches. Each finished batch is written at once,
so an interrupted run continues where it stopped and ends with the same predictions.
"""

import contextlib
import json
import os
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass
from functools import cached_property
from itertools import chain, combinations
from pathlib import Path
from typing import Any

import numpy as np
import torch

from placevalue.common.errors import ConfigError, DataError
from placevalue.common.files import write_whole
from placevalue.common.hub import check_device, device_name
from placevalue.common.lock import locked
from placevalue.common.ownership import check_folder
from placevalue.common.records import (
    PREDICTION_RECORD,
    PREDICTIONS,
    Prediction,
    PredictionRecord,
    provenance,
    record_hash,
    write_predictions,
    write_record,
)
from placevalue.common.room import room_for
from placevalue.common.validation import find_differences
from placevalue.data import Problem, data_sources, load_data
from placevalue.data.corpora import expand_data, problem_sources
from placevalue.data.leakage import Leakage, check_leakage
from placevalue.data.problem import checksum
from placevalue.evaluation.scoring import load_predictions
from placevalue.experiments.callbacks import Progress
from placevalue.experiments.generator import Answerer, Checkpoint, load_answerer, read_checkpoint
from placevalue.experiments.settings import GenerationConfig, Precision, TrainingConfig
from placevalue.tokenizer.encoding import encode_and_cut, encode_answers
from placevalue.tokenizer.prompt import Prompt
from placevalue.tokenizer.rewriting import plain_text, rewrite_of, writable

PARTIAL = "predictions.partial.jsonl"
DEFAULT = GenerationConfig()
LEAST_ROOM = 16
"""The tokens that an answer may have in any case, unless a limit is given: a model may say more than the number."""


def predict(
    checkpoint: str | os.PathLike[str],
    data: Sequence[str],
    out: str | os.PathLike[str],
    *,
    beams: int = DEFAULT.beams,
    batch_size: int = DEFAULT.batch_size,
    precision: Precision = DEFAULT.precision,
    max_question: int | None = None,
    max_answer: int | None = None,
    device: str | None = None,
    allow_leakage: bool = False,
    progress: Progress | None = None,
) -> PredictionRecord:
    """Answer problems with a checkpoint, write predictions and their record to a folder, and return the record.

    If the folder holds the same run, predict() returns its record, or continues it if it was interrupted. A folder that
    holds another run is refused with a list of the differences.

    Args:
        checkpoint: A run of `placevalue train` or one of its checkpoints, any folder with a model and its tokenizer,
            a hub name, or a name that `placevalue fetch` knows.
        data: Names that `load_data` takes, or `fermat` and `fermat-all`: `mawps:test`, `fermat`, `mine.jsonl`.
        out: The folder for `predictions.jsonl` and `prediction.json`.
        beams: Beams of the search; 1 is greedy.
        batch_size: Problems per batch.
        precision: The data type of the weights: float32, bfloat16 or float16.
        max_question: Cut questions at this many tokens. Default: as in training, else 128.
        max_answer: Longest answer in tokens, its end token included. Default: as in training, else what the longest
            correct answer needs, and at least 16.
        device: As torch names it. Default: `cuda` if available.
        allow_leakage: Also answer problems that the model was trained on; the record says so.
        progress: Called after each batch.

    Example:
        >>> predict("runs/digits-42", ["mawps:test", "fermat"], "runs/digits-42/predictions")  # doctest: +SKIP
    """
    generation = GenerationConfig(beams, batch_size, precision)
    assignment = assign_problems(checkpoint, data, generation, max_question, max_answer, allow_leakage)
    return answer_problems(assignment, out, device, progress)


generate = predict  # its former name


@dataclass(frozen=True)
class Assignment:
    """A checkpoint and the problems it will answer, encoded; the model is not loaded yet."""

    checkpoint: Checkpoint
    generation: GenerationConfig
    max_question: int
    max_answer: int
    sets: dict[str, list[Problem]]
    """The problems, by the name of their set."""
    questions: list[list[int]]
    """The ids of every question, in the order of the data."""
    cut: list[bool]
    """Whether a question was longer than `max_question`."""
    reachable: list[bool]
    """Whether an answer fits into `max_answer` tokens, and can be read back if it is rewritten."""
    leakage: Leakage

    @cached_property
    def batches(self) -> list[list[int]]:
        """The indices of the problems in each batch, longest first, so that running out of memory happens early."""
        order = sorted(range(len(self.questions)), key=lambda index: -len(self.questions[index]))
        size = self.generation.batch_size
        return [order[first : first + size] for first in range(0, len(order), size)]

    @cached_property
    def counts(self) -> dict[str, int]:
        """Counts over all sets, then of each set: `cut_questions:mawps:test`."""
        slices = {"": slice(None)}
        first = 0
        for name, problems in self.sets.items():
            slices[f":{name}"] = slice(first, first := first + len(problems))
        found: dict[str, int] = {}
        for suffix, rows in slices.items():
            found[f"problems{suffix}"] = len(self.cut[rows])
            found[f"cut_questions{suffix}"] = sum(self.cut[rows])
            found[f"unreachable_answers{suffix}"] = self.reachable[rows].count(False)
        return found

    @cached_property
    def links(self) -> dict[str, Any]:
        """What the record says of model, data and settings; two runs with equal links are the same run."""
        checkpoint = self.checkpoint
        return {
            "train": None if checkpoint.train is None else record_hash(checkpoint.train),
            "model": checkpoint.run.get("model", checkpoint.name),
            "method": checkpoint.run.get("method"),
            "seed": checkpoint.run.get("seed"),
            "data": {name: checksum(problems) for name, problems in self.sets.items()},
            "config": {
                "checkpoint": checkpoint.name,
                "weights": checkpoint.weights(),
                "max_question": self.max_question,
                "max_answer": self.max_answer,
                **asdict(self.generation),
            },
        }


def assign_problems(
    checkpoint: str | os.PathLike[str],
    data: Sequence[str],
    generation: GenerationConfig = DEFAULT,
    max_question: int | None = None,
    max_answer: int | None = None,
    allow_leakage: bool = False,
) -> Assignment:
    """Read a checkpoint, load and encode the problems: everything that predict() does before it loads the model."""
    lengths = {"max_question": max_question, "max_answer": max_answer}
    wrong = {name: value for name, value in lengths.items() if value is not None and value < 1}
    if wrong:
        raise ConfigError("; ".join(f"{name}={value}: expected at least 1" for name, value in wrong.items()))
    specs = expand_data(data)
    found = read_checkpoint(checkpoint)
    sources = [source for spec in specs for source in problem_sources(spec)]
    leakage = check_leakage(found.trained_on, sources, allow_leakage)
    trained = found.run.get("training", {})
    longest_question = max_question or trained.get("max_question") or TrainingConfig.max_question
    sets = {spec: load_data(spec) for spec in specs}
    for (one, first), (other, second) in combinations(sets.items(), 2):
        if shared := {each.id for each in first} & {each.id for each in second}:
            raise DataError(f"the problem {min(shared)!r} is in both {one} and {other}: predict them into two folders")
    problems = [problem for each in sets.values() for problem in each]
    prompt = Prompt(**found.run.get("prompt", {}))
    tokenizer, plain, kind = found.tokenizer, found.plain, found.encoder_decoder
    questions, cut = encode_and_cut(
        tokenizer, [each.question for each in problems], kind, longest_question, plain=plain, prompt=prompt
    )
    answers = encode_answers(tokenizer, [each.answer for each in problems], kind, plain)
    longest_answer = max_answer or trained.get("max_answer") or max([LEAST_ROOM, *map(len, answers)])
    return Assignment(
        checkpoint=found,
        generation=generation,
        max_question=longest_question,
        max_answer=longest_answer,
        sets=sets,
        questions=questions,
        cut=cut,
        reachable=[
            len(ids) <= longest_answer and writable(tokenizer, each.answer)
            for ids, each in zip(answers, problems, strict=True)
        ],
        leakage=leakage,
    )


def answer_problems(
    assignment: Assignment, out: str | os.PathLike[str], device: str | None = None, progress: Progress | None = None
) -> PredictionRecord:
    """Load the model, answer the assigned problems, and write predictions and record; see `predict`."""
    out = Path(out)
    if (out / PREDICTION_RECORD).exists():
        record = _read_finished(out)
        _refuse_other({name: getattr(record, name) for name in assignment.links}, assignment, out / PREDICTION_RECORD)
        (out / PARTIAL).unlink(missing_ok=True)
        return record
    check_folder(out, _begun(out) is not None)
    assignment.checkpoint.check()
    device = device or ("cuda" if torch.cuda.is_available() else "cpu")
    check_device(device)
    with locked(out) as check:
        return _answer_problems(assignment, out, device, progress or (lambda _done, _all: None), check)


def _answer_problems(
    assignment: Assignment, out: Path, device: str, progress: Progress, check: Callable[[], None]
) -> PredictionRecord:
    """Do what is left of the predictions in a folder that is locked; `check` raises an error if it is not any more."""
    if (out / PREDICTION_RECORD).exists():  # by another process, meanwhile
        return answer_problems(assignment, out)
    partial = Partial(out / PARTIAL, assignment)
    began = time.monotonic()
    answerer = load_answerer(assignment.checkpoint, assignment.generation, assignment.max_answer, device)
    loaded = time.monotonic()
    _answer_batches(assignment, answerer, partial, progress, check)
    unreadable = Counter[str]()
    file_sha256 = write_predictions(_predictions(assignment, partial, unreadable), out / PREDICTIONS)
    record = PredictionRecord(
        **assignment.links,
        trained_on=assignment.checkpoint.trained_on,
        counts=assignment.counts | unreadable,
        durations={"load": loaded - began, "generate": partial.seconds},
        predictions_file=PREDICTIONS,
        predictions_sha256=file_sha256,
        override_leakage=bool(assignment.leakage.overridden),
        provenance=provenance(device_name(device)),
    )
    write_record(record, out / PREDICTION_RECORD)
    partial.path.unlink()
    return record


def _read_finished(out: Path) -> PredictionRecord:
    record = load_predictions(out).record
    assert record is not None
    return record


def _refuse_other(found: dict[str, Any], assignment: Assignment, path: Path) -> None:
    if changed := find_differences(found, assignment.links):
        raise DataError(f"{path} is of another run: {'; '.join(changed)}. Choose another folder, or remove it yourself")


class Partial:
    """The finished batches of a run: a file with one line that identifies the run, then one line per batch."""

    def __init__(self, path: Path, assignment: Assignment) -> None:
        self.path = path
        self.texts: dict[int, list[str]] = {}
        self.seconds = 0.0
        lines = self._read(assignment) if path.exists() else []
        header = json.dumps({"run": assignment.links}, ensure_ascii=False)
        write_whole(path, "".join(line + "\n" for line in [header, *lines]))

    def _read(self, assignment: Assignment) -> list[str]:
        """The lines of the finished batches, up to one that was cut off."""
        lines: list[str] = []
        header, *batches = self.path.read_bytes().split(b"\n")[:-1] or [b""]
        with contextlib.suppress(ValueError):
            for line in batches:
                self._keep(json.loads(line))
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
        line = (json.dumps(values, ensure_ascii=False) + "\n").encode()
        with room_for(self.path, len(line)), self.path.open("ab") as file:
            file.write(line)
        self._keep(values)


def _answer_batches(
    assignment: Assignment, answerer: Answerer, partial: Partial, progress: Progress, check: Callable[[], None]
) -> None:
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
            size = assignment.generation.batch_size
            raise ConfigError(f"batch_size={size} does not fit into memory, use a smaller one: {error}") from None
        check()
        partial.add(number, texts, time.monotonic() - began)
        done += len(batch)
        progress(done, total)


def _predictions(assignment: Assignment, partial: Partial, unreadable: Counter[str]) -> Iterator[Prediction]:
    """The rows in the order of the data. FERMAT's questions are left out, to keep them apart from their answers.

    If answers are rewritten, they are read back, and `unreadable` counts those that cannot be.
    """
    tokenizer = assignment.checkpoint.tokenizer
    if rewrite_of(tokenizer):
        unreadable.update(
            dict.fromkeys(["unreadable_answers", *map("unreadable_answers:{}".format, assignment.sets)], 0)
        )
    size = assignment.generation.batch_size
    places = np.argsort(np.fromiter(chain(*assignment.batches), int))  # of each problem among those in batches
    index = 0
    for name, problems in assignment.sets.items():
        fermat = any(source.startswith("fermat") for source in data_sources(name))
        for each in problems:
            batch, row = divmod(places[index], size)
            question = None if fermat else each.question
            text, readable = plain_text(tokenizer, partial.texts[batch][row])
            if readable is False:
                unreadable.update(("unreadable_answers", f"unreadable_answers:{name}"))
            reachable = assignment.reachable[index]
            yield Prediction(each.id, each.answer, text, name, question, each.operation, reachable, readable)
            index += 1


def read_links(out: Path) -> dict[str, Any] | None:
    """The links of the predictions in a folder, finished or not, as in `Assignment.links`; None if there are none."""
    if (out / PREDICTION_RECORD).exists():
        record = _read_finished(out)
        return {"train": record.train, "data": record.data, "config": record.config}
    return _begun(out)


def _begun(out: Path) -> dict[str, Any] | None:
    """The links of unfinished predictions; None if the folder has none of ours."""
    if not (out / PARTIAL).exists():
        return None
    with (out / PARTIAL).open("rb") as file, contextlib.suppress(ValueError, KeyError, TypeError):
        return dict(json.loads(file.readline())["run"])
    return None
