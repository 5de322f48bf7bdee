"""Numerals in text: which characters are a number, and what it is worth.

One scan decides for the whole library. `tokenization` runs the same patterns inside the tokenizer's own
pipeline, and the tests hold the two against each other.
"""

import re
from dataclasses import dataclass
from decimal import Decimal, InvalidOperation
from functools import lru_cache

from placevalue.common.errors import ConfigError

# `paper` matches what the paper's `(\d*\.)?\d+` matches, written so that it never backtracks over a long number.
# `extended` adds a sign that no word, number or bracket stands before, thousands separators, and an exponent.
PATTERNS = {
    "paper": r"[0-9]+(?:\.[0-9]+)?|\.[0-9]+",
    "extended": r"(?:(?<![0-9A-Za-z_.)\]%])[-+])?"
    r"(?:(?:[0-9]{1,3}(?:,[0-9]{3})+(?![0-9])|[0-9]+)(?:\.[0-9]+)?|\.[0-9]+)"
    r"(?:[eE][-+]?[0-9]{1,3}(?![0-9A-Za-z_]))?",
}

_OWN_PATTERN = re.compile(
    r"(?:\\d|\\[.+-]|\[(?:\\d|\\[.+-]|[0-9.,+eE-])+\]|[0-9,eE+-]|\((?:\?:)?|\)|\||[?*]|\{[0-9]+(?:,[0-9]*)?\})+"
)


@dataclass(frozen=True)
class Numeral:
    """A number as it stands in a text: `text[start:end]`, and its exact value."""

    text: str
    start: int
    end: int
    value: Decimal


def pattern_regex(pattern: str) -> str:
    """The regular expression of a pattern's name, or a regular expression of one's own, checked.

    Numerals of one's own pattern may consist of the characters `0-9 . , + - e E` only, and the pattern may not
    look around itself: it also runs inside the tokenizer, where markers stand between the characters.
    """
    if pattern in PATTERNS:
        return PATTERNS[pattern]
    if not _OWN_PATTERN.fullmatch(pattern):
        raise ConfigError(
            f"the pattern {pattern!r} is none of {sorted(PATTERNS)}, and no regular expression for numbers of the "
            r"characters 0-9 . , + - e E alone (\d, classes, groups, alternatives, quantifiers of these): look-around, "
            "anchors and other characters would not survive the tokenizer. Name what to leave out with ignore="
        )
    _compiled(pattern, "pattern")
    return pattern


def check_ignore(ignore: str) -> None:
    """Refuse what Python and the tokenizer's regular expressions would read differently."""
    if re.search(r"\(\?P|\(\?[aiLmsux-]+[:)]|\\[AZzG1-9]|(?<!\\)\$|(?<![\[\\])\^", ignore):
        raise ConfigError(
            f"ignore={ignore!r} holds an anchor, a named group, a back-reference or flags, which a tokenizer reads "
            "differently: describe the text alone, with \\b or look-around for its borders"
        )
    _compiled(ignore, "ignore")


@lru_cache(maxsize=64)
def _compiled(regex: str, setting: str) -> re.Pattern[str]:
    try:
        compiled = re.compile(regex, re.ASCII)
    except re.error as error:
        raise ConfigError(f"{setting}={regex!r} is no regular expression: {error}") from None
    if compiled.match(""):
        raise ConfigError(f"{setting}={regex!r} matches the empty text: make it match at least one character")
    return compiled


def find_numerals(text: str, pattern: str = "paper", ignore: str | None = None) -> list[Numeral]:
    """Every numeral of a text, from left to right.

    Args:
        text: Any text. Only ASCII digits count: `½`, `²`, `Ⅳ` and Arabic-Indic digits are no digits here.
        pattern: `paper`, `extended`, or a regular expression of one's own.
        ignore: A regular expression; what it matches is left alone, digits included (years, identifiers).

    Example:
        >>> [str(n.value) for n in find_numerals("3 apples at 1.25 each")]
        ['3', '1.25']
    """
    regex = f"(?P<placevalue>{pattern_regex(pattern)})"
    if ignore is not None:
        check_ignore(ignore)
        regex = f"(?:{ignore})|{regex}"
    found = []
    for match in _compiled(regex, "pattern").finditer(text):
        numeral = match["placevalue"]
        if numeral is not None:
            found.append(Numeral(numeral, match.start(), match.end(), _value(numeral)))
    return found


def _value(numeral: str) -> Decimal:
    try:
        return Decimal(numeral.replace(",", ""))
    except InvalidOperation:
        raise ConfigError(
            f"the pattern matched {numeral!r}, which is no number: let it match digits with at most one point, "
            "thousands separators, a sign and an exponent"
        ) from None


def shortest_form(value: Decimal) -> str:
    """A number without exponent, needless zeros or point.

    Example:
        >>> shortest_form(Decimal("7.0")), shortest_form(Decimal("1e3"))
        ('7', '1000')
    """
    text = format(value, "f")
    text = text.rstrip("0").rstrip(".") if "." in text else text
    return "0" if text == "-0" else text
