"""Save and load an attached model with its tokenizer, from folders that Trainer, PEFT or this module wrote.

The settings are in the model's `config.json`, so plain `AutoModel` loads every folder too; `from_pretrained` here also
attaches the model and checks that the tokenizer is the one it was trained with.
"""

import json
from os import PathLike
from pathlib import Path
from typing import Any

from torch import nn
from transformers import PreTrainedTokenizerBase, PreTrainedTokenizerFast

from placevalue.common.errors import CheckpointError
from placevalue.common.hub import load_model, load_tokenizer
from placevalue.modeling.attach import attach, base_model, check_attached, recorded_config
from placevalue.numbers.aggregation import Aggregation
from placevalue.tokenizer.tokenizer import SETTINGS, check_unchanged, is_number_tokenizer, number_layout


def save_pretrained(model: nn.Module, tokenizer: PreTrainedTokenizerBase, folder: str | PathLike[str]) -> None:
    """Save an attached model and its tokenizer into a folder that `from_pretrained` and plain `AutoModel` load.

    Example:
        >>> save_pretrained(model, tokenizer, "out")  # doctest: +SKIP
    """
    check_attached(model, tokenizer)
    folder = Path(folder)
    if folder.exists() and not folder.is_dir():
        raise CheckpointError(f"{folder} is a file, expected a folder: choose another name")
    saver: Any = model if hasattr(model, "save_pretrained") else base_model(model)
    saver.save_pretrained(folder)
    tokenizer.save_pretrained(folder)


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
    if (place / "adapter_config.json").is_file():
        return _load_adapter(place, tokenizer, aggregation, **kwargs), tokenizer
    model = load_model(str(folder), **kwargs)
    if recorded_config(model) is None:
        raise CheckpointError(
            f"{folder} holds a {type(model).__name__} that was never attached to its tokenizer, which writes "
            f"{number_layout(tokenizer)}: call attach(model, tokenizer) before training and saving"
        )
    return attach(model, tokenizer, aggregation), tokenizer


def load_number_tokenizer(folder: str | PathLike[str]) -> PreTrainedTokenizerBase:
    """Load a number tokenizer with its pipeline, which `AutoTokenizer` drops for some families, such as Qwen 2."""
    if Path(folder).is_dir() and not (Path(folder) / "tokenizer.json").is_file():
        if list(Path(folder).glob("checkpoint-*")):
            raise CheckpointError(f"{folder} holds several checkpoints: choose one, such as {folder}/checkpoint-N")
        raise CheckpointError(
            f"{folder} has no tokenizer.json: save it there with tokenizer.save_pretrained, pass "
            "processing_class=tokenizer to Trainer, or pass the tokenizer to from_pretrained"
        )
    tokenizer = load_tokenizer(folder, PreTrainedTokenizerFast)
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
    from peft import PeftModel

    base_name = json.loads((folder / "adapter_config.json").read_text()).get("base_model_name_or_path")
    if not base_name:
        raise CheckpointError(f"{folder}/adapter_config.json does not name its base model: set base_model_name_or_path")
    noted = tokenizer.init_kwargs[SETTINGS]
    if "aggregation" not in noted:
        raise CheckpointError(
            f"the adapter in {folder} was trained on a model that was never attached: "
            "call attach(model, tokenizer) before training"
        )
    model = load_model(base_name, **kwargs)
    attach(model, tokenizer, aggregation or noted["aggregation"], noted["decimals"])
    return PeftModel.from_pretrained(model, folder)
