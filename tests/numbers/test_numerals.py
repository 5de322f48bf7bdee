import re
from decimal import Decimal
from fractions import Fraction
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

import oracle
from placevalue import find_numerals
from placevalue.common.errors import ConfigError
from placevalue.numbers.numerals import PATTERNS

texts = st.text(alphabet=st.sampled_from("0123456789.,-+eE abπ½²٣Ⅳ\n($%)"))


def found(text, **options):
    return [n.text for n in find_numerals(text, **options)]


@given(texts)
def test_paper_pattern_finds_what_the_papers_regex_finds(text):
    assert found(text, pattern="paper") == [m[0] for m in re.finditer(r"(\d*\.)?\d+", text, re.ASCII)]


@given(texts, st.sampled_from([*PATTERNS, r"[0-9]+"]))
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
    assert found(text, pattern="paper") == paper
    assert found(text) == found(text, pattern="extended") == extended


@given(texts)
def test_extended_is_what_it_was(text):
    """A tokenizer that was saved with it keeps its pipeline, so what is found in Python must not change either."""
    number = r"(?:(?:[0-9]{1,3}(?:,[0-9]{3})+(?![0-9])|[0-9]+)(?:\.[0-9]+)?|\.[0-9]+)"
    regex = rf"(?:(?<![0-9A-Za-z_.)\]%])[-+])?{number}(?:[eE][-+]?[0-9]{{1,3}}(?![0-9A-Za-z_]))?"
    assert found(text) == [m[0] for m in re.finditer(regex, text)]


@pytest.mark.parametrize(
    ("text", "european", "accounting"),
    [
        ("1.250,00 -3,5 12.345.678,9", ["1.250,00", "-3,5", "12.345.678,9"], ["1.250", "00", "-3", "5", "12.345", ".678", "9"]),
        ("1.25 0,5 ,5 1,2,3", ["1", "25", "0,5", "5", "1,2", "3"], ["1.25", "0", "5", "5", "1", "2", "3"]),
        ("(1,250) ($5) (12.5%)", ["1,250", "5", "12", "5"], ["(1,250)", "($5)", "(12.5%)"]),
        ("-$5 f(5) (5 or 6) [1](2)", ["5", "5", "5", "6", "1", "2"], ["-$5", "5", "5", "6", "1", "2"]),
        ("(-5) +$7 $-8 $(9)", ["-5", "7", "-8", "9"], ["-5", "+$7", "-8", "(9)"]),
    ],
)  # fmt: skip
def test_the_other_patterns_by_hand(text, european, accounting):
    assert found(text, pattern="european") == european
    assert found(text, pattern="accounting") == accounting


def test_european_and_accounting_combine():
    values = [n.value for n in find_numerals("(1.250,50) -$3 2,5 (1.250%)", "european-accounting")]
    assert values == [Decimal("-1250.50"), Decimal(-3), Decimal("2.5"), Decimal(-1250)]
    assert [n.value for n in find_numerals("($1,250.50)", "accounting")] == [Decimal("-1250.50")]


def test_commas_separate_thousands_or_numbers():
    """The rule for lists: groups of three digits without spaces are one number, anything else are several."""
    values = {
        text: [int(n.value) for n in find_numerals(text)] for text in ("5,100,200", "5, 100, 200", "1,2,3", "12,34")
    }
    assert values == {"5,100,200": [5100200], "5, 100, 200": [5, 100, 200], "1,2,3": [1, 2, 3], "12,34": [12, 34]}


def test_values_are_exact():
    values = [n.value for n in find_numerals("1,234.50 -7 1.5e3 " + "9" * 10_000)]
    assert values == [Decimal("1234.50"), Decimal(-7), Decimal(1500), Decimal("9" * 10_000)]


def test_ignore_leaves_what_it_matches_alone():
    text = "In 1999 he had 3 of ID-4711 and 1999.5"
    assert found(text, ignore=r"\b(?:19|20)[0-9]{2}\b(?![.])|ID-[0-9]+") == ["3", "1999.5"]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"pattern": "papr"}, "neither one of paper, extended"),
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
        ({"ignore": "year"}, "neither one of dates, times, phones, identifiers, years"),
        ({"ignore": ("years", "^x")}, "anchor"),
    ],
)
def test_bad_settings_are_named(options, message):
    with pytest.raises(ConfigError, match=message):
        find_numerals("1-2", **options)


@given(texts)
def test_extended_finds_what_a_scan_by_hand_finds(text):
    numerals = find_numerals(text, "extended")
    assert [(n.start, n.end) for n in numerals] == oracle.extended_numerals(text)
    assert [Fraction(n.value) for n in numerals] == [oracle.exact_value(n.text) for n in numerals]


@given(texts, st.sampled_from(["paper", "extended"]), st.sampled_from([r"\b[0-9]{4}\b", "-?[0-9]{2}|e", "[0-9]+(?=a)"]))
def test_at_each_character_what_is_ignored_comes_first(text, pattern, ignore):
    ignored, number = re.compile(ignore, re.ASCII), re.compile(PATTERNS[pattern])
    expected, at = [], 0
    while at < len(text):
        skipped, read = ignored.match(text, at), number.match(text, at)
        expected += [read[0]] if read and not skipped else []
        at = (skipped or read).end() if skipped or read else at + 1
    assert found(text, pattern=pattern, ignore=ignore) == expected


@given(
    texts,
    st.text("0123456789.,+-eE\\d[]()|?*{}^$:=<!a", max_size=8),
    st.text("0123456789\\db[]()|?*+^$:=<!aP\n", max_size=8),
)
def test_any_settings_give_numerals_or_one_error(text, pattern, ignore):
    for options in ({"pattern": pattern}, {"ignore": ignore}, {"pattern": pattern, "ignore": ignore}):
        try:
            numerals = find_numerals(text[:12], **options)
        except ConfigError:
            continue
        assert all(set(n.text) <= set("0123456789.,+-eE") for n in numerals)
