"""Aggregations: functions that turn a number's digits into one vector.

Each takes `(digits, embeddings)`, with embeddings `(10, dim)`, and returns `(rows, slots, dim)`: one vector for every
slot, zero if the slot has no number. Add your own function to `AGGREGATIONS` to use it by name everywhere.
"""

from collections.abc import Callable
from functools import partial, update_wrapper

import torch
from torch import Tensor

from placevalue.common.errors import ConfigError
from placevalue.common.validation import one_of
from placevalue.numbers.constants import constant, exporting
from placevalue.numbers.spans import Digits

Aggregation = Callable[[Digits, Tensor], Tensor]

MAX_DIGITS = 12
"""Weights follow Equation 1 up to this many digits before the point, and saturate beyond.

12 is the most for which FLAN-T5's digit embeddings, whose entries reach 52, stay within float16's range.
"""
FALL = 20.0
"""How many times less each place of `interpolated` counts than the one before it."""
EASE = 0.3
"""How much faster than evenly `interpolated` leaves each digit: the path turns sharply there, so numbers just below
and just above a digit would otherwise be too close."""

_FACTORS = tuple(
    tuple(3 * (rank + 1) * (rank + 2) / (n * (n + 1) * (n + 2)) for rank in range(MAX_DIGITS))
    for n in range(1, MAX_DIGITS + 1)
)
"""Equation 1 without its powers of two, by number of digits and place."""


def place_weights(n: int) -> Tensor:
    """The paper's weights for an integer of n digits, leading digit first, in float64.

    Up to `MAX_DIGITS` this is Equation 1, w_i = 2^(n-i) * 3(n+1-i)(n+2-i) / (n(n+1)(n+2)). Beyond, the leading
    digits keep the weights of a number with `MAX_DIGITS` digits, and each further digit counts half the one before.

    Example:
        >>> place_weights(3).tolist()
        [2.4, 0.6, 0.1]
    """
    if n < 1:
        raise ConfigError(f"place_weights({n}): expected at least 1 digit. Pass the number of digits")
    places = torch.arange(n - 1, -1, -1)
    return digit_weights(places, torch.full_like(places, n), torch.float64)


def digit_weights(places: Tensor, leading: Tensor, dtype: torch.dtype) -> Tensor:
    """Equation 1 by place; each place after the point counts half the one before it."""
    place = places - (leading - MAX_DIGITS).clamp(min=0)
    factors = constant(torch.tensor, _FACTORS, place.device, dtype)
    factor = factors[leading.clamp(1, MAX_DIGITS) - 1, place.clamp(0, MAX_DIGITS - 1)]
    return torch.exp2(place.to(dtype)) * factor


def weighted(digits: Digits, embeddings: Tensor) -> Tensor:
    """The paper's Equation 1, extended to places after the point."""
    return digits.fold(digit_weights(digits.places, digits.leading, embeddings.dtype), embeddings)


def sum_(digits: Digits, embeddings: Tensor) -> Tensor:
    """The plain sum."""
    return digits.fold(torch.ones_like(digits.values), embeddings)


def mean(digits: Digits, embeddings: Tensor) -> Tensor:
    """The plain mean."""
    return sum_(digits, embeddings) / _counts(digits, embeddings).sum(-1, keepdim=True).clamp(min=1)


def max_(digits: Digits, embeddings: Tensor) -> Tensor:
    """The largest entry in each dimension."""
    present = _counts(digits, embeddings) > 0
    largest = embeddings.new_full((*present.shape[:-1], embeddings.shape[1]), -torch.inf)
    for digit in range(10):
        largest = torch.maximum(largest, torch.where(present[..., digit, None], embeddings[digit], -torch.inf))
    return torch.where(present.any(-1, keepdim=True), largest, 0)


def min_(digits: Digits, embeddings: Tensor) -> Tensor:
    """The smallest entry in each dimension."""
    return -max_(digits, -embeddings)


def median(digits: Digits, embeddings: Tensor) -> Tensor:
    """The middle entry in each dimension; for an even number of digits, the mean of the middle two."""
    counts = _counts(digits, embeddings)
    total = counts.sum(-1, keepdim=True)
    ordered, order = embeddings.sort(0)
    lower, upper = torch.floor((total - 1) / 2), torch.floor(total / 2)
    seen = torch.zeros_like(counts[..., :1])
    result = embeddings.new_zeros((*counts.shape[:-1], embeddings.shape[1]))
    for rank in range(10):
        # Digits sorted by this dimension's entries: those ranked `seen .. here` have this entry.
        here = seen + counts[..., order[rank]]
        halves = ((seen <= lower) & (lower < here)).to(result) + ((seen <= upper) & (upper < here)).to(result)
        result = result + halves * ordered[rank] / 2
        seen = here
    return result


def interpolated(digits: Digits, embeddings: Tensor, fall: float = FALL) -> Tensor:
    """Soft digits: at each place the point (number / 10^place) mod 10 on the closed path e0, e1, .., e9, e0.

    The tens digit of 4529 is at 2.9, nearly 3, so 4529 and 4530 are neighbours. Each place counts a twentieth of the
    one before it, and the vector grows with the number of digits before the point.
    """
    leading = digits.leading.clamp(max=MAX_DIGITS).to(embeddings.dtype)
    place = (digits.places - digits.leading + 1).to(embeddings.dtype)
    weights = leading * torch.pow(fall, place)
    way = digits.fractions(embeddings.dtype)
    way = torch.add(way, torch.sin(2 * torch.pi * way), alpha=EASE / (2 * torch.pi))
    following = torch.roll(embeddings, -1, 0)
    return digits.fold(weights * (1 - way), embeddings) + digits.fold(weights * way, following)


def _counts(digits: Digits, embeddings: Tensor) -> Tensor:
    return digits.histogram(torch.ones_like(digits.values, dtype=embeddings.dtype))


AGGREGATIONS: dict[str, Aggregation] = {
    "weighted": weighted,
    "sum": sum_,
    "mean": mean,
    "max": max_,
    "min": min_,
    "median": median,
    "interpolated": interpolated,
}


def find_aggregation(name: str | Aggregation) -> Aggregation:
    """The aggregation of this name; a function is returned as it is."""
    if not isinstance(name, str):
        return name
    if name not in AGGREGATIONS:
        raise ConfigError(
            f"the aggregation {name!r} is unknown: expected {one_of(AGGREGATIONS, name)}. To use your own function, "
            f"set placevalue.AGGREGATIONS[{name!r}] first"
        )
    return AGGREGATIONS[name]


def aggregate(function: Aggregation, digits: Digits, embeddings: Tensor) -> Tensor:
    """Every number's vector: what the function makes of its digits, negated if it is below zero."""
    return digits.turn(function(digits, embeddings))


def per_number(function: Callable[[Tensor, Tensor, Tensor], Tensor]) -> Aggregation:
    """Make an aggregation from a function of one number: slow, for trying out ideas.

    Args:
        function: Takes one number's digit values `(n,)`, their places `(n,)` and the embeddings `(10, dim)`, and
            returns `(dim,)`.

    Example:
        >>> AGGREGATIONS["first-digit"] = per_number(lambda values, places, embeddings: embeddings[values[0]])
    """
    # Not a closure, so that models attached with it can be pickled.
    return update_wrapper(partial(_aggregate_one_by_one, function), function, ("__name__",), ())


def _aggregate_one_by_one(function: Callable[..., Tensor], digits: Digits, embeddings: Tensor) -> Tensor:
    if exporting():
        raise ConfigError(
            "an aggregation made by per_number computes one number after another, so an export would repeat the "
            "numbers of its example: write it as a function of (digits, embeddings), like those in pv.AGGREGATIONS"
        )
    rows: list[Tensor] = []
    for row in range(digits.values.shape[0]):
        vectors = [embeddings.new_zeros(embeddings.shape[1])] * digits.slots
        for slot in digits.numbers[row][digits.mask[row]].unique().tolist():
            here = digits.mask[row] & (digits.numbers[row] == slot)
            vectors[slot] = function(digits.values[row][here], digits.places[row][here], embeddings)
        rows.append(torch.stack(vectors))
    return torch.stack(rows)
