"""The hooks behind `attach`: what happens in a forward pass of an attached model.

`Extend` has the ten digits embedded along with the ids, `Fold` puts each number's aggregate where its [AGG] stands,
`Keep` hangs the two on whatever replaces the embedding, and `Guard` refuses adapters that would train nothing.
"""

from typing import Any

import torch
from torch import Tensor, nn

from placevalue.modeling.peft_support import refuse_adapter_faults
from placevalue.numbers.aggregation import Aggregation, find_aggregation
from placevalue.numbers.config import AttachedConfig
from placevalue.numbers.spans import constant, find_digits


def _spare_rows(ids: Tensor) -> int:
    """How many rows of ids `(batch, length)` the ten digits take; none where a row is too short for a number."""
    if ids.dim() != 2 or ids.shape[1] < 3:
        return 0  # as in every step of cached generation
    return -(-10 // ids.shape[1])


class Extend:
    """The forward pre-hook: has the ten digits embedded along with the ids, in spare rows below them.

    So they get the module's own scaling and dtype, and a backward pass through one embedding call, not two, each of
    which would make a gradient as large as the vocabulary.
    """

    def __init__(self, digits: tuple[int, ...]) -> None:
        self.digits = digits

    def __call__(self, _module: nn.Module, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """The module's arguments, with spare rows."""
        name = next(iter(kwargs), "")
        ids = args[0] if args else kwargs[name]
        spare = _spare_rows(ids)
        if not spare:
            return None
        digits = constant(torch.tensor, self.digits, ids.device).to(ids.dtype)
        rows = nn.functional.pad(digits, (0, spare * ids.shape[1] - 10), value=self.digits[0]).view(spare, -1)
        longer = torch.cat([ids, rows])
        return ((longer, *args[1:]), kwargs) if args else (args, kwargs | {name: longer})


class Fold:
    """The forward hook: takes the spare rows off again and puts each number's aggregate where its [AGG] stands."""

    def __init__(self, config: AttachedConfig, aggregation: str | Aggregation) -> None:
        self.config = config
        self.aggregation = aggregation

    def __call__(self, _module: nn.Module, args: tuple[Any, ...], kwargs: dict[str, Any], output: Tensor) -> Tensor:
        """The embeddings `(batch, length, dim)` of ids `(batch, length)`, with every [AGG] folded."""
        ids = args[0] if args else next(iter(kwargs.values()))
        spare = _spare_rows(ids)
        if not spare:
            return output
        digits = output[-spare:].flatten(0, 1)[:10]
        return self.fold(ids[:-spare], digits, output[:-spare])

    def fold(self, ids: Tensor, rows: Tensor, output: Tensor) -> Tensor:
        """`output` with the aggregates of `rows`, the ten digit embeddings, at every [AGG] of `ids`."""
        numbers = self.config.ids
        function = find_aggregation(self.aggregation) if isinstance(self.aggregation, str) else self.aggregation
        exact = rows if rows.dtype == torch.float64 else rows.float()
        with torch.autocast(output.device.type, enabled=False):
            digits = find_digits(ids, numbers, self.config.decimals, at_agg=True)
            aggregates = function(digits, exact)
        slots = torch.where(digits.mask, digits.numbers, 0)
        found = torch.zeros_like(slots).scatter_add(1, slots, digits.mask.long()) > 0
        here = (ids == numbers.agg) & found
        return torch.where(here.unsqueeze(-1), aggregates.to(output.dtype), output)


def hang(embedding: nn.Module, fold: Fold) -> None:
    """Hang both hooks on an embedding, unless they are there: two names may be one module."""
    if any(isinstance(hook, Fold) for hook in embedding._forward_hooks.values()):
        return
    embedding.register_forward_pre_hook(Extend(fold.config.ids.digits), with_kwargs=True)
    embedding.register_forward_hook(fold, with_kwargs=True)


class Keep:
    """A forward pre-hook on an embedding's owner: `resize_token_embeddings` and PEFT put another module there."""

    def __init__(self, name: str, fold: Fold) -> None:
        self.name = name
        self.fold = fold

    def __call__(self, owner: nn.Module, _args: tuple[Any, ...]) -> None:
        """Hang the fold on whatever embeds ids now."""
        hang(getattr(owner, self.name), self.fold)


class Guard:
    """A forward pre-hook on the model: an adapter that was put on after `attach` may train nothing."""

    def __init__(self) -> None:
        self.checked: tuple[int, int] | None = None

    def __call__(self, model: Any, _args: tuple[Any, ...]) -> None:
        """Refuse such adapters before they are trained; look again only where an embedding has been replaced."""
        if not model.training or torch.compiler.is_compiling():
            return
        reader = model.get_encoder() if model.config.is_encoder_decoder else model
        current = id(model.get_input_embeddings()), id(reader.get_input_embeddings())
        if current != self.checked:
            refuse_adapter_faults(model)
            self.checked = current


HOOKS = Extend | Fold | Keep | Guard
"""Every kind of hook there is, for `isinstance`."""
