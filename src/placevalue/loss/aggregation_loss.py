"""The auxiliary loss: cross-entropy plus the distance of the predicted number from the gold one.

The loss of a target with numbers is `ce_weight * CE + (1 - ce_weight) * AUX`, of one without numbers its CE. AUX is the
mean over the target's numbers, times its tokens, as CE is a sum over them, so the way a batch is split does not matter.

`soft` asks at each position of a number: if only this token were different, how far off would the number's aggregate
be? With d(t, c) the squared distance for token c at position t, and p(t, c) its probability, r^2 = sum of
p(t, c) d(t, c), and AUX = 1/2 log2(1 + r^2). A token that ends the number too early or continues it costs the distance
to the shorter or longer number plus the cost of the worst wrong digit. As in CE, p is given the gold tokens before.

`hard` is the paper's: AUX = log2 of the distance between the aggregates of the likeliest and the gold digits. Choosing
the likeliest digit has no gradient, so only the digit embeddings get one.
"""

import math
from dataclasses import replace
from typing import Any, Literal, get_args

import torch
from torch import Tensor
from transformers import PreTrainedTokenizerBase

from placevalue.common.errors import ConfigError
from placevalue.loss.number_targets import CHOICES, OUTSIDE, Numbers, find_numbers, make_variants
from placevalue.loss.target_loss import Scores, TargetLoss
from placevalue.modeling.attach import attached_aggregation
from placevalue.numbers.aggregation import Aggregation, aggregate, find_aggregation
from placevalue.numbers.spans import Digits, constant, join_tokens, place_digits, read_tokens, read_within

Mode = Literal["soft", "hard"]

NO_NUMBER = 20.0
"""The `hard` loss of a prediction that is not a number, as in the paper."""
FLOOR = 2.0**-20
"""Lower bound on the distance in `hard`, since log2(0) is -inf."""


class AggregationLoss(TargetLoss):
    """A loss for `Trainer(compute_loss_func=...)` or your own training loop.

    `parts` has the cross-entropy, the auxiliary loss and the number of numbers of the last call; `placevalue.log_parts`
    lets a Trainer log them.

    Args:
        model: An attached model, or a PEFT model around one.
        tokenizer: The tokenizer it is attached with.
        ce_weight: The share of cross-entropy, the paper's lambda; 1 is cross-entropy alone.
        mode: `soft`, or `hard` as in the paper.
        aggregation: A name in `AGGREGATIONS` or a function; None takes what the model is attached with, or `weighted`
            if it has no [AGG].

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
        aggregation: str | Aggregation | None = None,
    ) -> None:
        if not 0 <= ce_weight <= 1:
            raise ConfigError(f"ce_weight={ce_weight!r}: expected a number from 0 to 1")
        if mode not in get_args(Mode):
            raise ConfigError(f"mode={mode!r}: expected 'soft' or 'hard'")
        super().__init__(model, tokenizer)
        self.ce_weight, self.mode = ce_weight, mode
        compared = aggregation or attached_aggregation(self.model) or "weighted"
        self.aggregation = find_aggregation(compared)
        self._compared = compared if isinstance(compared, str) else getattr(compared, "__name__", repr(compared))
        self.linear = _is_linear(self.aggregation)

    def __repr__(self) -> str:
        share, model = f"{self.ce_weight:g} * CE + {1 - self.ce_weight:g} * AUX", type(self.model).__name__
        return f"AggregationLoss({share}, mode={self.mode!r}, aggregation={self._compared!r}, model={model})"

    def _measure(self, labels: Tensor, shift: int, scores: Scores) -> tuple[Tensor, Tensor]:
        numbers, aux = self._aux(labels, shift, scores)
        dtype = scores.log_probs.dtype
        return numbers.by_target(aux, len(labels), dtype), numbers.by_target(numbers.valid, len(labels), dtype)

    def _mix(self, ce: Tensor, aux: Tensor, found: Tensor) -> Tensor:
        return torch.lerp(ce, aux, (1 - self.ce_weight) * found.clamp(max=1))

    def _aux(self, labels: Tensor, shift: int, scores: Scores) -> tuple[Numbers, Tensor]:
        """The numbers in the labels, and the auxiliary loss of each: `(lines, numbers)`."""
        with torch.no_grad():
            numbers = find_numbers(labels, self.ids, shift)
        if self.ce_weight == 1 or not len(numbers.lines):
            return numbers, scores.log_probs.new_zeros(numbers.valid.shape)
        if self.mode == "hard":
            return numbers, self._hard(numbers, numbers.read(scores.logits.argmax(-1, keepdim=True)).squeeze(-1))
        with torch.no_grad():
            rows = self._digit_rows().to(scores.log_probs.dtype)
            costs = _compare(rows, numbers, self.decimals, self.aggregation, self.linear)
        return numbers, _expected(numbers, costs, numbers.read(scores.log_probs))

    def _hard(self, numbers: Numbers, likeliest: Tensor) -> Tensor:
        """The paper's distance: `(lines, numbers)`."""
        rows = self._digit_rows()
        rows = rows.to(torch.promote_types(rows.dtype, torch.float32))
        basis = constant(torch.eye, 10, rows.device, rows.dtype) if self.linear else rows
        markers = constant(torch.tensor, (self.ids.open, self.ids.agg, self.ids.pause), likeliest.device)
        member = numbers.members.any(1)
        written = member & ~(likeliest.unsqueeze(-1) == markers).any(-1)
        guess = torch.where(numbers.lines == self.ids.open, numbers.lines, torch.where(written, likeliest, OUTSIDE))
        there = replace(numbers.tokens, member=member)
        here = read_tokens(guess, self.ids) if self.ids.marked else read_within(guess, self.ids, there)
        both = join_tokens(here, there)
        digits = place_digits(both, self.ids, self.decimals, negatives=self.config.negatives)
        digits = replace(digits, slots=numbers.valid.shape[1])
        guessed, gold = aggregate(self.aggregation, digits, basis).chunk(2)
        gap = (guessed - gold) @ rows if self.linear else guessed - gold
        distance = torch.linalg.vector_norm(gap, dim=-1)
        any_digit = (numbers.members @ digits.mask[: len(guess)].to(numbers.members).unsqueeze(-1)).squeeze(-1) > 0
        aux = torch.where(any_digit, torch.log2(distance.clamp(min=FLOOR)), NO_NUMBER)
        return torch.where(numbers.valid, aux, 0)

    def _digit_rows(self) -> Tensor:
        """The ten digit embeddings as the model reads them, including scaling: `(10, dim)`."""
        reader: Any = self.model.get_encoder() if self.model.config.is_encoder_decoder else self.model
        embedding = reader.get_input_embeddings()
        return embedding.forward(constant(torch.tensor, self.ids.digits, embedding.weight.device))


def _compare(rows: Tensor, numbers: Numbers, decimals: str, aggregation: Aggregation, linear: bool) -> Tensor:
    """How far off the number would be for each choice at each of its tokens: `(lines, width, CHOICES)`.

    Distances are relative to the spread of the digit embeddings, so their size does not matter.
    """
    variants = make_variants(numbers, decimals)
    spread = rows.var(0, correction=0).sum().clamp(min=torch.finfo(rows.dtype).tiny)
    rows = rows / spread.sqrt()
    # Ten coefficients describe a linear aggregate, whatever the dimension.
    basis = constant(torch.eye, 10, rows.device, rows.dtype) if linear else rows
    vectors = aggregation(variants.digits, basis).view(*variants.same_length.shape, -1)
    gold = vectors[:, :, -1].gather(1, variants.gold.unsqueeze(-1).expand_as(vectors[:, :, -1]))
    away = vectors - gold.unsqueeze(2)
    costs = (away @ (rows @ rows.T) * away).sum(-1) if linear else away.square().sum(-1)
    # A number of another length is off by a factor of ten and must cost more than any wrong digit.
    worst = (costs * variants.same_length).amax(-1).unsqueeze(1) * variants.together
    costs = torch.where(variants.same_length, costs, costs + worst.amax(-1, keepdim=True))
    right = numbers.tokens.found[..., : CHOICES - 1]
    wrong = torch.cat([~right, right.any(-1, keepdim=True)], -1)
    if not numbers.tokens.marked:  # what follows a number may be anything but a digit, and a point ends a sentence too
        wrong[..., 10:] &= (numbers.tokens.kind("close") == 0).unsqueeze(-1)
    inside = variants.together.diagonal(dim1=1, dim2=2)
    return costs * wrong * inside.unsqueeze(-1)


def _expected(numbers: Numbers, costs: Tensor, log_probs: Tensor) -> Tensor:
    """Half the binary logarithm of one plus the expected squared distance: `(lines, numbers)`."""
    listed = log_probs.exp()
    rest = torch.relu(1 - listed.sum(-1, keepdim=True))
    expected = (torch.cat([listed, rest], -1) * costs).sum(-1)
    # Not a matrix product, which an accelerator may round.
    return torch.log1p((numbers.members * expected.unsqueeze(1)).sum(-1)) * (0.5 / math.log(2))


def _is_linear(aggregation: Aggregation) -> bool:
    """Whether an aggregation is linear in the digit embeddings, tested on an example."""
    generator = torch.Generator().manual_seed(0)
    values = torch.tensor([[3, 1, 4], [0, 9, 0]])
    places = torch.tensor([[2, 1, 0], [1, 0, -1]])
    leading = torch.tensor([[3, 3, 3], [2, 2, 2]])
    digits = Digits(values, places, leading, torch.zeros_like(values), torch.ones_like(values, dtype=torch.bool), 1)
    rows = torch.randn(10, 4, generator=generator, dtype=torch.float64)
    change = torch.randn(4, 4, generator=generator, dtype=torch.float64)
    try:
        return torch.allclose(aggregation(digits, rows @ change), aggregation(digits, rows) @ change)
    except Exception:  # works for one dimension or type only: the slower way uses the model's own rows
        return False
