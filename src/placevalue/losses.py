"""The auxiliary loss: cross-entropy, and beside it how far the predicted number is from the gold one.

A target with numbers costs `ce_weight * CE + (1 - ce_weight) * AUX`, one without costs its CE. AUX is the mean over the
target's numbers and counts once for each of its tokens, as CE does, so that it makes no difference how a batch is cut.

`soft` asks at each position of a number: were this token another, and the rest as it should be, how far off would the
number's aggregate be? With d(t, c) that squared distance for the token c at position t, and p(t, c) its probability,
r^2 = sum of p(t, c) d(t, c), and AUX = 1/2 log2(1 + r^2). A token that ends the number too early or carries it on costs
the distance to the shorter or longer number, and the worst wrong digit's cost on top. The probabilities are those that
CE sees too: given the gold tokens before them.

`hard` is the paper's: AUX = log2 of the distance between the aggregates of the likeliest and the gold digits. No
gradient passes through the choice of a digit, so it moves the digit embeddings and nothing else.
"""

import logging
from collections.abc import Mapping
from typing import Any, Literal, get_args

import torch
from torch import Tensor
from transformers import PreTrainedModel, PreTrainedTokenizerBase

from placevalue.aggregation import Aggregation, find_aggregation
from placevalue.config import NumberIds
from placevalue.encoding import IGNORED
from placevalue.errors import ConfigError, TrainingError
from placevalue.integration import base_model, check_attached, recorded_config
from placevalue.likelihoods import token_likelihoods
from placevalue.spans import Digits, digit_tensor, find_digits
from placevalue.targets import OUTSIDE, Numbers, find_numbers, make_variants

logger = logging.getLogger(__name__)
Mode = Literal["soft", "hard"]

NO_NUMBER = 20.0
"""What `hard` counts where the prediction is no number, as the paper does."""
FLOOR = 2.0**-20
"""The distance below which `hard` counts no further: at the gold itself the logarithm would be without end."""
PATIENCE = 100
"""After this many batches without a single number, `AggregationLoss` refuses to go on."""


class AggregationLoss:
    """A loss for `Trainer(compute_loss_func=...)`, or for a loop of one's own.

    `parts` holds the last call's cross-entropy, auxiliary loss and how many numbers were found;
    `placevalue.log_parts` has a Trainer log them.

    Args:
        model: An attached model, or a PEFT model around one.
        tokenizer: The tokenizer it was attached with.
        ce_weight: The share of cross-entropy, the paper's lambda; 1 is cross-entropy alone.
        mode: `soft`, or the paper's own `hard`.
        aggregation: A name in `AGGREGATIONS` or a function.

    Example:
        >>> loss = AggregationLoss(model, tokenizer, ce_weight=0.6)  # doctest: +SKIP
        >>> loss(model(**batch), batch["labels"]).backward()  # doctest: +SKIP
    """

    def __init__(
        self,
        model: Any,
        tokenizer: PreTrainedTokenizerBase,
        ce_weight: float = 0.6,
        mode: Mode = "soft",
        aggregation: str | Aggregation = "weighted",
    ) -> None:
        if not 0 <= ce_weight <= 1:
            raise ConfigError(f"ce_weight={ce_weight!r}: expected a number from 0 to 1")
        if mode not in get_args(Mode):
            raise ConfigError(f"mode={mode!r}: expected 'soft' or 'hard'")
        check_attached(model, tokenizer)
        self.model: PreTrainedModel = base_model(model)
        config = recorded_config(self.model)
        assert config is not None  # every attached model has one
        self.ce_weight = ce_weight
        self.mode = mode
        self.aggregation = find_aggregation(aggregation) if isinstance(aggregation, str) else aggregation
        self.ids = config.ids
        self.decimals = config.decimals
        self.linear = _is_linear(self.aggregation)
        self.totals: dict[str, Tensor] = {}  # since `take_means` last took them
        self._last: dict[str, Tensor] = {}
        self._calls = 0
        self._seen: Tensor | int = 0

    @property
    def parts(self) -> dict[str, Tensor]:
        """The last call's `ce`, `numbers` and, where there were numbers, `aux`."""
        if not self._last:
            return {}
        found = {"ce": self._last["ce"] / self._last["tokens"].clamp(min=1), "numbers": self._last["numbers"]}
        return found | ({"aux": self._last["aux"] / found["numbers"]} if int(found["numbers"]) else {})

    def __call__(self, outputs: Any, labels: Tensor | None, num_items_in_batch: Tensor | int | None = None) -> Tensor:
        """The scalar to minimise.

        Args:
            outputs: What the model returned: its logits are `(batch, length, vocabulary)`.
            labels: `(batch, length)`, -100 where nothing counts, unshifted also for decoder-only models.
            num_items_in_batch: What to divide by, where a batch is one of several; None divides by the tokens here.
        """
        if labels is None:
            raise TrainingError("the batch has no labels: make the data with encode_pairs, and collate its labels")
        logits = outputs["logits"] if isinstance(outputs, Mapping) else outputs.logits
        if logits.shape[:-1] != labels.shape:
            raise TrainingError(
                f"logits {tuple(logits.shape)} and labels {tuple(labels.shape)} do not match: for an encoder-decoder "
                "give the collator the model, DataCollatorForSeq2Seq(tokenizer, model=model), to feed it the labels"
            )
        behind = 0 if self.model.config.is_encoder_decoder else 1
        targets = torch.nn.functional.pad(labels[:, behind:], (0, behind), value=IGNORED)
        wanted = digit_tensor((*self.ids.digits, self.ids.point), logits.device)
        losses, log_probs, likeliest = token_likelihoods(logits, targets, wanted, IGNORED, best=self.mode == "hard")
        numbers, aux = self._aux(labels, behind, log_probs, likeliest)
        counts = (targets != IGNORED).sum(1)
        self._note(losses.detach().sum(), counts.sum(), numbers.valid.sum(), aux.detach().sum())
        total = self._total(losses.sum(1), counts, numbers, aux)
        items = counts.sum() if num_items_in_batch is None else num_items_in_batch
        # Where Trainer spreads one process over several devices, it gives one count for each.
        return total / torch.as_tensor(items, device=total.device).sum().clamp(min=1)

    def take_means(self) -> dict[str, float]:
        """The means over all calls since this was last asked, over all processes; `numbers` is their sum."""
        names = ("ce", "tokens", "aux", "numbers")
        device = self.totals["ce"].device
        sums = torch.stack([torch.as_tensor(self.totals.get(name, 0), device=device).float() for name in names])
        if torch.distributed.is_available() and torch.distributed.is_initialized():
            torch.distributed.all_reduce(sums)
        self.totals = {}
        ce, tokens, aux, numbers = sums.tolist()
        means = {"ce": ce / max(tokens, 1), "numbers": numbers}
        return means | ({"aux": aux / numbers} if numbers else {})

    def _aux(self, labels: Tensor, behind: int, log_probs: Tensor, likeliest: Tensor) -> tuple[Numbers, Tensor]:
        """The numbers in the labels, and the auxiliary loss of each, 0 where there is none: `(numbers,)`."""
        numbers = find_numbers(labels, self.ids, behind)
        if self.ce_weight == 1 or not len(numbers.rows) or numbers.window.shape[1] < 2:
            return numbers, log_probs.new_zeros(len(numbers.rows))
        if self.mode == "soft":
            with torch.no_grad(), torch.autocast(labels.device.type, enabled=False):
                rows = self._digit_rows().detach().to(log_probs.dtype)
                costs = _compare(numbers, rows, self.ids, self.decimals, self.aggregation, self.linear)
            aux = _expected(costs, numbers.read(log_probs))
        else:
            aux = self._hard(numbers, numbers.read(likeliest.unsqueeze(-1)).squeeze(-1))
        return numbers, torch.where(numbers.valid, aux, 0)

    def _total(self, losses: Tensor, tokens: Tensor, numbers: Numbers, aux: Tensor) -> Tensor:
        """The sum over the batch, each token of each target counting alike."""
        if not len(aux) or self.ce_weight == 1:
            return losses.sum()
        empty = aux.new_zeros(len(losses))
        found = empty.index_add(0, numbers.rows, numbers.valid.to(aux.dtype))
        mean = empty.index_add(0, numbers.rows, aux) / found.clamp(min=1)
        both = self.ce_weight * losses + (1 - self.ce_weight) * mean * tokens
        return torch.where(found > 0, both, losses).sum()

    def _hard(self, numbers: Numbers, likeliest: Tensor) -> Tensor:
        """The paper's distance: `(numbers,)`."""
        rows = self._digit_rows()
        rows = rows if rows.dtype == torch.float64 else rows.float()
        markers = digit_tensor((self.ids.open, self.ids.agg, self.ids.pause), likeliest.device)
        written = numbers.inside & ~(likeliest.unsqueeze(-1) == markers).any(-1)
        guess = torch.cat([numbers.window[:, :1], torch.where(written, likeliest, OUTSIDE)], 1)
        digits = find_digits(guess, self.ids, self.decimals)
        gold = find_digits(numbers.window, self.ids, self.decimals)
        with torch.autocast(rows.device.type, enabled=False):
            gap = _vectors(digits, rows, self.aggregation) - _vectors(gold, rows, self.aggregation)
        distance = torch.linalg.vector_norm(gap, dim=-1)
        return torch.where(digits.mask.any(1), torch.log2(distance.clamp(min=FLOOR)), NO_NUMBER)

    def _digit_rows(self) -> Tensor:
        """The ten digit embeddings as the model reads them, scaling included: `(10, dim)`."""
        reader: Any = self.model.get_encoder() if self.model.config.is_encoder_decoder else self.model
        embedding = reader.get_input_embeddings()
        return embedding.forward(digit_tensor(self.ids.digits, embedding.weight.device))

    def _note(self, ce: Tensor, tokens: Tensor, numbers: Tensor, aux: Tensor) -> None:
        """Keep the named parts; refuse data in which no number is ever found."""
        self._last = {"ce": ce, "tokens": tokens, "numbers": numbers, "aux": aux}
        if torch.is_grad_enabled():  # evaluation has its own figure
            self.totals = {name: self.totals.get(name, 0) + value for name, value in self._last.items()}
        if self._calls >= PATIENCE:
            return
        self._calls, self._seen = self._calls + 1, self._seen + numbers
        if self._calls == PATIENCE and not int(self._seen):
            self._calls -= 1
            raise TrainingError(
                f"in {PATIENCE} batches not one number was found in the labels, so there is nothing for the auxiliary "
                "loss to do: make the targets with encode_pairs and the tokenizer that the model is attached to, or "
                "train without it"
            )


def _compare(
    numbers: Numbers, rows: Tensor, ids: NumberIds, decimals: str, aggregation: Aggregation, linear: bool
) -> Tensor:
    """How far off each number would be for each choice at each position: `(numbers, positions, CHOICES)`.

    Distances are in units of the digit embeddings' own spread, so that their size does not matter.
    """
    variants = make_variants(numbers, ids, decimals)
    spread = (rows - rows.mean(0)).square().sum(1).mean().sqrt()
    rows = rows / spread.clamp(min=torch.finfo(rows.dtype).tiny)
    # Of a linear aggregation ten coefficients say all, whatever the dimension.
    basis = torch.eye(10, dtype=rows.dtype, device=rows.device) if linear else rows
    gold = _vectors(variants.gold, basis, aggregation)
    away = _vectors(variants.digits, basis, aggregation).unflatten(0, variants.right.shape) - gold[:, None, None, :]
    costs = (away @ (rows @ rows.T) * away).sum(-1) if linear else away.square().sum(-1)
    # Off by a factor of ten, a number of another length must not come cheaper than one with a wrong digit, whatever
    # the aggregation makes of it.
    worst = torch.where(variants.same_length, costs, 0).amax((1, 2), keepdim=True)
    costs = torch.where(variants.same_length, costs, costs + worst)
    return torch.where(variants.right | ~numbers.inside.unsqueeze(-1), 0, costs)


def _vectors(digits: Digits, rows: Tensor, aggregation: Aggregation) -> Tensor:
    """The aggregate of the one number in each row: `(n, dim)`."""
    alone = Digits(digits.values, digits.places, digits.leading, torch.zeros_like(digits.numbers), digits.mask, slots=1)
    return aggregation(alone, rows).squeeze(1)


def _expected(costs: Tensor, log_probs: Tensor) -> Tensor:
    """Half the binary logarithm of one plus the expected squared distance: `(numbers,)`."""
    listed = log_probs.exp()
    rest = (1 - listed.sum(-1, keepdim=True)).clamp(min=0)
    return 0.5 * torch.log2(1 + (torch.cat([listed, rest], -1) * costs).sum((1, 2)))


def _is_linear(aggregation: Aggregation) -> bool:
    """Whether a number's vector is a fixed combination of the ten digit embeddings, found by trying."""
    generator = torch.Generator().manual_seed(0)
    values = torch.tensor([[3, 1, 4], [0, 9, 0]])
    places = torch.tensor([[2, 1, 0], [1, 0, -1]])
    leading = torch.tensor([[3, 3, 3], [2, 2, 2]])
    digits = Digits(values, places, leading, torch.zeros_like(values), torch.ones_like(values, dtype=torch.bool), 1)
    rows = torch.randn(10, 4, generator=generator, dtype=torch.float64)
    change = torch.randn(4, 4, generator=generator, dtype=torch.float64)
    try:
        return torch.allclose(aggregation(digits, rows @ change), aggregation(digits, rows) @ change)
    except Exception:  # a function made for one dimension or type: the slower way takes the model's own rows
        return False
