"""Token losses and the log-probabilities of a few tokens, in one pass over the logits.

`F.cross_entropy` keeps a second copy of the logits for its backward pass, and reading the digits afterwards would take
another pass. This function reads the logits once forward and once backward.
"""

import logging
from collections.abc import Callable, Iterator
from typing import Any

import torch
from torch import Tensor

from placevalue.tokenizer.encoding import IGNORED

logger = logging.getLogger(__name__)
_PIECE = 1 << 20  # entries to process at a time, few enough for a processor's cache


def token_likelihoods(logits: Tensor, labels: Tensor, wanted: Tensor, ignored: int) -> tuple[Tensor, Tensor, Tensor]:
    """Compute losses, the log-probabilities of the wanted tokens and the logits' norm, in float32 or float64.

    Args:
        logits: `(..., vocabulary)`, any floating type.
        labels: `(...)`; the loss of an `ignored` label is 0.
        wanted: `(k,)` different ids.
        ignored: A label below 0.

    Returns:
        `(...)`, `(..., k)` and `(...)`. The norm is the logsumexp of the logits: a wanted token's logit is its
        log-probability plus the norm.
    """
    flat, shape = logits.reshape(-1, logits.shape[-1]), labels.shape
    losses, log_probs, norm = _TokenLikelihoods.apply(flat, labels.reshape(-1), wanted, ignored)
    return losses.view(shape), log_probs.view(*shape, len(wanted)), norm.view(shape)


class TokenLoss:
    """Cross-entropy for `Trainer(compute_loss_func=...)`: the mean over all tokens, in one pass over the logits.

    Args:
        model: An encoder-decoder, or a decoder-only model, whose logits are of the token after each.
    """

    def __init__(self, model: Any) -> None:
        self.shift = 0 if model.config.is_encoder_decoder else 1

    def __call__(self, outputs: Any, labels: Tensor, num_items_in_batch: Tensor | int | None = None) -> Tensor:
        """The scalar to minimise, for logits `(batch, length, vocabulary)` and labels `(batch, length)`."""
        logits = outputs["logits"]
        targets = torch.nn.functional.pad(labels[:, self.shift :], (0, self.shift), value=IGNORED)
        losses, _, _ = token_likelihoods(logits, targets, labels.new_empty(0), IGNORED)
        items = (targets != IGNORED).sum() if num_items_in_batch is None else num_items_in_batch
        if isinstance(items, Tensor):
            # If one process uses several devices, Trainer passes one count for each.
            items = items.to(losses.device).sum() if items.ndim else items
            return losses.sum() / items.clamp(min=1)
        return losses.sum() / max(items, 1)


class _TokenLikelihoods(torch.autograd.Function):
    """See `token_likelihoods`; logits `(n, vocabulary)`."""

    @staticmethod
    def forward(
        ctx: Any, logits: Tensor, labels: Tensor, wanted: Tensor, ignored: int
    ) -> tuple[Tensor, Tensor, Tensor]:
        norm = _norms(logits)
        columns = torch.cat([wanted.expand(len(labels), -1), labels.clamp(min=0).unsqueeze(1)], 1)
        log_probs = logits.gather(1, columns) - norm.unsqueeze(1)
        skipped = labels == ignored
        ctx.save_for_backward(logits, columns, skipped, norm, log_probs)
        return (-log_probs[:, -1]).masked_fill_(skipped, 0), log_probs[:, :-1], norm

    @staticmethod
    @torch.autograd.function.once_differentiable
    def backward(ctx: Any, of_losses: Tensor, of_log_probs: Tensor, of_norm: Tensor) -> tuple[Tensor, None, None, None]:
        logits, columns, skipped, norm, log_probs = ctx.saved_tensors
        of_columns = torch.cat([of_log_probs, -of_losses.masked_fill(skipped, 0).unsqueeze(1)], 1)
        share = of_norm.unsqueeze(1) - of_columns.sum(1, keepdim=True)
        gradient = _shared(logits, norm.unsqueeze(1), share)
        # Near the gold, the shared and the own gradient nearly cancel, so add them before rounding to the logits' type.
        # A gold token that is also wanted has two columns, which get the same sum.
        alike = columns.unsqueeze(2) == columns.unsqueeze(1)
        own = (alike * of_columns.unsqueeze(1)).sum(2)
        gradient.scatter_(1, columns, (log_probs.exp() * share + own).to(gradient.dtype))
        return gradient, None, None, None


def _norms(logits: Tensor) -> Tensor:
    """The logsumexp of each row: `(n, vocabulary)` to `(n,)`."""
    exact = torch.promote_types(logits.dtype, torch.float32)
    if logits.is_cuda:
        return _norms_at_once(logits, exact)
    norm = logits.new_empty(len(logits), dtype=exact)
    for here, piece in _pieces(logits):
        norm[here] = torch.logsumexp(piece.to(exact), -1)
    return norm


def _shared(logits: Tensor, norm: Tensor, share: Tensor) -> Tensor:
    """Each row's probabilities times its share; `norm` and `share` are `(n, 1)`."""
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


class _Compiled:
    """Compiles a function when its first argument is on a CUDA device, where launching many small steps is slow.

    If compiling fails, the function runs as written.
    """

    def __init__(self, function: Callable[..., Any]) -> None:
        self.plain = function
        self.compiled: Callable[..., Any] | None = None

    def __call__(self, *arguments: Any) -> Any:
        if not arguments[0].is_cuda or torch.compiler.is_compiling():
            return self.plain(*arguments)
        self.compiled = self.compiled or torch.compile(self.plain, dynamic=True)
        try:
            return self.compiled(*arguments)
        except Exception as error:
            self.compiled = self.plain
            logger.info("%s runs uncompiled: %s", getattr(self.plain, "__name__", "a function"), error)
            return self.plain(*arguments)


@_Compiled
def _norms_at_once(logits: Tensor, exact: torch.dtype) -> Tensor:
    return torch.logsumexp(logits.to(exact), -1)


@_Compiled
def _shared_at_once(logits: Tensor, norm: Tensor, share: Tensor) -> Tensor:
    return ((logits.to(norm.dtype) - norm).exp() * share).to(logits.dtype)
