"""The search of each method's values before its runs: its trials, the best of them, and the record of why.

The trials of an experiment are runs in `tuning/`, one for each method, combination of values and seed, scored on dev
alone. When all trials of a method have a score, `tuning/METHOD.json` records which was chosen; their folders are then
no longer needed.
"""

import math
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

from placevalue.common.errors import DataError
from placevalue.common.files import read_json, write_json
from placevalue.common.records import (
    PREDICTION_RECORD,
    SCORE_RECORD,
    PredictionRecord,
    ScoreRecord,
    SweepRecord,
    TrainRecord,
    provenance,
    read_record,
    write_record,
)
from placevalue.data import load_data
from placevalue.evaluation.metrics import METRICS, metric_values, read_answer
from placevalue.evaluation.statistics import bootstrap
from placevalue.experiments.comparison import trial_values
from placevalue.experiments.recipe import Recipe, TrainConfig, answering_dev
from placevalue.experiments.run_folder import ANSWERS, RECORD, SEEN, find_changes, run_checksums
from placevalue.experiments.search_space import name_values, override

TUNING, DIVERGED = "tuning", "diverged.json"


@dataclass(frozen=True)
class Tuning:
    """The search of one method's values."""

    recipe: Recipe
    method: str
    folder: Path
    """`tuning/` in the folder of the experiment."""
    checksums: dict[str, str]

    @property
    def path(self) -> Path:
        """The record of the trials."""
        return self.folder / f"{self.method}.json"

    @property
    def dev(self) -> str:
        """The data that chooses."""
        assert self.recipe.data.dev is not None
        return self.recipe.data.dev

    @property
    def trials(self) -> list[dict[str, float]]:
        """The values of each trial."""
        return trial_values(self.recipe.tuning, self.method)

    def runs(self, values: dict[str, float]) -> Iterator[tuple[TrainConfig, Path]]:
        """The runs of a trial, each with its folder."""
        for config in _trial_runs(self.recipe, self.method, values):
            yield config, self.folder / f"{self.method},{name_values(values)}-{config.seed}"

    @property
    def setup(self) -> dict[str, Any]:
        """Everything that the scores depend on, as the record has it."""
        run, trials = self.recipe.run(self.method, self.recipe.tuning.seeds[0]).to_dict(), self.trials
        del run["seed"]
        searched = {path: list(dict.fromkeys(values[path] for values in trials)) for path in trials[0]}
        names = [path.removeprefix("training.") for path in searched]
        return {
            **run,
            "training": {name: value for name, value in run["training"].items() if name not in names},
            "seeds": list(self.recipe.tuning.seeds),
            "generation": asdict(self.recipe.generation),
            "search": {path: {"values": values} for path, values in searched.items()},
            "sampler": {"name": "grid"},
            "metric": self.recipe.tuning.metric,
            SEEN: self.checksums,
        }

    def recorded(self) -> SweepRecord | None:
        """The record of all trials, if there is one and it fits the recipe."""
        if not self.path.exists():
            return None
        record, setup = read_record(self.path, SweepRecord), self.setup
        before = record.config.get("generation", {})
        setup["generation"] = {name: value for name, value in setup["generation"].items() if name in before}
        return None if find_changes(record.config, setup) or len(record.trials) < len(self.trials) else record

    def result(self) -> SweepRecord:
        """What the finished runs of all trials say; changes nothing."""
        rows: list[dict[str, Any]] = []
        for values in self.trials:
            scores, seconds = {}, 0.0
            for config, folder in self.runs(values):
                silent = has_diverged(folder, config, self.checksums)
                found = (silent_score if silent else partial(dev_score, folder))(self.dev, self.recipe.tuning.metric)
                scores[str(config.seed)] = found
                seconds += run_seconds(folder)
            mean = sum(float(score["value"]) for score in scores.values()) / len(scores)
            rows.append({"values": values, "value": mean, "scores": scores, "seconds": round(seconds, 3)})
        return SweepRecord(self.setup, len(rows), tuple(rows), self._best(rows), provenance())

    def _best(self, rows: list[dict[str, Any]]) -> dict[str, Any]:
        tuning = self.recipe.tuning
        best = (max if METRICS[tuning.metric].direction == "higher" else min)(rows, key=lambda row: row["value"])
        ties = sum(math.isclose(row["value"], best["value"], abs_tol=1e-12) for row in rows) - 1
        seeds = ", ".join(map(str, tuning.seeds))
        why = f"the best {tuning.metric} on {self.dev} of {len(rows)} trials, each with seed {seeds}"
        why += f"; {ties} more had the same, and the first of the grid was taken" if ties else ""
        return best | {"overrides": [override(*each) for each in best["values"].items()], "why": why}

    def write(self) -> None:
        """Write the record of all trials, whose runs are finished, if there is none that fits."""
        if self.recorded() is None:
            write_record(self.result(), self.path, growing=True)


def tunings(recipe: Recipe, folder: Path, checksum: Callable[[str], str]) -> list[Tuning]:
    """The search of each method, none without `tuning.learning_rates`."""
    if not recipe.tuning.learning_rates:
        return []
    sums = run_checksums(recipe.run(), checksum)
    return [Tuning(recipe, method, folder / TUNING, sums) for method in recipe.methods]


def trials_of(recipe: Recipe, method: str) -> list[TrainConfig]:
    """The runs of a method's trials, without their folders."""
    return [run for values in trial_values(recipe.tuning, method) for run in _trial_runs(recipe, method, values)]


def _trial_runs(recipe: Recipe, method: str, values: dict[str, float]) -> list[TrainConfig]:
    own = answering_dev(with_own(recipe, method, values))
    return [own.run(method, seed) for seed in recipe.tuning.seeds]


def with_own(recipe: Recipe, method: str, values: dict[str, float]) -> Recipe:
    """The recipe with values of training for one method alone."""
    for path, value in values.items():
        name = f"{path.removeprefix('training.')}s"
        changed: Any = {name: getattr(recipe, name) | {method: value}}
        recipe = replace(recipe, **changed)
    return recipe


def mark_diverged(folder: Path, config: TrainConfig, checksums: dict[str, str], why: str) -> None:
    """Note that a trial's loss became NaN, so that it is not trained again."""
    write_json(folder / DIVERGED, {"why": why, "config": config.to_dict() | {SEEN: checksums}})


def has_diverged(folder: Path, config: TrainConfig, checksums: dict[str, str]) -> bool:
    """Whether a trial with this config ended with a loss that is NaN."""
    if not (folder / DIVERGED).exists():
        return False
    return not find_changes(read_json(folder / DIVERGED)["config"], config.to_dict() | {SEEN: checksums})


def dev_score(folder: Path, dev: str, metric: str) -> dict[str, Any]:
    """The score of a finished run on dev."""
    found = read_record(folder / ANSWERS / SCORE_RECORD, ScoreRecord).scores[dev].get(metric)
    return _defined(found, dev, metric)


def silent_score(dev: str, metric: str) -> dict[str, Any]:
    """The score of a run whose loss became NaN: as if it had answered nothing."""
    silent = metric_values([read_answer(problem.answer, "") for problem in load_data(dev)], [metric])
    (interval,) = bootstrap(silent)
    return _defined(None if interval is None else asdict(interval), dev, metric)


def _defined(score: dict[str, Any] | None, dev: str, metric: str) -> dict[str, Any]:
    if score is None:
        raise DataError(f"{metric} is not defined for the problems of {dev}: choose another metric")
    return score


def run_seconds(folder: Path) -> float:
    """How long a finished run trained and answered, in seconds; 0 for one without records."""
    if not (folder / RECORD).exists():
        return 0.0
    spent = read_record(folder / RECORD, TrainRecord).durations
    if (folder / ANSWERS / PREDICTION_RECORD).exists():
        spent = spent | read_record(folder / ANSWERS / PREDICTION_RECORD, PredictionRecord).durations
    return spent.get("train", 0.0) + spent.get("generate", 0.0)
