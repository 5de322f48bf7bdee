"""English number words: digits to `one thousand two hundred thirty-four`, and such words in a text back to digits."""

import re

_SMALL = ("zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten", "eleven", "twelve",
          "thirteen", "fourteen", "fifteen", "sixteen", "seventeen", "eighteen", "nineteen")  # fmt: skip
_TENS = ("twenty", "thirty", "forty", "fifty", "sixty", "seventy", "eighty", "ninety")
_SCALES = ("thousand", "million", "billion", "trillion", "quadrillion", "quintillion")
_WORTH = {word: value for value, word in enumerate(_SMALL)} | {word: 10 * n for n, word in enumerate(_TENS, 2)}

NUMBER_WORDS = (*_SMALL, *_TENS, "hundred", *_SCALES)
"""Every word that a number below 10^21 can contain, without `negative` and `point`."""


def _any(words: tuple[str, ...]) -> str:
    return rf"(?:{'|'.join(words)})\b"


_UNIT = _any(_SMALL[1:10])
_BELOW_100 = rf"(?:{_any(_SMALL[10:])}|{_any(_TENS)}(?:\s?-\s?{_UNIT})?|{_UNIT})"
_BELOW_1000 = rf"(?:{_UNIT}\s+hundred\b(?:\s+{_BELOW_100})?|{_BELOW_100})"
_WHOLE = "".join(rf"(?:{_BELOW_1000}\s+{scale}\b\s*)?" for scale in reversed(_SCALES)) + f"(?:{_BELOW_1000})?"
_NUMBER = re.compile(
    rf"\b(?P<sign>negative\s+)?(?P<whole>zero\b|(?={_BELOW_100}){_WHOLE})"
    rf"(?:(?<!\s)\s+point(?P<fraction>(?:\s+{_any(_SMALL[:10])})+))?",
    re.ASCII | re.IGNORECASE,
)


def write_words(whole: str, fraction: str | None) -> str | None:
    """A number in words, from its digits before and after the point; None if it has more than 21 or leading zeros."""
    whole = whole or "0"
    if (whole[0] == "0" and whole != "0") or len(whole) > 3 * (len(_SCALES) + 1):
        return None
    groups = f"{int(whole):,}".split(",")
    words = [_below_1000(int(group), scale) for group, scale in zip(groups[::-1], ("", *_SCALES), strict=False)]
    written = " ".join(word for word in words[::-1] if word) or _SMALL[0]
    return written if fraction is None else " ".join([written, "point", *(_SMALL[int(digit)] for digit in fraction)])


def _below_1000(value: int, scale: str) -> str:
    """A group of three digits in words, empty for 0."""
    hundreds, rest = divmod(value, 100)
    tens, unit = divmod(rest, 10)
    words = [_SMALL[hundreds], "hundred"] if hundreds else []
    if rest >= 20:
        words.append(_TENS[tens - 2] + (f"-{_SMALL[unit]}" if unit else ""))
    elif rest:
        words.append(_SMALL[rest])
    return " ".join([*words, scale] if words and scale else words)


def read_words(text: str) -> str:
    """The text with every number in words as digits."""
    return _NUMBER.sub(_digits, text)


def _digits(found: re.Match[str]) -> str:
    value, group = 0, 0
    for word in re.findall("[a-z]+", found["whole"].lower()):
        if word in _SCALES:
            value, group = value + group * 1000 ** (_SCALES.index(word) + 1), 0
        else:
            group = group * 100 if word == "hundred" else group + _WORTH[word]
    fraction = "".join(str(_WORTH[word]) for word in re.findall("[a-z]+", (found["fraction"] or "").lower()))
    after = found[0][len(found[0].rstrip()) :]  # the pattern may take a space that belongs to the text
    return ("-" if found["sign"] else "") + str(value + group) + (f".{fraction}" if fraction else "") + after
