"""The recipe's `lora`: train low-rank adapters, by PEFT, instead of all weights."""

from dataclasses import dataclass
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

from placevalue.common.errors import ConfigError, TrainingError

if TYPE_CHECKING:
    from transformers import PreTrainedModel, PreTrainedTokenizerBase


@dataclass(frozen=True)
class LoraSettings:
    """Low-rank adapters in place of training all weights; the rows of new tokens are trained too."""

    rank: int | None = None
    """The rank of the adapters; null trains all weights instead."""
    alpha: float | None = None
    """The adapters count alpha / rank times; by default twice."""
    dropout: float = 0.0
    """The dropout before the adapters."""
    targets: tuple[str, ...] = ()
    """The names of the modules to adapt, such as `q_proj`; by default PEFT's choice for the architecture."""

    def __post_init__(self) -> None:
        if faults := lora_faults(vars(self)):
            raise ConfigError("; ".join(faults))


def lora_faults(values: dict[str, Any]) -> list[str]:
    """Settings that are out of range; absent ones are not."""
    faults = [
        f"lora.{name}={values[name]}: expected more than 0"
        for name in ("rank", "alpha")
        if values.get(name) is not None and values[name] <= 0
    ]
    if not 0 <= values.get("dropout", 0) < 1:
        faults.append(f"lora.dropout={values['dropout']}: expected a number from 0 up to, not including, 1")
    if values.get("rank") is None and (others := [name for name in values if name != "rank" and values[name]]):
        faults.append(f"lora.{others[0]}={values[others[0]]} has no effect without lora.rank: give one, such as 8")
    return faults


def missing_peft(settings: LoraSettings) -> list[str]:
    """What must be installed first."""
    needed = settings.rank is not None and find_spec("peft") is None
    return ["lora needs peft: pip install 'placevalue[all]'"] if needed else []


def add_lora(
    model: "PreTrainedModel", tokenizer: "PreTrainedTokenizerBase", settings: LoraSettings, name: str, numbers: bool
) -> Any:
    """A PEFT model around a model, which trains the rows of the markers and a vector too if it is attached (`numbers`).

    `name` is what a loaded adapter finds its base model by.
    """
    from peft import LoraConfig, TaskType, get_peft_model

    from placevalue.modeling.mount import trainable_modules
    from placevalue.modeling.peft_support import trainable_tokens

    assert settings.rank is not None
    two_part = bool(model.config.is_encoder_decoder)
    config = LoraConfig(
        task_type=TaskType.SEQ_2_SEQ_LM if two_part else TaskType.CAUSAL_LM,
        r=settings.rank,
        lora_alpha=2 * settings.rank if settings.alpha is None else settings.alpha,  # type: ignore[arg-type]
        lora_dropout=settings.dropout,
        target_modules=list(settings.targets) or None,
        trainable_token_indices=trainable_tokens(model, tokenizer) if numbers else None,
        modules_to_save=trainable_modules(model),
    )
    try:
        adapted = get_peft_model(model, config)
    except ValueError as error:
        known = sorted(
            {path.rpartition(".")[2] for path, part in model.named_modules() if hasattr(part, "in_features")}
        )
        raise TrainingError(
            f"PEFT cannot adapt this {type(model).__name__} ({str(error).splitlines()[0]}): give lora.targets, "
            f"such as {', '.join(known)}"
        ) from None
    adapted.peft_config["default"].base_model_name_or_path = name
    return adapted
