"""reproduce(): train, predict and score every method and seed of a recipe; only what is missing or stale is done.

An experiment is a folder with `recipe.yaml` and, for each run, `METHOD-SEED/` with `train.json`, the model and
`predictions/`. Its records are compared with the recipe, so an experiment can be interrupted at any moment and
continues with what is left.
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

from placevalue.common.errors import ConfigError, DataError, PlacevalueError, in_one_line
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
    default_folder,
    load_recipe,
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

logger = logging.getLogger(__name__)
STALE = "stale"
STAGES = ("train", "generate", "evaluate")
COMPARED_WITH = "untouched"
HEADER = "# The resolved recipe of an experiment, written by placevalue reproduce."
FIRST_KEYS = {"model", "data", "methods", "seeds", "ce_weights", "numbers", "training", "generation"}
"""The keys of every resolved recipe from before they had a header."""
Keep = Literal["everything", "model", "records"]
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

    @property
    def name(self) -> str:
        """The name of the run's folder."""
        return self.folder.name


@dataclass(frozen=True)
class Plan:
    """All runs of an experiment."""

    recipe: Recipe
    folder: Path
    runs: tuple[Run, ...]

    @property
    def todo(self) -> tuple[Run, ...]:
        """The runs with stages left to do."""
        return tuple(run for run in self.runs if run.todo)


def plan_experiment(recipe: Recipe, folder: str | os.PathLike[str]) -> Plan:
    """What an experiment would do; changes nothing.

    `untouched`, the model with its own tokenizer, is always included. All methods of a seed come before the next seed,
    so that an experiment that stops early still compares all methods.
    """
    folder = Path(folder)
    if COMPARED_WITH not in recipe.methods:
        recipe = replace(recipe, methods=(COMPARED_WITH, *recipe.methods))
    checksum = cache(data_checksum)
    runs = [
        plan_run(recipe, recipe.run(method, seed), folder / f"{method}-{seed}", checksum)
        for seed in recipe.seeds
        for method in recipe.methods
    ]
    return Plan(recipe, folder, tuple(runs))


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
        keep: What to keep of a finished run: `everything`, its `model` without checkpoints, or only its `records` and
            predictions.
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
        write_whole(plan.folder / RECIPE, f"{HEADER}\n{to_yaml(asdict(plan.recipe))}")
        work, progress = partial(_attempt, recipe=plan.recipe, keep=keep), progress or (lambda *_: None)
        if cluster is not None and plan.todo:
            failures = _on_cluster(plan, keep, cluster, jobs, progress)
        elif jobs is not None and jobs > 1:
            failures = run_at_once(work, {run.name: run for run in plan.todo}, jobs, plan.folder / LOGS, progress)
        else:
            done = {run.name: work(run, progress=progress) for run in plan.todo}
            failures = {name: why for name, why in done.items() if why is not None}
    if failures:
        lines = "; ".join(f"{name}: {why}" for name, why in failures.items())
        raise PlacevalueError(f"{len(failures)} of {len(plan.todo)} runs failed, start again to retry them: {lines}")
    return replace(plan, runs=tuple(replace(run, todo=(), stale="") for run in plan.runs))


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
    return _reason(run.name, lambda: finish_run(run, recipe, keep, progress))


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

    def check(self) -> None:
        """Refuse a machine that has other data or another model."""
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


def _on_cluster(plan: Plan, keep: Keep, cluster: Cluster, jobs: int | None, progress: Progress) -> dict[str, str]:
    checksum = cache(data_checksum)
    with Machines(partial(_attempt_errand, keep=keep), plan.folder, cluster, jobs) as room:
        for run in plan.todo:
            _make_way(run)
        errands = {run.name: make_errand(plan.recipe, run.config, run.folder, checksum) for run in plan.todo}
        failures = run_all(errands, room, progress)
    for name in errands.keys() - failures.keys() if keep != "everything" else ():
        remove_checkpoints(plan.folder / name)  # of a run that began here and was done elsewhere
    return failures


def _attempt_errand(errand: Errand, keep: Keep, progress: Progress) -> str | None:
    def finish() -> None:
        errand.check()
        with lock_run(errand.folder):
            finish_run(plan_run(errand.recipe, errand.config, errand.folder), errand.recipe, keep, progress)

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
    if keep == "records":
        remove_model(run.folder, read_record(run.folder / RECORD, TrainRecord))


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
