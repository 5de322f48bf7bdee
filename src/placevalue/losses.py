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
from dataclasses import dataclass, replace
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

logger = logging.getLogger(__name__)
Mode = Literal["soft", "hard"]

NO_NUMBER = 20.0
"""What `hard` counts where the prediction is no number, as the paper does."""
FLOOR = 2.0**-20
"""The distance below which `hard` counts no further: at the gold itself the logarithm would be without end."""
LONGEST = 32
"""Numbers of more tokens than this are left to cross-entropy."""
PATIENCE = 100
"""After this many batches without a single number, `AggregationLoss` refuses to go on."""
_OUTSIDE = -2  # neither a token's id nor -1, which stands for symbols that a pattern never writes


class AggregationLoss:
    """A loss for `Trainer(compute_loss_func=...)`, or for a loop of one's own.

    `parts` holds the last call's cross-entropy (`ce`), auxiliary loss (`aux`, absent without numbers) and how many
    numbers were found (`numbers`); `placevalue.log_parts` has a Trainer log them.

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
        self.parts: dict[str, Tensor] = {}
        self.totals: dict[str, Tensor] = {}  # since `take_means` last took them
        self._batches_without: int | None = 0  # None once a number was found

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
                f"logits {tuple(logits.shape)} and labels {tuple(labels.shape)} do not match: give the collator the "
                "model, DataCollatorForSeq2Seq(tokenizer, model=model), so that the decoder is fed the labels"
            )
        behind = 0 if self.model.config.is_encoder_decoder else 1
        targets = torch.nn.functional.pad(labels[:, behind:], (0, behind), value=IGNORED)
        wanted = digit_tensor((*self.ids.digits, self.ids.point), logits.device)
        losses, log_probs, likeliest = token_likelihoods(logits, targets, wanted, IGNORED, best=self.mode == "hard")
        numbers = find_numbers(labels, self.ids, behind)
        tokens = (targets != IGNORED).sum()
        total = self._total(losses, targets, numbers, log_probs, likeliest)
        self._note(losses, tokens, numbers)
        items = tokens if num_items_in_batch is None else torch.as_tensor(num_items_in_batch, device=total.device)
        return total / items.clamp(min=1)

    def take_means(self) -> dict[str, float]:
        """The means over all calls since this was last asked, over all processes; `numbers` is their sum."""
        names = ("ce", "tokens", "aux", "numbers")
        device = self.totals["ce"].device
        sums = torch.stack([torch.as_tensor(self.totals.get(name, 0), device=device).double() for name in names])
        if torch.distributed.is_available() and torch.distributed.is_initialized():
            torch.distributed.all_reduce(sums)
        self.totals = {}
        ce, tokens, aux, numbers = sums.tolist()
        means = {"ce": ce / max(tokens, 1), "numbers": numbers}
        return means | ({"aux": aux / numbers} if numbers else {})

    def _total(
        self, losses: Tensor, targets: Tensor, numbers: "Numbers", log_probs: Tensor, likeliest: Tensor
    ) -> Tensor:
        """The sum over the batch, each target's tokens counting alike."""
        self._aux: Tensor | None = None
        if not numbers.count or self.ce_weight == 1:
            return losses.sum()
        if self.mode == "soft":
            aux = self._soft(numbers, numbers.read(log_probs))
        else:
            aux = self._hard(numbers, numbers.read(likeliest.unsqueeze(-1)).squeeze(-1))
        self._aux = aux.detach()
        found = torch.bincount(numbers.rows, minlength=targets.shape[0])
        mean = aux.new_zeros(targets.shape[0]).index_add(0, numbers.rows, aux) / found.clamp(min=1)
        own = losses.sum(1)
        both = self.ce_weight * own + (1 - self.ce_weight) * mean * (targets != IGNORED).sum(1)
        return torch.where(found > 0, both, own).sum()

    def _soft(self, numbers: "Numbers", log_probs: Tensor) -> Tensor:
        """Half the binary logarithm of one plus the expected squared distance: `(numbers,)`."""
        with torch.no_grad():
            costs = self._costs(numbers, self._digit_rows().detach().to(log_probs.dtype))
        listed = log_probs.exp()
        rest = (1 - listed.sum(-1, keepdim=True)).clamp(min=0)
        expected = (torch.cat([listed, rest], -1) * costs).sum((1, 2))
        return 0.5 * torch.log2(1 + expected)

    def _costs(self, numbers: "Numbers", rows: Tensor) -> Tensor:
        """How far off the number would be for each token at each position: `(numbers, positions, 12)`.

        The twelve are the ten digits, the point, and anything else, which ends the number. Distances are in units of
        the digit embeddings' own spread, so that their size does not matter.
        """
        spread = (rows - rows.mean(0)).square().sum(1).mean().sqrt()
        rows = rows / spread.clamp(min=torch.finfo(rows.dtype).tiny)
        window, width = numbers.window, numbers.window.shape[1]
        symbols = digit_tensor((*self.ids.digits, self.ids.point, _OUTSIDE), window.device)
        here = torch.eye(width, dtype=torch.bool, device=window.device)[1:, None, :]
        variants = torch.where(here, symbols[:, None], window[:, None, None, :])
        gold = self._vectors(window, rows)
        away = self._vectors(variants.flatten(0, 2), rows).unflatten(0, variants.shape[:3]) - gold[:, None, None, :]
        costs = (away @ (rows @ rows.T) * away).sum(-1) if self.linear else away.square().sum(-1)

        right = window[:, 1:, None] == symbols
        right[..., -1] = ~right.any(-1)
        is_digit = right[..., :10].any(-1)
        one_for_another = is_digit.unsqueeze(-1) & (torch.arange(12, device=window.device) < 10)
        # Off by a factor of ten, a number of another length must not come cheaper than one with a wrong digit,
        # whatever the aggregation makes of it.
        worst = torch.where(one_for_another, costs, 0).amax((1, 2), keepdim=True)
        costs = torch.where(one_for_another, costs, costs + worst)
        return torch.where(right | ~numbers.inside.unsqueeze(-1), 0, costs)

    def _hard(self, numbers: "Numbers", likeliest: Tensor) -> Tensor:
        """The paper's distance: `(numbers,)`."""
        rows = self._digit_rows()
        rows = rows if rows.dtype == torch.float64 else rows.float()
        guess = torch.where(numbers.inside, likeliest, _OUTSIDE)
        guess = torch.cat([numbers.window[:, :1], guess], 1)
        gap = self._vectors(guess, rows, exact=True) - self._vectors(numbers.window, rows, exact=True)
        distance = torch.linalg.vector_norm(gap, dim=-1)
        is_number = find_digits(guess, self.ids, self.decimals).mask.any(1)
        return torch.where(is_number, torch.log2(distance.clamp(min=FLOOR)), NO_NUMBER)

    def _vectors(self, window: Tensor, rows: Tensor, exact: bool = False) -> Tensor:
        """Each window's aggregate: `(n, dim)`, or its ten coefficients where the aggregation is linear."""
        digits = find_digits(window, self.ids, self.decimals)
        digits = replace(digits, numbers=torch.zeros_like(digits.numbers), slots=1)
        basis = rows if exact or not self.linear else torch.eye(10, dtype=rows.dtype, device=rows.device)
        with torch.autocast(rows.device.type, enabled=False):
            return self.aggregation(digits, basis).squeeze(1)

    def _digit_rows(self) -> Tensor:
        """The ten digit embeddings as the model reads them, scaling included: `(10, dim)`."""
        reader: Any = self.model.get_encoder() if self.model.config.is_encoder_decoder else self.model
        embedding = reader.get_input_embeddings()
        return embedding.forward(digit_tensor(self.ids.digits, embedding.weight.device))

    def _note(self, losses: Tensor, tokens: Tensor, numbers: "Numbers") -> None:
        """Keep the named parts; refuse data in which no number is ever found."""
        count = tokens.new_tensor(numbers.count)
        sums = {"ce": losses.detach().sum(), "tokens": tokens, "numbers": count}
        self.parts = {"ce": sums["ce"] / tokens.clamp(min=1), "numbers": count}
        if self._aux is not None:
            sums["aux"] = self._aux.sum()
            self.parts["aux"] = self._aux.mean()
        if torch.is_grad_enabled():  # evaluation has its own figure
            self.totals = {name: self.totals.get(name, 0) + value for name, value in sums.items()}
        if numbers.count:
            self._batches_without = None
        if self._batches_without is None:
            return
        self._batches_without += 1
        if self._batches_without >= PATIENCE:
            raise TrainingError(
                f"in {PATIENCE} batches not one number was found in the labels, so there is nothing for the auxiliary "
                "loss to do: make the targets with encode_pairs and the tokenizer that the model is attached to, or "
                "train without it"
            )


@dataclass(frozen=True)
class Numbers:
    """The whole numbers in a batch of targets; one row a number, its open marker first."""

    rows: Tensor
    """The target each number stands in: `(numbers,)`."""
    starts: Tensor
    """Where in it the open marker is predicted: `(numbers,)`, -1 where it is not."""
    window: Tensor
    """The tokens from the open to the close marker, none beyond: `(numbers, width)`."""
    inside: Tensor
    """Where behind the open marker the window still is in the number, its close included: `(numbers, width - 1)`."""

    @property
    def count(self) -> int:
        """How many there are."""
        return self.rows.shape[0]

    def read(self, values: Tensor) -> Tensor:
        """What stands at the positions behind the open markers: `(batch, length, k)` to `(numbers, width - 1, k)`."""
        steps = torch.arange(1, self.window.shape[1], device=values.device)
        positions = (self.starts[:, None] + steps).clamp(max=values.shape[1] - 1)
        return values[self.rows[:, None], positions]


def find_numbers(targets: Tensor, ids: NumberIds, behind: int = 0) -> Numbers:
    """Every number in targets `(batch, length)` that is there from its open to its close marker.

    One that was cut off, or holds labels that do not count, has no value to be compared with. Predictions stand
    `behind` positions before what they predict.
    """
    rows, starts = (targets == ids.open).nonzero(as_tuple=True)
    steps = torch.arange(min(LONGEST + 2, targets.shape[1]), device=targets.device)
    positions = starts[:, None] + steps
    window = targets[rows[:, None], positions.clamp(max=targets.shape[1] - 1)]
    window = torch.where(positions < targets.shape[1], window, _OUTSIDE)
    digits = digit_tensor(ids.digits, targets.device)
    is_digit = torch.isin(window, digits)
    part = is_digit | torch.isin(window, digit_tensor(ids.symbols, targets.device))
    length = part[:, 1:].long().cumprod(1).sum(1)
    close = (length + 1).clamp(max=window.shape[1] - 1)
    closed = (window.gather(1, close[:, None]).squeeze(1) == ids.close) & is_digit.any(1)
    rows, starts, window, close = rows[closed], starts[closed], window[closed], close[closed]
    width = int(close.max()) + 1 if len(rows) else 1
    inside = steps[1:width] <= close[:, None]
    window = torch.where(steps[:width] <= close[:, None], window[:, :width], _OUTSIDE)
    return Numbers(rows, starts - behind, window, inside)


def _is_linear(aggregation: Aggregation) -> bool:
    """Whether a number's vector is a fixed combination of the ten digit embeddings, found by trying."""
    generator = torch.Generator().manual_seed(0)
    values = torch.tensor([[3, 1, 4], [0, 9, 0]])
    places = torch.tensor([[2, 1, 0], [1, 0, -1]])
    leading = torch.tensor([[3, 3, 3], [2, 2, 2]])
    digits = Digits(values, places, leading, torch.zeros_like(values), torch.ones_like(values, dtype=torch.bool), 1)
    rows = torch.randn(10, 4, generator=generator, dtype=torch.float64)
    change = torch.randn(4, 4, generator=generator, dtype=torch.float64)
    return torch.allclose(aggregation(digits, rows @ change), aggregation(digits, rows) @ change)
