"""What a sweep tries: fields of a recipe by their dotted path, each with a list or a range of values.

- `training.ce_weight=0.4:0.8:0.05`: from 0.4 to 0.8 in steps of 0.05
- `training.learning_rate=1e-5:1e-3:log`: anything in between, uniform on a logarithmic scale
- `training.epochs=5:50`: anything in between
- `training.batch_size=16,32,64`: one of these
"""

import json
import math
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, fields
from decimal import Decimal
from functools import partial
from itertools import product
from pathlib import Path
from types import UnionType
from typing import Any, Literal, get_args, get_type_hints

from placevalue.common.errors import ConfigError, PlacevalueError
from placevalue.common.hub import load_config
from placevalue.common.validation import nearest, one_of
from placevalue.common.yaml_values import parse_yaml
from placevalue.data import data_checksum
from placevalue.evaluation.metrics import METRICS, metric_values, read_answer
from placevalue.experiments.comparison import CE_WEIGHT, LOSS_WEIGHT, RANKING, TuningSettings, weight_of
from placevalue.experiments.methods import METHODS
from placevalue.experiments.recipe import (
    RENAMED,
    Recipe,
    TrainConfig,
    answering_dev,
    field_help,
    make_recipe,
    method_faults,
    seed_faults,
    set_value,
)
from placevalue.experiments.settings import unknown_names

Sampler = Literal["grid", "tpe"]
SAMPLERS: tuple[Sampler, ...] = get_args(Sampler)
SWEEPABLE = RANKING
"""The metrics that say which of two trials is better."""
PAPER_SEARCH = f"{CE_WEIGHT}=0.4:0.8:0.05"
"""The paper's search for its lambda."""
_NUMBER = r"[-+]?(?:\d+\.?\d*|\.\d+)(?:[eE][-+]?\d+)?"
_RANGE = re.compile(rf"({_NUMBER}):({_NUMBER})(?::(.*))?")
_FIXED = {
    "model": "a sweep is of one model",
    "data.dev": "values are chosen by it",
    "data.test": "nothing is chosen by it",
    "methods": "a sweep is of one method, see --method",
    "seeds": "the mean over them counts, see --seeds",
    "baseline": "it trains nothing",
    "contrasts": "they train nothing",
} | {f"tuning.{each.name}": "it is a search itself, which `reproduce` does" for each in fields(TuningSettings)}
"""Fields that cannot be searched, and why."""


@dataclass(frozen=True)
class Search:
    """A field of the recipe and what to try for it: `values`, or anything between `low` and `high`."""

    path: str
    values: tuple[Any, ...] = ()
    low: int | float | None = None
    high: int | float | None = None
    log: bool = False

    def to_dict(self) -> dict[str, Any]:
        """As plain values, for records."""
        return {"values": list(self.values)} if self.values else {"low": self.low, "high": self.high, "log": self.log}

    def suggest(self, trial: Any) -> Any:
        """The value that the sampler of an Optuna trial chooses."""
        if self.low is None or len(self.values) == 1:
            return trial.suggest_categorical(self.path, self.values)
        suggest = trial.suggest_int if isinstance(self.low, int) else trial.suggest_float
        if not self.values:
            return suggest(self.path, self.low, self.high, log=self.log)
        value = suggest(self.path, self.low, self.high, step=round(self.values[1] - self.values[0], 12))
        return min(self.values, key=lambda each: abs(each - value))  # 0.55, not 0.55000000000000004


def read_searches(texts: Sequence[str], recipe: Recipe, method: str) -> tuple[tuple[Search, ...], list[str]]:
    """Parse searches and try their values on the recipe; returns the searches and all faults."""
    found: dict[str, Search] = {}
    faults: list[str] = []
    for text in texts:
        if (search := _check(_read, text, faults)) is None:
            continue
        if search.path in found:
            faults.append(f"{search.path} is searched twice: list all its values in one search")
        found[search.path] = search
        for value in search.values or (search.low, search.high):
            _check(partial(with_values, recipe), {search.path: value}, faults)
    for path in (CE_WEIGHT, LOSS_WEIGHT):
        able = [name for name in METHODS if weight_of(name) == path]
        if path in found and method in METHODS and method not in able:
            faults.append(f"{path} has no effect on {method}: choose one of {', '.join(able)}")
    return tuple(found.values()), faults


def _check(function: Callable[..., Any], given: object, faults: list[str]) -> Any:
    """What a function returns, or None after a fault, which is added to the list."""
    try:
        return function(given)
    except (PlacevalueError, OSError) as error:
        return faults.append(str(error))


def _read(text: str) -> Search:
    path, _, given = text.partition("=")
    path = RENAMED.get(path, path)
    known = dict(field_help(Recipe))
    if not given:
        raise ConfigError(f"{text!r}: expected a field and its values, such as {PAPER_SEARCH}")
    if path not in known:
        near = nearest(path, known)
        raise ConfigError(f"{path} is unknown: " + (f"is {near} meant?" if near else f"expected {', '.join(known)}"))
    if path in _FIXED:
        raise ConfigError(f"{path} cannot be searched: {_FIXED[path]}")
    if (borders := _RANGE.fullmatch(given)) is None:
        values = [parse_yaml(each, text) for each in given.split(",")]
        return Search(path, tuple(value for index, value in enumerate(values) if value not in values[:index]))
    kind = _kind(path)
    if kind not in (int, float):
        raise ConfigError(f"{text!r}: {path} is not a number: list its values, separated by commas")
    return _read_range(text, path, kind, *borders.groups())


def _read_range(text: str, path: str, kind: type, low: str, high: str, how: str | None) -> Search:
    width = Decimal(high) - Decimal(low)
    if width <= 0:
        raise ConfigError(f"{text!r}: expected LOW:HIGH, but {low} is not below {high}")
    if how not in (None, "log") and not (re.fullmatch(_NUMBER, how) and 0 < Decimal(how) <= width):
        raise ConfigError(f"{text!r}: expected a step above 0 and up to {width}, or log, found {how!r}")
    if how == "log" and Decimal(low) <= 0:
        raise ConfigError(f"{text!r}: a logarithmic range starts above 0")
    if kind is int and any(Decimal(each) % 1 for each in (low, high, how or "1") if each != "log"):
        raise ConfigError(f"{text!r}: {path} is a whole number: give whole numbers")
    borders = kind(Decimal(low)), kind(Decimal(high))
    if how is None or how == "log":
        return Search(path, (), *borders, log=how == "log")
    # In decimals, so that 0.4 + 3 * 0.05 is 0.55 and not 0.5500000000000002.
    steps = math.floor(width / Decimal(how))
    values = tuple(kind(Decimal(low) + step * Decimal(how)) for step in range(steps + 1))
    return Search(path, values, values[0], values[-1])


def _kind(path: str) -> Any:
    """The type of a field, without None."""
    kind: Any = Recipe
    for name in path.split("."):
        kind = get_type_hints(kind)[name]
    return get_args(kind)[0] if isinstance(kind, UnionType) else kind


def with_values(recipe: Recipe, values: Mapping[str, Any]) -> Recipe:
    """The recipe with other values, given by their dotted paths."""
    changed = asdict(recipe)
    for path, value in values.items():
        set_value(changed, path, value)
    return make_recipe(changed, ", ".join(override(*each) for each in values.items()))


def grid_points(searches: Sequence[Search]) -> list[dict[str, Any]]:
    """Every combination of values, the last field changing fastest."""
    paths = [each.path for each in searches]
    return [dict(zip(paths, values, strict=True)) for values in product(*(each.values for each in searches))]


def override(path: str, value: Any) -> str:
    """A value as an override on the command line: `training.ce_weight=0.45`, `numbers.ignore=null`."""
    return f"{path}={value if isinstance(value, str) else json.dumps(value)}"


def name_values(values: Mapping[str, Any]) -> str:
    """A folder name: `ce_weight=0.45`, or with whole paths if two fields have the same last part."""
    short = [path.rpartition(".")[2] for path in values]
    names = short if len(set(short)) == len(short) else list(values)
    text = ",".join(f"{name}={value}" for name, value in zip(names, values.values(), strict=True))
    return re.sub(r"[^\w.,=+-]", "-", text)


@dataclass(frozen=True)
class SweepPlan:
    """A checked sweep, made by `plan_sweep`."""

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
        """Whether a higher score is better."""
        return METRICS[self.metric].direction == "higher"

    @property
    def setup(self) -> dict[str, Any]:
        """Everything that the scores depend on; two sweeps with the same setup are the same."""
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
        """The runs of a trial, each with its folder inside the sweep's; their test set is dev."""
        recipe = answering_dev(with_values(self.recipe, values))
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
    """Check a sweep before anything runs, report all faults together, and return the plan; for `Args` see `sweep`."""
    method = recipe.methods[0] if method is None else method
    searches = [searches] if isinstance(searches, str) else searches
    chosen = tuple(dict.fromkeys(recipe.seeds if seeds is None else seeds))
    faults = method_faults(method) + [fault for seed in chosen for fault in seed_faults("seeds", seed)]
    faults += seed_faults("sampler_seed", sampler_seed)
    found, wrong = read_searches(searches, recipe, method)
    faults += wrong + _sampler_faults(found, sampler, trials) + unknown_names(recipe.training)
    if metric not in SWEEPABLE:
        faults.append(f"the metric {metric!r} cannot rank trials: expected {one_of(SWEEPABLE, metric)}")
    if not chosen or not (searches or faults):
        faults.append("a sweep needs at least one seed and one field to search")
    if recipe.data.dev is None:
        faults.append("data.dev is missing: a sweep chooses values by their scores on dev")
    _check(load_config, recipe.model, faults)
    # Scoring one answer shows whether the packages for scoring are installed.
    _check(lambda answer: metric_values([read_answer(answer, answer)]), "1", faults)
    trained = [value for search in found if search.path == "data.train" for value in search.values]
    specs = dict.fromkeys(spec for spec in (recipe.data.train, recipe.data.dev, *trained) if spec is not None)
    checksums = {spec: _check(data_checksum, spec, faults) for spec in specs}
    if faults:
        raise ConfigError("; ".join(faults))
    total = len(grid_points(found)) if sampler == "grid" else trials
    assert total is not None
    return SweepPlan(recipe, method, chosen, found, sampler, total, sampler_seed, metric, checksums)


def _sampler_faults(searches: Sequence[Search], sampler: str, trials: int | None) -> list[str]:
    if sampler not in SAMPLERS:
        return [f"the sampler {sampler!r} is unknown: expected {one_of(SAMPLERS, sampler)}"]
    if sampler == "tpe":
        return [] if trials is not None and trials > 0 else [f"trials={trials}: tpe needs at least 1"]
    faults = [] if trials is None else [f"trials={trials}: a grid tries all its points; use trials only with tpe"]
    return faults + [
        f"{search.path}: a grid needs steps, give {search.low}:{search.high}:STEP, a list, or the sampler tpe"
        for search in searches
        if not search.values
    ]
