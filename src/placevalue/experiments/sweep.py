"""sweep(): search the best values of some fields of a recipe by their scores on dev, with Optuna.

A trial is one combination of values: for each seed a run of training, answers to dev, and their score. Each run has a
folder named by its values; the folder's lock and records make sure that a run happens once, so several processes can
share a sweep, and an interrupted one continues.
"""

import json
import logging
import os
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import redirect_stderr, redirect_stdout
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

from placevalue.common.errors import ConfigError, DivergedError, PlacevalueError, in_one_line
from placevalue.common.ownership import check_folder
from placevalue.common.records import SweepRecord, is_record, provenance, write_record
from placevalue.common.room import room_for
from placevalue.common.validation import find_differences
from placevalue.experiments.cluster import Cluster, Machines
from placevalue.experiments.recipe import Recipe, RecipeOrPath, TrainConfig, default_folder, load_recipe, with_new_names
from placevalue.experiments.run_folder import LOG, is_run
from placevalue.experiments.runner import Errand, finish_run, lock_run, make_errand, plan_run
from placevalue.experiments.search_space import (
    PAPER_SEARCH,
    Sampler,
    SweepPlan,
    grid_points,
    name_values,
    override,
    plan_sweep,
)
from placevalue.experiments.trials import run_trials
from placevalue.experiments.tuning import dev_score, silent_score

logger = logging.getLogger(__name__)
JOURNAL, RECORD = "study.journal", "sweep.json"
JOURNAL_ROOM = 5_000  # bytes for each trial
SETUP, VALUES, SCORES = "placevalue", "values", "scores"
"""Keys of our attributes of a study and its trials."""
Progress = Callable[[int, int, str], object]
"""Called with the number of runs done, the number of all runs, and what is running."""


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
    cluster: Cluster | None = None,
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
        cluster: A Ray cluster to do the runs on, as many at once as it has room for. Default: one at a time, here.

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
    storage = str(out / JOURNAL) if storage is None else storage
    beside = [path.name for path in out.glob(f"{Path(storage).name}*")]  # the storage checks by itself whose it is
    check_folder(out, is_record(out / RECORD, SweepRecord), beside)
    work = _Sweep(plan, out, keep_weights, progress or (lambda _done, _all, _what: None))
    with room_for(storage, plan.trials * JOURNAL_ROOM):
        opened = open_study(storage, study, plan)
        record = work.write_record(opened)
        if len(record.trials) < plan.trials and cluster is not None:
            with Machines(partial(_run_errand, metric=plan.metric, keep_weights=keep_weights), out, cluster) as room:
                run_trials(opened, work, room)
            record = work.write_record(opened)
        elif len(record.trials) < plan.trials:
            opened.optimize(
                work.run_trial, callbacks=[work.after_trial], catch=(Exception,) if plan.sampler == "grid" else ()
            )
            record = work.write_record(opened)
    if work.failed:
        raise PlacevalueError(
            f"{len(work.failed)} of {plan.trials} trials failed, start again to retry them: "
            + "; ".join(f"{name}: {why}" for name, why in work.failed.items())
        )
    work.progress(len(record.trials) * len(plan.seeds), plan.trials * len(plan.seeds), "")
    return record


@dataclass
class _Sweep:
    """The objective and the callback of one call of `sweep`."""

    plan: SweepPlan
    out: Path
    keep_weights: bool
    progress: Progress
    failed: dict[str, str] = field(default_factory=dict)
    """Why trials of this call failed, by the names of their values."""
    made: dict[str, Any] = field(default_factory=provenance)

    def run_trial(self, trial: Any) -> float:
        """The objective: choose values, run every seed, and return the mean score."""
        values = self.choose(trial)
        name, seeds = name_values(values), len(self.plan.seeds)
        done, total = len(self._rows(trial.study)) * seeds, self.plan.trials * seeds
        scores = {}
        try:
            for number, (recipe, config, folder) in enumerate(self.plan.runs(values), done):
                self.progress(number, total, f"{name}, seed {config.seed}")
                score = _run(recipe, config, self.out / folder, self.plan.metric, self.keep_weights)
                scores[str(config.seed)] = score
                self.progress(number + 1, total, name)
        except Exception as error:
            logger.warning("%s failed: %s", name, error)
            self.failed[name] = in_one_line(error)
            raise
        trial.set_user_attr(SCORES, scores)
        return sum(float(score["value"]) for score in scores.values()) / seeds

    def choose(self, trial: Any) -> dict[str, Any]:
        """Choose a trial's values, and note them in the study."""
        trial.study.sampler = self._sampler(trial)
        values = {search.path: search.suggest(trial) for search in self.plan.searches}
        trial.set_user_attr(VALUES, values)
        return values

    def wants_more(self, study: Any, running: list[dict[str, Any]]) -> bool:
        """Whether to start another trial, beside those with these values."""
        if self.plan.sampler == "tpe":
            return len(self._rows(study)) + len(running) < self.plan.trials
        return any(values not in running for values in self._missing(study))

    def pieces(self, values: dict[str, Any]) -> Iterator[tuple[str, str, Errand]]:
        """The runs of a trial, each as its seed, its name and its piece of work."""
        for recipe, config, folder in self.plan.runs(values):
            yield str(config.seed), "-".join(folder.parts), make_errand(recipe, config, self.out / folder)

    def finish(self, study: Any, trial: Any, scores: dict[str, Any]) -> None:
        """Tell the study the scores of a trial's seeds."""
        ordered = {str(seed): scores[str(seed)] for seed in self.plan.seeds}
        trial.set_user_attr(SCORES, ordered)
        study.tell(trial, sum(float(score["value"]) for score in ordered.values()) / len(ordered))
        self.write_record(study)

    def fail(self, study: Any, trial: Any, values: dict[str, Any], why: str) -> None:
        """Tell the study that a trial failed; with `tpe`, the sweep ends."""
        from optuna.trial import TrialState

        name = name_values(values)
        study.tell(trial, state=TrialState.FAIL)
        logger.warning("%s failed: %s", name, why)
        self.failed[name] = why
        if self.plan.sampler == "tpe":
            raise PlacevalueError(f"{name} failed: {why}")

    def show(self, study: Any, done: int, what: str) -> None:
        """Say what happens, when so many runs of unfinished trials are done."""
        seeds = len(self.plan.seeds)
        self.progress(len(self._rows(study)) * seeds + done, self.plan.trials * seeds, what)

    def _sampler(self, trial: Any) -> Any:
        from optuna.exceptions import ExperimentalWarning
        from optuna.samplers import PartialFixedSampler, RandomSampler, TPESampler
        from optuna.trial import TrialState

        running = trial.study.get_trials(deepcopy=False, states=(TrialState.RUNNING,))
        others = [each for each in running if each.number != trial.number]
        if self.plan.sampler == "tpe":
            # A new seed for each trial: one process always tries the same values, two at once try different ones.
            return TPESampler(seed=self.plan.sampler_seed + len(others) + len(self._rows(trial.study)))
        missing = self._missing(trial.study) or grid_points(self.plan.searches)
        taken = [each.user_attrs.get(VALUES) for each in others]
        free = [values for values in missing if values not in taken] or missing
        # Leave the first points to processes that began earlier and have not written their values yet.
        earlier = sum(VALUES not in each.user_attrs and each.number < trial.number for each in others)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ExperimentalWarning)
            return PartialFixedSampler(free[min(earlier, len(free) - 1)], RandomSampler())

    def _missing(self, study: Any) -> list[dict[str, Any]]:
        """The points of the grid that have no result and did not fail in this call."""
        found = [row["values"] for row in self._rows(study)]
        points = grid_points(self.plan.searches)
        return [each for each in points if each not in found and name_values(each) not in self.failed]

    def after_trial(self, study: Any, _trial: Any) -> None:
        """The callback: write the record, and stop the study when nothing is left to try."""
        record = self.write_record(study)
        if not self._missing(study) if self.plan.sampler == "grid" else len(record.trials) >= self.plan.trials:
            study.stop()

    def write_record(self, study: Any) -> SweepRecord:
        """Write the finished trials; again if another process finished one meanwhile and may have written first."""
        while True:
            rows, best = self._rows(study), None
            if rows:
                best = (max if self.plan.higher else min)(rows, key=lambda row: row["value"])
                best = best | {"overrides": [override(*each) for each in best["values"].items()]}
            record = SweepRecord(self.plan.setup, self.plan.trials, tuple(rows), best, self.made)
            write_record(record, self.out / RECORD, growing=True)
            if len(self._rows(study)) == len(rows):
                return record

    def _rows(self, study: Any) -> list[dict[str, Any]]:
        """The results for the record: of a grid, the first result of each point in the grid's order."""
        from optuna.trial import TrialState

        rows = [
            {"values": each.user_attrs[VALUES], "value": each.value, "scores": each.user_attrs[SCORES]}
            for each in study.get_trials(deepcopy=False, states=(TrialState.COMPLETE,))
        ]
        if self.plan.sampler == "tpe":
            return rows
        points = grid_points(self.plan.searches)
        first = {points.index(row["values"]): row for row in reversed(rows)}
        return [first[index] for index in sorted(first)]


def _run_errand(errand: Errand, metric: str, keep_weights: bool, progress: object) -> tuple[str, Any]:  # noqa: ARG001
    """On a machine of a cluster: a run's score, or why it failed."""
    try:
        errand.check()
        return "score", _run(errand.recipe, errand.config, errand.folder, metric, keep_weights)
    except Exception as error:  # models, drivers and disks fail in many ways
        return "failed", in_one_line(error)


def _run(recipe: Recipe, config: TrainConfig, folder: Path, metric: str, keep_weights: bool) -> dict[str, Any]:
    """The score of one run; only what its folder does not hold yet is done, by one process at a time."""
    (dev,) = recipe.data.test
    try:
        with lock_run(folder):
            check_folder(folder, is_run(folder), but=(LOG,))
            folder.mkdir(exist_ok=True)
            # The bars of runs would disturb the sweep's bar, so their output goes to a log.
            with (folder / LOG).open("a", encoding="utf-8") as log, redirect_stdout(log), redirect_stderr(log):
                finish_run(plan_run(recipe, config, folder), recipe, "model" if keep_weights else "records")
    except DivergedError as error:
        logger.warning("%s: %s; it counts as if it had answered nothing", folder.name, error)
        return silent_score(dev, metric)
    return dev_score(folder, dev, metric)


def open_study(storage: str, name: str, plan: SweepPlan) -> Any:
    """The study of this name, created if there is none; one of another sweep is refused with a list of differences."""
    opened = open_storage(storage)
    import optuna

    direction: Any = "maximize" if plan.higher else "minimize"
    study = optuna.create_study(storage=opened, study_name=name, direction=direction, load_if_exists=True)
    if SETUP not in study.user_attrs:
        if study.get_trials(deepcopy=False):
            raise ConfigError(
                f"{storage} holds a study {name!r} that placevalue did not begin: choose another name (--study)"
            )
        study.set_user_attr(SETUP, plan.setup)
    if changed := find_differences(with_new_names(study.user_attrs[SETUP]), json.loads(json.dumps(plan.setup))):
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
        raise PlacevalueError(f"a sweep needs optuna: pip install 'placevalue[all]' ({error})") from None
    scheme, separator, rest = storage.partition("://")
    if not separator:
        Path(storage).parent.mkdir(parents=True, exist_ok=True)
    try:
        if not separator:
            _check_journal(Path(storage))
            return storages.JournalStorage(journal.JournalFileBackend(storage))
        if scheme.startswith("redis"):
            return storages.JournalStorage(journal.JournalRedisBackend(storage))
        if scheme == "grpc":
            host, _, port = rest.strip("/").partition(":")
            return storages.GrpcStorageProxy(host=host, port=int(port or 13000))
        return storages.RDBStorage(storage)
    except (ImportError, ValueError, SQLAlchemyError, StorageInternalError) as error:
        raise ConfigError(f"the storage {storage!r} cannot be used: {' '.join(str(error).split())}") from None


def _check_journal(path: Path) -> None:
    """Refuse a file that is no journal, to which Optuna would append."""
    if not path.exists():
        return
    with path.open("rb") as file:
        line = file.readline()
    if line and b'"op_code"' not in line:
        raise ValueError("it exists and is no journal of Optuna")
