"""Numerals in text: which characters form a number, and its value.

The tokenizer runs the same patterns inside its own pipeline; tests check that both find the same numbers.
"""

import re
from dataclasses import dataclass
from decimal import Decimal, InvalidOperation
from functools import lru_cache

from placevalue.common.errors import ConfigError

# `paper` matches what the paper's `(\d*\.)?\d+` matches, without backtracking over a long number.
# `extended` adds a sign (not after a word, number or bracket), thousands separators and an exponent.
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
            f"the pattern {pattern!r} is neither one of {sorted(PATTERNS)} nor a regular expression of the characters "
            r"0-9 . , + - e E (\d, classes, groups, alternatives and quantifiers are fine): look-around, anchors and "
            "other characters do not work inside the tokenizer. Use ignore= for text to leave alone"
        )
    _compiled(pattern, "pattern")
    return pattern


def check_ignore(ignore: str) -> None:
    """Refuse a regular expression that Python and the tokenizer would read differently."""
    if re.search(r"\(\?P|\(\?[aiLmsux-]+[:)]|\\[AZzG1-9]|(?<!\\)\$|(?<![\[\\])\^", ignore):
        raise ConfigError(
            f"ignore={ignore!r} contains an anchor, a named group, a back-reference or flags, which a tokenizer reads "
            "differently: describe only the text itself, with \\b or look-around for its borders"
        )
    _compiled(ignore, "ignore")


@lru_cache(maxsize=64)
def _compiled(regex: str, setting: str) -> re.Pattern[str]:
    try:
        compiled = re.compile(regex, re.ASCII)
    except re.error as error:
        raise ConfigError(f"{setting}={regex!r} is not a valid regular expression: {error}") from None
    if compiled.match(""):
        raise ConfigError(f"{setting}={regex!r} matches empty text: make it match at least one character")
    return compiled


def find_numerals(text: str, pattern: str = "paper", ignore: str | None = None) -> list[Numeral]:
    """Find every numeral of a text, from left to right.

    Args:
        text: Any text. Only ASCII digits count, not `½`, `²`, `Ⅳ` or Arabic-Indic digits.
        pattern: `paper`, `extended`, or a regular expression.
        ignore: A regular expression for text to leave alone, including its digits (years, identifiers).

    Example:
        >>> [str(n.value) for n in find_numerals("3 apples at 1.25 each")]
        ['3', '1.25']
    """
    regex = f"(?P<placevalue>{pattern_regex(pattern)})"
    if ignore is not None:
        check_ignore(ignore)
        regex = f"(?:{ignore})|{regex}"
    matches = (match for match in _compiled(regex, "pattern").finditer(text) if match["placevalue"] is not None)
    return [Numeral(match[0], match.start(), match.end(), _value(match[0])) for match in matches]


def _value(numeral: str) -> Decimal:
    try:
        return Decimal(numeral.replace(",", ""))
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
