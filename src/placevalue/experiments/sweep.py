"""A search for the best values of some fields of a recipe, by scores on dev alone; Optuna is the engine.

A trial is one combination of values: a run of training for each seed, answers to dev, their scores. Each run has a
folder named by its values, so nothing finished is done twice. The same command started again goes on; started twice,
on one machine or on several that share a storage, it splits the work.
"""

import contextlib
import json
import logging
import os
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any

from placevalue.common.errors import ConfigError, DataError, DivergedError, PlacevalueError, in_one_line
from placevalue.common.files import locked
from placevalue.common.hub import load_config
from placevalue.common.records import SCORE_RECORD, ScoreRecord, SweepRecord, provenance, read_record, write_record
from placevalue.common.validation import find_differences
from placevalue.data import data_checksum, load_data
from placevalue.evaluation.metrics import METRICS, metric_values, read_answer
from placevalue.evaluation.statistics import bootstrap
from placevalue.experiments.methods import METHODS
from placevalue.experiments.recipe import Recipe, RecipeOrPath, TrainConfig, default_folder, load_recipe, unknown_names
from placevalue.experiments.run_folder import ANSWERS
from placevalue.experiments.runner import finish_run, plan_run
from placevalue.experiments.search_space import (
    PAPER_SEARCH,
    SAMPLERS,
    Sampler,
    Search,
    grid_points,
    name_values,
    override,
    read_searches,
    with_values,
)

logger = logging.getLogger(__name__)
JOURNAL, RECORD, LOG = "study.journal", "sweep.json", "train.log"
SETUP, VALUES, SCORES = "placevalue", "values", "scores"
"""Keys of the attributes that a study and its trials carry for us."""
SWEEPABLE = tuple(name for name, metric in METRICS.items() if metric.direction in ("higher", "lower"))
"""The metrics that say which of two trials is better."""

Progress = Callable[[int, int, str], object]
"""Called with how many runs are done, how many there are, and what is done now."""


@dataclass(frozen=True)
class SweepPlan:
    """A sweep that has no faults; `plan_sweep` makes it."""

    recipe: Recipe
    method: str
    seeds: tuple[int, ...]
    searches: tuple[Search, ...]
    sampler: Sampler
    trials: int
    sampler_seed: int
    metric: str
    checksums: dict[str, str]

    @property
    def higher(self) -> bool:
        """Whether more of the metric is better."""
        return METRICS[self.metric].direction == "higher"

    @property
    def setup(self) -> dict[str, Any]:
        """All that the scores of a trial depend on: two sweeps that agree in it are the same."""
        run = self.recipe.run(self.method, self.seeds[0]).to_dict()
        del run["seed"]
        return {
            **run,
            "seeds": list(self.seeds),
            "generation": asdict(self.recipe.generation),
            "search": {search.path: search.to_dict() for search in self.searches},
            "sampler": {"name": self.sampler} | ({"seed": self.sampler_seed} if self.sampler == "tpe" else {}),
            "metric": self.metric,
            "checksums": self.checksums,
        }

    def runs(self, values: Mapping[str, Any]) -> Iterator[tuple[Recipe, TrainConfig, Path]]:
        """The runs of a trial, each with its folder inside the sweep's; what is answered is dev."""
        recipe = with_values(self.recipe, values)
        assert recipe.data.dev is not None
        recipe = replace(recipe, data=replace(recipe.data, test=(recipe.data.dev,)))
        for seed in self.seeds:
            yield recipe, recipe.run(self.method, seed), Path(name_values(values)) / f"seed-{seed}"


def plan_sweep(
    recipe: Recipe,
    searches: Sequence[str] = (PAPER_SEARCH,),
    *,
    method: str | None = None,
    seeds: Sequence[int] | None = None,
    sampler: Sampler = "grid",
    trials: int | None = None,
    sampler_seed: int = 0,
    metric: str = "accuracy_paper",
) -> SweepPlan:
    """Check all that can be checked before anything runs; faults are reported together.

    Args:
        recipe: What does not change from trial to trial. It must name `data.dev`; its `data.test` is never read.
        searches: Such as `training.ce_weight=0.4:0.8:0.05`, see `searches`; the paper's search for lambda by default.
        method: The first of the recipe where none is given.
        seeds: Those of the recipe where none are given.
        sampler: `grid` tries every combination, `tpe` lets Optuna choose from what went well.
        trials: How many `tpe` tries.
        sampler_seed: Makes the choices of `tpe`.
        metric: What is best, one of `SWEEPABLE`.

    Example:
        >>> plan_sweep(recipe, ["training.batch_size=16,32"], method="digits").trials  # doctest: +SKIP
        2
    """
    method = recipe.methods[0] if method is None else method
    searches = [searches] if isinstance(searches, str) else searches
    chosen = tuple(dict.fromkeys(recipe.seeds if seeds is None else seeds))
    faults = [] if method in METHODS else [f"method {method!r} is unknown: expected one of {', '.join(METHODS)}"]
    found, wrong = read_searches(searches, recipe, method)
    faults += wrong + _sampler_faults(found, sampler, trials) + unknown_names(recipe.training)
    if metric not in SWEEPABLE:
        faults.append(f"the metric {metric!r} cannot be searched by: expected one of {', '.join(SWEEPABLE)}")
    if not chosen or not (searches or faults):
        faults.append("a sweep needs at least one seed and one field to search")
    if recipe.data.dev is None:
        faults.append("data.dev is missing: values are chosen by dev alone, never by test")
    _check(load_config, recipe.model, faults)
    _check(lambda answer: metric_values([read_answer(answer, answer)]), "1", faults)  # what scores need is installed
    trained = [value for search in found if search.path == "data.train" for value in search.values]
    specs = dict.fromkeys(spec for spec in (recipe.data.train, recipe.data.dev, *trained) if spec is not None)
    checksums = {spec: _check(data_checksum, spec, faults) for spec in specs}
    if faults:
        raise ConfigError("; ".join(faults))
    total = len(grid_points(found)) if sampler == "grid" else trials
    assert total is not None
    return SweepPlan(recipe, method, chosen, found, sampler, total, sampler_seed, metric, checksums)


def _check(function: Callable[[str], Any], given: str, faults: list[str]) -> Any:
    try:
        return function(given)
    except (PlacevalueError, OSError) as error:
        return faults.append(str(error))


def _sampler_faults(searches: Sequence[Search], sampler: str, trials: int | None) -> list[str]:
    if sampler not in SAMPLERS:
        return [f"the sampler {sampler!r} is unknown: expected {' or '.join(SAMPLERS)}"]
    if sampler == "tpe":
        return [] if trials is not None and trials > 0 else [f"trials={trials}: tpe needs a number of trials above 0"]
    faults = [
        f"{search.path}: a grid needs steps: give {search.low}:{search.high}:STEP, a list, or the sampler tpe"
        for search in searches
        if not search.values
    ]
    return faults + ([] if trials is None else [f"trials={trials}: a grid tries all its points; trials are for tpe"])


def sweep(
    recipe: RecipeOrPath | SweepPlan,
    searches: Sequence[str] | os.PathLike[str] = (PAPER_SEARCH,),
    out: str | os.PathLike[str] | None = None,
    *,
    method: str | None = None,
    seeds: Sequence[int] | None = None,
    sampler: Sampler = "grid",
    trials: int | None = None,
    sampler_seed: int = 0,
    metric: str = "accuracy_paper",
    storage: str | None = None,
    study: str = "sweep",
    keep_weights: bool = False,
    progress: Progress | None = None,
) -> SweepRecord:
    """Search the best values of some fields of a recipe on dev, and return the record.

    The same call continues an interrupted sweep; several processes that make it share the work.

    Args:
        recipe: A recipe, the path of its YAML file, or a plan from `plan_sweep`; after a plan, the second positional
            argument is the folder.
        searches: Such as `training.ce_weight=0.4:0.8:0.05`, see `search_space`.
        out: The folder for runs and record. Default: `runs/RECIPE/sweep-METHOD`, by the name of the recipe's file.
        method: The method to train. Default: the recipe's first.
        seeds: The mean score over these seeds counts. Default: the recipe's.
        sampler: `grid` tries every combination, `tpe` lets Optuna choose from what went well.
        trials: How many combinations `tpe` tries.
        sampler_seed: The seed of `tpe`.
        metric: The metric to optimize, one of `SWEEPABLE`.
        storage: The Optuna storage that processes share, see `open_storage`. Default: a journal file in the folder.
        study: The sweep's name in the storage.
        keep_weights: Keep the weights of every run. They are large, and the scores do not need them.
        progress: Called before and after each run with the runs done, the runs in all, and what is running.

    Example:
        >>> sweep("recipes/quick.yaml", ["training.learning_rate=1e-4,3e-4"]).best["overrides"]  # doctest: +SKIP
        ['training.learning_rate=0.0003']
    """
    if isinstance(recipe, SweepPlan):
        plan = recipe
        out = searches if out is None and isinstance(searches, str | os.PathLike) else out
        if any(each is not None for each in (method, seeds, trials)):
            raise ConfigError("the plan of a sweep has its own settings: give method, seeds and trials to plan_sweep")
    else:
        assert not isinstance(searches, os.PathLike)
        options: dict[str, Any] = {"sampler": sampler, "trials": trials, "sampler_seed": sampler_seed, "metric": metric}
        plan = plan_sweep(load_recipe(recipe), searches, method=method, seeds=seeds, **options)
    out = Path(out) if out is not None else default_folder(recipe, f"sweep-{plan.method}")
    if int(os.environ.get("WORLD_SIZE", 1)) > 1:
        raise ConfigError("a sweep runs in one process: start the command once for each device instead of a launcher")
    work = _Sweep(plan, out, keep_weights, progress or (lambda _done, _all, _what: None))
    opened = open_study(str(work.out / JOURNAL) if storage is None else storage, study, plan)
    record = work.write_record(opened)
    if len(record.trials) < plan.trials:
        from optuna.study import MaxTrialsCallback

        grid = plan.sampler == "grid"
        enough = work.stop_after_grid if grid else MaxTrialsCallback(plan.trials)
        catch = (Exception,) if grid else ()
        opened.optimize(work.run_trial, callbacks=[work.after_trial, enough], catch=catch)
        record = work.write_record(opened)
    if work.failed:
        raise PlacevalueError(
            f"{len(work.failed)} of {plan.trials} trials failed, start again to retry them: "
            + "; ".join(f"{name}: {why}" for name, why in work.failed.items())
        )
    work.tell(len(record.trials) * len(plan.seeds), plan.trials * len(plan.seeds), "")
    return record


@dataclass
class _Sweep:
    """The objective and the callbacks of one call of `sweep`."""

    plan: SweepPlan
    out: Path
    keep_weights: bool
    tell: Progress
    failed: dict[str, str] = field(default_factory=dict)
    """Why trials of this call failed, by the names of their values."""
    made: dict[str, Any] = field(default_factory=provenance)

    def run_trial(self, trial: Any) -> float:
        """The objective: the mean score over seeds of the values that are tried next."""
        trial.study.sampler = self._sampler(trial)
        values = {search.path: search.suggest(trial) for search in self.plan.searches}
        trial.set_user_attr(VALUES, values)
        name, seeds = name_values(values), len(self.plan.seeds)
        done, total = len(self._rows(trial.study)) * seeds, self.plan.trials * seeds
        scores = {}
        try:
            for number, (recipe, config, folder) in enumerate(self.plan.runs(values)):
                self.tell(done + number, total, f"{name}, seed {config.seed}")
                score = _run(recipe, config, self.out / folder, self.plan.metric, self.keep_weights)
                scores[str(config.seed)] = score
                self.tell(done + number + 1, total, name)
        except Exception as error:
            logger.warning("%s failed: %s", name, error)
            self.failed[name] = in_one_line(error)
            raise
        trial.set_user_attr(SCORES, scores)
        return sum(float(score["value"]) for score in scores.values()) / seeds

    def _sampler(self, trial: Any) -> Any:
        """What chooses the values of a trial, given all others of the study."""
        from optuna.exceptions import ExperimentalWarning
        from optuna.samplers import PartialFixedSampler, RandomSampler, TPESampler
        from optuna.trial import TrialState

        trials = [each for each in trial.study.get_trials(deepcopy=False) if each.number != trial.number]
        running = [each for each in trials if each.state == TrialState.RUNNING]
        if self.plan.sampler == "tpe":
            # A seed for each trial: one process always tries the same values, and two at once try different ones.
            return TPESampler(seed=self.plan.sampler_seed + len(running) + len(_complete(trial.study)))
        missing = self._missing(trial.study) or grid_points(self.plan.searches)
        taken = [each.user_attrs.get(VALUES) for each in running]
        free = [values for values in missing if values not in taken] or missing
        # Leave the first points to processes that began earlier and have not written their values yet.
        earlier = sum(VALUES not in each.user_attrs and each.number < trial.number for each in running)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ExperimentalWarning)
            return PartialFixedSampler(free[min(earlier, len(free) - 1)], RandomSampler())

    def _missing(self, study: Any) -> list[dict[str, Any]]:
        """The grid's points without a result that have not failed in this call."""
        found = [row["values"] for row in self._rows(study)]
        points = grid_points(self.plan.searches)
        return [each for each in points if each not in found and name_values(each) not in self.failed]

    def after_trial(self, study: Any, _trial: Any) -> None:
        """A callback that writes the record."""
        self.write_record(study)

    def stop_after_grid(self, study: Any, _trial: Any) -> None:
        """A callback that ends the study when no point of the grid is left to try."""
        if not self._missing(study):
            study.stop()

    def write_record(self, study: Any) -> SweepRecord:
        """Write the finished trials, again if another process finished one meanwhile and wrote before us."""
        while True:
            rows = self._rows(study)
            record = self._record(rows)
            write_record(record, self.out / RECORD, growing=True)
            if len(self._rows(study)) == len(rows):
                return record

    def _rows(self, study: Any) -> list[dict[str, Any]]:
        """The results as the record has them: each point of a grid once, in the grid's order."""
        rows = [
            {"values": each.user_attrs[VALUES], "value": each.value, "scores": each.user_attrs[SCORES]}
            for each in _complete(study)
        ]
        if self.plan.sampler == "tpe":
            return rows
        points = grid_points(self.plan.searches)
        first = {points.index(row["values"]): row for row in reversed(rows)}
        return [first[index] for index in sorted(first)]

    def _record(self, rows: list[dict[str, Any]]) -> SweepRecord:
        best = None
        if rows:
            chosen = (max if self.plan.higher else min)(rows, key=lambda row: row["value"])
            best = chosen | {"overrides": [override(*each) for each in chosen["values"].items()]}
        return SweepRecord(self.plan.setup, self.plan.trials, tuple(rows), best, self.made)


def _complete(study: Any) -> list[Any]:
    from optuna.trial import TrialState

    return list(study.get_trials(deepcopy=False, states=(TrialState.COMPLETE,)))


def _run(recipe: Recipe, config: TrainConfig, folder: Path, metric: str, keep_weights: bool) -> dict[str, Any]:
    """Train, answer dev and score, as far as the folder does not hold it already."""
    (dev,) = recipe.data.test
    try:
        with locked(folder, wait=True), _logged(folder / LOG):
            finish_run(plan_run(recipe, config, folder), recipe, "model" if keep_weights else "records")
    except DivergedError as error:
        logger.warning("%s: %s; it counts as if it had answered nothing", folder.name, error)
        silent = metric_values([read_answer(problem.answer, "") for problem in load_data(dev)], [metric])
        (interval,) = bootstrap(silent)
        score = None if interval is None else asdict(interval)
    else:
        score = read_record(folder / ANSWERS / SCORE_RECORD, ScoreRecord).scores[dev].get(metric)
    if score is None:
        raise DataError(f"{metric} means nothing for the problems of {dev}: choose another metric")
    return score


@contextlib.contextmanager
def _logged(path: Path) -> Iterator[None]:
    """A context in which what is printed goes to a file: bars of many runs would bury the one of the sweep."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("a", encoding="utf-8") as file, contextlib.redirect_stdout(file), contextlib.redirect_stderr(file):
        yield


def open_study(storage: str, name: str, plan: SweepPlan) -> Any:
    """The study of this name, created if there is none; one of another sweep is refused with a list of differences."""
    opened = open_storage(storage)
    import optuna

    direction: Any = "maximize" if plan.higher else "minimize"
    study = optuna.create_study(storage=opened, study_name=name, direction=direction, load_if_exists=True)
    if SETUP not in study.user_attrs:
        study.set_user_attr(SETUP, plan.setup)
    if changed := find_differences(study.user_attrs[SETUP], json.loads(json.dumps(plan.setup))):
        raise ConfigError(
            f"{storage} holds another sweep under the name {name!r}: {'; '.join(changed)}. Choose another folder, or "
            "another name (--study)"
        )
    return study


def open_storage(storage: str) -> Any:
    """An Optuna storage.

    Args:
        storage: A URL of SQLAlchemy (`sqlite:///sweep.db`, `postgresql://...`), of Redis (`redis://...`), of Optuna's
            proxy server (`grpc://host:port`), or the path of a journal file.
    """
    try:
        from optuna import storages
        from optuna.exceptions import StorageInternalError
        from optuna.storages import journal
        from sqlalchemy.exc import SQLAlchemyError
    except ImportError as error:
        raise PlacevalueError(f"a sweep needs optuna: pip install 'placevalue[sweep]' ({error})") from None
    scheme, separator, rest = storage.partition("://")
    if not separator:
        Path(storage).parent.mkdir(parents=True, exist_ok=True)
        return storages.JournalStorage(journal.JournalFileBackend(storage))
    try:
        if scheme.startswith("redis"):
            return storages.JournalStorage(journal.JournalRedisBackend(storage))
        if scheme == "grpc":
            host, _, port = rest.strip("/").partition(":")
            return storages.GrpcStorageProxy(host=host, port=int(port or 13000))
        return storages.RDBStorage(storage)
    except (ImportError, ValueError, SQLAlchemyError, StorageInternalError) as error:
        raise ConfigError(f"the storage {storage!r} cannot be used: {' '.join(str(error).split())}") from None
