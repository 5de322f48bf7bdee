"""Numbers in ids: where each one is, and each digit's value and place. Tensors only, and no Python loop over data."""

from dataclasses import dataclass

import torch
from torch import Tensor

from placevalue.config import NumberIds

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
        index = torch.where(self.mask, self.numbers * 10 + self.values, 0)
        empty = weights.new_zeros((rows, self.slots * 10))
        return empty.scatter_add(1, index, torch.where(self.mask, weights, 0)).view(rows, self.slots, 10)

    def fold(self, weights: Tensor, embeddings: Tensor) -> Tensor:
        """The weighted sum of each number's digit embeddings: `(rows, slots, dim)`."""
        return self.histogram(weights.to(embeddings.dtype)) @ embeddings

    def fractions(self, dtype: torch.dtype, digits: int = 9) -> Tensor:
        """What stands behind each digit in its number, as a fraction of the digit's place: 0.29 for the 5 of 529."""
        order = self.mask.cumsum(1)
        length = order.shape[1]
        packed = torch.where(self.mask, order - 1, length)
        values = _scattered(self.values, packed, length, digits)
        numbers = _scattered(self.numbers + 1, packed, length, digits)
        fraction = torch.zeros_like(self.values, dtype=dtype)
        for step in range(1, digits + 1):
            behind = (packed + step).clamp(max=length + digits)
            same = numbers.gather(1, behind) == self.numbers + 1
            fraction = fraction + same * values.gather(1, behind) * 10.0**-step
        return fraction * self.mask


def _scattered(values: Tensor, index: Tensor, length: int, spare: int) -> Tensor:
    """Values moved to `index`, in rows with spare zeros behind; index `length` and beyond is a bin."""
    empty = values.new_zeros((values.shape[0], length + spare + 1))
    moved = empty.scatter(1, index, values)
    keep = torch.arange(length + spare + 1, device=values.device) < length
    return moved * keep


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
    positions = torch.arange(ids.shape[1], device=ids.device).expand_as(ids)
    matches = ids.unsqueeze(-1) == digit_tensor(number_ids.digits, ids.device)
    is_digit = matches.any(-1)
    values = matches.long().argmax(-1)
    opens = ids == number_ids.open
    part = is_digit | opens | _any(ids, (*number_ids.symbols, number_ids.agg, number_ids.pause))
    start = torch.where(opens, positions, -1).cummax(1).values
    inside = start > torch.where(part, -1, positions).cummax(1).values
    start = start.clamp(min=0)

    def since_start(flags: Tensor) -> Tensor:
        """How many flags each position has seen in its own number, itself included."""
        counts = flags.long().cumsum(1)
        return counts - counts.gather(1, start)

    def per_number(amounts: Tensor) -> Tensor:
        """Amounts summed over each number, at every position of it."""
        return torch.zeros_like(ids).scatter_add(1, start, torch.where(inside, amounts.long(), 0)).gather(1, start)

    mantissa = is_digit & inside
    exponent = torch.zeros_like(ids)
    if number_ids.exponents:
        in_exponent = since_start(inside & _any(ids, number_ids.exponents)) > 0
        powers, mantissa = mantissa & in_exponent, mantissa & ~in_exponent
        power_places = (per_number(powers) - since_start(powers)).clamp(0, _EXPONENT_DIGITS)
        size = per_number(torch.where(powers, values * 10**power_places, 0))
        exponent = torch.where(per_number(in_exponent & (ids == number_ids.minus)) > 0, -size, size)
    whole = mantissa if decimals == "ignore" else mantissa & (since_start(inside & (ids == number_ids.point)) == 0)
    leading = per_number(whole) + exponent
    places = leading - since_start(mantissa)
    mask = mantissa
    slots = start
    if to is not None:
        here = torch.where(inside & (ids == to), positions, 0)
        slots = torch.zeros_like(ids).scatter_reduce(1, start, here, "amax").gather(1, start)
        mask = mask & (slots > 0)
    return Digits(values, places, leading.clamp(min=1), slots, mask, ids.shape[1])


def _any(ids: Tensor, wanted: tuple[int, ...]) -> Tensor:
    found = torch.zeros_like(ids, dtype=torch.bool)
    for one in wanted:
        found = found | (ids == one)
    return found


_made: dict[tuple[tuple[int, ...], torch.device], Tensor] = {}


def digit_tensor(digits: tuple[int, ...], device: torch.device) -> Tensor:
    """The ids of the ten digits on a device, made once: a copy to an accelerator in every step would stall it."""
    if torch.compiler.is_compiling():
        return torch.tensor(digits, device=device)
    kept = _made.get((digits, device))
    if kept is None:
        # Kept beyond this pass, it must serve training too, and must not be a tracer's stand-in.
        with torch.inference_mode(False):
            kept = torch.tensor(digits, device=device)
        if type(kept) is Tensor:
            _made[digits, device] = kept
    return kept
