"""The hooks that `attach` registers: what happens in a forward pass of an attached model.

`Extend` embeds the ten digits along with the ids, `Fold` replaces each [AGG]'s embedding by its number's aggregate and
puts vectors, `Keep` registers both on a module that replaces the embedding, `Guard` refuses batches and
adapters that would silently train nothing, or the wrong thing, and `Seal` marks adapters that are about to be saved.
"""

from typing import Any

import torch
from torch import Tensor, nn

from placevalue.common.errors import AttachError
from placevalue.common.seal import seal_adapter
from placevalue.modeling.mount import CHECKED_BATCHES, Mounted, Watch, find_slots, writes_on
from placevalue.modeling.peft_support import carries_rows, refuse_adapter_faults
from placevalue.numbers.aggregation import Aggregation, aggregate, find_aggregation
from placevalue.numbers.config import AttachedConfig
from placevalue.numbers.constants import constant, exporting
from placevalue.numbers.spans import find_digits
from placevalue.tokenizer.encoding import IGNORED

LONGEST_WAIT = 500
"""Batches in which numbers are waited for."""
_CURE = "Train with data_collator=placevalue.NumberCollator(tokenizer, model), or make the data with encode_pairs"


class Extend:
    """The forward pre-hook of an embedding: appends the ten digits to the ids, in spare rows.

    So they get the module's own scaling and dtype. A second call of the embedding would make a second gradient as large
    as the vocabulary.
    """

    def __init__(self, fold: "Fold") -> None:
        self.fold = fold

    def __call__(self, _module: nn.Module, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """Return the module's arguments with spare rows."""
        name = next(iter(kwargs), "")
        ids = args[0] if args else kwargs[name]
        spare = self.fold.spare_rows(ids)
        if not spare:
            return None
        known = self.fold.config.ids.digits
        digits = constant(torch.tensor, known, ids.device).to(ids.dtype)
        rows = digits.unsqueeze(1).expand(10, ids.shape[1])
        if not exporting():
            rows = nn.functional.pad(digits, (0, spare * ids.shape[1] - 10), value=known[0]).view(spare, -1)
        longer = torch.cat([ids, rows])
        return ((longer, *args[1:]), kwargs) if args else (args, kwargs | {name: longer})


class Fold:
    """The forward hook of an embedding: removes the spare rows, replaces each [AGG] and puts vectors.

    Args:
        config: What the model knows about numbers.
        aggregation: What replaces each [AGG]; None replaces nothing.
        mounted: The vector that the model reads.
    """

    def __init__(self, config: AttachedConfig, aggregation: str | Aggregation | None, mounted: Mounted | None) -> None:
        self.config, self.aggregation, self.mounted = config, aggregation, mounted

    def spare_rows(self, ids: Tensor) -> int:
        """How many rows of ids `(batch, length)` the ten digits take; 0 if there is nothing to do."""
        if exporting():
            if self.mounted is not None:
                raise AttachError(
                    f"a model with vector={self.config.vector!r} cannot be exported, since what it adds depends on "
                    "what was read before: take prompt embeddings from the model itself, see docs/serving.md"
                )
            return 10  # whatever the length, since others follow
        placed = self.mounted is not None and self.mounted.at_digits and self.mounted.reads
        if ids.dim() != 2 or (ids.shape[1] < 2 and not placed):
            return 0  # as in every step of cached generation
        return -(-10 // ids.shape[1])

    def __call__(self, _module: nn.Module, args: tuple[Any, ...], kwargs: dict[str, Any], output: Tensor) -> Tensor:
        """Return the embeddings `(batch, length, dim)` of ids `(batch, length)`."""
        ids = args[0] if args else next(iter(kwargs.values()))
        spare = self.spare_rows(ids)
        reads, written = (False, None) if self.mounted is None else self.mounted.take()
        if not spare:
            return output
        rows = output[-spare:, 0] if exporting() else output[-spare:].flatten(0, 1)[:10]
        ids, output = ids[:-spare], output[:-spare]
        exact = rows if rows.dtype == torch.float64 else rows.float()
        with torch.autocast(output.device.type, enabled=False):
            if self.aggregation is not None:
                digits = find_digits(ids, self.config.ids, self.config.decimals, True, self.config.negatives)
                aggregates = aggregate(find_aggregation(self.aggregation), digits, exact)
                here = find_slots(ids, digits, self.config.ids.agg)
                output = torch.where(here.unsqueeze(-1), aggregates.to(output.dtype), output)
            return self.mounted.put(ids, exact, output, written) if self.mounted and reads else output


def hang(embedding: nn.Module, fold: Fold) -> None:
    """Register both hooks on an embedding, unless it has them: two names may be the same module."""
    if any(isinstance(hook, Fold) for hook in embedding._forward_hooks.values()):
        return
    embedding.register_forward_pre_hook(Extend(fold), with_kwargs=True)
    embedding.register_forward_hook(fold, with_kwargs=True)


class Keep:
    """A forward pre-hook of the embedding's parent: `resize_token_embeddings` and PEFT replace the embedding."""

    def __init__(self, name: str, fold: Fold, reads: bool = False) -> None:
        self.name, self.fold = name, fold
        self.reads = reads  # through this embedding, rather than writes: both may be one module

    def __call__(self, owner: nn.Module, _args: tuple[Any, ...]) -> None:
        """Register the hooks on the module that now embeds ids."""
        if self.fold.mounted is not None:
            self.fold.mounted.enter(owner, self.reads)
        hang(getattr(owner, self.name), self.fold)


class TargetCheck:
    """Refuses targets that a model cannot write, in the first batches that have numbers.

    Looking at every batch would stall an accelerator.
    """

    def __init__(self, config: AttachedConfig) -> None:
        self.config = config
        self.left, self.patience = CHECKED_BATCHES if config.layout.needs_rows else 0, LONGEST_WAIT

    def __call__(self, targets: Tensor | None, ids: Tensor | None = None) -> None:
        """Check targets `(batch, length)`; with the `ids` of a decoder-only model also which of them carry loss."""
        if targets is None or targets.is_floating_point() or not self.left or not self.patience:
            return
        self.patience -= 1
        known, layout = self.config.ids, self.config.layout
        unwritten = (targets == known.agg) | (targets == known.pause)
        cut = torch.zeros_like(unwritten[..., :1])
        if ids is not None and ids.shape == targets.shape:
            learnt = targets != IGNORED
            # Masks that go by characters leave out all markers, of which a text has none.
            if layout.position == "before":
                unwritten[:, :-1] |= (ids == known.agg)[:, :-1] & learnt[:, 1:]
            last = 2 if layout.token and layout.position == "after" else 1
            cut = (ids == known.close)[:, last:] & ~learnt[:, last:] & learnt[:, :-last]
        digits = constant(torch.tensor, (known.open,) if known.marked else known.digits, targets.device)
        found = torch.stack([unwritten.any(), cut.any(), torch.isin(targets, digits).any()]).tolist()
        self.left -= any(found)
        if found[0]:
            raise AttachError(
                "what the model should write contains [AGG] or [PAUSE], which a model reads and never writes: it would "
                f"learn to expect them, and answer with nothing. {_CURE}"
            )
        if found[1]:
            raise AttachError(
                "the digits of a number carry loss and the marker after them does not, so the model would not learn to "
                f"write whole numbers: masks that go by characters, as of chat turns, leave out markers. {_CURE}"
            )


class Guard:
    """A forward pre-hook of the model that refuses what would silently train nothing, or the wrong thing."""

    def __init__(self, config: AttachedConfig) -> None:
        self.checks = {True: TargetCheck(config), False: TargetCheck(config)}  # in training, and in evaluation
        self.check_fed = TargetCheck(config)
        self.ids: Tensor | None = None  # what a decoder-only model read, for a loss that gets the labels alone
        self.checked: tuple[int, int] | None = None

    def __call__(self, model: Any, _args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        """Check the first batches, and adapters whenever an embedding was replaced."""
        if torch.compiler.is_compiling():
            return
        self.ids = None if model.config.is_encoder_decoder else kwargs.get("input_ids")
        if writes_on(model):
            self.checks[model.training](kwargs.get("labels"), self.ids)
        if not model.training:
            return
        if model.config.is_encoder_decoder:
            self._check_decoder(model, kwargs)
        reader = model.get_encoder() if model.config.is_encoder_decoder else model
        current = id(model.get_input_embeddings()), id(reader.get_input_embeddings())
        if current != self.checked:
            refuse_adapter_faults(model)
            self.checked = current

    def _check_decoder(self, model: Any, kwargs: dict[str, Any]) -> None:
        self.check_fed(kwargs.get("decoder_input_ids"))
        fed = ("labels", "decoder_input_ids", "decoder_inputs_embeds")
        if "input_ids" in kwargs and all(kwargs.get(name) is None for name in fed):
            raise AttachError(
                f"this {type(model).__name__} is trained without decoder_input_ids, so its decoder would not see the "
                "targets: give the collator the model, DataCollatorForSeq2Seq(tokenizer, model=model)"
            )


def last_ids(model: Any) -> Tensor | None:
    """What a decoder-only model read last."""
    return next((hook.ids for hook in model._forward_pre_hooks.values() if isinstance(hook, Guard)), None)


def seal_adapters(owner: Any, model: Any, config: AttachedConfig) -> None:
    """Seal the adapters of an owner, if they would answer wrongly on a model that is not attached."""
    markers = {config.ids.open, config.ids.close, config.ids.agg, config.ids.pause} - {-1}
    for adapter in getattr(owner, "peft_config", {}).values():
        if config.needs_us or not carries_rows(adapter, model, markers):
            seal_adapter(adapter)


class Seal:
    """A state-dict pre-hook of the model that seals its adapters: whoever saves them asks for the state dict first."""

    def __init__(self, config: AttachedConfig) -> None:
        self.config = config

    def __call__(self, model: Any, _prefix: str, _keep_vars: bool) -> None:
        """Seal what PEFT put inside the model."""
        seal_adapters(model, model, self.config)


HOOKS = Extend | Fold | Keep | Guard | Seal | Watch
"""All hooks, for `isinstance`."""
