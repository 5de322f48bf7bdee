"""reproduce(): train, predict and score every method and seed of a recipe; only what is missing or stale is done.

An experiment is a folder with `recipe.yaml` and, for each run, `METHOD-SEED/` with `train.json`, the model and
`predictions/`; the trials of a recipe's `tuning` come first, in `tuning/`. Its records are compared with the recipe, so
an experiment can be interrupted at any moment and continues with what is left.
"""

import gc
import logging
import os
import traceback
from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import asdict, dataclass, replace
from functools import cache, partial
from pathlib import Path
from typing import Any, Literal, get_args

from placevalue.common.errors import ConfigError, DataError, DivergedError, PlacevalueError, in_one_line
from placevalue.common.files import read_object, write_whole
from placevalue.common.lock import LOCK, locked
from placevalue.common.ownership import check_folder
from placevalue.common.records import (
    PREDICTION_RECORD,
    SCORE_RECORD,
    PredictionRecord,
    ScoreRecord,
    TrainRecord,
    read_record,
    record_hash,
)
from placevalue.common.validation import find_differences, one_of
from placevalue.common.yaml_values import parse_yaml
from placevalue.data import data_checksum
from placevalue.data.corpora import expand_data
from placevalue.evaluation.answer_file import pack_answers
from placevalue.evaluation.scoring import evaluate
from placevalue.experiments.cluster import Cluster, Machines
from placevalue.experiments.parallel import run_all, run_at_once
from placevalue.experiments.predict import predict, read_links
from placevalue.experiments.preflight import find_obstacles
from placevalue.experiments.ray_task import LOGS
from placevalue.experiments.recipe import (
    Recipe,
    RecipeOrPath,
    TrainConfig,
    answering_dev,
    default_folder,
    load_recipe,
    method_faults,
    to_yaml,
)
from placevalue.experiments.resume import find_twin
from placevalue.experiments.run_folder import (
    ANSWERS,
    CHECKPOINTS,
    CONFIG,
    RECIPE,
    RECORD,
    SEEN,
    changed_answers,
    find_changes,
    find_model_damage,
    is_run,
    remove_checkpoints,
    remove_model,
    run_checksums,
    weight_files,
)
from placevalue.experiments.tuning import (
    DIVERGED,
    Tuning,
    has_diverged,
    mark_diverged,
    tunings,
    with_own,
)

logger = logging.getLogger(__name__)
STALE = "stale"
STAGES = ("train", "generate", "evaluate")
HEADER = "# The resolved recipe of an experiment, written by placevalue reproduce."
FIRST_KEYS = {"model", "data", "methods", "seeds", "ce_weights", "numbers", "training", "generation"}
"""The keys of every resolved recipe from before they had a header."""
Keep = Literal["everything", "model", "records", "answers"]
Progress = Callable[[str, str, int, int], object]
"""Called with a run's name, its stage, and how much of the stage is done, of how much."""


@dataclass(frozen=True)
class Run:
    """One run of an experiment, and the stages left to do."""

    config: TrainConfig
    folder: Path
    todo: tuple[str, ...]
    """The stages that are missing or stale."""
    stale: str = ""
    """Why existing results do not count."""
    trial: bool = False
    """Whether it is a trial of the recipe's `tuning`, which answers dev and keeps no weights."""
    waits: bool = False
    """Whether its own values are not chosen yet, so that `config` has others."""

    @property
    def name(self) -> str:
        """The name of the run's folder."""
        return self.folder.name


@dataclass(frozen=True)
class Plan:
    """All runs of an experiment."""

    recipe: Recipe
    """With the values that its `tuning` has chosen so far."""
    folder: Path
    runs: tuple[Run, ...]
    trials: tuple[Run, ...] = ()
    """The runs of the recipe's `tuning`, which come first."""

    @property
    def todo(self) -> tuple[Run, ...]:
        """The trials and runs with stages left to do."""
        return tuple(run for run in (*self.trials, *self.runs) if run.todo)


def with_baseline(recipe: Recipe) -> Recipe:
    """The recipe with its baseline among the methods."""
    named = recipe.baseline in recipe.methods
    return recipe if named else replace(recipe, methods=(recipe.baseline, *recipe.methods))


def plan_experiment(recipe: Recipe, folder: str | os.PathLike[str]) -> Plan:
    """What an experiment would do; changes nothing.

    The recipe's `baseline` is always included. All methods of a seed come before the next seed, so that an experiment
    that stops early still compares all methods.
    """
    folder, recipe = Path(folder), with_baseline(recipe)
    checksum = cache(data_checksum)
    trials: list[Run] = []
    waiting = set()
    for tuning in tunings(recipe, folder, checksum):
        planned = plan_trials(tuning, checksum)
        trials += planned
        if any(run.todo for run in planned):
            waiting.add(tuning.method)
        elif best := (tuning.recorded() or tuning.result()).best:
            recipe = with_own(recipe, tuning.method, best["values"])
    runs = [
        Run(recipe.run(method, seed), folder / f"{method}-{seed}", STAGES, waits=True)
        if method in waiting
        else plan_run(recipe, recipe.run(method, seed), folder / f"{method}-{seed}", checksum)
        for seed in recipe.seeds
        for method in recipe.methods
    ]
    return Plan(recipe, folder, tuple(runs), tuple(trials))


def plan_trials(tuning: Tuning, checksum: Callable[[str], str] = data_checksum) -> list[Run]:
    """The runs of a method's trials; nothing is left of them if there is a record of their scores."""
    recorded, recipe = tuning.recorded() is not None, answering_dev(tuning.recipe)
    found = []
    for values in tuning.trials:
        for config, folder in tuning.runs(values):
            done = recorded or has_diverged(folder, config, tuning.checksums)
            run = Run(config, folder, ()) if done else plan_run(recipe, config, folder, checksum)
            found.append(replace(run, trial=True))
    return found


def plan_run(recipe: Recipe, config: TrainConfig, folder: Path, checksum: Callable[[str], str] = data_checksum) -> Run:
    """The stages left of one run, whose training `config` describes, and its predictions and scores `recipe`."""
    seen = run_checksums(config, checksum)
    tested = {spec: checksum(spec) for spec in expand_data(recipe.data.test)}
    return Run(config, folder, *_left(config.to_dict() | {SEEN: seen}, recipe, tested, folder))


def _left(wanted: dict[str, Any], recipe: Recipe, tested: dict[str, str], folder: Path) -> tuple[tuple[str, ...], str]:
    """The stages left of a run, and why existing results are stale."""
    if not (folder / RECORD).exists():
        began = (folder / CONFIG).exists() and (folder / CHECKPOINTS).exists()
        changed = find_changes(read_object(folder / CONFIG), wanted) if began else []
        return STAGES, "; ".join(changed)
    record = read_record(folder / RECORD, TrainRecord)
    if changed := find_changes(record.config | {SEEN: record.data}, wanted):
        return STAGES, "; ".join(changed)
    why = _stale_answers(record, recipe, tested, folder / ANSWERS)
    if why is not None:
        if not (folder / "config.json").exists() or not weight_files(folder):
            return STAGES, why or "the weights were not kept"
        if damage := find_model_damage(folder, record):
            return STAGES, why if find_twin(folder, record) else f"it is damaged: {'; '.join(damage)}"
        return STAGES[1:], why
    if not (folder / ANSWERS / SCORE_RECORD).exists():
        return STAGES[2:], ""
    score = read_record(folder / ANSWERS / SCORE_RECORD, ScoreRecord)
    if score.prediction != record_hash(read_record(folder / ANSWERS / PREDICTION_RECORD, PredictionRecord)):
        return STAGES[2:], "the scores are of other predictions"
    return (), ""


def _stale_answers(record: TrainRecord, recipe: Recipe, tested: dict[str, str], folder: Path) -> str | None:
    """Why predictions must be made again; an empty text if there are none or only some, None if they are complete."""
    began = read_links(folder)
    if began is None:
        return ""
    if began["train"] != record_hash(record):
        return "the predictions are of another model"
    why = "; ".join(changed_answers(recipe, tested, began["data"], began["config"]))
    return why or (None if (folder / PREDICTION_RECORD).exists() else "")


def prepare_experiment(recipe: Recipe, folder: str | os.PathLike[str]) -> Plan:
    """Check everything that would stop an experiment, report all of it together, and return the plan."""
    recipe = with_baseline(recipe)
    if faults := find_obstacles(recipe, Path(folder)):
        raise ConfigError("; ".join(faults))
    return plan_experiment(recipe, folder)


def reproduce(
    recipe: RecipeOrPath | Plan,
    out: str | os.PathLike[str] | None = None,
    jobs: int | None = None,
    keep: Keep = "model",
    progress: Progress | None = None,
    cluster: Cluster | None = None,
) -> Plan:
    """Train every method of a recipe with every seed, answer the test problems, and score them.

    Finished runs that fit the recipe stay as they are and interrupted ones continue. Runs that no longer fit are moved
    to `stale/` first. If a run fails, the others still run.

    Args:
        recipe: A recipe, the path of its YAML file, or a plan from `prepare_experiment`, which has its own folder.
        out: The folder of the experiment. Default: `runs/RECIPE`, by the name of the recipe's file.
        jobs: Runs at once, each in its own process with a log in `logs/`; a single one runs in this process. Default:
            1, or as many as the cluster has room for.
        keep: What to keep of a finished run: `everything`, its `model` without checkpoints, only its `records` and
            predictions, or of these only ids and `answers`, compressed, where the data has the rest.
        progress: Called with a run's name, its stage, and how much of the stage is done, of how much.
        cluster: A Ray cluster to run on. Default: this machine.

    Example:
        >>> reproduce("recipes/quick.yaml", jobs=4)  # doctest: +SKIP
    """
    if jobs is not None and jobs < 1:
        raise ConfigError(f"jobs={jobs}: expected at least 1")
    if keep not in get_args(Keep):
        raise ConfigError(f"keep={keep!r}: expected {one_of(get_args(Keep), keep)}")
    if not isinstance(recipe, Plan):
        recipe = prepare_experiment(load_recipe(recipe), out or default_folder(recipe))
    plan = recipe
    check_folder(plan.folder, is_experiment(plan.folder))
    with locked(plan.folder):
        _write_recipe(plan)
        do = partial(_do, keep=keep, jobs=jobs, cluster=cluster, progress=progress or (lambda *_: None))
        trials = [run for run in plan.todo if run.trial]
        failures = do(trials, plan)
        if plan.trials:
            plan = plan_experiment(plan.recipe, plan.folder)
            _write_choices(plan)
            _write_recipe(plan)
        if keep == "answers":
            for run in plan.runs:
                if not run.todo:
                    pack_answers(run.folder / ANSWERS)
        runs = [run for run in plan.todo if not run.trial and not run.waits]
        failures |= do(runs, plan)
    if failures:
        lines = "; ".join(f"{name}: {why}" for name, why in failures.items())
        waiting = [run.name for run in plan.runs if run.waits]
        lines += f"; not begun without all trials: {', '.join(waiting)}" if waiting else ""
        count = f"{len(failures)} of {len(trials) + len(runs)} runs failed"
        raise PlacevalueError(f"{count}, start again to retry them: {lines}")
    return replace(plan, runs=tuple(replace(run, todo=(), stale="") for run in plan.runs))


def _do(
    runs: list[Run], plan: Plan, keep: Keep, jobs: int | None, cluster: Cluster | None, progress: Progress
) -> dict[str, str]:
    """Finish runs, several at once if wanted; returns why some failed, by name."""
    if cluster is not None and runs:
        return _on_cluster(runs, plan, keep, cluster, jobs, progress)
    work = partial(_attempt, recipe=plan.recipe, keep=keep)
    if jobs is not None and jobs > 1 and runs:
        return run_at_once(work, {run.name: run for run in runs}, jobs, plan.folder / LOGS, progress)
    done = {run.name: work(run, progress=progress) for run in runs}
    return {name: why for name, why in done.items() if why is not None}


def _write_recipe(plan: Plan) -> None:
    write_whole(plan.folder / RECIPE, f"{HEADER}\n{to_yaml(asdict(plan.recipe))}")


def _write_choices(plan: Plan) -> None:
    """Record which trial of each method was chosen, and why."""
    for tuning in tunings(plan.recipe, plan.folder, cache(data_checksum)):
        if not any(run.todo for run in plan.trials if run.config.method == tuning.method):
            tuning.write()


def is_experiment(folder: Path) -> bool:
    """Whether a folder is one of reproduce(): its recipe says so or, as older ones do, has every key of its time."""
    recipe = folder / RECIPE
    if not recipe.is_file():
        return any(map(is_run, folder.glob("*/")))  # somebody may have removed the recipe
    if recipe.read_bytes().startswith(HEADER.encode()):
        return True
    values = parse_yaml(recipe.read_bytes(), recipe)
    return isinstance(values, dict) and values.keys() >= FIRST_KEYS


def _attempt(run: Run, recipe: Recipe, keep: Keep, progress: Progress) -> str | None:
    """Finish a run; returns why it failed, so that the others still run."""
    return _reason(run.name, lambda: _finish_or_mark(run, recipe, keep, progress))


def _finish_or_mark(run: Run, recipe: Recipe, keep: Keep, progress: Progress) -> None:
    """Finish a run; a trial answers dev and keeps no weights, and one whose loss became NaN is marked."""
    if not run.trial:
        return finish_run(run, recipe, keep, progress)
    (run.folder / DIVERGED).unlink(missing_ok=True)
    try:
        finish_run(run, answering_dev(recipe), "records", progress)
    except DivergedError as error:
        logger.error("%s failed: %s", run.name, error)
        mark_diverged(run.folder, run.config, run_checksums(run.config), in_one_line(error))
        remove_checkpoints(run.folder)
    return None


def _reason(name: str, finish: Callable[[], object]) -> str | None:
    try:
        finish()
    except Exception as error:  # models, drivers and disks fail in many ways
        logger.error("%s failed: %s", name, error if isinstance(error, PlacevalueError) else traceback.format_exc())
        return in_one_line(error)
    return None


@dataclass(frozen=True)
class Errand:
    """A run for another machine: it plans the run again there, since it may have been begun before."""

    recipe: Recipe
    config: TrainConfig
    folder: Path
    seen: dict[str, str]
    """The checksums of its data and model here."""
    trial: bool = False
    """Whether it is a trial of the recipe's `tuning`."""

    def check(self) -> None:
        """Refuse a machine that has other data or another model, or that does not know the method."""
        if faults := method_faults(self.config.method):
            raise ConfigError(f"{faults[0]}. What a program adds to METHODS does not reach the machines of a cluster")
        if changed := find_differences(self.seen, _all_checksums(self.recipe, self.config, data_checksum)):
            raise DataError(f"its machine has other data or another model: {'; '.join(changed)}")


def make_errand(
    recipe: Recipe, config: TrainConfig, folder: Path, checksum: Callable[[str], str] = data_checksum
) -> Errand:
    """A run for another machine, with what it must find there."""
    return Errand(recipe, config, folder, _all_checksums(recipe, config, checksum))


def _all_checksums(recipe: Recipe, config: TrainConfig, checksum: Callable[[str], str]) -> dict[str, str]:
    tested = {spec: checksum(spec) for spec in expand_data(recipe.data.test)}
    return tested | run_checksums(config, checksum)


def lock_run(folder: Path) -> AbstractContextManager[Any]:
    """Keep a run for this process, through all its stages; wait while another process has it."""
    return locked(folder.parent, wait=True, name=f".{folder.name}{LOCK}")


def _on_cluster(
    runs: list[Run], plan: Plan, keep: Keep, cluster: Cluster, jobs: int | None, progress: Progress
) -> dict[str, str]:
    checksum = cache(data_checksum)
    with Machines(partial(_attempt_errand, keep=keep), plan.folder, cluster, jobs) as room:
        errands = {}
        for run in runs:
            _make_way(run)
            recipe = answering_dev(plan.recipe) if run.trial else plan.recipe
            errands[run.name] = replace(make_errand(recipe, run.config, run.folder, checksum), trial=run.trial)
        failures = run_all(errands, room, progress)
    for run in runs if keep != "everything" else ():
        if run.name not in failures:
            remove_checkpoints(run.folder)  # of a run that began here and was done elsewhere
    return failures


def _attempt_errand(errand: Errand, keep: Keep, progress: Progress) -> str | None:
    def finish() -> None:
        errand.check()
        with lock_run(errand.folder):
            run = replace(plan_run(errand.recipe, errand.config, errand.folder), trial=errand.trial)
            _finish_or_mark(run, errand.recipe, keep, progress)

    return _reason(errand.folder.name, finish)


def finish_run(run: Run, recipe: Recipe, keep: Keep = "model", progress: Progress = lambda *_: None) -> None:
    """Do the stages left of a run."""
    from placevalue.experiments.train import train

    answers = run.folder / ANSWERS
    _make_way(run)
    if "train" in run.todo:
        train(run.config, run.folder, resume=True, progress=partial(progress, run.name, "train"))
        gc.collect()  # Trainer's reference cycles would keep the model in memory beside the next one
    if keep != "everything":
        remove_checkpoints(run.folder)
    if "generate" in run.todo:
        settings: Any = asdict(recipe.generation)
        predict(run.folder, recipe.data.test, answers, progress=partial(progress, run.name, "generate"), **settings)
    if "evaluate" in run.todo:
        evaluate(answers)
        progress(run.name, "evaluate", 1, 1)
    if keep in ("records", "answers"):
        remove_model(run.folder, read_record(run.folder / RECORD, TrainRecord))
    if keep == "answers":
        pack_answers(answers)


def _make_way(run: Run) -> None:
    """Move what a run's folder holds to `stale/`, if it no longer fits the recipe."""
    if run.stale:
        answers = run.folder / ANSWERS
        results = {"train": run.folder, "generate": answers, "evaluate": answers / SCORE_RECORD}
        _set_aside(results[run.todo[0]], run.folder.parent)


def _set_aside(path: Path, experiment: Path) -> None:
    """Move results that no longer fit the recipe to `stale/`."""
    if not path.exists():
        return
    name, number = "-".join(path.relative_to(experiment).parts), 1
    while (target := experiment / STALE / f"{name}-{number}").exists():
        number += 1
    target.parent.mkdir(exist_ok=True)
    path.rename(target)
    logger.warning("%s no longer fits the recipe: moved to %s", path, target)
