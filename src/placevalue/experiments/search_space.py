"""What a sweep tries: fields of a recipe by their dotted path, each with a list or a range of values.

- `training.ce_weight=0.4:0.8:0.05`: from 0.4 to 0.8 by 0.05
- `training.learning_rate=1e-5:1e-3:log`: anything in between, even on a logarithmic scale
- `training.epochs=5:50`: anything in between
- `training.batch_size=16,32,64`: one of these
"""

import difflib
import itertools
import json
import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from decimal import Decimal
from types import NoneType
from typing import Any, Literal, get_args, get_origin, get_type_hints

from placevalue.common.errors import ConfigError
from placevalue.experiments.methods import METHODS
from placevalue.experiments.recipe import CE_WEIGHT, Recipe, field_help, make_recipe, parse_value

Sampler = Literal["grid", "tpe"]
SAMPLERS: tuple[Sampler, ...] = get_args(Sampler)
PAPER_SEARCH = f"{CE_WEIGHT}=0.4:0.8:0.05"
"""The paper's search for its lambda."""
_NUMBER = r"[-+]?(?:\d+\.?\d*|\.\d+)(?:[eE][-+]?\d+)?"
_RANGE = re.compile(rf"({_NUMBER}):({_NUMBER})(?::(.*))?")
_FIXED = {
    "model": "a sweep is of one model",
    "data.dev": "it is what values are chosen by",
    "data.test": "nothing is chosen by it",
    "methods": "a sweep is of one method, see --method",
    "seeds": "the mean over them is what counts, see --seeds",
}
"""Fields that cannot be searched, and why."""


@dataclass(frozen=True)
class Search:
    """One field and what is tried for it: `values`, or anything between `low` and `high`."""

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
    """The searches that texts describe, and every fault of them; each value is tried on the recipe."""
    found: dict[str, Search] = {}
    faults: list[str] = []
    for text in texts:
        path, _, given = text.partition("=")
        if path in found:
            faults.append(f"{path} is searched twice: give all its values at once")
        try:
            found[path] = _read(text, path, given)
        except ConfigError as error:
            faults.append(str(error))
            continue
        tried = found[path].values or (found[path].low, found[path].high)
        faults += [fault for value in tried if (fault := _try(recipe, path, value))]
    if CE_WEIGHT in found and method in METHODS and METHODS[method].loss is None:
        able = ", ".join(name for name, each in METHODS.items() if each.loss is not None)
        faults.append(f"{CE_WEIGHT} means nothing to {method}, which has no auxiliary loss: choose a method of {able}")
    return tuple(found.values()), faults


def _read(text: str, path: str, given: str) -> Search:
    known = dict(field_help(Recipe))
    if not given:
        raise ConfigError(f"{text!r}: expected a field and its values, such as {PAPER_SEARCH}")
    if path not in known:
        near = difflib.get_close_matches(path, known, 1)
        raise ConfigError(f"{path} is unknown" + (f": is {near[0]} meant?" if near else ""))
    if path in _FIXED:
        raise ConfigError(f"{path} cannot be searched: {_FIXED[path]}")
    if (borders := _RANGE.fullmatch(given)) is None:
        values = [parse_value(each, text) for each in given.split(",")]
        return Search(path, tuple(value for index, value in enumerate(values) if value not in values[:index]))
    kind = _kind(path)
    if kind not in (int, float):
        raise ConfigError(f"{text!r}: {path} is no number and has no range: list its values, with commas in between")
    return _read_range(text, path, kind, *borders.groups())


def _read_range(text: str, path: str, kind: type, low: str, high: str, how: str | None) -> Search:
    width = Decimal(high) - Decimal(low)
    if width <= 0:
        raise ConfigError(f"{text!r}: expected a range that rises, {low} is not below {high}")
    if how not in (None, "log") and not (re.fullmatch(_NUMBER, how) and 0 < Decimal(how) <= width):
        raise ConfigError(f"{text!r}: expected a step from above 0 up to {width}, or log, and found {how!r}")
    if how == "log" and Decimal(low) <= 0:
        raise ConfigError(f"{text!r}: a logarithmic range starts above 0")
    if kind is int and any(Decimal(each) % 1 for each in (low, high, how or "1") if each != "log"):
        raise ConfigError(f"{text!r}: {path} is a whole number: give whole numbers")
    borders = kind(Decimal(low)), kind(Decimal(high))
    if how is None or how == "log":
        return Search(path, (), *borders, log=how == "log")
    # In decimals, so that 0.4 and three times 0.05 are 0.55 and not 0.5500000000000002.
    steps = math.floor(width / Decimal(how))
    values = tuple(kind(Decimal(low) + step * Decimal(how)) for step in range(steps + 1))
    return Search(path, values, values[0], values[-1])


def _kind(path: str) -> Any:
    """The type of a field; of one that may be absent, what it is where it is there."""
    kind: Any = Recipe
    for name in path.split("."):
        kind = get_type_hints(kind)[name]
    inner = [each for each in get_args(kind) if each is not NoneType]
    return inner[0] if get_origin(kind) is not None and len(inner) == 1 else kind


def _try(recipe: Recipe, path: str, value: Any) -> str | None:
    try:
        with_values(recipe, {path: value})
    except ConfigError as error:
        return str(error)
    return None


def with_values(recipe: Recipe, values: Mapping[str, Any]) -> Recipe:
    """The recipe with other values, by their dotted paths.

    Example:
        >>> with_values(recipe, {"training.ce_weight": 0.45}).training.ce_weight  # doctest: +SKIP
        0.45
    """
    changed = asdict(recipe)
    if CE_WEIGHT in values:
        changed["ce_weights"] = {}
    for path, value in values.items():
        *parents, last = path.split(".")
        place = changed
        for parent in parents:
            place = place[parent]
        place[last] = value
    return make_recipe(changed, ", ".join(override(*each) for each in values.items()))


def grid_points(searches: Sequence[Search]) -> list[dict[str, Any]]:
    """Every combination of values, the last field changing fastest."""
    return [
        dict(zip((each.path for each in searches), values, strict=True))
        for values in itertools.product(*(each.values for each in searches))
    ]


def override(path: str, value: Any) -> str:
    """A value as a command line takes it: `training.ce_weight=0.45`, `numbers.ignore=null`."""
    return f"{path}={value if isinstance(value, str) else json.dumps(value)}"


def name_values(values: Mapping[str, Any]) -> str:
    """A name for a folder: `ce_weight=0.45`, or whole paths where two fields would have the same name."""
    short = [path.rpartition(".")[2] for path in values]
    names = short if len(set(short)) == len(short) else list(values)
    text = ",".join(f"{name}={value}" for name, value in zip(names, values.values(), strict=True))
    return re.sub(r"[^\w.,=+-]", "-", text)
