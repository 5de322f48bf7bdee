"""REWRITES: other ways to write numerals in text, and to read them back from what a model generates.

A rewrite goes around a tokenizer: texts are rewritten before they are encoded, and answers are read back after they are
decoded. So metrics and users see plain numbers.
"""

import re
from collections.abc import Callable
from dataclasses import dataclass, replace
from decimal import Decimal
from itertools import chain
from typing import Literal, NamedTuple

from placevalue.common.errors import ConfigError
from placevalue.common.validation import one_of
from placevalue.numbers.ignore import Ignore, ignore_regex
from placevalue.numbers.numerals import Numeral, find_numerals
from placevalue.numbers.regexes import compiled
from placevalue.numbers.words import NUMBER_WORDS, read_words, write_words


@dataclass(frozen=True)
class Rewrite:
    """A way to write numerals in text.

    Example:
        >>> REWRITES["spelled"] = Rewrite(
        ...     "digits with spaces between", write=lambda n: " ".join(n.text), read=lambda text: text.replace(" ", "")
        ... )
    """

    about: str
    """A short description."""
    write: Callable[[Numeral], str | None]
    """What a numeral becomes; None leaves it as it is."""
    read: Callable[[str], str]
    """A whole generated text with its numbers as plain numerals; the inverse of `write`."""
    order: Literal["left", "right"] = "left"
    """Which end of a number comes first: `right` is units first."""
    where: Literal["both", "answer"] = "both"
    """Whether questions are rewritten too."""
    debris: str = ""
    """A regular expression for what only a malformed number leaves in a text that was read; empty if nothing does."""


class _Parts(NamedTuple):
    """A numeral in parts; thousands separators are dropped."""

    before: str
    """The sign, and what else stands before the digits."""
    whole: str
    fraction: str | None
    after: str
    """The exponent, and what else stands after the digits."""

    @property
    def digits(self) -> str:
        """The digits with their point."""
        return self.whole if self.fraction is None else f"{self.whole}.{self.fraction}"


_DIGITS = re.compile(r"(?P<whole>[0-9](?:,?[0-9])*)(?:\.(?P<fraction>[0-9]+))?|\.(?P<part>[0-9]+)")
_EXPONENT = re.compile(r"[eE]([-+]?[0-9]+)")


def _parts(numeral: Numeral) -> _Parts:
    text = numeral.text
    found = _DIGITS.search(text)
    assert found is not None  # every numeral has a digit
    whole = (found["whole"] or "").replace(",", "")
    return _Parts(text[: found.start()], whole, found["fraction"] or found["part"], text[found.end() :])


_RUN = re.compile(r"[0-9]+(?:\.[0-9]+)?")


def _reverse(text: str) -> str:
    return _RUN.sub(lambda run: run[0][::-1], text)


def _write_reversed(numeral: Numeral) -> str:
    parts = _parts(numeral)
    return _reverse("".join([parts.before, parts._replace(whole=parts.whole or "0").digits, parts.after]))


_COUNTED = re.compile(r"\[\s?[0-9]+(?:\.[0-9]+)?\s?:\s?([0-9]+(?:\.[0-9]+)?|\.[0-9]+)\s?\]")


def _write_counted(numeral: Numeral) -> str:
    parts = _parts(numeral)
    count = str(len(parts.whole)) + ("" if parts.fraction is None else f".{len(parts.fraction)}")
    return f"{parts.before}[{count}:{parts.digits}]{parts.after}"


def _read_counted(text: str) -> str:
    return _COUNTED.sub(r"\1", text)


def _write_commas(numeral: Numeral) -> str:
    parts = _parts(numeral)
    whole = re.sub(r"(?<=[0-9])(?=(?:[0-9]{3})+\Z)", ",", parts.whole)
    return f"{parts.before}{parts._replace(whole=whole).digits}{parts.after}"


def _read_commas(text: str) -> str:
    pieces, before = [], 0
    for numeral in find_numerals(text):
        pieces += [text[before : numeral.start], numeral.text.replace(",", "")]
        before = numeral.end
    return "".join([*pieces, text[before:]])


def _write_powers(numeral: Numeral) -> str | None:
    parts = _parts(numeral)
    if _EXPONENT.match(parts.after):
        return None
    digits = parts.whole + (parts.fraction or "")
    powers = " ".join(f"{digit} 10e{len(parts.whole) - 1 - index}" for index, digit in enumerate(digits))
    return f"{parts.before}{powers}{parts.after}"


_POWER = re.compile(r"(?<![0-9A-Za-z_.])([0-9])\s+10e(-?[0-9]{1,3})(?![0-9])")


def _read_powers(text: str) -> str:
    return _read_places(text, _POWER, r"\s+", int, step=-1)


_NAMES = ("units", "tens", "hundreds", "thousands", "tens of thousands", "hundreds of thousands",
          "millions", "tens of millions", "hundreds of millions",
          "billions", "tens of billions", "hundreds of billions")  # fmt: skip
_NAMED = re.compile(rf"(?<![0-9A-Za-z_.])([0-9])\s+({'|'.join(sorted(_NAMES, key=len, reverse=True))})\b")


def _write_named(numeral: Numeral) -> str | None:
    parts = _parts(numeral)
    if parts.fraction is not None or len(parts.whole) > len(_NAMES) or _EXPONENT.match(parts.after):
        return None
    named = ", ".join(f"{digit} {name}" for digit, name in zip(parts.whole[::-1], _NAMES, strict=False))
    return f"{parts.before}{named}{parts.after}"


def _read_named(text: str) -> str:
    return _read_places(text, _NAMED, r"\s?,\s+", _NAMES.index, step=1)


def _read_places(text: str, digit: re.Pattern[str], gap: str, place: Callable[[str], int], step: int) -> str:
    """Read numbers whose digits each carry their place: its digits follow one another in `step`s, up to the units."""
    groups: list[list[re.Match[str]]] = []
    for found in digit.finditer(text):
        last = groups[-1][-1] if groups else None
        if last and place(found[2]) == place(last[2]) + step and re.fullmatch(gap, text[last.end() : found.start()]):
            groups[-1].append(found)
        else:
            groups.append([found])
    pieces: list[str] = []
    at = 0
    for group in groups:
        ordered = group[::-step]
        places, digits = [place(each[2]) for each in ordered], "".join(each[1] for each in ordered)
        if places[0] >= -1 and places[-1] <= 0:
            point = places[0] + 1
            number = digits[:point] + (f".{digits[point:]}" if places[-1] < 0 else "")
            pieces += [text[at : group[0].start()], number]
            at = group[-1].end()
    return "".join([*pieces, text[at:]])


def _write_as_words(numeral: Numeral) -> str | None:
    parts = _parts(numeral)
    words = None if _EXPONENT.match(parts.after) else write_words(parts.whole, parts.fraction)
    before = "negative " if parts.before == "-" else parts.before
    return None if words is None else f"{before}{words}{parts.after}"


_LARGEST = 20  # powers of ten that are written out as zeros
_SCIENTIFIC = re.compile(r"(?<![0-9.])([0-9]+)\s?\[\s?EXP\s?\]\s?(-?[0-9]{1,4})(?![0-9])", re.IGNORECASE)


def _write_scientific(numeral: Numeral) -> str:
    parts = _parts(numeral)
    given = _EXPONENT.match(parts.after)
    digits = parts.whole + (parts.fraction or "")
    kept = digits.lstrip("0")
    power = len(parts.whole) - 1 - (len(digits) - len(kept)) + (int(given[1]) if given else 0)
    if not kept:  # 0.00 keeps its places
        kept, power = f"0{parts.fraction or ''}", 0
    after = parts.after[given.end() :] if given else parts.after
    return f"{parts.before}{kept} [EXP] {power}{after}"


def _read_scientific(text: str) -> str:
    return _SCIENTIFIC.sub(lambda found: _shifted(found[1], int(found[2])), text)


def _shifted(digits: str, power: int) -> str:
    """Digits whose first has the place `power`, as a plain numeral."""
    if abs(power) > _LARGEST:
        return f"{digits[0]}{'.' * (len(digits) > 1)}{digits[1:]}e{power}"
    digits = "0" * -power + digits + "0" * (power + 1 - len(digits))
    point = max(power, 0) + 1
    return digits[:point] + (f".{digits[point:]}" if digits[point:] else "")


_BACKWARDS = Rewrite("units first, in answers alone", _write_reversed, _reverse, order="right", where="answer")
REWRITES: dict[str, Rewrite] = {
    "reversed": _BACKWARDS,
    "reversed-both": replace(_BACKWARDS, about="units first, in questions and answers", where="both"),
    "numerologic": Rewrite(
        "the count of digits before and after the point, then the number",
        _write_counted,
        _read_counted,
        debris=r"\[\s?[0-9.]+\s?:|:\s?[0-9.]+\s?\]",
    ),
    "commas": Rewrite("a comma before every third digit, from the right", _write_commas, _read_commas),
    "10e": Rewrite(
        "each digit with its power of ten",
        _write_powers,
        _read_powers,
        debris=r"(?<![0-9.])[0-9]\s+10e|10e[-+]?(?![-+0-9])",
    ),
    "words": Rewrite(
        "the number in English words", _write_as_words, read_words, debris=rf"(?i)\b(?:{'|'.join(NUMBER_WORDS)})\b"
    ),
    "place-names": Rewrite(
        "each digit with the name of its place, units first",
        _write_named,
        _read_named,
        order="right",
        debris=rf"[0-9]\s+(?:{'|'.join(_NAMES)})\b",
    ),
    "scientific": Rewrite(
        "all digits, and the power of ten of the first", _write_scientific, _read_scientific, debris=r"(?i)\[\s?EXP"
    ),
}
"""Ways to write numerals, by name."""


def find_rewrite(name: str) -> Rewrite:
    """The rewrite of a name."""
    if name not in REWRITES:
        raise ConfigError(
            f"rewrite={name!r} is unknown: expected {one_of(REWRITES, name)}, or add it to placevalue.REWRITES"
        )
    return REWRITES[name]


_NEAR = 24  # the characters beside a numeral that are looked at


def rewrite_text(text: str, name: str, pattern: str, ignore: Ignore | None = None) -> str:
    """A text with its numerals rewritten.

    A numeral that would not be read back as it was stays as it is: the 3 of `3 million`, in words.
    """
    rewrite, numerals = find_rewrite(name), find_numerals(text, pattern, ignore)
    pieces = [""]
    before = 0
    for numeral, after in zip(numerals, [*(each.start for each in numerals[1:]), len(text)], strict=False):
        left, right = text[before : numeral.start], text[numeral.end : after]
        beside = [pieces[-1] if len(left) <= _NEAR else "", left[-_NEAR:]], right[:_NEAR]
        written = rewrite.write(numeral)
        forms = [numeral.text] if written is None else [written, numeral.text]
        fitting = (form for form in forms if _fits(form, numeral.value, *beside, name, pattern, ignore))
        pieces += [left, next(fitting, forms[0])]
        before = numeral.end
    return "".join([*pieces, text[before:]])


def _fits(
    form: str, value: Decimal, left: list[str], right: str, name: str, pattern: str, ignore: Ignore | None
) -> bool:
    """Whether a form is read back as its value, and what stands beside it as if each stood alone."""
    beside = [*left, form, right]
    alone = [read_text(each, name, ignore) for each in beside]
    values = [[each.value for each in find_numerals(text, pattern)] for text in [*alone, "".join(alone)]]
    together = read_text("".join(beside), name, ignore) == "".join(alone)
    return together and values[-3] == [value] and values[-1] == list(chain(*values[:-1]))


def read_text(text: str, name: str, ignore: Ignore | None = None) -> str:
    """A generated text with its numbers as plain numerals."""
    rewrite, ignored = find_rewrite(name), ignore_regex(ignore)
    if ignored is None:
        return rewrite.read(text)
    pieces: list[str] = []
    before = 0
    for found in compiled(ignored, "ignore").finditer(text):
        pieces += [rewrite.read(text[before : found.start()]), found[0]]
        before = found.end()
    return "".join([*pieces, rewrite.read(text[before:])])


def is_readable(text: str, name: str) -> bool:
    """Whether nothing malformed is left in a text after `read_text`."""
    debris = find_rewrite(name).debris
    return not debris or re.search(debris, text, re.ASCII) is None


def reads_back(text: str, name: str, pattern: str, ignore: Ignore | None = None) -> bool:
    """Whether the numbers of a text are the same after rewriting and reading."""
    read = read_text(rewrite_text(text, name, pattern, ignore), name, ignore)
    was, now = ([each.value for each in find_numerals(each, pattern, ignore)] for each in (text, read))
    return was == now and is_readable(read, name)


def keeps_values(name: str, pattern: str) -> bool:
    """Whether the digits of rewritten numerals still have their places, for what is computed from digits."""
    return all(
        [each.value for each in find_numerals(rewrite_text(text, name, pattern), pattern)] == [Decimal(text)]
        for text in ("42", "1234567.25")
    )
