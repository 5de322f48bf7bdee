"""PEFT and tied embeddings: which matrices a model reads and writes, and which adapters train them.

Nothing here imports PEFT; its wrappers are recognised by the module of their class.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from torch import nn

from placevalue.common.errors import AttachError
from placevalue.tokenizer.tokenizer import marker_ids

if TYPE_CHECKING:
    from transformers import PreTrainedModel, PreTrainedTokenizerBase


def trainable_tokens(
    model: "PreTrainedModel", tokenizer: "PreTrainedTokenizerBase"
) -> list[int] | dict[str, list[int]] | None:
    """The `trainable_token_indices` with which PEFT trains the new tokens of an attached model; None if it has none.

    A list if input and output embeddings are one matrix. If they are two, both are named, since PEFT would otherwise
    train the markers in the input only.

    Example:
        >>> LoraConfig(trainable_token_indices=trainable_tokens(model, tokenizer))  # doctest: +SKIP
    """
    markers = list(marker_ids(tokenizer).values())
    if not markers:
        return None
    if is_tied(model):
        return markers
    names = {id(module): name.rpartition(".")[2] for name, module in reversed(list(model.named_modules()))}
    return {names[id(part)]: markers for part in (model.get_input_embeddings(), model.get_output_embeddings())}


def wrap_for_adapters(model: Any, owner: nn.Module, name: str) -> None:
    """Have the adapters that a PEFT model has already train and save a module that was added to it since."""
    found = _adapters(model)
    configs = {adapter: each for adapter, each in found.items() if not each.is_prompt_learning}
    module = getattr(owner, name)
    if not configs:
        module.requires_grad_(not found)  # prompts are saved without anything of the model
        return
    from peft.utils import ModulesToSaveWrapper

    first, *others = configs
    wrapper = ModulesToSaveWrapper(module, first)
    for adapter in others:
        wrapper.update(adapter)
    for config in configs.values():
        config.modules_to_save = [*dict.fromkeys([*(config.modules_to_save or []), name])]
    wrapper.set_adapter(first, inference_mode=configs[first].inference_mode)
    setattr(owner, name, wrapper)


def unwrap_for_adapters(model: Any, name: str) -> None:
    """Undo what `wrap_for_adapters` wrote into the adapters' configs."""
    for config in _adapters(model).values():
        kept = [each for each in getattr(config, "modules_to_save", None) or [] if each != name]
        if hasattr(config, "modules_to_save"):
            config.modules_to_save = kept or None


def _adapters(model: Any) -> dict[str, Any]:
    """The configs of the adapters around or inside a model."""
    return getattr(model, "peft_config", None) or {}


def carries_rows(adapter: Any, model: "PreTrainedModel", ids: set[int]) -> bool:
    """Whether the weights of an adapter, given by its config, hold the rows of these ids in every matrix of a model."""
    if not ids:
        return True
    trained = getattr(adapter, "trainable_token_indices", None) or []
    if not isinstance(trained, dict):
        return is_tied(model) and ids <= set(trained)
    return all(ids <= set(rows) for rows in trained.values())


@contextmanager
def separate_head(model: "PreTrainedModel") -> Iterator[None]:
    """Allow resizing a vocabulary without tying, and so losing, a separate output matrix.

    T5's config says that input and output are tied even for checkpoints with two matrices, such as FLAN-T5. This also
    corrects the model's list of tied weights, which saving, loading and PEFT use.
    """
    said = getattr(model.config, "tie_word_embeddings", False)
    if said and not is_tied(model):
        head = model.get_output_embeddings()
        own = {f"{name}.weight" for name, module in model.named_modules() if module is head}
        for attribute in ("_tied_weights_keys", "all_tied_weights_keys"):
            tied = getattr(model, attribute) or {}
            setattr(model, attribute, {key: source for key, source in tied.items() if key not in own})
        model.config.tie_word_embeddings = False
    try:
        yield
    finally:
        if said:
            model.config.tie_word_embeddings = said


def is_adapter(module: nn.Module) -> bool:
    """Whether a module is one of PEFT's wrappers."""
    return type(module).__module__.partition(".")[0] == "peft"


def is_tied(model: "PreTrainedModel") -> bool:
    """Whether input and output embeddings really are one matrix."""
    output = model.get_output_embeddings()
    if output is None:
        return True
    return not weights(output).keys().isdisjoint(weights(model.get_input_embeddings()))


def weights(part: nn.Module) -> dict[int, nn.Parameter]:
    """Every weight matrix in an embedding or head by its address; PEFT's wrappers have several."""
    found = (getattr(module, "weight", None) for module in part.modules())
    return {weight.data_ptr(): weight for weight in found if isinstance(weight, nn.Parameter)}


def readers(model: "PreTrainedModel") -> list[tuple[nn.Module, str]]:
    """Every embedding with the input matrix, as its parent module and its name there.

    T5 and BART have three: `shared`, which is never called, and one each in encoder and decoder.
    """
    matrix = weights(model.get_input_embeddings()).keys()
    head = model.get_output_embeddings()
    return [
        (owner, name)
        for owner in model.modules()
        if not is_adapter(owner)
        for name, child in owner.named_children()
        if child is not head and (isinstance(child, nn.Embedding) or is_adapter(child))
        if not matrix.isdisjoint(weights(child))
    ]


def refuse_adapter_faults(model: "PreTrainedModel") -> None:
    """Raise an error for PEFT configurations that silently train nothing or the wrong rows."""
    reading = [getattr(owner, name) for owner, name in readers(model)]
    advice = "use LoraConfig(trainable_token_indices=placevalue.trainable_tokens(model, tokenizer)) instead"
    if is_adapter(model.get_input_embeddings()) and not all(map(is_adapter, reading)):
        raise AttachError(
            f"the adapter wraps an embedding of {type(model).__name__} that its forward pass never reads (on T5 and "
            f"BART, modules_to_save=['shared'] or target_modules=['shared']), so it would train nothing: {advice}"
        )
    rows = [part.token_adapter for part in reading if hasattr(part, "token_adapter")]
    if len({id(part.trainable_tokens_delta) for part in rows}) > 1:
        raise AttachError(
            f"the adapter has several copies of the same rows of {type(model).__name__}, of which merging keeps one "
            f"(on T5 and BART, trainable_token_indices={{'embed_tokens': ...}}): {advice}"
        )
    head = getattr(model.get_output_embeddings(), "token_adapter", None)
    if head is not None and head.tied_adapter is not None and not is_tied(model):
        raise AttachError(
            f"this {type(model).__name__} has a separate output matrix, but the adapter writes the markers' input rows "
            "into it, since the config says that they are tied: call attach(model, tokenizer) before get_peft_model, "
            "which corrects that, or leave out trainable_token_indices"
        )


def copy_rows_to_adapters(model: nn.Module) -> None:
    """Copy rows from the matrices to PEFT's trainable tokens, which keep copies of them."""
    module: Any
    for module in model.modules():
        for adapter, indices in getattr(module, "token_indices", {}).items():
            current = module.get_base_layer().weight.detach()[indices]
            module.trainable_tokens_delta[adapter].data.copy_(current)
            module.trainable_tokens_original[adapter].copy_(current)
