"""Put a vector and its module into a model, and tell in each forward pass which numbers the model reads.

An encoder-decoder reads what its encoder gets. A decoder-only model reads its prompt: what has no label in training,
and what it is given before it writes in generation. What it writes never gets a vector at its digits, since the place
of a digit is not known while the digits after it are still to come, and would reveal them.
"""

from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn
from transformers import PreTrainedModel

from placevalue.common.errors import AttachError, CheckpointError
from placevalue.common.seal import VECTOR
from placevalue.modeling.peft_support import is_adapter, readers, unwrap_for_adapters
from placevalue.numbers.aggregation import Aggregation, find_aggregation
from placevalue.numbers.config import AttachedConfig
from placevalue.numbers.spans import Digits, find_digits
from placevalue.numbers.vectors import Reading, Vector
from placevalue.tokenizer.encoding import IGNORED, WRITTEN

NAME = VECTOR
"""The module's name in the model that reads."""
CHECKED_BATCHES = 20
"""Batches in which hooks look for what would train nothing, or the wrong thing; later ones would stall a device."""
_NO_NUMBER = -2  # an id that is in no vocabulary
_SEED = 0  # of parameters, so that they start the same everywhere
_HIDDEN = (
    "use placevalue.encode_pairs, whose attention_mask tells them apart, or leave the labels in the batch, as Trainer "
    "does without compute_loss_func and label smoothing"
)


class Mounted:
    """A vector in a model: what the hooks of a forward pass tell each other."""

    def __init__(self, vector: Vector, config: AttachedConfig, aggregation: str | Aggregation | None) -> None:
        self.vector, self.config, self.aggregation = vector, config, aggregation or "weighted"
        self.module: nn.Module | None = None
        self.written: Tensor | None = None
        """Which tokens the model writes, `(batch, length)`; None if it writes none of them."""
        self.seen: Tensor | None = None
        """What of the last batch was written, for losses; None if that is not known."""
        self.inside, self.step = True, False
        """Whether the part of the model that reads is running, and whether in a step of cached generation."""

    @property
    def at_digits(self) -> bool:
        """Whether digits get the vector."""
        return self.vector.at == "digits"

    def find(self, owner: nn.Module) -> None:
        """Take the module that is there now, since PEFT replaces it."""
        if self.vector.build is not None:
            self.module = getattr(owner, NAME)

    @property
    def reads(self) -> bool:
        """Whether what is embedded next is read."""
        return self.inside and not self.step

    def enter(self, owner: nn.Module, reads: bool) -> None:
        """Note that a part of the model is called, and whether it is the part that reads."""
        self.inside = reads
        if reads:
            self.find(owner)

    def take(self) -> tuple[bool, Tensor | None]:
        """Whether ids are read and what of them is written; whoever calls the embedding alone reads everything."""
        taken = self.reads, self.written
        self.inside, self.step, self.written = True, False, None
        return taken

    def put(self, ids: Tensor, rows: Tensor, output: Tensor, written: Tensor | None) -> Tensor:
        """The embeddings `(batch, length, dim)` with the vectors of the numbers that are read."""
        ids_read = ids if written is None or written.shape != ids.shape else torch.where(written, _NO_NUMBER, ids)
        known = self.config
        digits = find_digits(ids_read, known.ids, known.decimals, not self.at_digits, known.negatives)
        own = output.to(rows.dtype)
        training = self.module is not None and self.module.training
        reading = Reading(digits, rows, own, find_aggregation(self.aggregation), training)
        vectors = self.vector.compute(reading, self.module)
        vectors = own + vectors if self.vector.how == "add" else vectors
        here = digits.mask if self.at_digits else find_slots(ids, digits, known.ids.agg)
        return torch.where(here.unsqueeze(-1), vectors.to(output.dtype), output)


def find_slots(ids: Tensor, digits: Digits, agg: int) -> Tensor:
    """Which tokens are the [AGG] of a number with digits: `(batch, length)`."""
    slots = torch.where(digits.mask, digits.numbers, 0)
    found = torch.zeros_like(slots).scatter_add(1, slots, digits.mask.long()) > 0
    return (ids == agg) & found


class Watch:
    """A forward pre-hook of the model: tells which tokens it reads, and refuses where that cannot be known."""

    def __init__(self, mounted: Mounted, owner: str) -> None:
        self.mounted, self.owner = mounted, owner
        self.left = CHECKED_BATCHES

    def __call__(self, model: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """Note what is written; return the arguments with an attention mask of 0 and 1 alone."""
        state = self.mounted
        if getattr(model, "_is_replica", False):
            raise AttachError(
                "torch.nn.DataParallel runs copies of a model at once, which would mix up their batches: start one "
                "process for each device, with torchrun or accelerate launch"
            )
        state.find(model.get_submodule(self.owner))
        state.written, state.seen, state.inside, state.step = None, None, True, False
        given = kwargs.get("inputs_embeds")
        self._check_trained(model, given)
        ids = args[0] if args else kwargs.get("input_ids")
        if model.config.is_encoder_decoder or not state.at_digits:
            return None
        if given is not None and kwargs.get("labels") is not None:
            raise AttachError(
                "inputs_embeds with labels, as in prompt tuning: the embeddings were made before the model could know "
                "which digits it reads and which it writes. Give input_ids, and train with LoRA"
            )
        if ids is None or ids.dim() != 2:
            return None
        self._check_cache(ids, kwargs)
        mask: Any = args[1] if len(args) > 1 else kwargs.get("attention_mask")
        marked = isinstance(mask, Tensor) and mask.shape == ids.shape and mask.dtype in (torch.int64, torch.int32)
        labels = kwargs.get("labels") if writes_on(model) else None
        if marked:
            state.written = mask >= WRITTEN
        if labels is not None and labels.shape == ids.shape:
            learnt = labels != IGNORED
            state.written = learnt if state.written is None else state.written | learnt
        if writes_on(model) and not torch.compiler.is_compiling():
            self._check_known(model, kwargs, mask if marked else None)
            state.seen = torch.zeros_like(ids, dtype=torch.bool) if state.written is None else state.written
        if not marked:
            return None
        plain = mask.clamp(max=1)
        return ((ids, plain, *args[2:]), kwargs) if len(args) > 1 else (args, kwargs | {"attention_mask": plain})

    def _check_cache(self, ids: Tensor, kwargs: dict[str, Any]) -> None:
        """Note whether this is a step of generation; refuse several tokens after others."""
        past = kwargs.get("past_key_values")
        if past is None:
            return
        before = past.get_seq_length()
        if ids.shape[1] == 1:
            self.mounted.step = isinstance(before, Tensor) or before > 0
        elif not torch.compiler.is_compiling() and int(before) > 0:
            raise AttachError(
                f"{ids.shape[1]} tokens follow {int(before)} that are in the cache, and a vector at digits must know "
                "which of them are read and which were written: give the prompt as a whole, without prefill_chunk_size "
                "or a cache from before, and generate without an assistant or prompt lookup"
            )

    def _check_known(self, model: Any, kwargs: dict[str, Any], mask: Tensor | None) -> None:
        """Refuse batches that do not say what is written, and losses on the whole text."""
        written = self.mounted.written
        told = kwargs.get("labels") is not None
        if model.training and torch.is_grad_enabled() and self.left:
            self.left -= 1
            if not told and (written is None or not bool(written.any())):
                raise AttachError(
                    "the batch has no labels, so the model cannot tell the question's numbers, whose digits get a "
                    f"vector, from the answer's, whose digits must not: {_HIDDEN}"
                )
            assert written is not None
            real = torch.ones_like(written) if mask is None else mask > 0
            if bool(((real & ~written).sum(1) <= 1).all()):
                raise AttachError(
                    "the loss is on whole texts, so nothing is read and no digit would get its vector: give prompts "
                    "the label -100, as encode_pairs does"
                )
            return
        uncached = not model.training and kwargs.get("use_cache") is False and not told
        if uncached and (written is None or not bool(written.any())):
            raise AttachError(
                "use_cache=False: generation without a cache reads again what the model has written, whose digits "
                "must not get a vector. Leave use_cache out; to score answers, pass their labels"
            )

    def _check_trained(self, model: Any, given: Tensor | None) -> None:
        """Refuse adapters that leave the vector as it is."""
        module = self.mounted.module
        if module is None or not model.training or torch.compiler.is_compiling():
            return
        if any(weight.requires_grad for weight in module.parameters()):
            return
        adapted = any(is_adapter(part) for part in model.modules()) and any(p.requires_grad for p in model.parameters())
        if adapted or (given is not None and given.requires_grad):
            raise AttachError(
                "the adapter does not train the vector, which would stay as it is: use "
                "LoraConfig(modules_to_save=placevalue.trainable_modules(model), ...); prompt tuning cannot train it"
            )


def refuse_revealed(model: PreTrainedModel, labels: Tensor) -> None:
    """Raise an error if digits that a model was to write had their vector when it last read a batch."""
    state = next((hook.mounted for hook in model._forward_pre_hooks.values() if isinstance(hook, Watch)), None)
    if state is None or state.seen is None or len(state.seen) != len(labels):
        return
    written, state.seen = state.seen[:, -labels.shape[1] :], None
    digits = torch.isin(labels, torch.tensor(state.config.ids.digits, device=labels.device))
    if written.shape == labels.shape and bool((digits & ~written).any()):
        raise AttachError(f"digits of answers had their vector, which reveals the digits after them: {_HIDDEN}")


def writes_on(model: Any) -> bool:
    """Whether a model writes texts from left to right: its labels are neither classes nor what a mask hides."""
    return model.get_output_embeddings() is not None and not type(model).__name__.endswith(("MaskedLM", "PreTraining"))


def find_reader(model: PreTrainedModel) -> tuple[nn.Module, str]:
    """The embedding through which a model reads, as its parent module and its name there."""
    part: Any = model.get_encoder() if model.config.is_encoder_decoder else model
    inside = {id(module) for module in part.modules()}
    return [(owner, name) for owner, name in readers(model) if id(owner) in inside][-1]


def mount(model: PreTrainedModel, vector: Vector) -> str:
    """Add a vector's module, if it has one, to the part of a model that reads; return the part's name."""
    owner, name = find_reader(model)
    if vector.build is not None:
        weight = next(getattr(owner, name).parameters())
        with torch.random.fork_rng():
            torch.manual_seed(_SEED)
            module = vector.build(int(getattr(owner, name).weight.shape[1]))
        owner.add_module(NAME, module.to(weight.device, weight.dtype).train(model.training))
    return next(path for path, module in model.named_modules() if module is owner)


def trainable_modules(model: nn.Module) -> list[str] | None:
    """The `modules_to_save` with which PEFT trains and saves the vector of an attached model; None if it has none.

    Example:
        >>> LoraConfig(modules_to_save=trainable_modules(model))  # doctest: +SKIP
    """
    return [NAME] if any(NAME in module._modules for module in model.modules()) else None


def unmount(model: nn.Module, base: PreTrainedModel) -> None:
    """Remove a vector's module, also from what adapters save."""
    for module in list(base.modules()):
        if NAME in module._modules:
            delattr(module, NAME)
    unwrap_for_adapters(model, NAME)


def load_module(model: PreTrainedModel) -> None:
    """Load the parameters of a vector's module from where the model was loaded from."""
    module: Any = next(each for path, each in model.named_modules() if path.rpartition(".")[2] == NAME)
    found = _read_weights(_find_folder(model))
    wanted = module.state_dict()
    if found.keys() != wanted.keys() or any(found[name].shape != each.shape for name, each in wanted.items()):
        there = {name: tuple(each.shape) for name, each in found.items()}
        expected = {name: tuple(each.shape) for name, each in wanted.items()}
        raise CheckpointError(
            f"{model.name_or_path or 'this model'} has a vector whose parameters are {there}, expected {expected}: "
            "load the folder that it was saved to with placevalue.from_pretrained, with the same entry in VECTORS"
        )
    module.load_state_dict(found)


def _find_folder(model: PreTrainedModel) -> Path:
    """The folder that a model was loaded from; of a model from the hub, its copy in the cache."""
    from transformers.utils import cached_file

    name = model.name_or_path or ""
    folder = Path(name)
    if folder.is_dir() or not name:
        return folder
    commit = getattr(model.config, "_commit_hash", None)
    file = cached_file(name, "config.json", revision=commit, local_files_only=True)
    return folder if file is None else Path(file).parent


def _read_weights(folder: Path) -> dict[str, Tensor]:
    """The parameters of a vector in a folder's safetensors, by their names in its module."""
    from safetensors import safe_open

    found = {}
    for file in sorted(folder.glob("model*.safetensors")) if folder.is_dir() else []:
        with safe_open(file, "pt") as weights:
            for name in weights.keys():  # noqa: SIM118
                before, inside, own = name.rpartition(f"{NAME}.")
                if inside and (not before or before.endswith(".")):
                    found[own] = weights.get_tensor(name)
    return found
