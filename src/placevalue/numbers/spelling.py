"""What each token of a vocabulary spells, as far as numbers without markers depend on it: bits by id.

A number that begins and ends with no marker is found in ids by what its tokens and its neighbours spell. A tokenizer
may spell a sign or a leading point together with what stands before it, as in `Ġ-` and `(.`.
"""

import re
from array import array
from collections.abc import Iterable
from dataclasses import dataclass

from placevalue.common.errors import ConfigError
from placevalue.common.validation import one_of
from placevalue.numbers.numerals import NOT_AFTER, pattern_symbols

BARE_PATTERNS = ("extended", "paper", "european")
"""The patterns whose numbers can be found in ids without markers."""
WORD_END = 1
"""The token ends in a character after which a minus is no sign."""
WORD_START = 2
"""It begins with a character before which digits are no exponent."""
SIGN = 4
"""It ends in a sign, or in a sign and a point, after a character of its own."""
LONE_SIGN = 8
"""It is a sign, or a sign and a point: what stands before it decides."""
MINUS = 16
"""Its sign is a minus."""
POINT = 32
"""It ends in a decimal point."""
LONE_POINT = 64
"""It is the decimal point."""
GROUP = 128
"""It is a thousands separator."""
EXPONENT = 256
"""It is an `e`."""
SIGNED_EXPONENT = 512
"""It is an `e` and a sign."""
EXTRA = 1024
"""It is [AGG] or [PAUSE]."""
DIGIT = 2048
"""It is a digit."""
VALUE = 4096
"""What the digit is multiplied by."""
BYTE = re.compile("<0x([0-9A-F]{2})>")
"""A token that is a byte, for characters that the vocabulary lacks."""


@dataclass(frozen=True)
class Spelling:
    """How numbers without markers are read off the ids of a tokenizer."""

    flags: bytes
    """The bits of each id, as 32-bit integers."""
    pattern: str
    """The name of the pattern."""
    after: bool
    """Whether an extra token comes after the digits."""


def check_bare(pattern: str, ignored: object) -> list[str]:
    """Why numbers of a layout could not be found without markers."""
    faults = []
    if pattern not in BARE_PATTERNS:
        faults.append(
            f"pattern={pattern!r} with markers=False: without markers numbers are found by {one_of(BARE_PATTERNS, '')} "
            "alone. Choose one of these, or leave the markers in"
        )
    if ignored is not None:
        faults.append(
            f"ignore={ignored!r} with markers=False: without markers the digits of a number and of ignored text have "
            "the same ids. Leave one of the two out"
        )
    return faults


def spell(
    tokens: Iterable[str | None], digits: tuple[int, ...], extra: Iterable[int], pattern: str, after: bool
) -> Spelling:
    """How numbers without markers are read off the ids of a vocabulary.

    Args:
        tokens: As the vocabulary writes them, in the order of their ids; None for special tokens, which are no text.
        digits: The ids of 0 to 9.
        extra: The ids of [AGG] and [PAUSE].
        pattern: A name in `BARE_PATTERNS`.
        after: Whether an extra token comes after the digits.
    """
    symbols = pattern_symbols(pattern)
    if pattern not in BARE_PATTERNS:
        raise ConfigError("; ".join(check_bare(pattern, None)))
    signs = "-+" if symbols.minus else ""
    flags = array("i", (_flags(token, symbols.point, signs, symbols.others, symbols.exponents) for token in tokens))
    for id_ in extra:
        flags[id_] = EXTRA | (WORD_END if after else 0)  # after a number, as in 5-3, a minus is no sign
    for value, id_ in enumerate(digits):
        flags[id_] = DIGIT | VALUE * value | WORD_END | WORD_START
    return Spelling(flags.tobytes(), pattern, after)


_ENDS, _STARTS = re.compile(f"[{NOT_AFTER}]"), re.compile("[0-9A-Za-z_]")


def _flags(token: str | None, point: str, signs: str, others: str, exponents: str) -> int:
    if not token:
        return 0
    if byte := BYTE.fullmatch(token):
        token = chr(int(byte[1], 16))
    flags = WORD_END if _ENDS.match(token[-1]) else 0
    flags |= WORD_START if _STARTS.match(token[0]) else 0
    before = token
    if token[-1] == point:
        flags |= POINT | (LONE_POINT if token == point else 0)
        before = token[:-1]
    if before and before[-1] in signs:
        if len(before) == 1:
            flags |= LONE_SIGN
        elif not _ENDS.match(before[-2]):
            flags |= SIGN
        flags |= MINUS if before[-1] == "-" else 0
    if len(token) == 1 and token in others and token not in signs:
        flags |= GROUP
    if token[0] in exponents and len(token) <= 2 and token[1:] in ("", *signs):
        flags |= SIGNED_EXPONENT if token[1:] else EXPONENT
    return flags
