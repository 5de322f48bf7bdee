"""The rows of a model for new tokens: grow its vocabulary, set the markers' rows, and put old ones back."""

import logging
from typing import Any

import torch
from torch import Tensor, nn
from transformers import PreTrainedModel

from placevalue.common.errors import AttachError
from placevalue.modeling.peft_support import copy_rows_to_adapters, is_adapter, readers, weights
from placevalue.numbers.config import NewRows

logger = logging.getLogger(__name__)
SPREAD: dict[NewRows, float] = {"drawn": 1.0, "mean": 0.1}
"""How far new rows spread, relative to the embeddings."""
_SEED = 0  # of new rows, so that they are the same everywhere
Rows = list[tuple[list[int], Tensor]]
"""For each matrix, the indices of rows and their values."""


def vocabulary_of(model: PreTrainedModel) -> int:
    """The number of rows of a model's embedding."""
    embedding: Any = model.get_input_embeddings()
    return int(embedding.weight.shape[0])


def grow(model: PreTrainedModel, size: int) -> None:
    """Grow the embedding to at least `size` rows, with a warning."""
    rows = vocabulary_of(model)
    if model.get_input_embeddings().weight.is_meta:
        raise AttachError("the model's weights are on the meta device, expected loaded weights: load them, then attach")
    if rows >= size:
        return
    if is_adapter(model.get_input_embeddings()):
        raise AttachError(
            f"the vocabulary must grow from {rows} to {size} rows, but an adapter already wraps the embedding: call "
            "attach(model, tokenizer) before get_peft_model, or model.resize_token_embeddings(len(tokenizer)) before it"
        )
    with torch.random.fork_rng():  # keeps the caller's random numbers
        model.resize_token_embeddings(size, mean_resizing=False)
    logger.warning("grew the vocabulary of %s from %d to %d rows for the markers", type(model).__name__, rows, size)


def _matrices(model: PreTrainedModel) -> list[nn.Parameter]:
    """Every distinct matrix with a row for each token: input and output embeddings and PEFT's copies of them."""
    found: dict[int, nn.Parameter] = {}
    parts = [model.get_input_embeddings(), model.get_output_embeddings()]
    for part in parts + [getattr(owner, name) for owner, name in readers(model)]:
        found |= {} if part is None else weights(part)
    shape = model.get_input_embeddings().weight.shape
    return [weight for weight in found.values() if weight.shape == shape]


def set_rows(model: PreTrainedModel, markers: list[int], pause: int, before: int, start: NewRows) -> Rows:
    """Set the markers' rows to the mean plus noise with a share of the spread ([PAUSE]: all of it).

    Returns:
        For each matrix, the rows that existed `before` the vocabulary grew from this size, as they were.
    """
    old: Rows = []
    if not markers:
        return old
    generator = torch.Generator().manual_seed(_SEED)
    new = []
    for matrix in _matrices(model):
        existed = [i for i in markers if i < before]
        old.append((existed, matrix[existed].detach().clone()))
        known = matrix[: min(markers)].detach().float().cpu()
        mean, spread = known.mean(0), known.std(0)
        noise = torch.randn(len(markers), len(mean), generator=generator)
        scale = torch.tensor([1.0 if i == pause else SPREAD[start] for i in markers])
        new.append((markers, mean + scale[:, None] * spread * noise))
    write_rows(model, new)
    return old


def write_rows(model: PreTrainedModel, rows: Rows) -> None:
    """Write rows into each matrix and into PEFT's copies of single rows."""
    with torch.no_grad():
        for matrix, (indices, values) in zip(_matrices(model), rows, strict=False):
            if max(indices, default=0) >= len(matrix):
                continue  # the vocabulary has shrunk since
            matrix[indices] = values.to(matrix)
    copy_rows_to_adapters(model)
