"""Token losses and the log-probabilities of a few tokens, in one pass over the logits.

`F.cross_entropy` keeps a second copy of the logits for its backward pass, and looking at the digits afterwards would
read them all again. Here both come out of one function that works through the logits in pieces.
"""

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
        norms, likeliest = [], []
        for piece in _pieces(logits):
            rows = piece.to(exact)
            if best:
                likeliest.append(rows.argmax(-1))
            norms.append(torch.logsumexp(rows, -1))
        norm = torch.cat(norms) if norms else logits.new_zeros(0, dtype=exact)
        counted = labels != ignored
        gold = logits.gather(1, torch.where(counted, labels, 0).unsqueeze(1)).squeeze(1).to(exact)
        losses = torch.where(counted, norm - gold, 0)
        log_probs = logits[:, wanted].to(exact) - norm.unsqueeze(1)
        ctx.save_for_backward(logits, labels, wanted, norm)
        ctx.ignored = ignored
        found = torch.cat(likeliest) if likeliest else labels.new_zeros(0)
        ctx.mark_non_differentiable(found)
        return losses, log_probs, found

    @staticmethod
    @torch.autograd.function.once_differentiable
    def backward(
        ctx: Any, of_losses: Tensor, of_log_probs: Tensor, _of_best: Tensor
    ) -> tuple[Tensor, None, None, None, None]:
        logits, labels, wanted, norm = ctx.saved_tensors
        counted = labels != ctx.ignored
        of_losses = torch.where(counted, of_losses, 0)
        share = of_losses - of_log_probs.sum(1)
        gold = torch.where(counted, labels, 0).unsqueeze(1)
        gradient = torch.empty_like(logits)
        start = 0
        for piece in _pieces(logits):
            here = slice(start, start + piece.shape[0])
            rows = piece.to(norm.dtype).sub(norm[here, None]).exp_().mul_(share[here, None])
            # Before rounding: near the gold the difference of the two is all there is.
            rows.scatter_add_(1, gold[here], -of_losses[here, None])
            rows[:, wanted] += of_log_probs[here]
            gradient[here] = rows
            start = here.stop
        return gradient, None, None, None, None


def _pieces(logits: Tensor) -> tuple[Tensor, ...]:
    entries = _PIECE.get(logits.device.type, _LARGE_PIECE)
    return logits.split(max(1, entries // max(1, logits.shape[1])))
