"""Numbers in ids: where each one is, and each digit's value and place. Uses tensors only, no loops over the data."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from typing import Any

import torch
from torch import Tensor

from placevalue.numbers.config import NumberIds

_FRACTION_DIGITS = 16  # how many following digits count for `fractions`; a power of two
_EXPONENT_DIGITS = 4  # how many digits of an exponent count; `extended` writes at most three


@dataclass(frozen=True)
class Digits:
    """Digits and the numbers they belong to; every tensor is `(rows, length)`.

    A row has `slots` places for the vectors of its numbers. If `mask` is False, the other entries are meaningless.
    """

    values: Tensor
    """Each digit, 0 to 9."""
    places: Tensor
    """The power of ten of each digit's place: 0 for units, -1 for tenths."""
    leading: Tensor
    """How many places before the point the digit's number has, at least 1."""
    numbers: Tensor
    """The slot of each digit's number."""
    mask: Tensor
    """Whether there is a digit."""
    slots: int
    negative: Tensor | None = None
    """Whether each digit's number is below zero; None if that does not count, or no number can be."""

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

    def turn(self, vectors: Tensor) -> Tensor:
        """Each number's vector `(rows, slots, dim)`, negated if the number is below zero."""
        if self.negative is None:
            return vectors
        below = vectors.new_zeros(vectors.shape[:2])
        below.scatter_add_(1, self.numbers * self.mask, (self.negative & self.mask).to(below))
        return torch.where(below.unsqueeze(-1) > 0, -vectors, vectors)

    def fractions(self, dtype: torch.dtype) -> Tensor:
        """The digits after each digit, as a fraction of its place: 0.29 for the 5 of 529."""
        # Each number's digits next to each other and followed by zeros; other tokens in the first column, unread.
        index = torch.add(self.mask.cumsum(1), self.numbers, alpha=_FRACTION_DIGITS) * self.mask
        width = index.shape[1] + (self.slots + 1) * _FRACTION_DIGITS
        after = self.values.new_zeros((index.shape[0], width), dtype=dtype).scatter_(1, index, self.values.to(dtype))
        # Fractions of twice as many digits are the sum of those of the first and the second half.
        after, size = after[:, 1:] / 10, 1
        while size < _FRACTION_DIGITS:
            after = torch.add(after[:, :-size], after[:, size:], alpha=10.0**-size)
            size *= 2
        return after.gather(1, index) * self.mask


@dataclass(frozen=True)
class Tokens:
    """What each token of a batch is, and which number it belongs to.

    A number runs from an open marker over digits, symbols, [AGG] and [PAUSE] to its close marker, or to the last of
    these if something else follows, so a number that was cut off counts with the digits it has.
    """

    found: Tensor
    """Which digit, symbol or marker each token is, the ten digits and the point first: `(rows, length, ids)`."""
    kinds: Tensor
    """What each token is, by `KINDS`: `(rows, length, kinds)`."""
    start: Tensor
    """The position of the open marker of each token's number: `(rows, length)`; meaningless without `member`."""
    member: Tensor
    """Whether each token belongs to a number, including its close but not its open marker: `(rows, length)`."""

    def kind(self, name: str) -> Tensor:
        """One of the `KINDS`: `(rows, length)`."""
        return self.kinds[..., KINDS.index(name)]


KINDS = ("digit", "point", "value", "open", "close", "part", "inner", "minus", "exponent", "agg", "extra", "negative")
"""1 or 0 for each token, except for a digit's value. A part is anything between a number's markers, inner also the
close marker, extra [AGG] or [PAUSE], negative a minus or the bracket that stands for one."""


@cache
def _table(ids: NumberIds) -> tuple[tuple[int, ...], tuple[tuple[float, ...], ...]]:
    """Every id that a number can contain, and its `KINDS`."""
    part = {"part": 1, "inner": 1}
    rows: list[tuple[int, dict[str, int]]]
    rows = [(id_, part | {"digit": 1, "value": value}) for value, id_ in enumerate(ids.digits)]
    for id_ in ids.symbols:
        kinds = {"point": id_ == ids.point, "minus": id_ == ids.minus, "exponent": id_ in ids.exponents}
        rows.append((id_, part | kinds | {"negative": id_ in (ids.minus, ids.bracket)}))
    rows += [(id_, part | {"extra": 1, "agg": id_ == ids.agg}) for id_ in (ids.agg, ids.pause)]
    rows += [(ids.open, {"open": 1}), (ids.close, {"close": 1, "inner": 1})]
    return tuple(id_ for id_, _ in rows), tuple(tuple(float(row.get(k, 0)) for k in KINDS) for _, row in rows)


def read_tokens(ids: Tensor, number_ids: NumberIds) -> Tokens:
    """Find the numbers in ids `(rows, length)`."""
    known, table = _table(number_ids)
    found = ids.unsqueeze(-1) == constant(torch.tensor, known, ids.device)
    kinds = found.float() @ constant(torch.tensor, table, ids.device)
    part, inner, opens = (kinds[..., KINDS.index(name)] for name in ("part", "inner", "open"))
    # The last token before this one that is not a part: if that is an open marker, this token belongs to its number.
    stops = (part == 0) * constant(torch.arange, ids.shape[1], ids.device)
    start = torch.nn.functional.pad(_running_max(stops), (1, 0))[:, :-1]
    return Tokens(found, kinds, start, opens.gather(1, start) * inner > 0)


def _running_max(values: Tensor) -> Tensor:
    """The largest value up to each position: `(rows, length)`."""
    if not exporting():
        return values.cummax(1).values
    at = torch.arange(values.shape[1], device=values.device)  # ONNX has no cummax
    return ((at <= at.unsqueeze(1)) * values.unsqueeze(1)).amax(-1)


def find_digits(
    ids: Tensor,
    number_ids: NumberIds,
    decimals: str = "places",
    at_agg: bool = False,
    negatives: str = "opposite",
) -> Digits:
    """Every digit of every number in ids `(rows, length)`; see `place_digits`."""
    return place_digits(read_tokens(ids, number_ids), number_ids, decimals, at_agg, negatives)


def place_digits(
    tokens: Tokens,
    number_ids: NumberIds,
    decimals: str = "places",
    at_agg: bool = False,
    negatives: str = "opposite",
) -> Digits:
    """Every digit of the numbers in a batch, with a slot for each position.

    Args:
        tokens: From `read_tokens`.
        number_ids: From `tokenizer.number_ids`.
        decimals: `places` gives digits after the point negative places; `ignore` reads 12.5 as 125.
        at_agg: Use the position of a number's [AGG] as its slot and mask numbers without one; otherwise the slot is
            the position of the open marker.
        negatives: `opposite` also finds the numbers below zero; -0 is not one of them.
    """
    start, member = tokens.start, tokens.member

    def since_start(flags: Tensor) -> Tensor:
        """How many flags there are from the start of each token's number to the token itself."""
        counts = flags.long().cumsum(1)
        return counts - counts.gather(1, start)

    def per_number(amounts: Tensor) -> Tensor:
        """Amounts summed over each number, at every position of it."""
        return torch.zeros_like(start).scatter_add_(1, start, (amounts * member).long()).gather(1, start)

    values = tokens.kind("value").long()
    mantissa = (tokens.kind("digit") > 0) & member
    exponent: Tensor | int = 0
    if number_ids.exponents:
        in_exponent = since_start(tokens.kind("exponent") * member) > 0
        powers, mantissa = mantissa & in_exponent, mantissa & ~in_exponent
        power_places = (per_number(powers) - since_start(powers)).clamp(0, _EXPONENT_DIGITS)
        size = per_number(torch.where(powers, values * 10**power_places, 0))
        exponent = torch.where(per_number(in_exponent * tokens.kind("minus")) > 0, -size, size)
    whole = mantissa if decimals == "ignore" else mantissa & (since_start(tokens.kind("point") * member) == 0)
    leading = per_number(whole)
    leading = leading + exponent if number_ids.exponents else leading
    rank = since_start(mantissa)
    places = leading - rank
    negative = None
    if negatives == "opposite" and (number_ids.minus != -1 or number_ids.bracket != -1):
        before = tokens.kind("negative") * member * (rank == 0)
        negative = (per_number(before) > 0) & (per_number(values * mantissa) > 0)
    slots = start
    if at_agg:
        here = (tokens.kind("agg") * member).long() * constant(torch.arange, start.shape[1], start.device)
        slots = torch.zeros_like(start).scatter_reduce(1, start, here, "amax").gather(1, start)
        mantissa = mantissa & (slots > 0)
    return Digits(values, places, leading.clamp(min=1), slots, mantissa, start.shape[1], negative)


def exporting() -> bool:
    """Whether this call is recorded, to run again with other ids and lengths: nothing may depend on those of now."""
    return torch.compiler.is_exporting() or torch.jit.is_tracing()


_made: dict[tuple[Any, ...], Tensor] = {}


def constant(make: Callable[..., Tensor], what: Any, device: torch.device, dtype: torch.dtype | None = None) -> Tensor:
    """`make(what)` on a device, cached; do not change it in place.

    Copying it to an accelerator in every step would stall, and even a range is one more kernel to launch.
    """
    if torch.compiler.is_compiling() or exporting():
        return make(what, device=device, dtype=dtype)
    key = make, what, device, dtype
    kept = _made.get(key)
    if kept is None:
        # The cached tensor must also work in training, and a tracer's placeholder must not be cached.
        with torch.inference_mode(False):
            kept = make(what, device=device, dtype=dtype)
        if type(kept) is Tensor:
            _made[key] = kept
    return kept
