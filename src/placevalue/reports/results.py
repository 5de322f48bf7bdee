"""The folder of an experiment: the finished runs of every method and seed, their records held to each other.

`placevalue reproduce` writes it: a folder for each run, with the records of training, prediction and scoring. A run
that is not finished is missing, never a zero.
"""

import os
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path

import numpy as np

from placevalue.common.errors import DataError, PlacevalueError
from placevalue.common.records import (
    PREDICTION_RECORD,
    SCORE_RECORD,
    Prediction,
    PredictionRecord,
    ScoreRecord,
    TrainRecord,
    read_record,
    record_hash,
)
from placevalue.data import is_made, load_data
from placevalue.data.corpora import expand_data
from placevalue.data.problem import checksum, same_words
from placevalue.evaluation.metrics import Answered, metric_values, read_answer
from placevalue.evaluation.scoring import load_predictions
from placevalue.evaluation.statistics import Units, Values
from placevalue.experiments.recipe import Recipe, read_recipe
from placevalue.experiments.run_folder import (
    ANSWERS,
    CHECKPOINTS,
    CONFIG,
    RECIPE,
    RECORD,
    SEEN,
    changed_answers,
    find_changes,
)


@dataclass(frozen=True)
class Run:
    """One method trained with one seed, from its training to its scores."""

    folder: Path
    train: TrainRecord
    prediction: PredictionRecord
    score: ScoreRecord
    rows: list[Prediction] = field(repr=False)
    _values: dict[str, Values] = field(default_factory=dict, init=False, repr=False, compare=False)

    @property
    def method(self) -> str:
        """The method's name in `METHODS`."""
        return self.train.method

    @property
    def seed(self) -> int:
        """The seed of the training."""
        return self.train.seed

    @cached_property
    def answers(self) -> list[Answered]:
        """Every problem with the numbers of its two answers read."""
        room = self.score.config.get("max_answer")
        return [read_answer(row.answer, row.prediction, row.reachable, room) for row in self.rows]

    def values(self, metric: str) -> Values:
        """A metric of every problem, `(problems,)`; NaN where it means nothing. Computed once; do not change it."""
        if metric not in self._values:
            self._values[metric] = metric_values(self.answers, [metric])[:, 0]
        return self._values[metric]


@dataclass(frozen=True)
class Experiment:
    """One model and data set, several methods and seeds, as far as they are finished."""

    folder: Path
    recipe: Recipe | None
    runs: tuple[Run, ...]
    """In the order of the recipe's methods, then by seed. All answer the same problems in the same order."""
    missing: tuple[str, ...]
    """What is not there and why, a line each."""
    name: str
    """The folder's name, with its parent's where that is needed to tell it from another."""

    @property
    def model(self) -> str:
        """The model that was trained."""
        return self.runs[0].train.model

    @property
    def methods(self) -> list[str]:
        """The methods that have a finished run."""
        return list(dict.fromkeys(run.method for run in self.runs))

    @property
    def seeds(self) -> list[int]:
        """The seeds that any method was trained with."""
        return sorted({run.seed for run in self.runs})

    def of(self, method: str) -> list[Run]:
        """The finished runs of a method."""
        return [run for run in self.runs if run.method == method]

    @cached_property
    def unseen(self) -> Units:
        """The problems whose question does not stand in any run's training data, as far as that is at hand."""
        trained = ((run.train.config["data"]["train"], run.train.data) for run in self.runs)
        data = {(spec, checksums.get(spec, "")) for spec, checksums in trained}
        known = {question for spec, expected in data for question in _questions(spec, expected)}
        rows = self.runs[0].rows
        return np.flatnonzero([row.question is None or same_words(row.question) not in known for row in rows])


def _questions(spec: str, expected: str) -> set[str]:
    """The questions of data with this checksum; none where it is not at hand, or made anew and so never asked again."""
    try:
        problems = [] if is_made(spec) else load_data(spec)
    except (PlacevalueError, OSError):
        return set()
    return {same_words(problem.question) for problem in problems} if checksum(problems) == expected else set()


def load_experiment(folder: str | os.PathLike[str]) -> Experiment:
    """Read every finished run of an experiment, and hold its records to each other.

    A run whose records do not fit together, that answers other problems than the rest, or that stands there twice is
    an error that names all faults. One of another recipe than stands in the folder counts as missing.

    Example:
        >>> load_experiment("results/flan-t5-small-title-mawps").methods  # doctest: +SKIP
        ['untouched', 'digits', 'agg-before']
    """
    folder = Path(folder)
    if not folder.is_dir():
        raise DataError(f"there is no folder {folder}: give one that `placevalue reproduce` wrote")
    recipe = read_recipe(folder / RECIPE) if (folder / RECIPE).exists() else None
    runs: list[Run] = []
    missing: list[str] = []
    faults: list[str] = []
    for path in sorted(each for each in folder.iterdir() if each.is_dir() and _began(each)):
        wanted = (RECORD, f"{ANSWERS}/{PREDICTION_RECORD}", f"{ANSWERS}/{SCORE_RECORD}")
        if absent := [name for name in wanted if not (path / name).exists()]:
            missing.append(f"{path.name}: no {', '.join(absent)}")
            continue
        try:
            run = _load_run(path)
        except DataError as error:
            faults.append(str(error))
            continue
        if changed := _changed(run, recipe):
            missing.append(f"{path.name}: of another recipe ({'; '.join(changed)})")
        else:
            runs.append(run)
    if faults := faults + _misfits(runs):
        raise DataError(f"{folder}: {'; '.join(faults)}. Restore the files, or remove the runs and make them again")
    if not runs:
        why = f": {'; '.join(missing)}" if missing else ", nor any run that was begun"
        raise DataError(f"{folder} holds no finished run{why}")
    if recipe is not None:
        missing += _unstarted(recipe, runs, missing)
    order = [*(recipe.methods if recipe else ()), *sorted({run.method for run in runs})]
    runs.sort(key=lambda run: (order.index(run.method), run.seed))
    return Experiment(folder, recipe, tuple(runs), tuple(missing), folder.resolve().name)


def load_experiments(folders: Sequence[str | os.PathLike[str]]) -> list[Experiment]:
    """Several experiments, each under a name of its own."""
    paths = [Path(folder).resolve() for folder in folders]
    if twice := sorted({str(path) for path in paths if paths.count(path) > 1}):
        raise DataError(f"{', '.join(twice)} was given twice: give each folder once")
    names = [path.name for path in paths]
    found = [load_experiment(folder) for folder in folders]
    return [
        replace(each, name=f"{path.parent.name}/{path.name}") if names.count(path.name) > 1 else each
        for each, path in zip(found, paths, strict=True)
    ]


def _began(path: Path) -> bool:
    return any((path / name).exists() for name in (RECORD, CONFIG, CHECKPOINTS, ANSWERS))


def _load_run(path: Path) -> Run:
    train = read_record(path / RECORD, TrainRecord)
    score = read_record(path / ANSWERS / SCORE_RECORD, ScoreRecord)
    predicted = load_predictions(path / ANSWERS)
    prediction = predicted.record
    assert prediction is not None
    links = {
        f"{PREDICTION_RECORD} is of another training": prediction.train == record_hash(train),
        f"{SCORE_RECORD} is of other predictions": score.prediction == record_hash(prediction),
        f"{SCORE_RECORD} is of another training": score.train == prediction.train,
        "the records name different methods": train.method == prediction.method == score.method,
        "the records name different seeds": train.seed == prediction.seed == score.seed,
        f"{SCORE_RECORD} scored another file of predictions": (
            score.config.get("predictions_sha256") == prediction.predictions_sha256
        ),
    }
    if wrong := [fault for fault, fits in links.items() if not fits]:
        raise DataError(f"{path.name}: {', '.join(wrong)}")
    return Run(path, train, prediction, score, predicted.rows)


def _changed(run: Run, recipe: Recipe | None) -> list[str]:
    """What of a run is not as the recipe has it; whether its data is still the same is for `reproduce` to find out."""
    if recipe is None:
        return []
    wanted, seen = recipe.run(run.method, run.seed).to_dict(), {SEEN: run.train.data}
    there = dict.fromkeys(run.prediction.data, "")
    tested = dict.fromkeys(expand_data(recipe.data.test), "")
    return find_changes(run.train.config | seen, wanted | seen) + changed_answers(
        recipe, tested, there, run.prediction.config
    )


def _misfits(runs: Sequence[Run]) -> list[str]:
    """Why runs that are each whole cannot be held side by side."""
    faults = []
    seen: dict[tuple[str, int], Run] = {}
    for run in runs:
        key = run.method, run.seed
        if key in seen:
            faults.append(f"{seen[key].folder.name} and {run.folder.name} are both {run.method} with seed {run.seed}")
        seen.setdefault(key, run)
    asked = [(row.id, row.set, row.answer) for row in runs[0].rows] if runs else []
    for run in runs[1:]:
        if run.train.model != runs[0].train.model:
            faults.append(f"{runs[0].folder.name} trains {runs[0].train.model} and {run.folder.name} {run.train.model}")
        if [(row.id, row.set, row.answer) for row in run.rows] != asked:
            faults.append(f"{run.folder.name} and {runs[0].folder.name} do not answer the same problems")
    return faults


def _unstarted(recipe: Recipe, runs: Sequence[Run], missing: Sequence[str]) -> list[str]:
    """The recipe's runs of which there is no trace."""
    named = {line.partition(":")[0] for line in missing}
    there = {(run.method, run.seed) for run in runs}
    return [
        f"{method}-{seed}: not begun"
        for method in recipe.methods
        for seed in recipe.seeds
        if (method, seed) not in there and f"{method}-{seed}" not in named
    ]
