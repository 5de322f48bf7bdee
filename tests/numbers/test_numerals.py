import re
from decimal import Decimal
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from placevalue import find_numerals
from placevalue.common.errors import ConfigError

texts = st.text(alphabet=st.sampled_from("0123456789.,-+eE abπ½²٣Ⅳ\n"))


def found(text, **options):
    return [n.text for n in find_numerals(text, **options)]


@given(texts)
def test_paper_pattern_finds_what_the_papers_regex_finds(text):
    assert found(text) == [m[0] for m in re.finditer(r"(\d*\.)?\d+", text, re.ASCII)]


@given(texts, st.sampled_from(["paper", "extended", r"[0-9]+"]))
def test_numerals_are_slices_in_order_and_hold_every_digit(text, pattern):
    numerals = find_numerals(text, pattern)
    assert all(text[n.start : n.end] == n.text for n in numerals)
    assert all(a.end <= b.start for a, b in pairwise(numerals))
    assert sum(c in "0123456789" for n in numerals for c in n.text) == sum(c in "0123456789" for c in text)


@pytest.mark.parametrize(
    ("text", "paper", "extended"),
    [
        ("", [], []),
        ("½ ² Ⅳ ٣", [], []),
        ("1.2.3", ["1.2", ".3"], ["1.2", ".3"]),
        (".5 5. room12b", [".5", "5", "12"], [".5", "5", "12"]),
        ("1,000.00", ["1", "000.00"], ["1,000.00"]),
        ("1,0000 12,345,678", ["1", "0000", "12", "345", "678"], ["1", "0000", "12,345,678"]),
        ("-3 5-3 (-3) x-3 +.5", ["3", "5", "3", "3", "3", ".5"], ["-3", "5", "3", "-3", "3", "+.5"]),
        ("5%-3 a%+2 5% -3 [1]-2", ["5", "3", "2", "5", "3", "1", "2"], ["5", "3", "2", "5", "-3", "1", "2"]),
        ("2024-01-15", ["2024", "01", "15"], ["2024", "01", "15"]),
        ("1e5 1.5E-3 2e 3ex 1e1234", ["1", "5", "1.5", "3", "2", "3", "1", "1234"], ["1e5", "1.5E-3", "2", "3", "1", "1234"]),
    ],
)  # fmt: skip
def test_both_patterns_by_hand(text, paper, extended):
    assert found(text) == paper
    assert found(text, pattern="extended") == extended


def test_values_are_exact():
    values = [n.value for n in find_numerals("1,234.50 -7 1.5e3 " + "9" * 10_000, "extended")]
    assert values == [Decimal("1234.50"), Decimal(-7), Decimal(1500), Decimal("9" * 10_000)]


def test_ignore_leaves_what_it_matches_alone():
    text = "In 1999 he had 3 of ID-4711 and 1999.5"
    assert found(text, ignore=r"\b(?:19|20)[0-9]{2}\b(?![.])|ID-[0-9]+") == ["3", "1999.5"]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"pattern": "papr"}, "neither one of"),
        ({"pattern": "(?<=x)[0-9]+"}, "look-around"),
        ({"pattern": "[0-9]+/[0-9]+"}, "0-9 . , "),
        ({"pattern": "([0-9]+"}, "not a valid regular expression"),
        ({"pattern": "[0-9]*"}, "empty text"),
        ({"pattern": "[0-9]+-[0-9]+"}, "not a number"),
        ({"ignore": "("}, "not a valid regular expression"),
        ({"ignore": "^[0-9]+"}, "anchor"),
        ({"ignore": "(?P<y>19|20)[0-9]{2}"}, "named group"),
        ({"ignore": "(?i)id[0-9]+"}, "flags"),
        ({"ignore": "x*"}, "empty text"),
    ],
)
def test_bad_settings_are_named(options, message):
    with pytest.raises(ConfigError, match=message):
        find_numerals("1-2", **options)
