"""What the bundled model was pre-trained on: right answers, the same rows everywhere, nothing that is tested on."""

import re
from collections import Counter
from decimal import Decimal
from itertools import islice

import pytest

from placevalue.data import FERMAT_SETS, data_size, data_sources, load_data
from placevalue.data.arithmetic import parse_expression
from placevalue.data.grammar import EQUATIONS, Draw, draw_numbers, write_decimal, write_text
from placevalue.data.leakage import check_leakage
from placevalue.data.mawps import SPLITS
from placevalue.data.pretraining import ROWS, SENTINELS, generate_pretraining
from placevalue.data.problem import checksum
from placevalue.data.vocabulary import WORDS
from placevalue.data.wordproblems import BARE, COUNTED, MEASURED, OPENINGS

# What the seed gives, everywhere and always: the sha256 of the first 2,000 training rows.
TRAIN_SHA256 = "d8e4a5573a8cbfe5c3fc45a2ddc3458e0b99c4cd2b31400c0b46d8603ae4ea5f"


@pytest.fixture(scope="module")
def rows():
    return list(generate_pretraining("train", 30_000))


def test_the_rows_are_the_same_everywhere(rows):
    assert checksum(rows[:2000]) == TRAIN_SHA256
    assert list(islice(generate_pretraining("train"), 100)) == rows[:100]


def test_the_corpora_by_name():
    dev = load_data("pretraining:dev")
    assert len(dev) == ROWS["dev"] and data_size("pretraining:train") == ROWS["train"]
    assert data_sources("pretraining:train") == ("gsm8k", "word-problems")
    check_leakage(data_sources("pretraining:train"), ["mawps:test"])
    check_leakage(data_sources("pretraining:train"), ["fermat:Original"])
    first = load_data("gsm8k:train")[0]
    assert (first.id, first.answer, data_size("gsm8k:train")) == ("gsm8k:0", "72", 7473)
    assert all(re.fullmatch(r"-?[0-9.]+", problem.answer) for problem in load_data("gsm8k:train"))


def test_nothing_of_what_is_tested_on_is_in_it(rows):
    """Neither word for word nor with other numbers, whatever the case, the spacing and the marks."""

    def letters_and_digits(text):
        return "".join(c for c in text.lower() if c.isalnum())

    def masked(text):
        return "".join(c for c in re.sub(r"[0-9]+(\.[0-9]+)?", "#", text.lower()) if c.isalpha() or c == "#")

    tested = [problem.question for split in SPLITS for problem in load_data(f"mawps:{split}")]
    tested += [problem.question for name in FERMAT_SETS for problem in load_data(f"fermat:{name}")]
    assert len(tested) > 20_000
    for form in (letters_and_digits, masked):
        assert not {form(text) for text in tested} & {form(row.question) for row in rows}


def test_such_a_row_is_drawn_anew(monkeypatch):
    from placevalue.data import pretraining

    first = next(generate_pretraining("train"))
    monkeypatch.setattr(pretraining, "_tested", lambda: {pretraining.mask_text(first.question)})
    assert next(generate_pretraining("train")).question != first.question


def test_dev_is_not_in_train(rows):
    assert not {row.question for row in load_data("pretraining:dev")} & {row.question for row in rows}
    assert max(Counter(row.question for row in rows).values()) < 30


def test_gaps_are_filled_by_the_answer(rows):
    """Putting the answer's parts back at their sentinels gives text without gaps, and GSM8K's own words."""
    words = {re.sub(r"\W", "", word) for problem in load_data("gsm8k:train") for word in problem.question.split()}
    gapped = [row for row in rows if SENTINELS[0] in row.question]
    assert 0.1 < len(gapped) / len(rows) < 0.2
    for row in gapped[:500]:
        parts = re.split("|".join(SENTINELS), row.answer)
        assert parts[0] == "" and len(parts) - 1 == sum(row.question.count(each) for each in SENTINELS)
        whole = row.question
        for sentinel, part in zip(SENTINELS, parts[1:], strict=False):
            assert part.strip()
            whole = whole.replace(sentinel, part.strip())
        found = {re.sub(r"\W", "", word) for word in whole.replace(" 's", "'s").split()}
        assert len(found - words) <= 0.1 * len(found), row


@pytest.mark.parametrize("equation", EQUATIONS)
def test_numbers_fit_their_equation(equation):
    """An exact oracle: the published equation of the drawn numbers gives the answer."""
    draw = Draw("test")
    for decimals in (0, 1, 2) * 100:
        given, answer = draw_numbers(equation, draw, decimals)
        text = "".join(given.get(sign, sign) for sign in equation.replace(":", "/"))
        assert parse_expression(text).evaluate({}) == parse_expression(answer).evaluate({}), (text, answer)
        assert Decimal(answer) > 0


@pytest.mark.parametrize("texts", [COUNTED, MEASURED, BARE], ids=["counted", "measured", "bare"])
def test_every_text_can_be_written_and_holds_its_numbers(texts):
    draw = Draw("test")
    for equation, forms in texts.items():
        for form in forms:
            for _ in range(5):
                numbers = {name: str(number) for name, number in zip("abcd", (871, 872, 873, 874), strict=True)}
                text = write_text(form, numbers, draw)
                named = set(re.findall("[a-d]", equation))
                assert all((number in text) == (name in named) for name, number in numbers.items()), text
                assert not re.search(r"[{}|\[\]_]|  | [.,?]", text) and text[0] not in "abcdefghijklmnopqrstuvwxyz", (
                    text
                )
    assert set(texts) <= set(EQUATIONS)


def test_every_slot_has_its_words():
    slots = set(
        re.findall(
            r"\{(\w+)\}", " ".join(text for t in (COUNTED, MEASURED) for s in t.values() for text in s) + OPENINGS
        )
    )
    assert len(slots) > 20 and slots - set("abcdz") <= set(WORDS)


def test_decimals():
    assert [write_decimal(450, 2), write_decimal(5, 2), write_decimal(70, 1), write_decimal(70, 0)] == [
        "4.5",
        "0.05",
        "7",
        "70",
    ]
    assert write_decimal(450, 2, padded=True) == "4.50"
