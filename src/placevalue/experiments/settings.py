"""The settings of a recipe for data, numbers, training and generation, and what is wrong with their values."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

from placevalue.common.errors import ConfigError
from placevalue.common.validation import find_faults, one_of
from placevalue.data.columns import check_columns, with_columns
from placevalue.data.corpora import is_final
from placevalue.experiments.comparison import CE_WEIGHT
from placevalue.numbers.config import Decimals, Negatives, NewRows, NumberConfig
from placevalue.numbers.ignore import Ignore

LARGEST = 2**31 - 1
"""The largest number that a setting can have; beyond it, libraries overflow."""
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
    columns: dict[str, str] = field(default_factory=dict)
    """The columns of your own files, by what they hold: `{question: Problem, answer: Result}`."""

    def __post_init__(self) -> None:
        check_columns(self.columns, "data.columns: ")
        dev = None if self.dev is None else with_columns(self.dev, self.columns)
        named: dict[str, Any] = {"train": with_columns(self.train, self.columns), "dev": dev}
        named |= {"test": tuple(with_columns(each, self.columns) for each in self.test)}
        for name, value in named.items():
            object.__setattr__(self, name, value)
        chosen_by = {"data.train": self.train, "data.dev": self.dev}
        for name, spec in chosen_by.items():
            if spec is not None and is_final(spec):
                raise ConfigError(
                    f"{name}={spec}: the final part is for the last test, so nothing may be trained on it or chosen by "
                    "it: use the train and dev parts, and name it in data.test alone"
                )


@dataclass(frozen=True)
class NumberSettings:
    """What counts as a number, see `number_tokenizer`."""

    pattern: str = NumberConfig.pattern
    """`extended`, `paper`, `european`, `accounting`, `european-accounting`, or a regular expression."""
    ignore: Ignore | None = None
    """Text that is left alone: `years`, `dates`, `times`, `phones`, `identifiers`, regular expressions, or a list."""
    decimals: Decimals = NumberConfig.decimals
    """How digits after the point count."""
    negatives: Negatives = NumberConfig.negatives
    """Whether the [AGG] of -5 is the `opposite` of that of 5, or `ignore` makes them equal."""
    new_rows: NewRows = "drawn"
    """How the rows of new tokens start: `drawn` from the embeddings' distribution, or near their `mean`."""


@dataclass(frozen=True)
class TrainingConfig:
    """How a model is trained. The paper gives weight decay, warm-up and both lengths; the rest is our choice."""

    learning_rate: float = 1e-4
    """The highest learning rate."""
    epochs: float = 10.0
    """Passes over the training problems."""
    max_steps: int | None = None
    """Stop after this many steps, whatever `epochs` says."""
    until: Literal["end", "plateau"] = "end"
    """Train to the `end`, or until dev has stopped rising (`plateau`), at most to the end: see `patience`."""
    patience: int = 5
    """With `plateau`: the evaluations without a new best on `data.dev` that end the constant learning rate."""
    decay_steps: int = 500
    """With `plateau`: the steps in which the learning rate then falls to 0."""
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
    max_answer: int | None = None
    """Cut answers at this many tokens; by default none is cut."""
    ce_weight: float = 0.6
    """The share of cross-entropy in the loss of a method with an auxiliary loss: the paper's lambda."""
    loss_weight: float | None = None
    """The weight of a loss that is added to cross-entropy; by default what its authors use."""
    precision: Literal["float32", "tf32", "bfloat16", "float16"] = "float32"
    """The precision of computation; weights stay float32. `tf32` is faster on CUDA devices and float32 elsewhere."""
    engine: Literal["standard", "fast"] = "standard"
    """`fast` compiles and replays whole steps on a CUDA device; results are the same up to rounding and dropout."""
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
    """The former name of `report_to: [tensorboard]`."""
    report_to: tuple[Literal["tensorboard", "wandb", "mlflow"], ...] = ()
    """Also log to TensorBoard, Weights & Biases (`wandb`) or MLflow, through Trainer's own integrations."""

    def __post_init__(self) -> None:
        if faults := training_faults(vars(self)):
            raise ConfigError("; ".join(faults))

    @property
    def trackers(self) -> tuple[str, ...]:
        """Where to log to besides the record."""
        return tuple(dict.fromkeys([*(["tensorboard"] if self.tensorboard else []), *self.report_to]))


def training_faults(values: Mapping[str, Any]) -> list[str]:
    """Settings of training that are out of range; absent ones are not."""
    above_0 = ["learning_rate", "epochs", "batch_size", "accumulation", "max_question", "max_answer", "max_steps"]
    above_0 += ["checkpoint_every", "keep_checkpoints", "log_every", "patience", "decay_steps"]
    if values.get("until") == "plateau" and values.get("schedule", TrainingConfig.schedule) != TrainingConfig.schedule:
        wrong = [f"training.schedule={values['schedule']} has no effect with training.until=plateau: leave one out"]
    else:
        wrong = []
    from_0 = ("warmup_steps", "weight_decay", "max_gradient", "workers", "loss_weight")
    faults = wrong + range_faults("training.", values, above_0, from_0)
    return faults + share_faults(CE_WEIGHT, values.get("ce_weight", 0))


def range_faults(path: str, values: Mapping[str, Any], above_0: Sequence[str], from_0: Sequence[str] = ()) -> list[str]:
    """Values that are 0, negative or too large where they may not be; absent ones and null are not."""
    faults = []
    for name in (name for name in (*above_0, *from_0) if values.get(name) is not None):
        value = values[name]
        if value > LARGEST:
            faults.append(f"{path}{name}={value}: expected at most {LARGEST:,}")
        elif value < 0 or (value == 0 and name in above_0):
            faults.append(f"{path}{name}={value}: expected {'more than 0' if name in above_0 else '0 or more'}")
    return faults


def share_faults(path: str, share: float) -> list[str]:
    """The fault of a share that is not from 0 to 1."""
    return [] if 0 <= share <= 1 else [f"{path}={share}: expected a number from 0 to 1"]


def unknown_names(training: TrainingConfig) -> list[str]:
    """Faults of the optimizer and the schedule; not in `__post_init__`, since it loads transformers."""
    default = TrainingConfig()
    if (training.optimizer, training.schedule) == (default.optimizer, default.schedule):
        return []
    from transformers import SchedulerType
    from transformers.training_args import OptimizerNames

    faults = []
    for name, known in (("optimizer", OptimizerNames), ("schedule", SchedulerType)):
        given, names = getattr(training, name), [each.value for each in known]
        if given not in names:
            faults.append(f"training.{name}={given!r}: Trainer does not know it, expected {one_of(names, given)}")
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
        if faults := find_faults(GenerationConfig, vars(self), "generation.") or generation_faults(vars(self)):
            raise ConfigError("; ".join(faults))


def generation_faults(values: Mapping[str, Any]) -> list[str]:
    """Settings of generation that are out of range; absent ones are not."""
    return range_faults("generation.", values, ("beams", "batch_size"))
