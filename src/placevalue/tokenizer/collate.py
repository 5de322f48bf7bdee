"""Pad examples to batches of tensors, and choose which examples share a batch."""

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np
import torch
from torch import Tensor
from torch.utils.data import Sampler

from placevalue.tokenizer.encoding import IGNORED, Example

_SORTED = 50  # number of batches pooled before sorting by length


class PairCollator:
    """Pads what `encode_pairs` returns, and adds `decoder_input_ids` for an encoder-decoder model.

    It returns what transformers' `DataCollatorForSeq2Seq` returns, in a fraction of the time.

    Example:
        >>> PairCollator(tokenizer, model)(encode_pairs(tokenizer, ["2 + 2?"], ["4"]))["labels"].shape  # doctest: +SKIP
        torch.Size([1, 4])
    """

    def __init__(self, tokenizer: Any, model: Any = None) -> None:
        self.left = tokenizer.padding_side == "left"
        self.fills = {"input_ids": tokenizer.pad_token_id, "attention_mask": 0, "labels": IGNORED}
        self.feed: Callable[..., Tensor] | None = getattr(model, "prepare_decoder_input_ids_from_labels", None)

    def __call__(self, examples: Sequence[Example]) -> dict[str, Tensor]:
        """`(batch, length)` for each key."""
        batch = {key: self._pad([each[key] for each in examples], fill) for key, fill in self.fills.items()}
        if self.feed is not None:
            batch["decoder_input_ids"] = self.feed(labels=batch["labels"])
        return batch

    def _pad(self, rows: list[list[int]], fill: int) -> Tensor:
        padded = np.full((len(rows), max(map(len, rows))), fill, dtype=np.int64)
        for target, row in zip(padded, rows, strict=True):
            target[len(target) - len(row) if self.left else 0 :][: len(row)] = row
        return torch.from_numpy(padded)


class LikeLengths(Sampler[int]):
    """Orders examples so that those of similar length share a batch, which saves padding.

    The order depends only on seed and epoch, so an interrupted run continues with the batches it would have had.

    Example:
        >>> len(list(LikeLengths([3, 1, 2], batch_size=2, seed=0)))
        3
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
