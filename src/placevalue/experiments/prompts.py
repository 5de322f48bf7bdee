"""Problems set to a checkpoint: settings resolved, questions encoded and counted, before the model is loaded."""

import os
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, get_args, get_type_hints

from placevalue.common.errors import ConfigError, DataError
from placevalue.common.records import record_hash
from placevalue.data import Problem, data_sources, load_data
from placevalue.data.corpora import expand_data
from placevalue.data.leakage import Leakage, check_leakage
from placevalue.data.problem import checksum
from placevalue.experiments.generator import Checkpoint, read_checkpoint
from placevalue.experiments.recipe import GenerationConfig, TrainingConfig
from placevalue.tokenizer.encoding import answer_lengths, encode_and_cut

PRECISIONS = get_args(get_type_hints(GenerationConfig)["precision"])
COUNTS = ("problems", "cut_questions", "unreachable_answers")


@dataclass(frozen=True)
class Assignment:
    """All that is known before the model is loaded."""

    checkpoint: Checkpoint
    config: dict[str, Any]
    """The resolved settings, as they stand in the record."""
    sets: dict[str, list[Problem]]
    """The problems, by the name of their set."""
    questions: list[list[int]]
    """The ids of every question, in the data's order."""
    cut: list[bool]
    """Whether a question was longer than the model may read."""
    reachable: list[bool]
    """Whether an answer fits into the tokens that the model may write."""
    leakage: Leakage

    @cached_property
    def batches(self) -> list[list[int]]:
        """Which problems are answered together: the longest first, where memory would run out if it does."""
        order = sorted(range(len(self.questions)), key=lambda index: -len(self.questions[index]))
        size = self.config["batch_size"]
        return [order[first : first + size] for first in range(0, len(order), size)]

    @cached_property
    def counts(self) -> dict[str, int]:
        """`COUNTS` over all sets, then of each: `cut_questions:mawps:test`."""
        every = {"": slice(None)}
        first = 0
        for name, problems in self.sets.items():
            every[f":{name}"] = slice(first, first := first + len(problems))
        return {
            count + suffix: value
            for suffix, rows in every.items()
            for count, value in zip(
                COUNTS, (len(self.cut[rows]), sum(self.cut[rows]), self.reachable[rows].count(False)), strict=True
            )
        }

    @cached_property
    def links(self) -> dict[str, Any]:
        """What a record says of the model, the data and the settings: two runs that agree in it are the same."""
        checkpoint = self.checkpoint
        return {
            "train": None if checkpoint.train is None else record_hash(checkpoint.train),
            "model": checkpoint.run.get("model", checkpoint.name),
            "method": checkpoint.run.get("method"),
            "seed": checkpoint.run.get("seed"),
            "data": {name: checksum(problems) for name, problems in self.sets.items()},
            "config": self.config,
        }


def assign_problems(
    checkpoint: str | os.PathLike[str],
    data: Sequence[str],
    *,
    beams: int = GenerationConfig.beams,
    batch_size: int = GenerationConfig.batch_size,
    max_question: int | None = None,
    max_answer: int | None = None,
    precision: str = GenerationConfig.precision,
    allow_leakage: bool = False,
) -> Assignment:
    """What `generate` would do, every fault and count included, without loading the model."""
    given = {"beams": beams, "batch_size": batch_size, "max_question": max_question, "max_answer": max_answer}
    faults = [
        f"{name}={value}: expected at least 1" for name, value in given.items() if value is not None and value < 1
    ]
    if precision not in PRECISIONS:
        faults.append(f"precision={precision!r}: expected one of {', '.join(PRECISIONS)}")
    if faults:
        raise ConfigError("; ".join(faults))
    specs = expand_data(data)
    found = read_checkpoint(checkpoint)
    sources = {spec: data_sources(spec) for spec in specs}
    leakage = check_leakage(found.trained_on, [each for named in sources.values() for each in named], allow_leakage)
    trained = found.run.get("training", {})
    for name in ("max_question", "max_answer"):
        given[name] = given[name] or trained.get(name) or getattr(TrainingConfig, name)
    config = {"checkpoint": found.name, "weights": found.weights(), **given, "precision": precision}
    sets = {spec: load_data(spec) for spec in specs}
    _check_ids(sets)
    return Assignment(found, config, sets, *_encode(found, sets, config), leakage)


def _check_ids(sets: dict[str, list[Problem]]) -> None:
    """One file of predictions holds each problem once."""
    owners: dict[str, str] = {}
    for name, problems in sets.items():
        for problem in problems:
            if owners.setdefault(problem.id, name) != name:
                raise DataError(
                    f"the problem {problem.id!r} stands in {owners[problem.id]} and in {name}: "
                    "predict them into two folders"
                )


def _encode(
    checkpoint: Checkpoint, sets: dict[str, list[Problem]], config: dict[str, Any]
) -> tuple[list[list[int]], list[bool], list[bool]]:
    """The questions' ids, which of them were cut, and which answers can be written."""
    tokenizer, plain, kind = checkpoint.tokenizer, checkpoint.plain, checkpoint.encoder_decoder
    problems = [problem for each in sets.values() for problem in each]
    texts, answers = [problem.question for problem in problems], [problem.answer for problem in problems]
    questions, cut = encode_and_cut(tokenizer, texts, kind, config["max_question"], plain=plain)
    lengths = answer_lengths(tokenizer, answers, encoder_decoder=kind, plain=plain)
    return [each["input_ids"] for each in questions], cut, [length <= config["max_answer"] for length in lengths]
