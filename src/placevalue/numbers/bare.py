"""Numbers in ids without markers: a run of digits with the signs, points, separators and exponents that belong to it.

The ids give the numbers that `find_numerals` finds in the text that they spell. All looks at neighbours are a few
tokens far, but for the beginning of a run of digits: comparisons of the batch with itself, shifted.
"""

from dataclasses import dataclass

import torch
from torch import Tensor

from placevalue.common.errors import TokenizerError
from placevalue.numbers.config import NumberIds
from placevalue.numbers.constants import constant, running_max
from placevalue.numbers.spelling import (
    DIGIT,
    EXPONENT,
    EXTRA,
    GROUP,
    LONE_POINT,
    LONE_SIGN,
    MINUS,
    POINT,
    SIGN,
    SIGNED_EXPONENT,
    VALUE,
    WORD_END,
    WORD_START,
    Spelling,
)

_FAR = 4  # how many tokens away a neighbour may be


@dataclass(frozen=True)
class Bare:
    """What each token is in its number; every tensor is `(rows, length)`."""

    start: Tensor
    """The position of the first token of each token's number; meaningless without `member`."""
    member: Tensor
    """Whether each token belongs to a number."""
    digit: Tensor
    value: Tensor
    """What a digit is worth; 0 elsewhere."""
    point: Tensor
    exponent: Tensor
    """The letter that begins an exponent."""
    minus: Tensor
    """The minus of an exponent."""
    negative: Tensor
    """The minus of a number."""
    extra: Tensor
    """[AGG] or [PAUSE] beside a number."""


def read_bare(ids: Tensor, number_ids: NumberIds) -> Bare:
    """Find the numbers in ids `(rows, length)`."""
    return _Reader(ids, _spelling(number_ids)).read()


def read_bare_within(ids: Tensor, number_ids: NumberIds, start: Tensor, member: Tensor) -> Bare:
    """Other ids in the place of given numbers: of each, its digits and symbols up to the first other token."""
    known = constant(_tensor, _spelling(number_ids).flags, ids.device)
    flags = known[(ids + 1).clamp(0, len(known) - 1)]
    first = constant(torch.arange, ids.shape[1], ids.device) == start
    # Only what a number begins with may be one token with what stands before it.
    parts = DIGIT | LONE_SIGN | LONE_POINT | GROUP
    parts |= EXPONENT | SIGNED_EXPONENT
    held = ((flags & parts) != 0) | (first & ((flags & (SIGN | POINT)) != 0))
    others = (~held).long()
    counts = others.cumsum(1)
    inside = member & (counts == (counts - others).gather(1, start))
    minus = inside & ((flags & MINUS) != 0)
    return Bare(
        start,
        inside,
        digit=inside & ((flags & DIGIT) != 0),
        value=flags // VALUE,
        point=inside & ((flags & POINT) != 0),
        exponent=inside & ((flags & (EXPONENT | SIGNED_EXPONENT)) != 0),
        minus=minus,
        negative=minus,
        extra=torch.zeros_like(inside),
    )


def _spelling(ids: NumberIds) -> Spelling:
    if ids.spelling is None:
        raise TokenizerError(
            "the layout has no markers, and numbers without markers cannot be found by these ids alone: take them from "
            "number_ids(tokenizer), not from a model's config.json"
        )
    return ids.spelling


def _tensor(flags: bytes, device: torch.device, dtype: torch.dtype | None) -> Tensor:
    """The bits of each id, with those of ids that the vocabulary does not have at both ends: none."""
    known = torch.frombuffer(bytearray(flags), dtype=torch.int32)
    return torch.nn.functional.pad(known, (1, 1)).to(device, dtype)


def _look(flags: Tensor, at: int) -> Tensor:
    """What holds so many tokens further on; the columns at both ends hold nothing."""
    return flags.roll(-at, 1)


class _Reader:
    """The batch with `_FAR` empty columns at both ends, so that what is shifted around them is empty too."""

    def __init__(self, ids: Tensor, known: Spelling) -> None:
        flags = constant(_tensor, known.flags, ids.device)
        flags = flags[(ids + 1).clamp(0, len(flags) - 1)]
        self.flags = torch.nn.functional.pad(flags, (_FAR, _FAR))
        self.positions = constant(torch.arange, self.flags.shape[1], ids.device)
        self.known = known
        self.none = torch.zeros_like(self.flags, dtype=torch.bool)
        self.digit = self.has(DIGIT)
        self.digits = {at: _look(self.digit, at) for at in range(-_FAR, _FAR + 1) if at}
        """Whether there is a digit so many tokens further on."""
        self.begins = self.digit & ~self.digits[-1]
        """The first digit of a run."""

    def has(self, bits: int) -> Tensor:
        """Whether each token has any of the bits."""
        return (self.flags & bits) != 0

    def last(self, flags: Tensor) -> Tensor:
        """The position of the last token up to each that has a flag; 0 if there is none."""
        return running_max(flags * self.positions)

    def read(self) -> Bare:
        """The numbers of the batch."""
        point, lone_point = self.has(POINT), self.has(LONE_POINT)
        exponent, exponent_sign, powers = self._exponents()
        joined, separator = self._joins(point, lone_point, powers)
        leads = self.none if self.known.pattern == "european" else point & self.digits[1] & ~joined
        sign, negative = self._signs(point, leads & lone_point, leads)
        inner = joined | separator | exponent | exponent_sign
        first = sign | (leads & ~_look(sign, -1)) | (self.begins & ~_look(inner | leads | sign, -1))
        member = self.digit | inner | leads | sign
        extra = self.has(EXTRA) & (self.digits[-1] if self.known.after else _look(first, 1))
        if not self.known.after:
            first = extra | (first & ~_look(extra, -1))
        inside = slice(_FAR, -_FAR)
        minus = (exponent | exponent_sign) & self.has(MINUS)
        read = {"member": member | extra, "digit": self.digit, "point": joined | leads, "exponent": exponent}
        read |= {"minus": minus, "negative": negative, "extra": extra}
        return Bare(
            start=(self.last(first) - _FAR).clamp(min=0)[:, inside],
            value=(self.flags[:, inside] // VALUE).long(),
            **{name: each[:, inside] for name, each in read.items()},
        )

    def _exponents(self) -> tuple[Tensor, Tensor, Tensor]:
        """The letters that begin an exponent, the signs after them, and the first digits of exponents."""
        if self.known.pattern == "paper":
            return self.none, self.none, self.none
        letter = self.has(EXPONENT) & self.digits[-1]
        with_sign = self.has(SIGNED_EXPONENT) & self.digits[-1]
        sign = self.has(LONE_SIGN) & ~self.has(POINT)
        word = self.has(WORD_START)
        # At most three digits, and no letter after them.
        two = self.digits[1] & (~_look(word, 2) | (self.digits[2] & ~_look(word, 3)))
        short = self.begins & (~_look(word, 1) | two)
        near = (letter | with_sign) & _look(short, 1)
        far = letter & _look(sign, 1) & _look(short, 2)
        return near | far, _look(far, -1), _look(near, -1) | _look(far, -2)

    def _joins(self, point: Tensor, lone_point: Tensor, powers: Tensor) -> tuple[Tensor, Tensor]:
        """The points and the thousands separators that stand between the digits of one number."""
        between = lone_point & self.digits[-1] & self.digits[1]
        if self.known.pattern == "european":
            # A run of digits after a decimal comma takes no other, so of 1,2,3,4 every second comma is one.
            before = self.last(~(self.digit | between))
            commas = between.long().cumsum(1)
            commas = commas - commas.gather(1, before) + powers.gather(1, (before + 1).clamp(max=before.shape[1] - 1))
            joined = between & (commas % 2 == 1)
            fraction = _look(joined, -1)
        else:
            # What follows a point has no other part after a point, nor groups of thousands; nor has an exponent.
            fraction = self.begins & _look(point, -1)
        run = _look(self.last(~self.digit), -1) + 1
        whole = ~(fraction | powers).gather(1, run.clamp(max=run.shape[1] - 1))
        if self.known.pattern != "european":
            joined = between & whole
        if self.known.pattern == "paper":
            return joined, self.none
        digits = self.digits
        short = digits[-1] & ~(digits[-2] & digits[-3] & digits[-4])
        three = digits[1] & digits[2] & digits[3] & ~digits[4]
        return joined, self.has(GROUP) & short & three & whole

    def _signs(self, point: Tensor, alone: Tensor, leads: Tensor) -> tuple[Tensor, Tensor]:
        """The tokens that are signs, and all tokens with a minus that makes their number negative."""
        if self.known.pattern == "paper":
            return self.none, self.none
        lone = self.has(LONE_SIGN) & ~_look(self.has(WORD_END), -1)
        holds = self.has(SIGN) | lone
        sign = holds & ~point & (self.digits[1] | _look(alone, 1))
        return sign, (sign | (holds & leads)) & self.has(MINUS)
