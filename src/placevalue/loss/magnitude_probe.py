"""A loss on what a model reads: a linear head must tell the size of the question's numbers from a layer's output.

While training, the head is a part of the model, so that optimizers and DDP find it. It is never saved.
"""

import math
from typing import Any

import torch
from torch import Tensor, nn
from transformers import PreTrainedModel

from placevalue.common.errors import ModelError, TrainingError
from placevalue.loss.number_targets import OUTSIDE
from placevalue.numbers.config import NumberIds
from placevalue.numbers.spans import constant, place_digits, read_tokens
from placevalue.tokenizer.encoding import IGNORED

NAME = "magnitude_probe"
"""The head's name in the model."""


class MagnitudeProbe(nn.Module):
    """(w h + b - log2 |x|)^2, where h is the output of layer floor(0.9 L) of L at the last token of a number x.

    It is the first layer if there are fewer than three. A layer of an encoder-decoder is one of its encoder. A number
    of 0 has no size and is left out.

    Args:
        model: The model to watch: it gets the head, started at zero, and hooks that keep what it last read.
        ids: What numbers consist of.
        decimals: How digits after the point count.
    """

    def __init__(self, model: PreTrainedModel, ids: NumberIds, decimals: str) -> None:
        super().__init__()
        remove_probe(model)
        self.ids, self.decimals, self.causal = ids, decimals, not model.config.is_encoder_decoder
        reader: Any = model if self.causal else model.get_encoder()
        layer = _find_layer(reader)
        weight = next(layer.parameters())
        self.head = nn.Linear(reader.config.hidden_size, 1, device=weight.device)
        nn.init.zeros_(self.head.weight)
        nn.init.zeros_(self.head.bias)
        self.read: Tensor | None = None
        self.hidden: Tensor | None = None
        self.register_state_dict_post_hook(_leave_out)
        self.register_load_state_dict_post_hook(_do_without)
        reader.register_forward_pre_hook(self._keep_ids, with_kwargs=True)
        layer.register_forward_hook(self._keep_hidden)
        model.add_module(NAME, self)

    def __getstate__(self) -> dict[str, Any]:
        return self.__dict__ | {"read": None, "hidden": None}

    def _keep_ids(self, _module: nn.Module, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        self.read = args[0] if args else kwargs.get("input_ids")

    def _keep_hidden(self, _module: nn.Module, _args: tuple[Any, ...], output: Any) -> None:
        self.hidden = output if isinstance(output, Tensor) else output[0]

    def measure(self, labels: Tensor) -> tuple[Tensor, Tensor]:
        """The loss summed over the numbers of each question last read, and how many it has: `(batch,)` each.

        The question of a decoder-only model is what has no label.
        """
        ids, hidden, self.read, self.hidden = self.read, self.hidden, None, None
        fits = labels.shape[: 2 if self.causal else 1]
        if ids is None or hidden is None or ids.shape[: len(fits)] != fits or hidden.shape[:2] != ids.shape:
            raise TrainingError(
                "magnitude-probe did not see what the model read for these labels: call the model that the loss was "
                "made with, with input_ids, before each loss"
            )
        if torch.is_grad_enabled() and self.training and not hidden.requires_grad:
            raise TrainingError(
                "magnitude-probe gets hidden states without a gradient: use gradient_checkpointing_kwargs="
                "{'use_reentrant': False}, or train layers below the one it reads"
            )
        with torch.no_grad():
            if self.causal:
                ids = torch.where(labels == IGNORED, ids, OUTSIDE)
            last, size = _find_sizes(ids, self.ids, self.decimals)
        exact = torch.promote_types(hidden.dtype, torch.float32)
        weight, bias = (each.to(exact) for each in (self.head.weight, self.head.bias))
        guess = nn.functional.linear(hidden.to(exact), weight, bias).squeeze(-1).gather(1, last)
        known = size.isfinite()
        off = torch.where(known, guess - torch.where(known, size, 0), 0)
        return off.square().sum(1), known.sum(1, dtype=exact)


def remove_probe(model: PreTrainedModel) -> None:
    """Remove the head and its hooks from a model, if it has them."""
    for module in model.modules():
        for hooks in (module._forward_hooks, module._forward_pre_hooks):
            for key in [key for key, each in hooks.items() if isinstance(_owner(each), MagnitudeProbe)]:
                del hooks[key]
                module._forward_pre_hooks_with_kwargs.pop(key, None)
    if hasattr(model, NAME):
        delattr(model, NAME)


def _owner(hook: Any) -> object:
    return getattr(hook, "__self__", None)


def _find_layer(reader: Any) -> nn.Module:
    """The layer at nine tenths of a model."""
    count = reader.config.num_hidden_layers
    for module in reader.modules():
        if isinstance(module, nn.ModuleList) and len(module) == count:
            return module[max(1, math.floor(0.9 * count)) - 1]
    raise ModelError(
        f"{type(reader).__name__} has no list of {count} layers, expected one to read hidden states from: choose "
        "another loss or model"
    )


def _find_sizes(ids: Tensor, number_ids: NumberIds, decimals: str) -> tuple[Tensor, Tensor]:
    """For each position, if a number starts there: its last token's, and log2 of its size; without one, -inf or NaN."""
    tokens = read_tokens(ids, number_ids)
    digits = place_digits(tokens, number_ids, decimals, negatives="ignore")
    slots = digits.numbers * digits.mask
    shift = digits.leading - 1  # so that numbers of any length fit into float32
    parts = torch.where(digits.mask, digits.values * 10.0 ** (digits.places - shift), 0)
    none = torch.zeros_like(parts)
    leading = none.scatter_reduce(1, slots, torch.where(digits.mask, shift, 0).to(parts), "amax")
    size = none.scatter_add(1, slots, parts).log2() + leading * math.log2(10)
    ends = tokens.member & (tokens.kind("close") > 0) if tokens.marked else tokens.member
    here = constant(torch.arange, ids.shape[1], ids.device)
    last = torch.zeros_like(ids).scatter_reduce(1, tokens.start * ends, here * ends, "amax")
    # A marked number that was cut off has no close marker; without markers, `encode_pairs` cuts none.
    return last, torch.where(last > 0, size, -torch.inf) if tokens.marked else size


def _leave_out(_module: nn.Module, state: dict[str, Any], prefix: str, _metadata: Any) -> None:
    for name in [name for name in state if name.startswith(prefix)]:
        del state[name]


def _do_without(_module: nn.Module, incompatible: Any) -> None:
    missing: list[str] = incompatible.missing_keys
    missing[:] = [name for name in missing if f"{NAME}." not in name]
