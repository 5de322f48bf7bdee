"""Load the finished runs of an experiment and check that their records belong together.

`placevalue reproduce` writes the folder: one folder for each run, with the records of training, prediction and scoring.
A run that is not finished is missing, never a zero.
"""

import os
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path

from placevalue.common import records
from placevalue.common.errors import DataError, PlacevalueError
from placevalue.common.records import PREDICTION_RECORD, SCORE_RECORD, Prediction
from placevalue.data import Problem, load_data
from placevalue.data.copies import Copies, find_copies, pairs
from placevalue.data.corpora import expand_data
from placevalue.data.problem import checksum
from placevalue.evaluation.metrics import Answered, metric_values, read_answer
from placevalue.evaluation.scoring import load_predictions
from placevalue.evaluation.statistics import Values
from placevalue.evaluation.trivial import trivial_answers
from placevalue.experiments import run_folder
from placevalue.experiments.recipe import FORMER_BASELINE, Recipe, read_recipe
from placevalue.experiments.run_folder import ANSWERS, RECORD, SEEN
from placevalue.experiments.tuning import TUNING

_NEEDED = (RECORD, f"{ANSWERS}/{PREDICTION_RECORD}", f"{ANSWERS}/{SCORE_RECORD}")


@dataclass(frozen=True)
class Run:
    """One method trained with one seed, from training to scores."""

    folder: Path
    train: records.TrainRecord
    prediction: records.PredictionRecord
    score: records.ScoreRecord
    rows: list[Prediction] = field(repr=False)
    _values: dict[str, Values] = field(default_factory=dict, init=False, repr=False, compare=False)

    @property
    def method(self) -> str:
        """The method's name in `METHODS`."""
        return self.train.method

    @property
    def seed(self) -> int:
        """The training seed."""
        return self.train.seed

    @property
    def seconds(self) -> float:
        """How long it trained and answered."""
        return self.train.durations.get("train", 0.0) + self.prediction.durations.get("generate", 0.0)

    @cached_property
    def answers(self) -> list[Answered]:
        """Every problem's gold and predicted answer, with their numbers."""
        limit = self.score.config.get("max_answer")
        return [read_answer(row.answer, row.prediction, row.reachable, limit, row.readable) for row in self.rows]

    def values(self, metric: str) -> Values:
        """A metric of every problem, `(problems,)`; NaN if it is undefined. Computed once, so do not change it."""
        if metric not in self._values:
            self._values[metric] = metric_values(self.answers, [metric])[:, 0]
        return self._values[metric]


@dataclass(frozen=True)
class Experiment:
    """One model and data set with the finished runs of several methods and seeds."""

    folder: Path
    recipe: Recipe | None
    runs: tuple[Run, ...]
    """In the order of the recipe's methods, then by seed. All answer the same problems in the same order."""
    missing: tuple[str, ...]  # which runs are missing and why, a line each
    name: str  # the folder's name, with its parent's if another experiment has the same
    tuning: dict[str, records.SweepRecord] = field(default_factory=dict)
    """The trials that chose a method's own values, by method; none if the recipe gives all values."""

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
        """The seeds of all methods."""
        return sorted({run.seed for run in self.runs})

    @property
    def contrasts(self) -> tuple[tuple[str, ...], ...]:
        """The pairs of methods whose differences the recipe fixed beforehand."""
        return self.recipe.contrasts if self.recipe else ()

    @property
    def baseline(self) -> str:
        """The recipe's baseline; if it has no finished run, `digits`, or else the first method."""
        wanted = [self.recipe.baseline] if self.recipe else []
        return next((name for name in (*wanted, FORMER_BASELINE) if name in self.methods), self.methods[0])

    def of(self, method: str) -> list[Run]:
        """The finished runs of a method."""
        return [run for run in self.runs if run.method == method]

    @cached_property
    def questions(self) -> list[str | None]:
        """The question of every problem, from the data where the predictions omit it; None if that has changed."""
        rows, checksums = self.runs[0].rows, self.runs[0].prediction.data
        hidden = dict.fromkeys(row.set for row in rows if row.question is None)
        texts = {each.id: each.question for name in hidden for each in _unchanged(name, checksums.get(name, ""))}
        return [row.question or texts.get(row.id) for row in rows]

    @cached_property
    def training(self) -> list[Problem]:
        """The training data of all runs, as far as it is available."""
        trained = ((run.train.config["data"]["train"], run.train.data) for run in self.runs)
        data = dict.fromkeys((spec, checksums.get(spec, "")) for spec, checksums in trained)
        return [problem for spec, expected in data for problem in _unchanged(spec, expected)]

    @cached_property
    def copies(self) -> Copies:
        """The problems whose question copies one of the training data."""
        asked = zip(self.questions, self.runs[0].rows, strict=True)
        return find_copies([(question or "", row.answer) for question, row in asked], pairs(self.training))

    @cached_property
    def trivial(self) -> dict[str, list[Answered]]:
        """Every problem with its gold and its trivial answer, for each kind of these; see `trivial_answers`."""
        first = self.runs[0]
        limit = first.score.config.get("max_answer")
        return {
            name: [
                read_answer(row.answer, text, row.reachable, limit) for row, text in zip(first.rows, texts, strict=True)
            ]
            for name, texts in trivial_answers(self.questions, self.training).items()
        }


def _unchanged(spec: str, expected: str) -> list[Problem]:
    """The problems of data with this checksum; none if it is unavailable."""
    try:
        problems = load_data(spec)
    except (PlacevalueError, OSError):
        return []
    return problems if checksum(problems) == expected else []


def load_experiment(folder: str | os.PathLike[str]) -> Experiment:
    """Read every finished run of an experiment.

    Raises one error that names all faults if records do not belong together, if runs answer different problems, or if a
    method and seed occur twice. A run of another recipe than the folder's counts as missing.
    """
    folder = Path(folder)
    if not folder.is_dir():
        raise DataError(f"there is no folder {folder}: give one that `placevalue reproduce` wrote")
    path = folder / run_folder.RECIPE
    recipe = read_recipe(path, recorded=True) if path.exists() else None
    runs: list[Run] = []
    missing: dict[str, str] = {}
    faults: list[str] = []
    traces = (RECORD, run_folder.CONFIG, run_folder.CHECKPOINTS, ANSWERS)
    for path in sorted(each for each in folder.iterdir() if any((each / name).exists() for name in traces)):
        if absent := [name for name in _NEEDED if not (path / name).exists()]:
            missing[path.name] = f"no {', '.join(absent)}"
            continue
        try:
            run = _load_run(path)
        except DataError as error:
            faults.append(str(error))
            continue
        if changed := _changed(run, recipe):
            missing[path.name] = f"of another recipe ({'; '.join(changed)})"
        else:
            runs.append(run)
    if faults := faults + _misfits(runs):
        raise DataError(f"{folder}: {'; '.join(faults)}. Restore the files, or delete these runs and repeat them")
    lines = [f"{name}: {why}" for name, why in missing.items()]
    if not runs:
        raise DataError(f"{folder} has no finished run: {'; '.join(lines) or 'none was started'}")
    done = {f"{run.method}-{run.seed}" for run in runs} | missing.keys()
    methods, seeds = (recipe.methods, recipe.seeds) if recipe else ((), ())
    lines += [f"{method}-{seed}: not started" for method in methods for seed in seeds if f"{method}-{seed}" not in done]
    order = [*methods, *sorted({run.method for run in runs})]
    runs.sort(key=lambda run: (order.index(run.method), run.seed))
    return Experiment(folder, recipe, tuple(runs), tuple(lines), folder.resolve().name, _load_tuning(folder, recipe))


def _load_tuning(folder: Path, recipe: Recipe | None) -> dict[str, records.SweepRecord]:
    """The records of the trials whose values the recipe has."""
    found = {}
    for method in recipe.methods if recipe and recipe.tuning.learning_rates else ():
        path = folder / TUNING / f"{method}.json"
        if path.exists():
            found[method] = records.read_record(path, records.SweepRecord)
    return found


def load_experiments(folders: Sequence[str | os.PathLike[str]]) -> list[Experiment]:
    """Read several experiments and give each a distinct name."""
    paths = [Path(folder).resolve() for folder in folders]
    if twice := sorted({str(path) for path in paths if paths.count(path) > 1}):
        raise DataError(f"{', '.join(twice)} was given twice: give each folder once")
    names = [path.name for path in paths]
    found = [load_experiment(folder) for folder in folders]
    return [
        replace(each, name=f"{path.parent.name}/{path.name}") if names.count(path.name) > 1 else each
        for each, path in zip(found, paths, strict=True)
    ]


def _load_run(path: Path) -> Run:
    train = records.read_record(path / RECORD, records.TrainRecord)
    score = records.read_record(path / ANSWERS / SCORE_RECORD, records.ScoreRecord)
    predicted = load_predictions(path / ANSWERS)
    prediction = predicted.record
    assert prediction is not None
    scored = score.config.get("predictions_sha256")
    links = {
        f"{PREDICTION_RECORD} is of another training": prediction.train == records.record_hash(train),
        f"{SCORE_RECORD} is of other predictions": score.prediction == records.record_hash(prediction),
        f"{SCORE_RECORD} is of another training": score.train == prediction.train,
        "the records name different methods": train.method == prediction.method == score.method,
        "the records name different seeds": train.seed == prediction.seed == score.seed,
        f"{SCORE_RECORD} scored another file of predictions": scored == prediction.predictions_sha256,
    }
    if wrong := [fault for fault, fits in links.items() if not fits]:
        raise DataError(f"{path.name}: {', '.join(wrong)}")
    return Run(path, train, prediction, score, predicted.rows)


def _changed(run: Run, recipe: Recipe | None) -> list[str]:
    """How a run differs from the recipe; whether its data is still the same is for `reproduce` to check."""
    if recipe is None:
        return []
    wanted, seen = recipe.run(run.method, run.seed).to_dict(), {SEEN: run.train.data}
    found, tested = dict.fromkeys(run.prediction.data, ""), dict.fromkeys(expand_data(recipe.data.test), "")
    changes = run_folder.find_changes(run.train.config | seen, wanted | seen)
    return changes + run_folder.changed_answers(recipe, tested, found, run.prediction.config)


def _misfits(runs: Sequence[Run]) -> list[str]:
    """Why runs that are each valid cannot be compared."""
    faults = []
    seen: dict[tuple[str, int], Run] = {}
    for run in runs:
        first, other = runs[0], seen.setdefault((run.method, run.seed), run)
        if other is not run:
            faults.append(f"{other.folder.name} and {run.folder.name} are both {run.method} with seed {run.seed}")
        if run.train.model != first.train.model:
            faults.append(f"{first.folder.name} trains {first.train.model} and {run.folder.name} {run.train.model}")
        if [(row.id, row.set, row.answer) for row in run.rows] != [(r.id, r.set, r.answer) for r in first.rows]:
            faults.append(f"{run.folder.name} and {first.folder.name} do not answer the same problems")
    return faults
