"""How large models are: those of the recipes without a download, others from their config."""

from dataclasses import dataclass
from typing import Any

import torch

from placevalue.common.errors import PlacevalueError
from placevalue.common.hub import load_config
from placevalue.common.registry import FLAN_CONFIG

_FLAN = {key: value for key, value in FLAN_CONFIG.items() if key not in ("architectures", "dtype")}
_BASE = {"d_model": 768, "d_ff": 2048, "num_layers": 12, "num_decoder_layers": 12, "num_heads": 12}
_LARGE = {"d_model": 1024, "d_ff": 2816, "num_layers": 24, "num_decoder_layers": 24, "num_heads": 16}
SHAPES: dict[str, dict[str, Any]] = {
    "flan-t5-small-title": _FLAN,
    "google/flan-t5-base": _FLAN | _BASE,
    "google/flan-t5-large": _FLAN | _LARGE,
    "facebook/bart-base": {
        "model_type": "bart", "vocab_size": 50265, "d_model": 768, "encoder_layers": 6, "decoder_layers": 6,
        "encoder_attention_heads": 12, "decoder_attention_heads": 12, "encoder_ffn_dim": 3072, "decoder_ffn_dim": 3072,
        "max_position_embeddings": 1024, "activation_function": "gelu",
    },
    "smollm2-135m": {
        "model_type": "llama", "vocab_size": 49152, "hidden_size": 576, "intermediate_size": 1536,
        "num_hidden_layers": 30, "num_attention_heads": 9, "num_key_value_heads": 3, "tie_word_embeddings": True,
        "max_position_embeddings": 8192, "rope_theta": 100000, "rms_norm_eps": 1e-5,
    },
}  # fmt: skip
"""The configs of the recipes' models, as their authors publish them, for those that are not on this machine."""


@dataclass(frozen=True)
class Size:
    """The weights that a token is multiplied with."""

    two_part: bool
    read: int
    """By each token of a question."""
    written: int
    """By each token of an answer."""

    def flops(self, question: float, answer: float) -> float:
        """Of a training step for one sample with so many tokens: 2 forward and 4 backward for each weight and token."""
        return 6 * (self.read * question + self.written * answer)


def model_config(name: str) -> Any:
    """The config of a model that is here, or of one of the recipes' models."""
    try:
        return load_config(name)
    except PlacevalueError:
        if name not in SHAPES:
            raise
    return shape_config(name)


def shape_config(name: str) -> Any:
    """The config of one of the recipes' models, by its name in `SHAPES`."""
    from transformers import AutoConfig

    values = dict(SHAPES[name])
    return AutoConfig.for_model(values.pop("model_type"), **values)


def empty_model(config: Any) -> Any:
    """A model of this shape without memory for its weights."""
    from transformers import AutoModelForCausalLM, AutoModelForSeq2SeqLM

    kind = AutoModelForSeq2SeqLM if config.is_encoder_decoder else AutoModelForCausalLM
    with torch.device("meta"):
        return kind.from_config(config, dtype=torch.float32)


def model_size(config: Any) -> Size:
    """How large a model of this shape is."""
    model = empty_model(config)
    tables = {id(each.weight) for each in model.modules() if isinstance(each, torch.nn.Embedding)}
    head = model.get_output_embeddings().weight.numel()

    def matrices(part: Any) -> int:
        return sum(each.numel() for each in part.parameters() if each.dim() > 1 and id(each) not in tables)

    if config.is_encoder_decoder:
        return Size(True, matrices(model.get_encoder()), matrices(model.get_decoder()) + head)
    body = matrices(model.get_decoder()) + head
    return Size(False, body, body)
