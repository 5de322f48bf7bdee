"""Losses on numbers that others published, each added to the cross-entropy: NUMBER_LOSSES.

The loss of a target with numbers is `CE + weight * L`, where L is a mean, most often over the target's digits, and
counts once for each of its tokens; without numbers it is its CE. To add your own, add an entry, or pass a function.
"""

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, Literal

import torch
from torch import Tensor
from transformers import PreTrainedTokenizerBase

from placevalue.common.errors import ConfigError
from placevalue.common.validation import one_of
from placevalue.loss.magnitude_probe import MagnitudeProbe
from placevalue.loss.number_targets import Numbers, find_numbers
from placevalue.loss.target_loss import Scores, TargetLoss
from placevalue.numbers.config import NumberIds
from placevalue.numbers.spans import constant, place_digits, read_tokens

_TINY = 1e-10


class DigitScores:
    """What a model predicts at each digit of the numbers in targets.

    Tensors are `(lines, width)` or `(lines, width, 10)`, where a line is a target or a number. Where `mask` is False,
    they are meaningless.
    """

    def __init__(self, numbers: Numbers, scores: Scores, ids: NumberIds) -> None:
        self.numbers, self.ids = numbers, ids
        self.targets = len(scores.log_probs)
        """How many targets there are."""
        self.mask = (numbers.tokens.kind("digit") * numbers.members.amax(1)) > 0
        """Whether there is a digit."""
        self.gold = numbers.tokens.kind("value")
        """The digit that stands there, 0 to 9."""
        logits = numbers.read(scores.log_probs[..., :10] + scores.norm.unsqueeze(-1))
        # Elsewhere the logits of all digits may be -inf, of which a softmax is NaN.
        self.logits = torch.where(self.mask.unsqueeze(-1), logits, 0)
        """The logits of the ten digits."""
        self.log_probs = self.logits.log_softmax(-1)
        """The log-probabilities of the ten digits, if it must be a digit."""
        self.ten = constant(torch.arange, 10, logits.device, logits.dtype)
        """0 to 9."""

    @cached_property
    def probs(self) -> Tensor:
        """The probabilities of the ten digits, if it must be a digit."""
        return self.log_probs.exp()

    @cached_property
    def off(self) -> Tensor:
        """Each digit less the right one."""
        return self.ten - self.gold.unsqueeze(-1)

    @cached_property
    def right(self) -> Tensor:
        """1 for the right digit, otherwise 0."""
        return self.numbers.tokens.found[..., :10].to(self.logits)

    @cached_property
    def places(self) -> Tensor:
        """The power of ten of each digit's place: 0 for units, -1 for tenths."""
        tokens = replace(self.numbers.tokens, member=self.numbers.members.amax(1) > 0)
        return place_digits(tokens, self.ids, negatives="ignore").places.to(self.logits)

    @cached_property
    def ends(self) -> Tensor:
        """The position after each digit's run, which a point, a separator or anything else ends."""
        width = self.mask.shape[1]
        positions = constant(torch.arange, width, self.mask.device)
        return torch.where(self.mask, width, positions).flip(1).cummin(1).values.flip(1)

    @cached_property
    def ranks(self) -> Tensor:
        """How many digits of its run follow each digit."""
        ranks = self.ends - constant(torch.arange, self.mask.shape[1], self.mask.device) - 1
        return (ranks * self.mask).to(self.logits)

    @cached_property
    def last(self) -> Tensor:
        """Whether there is the last digit of a run."""
        return self.mask & (self.ranks == 0)

    def by_run(self, amounts: Tensor) -> Tensor:
        """Amounts summed over each run of digits, at its last digit: `(lines, width)`."""
        index = (self.ends - 1).clamp(min=0)
        return torch.zeros_like(amounts).scatter_add(1, index, torch.where(self.mask, amounts, 0))

    def mean(self, amounts: Tensor, counted: Tensor | None = None) -> Tensor:
        """The mean of what is counted, by default of all digits, over each target: `(targets,)`; 0 of none."""
        counted = self.mask if counted is None else counted
        kept, dtype = torch.where(counted, amounts, 0), amounts.dtype
        sums = self.numbers.by_target(kept, self.targets, dtype)
        return sums / self.numbers.by_target(counted, self.targets, dtype).clamp(min=1)


def ntl_was(digits: DigitScores) -> Tensor:
    """The expected distance from the right digit."""
    return digits.mean((digits.probs * digits.off.abs()).sum(-1))


def ntl_mse(digits: DigitScores) -> Tensor:
    """The squared distance of the expected digit from the right one."""
    return digits.mean((digits.probs * digits.off).sum(-1).square())


def del_entropy(digits: DigitScores) -> Tensor:
    """Ten decisions for or against a digit, each weighted by its probability, and by the place of the digit."""
    against = torch.nn.functional.softplus(digits.logits * (1 - 2 * digits.right))
    places = digits.places
    weights = torch.where(places < 0, 1.02 ** (places - 1).clamp(max=0), 2 * (places + 1))
    return digits.mean(weights * (digits.probs * against).mean(-1))


def smmd(digits: DigitScores) -> Tensor:
    """The residual's discrepancy under a kernel of digit distances, and its roughness over the kernel's graph."""
    residual = digits.probs - digits.right
    return digits.mean((residual @ constant(_smmd_matrix, None, residual.device, residual.dtype) * residual).sum(-1))


def _smmd_matrix(_: None, device: torch.device, dtype: torch.dtype) -> Tensor:
    """K + alpha (D - K), whose quadratic form is the loss."""
    ten = torch.arange(10, dtype=torch.float64)
    kernel = torch.exp(-(ten[:, None] - ten).square() / 8)
    degrees = kernel.sum(1)
    return (kernel + (degrees.diag() - kernel) / (2 * degrees.mean())).to(device, dtype)


def dist2(digits: DigitScores) -> Tensor:
    """How far the probabilities are from a bell around the right digit, times the digit's place from the right."""
    log_bell = (-digits.off.square()).log_softmax(-1)
    divergence = (log_bell.exp() * (log_bell - digits.log_probs)).sum(-1)
    return digits.mean((digits.ranks + 1) * divergence)


def ntil(digits: DigitScores) -> Tensor:
    """The expected distance of digits, weighted by place, and how far the likeliest digits' number is from the gold."""
    distance = digits.mean(1.2**digits.ranks * (digits.probs * digits.off.abs()).sum(-1))
    soft = ((10 * digits.log_probs).softmax(-1) * digits.ten).sum(-1)
    powers = 10**digits.ranks
    # The value is that of the likeliest digits, the gradient that of the soft ones.
    guess = digits.by_run((digits.log_probs.argmax(-1) + (soft - soft.detach())) * powers) + 1
    gold = digits.by_run(digits.gold * powers) + 1
    more = torch.maximum(guess, gold)
    apart = (guess - gold).abs() / more + (more / torch.minimum(guess, gold)).log()
    return distance + 0.2 * digits.mean(apart, digits.last)


Function = Callable[[DigitScores], Tensor]
Mix = Literal["add", "balance"]


@dataclass(frozen=True)
class Definition:
    """A loss on numbers, as it was published."""

    about: str
    """A short description."""
    compute: Function | None
    """The loss of each target, from what is predicted at its digits: `(targets,)`; None if it `watches` the model."""
    weight: float
    """The weight that its authors give it."""
    mix: Mix = "add"
    """`add` adds it to cross-entropy; `balance` first makes it as large as the cross-entropy of its target."""
    watches: type[MagnitudeProbe] | None = None
    """What looks at what the model reads, instead of at its predictions."""


NUMBER_LOSSES: dict[str, Definition] = {
    "ntl-was": Definition("the expected distance from the right digit", ntl_was, 0.3),
    "ntl-mse": Definition("the squared distance of the expected digit", ntl_mse, 0.3),
    "del": Definition("digit entropy: a decision for or against each digit", del_entropy, 0.01),
    "smmd": Definition("a kernel of digit distances, and smoothness", smmd, 0.3),
    "ntil": Definition("digit distances by place, and the distance of numbers", ntil, 0.3, "balance"),
    "dist2": Definition("probabilities like a bell around the right digit", dist2, 0.1),
    "magnitude-probe": Definition("the size of numbers, read off hidden states", None, 0.1, watches=MagnitudeProbe),
}


class NumberLoss(TargetLoss):
    """Cross-entropy and a published loss on numbers, usable wherever `AggregationLoss` is.

    `parts` has the cross-entropy, the number loss (`aux`, the mean over numbers, without its weight) and the number of
    numbers of the last call; `placevalue.log_parts` lets a Trainer log them.

    Args:
        model: An attached model, or a PEFT model around one.
        tokenizer: The tokenizer it is attached with.
        loss: A name in `NUMBER_LOSSES`, or a function of `DigitScores`.
        weight: What the number loss is multiplied by; None takes what its authors do, 1 for a function.

    `magnitude-probe` puts a `head` into the model, which is trained and never saved: make the loss, then the optimizer.

    Example:
        >>> loss = NumberLoss(model, tokenizer, "ntl-was")  # doctest: +SKIP
        >>> loss(model(**batch), batch["labels"]).backward()  # doctest: +SKIP
    """

    def __init__(
        self, model: Any, tokenizer: PreTrainedTokenizerBase, loss: str | Function, weight: float | None = None
    ) -> None:
        definition = find_loss(loss)
        self.weight = definition.weight if weight is None else weight
        if not (self.weight >= 0 and math.isfinite(self.weight)):
            raise ConfigError(f"weight={weight!r}: expected a number from 0 on")
        super().__init__(model, tokenizer)
        self.definition = definition
        self.probe = None
        if definition.watches is not None:
            self.probe = definition.watches(self.model, self.ids, self.decimals)
            self.looks_at, self.head = "questions", self.probe.head
        self._name = loss if isinstance(loss, str) else getattr(loss, "__name__", repr(loss))

    def __repr__(self) -> str:
        return f"NumberLoss(CE + {self.weight:g} * {self._name}, model={type(self.model).__name__})"

    def finds(self, example: Mapping[str, list[int]]) -> bool:
        """Whether there are numbers in an encoded example that this loss can use."""
        if self.probe is None:
            return super().finds(example)
        return bool(read_tokens(torch.tensor([example["input_ids"]]), self.ids).member.any())

    def _measure(self, labels: Tensor, shift: int, scores: Scores) -> tuple[Tensor, Tensor]:
        if self.probe is not None:
            return self.probe.measure(labels)
        with torch.no_grad():
            numbers = find_numbers(labels, self.ids, shift)
        found = numbers.by_target(numbers.valid, len(labels), scores.norm.dtype)
        if not self.weight or not len(numbers.lines):
            return torch.zeros_like(found), found
        assert self.definition.compute is not None
        return self.definition.compute(DigitScores(numbers, scores, self.ids)) * found, found

    def _mix(self, ce: Tensor, aux: Tensor, found: Tensor) -> Tensor:  # noqa: ARG002
        if self.definition.mix == "balance":
            aux = aux * (ce / (aux + _TINY)).detach()
        return ce + self.weight * aux


def find_loss(loss: str | Function) -> Definition:
    """The definition of a loss given by its name or as a function."""
    if callable(loss):
        return Definition(getattr(loss, "__doc__", None) or "your own", loss, 1.0)
    if loss not in NUMBER_LOSSES:
        raise ConfigError(f"loss {loss!r} is unknown: expected {one_of(NUMBER_LOSSES, loss)}")
    return NUMBER_LOSSES[loss]
