"""Pad examples to batches of tensors, and choose which examples share a batch."""

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np
import torch
from torch import Tensor
from torch.utils.data import Sampler

from placevalue.common.errors import ConfigError
from placevalue.tokenizer.encoding import IGNORED, Example, is_two_part, mark_written, marks_written, unwritten_ids
from placevalue.tokenizer.tokenizer import MARKER_NAMES, check_added_tokens, marker_ids, number_layout

_SORTED = 50  # number of batches pooled before sorting by length


class PairCollator:
    """Pads what `encode_pairs` returns, and adds `decoder_input_ids` for an encoder-decoder model.

    It returns what transformers' `DataCollatorForSeq2Seq` returns, in a fraction of the time.
    """

    def __init__(self, tokenizer: Any, model: Any = None) -> None:
        self.left = tokenizer.padding_side == "left"
        self.fills = {"input_ids": tokenizer.pad_token_id, "attention_mask": 0, "labels": IGNORED}
        self.feed: Callable[..., Tensor] | None = getattr(model, "prepare_decoder_input_ids_from_labels", None)

    def __call__(self, examples: Sequence[Example]) -> dict[str, Tensor]:
        """`(batch, length)` for each key."""
        if not examples:
            raise ConfigError("the batch is empty: give at least one example")
        batch = {key: self._pad([each[key] for each in examples], fill) for key, fill in self.fills.items()}
        if self.feed is not None:
            batch["decoder_input_ids"] = self.feed(labels=batch["labels"])
        return batch

    def _pad(self, rows: list[list[int]], fill: int) -> Tensor:
        padded = np.full((len(rows), max(map(len, rows))), fill, dtype=np.int64)
        for target, row in zip(padded, rows, strict=True):
            target[len(target) - len(row) if self.left else 0 :][: len(row)] = row
        return torch.from_numpy(padded)


class NumberCollator:
    """Removes [AGG] and [PAUSE] from everything that carries loss, then pads.

    A model reads these two tokens and never writes them. `encode_pairs` leaves them out of targets; other tools do not:
    `tokenizer(text_target=answers)`, TRL's prompts with completions, chat messages. This collator takes their
    examples, with `input_ids` and with `labels` that are -100 where nothing is learnt.

    Args:
        tokenizer: From `number_tokenizer`.
        model: The attached model; an encoder-decoder needs it, to get `decoder_input_ids`.
        collator: What pads, such as TRL's; `PairCollator` if not given.

    Example:
        >>> Seq2SeqTrainer(model, data_collator=NumberCollator(tokenizer, model), ...)  # doctest: +SKIP
    """

    def __init__(self, tokenizer: Any, model: Any = None, collator: Callable[[Any], Any] | None = None) -> None:
        if collator is None and model is None and is_two_part(tokenizer, None):
            raise ConfigError(
                "no model was given, and an encoder-decoder needs it to get decoder_input_ids: pass "
                "NumberCollator(tokenizer, model)"
            )
        if collator is None and tokenizer.pad_token_id is None:
            raise ConfigError(
                "the tokenizer has no pad_token to pad with: set tokenizer.pad_token = tokenizer.eos_token"
            )
        check_added_tokens(tokenizer)
        _refuse_rewrite(tokenizer)
        self.tokenizer = tokenizer
        self.collator = collator or PairCollator(tokenizer, model)

    def __call__(self, examples: Sequence[dict[str, Any]]) -> Any:
        """Clean the examples and pad them."""
        return self.collator([clean_targets(self.tokenizer, example) for example in examples])


def clean_targets(tokenizer: Any, example: dict[str, Any]) -> dict[str, Any]:
    """Remove [AGG] and [PAUSE] from every part of an example that carries loss; for `dataset.map` before packing.

    Args:
        tokenizer: From `number_tokenizer`, attached to the model that will be trained.
        example: `input_ids` and `labels`; without labels every token that TRL's masks keep carries loss.

    Example:
        >>> data = data.map(lambda example: clean_targets(tokenizer, example))  # doctest: +SKIP
    """
    _refuse_rewrite(tokenizer)
    layout, markers, unwritten = number_layout(tokenizer), marker_ids(tokenizer), unwritten_ids(tokenizer)
    # Tensors and arrays, which data sets may return, neither compare nor join as lists do.
    example = {key: value.tolist() if hasattr(value, "tolist") else value for key, value in example.items()}
    two_part = is_two_part(tokenizer, None)
    ids, labels = _ids_and_labels(example, two_part)
    example = {**example, "attention_mask": example.get("attention_mask", [1] * len(ids))}
    if two_part:
        return {**example, "labels": [label for label in labels if label not in unwritten]}
    if "seq_lengths" in example:
        raise ConfigError("the example is packed: clean examples with clean_targets before they are packed")
    if IGNORED not in labels and not unwritten.isdisjoint(ids):
        names = " and ".join(MARKER_NAMES[name] for name in ("agg", "pause") if markers[name] in ids)
        raise ConfigError(
            f"every token of an example carries loss, {names} included, which a model never writes: give the prompt "
            "the label -100 (in TRL completion_only_loss=True or assistant_only_loss=True), or use encode_texts"
        )
    if layout.markers:
        kept = _learn_whole_numbers(ids, labels, markers, unwritten)
    else:
        kept = _without_read(ids, labels, unwritten, 1 if layout.position == "before" else -1)
    aligned = {key for key, value in example.items() if isinstance(value, list) and len(value) == len(ids)}
    cleaned = {key: [example[key][index] for index in kept] for key in aligned}
    labels = [labels[index] for index in kept]
    if marks_written(tokenizer):
        cleaned["attention_mask"] = mark_written(cleaned["attention_mask"], labels)
    return {**example, **cleaned, "labels": labels}


def _ids_and_labels(example: dict[str, Any], two_part: bool) -> tuple[list[int], list[int]]:
    """What an example reads and writes; TRL's masks say what a decoder-only model writes if there are no labels."""
    ids, labels = example.get("input_ids"), example.get("labels")
    masks = [example[name] for name in ("completion_mask", "assistant_masks") if name in example]
    if ids is None or (two_part and labels is None):
        missing = "input_ids" if ids is None else "labels, the answer that an encoder-decoder learns to write"
        raise ConfigError(
            f"an example with {', '.join(example)} has no {missing}: tokenize it, as in "
            "tokenizer(questions, text_target=answers), or make the data with encode_pairs"
        )
    ids = list(ids)
    if labels is None:
        labels = [i if all(kept) else IGNORED for i, *kept in zip(ids, *masks, strict=True)]
    if not two_part and len(labels) != len(ids):
        raise ConfigError(
            f"an example has {len(ids)} input_ids and {len(labels)} labels: a decoder-only model needs a label for "
            "each token that it reads, -100 for those of the prompt"
        )
    return ids, list(labels)


def _refuse_rewrite(tokenizer: Any) -> None:
    """Refuse examples of other tools, which neither rewrite numbers nor put pauses after questions."""
    layout = number_layout(tokenizer)
    if layout.rewrite or layout.pauses:
        setting = f"rewrite={layout.rewrite!r}" if layout.rewrite else f"pauses={layout.pauses}"
        raise ConfigError(
            f"the tokenizer has {setting}, which only encode_pairs and encode_texts apply: other tools encode texts as "
            "they are, and the model would learn something else than it is asked. Make the examples with encode_pairs, "
            "which need no cleaning, and pad them with DataCollatorForSeq2Seq"
        )


def _learn_whole_numbers(ids: list[int], labels: list[int], markers: dict[str, int], unwritten: set[int]) -> list[int]:
    """Give every token of a number that carries loss its label, in place; returns the positions to keep.

    TRL's masks of chat turns go by characters, of which markers have none, so they cover a number's digits alone.
    """
    kept: list[int] = []
    opened: int | None = None
    for index, i in enumerate(ids):
        kept.append(index)
        opened = index if i == markers["open"] else opened
        if opened is not None and (i == markers["close"] or index == len(ids) - 1):  # a cut number ends with the text
            if any(label != IGNORED for label in labels[opened : index + 1]):
                labels[opened : index + 1] = ids[opened : index + 1]
                kept = [each for each in kept if each < opened or ids[each] not in unwritten]
            opened = None
    return kept


def _without_read(ids: list[int], labels: list[int], unwritten: set[int], beside: int) -> list[int]:
    """The positions to keep without markers: all but [AGG] and [PAUSE] `beside` a digit that carries loss."""
    learnt = [label != IGNORED for label in labels] + [False]  # the last is also what stands before the first
    return [at for at, i in enumerate(ids) if i not in unwritten or not (learnt[at] or learnt[at + beside])]


class LikeLengths(Sampler[int]):
    """Orders examples so that those of similar length share a batch, which saves padding.

    The order depends only on seed and epoch, so an interrupted run continues with the batches it would have had.
    """

    def __init__(self, lengths: Sequence[int], batch_size: int, seed: int) -> None:
        self.lengths, self.batch_size, self.seed, self.epoch = torch.tensor(lengths), batch_size, seed, 0

    def set_epoch(self, epoch: int) -> None:
        """Called by Trainer before each epoch."""
        self.epoch = epoch

    def __len__(self) -> int:
        return len(self.lengths)

    def __iter__(self) -> Iterator[int]:
        drawn = np.random.default_rng((self.seed, self.epoch))
        pools = torch.from_numpy(drawn.permutation(len(self.lengths))).split(_SORTED * self.batch_size)
        batches = [batch for pool in pools for batch in pool[self.lengths[pool].argsort()].split(self.batch_size)]
        whole = [batch for batch in batches if len(batch) == self.batch_size]
        rest = [batch for batch in batches if len(batch) < self.batch_size]
        order = drawn.permutation(len(whole))
        yield from torch.cat([*(whole[index] for index in order), *rest]).tolist()
