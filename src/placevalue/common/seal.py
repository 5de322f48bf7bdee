"""Seals: entries in saved folders that other loaders refuse, with an error that says what to call instead.

A model whose [AGG] is computed by hooks, or whose numbers are rewritten, has an ordinary config and ordinary weights.
transformers and PEFT would open its folder without the one or the other, and it would answer wrongly. Each seal is a
value that their own checks refuse and quote.
"""

from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from placevalue.common.files import read_json, write_json

if TYPE_CHECKING:
    from transformers import PreTrainedConfig

ADAPTER_CONFIG = "adapter_config.json"
VECTOR = "placevalue_vector"
"""The name of a vector's weights in a saved model."""
_CALL = "load the folder with placevalue.from_pretrained(folder)"
_FUSION = "placevalue"
_TASK = " with placevalue"
# Seals of every version are known by how they begin; the rest is advice.
_MODEL_SEAL = f"{_FUSION}. Plain transformers would leave out how this model reads and writes numbers: {_CALL}"
_ADAPTER_SEAL = f"{_TASK}: plain PEFT would leave out what this adapter was trained with, so {_CALL}"


def seal_config(config: "PreTrainedConfig") -> None:
    """Have folders with this config refuse `from_pretrained` of transformers, as a fusion that it does not know."""
    for part in _text_configs(config):
        part.fusion_config = own_fusions(part) | {_MODEL_SEAL: True}


def unseal_config(config: "PreTrainedConfig") -> None:
    """Undo `seal_config`."""
    for part in _text_configs(config):
        part.fusion_config = own_fusions(part)
        if not part.fusion_config:
            del part.fusion_config


def is_sealed(config: "PreTrainedConfig") -> bool:
    """Whether a config has the seal."""
    return any(name.startswith(_FUSION) for name in getattr(config, "fusion_config", None) or {})


def own_fusions(config: "PreTrainedConfig") -> dict[str, Any]:
    """The fusions of a config without the seal: the `fusion_config` with which its folder opens."""
    found = getattr(config, "fusion_config", None) or {}
    return {name: value for name, value in found.items() if not name.startswith(_FUSION)}


def _text_configs(config: "PreTrainedConfig") -> Iterator["PreTrainedConfig"]:
    """A config and, of a model with several parts, those with a vocabulary: each can be loaded from the folder."""
    yield config
    for name in config.sub_configs:
        part: Any = getattr(config, name, None)
        if getattr(part, "vocab_size", None) is not None:
            yield from _text_configs(part)


def seal_adapter(config: Any) -> None:
    """Have the folder that a PEFT config is next saved to refuse PEFT, as a task that it does not know."""
    config.save_pretrained = partial(_save_sealed, config)


def unseal_adapter(config: Any) -> None:
    """Undo `seal_adapter`."""
    vars(config).pop("save_pretrained", None)


def _save_sealed(config: Any, save_directory: str, **options: Any) -> None:
    unseal_adapter(config)  # whoever uses the same config for another model saves it as it is
    config.save_pretrained(save_directory, **options)
    file = Path(save_directory) / ADAPTER_CONFIG
    values = read_json(file)
    write_json(file, values | {"task_type": f"{values['task_type']}{_ADAPTER_SEAL}"})


def read_adapter(folder: Path) -> tuple[dict[str, Any], bool]:
    """The values of a folder's `adapter_config.json` without the seal, and whether it has the seal."""
    values: dict[str, Any] = read_json(folder / ADAPTER_CONFIG)
    task, seal, _ = str(values.get("task_type")).partition(_TASK)
    return values | ({"task_type": None if task == "None" else task} if seal else {}), bool(seal)
