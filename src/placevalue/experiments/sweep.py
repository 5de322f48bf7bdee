"""A search for the best values of some fields of a recipe, by scores on dev alone; Optuna is the engine.

A trial is one combination of values: a run of training for each seed, answers to dev, their scores. Each run has a
folder named by its values, so nothing finished is done twice. The same command started again goes on; started twice,
on one machine or on several that share a storage, it splits the work.
"""

import contextlib
import logging
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

from placevalue.common.errors import ConfigError, DataError, DivergedError, PlacevalueError, in_one_line
from placevalue.common.files import locked
from placevalue.common.hub import load_config
from placevalue.common.records import SCORE_RECORD, ScoreRecord, SweepRecord, provenance, read_record, write_record
from placevalue.data import data_checksum, load_data
from placevalue.evaluation.metrics import METRICS, metric_values, read_answer
from placevalue.evaluation.statistics import bootstrap
from placevalue.experiments.methods import METHODS
from placevalue.experiments.recipe import Recipe, TrainConfig, unknown_names
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
from placevalue.experiments.study import SCORES, VALUES, claim_trial, finished_trials, open_study, signs_of_life

logger = logging.getLogger(__name__)
JOURNAL, RECORD, LOG = "study.journal", "sweep.json", "train.log"
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
    plan: SweepPlan,
    out: str | os.PathLike[str],
    *,
    storage: str | None = None,
    study: str = "sweep",
    keep_weights: bool = False,
    progress: Progress | None = None,
) -> SweepRecord:
    """Do what is left of a sweep, and return the record that is now in the folder.

    Args:
        plan: From `plan_sweep`.
        out: Where runs and record go.
        storage: What processes share, see `open_storage`; a journal file in the folder where none is given.
        study: The sweep's name in a storage that holds several.
        keep_weights: Keep the weights of every run; they are large, and scores need them no longer.
        progress: Called before and after each run.

    Example:
        >>> sweep(plan_sweep(recipe, method="aux-soft"), "runs/lambda").best["overrides"]  # doctest: +SKIP
        ['training.ce_weight=0.55']
    """
    if int(os.environ.get("WORLD_SIZE", 1)) > 1:
        raise ConfigError("a sweep runs in one process: start the command once for each device instead of a launcher")
    out = Path(out)
    storage = str(out / JOURNAL) if storage is None else storage
    opened = open_study(storage, study, plan.setup, plan.higher)
    made = provenance()
    record = _write(plan, opened, out, made)
    tell = progress or (lambda _done, _all, _what: None)
    failed: dict[str, str] = {}
    skipped: list[dict[str, Any]] = []
    asked = (opened, plan.searches, plan.sampler, plan.trials, plan.sampler_seed, skipped)
    while (claim := claim_trial(*asked)) is not None:
        try:
            with signs_of_life(claim):
                scores = _run_trial(plan, claim.values, out, keep_weights, len(record.trials), tell)
        except BaseException as error:
            claim.give_up()
            if not isinstance(error, Exception) or plan.sampler != "grid":
                raise
            logger.warning("%s failed: %s", name_values(claim.values), error)
            failed[name_values(claim.values)] = in_one_line(error)
            skipped.append(claim.values)
            continue
        claim.finish(_mean(scores), scores)
        record = _write(plan, opened, out, made)
    if failed:
        raise PlacevalueError(
            f"{len(failed)} of {plan.trials} trials failed, start again to retry them: "
            + "; ".join(f"{name}: {why}" for name, why in failed.items())
        )
    tell(len(record.trials) * len(plan.seeds), plan.trials * len(plan.seeds), "")
    return record


def _run_trial(
    plan: SweepPlan, values: dict[str, Any], out: Path, keep_weights: bool, before: int, tell: Progress
) -> dict[str, Any]:
    """The score of each seed."""
    total, name = plan.trials * len(plan.seeds), name_values(values)
    scores = {}
    for number, (recipe, config, folder) in enumerate(plan.runs(values)):
        done = before * len(plan.seeds) + number
        tell(done, total, f"{name}, seed {config.seed}")
        scores[str(config.seed)] = _run(recipe, config, out / folder, plan.metric, keep_weights)
        tell(done + 1, total, name)
    return scores


def _run(recipe: Recipe, config: TrainConfig, folder: Path, metric: str, keep_weights: bool) -> dict[str, Any]:
    """Train, answer dev and score, as far as the folder does not hold it already."""
    (dev,) = recipe.data.test
    try:
        with locked(folder), _logged(folder / LOG):
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


def _write(plan: SweepPlan, study: Any, out: Path, made: dict[str, Any]) -> SweepRecord:
    """Write what is finished, and again if others finished something meanwhile: they may have written before us."""
    while True:
        trials = finished_trials(study)
        record = _record(plan, trials, made)
        write_record(record, out / RECORD, growing=True)
        if len(finished_trials(study)) == len(trials):
            return record


def _record(plan: SweepPlan, trials: Sequence[Any], made: dict[str, Any]) -> SweepRecord:
    rows = [
        {"values": each.user_attrs[VALUES], "value": each.value, "scores": each.user_attrs[SCORES]} for each in trials
    ]
    if plan.sampler == "grid":
        points = grid_points(plan.searches)
        rows.sort(key=lambda row: points.index(row["values"]))
    best = None
    if rows:
        chosen = (max if plan.higher else min)(rows, key=lambda row: row["value"])
        best = chosen | {"overrides": [override(*each) for each in chosen["values"].items()]}
    return SweepRecord(plan.setup, plan.trials, tuple(rows), best, made)


def _mean(scores: Mapping[str, Mapping[str, Any]]) -> float:
    return sum(float(score["value"]) for score in scores.values()) / len(scores)
