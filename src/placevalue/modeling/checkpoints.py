"""Save and load an attached model with its tokenizer, from folders that Trainer, PEFT or this module wrote.

The settings are in the model's `config.json`. `from_pretrained` attaches the model as they say and checks that the
tokenizer is the one it was trained with. Other loaders refuse a folder that would answer wrongly without this.
"""

from os import PathLike
from pathlib import Path
from typing import Any

from torch import nn
from transformers import PreTrainedTokenizerBase

from placevalue.common.errors import CheckpointError
from placevalue.common.hub import CARD, load_model, load_tokenizer
from placevalue.common.ownership import may_rewrite
from placevalue.common.seal import ADAPTER_CONFIG, read_adapter
from placevalue.modeling.attach import attach, base_model, check_attached
from placevalue.modeling.attached_config import recorded_config
from placevalue.modeling.card import write_card
from placevalue.modeling.hooks import seal_adapters
from placevalue.numbers.aggregation import Aggregation
from placevalue.numbers.config import FORMER
from placevalue.tokenizer.tokenizer import (
    SETTINGS,
    NumberTokenizer,
    check_unchanged,
    is_number_tokenizer,
    number_layout,
)


def save_pretrained(model: nn.Module, tokenizer: PreTrainedTokenizerBase, folder: str | PathLike[str]) -> None:
    """Save an attached model, its tokenizer and a model card into a folder that `from_pretrained` loads.

    A layout without [AGG] makes an ordinary folder, which `AutoModel` and `AutoTokenizer` load too. A model card that
    somebody else wrote or edited stays as it is.

    Example:
        >>> save_pretrained(model, tokenizer, "out")  # doctest: +SKIP
    """
    check_attached(model, tokenizer)
    folder = Path(folder)
    if folder.exists() and not folder.is_dir():
        raise CheckpointError(f"{folder} is a file, expected a folder: choose another name")
    base = base_model(model)
    config = recorded_config(base)
    assert config is not None
    seal_adapters(model, base, config)  # its hook does not find prompts, which are not inside the base model
    saver: Any = model if hasattr(model, "save_pretrained") else base
    ours = may_rewrite(folder / CARD)  # PEFT writes a card too
    saver.save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    if ours:
        write_card(folder, model)


def from_pretrained(
    folder: str | PathLike[str],
    tokenizer: PreTrainedTokenizerBase | None = None,
    aggregation: Aggregation | None = None,
    **kwargs: Any,
) -> tuple[Any, PreTrainedTokenizerBase]:
    """Load an attached model and its tokenizer from what `save_pretrained`, Trainer or PEFT wrote.

    Args:
        folder: A folder or hub name with an attached model, or a folder with an adapter of one.
        tokenizer: If the folder has none.
        aggregation: Your own function, if the model was attached with one that is not in `AGGREGATIONS`.
        **kwargs: For the model's own `from_pretrained`, such as `dtype` or `device_map`.

    Example:
        >>> model, tokenizer = from_pretrained("out")  # doctest: +SKIP
    """
    place = Path(folder)
    tokenizer = load_number_tokenizer(folder) if tokenizer is None else tokenizer
    if (place / ADAPTER_CONFIG).is_file():
        return _load_adapter(place, tokenizer, aggregation, **kwargs), tokenizer
    model = load_model(str(folder), sealed=True, **kwargs)
    if recorded_config(model) is None:
        raise CheckpointError(
            f"{folder} holds a {type(model).__name__} that was never attached to its tokenizer, which writes "
            f"{number_layout(tokenizer)}: call attach(model, tokenizer) before training and saving"
        )
    return attach(model, tokenizer, aggregation), tokenizer


def load_number_tokenizer(folder: str | PathLike[str]) -> PreTrainedTokenizerBase:
    """Load a number tokenizer, and check that it encodes as it did when it was made."""
    if Path(folder).is_dir() and not (Path(folder) / "tokenizer.json").is_file():
        if list(Path(folder).glob("checkpoint-*")):
            raise CheckpointError(f"{folder} holds several checkpoints: choose one, such as {folder}/checkpoint-N")
        raise CheckpointError(
            f"{folder} has no tokenizer.json: save it there with tokenizer.save_pretrained, pass "
            "processing_class=tokenizer to Trainer, or pass the tokenizer to from_pretrained"
        )
    tokenizer = load_tokenizer(folder, NumberTokenizer)
    if not is_number_tokenizer(tokenizer):
        raise CheckpointError(
            f"the tokenizer in {folder} is a plain {type(tokenizer).__name__} that does not write numbers: expected "
            "one from number_tokenizer. Save that one there"
        )
    check_unchanged(tokenizer)
    return tokenizer


def _load_adapter(
    folder: Path, tokenizer: PreTrainedTokenizerBase, aggregation: Aggregation | None, **kwargs: Any
) -> Any:
    """Load a PEFT adapter on its base model, attached as it was when the adapter was trained."""
    from peft import PeftConfig, PeftModel

    values, _ = read_adapter(folder)
    base_name = values.get("base_model_name_or_path")
    if not base_name:
        raise CheckpointError(f"{folder}/{ADAPTER_CONFIG} does not name its base model: set base_model_name_or_path")
    noted = tokenizer.init_kwargs[SETTINGS]
    if "aggregation" not in noted:
        raise CheckpointError(
            f"the adapter in {folder} was trained on a model that was never attached: "
            "call attach(model, tokenizer) before training"
        )
    model = load_model(base_name, sealed=True, **kwargs)
    negatives = noted.get("negatives", FORMER["negatives"])
    held = aggregation or noted["aggregation"]
    attach(model, tokenizer, held, noted["decimals"], negatives=negatives, vector=noted.get("vector"))
    return PeftModel.from_pretrained(model, folder, config=PeftConfig.from_peft_type(**values))
