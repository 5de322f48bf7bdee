"""Numerals in text: which characters form a number, and its value.

The tokenizer runs the same patterns inside its own pipeline; tests check that both find the same numbers.
"""

import re
from dataclasses import dataclass
from decimal import Decimal, InvalidOperation

from placevalue.common.errors import ConfigError
from placevalue.common.validation import one_of
from placevalue.numbers.ambiguity import refuse_ambiguous
from placevalue.numbers.ignore import Ignore, ignore_regex
from placevalue.numbers.regexes import compiled

NOT_AFTER = r"0-9A-Za-z_.)\]%"
"""As part of a character class: a minus after one of these is no sign, as in 5-3, x-3 and (a)-3."""
_EXPONENT = r"(?:[eE][-+]?[0-9]{1,3}(?![0-9A-Za-z_]))?"
_GROUPS = r"[0-9]+(?:(?={0})(?<![0-9]{{4}})(?:{0}[0-9]{{3}})+(?![0-9]))?"  # with or without separators of thousands
_ENGLISH = rf"(?:{_GROUPS.format(',')}(?:\.[0-9]+)?|\.[0-9]+)" + _EXPONENT
_EUROPEAN = _GROUPS.format("[.]") + "(?:,[0-9]+)?" + _EXPONENT
UNSIGNED = {
    # What the paper's `(\d*\.)?\d+` matches, without backtracking over a long number.
    "paper": r"[0-9]+(?:\.[0-9]+)?|\.[0-9]+",
    "extended": _ENGLISH,
    "european": _EUROPEAN,
}
"""Patterns without their sign: they end where the signed ones do, and hold every digit of a text."""


def _signed(number: str) -> str:
    return rf"(?:(?<![{NOT_AFTER}])[-+])?{number}"


def _accounting(number: str) -> str:
    return rf"(?<![0-9A-Za-z_)\]])\(\$?{number}%?\)|(?:(?<![{NOT_AFTER}])[-+]\$?)?{number}"


PATTERNS = {
    "paper": UNSIGNED["paper"],
    # Also a sign, thousands separators and an exponent.
    "extended": _signed(_ENGLISH),
    # The same with point and comma exchanged, but for `,5`.
    "european": _signed(_EUROPEAN),
    # Also `(1,250)`, `($1,250)` and `(5%)`, which are below zero, and `-$5`.
    "accounting": _accounting(_ENGLISH),
    "european-accounting": _accounting(_EUROPEAN),
}
DEFAULT_PATTERN = "extended"


@dataclass(frozen=True)
class Symbols:
    """The characters beside digits that the numerals of a pattern may contain."""

    point: str = "."
    minus: str = ""
    others: str = ""
    """Separators, plus and other characters that do not change the value."""
    exponents: str = ""
    bracket: str = ""
    """The opening bracket, which makes a number negative."""


_EXTENDED = Symbols(".", "-", ",+", "eE")
_SYMBOLS = {
    "paper": Symbols(),
    "european": Symbols(",", "-", ".+", "eE"),
    "accounting": Symbols(".", "-", ",+$%)", "eE", "("),
    "european-accounting": Symbols(",", "-", ".+$%)", "eE", "("),
}

_OWN_PATTERN = re.compile(
    r"(?:\\d|\\[.+-]|\[(?:\\d|\\[.+-]|[0-9.,+eE-])+\]|[0-9,eE+-]|\((?:\?:)?|\)|\||[?*]|\{[0-9]+(?:,[0-9]*)?\})+"
)


@dataclass(frozen=True)
class Numeral:
    """A number in a text: its characters `text[start:end]` and exact value."""

    text: str
    start: int
    end: int
    value: Decimal


def pattern_regex(pattern: str) -> str:
    """The regular expression of a named pattern, or your own after checking it.

    Your own pattern may match the characters `0-9 . , + - e E` only, without look-around: it also runs inside the
    tokenizer, where there are markers between the characters.
    """
    if pattern in PATTERNS:
        return PATTERNS[pattern]
    if not _OWN_PATTERN.fullmatch(pattern):
        raise ConfigError(
            f"the pattern {pattern!r} is neither {one_of(PATTERNS, pattern)} nor a regular expression of the "
            r"characters 0-9 . , + - e E (\d, classes, groups, alternatives and quantifiers are fine): look-around, "
            "anchors and other characters do not work inside the tokenizer. Use ignore= for text to leave alone"
        )
    compiled(pattern, "pattern")
    refuse_ambiguous(pattern, "pattern")
    return pattern


def pattern_symbols(pattern: str) -> Symbols:
    """The characters that the numerals of a pattern may contain; your own pattern reads them as `extended` does."""
    return _SYMBOLS.get(pattern, _EXTENDED)


def find_numerals(text: str, pattern: str = DEFAULT_PATTERN, ignore: Ignore | None = None) -> list[Numeral]:
    """Find every numeral of a text, from left to right.

    Args:
        text: Any text. Only ASCII digits count, not `½`, `²`, `Ⅳ` or Arabic-Indic digits.
        pattern: A name in `PATTERNS`, or a regular expression.
        ignore: Text to leave alone, including its digits: a name in `IGNORE_PRESETS`, a regular expression, or
            several of them.

    Example:
        >>> [str(n.value) for n in find_numerals("-3 of $1,250.50 in 2024", ignore="years")]
        ['-3', '1250.50']
    """
    regex, ignored = f"(?P<placevalue>{pattern_regex(pattern)})", ignore_regex(ignore)
    if ignored is not None:
        regex = f"{ignored}|{regex}"
    matches = (match for match in compiled(regex, "pattern").finditer(text) if match["placevalue"] is not None)
    symbols = pattern_symbols(pattern)
    return [Numeral(match[0], match.start(), match.end(), _value(match[0], symbols)) for match in matches]


def _value(numeral: str, symbols: Symbols) -> Decimal:
    kept = [character for character in numeral if character not in symbols.others + symbols.bracket]
    minus = "-" if symbols.bracket and numeral.startswith(symbols.bracket) else ""
    try:
        return Decimal(minus + "".join(kept).replace(symbols.point, "."))
    except InvalidOperation:
        raise ConfigError(
            f"the pattern matched {numeral!r}, which is not a number: make it match digits with at most one point, "
            "thousands separators, a sign and an exponent"
        ) from None


def shortest_form(number: Decimal | str | int | float) -> str:
    """Write a number without exponent and without unneeded zeros or point."""
    text = format(Decimal(str(number)), "f")
    text = text.rstrip("0").rstrip(".") if "." in text else text
    return "0" if text == "-0" else text
