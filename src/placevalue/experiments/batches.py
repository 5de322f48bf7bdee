"""Examples on the device that trains, in batches of few shapes, so that a step can be compiled and replayed.

Trainer's own samplers choose the examples of each batch, so a run sees the batches that it would see anyway, only
padded to one of `SHAPES` lengths. The last batch of an epoch is filled up with empty examples, which have no labels.
"""

from collections.abc import Callable, Sequence
from inspect import signature
from typing import Any

import numpy as np
import torch
from torch import Tensor

from placevalue.tokenizer.encoding import IGNORED, Example

SHAPES = 5
"""Lengths that batches may have: each costs a compilation, and each one less costs padding."""
_STEP = 8  # lengths are multiples of this, which kernels need


class DeviceExamples(torch.utils.data.Dataset[Any]):
    """Encoded examples as tensors on a device; a list of indices gives a batch.

    For a decoder-only model that takes `position_ids` and `logits_to_keep`, batches are padded on the left: the answers
    end together, and logits are only computed for the last positions, which hold all labels.
    """

    def __init__(
        self, examples: Sequence[Example], tokenizer: Any, model: Any, batch_size: int, device: torch.device
    ) -> None:
        self.batch_size, self.device = batch_size, device
        takes = signature(type(model).forward).parameters
        two_part = bool(model.config.is_encoder_decoder)
        self.left = not two_part and {"position_ids", "logits_to_keep"} <= takes.keys()
        empty: Example = {"input_ids": [tokenizer.pad_token_id], "labels": []}
        rows = [*examples, empty]
        self.lengths = np.array([len(each["input_ids"]) for each in rows])
        self.edges = choose_lengths(self.lengths)
        self.sizes = torch.from_numpy(self.lengths).to(device)
        self.masks = self._table([*(each["attention_mask"] for each in examples), [1]], 0, self.edges[-1])
        self.ids = self._table([each["input_ids"] for each in rows], tokenizer.pad_token_id, self.edges[-1])
        labels = [_answer(each["labels"]) if self.left else each["labels"] for each in rows]
        longest = _round_up(max(map(len, labels)) + self.left)  # the prediction of a label is at the position before it
        self.labels = self._table(labels, IGNORED, longest if two_part or self.left else self.edges[-1])
        feed: Callable[..., Tensor] | None = getattr(model, "prepare_decoder_input_ids_from_labels", None)
        self.fed = None if feed is None else feed(labels=self.labels)

    def __len__(self) -> int:
        return len(self.lengths) - 1

    def __getitems__(self, indices: list[int]) -> dict[str, Any]:
        """A batch, as a model takes it."""
        width = int(self.edges[np.searchsorted(self.edges, self.lengths[indices].max())])
        filled = torch.tensor(indices + [len(self)] * (self.batch_size - len(indices)))
        # Copied from pinned memory, which the host does not wait for.
        rows = filled.pin_memory().to(self.device, non_blocking=True) if self.device.type == "cuda" else filled
        if self.left:
            place = torch.arange(width, device=self.device) - (width - self.sizes[rows]).unsqueeze(1)
            kept = min(width, self.labels.shape[1])
            return {
                "input_ids": self.ids[:, -width:].index_select(0, rows),
                "attention_mask": self.masks[:, -width:].index_select(0, rows),
                "position_ids": place.clamp(min=0),
                "labels": self.labels[:, -kept:].index_select(0, rows),
                "logits_to_keep": kept,
            }
        batch = {
            "input_ids": self.ids[:, :width].index_select(0, rows),
            "attention_mask": self.masks[:, :width].index_select(0, rows),
            "labels": (self.labels if self.fed is not None else self.labels[:, :width]).index_select(0, rows),
        }
        return batch if self.fed is None else batch | {"decoder_input_ids": self.fed.index_select(0, rows)}

    def _table(self, rows: list[list[int]], fill: int, width: int) -> Tensor:
        """Rows of ids, padded to a width: `(rows, width)`."""
        table = np.full((len(rows), width), fill, dtype=np.int64)
        for target, row in zip(table, rows, strict=True):
            target[width - len(row) if self.left else 0 :][: len(row)] = row
        return torch.from_numpy(table).to(self.device)


def _answer(labels: list[int]) -> list[int]:
    """The labels from the first that counts."""
    first = next((index for index, label in enumerate(labels) if label != IGNORED), len(labels))
    return labels[first:]


def _round_up(length: int) -> int:
    return max(1, -(-length // _STEP)) * _STEP


def choose_lengths(lengths: Any, most: int = SHAPES) -> list[int]:
    """The lengths to pad to, at most `most` multiples of 8, for which the examples need the least padding.

    Example:
        >>> choose_lengths([5, 6, 7, 30, 31, 100], most=3)
        [8, 32, 104]
    """
    sizes, counts = np.unique([_round_up(int(each)) for each in lengths], return_counts=True)
    before = np.concatenate([[0], counts.cumsum()])
    # cost[i]: of the sizes up to the i-th, padded to the ends of as many runs of sizes as there were rounds.
    cost = np.concatenate([[0.0], np.full(len(sizes), np.inf)])
    ends: list[list[int]] = [[]] * (len(sizes) + 1)
    best: list[tuple[float, list[int]]] = []
    for _ in range(min(most, len(sizes))):
        rounds = [(np.inf, list[int]())]
        for last in range(1, len(sizes) + 1):
            first = int(np.argmin([cost[i] + (before[last] - before[i]) * sizes[last - 1] for i in range(last)]))
            total = cost[first] + (before[last] - before[first]) * sizes[last - 1]
            rounds.append((total, [*ends[first], int(sizes[last - 1])]))
        cost, ends = np.array([each for each, _ in rounds]), [each for _, each in rounds]
        best.append(rounds[-1])
    return min(best, key=lambda found: found[0])[1]
