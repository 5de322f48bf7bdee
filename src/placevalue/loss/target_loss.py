"""What every loss on numbers shares: one pass over the logits, each target's loss by itself, and the parts in the logs.

A loss is defined for each target and divided as Trainer divides, so the way a batch is cut does not matter.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn
from transformers import PreTrainedModel, PreTrainedTokenizerBase

from placevalue.common.errors import ConfigError, TrainingError
from placevalue.loss.cross_entropy import token_likelihoods
from placevalue.loss.number_targets import find_numbers
from placevalue.modeling.attach import base_model, check_attached
from placevalue.modeling.attached_config import recorded_config
from placevalue.modeling.hooks import TargetCheck, last_ids
from placevalue.modeling.mount import refuse_revealed, writes_on
from placevalue.numbers.spans import constant
from placevalue.tokenizer.encoding import IGNORED
from placevalue.tokenizer.tokenizer import number_ids

PATIENCE = 100
"""After this many batches without a number, a loss raises an error."""


@dataclass(frozen=True)
class Scores:
    """What a model predicts at every position."""

    logits: Tensor
    """`(batch, length, vocabulary)`, without a gradient."""
    log_probs: Tensor
    """Log-probabilities of the ten digits and the point: `(batch, length, 11)`, float32 or float64."""
    norm: Tensor
    """What the logits are greater by than log-probabilities: `(batch, length)`."""


class TargetLoss:
    """Cross-entropy and something about the numbers, for `Trainer(compute_loss_func=...)` or your own training loop.

    A subclass says what in `_measure`, and how the two are mixed in `_mix`.

    `parts` has the cross-entropy, the auxiliary loss and the number of numbers of the last call; `placevalue.log_parts`
    lets a Trainer log them.
    """

    looks_at = "answers"
    """Where the numbers are that it needs."""
    head: nn.Linear | None = None
    """Weights that train with the model and are not saved with it."""

    def __init__(self, model: Any, tokenizer: PreTrainedTokenizerBase) -> None:
        check_attached(model, tokenizer)
        self.model: PreTrainedModel = base_model(model)
        if not writes_on(self.model):
            raise ConfigError(
                f"{type(self.model).__name__} does not write texts from left to right, so its labels hold no numbers "
                f"to compare: use a model such as T5, BART, GPT-2 or Llama, or train without {type(self).__name__}"
            )
        config = recorded_config(self.model)
        assert config is not None  # every attached model has one
        if not config.layout.keeps_values:
            raise ConfigError(
                f"the tokenizer has rewrite={config.layout.rewrite!r}, so the digits of an answer do not have their "
                f"places and {type(self).__name__} would compare other numbers: train with cross-entropy alone"
            )
        self.config, self.ids, self.decimals = config, number_ids(tokenizer), config.decimals
        self._checks = {True: TargetCheck(config), False: TargetCheck(config)}  # in training, and in evaluation
        self._last: Tensor | None = None  # sums of ce, tokens, aux and numbers in the last call
        self._totals: Tensor | None = None  # the same since the last `take_means`
        self._calls = 0
        self._seen: Tensor | int = 0

    @property
    def parts(self) -> dict[str, Tensor]:
        """The last call's `ce`, `numbers` and, if there were numbers, `aux`."""
        return {} if self._last is None else _means(self._last)

    def __call__(self, outputs: Any, labels: Tensor | None, num_items_in_batch: Tensor | int | None = None) -> Tensor:
        """Compute the scalar to minimise.

        Args:
            outputs: What the model returned, with logits `(batch, length, vocabulary)`.
            labels: `(batch, length)`, -100 to ignore a token, not shifted for decoder-only models either.
            num_items_in_batch: What to divide by if a batch is split; None divides by the tokens in this batch.
        """
        if labels is None:
            raise TrainingError("the batch has no labels: make the data with encode_pairs and keep its labels")
        check = self._checks[torch.is_grad_enabled()]
        if check.left and check.patience:
            refuse_revealed(self.model, labels)
        check(labels, last_ids(self.model))
        logits = outputs["logits"] if isinstance(outputs, Mapping) else outputs.logits
        if logits.shape[:-1] != labels.shape:
            raise TrainingError(
                f"logits {tuple(logits.shape)} and labels {tuple(labels.shape)} do not match: for an encoder-decoder, "
                "use DataCollatorForSeq2Seq(tokenizer, model=model), which prepares decoder_input_ids"
            )
        if not labels.numel():
            return logits.sum()  # 0: some processes get nothing of a data set's last batch
        shift = 0 if self.model.config.is_encoder_decoder else 1
        targets = torch.nn.functional.pad(labels[:, shift:], (0, shift), value=IGNORED) if shift else labels
        wanted = constant(torch.tensor, (*self.ids.digits, self.ids.point), logits.device)
        losses, log_probs, norm = token_likelihoods(logits, targets, wanted, IGNORED)
        with torch.autocast(logits.device.type, enabled=False):
            aux, found = self._measure(labels, shift, Scores(logits.detach(), log_probs, norm))
        ce, tokens = losses.sum(1), (targets != IGNORED).sum(1, dtype=losses.dtype)
        sums = torch.stack([ce, tokens, aux, found]).detach().sum(1)
        self._note(sums)
        # AUX counts once for each token of a target, as CE is a sum over them.
        total = self._mix(ce, aux * (tokens / found.clamp(min=1)), found).sum()
        items = sums[1] if num_items_in_batch is None else num_items_in_batch
        if isinstance(items, Tensor):
            # If one process uses several devices, Trainer passes one count for each.
            items = items.to(total.device).sum() if items.ndim else items
            return total / items.clamp(min=1)
        return total / max(items, 1)

    def take_means(self) -> dict[str, float]:
        """The means over all training calls and processes since the last `take_means`; `numbers` is a sum."""
        if self._totals is None:
            return {}
        sums = self._totals.float()
        if torch.distributed.is_available() and torch.distributed.is_initialized():
            torch.distributed.all_reduce(sums)
        self._totals = None
        return {name: float(value) for name, value in _means(sums.cpu().double()).items()}

    def finds(self, example: Mapping[str, list[int]]) -> bool:
        """Whether there are numbers in an encoded example that this loss can use."""
        return bool(find_numbers(torch.tensor([example["labels"]]), self.ids).valid.any())

    def _measure(self, labels: Tensor, shift: int, scores: "Scores") -> tuple[Tensor, Tensor]:
        """The sum of the auxiliary loss over each target's numbers, and how many it has: `(batch,)` each."""
        raise NotImplementedError

    def _mix(self, ce: Tensor, aux: Tensor, found: Tensor) -> Tensor:
        """The loss of each target from its cross-entropy and the auxiliary loss, which is 0 without numbers."""
        raise NotImplementedError

    def _note(self, sums: Tensor) -> None:
        """Keep the parts; raise an error if no number is ever found."""
        self._last = sums
        if torch.is_grad_enabled():  # not in evaluation
            self._totals = sums if self._totals is None else self._totals + sums
        if self._calls >= PATIENCE:
            return
        self._calls, self._seen = self._calls + 1, self._seen + sums[-1]
        if self._calls == PATIENCE and not int(self._seen):
            self._calls -= 1
            raise TrainingError(
                f"the {self.looks_at} of {PATIENCE} batches contain no number, so the auxiliary loss has no effect: "
                "make the data with encode_pairs and the tokenizer that the model is attached with, or train without it"
            )


def _means(sums: Tensor) -> dict[str, Tensor]:
    ce, tokens, aux, numbers = sums.unbind()
    found = {"ce": ce / tokens.clamp(min=1), "numbers": numbers}
    return found | ({"aux": aux / numbers} if int(numbers) else {})
