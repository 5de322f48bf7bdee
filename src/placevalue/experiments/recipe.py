"""Run configs: frozen dataclasses, read from YAML with dotted overrides; every fault is reported at once."""

import ast
import inspect
import os
import re
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, field, fields, is_dataclass, replace
from itertools import pairwise
from pathlib import Path
from typing import Any, Literal, get_type_hints

from placevalue.common.errors import ConfigError
from placevalue.common.validation import build, find_faults
from placevalue.experiments.methods import METHODS
from placevalue.numbers.config import Decimals, Markers

CE_WEIGHT = "training.ce_weight"
Precision = Literal["float32", "bfloat16", "float16"]


@dataclass(frozen=True)
class DataConfig:
    """What is trained and tested on, each as `load_data` takes it: `mawps:train`, `fermat:Original`, a file."""

    train: str
    """The problems to train on."""
    dev: str | None = None
    """The problems to choose a checkpoint, and everything else that is chosen, by."""
    test: tuple[str, ...] = ()
    """The problems to score on."""


@dataclass(frozen=True)
class NumberSettings:
    """What counts as a number, see `number_tokenizer`."""

    pattern: str = "paper"
    """`paper`, `extended`, or a regular expression."""
    ignore: str | None = None
    """A regular expression for text that is left alone."""
    decimals: Decimals = "places"
    """How digits behind the point count."""
    markers: Markers = "drawn"
    """How the markers' new rows start: `drawn` as the embeddings lie, or `mean`, near their mean."""


@dataclass(frozen=True)
class TrainingConfig:
    """How a model is trained. The paper gives weight decay, warm-up and both lengths; the rest is our choice."""

    learning_rate: float = 1e-4
    """The highest learning rate."""
    epochs: float = 10.0
    """Passes over the training problems."""
    max_steps: int | None = None
    """Stop after this many steps, whatever `epochs` says."""
    batch_size: int = 32
    """Problems in a step, on each device."""
    accumulation: int = 1
    """Batches that make one step."""
    optimizer: str = "adamw_torch_fused"
    """As Trainer names it."""
    schedule: str = "linear"
    """How the learning rate falls after the warm-up, as Trainer names it."""
    weight_decay: float = 0.005
    """The decay of AdamW."""
    warmup_steps: int = 100
    """Steps in which the learning rate rises."""
    max_gradient: float = 1.0
    """Gradients are clipped to this norm; 0 leaves them."""
    max_question: int = 128
    """Questions are cut at this many tokens."""
    max_answer: int = 16
    """Answers are cut at this many tokens."""
    ce_weight: float = 0.6
    """The share of cross-entropy where a method has an auxiliary loss: the paper's lambda."""
    precision: Literal["float32", "tf32", "bfloat16", "float16"] = "float32"
    """What is computed in; weights stay float32. `tf32` rounds what CUDA devices multiply; elsewhere it is float32."""
    select: Literal["last", "dev-loss", "dev-accuracy"] = "last"
    """Which checkpoint is kept: the last, or the best on `data.dev`."""
    checkpoint_every: int = 500
    """Steps between checkpoints; each evaluates on `data.dev` too."""
    keep_checkpoints: int = 2
    """How many checkpoints stay on disk."""
    log_every: int = 10
    """Steps between logged losses."""
    deterministic: bool = True
    """Refuse what gives other results from run to run on the same machine; costs some speed on accelerators."""
    compile: bool = False
    """Compile the model's forward and backward pass."""
    workers: int = 0
    """Processes that make batches ready while the model computes; 0 makes them in between."""
    group_by_length: bool = False
    """Put problems of like length into a batch: less is padded, and a step is faster."""
    gradient_checkpointing: bool = False
    """Save memory by computing activations twice."""
    tensorboard: bool = False
    """Write logs for TensorBoard too."""

    def __post_init__(self) -> None:
        positive = ("learning_rate", "epochs", "batch_size", "accumulation", "max_question", "max_answer")
        given = {name: getattr(self, name) for name in (*positive, "checkpoint_every", "keep_checkpoints", "log_every")}
        faults = [f"training.{name}={value}: expected more than 0" for name, value in given.items() if value <= 0]
        signed = {name: getattr(self, name) for name in ("warmup_steps", "weight_decay", "max_gradient", "workers")}
        faults += [f"training.{name}={value}: expected 0 or more" for name, value in signed.items() if value < 0]
        if self.max_steps is not None and self.max_steps < 1:
            faults.append(f"training.max_steps={self.max_steps}: expected at least 1, or nothing")
        if not 0 <= self.ce_weight <= 1:
            faults.append(f"training.ce_weight={self.ce_weight}: expected a number from 0 to 1")
        if faults:
            raise ConfigError("; ".join(faults))


def unknown_names(training: TrainingConfig) -> list[str]:
    """The optimizer and the schedule, if Trainer does not know them; loads transformers, so only runs ask."""
    from transformers import SchedulerType
    from transformers.training_args import OptimizerNames

    known = {"optimizer": [each.value for each in OptimizerNames], "schedule": [each.value for each in SchedulerType]}
    given = {name: getattr(training, name) for name in known}
    return [
        f"training.{name}={value!r}: Trainer does not know it, expected one of {', '.join(known[name])}"
        for name, value in given.items()
        if value not in known[name]
    ]


@dataclass(frozen=True)
class GenerationConfig:
    """How answers are generated."""

    beams: int = 3
    """Beams of the search; 1 is greedy."""
    batch_size: int = 64
    """Problems at a time."""
    precision: Precision = "float32"
    """The data type of the weights."""

    def __post_init__(self) -> None:
        faults = find_faults(GenerationConfig, vars(self), "generation.") or [
            f"generation.{name}={value}: expected at least 1"
            for name, value in (("beams", self.beams), ("batch_size", self.batch_size))
            if value < 1
        ]
        if faults:
            raise ConfigError("; ".join(faults))


@dataclass(frozen=True)
class TrainConfig:
    """One run of training: everything that its weights depend on."""

    model: str
    """A hub name, a folder, `placevalue-tiny`, or a name that `placevalue fetch` knows."""
    data: DataConfig
    method: str = "digits"
    """A name in `METHODS`."""
    seed: int = 42
    """The seed of the order of the data, of dropout, and of whatever else is drawn."""
    numbers: NumberSettings = field(default_factory=NumberSettings)
    training: TrainingConfig = field(default_factory=TrainingConfig)

    def __post_init__(self) -> None:
        faults = [] if self.method in METHODS else [f"method {self.method!r} is unknown: expected {', '.join(METHODS)}"]
        if self.training.select != "last" and self.data.dev is None:
            faults.append(f"training.select={self.training.select} needs data.dev, which is not given")
        if faults:
            raise ConfigError("; ".join(faults))

    def to_dict(self) -> dict[str, Any]:
        """As plain values; tests have no part in training and are left out."""
        values = asdict(self)
        del values["data"]["test"]
        return values


@dataclass(frozen=True)
class Recipe:
    """What is compared: one model and data set, several methods and seeds."""

    model: str
    """A hub name, a folder, `placevalue-tiny`, or a name that `placevalue fetch` knows."""
    data: DataConfig
    methods: tuple[str, ...]
    """Names in `METHODS`, the one to compare with first."""
    seeds: tuple[int, ...] = (42,)
    """Each method is trained once with each."""
    ce_weights: dict[str, float] = field(default_factory=dict)
    """The share of cross-entropy of single methods; an override of `training.ce_weight` takes the place of all."""
    numbers: NumberSettings = field(default_factory=NumberSettings)
    training: TrainingConfig = field(default_factory=TrainingConfig)
    generation: GenerationConfig = field(default_factory=GenerationConfig)

    def __post_init__(self) -> None:
        if not self.methods or not self.seeds:
            raise ConfigError("methods and seeds must name at least one each")
        if len(set(self.methods)) < len(self.methods) or len(set(self.seeds)) < len(self.seeds):
            raise ConfigError(f"methods={list(self.methods)}, seeds={list(self.seeds)}: expected each of them once")
        if strange := [name for name in self.ce_weights if name not in METHODS]:
            raise ConfigError(f"ce_weights names {', '.join(strange)}: expected methods, {', '.join(METHODS)}")
        for method in self.methods:
            self.run(method)

    def run(self, method: str | None = None, seed: int | None = None) -> TrainConfig:
        """The config of one run; the first method and seed where none is named."""
        method = self.methods[0] if method is None else method
        seed = self.seeds[0] if seed is None else seed
        training = self.training
        if method in self.ce_weights:
            training = replace(training, ce_weight=self.ce_weights[method])
        return TrainConfig(self.model, self.data, method, seed, self.numbers, training)


RecipeOrPath = Recipe | str | os.PathLike[str]


def read_recipe(path: str | os.PathLike[str], overrides: Sequence[str] = ()) -> Recipe:
    """A recipe from a YAML file.

    Args:
        path: The file.
        overrides: Such as `training.learning_rate=1e-5` or `methods=[digits, agg-before]`.

    Example:
        >>> read_recipe("recipes/quick.yaml", ["training.max_steps=20"])  # doctest: +SKIP
    """
    return make_recipe(read_values(path, overrides), str(path))


def load_recipe(recipe: RecipeOrPath) -> Recipe:
    """A recipe as it is, or read from its YAML file."""
    return recipe if isinstance(recipe, Recipe) else read_recipe(recipe)


def default_folder(recipe: object, *parts: str) -> Path:
    """`runs/RECIPE/...`, where RECIPE is the name of the recipe's file."""
    if not isinstance(recipe, str | os.PathLike):
        raise ConfigError("out is missing: only a recipe given as a file has a default folder; pass out=FOLDER")
    return Path("runs", Path(recipe).stem, *parts)


def read_values(path: str | os.PathLike[str], overrides: Sequence[str] = ()) -> dict[str, Any]:
    """The plain values of a YAML file with its overrides, not validated yet."""
    import yaml

    try:
        values = yaml.load(Path(path).read_text(encoding="utf-8"), Loader=_loader())
    except FileNotFoundError:
        raise ConfigError(f"there is no recipe {path}: give the path of a YAML file") from None
    except (yaml.YAMLError, UnicodeDecodeError) as error:
        raise ConfigError(f"{path} is not YAML: {' '.join(str(error).split())}") from None
    if not isinstance(values, dict):
        raise ConfigError(f"{path}: expected keys and values, such as `model: google/flan-t5-base`")
    for override in overrides:
        _set(values, override)
    return values


def make_recipe(values: dict[str, Any], source: str = "the recipe") -> Recipe:
    """A recipe from plain values, all faults reported together."""
    faults = find_faults(Recipe, values)
    if faults:
        raise ConfigError(f"{source}: {'; '.join(faults)}")
    try:
        recipe: Recipe = build(Recipe, values)
    except ConfigError as error:
        raise ConfigError(f"{source}: {error}") from None
    return recipe


def to_yaml(values: dict[str, Any]) -> str:
    """Plain values as people write them."""
    import yaml

    text: str = yaml.safe_dump(_listed(values), sort_keys=False, allow_unicode=True)
    return text


def _listed(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _listed(item) for key, item in value.items()}
    return list(value) if isinstance(value, tuple) else value


def _set(values: dict[str, Any], override: str) -> None:
    path, equals, text = override.partition("=")
    if not equals or not path:
        raise ConfigError(f"{override!r}: expected key=value, such as training.learning_rate=1e-5")
    if path == CE_WEIGHT:
        values.pop("ce_weights", None)
    *parents, last = path.split(".")
    place = values
    for parent in parents:
        place = place.setdefault(parent, {})
        if not isinstance(place, dict):
            raise ConfigError(f"{override!r}: {parent} has no keys of its own")
    place[last] = parse_value(text, override)


def parse_value(text: str, source: str) -> Any:
    """A value as people write it in a recipe or behind an equals sign; `source` is named where it is none."""
    import yaml

    try:
        return yaml.load(text, Loader=_loader())
    except yaml.YAMLError as error:
        raise ConfigError(f"{source!r}: the value is not YAML: {' '.join(str(error).split())}") from None


def _loader() -> Any:
    """A safe loader for which 1e-4 is a number, as people expect and YAML 1.1 does not."""
    import yaml

    class Loader(yaml.SafeLoader):
        pass

    number = re.compile(r"[-+]?(\d+\.\d*|\.\d+|\d+)[eE][-+]?\d+$")
    Loader.add_implicit_resolver("tag:yaml.org,2002:float", number, list("-+.0123456789"))
    return Loader


def field_help(cls: Any, prefix: str = "") -> Iterator[tuple[str, str]]:
    """Every key by its dotted path, with its default and the one sentence that stands below it in the class."""
    body = ast.parse(inspect.getsource(cls)).body[0].body  # type: ignore[attr-defined]
    sentences = {}
    for statement, following in pairwise(body):
        if isinstance(statement, ast.AnnAssign) and isinstance(following, ast.Expr):
            sentences[statement.target.id] = inspect.cleandoc(following.value.value)  # type: ignore
    hints = get_type_hints(cls)
    for each in fields(cls):
        if is_dataclass(hints[each.name]):
            yield from field_help(hints[each.name], f"{prefix}{each.name}.")
        else:
            yield f"{prefix}{each.name}", sentences[each.name]
