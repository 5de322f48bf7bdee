"""Recipes and run configs: frozen dataclasses, read from YAML with dotted overrides; faults are reported together."""

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
from placevalue.common.validation import build, find_faults, plain
from placevalue.experiments.methods import METHODS
from placevalue.numbers.config import Decimals, Markers

CE_WEIGHT = "training.ce_weight"
Precision = Literal["float32", "bfloat16", "float16"]


@dataclass(frozen=True)
class DataConfig:
    """The data sets, each by a name that `load_data` takes: `mawps:train`, `fermat:Original`, a file."""

    train: str
    """The problems to train on."""
    dev: str | None = None
    """The problems to choose checkpoints and settings by."""
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
    """How digits after the point count."""
    markers: Markers = "drawn"
    """How the markers' new rows start: `drawn` from the embeddings' distribution, or near their `mean`."""


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
    """Problems per batch, on each device."""
    accumulation: int = 1
    """Batches per step."""
    optimizer: str = "adamw_torch_fused"
    """The optimizer, as Trainer names it."""
    schedule: str = "linear"
    """The learning rate schedule after the warm-up, as Trainer names it."""
    weight_decay: float = 0.005
    """The weight decay of AdamW."""
    warmup_steps: int = 100
    """Steps in which the learning rate rises."""
    max_gradient: float = 1.0
    """Clip gradients to this norm; 0 does not clip."""
    max_question: int = 128
    """Cut questions at this many tokens."""
    max_answer: int = 16
    """Cut answers at this many tokens."""
    ce_weight: float = 0.6
    """The share of cross-entropy in the loss of a method with an auxiliary loss: the paper's lambda."""
    precision: Literal["float32", "tf32", "bfloat16", "float16"] = "float32"
    """The precision of computation; weights stay float32. `tf32` is faster on CUDA devices and float32 elsewhere."""
    select: Literal["last", "dev-loss", "dev-accuracy"] = "last"
    """Which checkpoint to keep: the last, or the best on `data.dev`."""
    checkpoint_every: int = 500
    """Steps between checkpoints, and between evaluations on `data.dev`."""
    keep_checkpoints: int = 2
    """How many checkpoints stay on disk."""
    log_every: int = 10
    """Steps between logged losses."""
    deterministic: bool = True
    """Refuse operations whose results vary from run to run; costs some speed on accelerators."""
    compile: bool = False
    """Compile the model's forward and backward pass."""
    workers: int = 0
    """Processes that prepare batches; 0 prepares them in the training process."""
    group_by_length: bool = False
    """Put problems of similar length into a batch: less padding, faster steps."""
    gradient_checkpointing: bool = False
    """Save memory by computing activations twice."""
    tensorboard: bool = False
    """Also write logs for TensorBoard."""

    def __post_init__(self) -> None:
        positive = ["learning_rate", "epochs", "batch_size", "accumulation", "max_question", "max_answer"]
        positive += ["max_steps", "checkpoint_every", "keep_checkpoints", "log_every"]
        given = {name: value for name in positive if (value := getattr(self, name)) is not None}
        faults = [f"training.{name}={value}: expected more than 0" for name, value in given.items() if value <= 0]
        signed = {name: getattr(self, name) for name in ("warmup_steps", "weight_decay", "max_gradient", "workers")}
        faults += [f"training.{name}={value}: expected 0 or more" for name, value in signed.items() if value < 0]
        if not 0 <= self.ce_weight <= 1:
            faults.append(f"training.ce_weight={self.ce_weight}: expected a number from 0 to 1")
        if faults:
            raise ConfigError("; ".join(faults))


def unknown_names(training: TrainingConfig) -> list[str]:
    """Faults of the optimizer and the schedule; not in `__post_init__`, since it loads transformers."""
    from transformers import SchedulerType
    from transformers.training_args import OptimizerNames

    faults = []
    for name, known in (("optimizer", OptimizerNames), ("schedule", SchedulerType)):
        given, names = getattr(training, name), [each.value for each in known]
        if given not in names:
            faults.append(f"training.{name}={given!r}: Trainer does not know it, expected one of {', '.join(names)}")
    return faults


@dataclass(frozen=True)
class GenerationConfig:
    """How answers are generated."""

    beams: int = 3
    """Beams of the search; 1 is greedy."""
    batch_size: int = 64
    """Problems per batch."""
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
    """The seed of the data's order, of dropout and of everything else that is random."""
    numbers: NumberSettings = field(default_factory=NumberSettings)
    training: TrainingConfig = field(default_factory=TrainingConfig)

    def __post_init__(self) -> None:
        faults = [] if self.method in METHODS else [f"method {self.method!r} is unknown: expected {', '.join(METHODS)}"]
        if self.training.select != "last" and self.data.dev is None:
            faults.append(f"training.select={self.training.select} needs data.dev, which is not given")
        if faults:
            raise ConfigError("; ".join(faults))

    def to_dict(self) -> dict[str, Any]:
        """As plain values, without `data.test`, which has no part in training."""
        values = asdict(self)
        del values["data"]["test"]
        return values


@dataclass(frozen=True)
class Recipe:
    """One model and data set, and the methods and seeds to compare."""

    model: str
    """A hub name, a folder, `placevalue-tiny`, or a name that `placevalue fetch` knows."""
    data: DataConfig
    methods: tuple[str, ...]
    """Names in `METHODS`, the baseline first."""
    seeds: tuple[int, ...] = (42,)
    """Each method is trained once with each seed."""
    ce_weights: dict[str, float] = field(default_factory=dict)
    """`training.ce_weight` of single methods; an override of `training.ce_weight` replaces them all."""
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
        """The config of one run, by default of the first method and seed."""
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
    if not Path(path).exists():
        raise ConfigError(f"the recipe {path} does not exist: give the path of a YAML file")
    values = parse_value(Path(path).read_bytes(), path)
    if not isinstance(values, dict):
        raise ConfigError(f"{path}: expected keys and values, such as `model: google/flan-t5-base`")
    for override in overrides:
        key, equals, text = override.partition("=")
        if not equals or not key:
            raise ConfigError(f"{override!r}: expected key=value, such as training.learning_rate=1e-5")
        set_value(values, key, parse_value(text, override))
    return make_recipe(values, str(path))


def load_recipe(recipe: RecipeOrPath) -> Recipe:
    """The recipe itself, or read from its YAML file."""
    return recipe if isinstance(recipe, Recipe) else read_recipe(recipe)


def default_folder(recipe: object, *parts: str) -> Path:
    """`runs/RECIPE/...`, where RECIPE is the name of the recipe's file."""
    if not isinstance(recipe, str | os.PathLike):
        raise ConfigError("out is missing: only a recipe given as a file has a default folder; pass out=FOLDER")
    return Path("runs", Path(recipe).stem, *parts)


def make_recipe(values: dict[str, Any], source: str = "the recipe") -> Recipe:
    """A recipe from plain values; all faults are reported together."""
    if faults := find_faults(Recipe, values):
        raise ConfigError(f"{source}: {'; '.join(faults)}")
    try:
        recipe: Recipe = build(Recipe, values)
    except ConfigError as error:
        raise ConfigError(f"{source}: {error}") from None
    return recipe


def to_yaml(values: dict[str, Any]) -> str:
    """Plain values as YAML, in their order."""
    import yaml

    return str(yaml.safe_dump(plain(values), sort_keys=False, allow_unicode=True))


def set_value(values: dict[str, Any], path: str, value: Any) -> None:
    """Set a key of a recipe's plain values by its dotted path; `training.ce_weight` replaces all `ce_weights`."""
    if path == CE_WEIGHT:
        values.pop("ce_weights", None)
    *parents, last = path.split(".")
    for parent in parents:
        values = values.setdefault(parent, {})
        if not isinstance(values, dict):
            raise ConfigError(f"{path}: {parent} is a value and has no keys")
    values[last] = value


def parse_value(text: str | bytes, source: object) -> Any:
    """A recipe or the value of an override from YAML; an error names its `source`."""
    import yaml

    class Loader(yaml.SafeLoader):
        """Reads 1e-4 as a number, which YAML 1.1 does not."""

    number = re.compile(r"[-+]?(\d+\.\d*|\.\d+|\d+)[eE][-+]?\d+$")
    Loader.add_implicit_resolver("tag:yaml.org,2002:float", number, list("-+.0123456789"))
    try:
        return yaml.load(text, Loader=Loader)
    except yaml.YAMLError as error:
        raise ConfigError(f"{source} is not YAML: {' '.join(str(error).split())}") from None


def field_help(cls: Any, prefix: str = "") -> Iterator[tuple[str, str]]:
    """Every key by its dotted path, with the sentence below it in the class."""
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
