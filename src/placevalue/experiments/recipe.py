"""Recipes and run configs, read from YAML with dotted overrides; faults are reported together."""

import ast
import inspect
import json
import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import MISSING, Field, asdict, dataclass, field, fields, is_dataclass, replace
from functools import cache
from itertools import pairwise
from pathlib import Path
from typing import Any, get_type_hints

from placevalue.common.errors import ConfigError
from placevalue.common.validation import build, describe, find_faults, one_of, plain, without_faults
from placevalue.common.yaml_values import parse_yaml
from placevalue.experiments.adapter import LoraSettings, lora_faults
from placevalue.experiments.comparison import (
    UNTOUCHED,
    TuningSettings,
    comparison_faults,
    tuning_faults,
)
from placevalue.experiments.methods import METHODS
from placevalue.experiments.settings import (
    DataConfig,
    GenerationConfig,
    NumberSettings,
    TrainingConfig,
    generation_faults,
    range_faults,
    share_faults,
    training_faults,
    unknown_names,
)
from placevalue.numbers.config import FORMER, NumberConfig
from placevalue.tokenizer.prompt import Prompt

PER_METHOD = ("learning_rate", "ce_weight", "loss_weight")
"""Settings of training that a recipe can give for single methods: `learning_rates`, `ce_weights`, `loss_weights`."""
SEEDS = 2**32
"""The number of seeds that numpy knows."""
FORMER_BASELINE = "digits"
"""What reports compared with before recipes had a `baseline`: the absolute row of the paper's tables."""
RENAMED = {"numbers.markers": "numbers.new_rows"}
"""Keys of recipes and records by their former names."""


@dataclass(frozen=True)
class TrainConfig:
    """One run of training: everything that its weights depend on."""

    model: str
    """A hub name, a folder, `placevalue-tiny`, or a name that `placevalue fetch` knows."""
    data: DataConfig
    method: str = "digits"
    """A name in `METHODS`."""
    seed: int = 42
    """The seed of the data's order, of dropout and of everything else that is random."""
    numbers: NumberSettings = field(default_factory=NumberSettings)
    prompt: Prompt = field(default_factory=Prompt)
    lora: LoraSettings = field(default_factory=LoraSettings)
    training: TrainingConfig = field(default_factory=TrainingConfig)

    def __post_init__(self) -> None:
        faults = method_faults(self.method) + seed_faults("seed", self.seed)
        faults += _lora_faults(self.lora.rank, self.training.engine)
        if faults := faults + _dev_faults(vars(self.training), self.data.dev):
            raise ConfigError("; ".join(faults))

    def to_dict(self) -> dict[str, Any]:
        """As plain values, without `data.test`, which has no part in training."""
        values: dict[str, Any] = plain(asdict(self))
        del values["data"]["test"], values["data"]["columns"]  # the names of files have them
        return values


def method_faults(method: str) -> list[str]:
    """The fault of a method that is not in `METHODS`."""
    return [] if method in METHODS else [f"method {method!r} is unknown: expected {one_of(METHODS, method)}"]


def seed_faults(path: str, seed: int) -> list[str]:
    """The fault of a seed that generators of random numbers refuse."""
    return [] if 0 <= seed < SEEDS else [f"{path}={seed}: expected a seed from 0 to {SEEDS - 1:,}"]


def _dev_faults(training: Mapping[str, Any], dev: str | None) -> list[str]:
    """Settings of training that need dev data."""
    default = {"select": TrainingConfig.select, "until": TrainingConfig.until}
    needed = [name for name, value in default.items() if training.get(name, value) != value and dev is None]
    return [f"training.{name}={training[name]} needs data.dev, which is not given" for name in needed]


def _lora_faults(rank: int | None, engine: str) -> list[str]:
    mixed = rank is not None and engine == "fast"
    return ["training.engine=fast trains all weights: leave it out with lora.rank"] if mixed else []


@dataclass(frozen=True)
class Recipe:
    """One model and data set, and the methods and seeds to compare."""

    model: str
    """A hub name, a folder, `placevalue-tiny`, or a name that `placevalue fetch` knows."""
    data: DataConfig
    methods: tuple[str, ...]
    """Names in `METHODS`."""
    seeds: tuple[int, ...] = (42,)
    """Each method is trained once with each seed."""
    baseline: str = UNTOUCHED
    """The method that reports compare the others with; it is always trained."""
    contrasts: tuple[tuple[str, ...], ...] = ()
    """Pairs of methods whose differences count, fixed beforehand; by default each method and the baseline."""
    learning_rates: dict[str, float] = field(default_factory=dict)
    """`training.learning_rate` of single methods; an override of `training.learning_rate` replaces them all."""
    ce_weights: dict[str, float] = field(default_factory=dict)
    """`training.ce_weight` of single methods; an override of `training.ce_weight` replaces them all."""
    loss_weights: dict[str, float] = field(default_factory=dict)
    """`training.loss_weight` of single methods; an override of `training.loss_weight` replaces them all."""
    numbers: NumberSettings = field(default_factory=NumberSettings)
    prompt: Prompt = field(default_factory=Prompt)
    lora: LoraSettings = field(default_factory=LoraSettings)
    training: TrainingConfig = field(default_factory=TrainingConfig)
    tuning: TuningSettings = field(default_factory=TuningSettings)
    generation: GenerationConfig = field(default_factory=GenerationConfig)

    def __post_init__(self) -> None:
        faults = _recipe_faults(vars(self)) + _dev_faults(vars(self.training), self.data.dev)
        if faults := faults + tuning_faults(vars(self.tuning), self.seeds, self.data.dev):
            raise ConfigError("; ".join(faults))

    def run(self, method: str | None = None, seed: int | None = None) -> TrainConfig:
        """The config of one run, by default of the first method and seed."""
        method = self.methods[0] if method is None else method
        seed = self.seeds[0] if seed is None else seed
        own = {name: getattr(self, f"{name}s").get(method) for name in PER_METHOD}
        training = replace(self.training, **{name: value for name, value in own.items() if value is not None})
        return TrainConfig(self.model, self.data, method, seed, self.numbers, self.prompt, self.lora, training)


def answering_dev(recipe: Recipe) -> Recipe:
    """The recipe with dev as its only test set."""
    assert recipe.data.dev is not None
    return replace(recipe, data=replace(recipe.data, test=(recipe.data.dev,)))


def _recipe_faults(values: Mapping[str, Any]) -> list[str]:
    """Methods, seeds and their weights that make no sense; absent ones have no fault."""
    lists = {name: list(values[name]) for name in ("methods", "seeds") if name in values}
    faults = [f"{name}=[]: expected at least one" for name, given in lists.items() if not given]
    repeated = {name: given for name, given in lists.items() if len(set(given)) < len(given)}
    faults += [f"{name}={given}: expected each of them once" for name, given in repeated.items()]
    faults += [fault for method in dict.fromkeys(lists.get("methods", ())) for fault in method_faults(method)]
    faults += [fault for seed in dict.fromkeys(lists.get("seeds", ())) for fault in seed_faults("seeds", seed)]
    for each in PER_METHOD:
        given = values.get(f"{each}s", {})
        faults += [f"{each}s names {name}: expected {one_of(METHODS, name)}" for name in given if name not in METHODS]
    rates = values.get("learning_rates", {})
    faults += comparison_faults(values) + range_faults("learning_rates.", rates, tuple(rates))
    for name, share in values.get("ce_weights", {}).items():
        faults += share_faults(f"ce_weights.{name}", share)
    weights = values.get("loss_weights", {})
    faults += range_faults("loss_weights.", weights, (), tuple(weights))
    vain = [name for name in weights if name in METHODS and METHODS[name].mix != "add"]
    faults += [f"loss_weights names {name}, which adds no loss to cross-entropy: leave it out" for name in vain]
    return faults


def _number_faults(numbers: Mapping[str, Any]) -> list[str]:
    """Patterns and texts to ignore that no tokenizer would take."""
    faults = []
    for name in numbers.keys() & {"pattern", "ignore"}:
        try:
            NumberConfig(**{name: numbers[name]})
        except ConfigError as error:
            faults.append(f"numbers.{name}: {error}")
    return sorted(faults)


RecipeOrPath = Recipe | str | os.PathLike[str]


def read_recipe(path: str | os.PathLike[str], overrides: Sequence[str] = (), *, recorded: bool = False) -> Recipe:
    """A recipe from a YAML file.

    Args:
        path: The file.
        overrides: Such as `training.learning_rate=1e-5` or `methods=[digits, agg-before]`.
        recorded: The file is the record of an experiment, in which a setting of numbers that is absent means `FORMER`,
            and an absent baseline `digits` or, without these, the first method.

    Example:
        >>> read_recipe("recipes/quick.yaml", ["training.max_steps=20"])  # doctest: +SKIP
    """
    if not Path(path).exists():
        raise ConfigError(f"the recipe {path} does not exist: give the path of a YAML file")
    values = parse_yaml(Path(path).read_bytes(), path)
    if not isinstance(values, dict):
        raise ConfigError(f"{path}: expected keys and values, such as `model: google/flan-t5-base`")
    values = with_new_names(values)
    faults = []
    for override in overrides:
        key, equals, text = override.partition("=")
        try:
            if not equals or not key:
                raise ConfigError(f"{override!r}: expected key=value, such as training.learning_rate=1e-5")
            set_value(values, key, parse_yaml(text, override))
        except ConfigError as error:
            faults.append(str(error))
    if recorded and isinstance(numbers := values.get("numbers", {}), dict):
        values["numbers"] = FORMER | numbers
    if recorded and isinstance(methods := values.get("methods"), list) and methods:
        values.setdefault("baseline", FORMER_BASELINE if FORMER_BASELINE in methods else methods[0])
    return make_recipe(values, str(path), faults, recorded=recorded)


def with_new_names(values: Mapping[str, Any]) -> dict[str, Any]:
    """Plain values with keys that have been renamed under their new names; with both names they stay as they are."""
    renamed = dict(values)
    for path, new in RENAMED.items():
        (part, former), name = path.split("."), new.rpartition(".")[2]
        within = renamed.get(part)
        if isinstance(within, Mapping) and former in within and name not in within:
            renamed[part] = {name if key == former else key: value for key, value in within.items()}
    return renamed


def load_recipe(recipe: RecipeOrPath) -> Recipe:
    """The recipe itself, or read from its YAML file."""
    return recipe if isinstance(recipe, Recipe) else read_recipe(recipe)


def default_folder(recipe: object, *parts: str) -> Path:
    """`runs/RECIPE/...`, where RECIPE is the name of the recipe's file."""
    if not isinstance(recipe, str | os.PathLike):
        raise ConfigError("out is missing: only a recipe given as a file has a default folder; pass out=FOLDER")
    return Path("runs", Path(recipe).stem, *parts)


def make_recipe(
    values: dict[str, Any], source: str = "the recipe", faults: Sequence[str] = (), *, recorded: bool = False
) -> Recipe:
    """A recipe from plain values; all faults are reported together, after those that are known already."""
    values = with_new_names(values)
    if faults := [*faults, *_find_faults(values, recorded)]:
        raise ConfigError(f"{source}: {'; '.join(faults)}")
    recipe: Recipe = build(Recipe, values)
    return recipe


def _find_faults(values: dict[str, Any], recorded: bool) -> list[str]:
    data, training, generation = (
        without_faults(kind, values.get(name))
        for name, kind in (("data", DataConfig), ("training", TrainingConfig), ("generation", GenerationConfig))
    )
    own = without_faults(Recipe, values)
    faults = find_faults(Recipe, values) + _recipe_faults(own)
    faults += training_faults(training) + generation_faults(generation)
    lora = without_faults(LoraSettings, values.get("lora"))
    faults += lora_faults(lora) + _lora_faults(lora.get("rank"), training.get("engine", "standard"))
    faults += _dev_faults(training, data.get("dev"))
    if not recorded:  # a record may name what only older versions take
        faults += _number_faults(without_faults(NumberSettings, values.get("numbers")))
    tuning = without_faults(TuningSettings, values.get("tuning"))
    faults += tuning_faults(tuning, own.get("seeds", Recipe.seeds), data.get("dev"))
    if faults:  # else whoever uses the recipe looks for these, since it takes a while
        named = {name: training[name] for name in ("optimizer", "schedule") if name in training}
        faults += unknown_names(TrainingConfig(**named))
    return faults


def to_yaml(values: dict[str, Any]) -> str:
    """Plain values as YAML, in their order."""
    import yaml

    return str(yaml.safe_dump(plain(values), sort_keys=False, allow_unicode=True))


def set_value(values: dict[str, Any], path: str, value: Any) -> None:
    """Set a key of a recipe's plain values by its dotted path; `training.ce_weight` replaces all `ce_weights`."""
    if (name := path.removeprefix("training.")) in PER_METHOD and name != path:
        values.pop(f"{name}s", None)
    *parents, last = RENAMED.get(path, path).split(".")
    for parent in parents:
        values = values.setdefault(parent, {})
        if not isinstance(values, dict):
            raise ConfigError(f"{path}: {parent} is a value and has no keys")
    values[last] = value


def field_help(cls: Any, prefix: str = "") -> Iterator[tuple[str, str]]:
    """Every key by its dotted path, with the sentence below it in the class."""
    for path, owner, each, _ in _leaves(cls, prefix):
        yield path, _sentences(owner)[each.name]


@cache
def _sentences(cls: Any) -> dict[str, str]:
    found = {}
    for statement, following in pairwise(ast.parse(inspect.getsource(cls)).body[0].body):  # type: ignore[attr-defined]
        if isinstance(statement, ast.AnnAssign) and isinstance(following, ast.Expr):
            found[statement.target.id] = inspect.cleandoc(following.value.value)  # type: ignore
    return found


def field_values(cls: Any) -> Iterator[tuple[str, str]]:
    """Every key by its dotted path, with what its value is, and its default."""
    for path, _, each, hint in _leaves(cls, ""):
        default = each.default if each.default_factory is MISSING else each.default_factory()
        value = "required" if default is MISSING else f"default: {json.dumps(plain(default))}"
        yield path, f"{describe(hint)}; {value}"


def _leaves(cls: Any, prefix: str) -> Iterator[tuple[str, Any, Field[Any], Any]]:
    """Every key that has a value of its own: its dotted path, its class, field and type."""
    hints = get_type_hints(cls)
    for each in fields(cls):
        if is_dataclass(hints[each.name]):
            yield from _leaves(hints[each.name], f"{prefix}{each.name}.")
        else:
            yield f"{prefix}{each.name}", cls, each, hints[each.name]
