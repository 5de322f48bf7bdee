"""Vectors that a model reads of its numbers, beside aggregations: VECTORS.

A vector replaces the embedding of each number's [AGG], or is added to it or to the embeddings of the number's digits.
It may have parameters, as one module. Add your own `Vector` to `VECTORS` to use it by name everywhere.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass
from itertools import pairwise
from typing import Literal

import torch
from torch import Tensor, nn

from placevalue.common.errors import ConfigError
from placevalue.common.validation import one_of
from placevalue.numbers.aggregation import Aggregation, aggregate
from placevalue.numbers.spans import Digits, constant

LOWEST, HIGHEST = -8, 23
"""The places with a vector of their own in `place`; places beyond have the nearest one's."""
OFFSETS, LONGEST = 99, 32
"""The largest random offset of `abacus`, and how many digits have a vector of their own."""
FONE_PLACES = (-6, 15)
"""The first and last place that `fone-in` sees; it has a period of 10^(place + 1) for each."""
DICE_RANGE = 10_000
"""The largest number of `dice`; those beyond count as that."""
_EXACT_DIGITS = 18
"""Digits of a number that count for its value; as many fit into an integer of 64 bits."""
_POWERS = tuple(10.0**power for power in range(309))


@dataclass(frozen=True)
class Reading:
    """The numbers that a model reads, for `Vector.compute`; floats are float32, or float64 if the model's are."""

    digits: Digits
    """Every digit; a slot is the position of a number's [AGG], or where the number begins for a vector at digits."""
    embeddings: Tensor
    """The embeddings of the ten digits: `(10, dim)`."""
    own: Tensor
    """The embedding of each token: `(rows, length, dim)`."""
    aggregation: Aggregation
    """What the model was attached with, otherwise `weighted`."""
    training: bool
    """Whether the model is in training."""

    @property
    def ranks(self) -> Tensor:
        """How many digits of its number stand before each digit: `(rows, length)`."""
        mask = self.digits.mask.long()
        before = mask.cumsum(1) - mask
        first = torch.full_like(before, before.shape[1])
        slots = self.digits.numbers * mask
        first = first.scatter_reduce(1, slots, torch.where(self.digits.mask, before, before.shape[1]), "amin")
        return (before - first.gather(1, slots)) * mask

    @property
    def values(self) -> Tensor:
        """What each number is worth, as Python's float() reads it, in float64: `(rows, slots)`; 0 without a number."""
        mask, slots = self.digits.mask.long(), self.digits.numbers * self.digits.mask
        count = torch.zeros_like(slots).scatter_add(1, slots, mask).gather(1, slots)
        power = count.clamp(max=_EXACT_DIGITS) - 1 - self.ranks
        kept = mask * (power >= 0)
        none = torch.zeros_like(slots)
        whole = none.scatter_add(1, slots, self.digits.values * 10 ** power.clamp(min=0) * kept)
        # The place of the last digit that counts, the same at each digit of a number.
        last = (self.digits.places - power) * kept
        shift = none.scatter_reduce(1, slots, last, "amax") + none.scatter_reduce(1, slots, last, "amin")
        powers = constant(torch.tensor, _POWERS, slots.device, torch.float64)
        up, down = (powers[each.clamp(0, len(_POWERS) - 1)] for each in (shift, -shift))
        largest = torch.finfo(torch.float64).max
        return self.turn((whole.double() * up / down).clamp(max=largest).unsqueeze(-1)).squeeze(-1)

    @property
    def magnitudes(self) -> Tensor:
        """sign(x) log(1 + |x|) of each number x: `(rows, slots)`."""
        values = self.values
        return (values.sign() * values.abs().log1p()).to(self.own)

    @property
    def scale(self) -> Tensor:
        """How large an entry of the digits' embeddings is, as a root mean square; without a gradient."""
        return self.embeddings.detach().square().mean().sqrt()

    def aggregates(self) -> Tensor:
        """Each number's aggregate: `(rows, slots, dim)`."""
        return aggregate(self.aggregation, self.digits, self.embeddings)

    def at_digits(self, vectors: Tensor) -> Tensor:
        """The vector of each digit's number: `(rows, slots, dim)` to `(rows, length, dim)`."""
        slots = (self.digits.numbers * self.digits.mask).unsqueeze(-1)
        return vectors.gather(1, slots.expand(-1, -1, vectors.shape[-1]))

    def turn(self, vectors: Tensor) -> Tensor:
        """Each number's vector `(rows, slots, dim)`, negated if the number is below zero."""
        return self.digits.turn(vectors)


@dataclass(frozen=True)
class Vector:
    """What a model reads of a number besides its digits. An aggregation is one without parameters.

    Example:
        >>> VECTORS["negative-mean"] = Vector(lambda reading, _: -mean(reading.digits, reading.embeddings))
    """

    compute: Callable[[Reading, nn.Module | None], Tensor]
    """Takes a `Reading` and the module; returns `(rows, slots, dim)`, or `(rows, length, dim)` if `at="digits"`.

    It uses the module by calling it, since PEFT wraps it.
    """
    build: Callable[[int], nn.Module] | None = None
    """Makes the module from the embeddings' size; None if there are no parameters."""
    at: Literal["token", "digits"] = "token"
    """Whether [AGG] gets the vector, or each digit that is read."""
    how: Literal["replace", "add"] = "replace"
    """Whether the vector replaces an embedding or is added to it; what is added should start at zero."""
    needs: Literal["value", "order"] = "value"
    """What it takes of a number: its value, or the order of its digits alone, whatever their places."""

    @property
    def replaces_agg(self) -> bool:
        """Whether [AGG] holds the vector, so that it cannot hold an aggregate."""
        return (self.at, self.how) == ("token", "replace")


class Places(nn.Module):
    """A learned vector for each of some places, from zero."""

    def __init__(self, count: int, dim: int) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.zeros(count, dim))

    def forward(self, places: Tensor) -> Tensor:
        """The vectors of places, counted from 0: `(..., dim)`."""
        return nn.functional.embedding(places.clamp(0, len(self.weight) - 1), self.weight)


class Gate(nn.Module):
    """Multiplies each dimension by a learned number, from zero."""

    def __init__(self, dim: int) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.zeros(dim))

    def forward(self, vectors: Tensor) -> Tensor:
        """The vectors, through the gate: `(..., dim)`."""
        return vectors * self.weight


class Layers(nn.Module):
    """Linear layers with GELU between them, in the precision of what they get.

    Their weights are bare, since adapters of all linear layers would take part of a vector for themselves.
    """

    def __init__(self, *sizes: int) -> None:
        super().__init__()
        layers = [nn.Linear(size, after) for size, after in pairwise(sizes)]
        self.weights = nn.ParameterList(each.weight for each in layers)
        self.biases = nn.ParameterList(each.bias for each in layers)

    def forward(self, features: Tensor) -> Tensor:
        """The last layer's output: `(..., dim)`."""
        for index, (weight, bias) in enumerate(zip(self.weights, self.biases, strict=True)):
            features = nn.functional.gelu(features) if index else features
            features = nn.functional.linear(features, weight.to(features), bias.to(features))
        return features


def build_places(dim: int) -> nn.Module:
    """A vector for each place from `LOWEST` to `HIGHEST`."""
    return Places(HIGHEST - LOWEST + 1, dim)


def place(reading: Reading, module: nn.Module | None) -> Tensor:
    """A learned vector of each digit's place."""
    assert module is not None
    vectors: Tensor = module(reading.digits.places - LOWEST)
    return vectors


def residual(reading: Reading, module: nn.Module | None) -> Tensor:
    """The number's aggregate, through a gate."""
    assert module is not None
    return reading.at_digits(module(reading.aggregates()))


def abacus(reading: Reading, module: nn.Module | None) -> Tensor:
    """A learned vector of how many digits stand before each digit, counted from a random offset in training."""
    assert module is not None
    ranks = reading.ranks
    if reading.training:
        ranks = ranks + torch.randint(OFFSETS + 1, (1,), device=ranks.device)
    vectors: Tensor = module(ranks)
    return vectors


def build_abacus(dim: int) -> nn.Module:
    """A vector for each rank and offset."""
    return Places(LONGEST + OFFSETS, dim)


def value_aware(reading: Reading, module: nn.Module | None) -> Tensor:
    """A network of the value."""
    assert module is not None
    return module(reading.magnitudes.unsqueeze(-1)) * reading.scale


def build_value_aware(dim: int) -> nn.Module:
    """One number in, a vector out, and one hidden layer."""
    return Layers(1, dim, dim)


def fone_in(reading: Reading, module: nn.Module | None) -> Tensor:
    """A linear map of cos and sin of 2 pi x / 10^i, whose angles come from the digits, so that none is rounded."""
    assert module is not None
    digits, width = reading.digits, FONE_PLACES[1] - FONE_PLACES[0] + 1
    place = digits.places - FONE_PLACES[0]
    inside = digits.mask & (place >= 0) & (place < width)
    index = (digits.numbers * width + place) * inside
    table = reading.own.new_zeros((len(index), digits.slots * width))
    table = table.scatter_add(1, index, (digits.values * inside).to(table)).view(len(index), digits.slots, width)
    turns, turn = [], table.new_zeros(table.shape[:2])
    for digit in table.unbind(-1):
        turn = (digit + turn) / 10
        turns.append(turn)
    angles = 2 * torch.pi * torch.stack(turns, -1)
    return module(torch.cat([angles.cos(), reading.turn(angles.sin())], -1)) * reading.scale


def build_fone(dim: int) -> nn.Module:
    """Two features for each place."""
    return Layers(2 * (FONE_PLACES[1] - FONE_PLACES[0] + 1), dim)


def bits_in(reading: Reading, module: nn.Module | None) -> Tensor:
    """A linear map of the 64 bits of the float64 of x, and of that of 1 / x, each 1 or -1."""
    assert module is not None
    values = reading.values
    both = torch.stack([values, 1 / values], -1).view(torch.int64)
    bits = both.unsqueeze(-1) >> constant(torch.arange, 64, both.device) & 1
    return module((2 * bits - 1).flatten(2).to(reading.own)) * reading.scale


def build_bits(dim: int) -> nn.Module:
    """Two times 64 bits."""
    return Layers(128, dim)


def xval_in(reading: Reading, _: nn.Module | None) -> Tensor:
    """[AGG]'s own embedding times 5 sign(x) log(1 + |x|) / log(1 + 10^15)."""
    return reading.own * (5 / math.log1p(1e15) * reading.magnitudes).unsqueeze(-1)


def dice(reading: Reading, _: nn.Module | None) -> Tensor:
    """v_i = sin^(i-1)(t) cos(t) with t = pi x / range, as long as a digit's embedding."""
    dim = reading.own.shape[-1]
    # At the end of the range, numbers below and above zero would be the same.
    angle = torch.pi * (reading.values / DICE_RANGE).clamp(-0.99, 0.99).to(reading.own).unsqueeze(-1)
    powers = angle.sin() ** constant(torch.arange, dim, angle.device, angle.dtype)
    return powers * angle.cos() * reading.scale * math.sqrt(dim)


VECTORS: dict[str, Vector] = {
    "place": Vector(place, build_places, at="digits", how="add"),
    "residual": Vector(residual, Gate, at="digits", how="add"),
    "abacus": Vector(abacus, build_abacus, at="digits", how="add", needs="order"),
    "value-aware": Vector(value_aware, build_value_aware),
    "fone-in": Vector(fone_in, build_fone),
    "bits-in": Vector(bits_in, build_bits),
    "xval-in": Vector(xval_in),
    "dice": Vector(dice),
}


def find_vector(name: str) -> Vector:
    """The vector of this name."""
    if name not in VECTORS:
        raise ConfigError(
            f"the vector {name!r} is unknown: expected {one_of(VECTORS, name)}. To use your own, set "
            f"placevalue.VECTORS[{name!r}] first; an aggregation is given as aggregation={name!r}"
        )
    return VECTORS[name]
