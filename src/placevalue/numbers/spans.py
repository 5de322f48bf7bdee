"""Numbers in ids: where each one is, and each digit's value and place. Tensors only, and no Python loop over data."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from placevalue.numbers.config import NumberIds

_FRACTION_DIGITS = 16  # digits behind another that count for `fractions`: a power of two
_EXPONENT_DIGITS = 4  # exponent digits that count; `extended` writes at most three


@dataclass(frozen=True)
class Digits:
    """Digits and the numbers they belong to; every tensor is `(rows, length)`.

    `numbers` says into which of a row's `slots` a digit's number is folded, so one row can hold many numbers. Where
    `mask` is False the other entries mean nothing.
    """

    values: Tensor
    """What each digit is worth by itself, 0 to 9."""
    places: Tensor
    """The power of ten of each digit's place: 0 for units, -1 for tenths."""
    leading: Tensor
    """How many places before the point the digit's number has, at least 1."""
    numbers: Tensor
    """The slot of the number each digit belongs to."""
    mask: Tensor
    """Where there is a digit at all."""
    slots: int

    def histogram(self, weights: Tensor) -> Tensor:
        """Weights summed by number and digit: `(rows, length)` to `(rows, slots, 10)`."""
        rows = weights.shape[0]
        index = torch.add(self.values, self.numbers, alpha=10) * self.mask
        nothing = constant(torch.tensor, (0,), weights.device, weights.dtype)
        sums = weights.new_zeros((rows, self.slots * 10))
        return sums.scatter_add_(1, index, torch.where(self.mask, weights, nothing)).view(rows, self.slots, 10)

    def fold(self, weights: Tensor, embeddings: Tensor) -> Tensor:
        """The weighted sum of each number's digit embeddings: `(rows, slots, dim)`."""
        return self.histogram(weights.to(embeddings.dtype)) @ embeddings

    def fractions(self, dtype: torch.dtype) -> Tensor:
        """What stands behind each digit in its number, as a fraction of the digit's place: 0.29 for the 5 of 529."""
        # The digits of a number side by side, with zeros behind, and what is no digit in the first column, unread.
        index = torch.add(self.mask.cumsum(1), self.numbers, alpha=_FRACTION_DIGITS) * self.mask
        width = index.shape[1] + (self.slots + 1) * _FRACTION_DIGITS
        behind = self.values.new_zeros((len(index), width), dtype=dtype).scatter_(1, index, self.values.to(dtype))
        # What stands behind twice as many digits comes from what stands behind the first half and the second.
        behind, size = behind[:, 1:] / 10, 1
        while size < _FRACTION_DIGITS:
            behind = torch.add(behind[:, :-size], behind[:, size:], alpha=10.0**-size)
            size *= 2
        return behind.gather(1, index) * self.mask


def find_digits(ids: Tensor, number_ids: NumberIds, decimals: str = "places", to: int | None = None) -> Digits:
    """Every digit of every number in a batch of ids, by the position of its number's open marker or another token.

    A number runs from an open marker over digits and symbols; a close marker, or anything else, ends it. So one that
    was cut off still counts with the digits it has.

    Args:
        ids: `(rows, length)`.
        number_ids: From `tokenization.number_ids`.
        decimals: `places` gives digits behind the point negative places; `ignore` reads 12.5 as 125.
        to: The id of the token whose position in the number becomes the slot (the [AGG] id); numbers without it are
            masked out. None takes the open marker.
    """
    ids = ids.long()
    positions = constant(torch.arange, ids.shape[1], ids.device).expand_as(ids)
    nowhere = constant(torch.tensor, (-1,), ids.device)
    matches = ids.unsqueeze(-1) == constant(torch.tensor, number_ids.digits, ids.device)
    is_digit = matches.any(-1)
    values = matches.long().argmax(-1)
    opens = ids == number_ids.open
    part = is_digit | opens | _any(ids, (*number_ids.symbols, number_ids.agg, number_ids.pause))
    start = torch.where(opens, positions, nowhere).cummax(1).values
    inside = start > torch.where(part, nowhere, positions).cummax(1).values
    start = start.clamp(min=0)

    def since_start(flags: Tensor) -> Tensor:
        """How many flags each position has seen in its own number, itself included."""
        counts = flags.long().cumsum(1)
        return counts - counts.gather(1, start)

    def per_number(amounts: Tensor) -> Tensor:
        """Amounts summed over each number, at every position of it."""
        return torch.zeros_like(ids).scatter_add_(1, start, (amounts * inside).long()).gather(1, start)

    mantissa = is_digit & inside
    exponent: Tensor | int = 0
    if number_ids.exponents:
        in_exponent = since_start(inside & _any(ids, number_ids.exponents)) > 0
        powers, mantissa = mantissa & in_exponent, mantissa & ~in_exponent
        power_places = (per_number(powers) - since_start(powers)).clamp(0, _EXPONENT_DIGITS)
        size = per_number(torch.where(powers, values * 10**power_places, 0))
        exponent = torch.where(per_number(in_exponent & (ids == number_ids.minus)) > 0, -size, size)
    whole = mantissa if decimals == "ignore" else mantissa & (since_start(inside & (ids == number_ids.point)) == 0)
    leading = per_number(whole)
    leading = leading + exponent if number_ids.exponents else leading
    places = leading - since_start(mantissa)
    mask = mantissa
    slots = start
    if to is not None:
        here = torch.where(inside & (ids == to), positions, 0)
        slots = torch.zeros_like(ids).scatter_reduce(1, start, here, "amax").gather(1, start)
        mask = mask & (slots > 0)
    return Digits(values, places, leading.clamp(min=1), slots, mask, ids.shape[1])


def _any(ids: Tensor, wanted: tuple[int, ...]) -> Tensor:
    return (ids.unsqueeze(-1) == constant(torch.tensor, wanted, ids.device)).any(-1)


_made: dict[tuple[Any, ...], Tensor] = {}


def constant(make: Callable[..., Tensor], what: Any, device: torch.device, dtype: torch.dtype | None = None) -> Tensor:
    """`make(what)` on a device, made once; never to be changed.

    A copy to an accelerator in every step would stall it, and even a range is one more thing to launch.
    """
    if torch.compiler.is_compiling():
        return make(what, device=device, dtype=dtype)
    key = make, what, device, dtype
    kept = _made.get(key)
    if kept is None:
        # Kept beyond this pass, it must serve training too, and must not be a tracer's stand-in.
        with torch.inference_mode(False):
            kept = make(what, device=device, dtype=dtype)
        if type(kept) is Tensor:
            _made[key] = kept
    return kept
