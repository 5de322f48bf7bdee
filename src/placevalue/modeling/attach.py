"""Attach a number tokenizer to any Hugging Face model: the embedding of [AGG] becomes its number's aggregate.

Hooks on the embedding compute the aggregate from the model's own digit embeddings in every forward pass, so gradients
reach them. No module is added or renamed, but for a vector's parameters, so state dicts, checkpoints and `generate`
work as before.
"""

import logging
import warnings
from dataclasses import dataclass, field
from functools import partial
from typing import Any

from torch import nn
from transformers import PreTrainedConfig, PreTrainedModel, PreTrainedTokenizerBase, TrainerCallback

from placevalue.common.errors import AttachError, ConfigError
from placevalue.common.seal import seal_config, unseal_adapter, unseal_config
from placevalue.modeling.attached_config import find_config, recorded_config
from placevalue.modeling.hooks import HOOKS, Fold, Guard, Keep, Seal, hang
from placevalue.modeling.mount import NAME, Mounted, Watch, find_reader, load_module, mount, unmount
from placevalue.modeling.peft_support import (
    is_adapter,
    readers,
    refuse_adapter_faults,
    separate_head,
    wrap_for_adapters,
)
from placevalue.modeling.rows import SPREAD, Rows, grow, set_rows, vocabulary_of, write_rows
from placevalue.numbers.aggregation import Aggregation
from placevalue.numbers.config import HELD, AttachedConfig, Decimals, Negatives, NewRows
from placevalue.numbers.vectors import find_vector
from placevalue.tokenizer.tokenizer import (
    CODE_MAP,
    SETTINGS,
    describe_layout,
    is_rebuilt,
    marker_ids,
    number_ids,
    number_layout,
)

logger = logging.getLogger(__name__)
_STATE = "_placevalue"  # the attribute of an attached model
_LENGTH_FIRST = {"xlnet"}  # models that embed (length, batch)


@dataclass
class _Attachment:
    """What `detach` needs to restore a model and its tokenizer."""

    vocabulary: int
    """Rows of the embedding before it grew."""
    grown: int
    """Rows after it grew."""
    setting: dict[str, Any] | None
    """The entry that the model's config had before."""
    aggregation: str | Aggregation | None
    """What [AGG] holds."""
    tokenizer: dict[str, Any]
    """What the tokenizer is saved with; a copy of the model has a copy of it."""
    rebuilt: bool
    """Whether `AutoTokenizer` rebuilds the tokenizers of this model type."""
    noted: dict[str, Any]
    """What `attach` wrote into its settings, for `encode_pairs` and for folders without a model's config."""
    replaced: dict[str, Any] = field(default_factory=dict)
    """What `attach` replaced there."""
    rows: Rows = field(default_factory=list)
    """For each matrix, the marker rows that existed before they were set."""

    def note(self) -> None:
        """Tell the tokenizer which model it is attached to."""
        settings = self.tokenizer[SETTINGS]
        kind = settings.get("encoder_decoder")
        if kind is not None and kind != self.noted["encoder_decoder"]:
            logger.warning("the tokenizer was attached to another kind of model: encode_pairs now encodes for this one")
        self.replaced = {name: settings[name] for name in self.noted if name in settings}
        settings |= self.noted
        self.tokenizer.pop("auto_map", None)
        if self.rebuilt:
            self.tokenizer["auto_map"] = CODE_MAP

    def forget(self) -> None:
        """Undo `note`, unless another model was attached since."""
        settings = self.tokenizer[SETTINGS]
        if self.noted.items() <= settings.items():
            for name in self.noted:
                del settings[name]
            settings |= self.replaced
            self.tokenizer.pop("auto_map", None)


def attach(
    model: nn.Module,
    tokenizer: PreTrainedTokenizerBase,
    aggregation: str | Aggregation | None = None,
    decimals: Decimals | None = None,
    new_rows: NewRows = "drawn",
    negatives: Negatives | None = None,
    *,
    vector: str | None = None,
    markers: NewRows | None = None,
) -> nn.Module:
    """Prepare a model for a number tokenizer, in place; `detach` undoes it.

    This grows the vocabulary if necessary, initialises the markers' rows, writes the settings into the model's config
    and, if the layout has [AGG], replaces its embedding by the number's aggregate. A checkpoint that was attached
    before keeps its rows. The tokenizer stores which kind of model it is attached to, for `encode_pairs`.

    Args:
        model: A Hugging Face model, or a PEFT model around one; changed in place.
        tokenizer: From `number_tokenizer`.
        aggregation: A name in `AGGREGATIONS` or a function; None takes what the model's own config records, else what
            the tokenizer's `NumberConfig` says, else `weighted`.
        decimals: `places` or `ignore`; None is found likewise, else `places`.
        new_rows: How the markers' rows start: `drawn` from the distribution of the embeddings, or near their `mean`,
            from where models with large embeddings, such as T5, learn slowly. [PAUSE] is always drawn, as in the paper.
        negatives: `opposite` or `ignore`; None is found as for `decimals`, else `opposite`.
        vector: What else the model reads of a number, by its name in `VECTORS`; None is found likewise, else nothing.
        markers: The former name of `new_rows`.

    Returns:
        The model.

    Example:
        >>> attach(model, tokenizer, aggregation="weighted")  # doctest: +SKIP
    """
    base = base_model(model)
    if is_attached(model):
        raise AttachError(f"this {type(base).__name__} is attached already: call detach(model) first")
    if base.config.model_type in _LENGTH_FIRST:
        raise AttachError(
            f"{type(base).__name__} embeds ids with the batch last, where numbers cannot be found: expected a model "
            "that embeds (batch, length). Choose another model"
        )
    if markers is not None:
        warnings.warn("attach(markers=) is called new_rows= now", DeprecationWarning, stacklevel=2)
        new_rows = markers
    if new_rows not in SPREAD:
        raise ConfigError(f"new_rows={new_rows!r}: expected one of {', '.join(SPREAD)}")
    recorded = recorded_config(base)
    config = find_config(tokenizer, recorded, aggregation, decimals, negatives, vector)
    refuse_adapter_faults(base)
    vocabulary = vocabulary_of(base)
    with separate_head(base):
        grow(base, len(tokenizer))
    aggregation, two_part = aggregation or config.aggregation, bool(base.config.is_encoder_decoder)
    state = _Attachment(
        vocabulary,
        grown=vocabulary_of(base),
        setting=getattr(base.config, SETTINGS, None),
        aggregation=aggregation,
        tokenizer=tokenizer.init_kwargs,
        rebuilt=is_rebuilt(base.config.model_type),
        noted={"encoder_decoder": two_part} | {name: getattr(config, name) for name in HELD},
    )
    if recorded is None:
        state.rows = set_rows(base, list(marker_ids(tokenizer).values()), config.ids.pause, vocabulary, new_rows)
    base.register_forward_pre_hook(Guard(config), with_kwargs=True)
    base.register_state_dict_pre_hook(Seal(config))
    if config.needs_us:
        for each in _configs(base):
            seal_config(each)
    _register(model, base, config, aggregation, trained=recorded is not None and recorded.vector == config.vector)
    setattr(base, _STATE, state)
    setattr(base, "extra_repr", partial(_describe, config, base.extra_repr()))  # noqa: B010
    setattr(base.config, SETTINGS, config.to_dict())
    state.note()
    return model


def _register(
    model: nn.Module,
    base: PreTrainedModel,
    config: AttachedConfig,
    aggregation: str | Aggregation | None,
    trained: bool,
) -> None:
    """Register what computes [AGG] and vectors; a vector that was `trained` gets its parameters back."""
    vector = None if config.vector is None else find_vector(config.vector)
    held = aggregation if config.layout.token == "agg" and not (vector and vector.replaces_agg) else None
    mounted = None if vector is None else Mounted(vector, config, aggregation)
    if mounted is not None and vector is not None:
        path = mount(base, vector)
        if vector.build is not None:
            if trained:
                load_module(base)
            wrap_for_adapters(model, base.get_submodule(path), NAME)
        mounted.find(base.get_submodule(path))
        base.register_forward_pre_hook(Watch(mounted, path), with_kwargs=True)
    reading = find_reader(base)
    if held is not None or mounted is not None:
        fold = Fold(config, held, mounted)
        for owner, name in readers(base):
            owner.register_forward_pre_hook(Keep(name, fold, reads=(owner, name) == reading))
            hang(getattr(owner, name), fold)


def detach(model: nn.Module) -> nn.Module:
    """Undo `attach`: remove the hooks and the rows that were added, unless the vocabulary has grown since.

    Marker rows that existed before get their old values back, unless the model was loaded from an attached checkpoint,
    which has only the new ones. The tokenizer forgets the model.
    """
    base = base_model(model)
    if not is_attached(model):
        raise AttachError(f"this {type(base).__name__} is not attached: there is nothing to detach")
    state: _Attachment = getattr(base, _STATE)
    shrinks = vocabulary_of(base) == state.grown > state.vocabulary
    if shrinks and is_adapter(base.get_input_embeddings()):
        raise AttachError(
            "an adapter wraps the embedding whose added rows must be removed: call merge_and_unload() or unload() first"
        )
    for module in model.modules():
        for hooks in (module._forward_hooks, module._forward_pre_hooks, module._state_dict_pre_hooks):
            for key in [key for key, hook in hooks.items() if isinstance(hook, HOOKS)]:
                del hooks[key]
                module._forward_hooks_with_kwargs.pop(key, None)
                module._forward_pre_hooks_with_kwargs.pop(key, None)
    unmount(model, base)
    delattr(base, _STATE)
    del base.extra_repr
    for each in _configs(base):
        unseal_config(each)
    for adapter in getattr(base, "peft_config", {}).values():
        unseal_adapter(adapter)
    state.forget()
    write_rows(base, state.rows)
    if shrinks:
        with separate_head(base):
            base.resize_token_embeddings(state.vocabulary, mean_resizing=False)
    delattr(base.config, SETTINGS)
    if state.setting is not None:
        setattr(base.config, SETTINGS, state.setting)
    return model


def _describe(config: AttachedConfig, own: str) -> str:
    """What the repr of an attached model says, before what it says anyway."""
    held = f", [AGG] is {config.aggregation}" if config.aggregation and config.layout.token == "agg" else ""
    held += f", with the vector {config.vector}" if config.vector else ""
    return "\n".join(["placevalue writes " + describe_layout(config.layout) + held, *([own] if own else [])])


def is_attached(model: nn.Module) -> bool:
    """Whether `attach` has been called on this model, and `detach` has not."""
    return hasattr(base_model(model), _STATE)


def attached_aggregation(model: PreTrainedModel) -> str | Aggregation | None:
    """What [AGG] holds in an attached model, or what its vector is made from; None if that is not an aggregate."""
    return getattr(model, _STATE).aggregation


def check_attached(model: nn.Module, tokenizer: PreTrainedTokenizerBase) -> None:
    """Raise an error if a model is not attached to this number tokenizer."""
    base, layout = base_model(model), number_layout(tokenizer)
    refuse_adapter_faults(base)
    if not is_attached(model):
        raise AttachError(
            f"the tokenizer writes numbers with token={layout.token!r}, but this {type(base).__name__} is not "
            "attached, so new tokens would mean nothing to it: call attach(model, tokenizer) first"
        )
    recorded = recorded_config(base)
    if recorded is not None and (recorded.layout, recorded.ids) != (layout, number_ids(tokenizer)):
        raise AttachError(
            f"this {type(base).__name__} is attached for {recorded.layout}, the tokenizer writes {layout}: "
            "use the tokenizer it was attached with, or call detach(model) and attach it again"
        )


class RequireAttached(TrainerCallback):
    """Stops a Trainer before its first step if the model is not attached to the tokenizer.

    Example:
        >>> Trainer(model, arguments, train_dataset=data, callbacks=[RequireAttached(tokenizer)])  # doctest: +SKIP
    """

    def __init__(self, tokenizer: PreTrainedTokenizerBase) -> None:
        self.tokenizer = tokenizer

    def on_train_begin(self, args: Any, state: Any, control: Any, **kwargs: Any) -> None:  # noqa: ARG002
        """Check before the first step."""
        check_attached(kwargs["model"], self.tokenizer)


def base_model(model: Any) -> PreTrainedModel:
    """The Hugging Face model inside PEFT, DDP or compile wrappers."""
    while not isinstance(model, PreTrainedModel):
        inner = getattr(model, "_orig_mod", None) or getattr(model, "module", None)
        if inner is None and hasattr(model, "get_base_model"):
            inner = model.get_base_model()
        if inner is None:
            raise AttachError(
                f"{type(model).__name__} is not a Hugging Face model: pass a PreTrainedModel, or PEFT or DDP around one"
            )
        model = inner
    return model


def _configs(model: PreTrainedModel) -> list[PreTrainedConfig]:
    """A model's config and those of its parts with a vocabulary: T5's encoder has a copy, to be saved with."""
    parts = (part.config for part in model.modules() if isinstance(part, PreTrainedModel))
    return [model.config, *(config for config in parts if hasattr(config, "vocab_size"))]
