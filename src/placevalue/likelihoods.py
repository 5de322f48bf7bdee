"""Token losses and the log-probabilities of a few tokens, in one pass over the logits.

`F.cross_entropy` keeps a second copy of the logits for its backward pass, and looking at the digits afterwards would
read them all again. Here both come out of one function that works through the logits in pieces.
"""

from collections.abc import Iterator
from typing import Any

import torch
from torch import Tensor

_PIECE = {"cpu": 1 << 20}  # entries at a time that fit a processor's cache
_LARGE_PIECE = 1 << 28  # elsewhere: a gigabyte


def token_likelihoods(
    logits: Tensor, labels: Tensor, wanted: Tensor, ignored: int, best: bool = False
) -> tuple[Tensor, Tensor, Tensor]:
    """Losses, log-probabilities of the wanted tokens and likeliest tokens, in float32 at least.

    Args:
        logits: `(..., vocabulary)`, any floating type.
        labels: `(...)`; where they are `ignored`, the loss is 0.
        wanted: `(k,)` different ids.
        ignored: The label of what does not count.
        best: Whether the likeliest tokens are asked for; they are empty otherwise.

    Returns:
        `(...)`, `(..., k)` and `(...)`.
    """
    flat = logits.reshape(-1, logits.shape[-1])
    losses, log_probs, likeliest = _TokenLikelihoods.apply(flat, labels.reshape(-1), wanted, ignored, best)
    shape = labels.shape
    return losses.view(shape), log_probs.view(*shape, -1), likeliest.view(shape) if best else likeliest


class _TokenLikelihoods(torch.autograd.Function):
    """See `token_likelihoods`; logits `(n, vocabulary)`."""

    @staticmethod
    def forward(
        ctx: Any, logits: Tensor, labels: Tensor, wanted: Tensor, ignored: int, best: bool
    ) -> tuple[Tensor, Tensor, Tensor]:
        exact = torch.promote_types(logits.dtype, torch.float32)
        counted = labels != ignored
        gold = torch.where(counted, labels, 0).unsqueeze(1)
        losses = logits.new_empty(len(logits), dtype=exact)
        log_probs = logits.new_empty((len(logits), len(wanted)), dtype=exact)
        likeliest = labels.new_empty(len(logits) if best else 0)
        for here, piece in _pieces(logits):
            # The fused kernels of softmax are an accelerator's fastest way to read a row.
            every = torch.log_softmax(piece, -1, dtype=exact)
            losses[here] = every.gather(1, gold[here]).squeeze(1).neg_()
            log_probs[here] = every[:, wanted]
            if best:
                likeliest[here] = piece.argmax(-1)
        ctx.save_for_backward(logits, gold, wanted, counted, losses, log_probs)
        ctx.mark_non_differentiable(likeliest)
        return torch.where(counted, losses, 0), log_probs.clone(), likeliest

    @staticmethod
    @torch.autograd.function.once_differentiable
    def backward(
        ctx: Any, of_losses: Tensor, of_log_probs: Tensor, _of_best: Tensor
    ) -> tuple[Tensor, None, None, None, None]:
        logits, gold, wanted, counted, losses, log_probs = ctx.saved_tensors
        of_losses = torch.where(counted, of_losses, 0).unsqueeze(1)
        share = of_losses - of_log_probs.sum(1, keepdim=True)
        gradient = torch.empty_like(logits)
        for here, piece in _pieces(logits):
            every = torch.softmax(piece, -1, dtype=losses.dtype)
            torch.mul(every, share[here], out=gradient[here])
        # What has a gradient of its own is written anew: rounded with it, not before, since near the gold the
        # difference of the two is all there is.
        both = gold == wanted
        of_gold = (-losses).exp().unsqueeze(1) * share - of_losses + (of_log_probs * both).sum(1, keepdim=True)
        gradient.scatter_(1, gold, of_gold.to(gradient.dtype))
        gradient[:, wanted] = (log_probs.exp() * share + of_log_probs - of_losses * both).to(gradient.dtype)
        return gradient, None, None, None, None


def _pieces(logits: Tensor) -> Iterator[tuple[slice, Tensor]]:
    entries = _PIECE.get(logits.device.type, _LARGE_PIECE)
    size = max(1, entries // max(1, logits.shape[1]))
    for start in range(0, len(logits), size):
        here = slice(start, start + size)
        yield here, logits[here]
