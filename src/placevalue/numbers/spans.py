"""Numbers in ids: where each one is, and each digit's value and place. Uses tensors only, no loops over the data."""

from dataclasses import dataclass
from functools import cache

import torch
from torch import Tensor

from placevalue.numbers.bare import Bare, read_bare, read_bare_within
from placevalue.numbers.config import NumberIds
from placevalue.numbers.constants import constant as constant
from placevalue.numbers.constants import running_max

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
    these if something else follows, so a number that was cut off counts with the digits it has. In a layout without
    markers it is what the pattern matches, see `numbers/bare.py`, with the [AGG] or [PAUSE] beside it.
    """

    found: Tensor
    """Which digit, symbol or marker each token is, the ten digits and the point first: `(rows, length, ids)`."""
    kinds: Tensor
    """What each token is, by `KINDS`: `(rows, length, kinds)`."""
    start: Tensor
    """The position of the open marker of each token's number, or without markers that of its first token: `(rows,
    length)`; meaningless without `member`."""
    member: Tensor
    """Whether each token belongs to a number, including its close but not its open marker: `(rows, length)`."""
    marked: bool = True
    """Whether numbers stand between markers."""

    @property
    def each(self) -> tuple[Tensor, Tensor, Tensor, Tensor]:
        """All its tensors."""
        return self.found, self.kinds, self.start, self.member

    def at(self, kept: Tensor, width: int) -> "Tokens":
        """The first columns of some of its rows."""
        found, kinds, start, member = (each[kept, :width] for each in self.each)
        return Tokens(found, kinds, start, member, self.marked)

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
    if not number_ids.marked:
        return _from_bare(ids, number_ids, read_bare(ids, number_ids))
    known, table = _table(number_ids)
    found = ids.unsqueeze(-1) == constant(torch.tensor, known, ids.device)
    kinds = found.float() @ constant(torch.tensor, table, ids.device)
    part, inner, opens = (kinds[..., KINDS.index(name)] for name in ("part", "inner", "open"))
    # The last token before this one that is not a part: if that is an open marker, this token belongs to its number.
    stops = (part == 0) * constant(torch.arange, ids.shape[1], ids.device)
    start = torch.nn.functional.pad(running_max(stops), (1, 0))[:, :-1]
    return Tokens(found, kinds, start, opens.gather(1, start) * inner > 0)


def _from_bare(ids: Tensor, number_ids: NumberIds, bare: Bare) -> Tokens:
    """What each token is in numbers without markers."""
    columns = {"agg": bare.member & (ids == number_ids.agg), "part": bare.member, "inner": bare.member}
    columns |= {
        name: getattr(bare, name) for name in ("digit", "point", "value", "minus", "exponent", "extra", "negative")
    }
    none = constant(torch.tensor, (False,), ids.device).expand_as(ids)
    kinds = torch.stack([columns.get(name, none).float() for name in KINDS], -1)
    known = constant(torch.tensor, (*number_ids.digits, number_ids.point), ids.device)
    return Tokens(ids.unsqueeze(-1) == known, kinds, bare.start, bare.member, marked=False)


def read_within(ids: Tensor, number_ids: NumberIds, gold: Tokens) -> Tokens:
    """Other ids where numbers without markers are: of each, the digits and symbols up to the first other token."""
    return _from_bare(ids, number_ids, read_bare_within(ids, number_ids, gold.start, gold.member))


def join_tokens(one: Tokens, other: Tokens) -> Tokens:
    """Two batches of the same length as one."""
    found, kinds, start, member = (torch.cat(pair) for pair in zip(one.each, other.each, strict=True))
    return Tokens(found, kinds, start, member, one.marked)


def _positions(like: Tensor, first: int) -> Tensor:
    """The positions of a row, counted from `first`."""
    positions = constant(torch.arange, like.shape[1], like.device)
    return positions + first if first else positions


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
        # An open marker has no flags, but what a number without markers begins with may have one.
        before = counts if tokens.marked else counts - flags.long()
        return counts - before.gather(1, start)

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
        first = 0 if tokens.marked else 1  # without markers [AGG] may be the first token of all
        here = (tokens.kind("agg") * member).long() * _positions(start, first)
        slots = torch.zeros_like(start).scatter_reduce(1, start, here, "amax").gather(1, start)
        mantissa, slots = mantissa & (slots > 0), (slots - first).clamp(min=0) if first else slots
    return Digits(values, places, leading.clamp(min=1), slots, mantissa, start.shape[1], negative)
