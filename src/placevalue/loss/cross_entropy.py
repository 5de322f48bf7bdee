"""Token losses and the log-probabilities of a few tokens, in as few passes over the logits as there can be.

`F.cross_entropy` keeps a second copy of the logits for its backward pass, and looking at the digits afterwards would
read them all again. Here both come out of one function that reads the logits once forward and once backward.
"""

from collections.abc import Iterator
from typing import Any

import torch
from torch import Tensor

from placevalue.loss.compiling import Compiled

_PIECE = 1 << 20  # entries at a time that fit a processor's cache


def token_likelihoods(
    logits: Tensor, labels: Tensor, wanted: Tensor, ignored: int, best: bool = False
) -> tuple[Tensor, Tensor, Tensor]:
    """Losses, log-probabilities of the wanted tokens and likeliest tokens, in float32 at least.

    Args:
        logits: `(..., vocabulary)`, any floating type.
        labels: `(...)`; where they are `ignored`, the loss is 0.
        wanted: `(k,)` different ids.
        ignored: The label of what does not count, below 0.
        best: Whether the likeliest tokens are asked for; they are empty otherwise.

    Returns:
        `(...)`, `(..., k)` and `(...)`.
    """
    flat, shape = logits.reshape(-1, logits.shape[-1]), labels.shape
    losses, log_probs = _TokenLikelihoods.apply(flat, labels.reshape(-1), wanted, ignored)
    likeliest = logits.detach().argmax(-1) if best else labels.new_empty(0)
    return losses.view(shape), log_probs.view(*shape, -1), likeliest


class _TokenLikelihoods(torch.autograd.Function):
    """See `token_likelihoods`; logits `(n, vocabulary)`."""

    @staticmethod
    def forward(ctx: Any, logits: Tensor, labels: Tensor, wanted: Tensor, ignored: int) -> tuple[Tensor, Tensor]:
        norm = _norms(logits)
        columns = torch.cat([wanted.expand(len(labels), -1), labels.clamp(min=0).unsqueeze(1)], 1)
        log_probs = logits.gather(1, columns) - norm.unsqueeze(1)
        skipped = labels == ignored
        ctx.save_for_backward(logits, columns, skipped, norm, log_probs)
        return (-log_probs[:, -1]).masked_fill_(skipped, 0), log_probs[:, :-1]

    @staticmethod
    @torch.autograd.function.once_differentiable
    def backward(ctx: Any, of_losses: Tensor, of_log_probs: Tensor) -> tuple[Tensor, None, None, None]:
        logits, columns, skipped, norm, log_probs = ctx.saved_tensors
        of_columns = torch.cat([of_log_probs, -of_losses.masked_fill(skipped, 0).unsqueeze(1)], 1)
        share = -of_columns.sum(1, keepdim=True)
        gradient = _shared(logits, norm.unsqueeze(1), share)
        # What has a gradient of its own is written anew: rounded with it, not before, since near the gold the
        # difference of the two is all there is. A gold token that is wanted too stands in two columns, alike in both.
        alike = columns.unsqueeze(2) == columns.unsqueeze(1)
        own = (alike * of_columns.unsqueeze(1)).sum(2)
        gradient.scatter_(1, columns, (log_probs.exp() * share + own).to(gradient.dtype))
        return gradient, None, None, None


def _norms(logits: Tensor) -> Tensor:
    """The logarithm of each row's summed exponentials: `(n, vocabulary)` to `(n,)`."""
    exact = torch.promote_types(logits.dtype, torch.float32)
    if logits.is_cuda:
        return _norms_at_once(logits, exact)
    norm = logits.new_empty(len(logits), dtype=exact)
    for here, piece in _pieces(logits):
        norm[here] = torch.logsumexp(piece.to(exact), -1)
    return norm


def _shared(logits: Tensor, norm: Tensor, share: Tensor) -> Tensor:
    """Each row's probabilities times its share, both `(n, 1)`, in the logits' own type."""
    if logits.is_cuda:
        return _shared_at_once(logits, norm, share)
    gradient = torch.empty_like(logits)
    for here, piece in _pieces(logits):
        gradient[here] = torch.softmax(piece, -1, dtype=norm.dtype).mul_(share[here])
    return gradient


def _pieces(logits: Tensor) -> Iterator[tuple[slice, Tensor]]:
    size = max(1, _PIECE // max(1, logits.shape[1]))
    for start in range(0, len(logits), size):
        here = slice(start, start + size)
        yield here, logits[here]


@Compiled
def _norms_at_once(logits: Tensor, exact: torch.dtype) -> Tensor:
    return torch.logsumexp(logits.to(exact), -1)


@Compiled
def _shared_at_once(logits: Tensor, norm: Tensor, share: Tensor) -> Tensor:
    return ((logits.to(norm.dtype) - norm).exp() * share).to(logits.dtype)
