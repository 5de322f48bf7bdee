"""Regular expressions of others: those that may take for ever are refused, those that people write are not."""

import re

import pytest

from families import base_tokenizer
from placevalue import PlacevalueError, find_numerals, number_tokenizer
from placevalue.numbers.ambiguity import refuse_ambiguous
from placevalue.numbers.ignore import IGNORE_PRESETS
from placevalue.numbers.numerals import PATTERNS

EXPONENTIAL = [r"(\d+)+e", r"(\d*)*e", r"(\d|\d)+e", r"(?:[0-9]|[0-9.])+e", r"(?:1|1)+e", r"(\d+\d+)+e", r"(?:12|1|2)+e",
               r"(?:abc|ab|c|1)+d", r"(\d+|\d+\.\d+)+e", r"(?:\d+,?)+e", r"(\d{99})+e", r"(?=(\d+)+e)\d", r"(?:\d+?)+e"]  # fmt: skip
COUNTED = [r"(\d?){30}e", r"\d?" * 40 + "e", r"(\d{1,2}){20}e", r"((((\d?){4}){4}){4})e"]
POLYNOMIAL = [r"\d+\d+e", r"\d*\.?\d+e", r"\w*\d\w*\b", r"\d*,*\d*,*\d*e", r"(?:\d+e)?\d+\d+\b"]
FINE = [r"\d+", r"(\d*\.)?\d+", r"\d*\.?\d+", r"[-+]?\d*\.?\d+(?:[eE][-+]?\d+)?", r"\d{1,3}(?:,\d{3})*(?:\.\d+)?",
        r"\d+(?:,\d+)*", r"(?:\d+,)*\d+", r"(?:\d{10}|\d{13})\b", r"\b(?:[A-Z]{2,4}-)?\d{3,5}\b", r"\w*\d\w*", r"\d+e",
        r"[0-9a-f]{8}-[0-9a-f]{4}", r"(?:\d{1,2}:)?\d{1,2}:\d{2}", r"v\d+(?:\.\d+)*\b", r"\d+(?:st|nd|rd|th)\b", r"[|1-9]+|0",
        r"(?<![A-Z])\d+(?! [a-z]+\d)", r"\(\d+\)"]  # fmt: skip


@pytest.mark.parametrize("regex", [*EXPONENTIAL, *COUNTED, *POLYNOMIAL])
def test_what_may_take_for_ever_is_refused(regex):
    with pytest.raises(PlacevalueError, match="the same text in so many ways that it may take for ever"):
        refuse_ambiguous(regex, "pattern")


@pytest.mark.parametrize("regex", FINE)
def test_what_people_write_is_not_and_takes_no_time(regex):
    refuse_ambiguous(regex, "ignore")
    for character in "1a,.":
        re.findall(regex, character * 2000 + "!")


def test_our_own_are_of_no_concern():
    for regex in (*PATTERNS.values(), *IGNORE_PRESETS.values()):
        for text in ("1" * 20_000, "1." * 10_000, "1-" * 10_000, "(1" * 10_000, "a1" * 10_000):
            re.findall(regex, text)


def test_long_or_strange_ones_are_refused_in_no_time():
    for regex in (
        "(?:" * 90 + r"\d" + ")+" * 90,
        r"\d|" * 2000 + "1",
        "(" * 5000,
        r"\d{99999999999}",
        r"(\d{40}){40}",
        r"(\d)(?(1)\d|e)",
    ):
        with pytest.raises(PlacevalueError, match="pattern"):
            find_numerals("12", regex)


def test_every_user_of_patterns_refuses_them():
    with pytest.raises(PlacevalueError, match="for ever"):
        find_numerals("1" * 24, r"(\d+)+e")
    with pytest.raises(PlacevalueError, match="for ever"):
        find_numerals("1" * 24, ignore=r"(\d+)+e")
    for settings in ({"pattern": r"(\d+)+e"}, {"ignore": ("years", r"(\d+)+e")}):
        with pytest.raises(PlacevalueError, match="for ever"):
            number_tokenizer(base_tokenizer("unigram-t5"), **settings)
