"""Text whose digits are no numbers: presets by name, and how they combine with your own regular expressions.

Python and the tokenizer run the same expressions. Every preset begins at a digit, a plus, an opening bracket or the
capital of a month, so that both pass over other text quickly; what stands before is looked at, not matched.
"""

import re

from placevalue.common.errors import ConfigError
from placevalue.common.validation import one_of
from placevalue.numbers.ambiguity import refuse_ambiguous
from placevalue.numbers.regexes import compiled

Ignore = str | tuple[str, ...]
"""The name of a preset or a regular expression, or several of them."""

_YEAR, _DAY = r"(?:19|20)[0-9]{2}", r"(?:3[01]|[12][0-9]|0?[1-9])(?:st|nd|rd|th)?"
_MONTH = (
    r"(?:Jan(?:uary)?|Feb(?:ruary)?|Mar(?:ch)?|Apr(?:il)?|May|June?|July?|Aug(?:ust)?|Sep(?:t(?:ember)?)?"
    r"|Oct(?:ober)?|Nov(?:ember)?|Dec(?:ember)?)"
)
_CLOCK = r"(?:[01]?[0-9]|2[0-4]):[0-5][0-9](?::[0-5][0-9](?:\.[0-9]+)?)?"
_ENDS = r"(?![0-9A-Za-z_]|[.,:/][0-9])"

IGNORE_PRESETS = {
    "dates": (
        r"(?<![0-9A-Za-z_.,:/$])(?:"
        rf"[0-9]{{4}}-[0-9]{{2}}-[0-9]{{2}}(?:T{_CLOCK}(?:Z|[-+][0-9]{{2}}:?[0-9]{{2}})?)?"
        r"|[0-9]{4}(?:/[0-9]{1,2}/|\.[0-9]{1,2}\.)[0-9]{1,2}"
        r"|[0-9]{1,2}(?:/[0-9]{1,2}/|\.[0-9]{1,2}\.|-[0-9]{1,2}-)[0-9]{4}"
        r"|[0-9]{1,2}/[0-9]{1,2}/[0-9]{2}"
        rf"|{_MONTH}\.? (?:{_DAY}(?:(?:, ?| ){_YEAR})?|{_YEAR})"
        rf"|{_DAY}(?: of)? {_MONTH}(?:\.?,? {_YEAR})?"
        rf"){_ENDS}"
    ),
    "times": (
        rf"(?<![0-9A-SU-Za-z_.,:/$])(?:{_CLOCK}(?: ?(?:[AaPp][Mm]|[AaPp]\.[Mm]\.))?"
        rf"|(?:0?[0-9]|1[0-2]) ?(?:[AaPp][Mm]|[AaPp]\.[Mm]\.)){_ENDS}"
    ),
    "phones": (
        r"(?<![0-9A-Za-z_.,:/$+-])(?:"
        r"\+(?=[0-9](?:[ ().-]{0,2}[0-9]){7,14}(?![0-9]))[0-9]{1,15}"
        r"(?:[ .-]?\([0-9]{1,6}\)[ .-]?[0-9]{1,14}|[ .-][0-9]{1,14}){0,6}"
        r"|(?:1[ .-])?(?:\([0-9]{3}\) ?|[0-9]{3}[ .-])[0-9]{3}[.-][0-9]{4}"
        r"|(?=\(?0(?:[ )/-]{0,2}[0-9]){8,13}(?![0-9]))"
        r"(?:\(0[0-9]{1,4}\) ?|0[0-9]{1,4}[ /-])[0-9]{2,9}(?:[ -][0-9]{2,8}){0,4}"
        r")(?![0-9A-Za-z_]|[.,:/-][0-9])"
    ),
    "identifiers": (
        r"(?:(?<=[A-Za-z_#])(?<![0-9]x)|(?<=[A-Z]-))[0-9][0-9A-Za-z_]*(?:[._-][0-9A-Za-z_]+)*"
        r"|(?<![0-9A-Za-z_.,])(?:"
        r"[0-9A-Fa-f]{8}-[0-9A-Fa-f]{4}-[0-9A-Fa-f]{4}-[0-9A-Fa-f]{4}-[0-9A-Fa-f]{12}"
        r"|0[xX][0-9A-Fa-f]+"
        r"|(?![0-9]{1,3}(?:\.[0-9]{3})+(?!\.?[0-9]))[0-9]+\.[0-9]+(?:\.[0-9]+)+"
        r"|(?![0-9]+(?:[eE][0-9]{1,3}|x[0-9]+)(?![0-9A-Za-z_]))[0-9]+[A-Za-z_]+[0-9][0-9A-Za-z_]*(?:-[0-9A-Za-z_]+)*"
        r")(?![0-9A-Za-z_])"
    ),
    "years": (
        rf"(?<![0-9A-Za-z_.$€£¥#])(?<![0-9],)(?:{_YEAR}(?:'?s(?![0-9A-Za-z_])|(?![0-9A-Za-z_%€£¥]|[.,:][0-9]))"
        rf"|\({_YEAR}\))"
    ),
}
"""Kinds of text to leave alone, by name. If several match at one place, the first counts."""

PRESET_STARTS = "-+.0-9(JFMASOND"
"""The characters that presets begin with, as part of a character class."""


def own_expressions(ignore: Ignore | None) -> list[str]:
    """The regular expressions that are no presets."""
    return [each for each in _parts(ignore) if each not in IGNORE_PRESETS]


def ignore_regex(ignore: Ignore | None, refused: str = "") -> str | None:
    """One regular expression for all text to leave alone, your own first; None if there is none.

    The look-around of presets refuses the character `refused` wherever it refuses a digit.
    """
    for each in (own := own_expressions(ignore)):
        check_ignore(each)
    presets = [regex for name, regex in IGNORE_PRESETS.items() if name in _parts(ignore)]
    for look in ("(?<![", "(?!["):
        presets = [regex.replace(look, look + refused) for regex in presets]
    return "|".join([*(f"(?:{each})" for each in own), *presets]) or None


def _parts(ignore: Ignore | None) -> tuple[str, ...]:
    return (ignore,) if isinstance(ignore, str) else tuple(ignore or ())


def check_ignore(ignore: str) -> None:
    """Refuse a regular expression that Python and the tokenizer would read differently, and a misspelt preset."""
    if ignore in IGNORE_PRESETS:
        return
    if re.fullmatch("[A-Za-z]+", ignore):
        raise ConfigError(
            f"ignore={ignore!r} is neither {one_of(IGNORE_PRESETS, ignore)} nor a regular expression that can match "
            "a digit"
        )
    if re.search(r"\(\?P|\(\?[aiLmsux-]+[:)]|\\[AZzG1-9]|(?<!\\)\$|(?<![\[\\])\^", ignore):
        raise ConfigError(
            f"ignore={ignore!r} contains an anchor, a named group, a back-reference or flags, which a tokenizer reads "
            "differently: describe only the text itself, with \\b or look-around for its borders"
        )
    compiled(ignore, "ignore")
    refuse_ambiguous(ignore, "ignore")
