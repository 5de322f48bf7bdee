"""Rewrites: every numeral comes back from what was written, and nothing else changes."""

import re
from decimal import Decimal
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from placevalue import REWRITES, NumberConfig, Rewrite, find_numerals
from placevalue.common.errors import ConfigError
from placevalue.numbers.numerals import PATTERNS
from placevalue.numbers.rewrites import find_rewrite, is_readable, keeps_values, read_text, reads_back, rewrite_text
from placevalue.numbers.words import NUMBER_WORDS
from test_numbers_page import table

PAGE = Path(__file__).parents[2] / "docs" / "rewrites.md"
NAMES = list(REWRITES)  # examples of the docs add their own while other tests run
FORMS = ["42", "1234567", "2.75", ".5", "5.", "-16", "007", "1,234,567", "1e5", "3 million", "5, 100 and 7"]
SIGNS = st.sampled_from(["", "-", "+"])
WHOLES = st.from_regex(r"[0-9]{1,24}", fullmatch=True)
FRACTIONS = st.from_regex(r"(\.[0-9]{1,6})?", fullmatch=True)
EXPONENTS = st.sampled_from(["", "", "e5", "E-3", "e+12"])
NUMERALS = st.one_of(
    st.builds("".join, st.tuples(SIGNS, WHOLES, FRACTIONS, EXPONENTS)),
    st.builds("{}.{}".format, SIGNS, st.from_regex(r"[0-9]{1,6}", fullmatch=True)),
    st.builds("{:,}{}".format, st.integers(0, 10**12), FRACTIONS),
    st.builds("{}.".format, st.integers(0, 10**6)),
)


def values(text, pattern="extended"):
    return [each.value for each in find_numerals(text, pattern)]


@pytest.mark.parametrize("name", NAMES)
@given(numeral=NUMERALS)
def test_every_numeral_is_read_back(name, numeral):
    written = rewrite_text(numeral, name, "extended")
    assert values(read_text(written, name)) == values(numeral)
    assert is_readable(read_text(written, name), name) and reads_back(numeral, name, "extended")


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("numeral", ["0", "0.0", "-0.00", "0.05", "10.0"])
def test_zeros_are_read_back_character_by_character(name, numeral):
    assert read_text(rewrite_text(numeral, name, "extended"), name) == numeral


@pytest.mark.parametrize("name", NAMES)
@given(data=st.data(), whole=st.integers(0, 10**21 - 1), fraction=st.from_regex(r"(\.[0-9]{1,6})?", fullmatch=True))
def test_a_plain_decimal_is_read_back_character_by_character(name, data, whole, fraction):
    text = f"{data.draw(st.sampled_from(['', '-']))}{whole}{fraction}"
    assert read_text(rewrite_text(text, name, "extended"), name) == text


@pytest.mark.parametrize("name", NAMES)
@given(
    numerals=st.lists(NUMERALS, min_size=2, max_size=4), gap=st.sampled_from([", ", " and ", " + ", " (", "; then "])
)
def test_numbers_in_a_text_are_read_back(name, numerals, gap):
    assert reads_back(gap.join(numerals), name, "extended")


@pytest.mark.parametrize("name", [name for name in NAMES if not name.startswith("reversed")])
@given(numerals=st.lists(NUMERALS, min_size=2, max_size=4), gap=st.sampled_from([" ", "-", " hundred ", "x"]))
def test_numbers_that_would_run_together_are_left_as_they_are(name, numerals, gap):
    text = gap.join(numerals)
    assert values(read_text(rewrite_text(text, name, "extended"), name)) == values(text)


@pytest.mark.parametrize("pattern", [each for each in PATTERNS if "european" not in each])
@pytest.mark.parametrize("name", NAMES)
@given(text=st.text(alphabet=st.characters(codec="utf-8", exclude_characters="0123456789"), max_size=30))
def test_text_without_numbers_is_not_changed(name, pattern, text):
    read = read_text(text, name)  # which may have numbers: of FORTY
    alike = is_readable(read, name) and not find_numerals(read, pattern)
    assert rewrite_text(text, name, pattern) == text and reads_back(text, name, pattern) == alike


@pytest.mark.parametrize("name", NAMES)
def test_two_numbers_in_a_sentence_come_back(name):
    text = "Ann has 1234 apples, Bob 56.5 (or -7); in all 1290.5."
    written = rewrite_text(text, name, "extended")
    assert written != text and read_text(written, name) == text


@pytest.mark.parametrize(
    "name, broken",
    [
        ("numerologic", "[2:4"),
        ("numerologic", "2:42]"),
        ("10e", "4 10e2 2 10e0"),
        ("10e", "4 10e1 2 10e"),
        ("words", "hundred five"),
        ("words", "thirty million thousand"),
        ("place-names", "3 tens"),
        ("place-names", "2 units, 3 hundreds"),
        ("scientific", "[EXP] 2"),
        ("scientific", "31 [EXP]"),
    ],
)
def test_what_is_malformed_is_not_readable(name, broken):
    assert not is_readable(read_text(broken, name), name)
    assert not is_readable(read_text(f"It is {broken}", name), name)


def test_spaces_that_a_decoder_adds_do_not_matter():
    spaced = {
        "numerologic": "[ 2.1 : 42.5 ]",
        "words": "Forty - two  point five",
        "place-names": "2 units , 4 tens",
        "scientific": "425 [ exp ] 1",
    }
    read = {name: read_text(text, name) for name, text in spaced.items()}
    assert read == {"numerologic": "42.5", "words": "42.5", "place-names": "42", "scientific": "42.5"}


@given(number=st.integers(0, 10**21 - 1), fraction=st.from_regex("[0-9]{0,5}[1-9]", fullmatch=True))
def test_words_are_those_of_num2words(number, fraction):
    num2words = pytest.importorskip("num2words").num2words
    theirs = num2words(number).replace(",", "").replace(" and ", " ")
    assert rewrite_text(str(number), "words", "extended") == theirs
    theirs = num2words(Decimal(f"{number % 10**6}.{fraction}")).replace(",", "").replace(" and ", " ")
    assert rewrite_text(f"{number % 10**6}.{fraction}", "words", "extended") == theirs


def test_words_of_known_numbers():
    known = {
        "0": "zero",
        "13": "thirteen",
        "80": "eighty",
        "101": "one hundred one",
        "1000000": "one million",
        "1002003": "one million two thousand three",
        "940.06": "nine hundred forty point zero six",
        "-21": "negative twenty-one",
        "1" + "0" * 18: "one quintillion",
    }
    assert {text: rewrite_text(text, "words", "extended") for text in known} == known
    assert all(word in " ".join(NUMBER_WORDS) for text in known.values() for word in re.findall("[a-z]+", text)[1:2])


def test_text_to_leave_alone_is_left_alone():
    text = "In 1999 he had 1998 and in March 5 he had 12"
    for name in NAMES:
        written = rewrite_text(text, name, "extended", ("years", "dates"))
        assert "1999" in written and "1998" in written and "March 5" in written, name
        assert read_text(written, name, ("years", "dates")) == text, name
    # Reversed, 9102 is a year, so what a model writes could not be told from one.
    assert not reads_back("9102", "reversed", "extended", "years") and reads_back(
        "9103", "reversed", "extended", "years"
    )


def test_only_commas_keep_the_places_of_digits():
    assert [name for name in NAMES if keeps_values(name, "extended")] == ["commas"]
    assert not any(keeps_values(name, "paper") for name in NAMES)


def test_settings_that_would_be_wrong_are_refused():
    with pytest.raises(ConfigError, match="rewrite='word' is unknown: .*words"):
        NumberConfig(rewrite="word")
    with pytest.raises(ConfigError, match="decimal comma"):
        NumberConfig(rewrite="words", pattern="european")
    with pytest.raises(ConfigError, match=r"\[AGG\] would hold another number"):
        NumberConfig(token="agg", rewrite="reversed-both")
    with pytest.raises(ConfigError, match=r"\[AGG\] would hold another number"):
        NumberConfig(token="agg", rewrite="commas", pattern="paper")
    for allowed in ("reversed", "commas"):
        assert NumberConfig(token="agg", rewrite=allowed).rewrite == allowed


def test_a_rewrite_of_ones_own_is_one_entry(monkeypatch):
    spelled = Rewrite(
        "hyphens between the digits",
        write=lambda numeral: "-".join(numeral.text),
        read=lambda text: re.sub("(?<=[0-9])-(?=[0-9])", "", text),
    )
    monkeypatch.setitem(REWRITES, "spelled", spelled)
    assert rewrite_text("123 cats", "spelled", "extended") == "1-2-3 cats" and find_rewrite("spelled") is spelled
    assert read_text("1-2-3 cats", "spelled") == "123 cats" and reads_back("123", "spelled", "extended")
    assert not reads_back("1-2", "spelled", "extended")  # two numbers, of which reading makes one


def forms():
    rows = [[f"`{text}`", *(f"`{rewrite_text(text, name, 'extended')}`" for name in shown())] for text in FORMS]
    return table(["text", *(f"`{name}`" for name in shown())], rows)


def shown():
    return [name for name in NAMES if name != "reversed-both"]


def test_the_table_is_what_the_code_does():
    found = re.search(r"<!-- forms -->\n\n(.*?)\n\n<!-- end of forms -->", PAGE.read_text(), re.DOTALL)
    assert found and found[1] == forms(), f"write this into docs/rewrites.md:\n{forms()}"


def test_every_rewrite_is_explained():
    for name in NAMES:
        assert f"\n| `{name}` | " in PAGE.read_text(), name
