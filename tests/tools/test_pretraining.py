"""The pre-training corpus: right answers, the same rows everywhere, nothing that models are tested on."""

import re
from collections import Counter
from decimal import Decimal
from itertools import islice

import pytest

from oracle import value_of
from placevalue.common.errors import ConfigError, DataError
from placevalue.common.hub import BUNDLED_FOLDER, TINY
from placevalue.common.records import TrainRecord, read_record
from placevalue.data import FERMAT_SETS, load_data
from placevalue.data.mawps import SPLITS
from placevalue.data.problem import checksum
from tools.tiny_model import gsm8k, pretraining
from tools.tiny_model.grammar import EQUATIONS, Draw, draw_numbers, write_decimal, write_text
from tools.tiny_model.gsm8k import read_gsm8k
from tools.tiny_model.pretraining import ROWS, SENTINELS, generate_pretraining
from tools.tiny_model.vocabulary import WORDS
from tools.tiny_model.wordproblems import BARE, COUNTED, MEASURED, OPENINGS

# The sha256 of the first 30,000 training rows; that of all 500,000 is in the bundled model's record.
TRAIN_SHA256 = "ec40bbd2dc5ecab040d47fec9b155d21d595c150be19f804cca75950bad79de7"


@pytest.fixture(scope="module")
def rows():
    return list(generate_pretraining("train", 30_000))


def test_the_rows_are_the_same_everywhere(rows):
    assert checksum(rows) == TRAIN_SHA256
    assert list(islice(generate_pretraining("train"), 100)) == rows[:100]
    trained = read_record(BUNDLED_FOLDER / TINY / "train.json", TrainRecord)
    assert checksum(generate_pretraining("dev")) == trained.data["pretraining:dev"] and ROWS["train"] == 500_000


def test_gsm8k_is_whole(monkeypatch):
    problems = read_gsm8k()
    assert (problems[0].id, problems[0].answer, len(problems)) == ("gsm8k:0", "72", 7473)
    assert all(re.fullmatch(r"-?[0-9.]+", problem.answer) for problem in problems)
    monkeypatch.setattr(gsm8k, "SHA256", "0" * 64)
    with pytest.raises(DataError, match=r"train\.jsonl\.gz is damaged"):
        read_gsm8k()


@pytest.mark.parametrize("spec", ["pretraining:train", "pretraining:dev", "gsm8k:train"])
def test_its_old_names_say_where_it_is(spec):
    with pytest.raises(
        ConfigError, match=rf"'{spec}' is no longer part of placevalue, it moved to tools/tiny_model .*prepare"
    ):
        load_data(spec)


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


def test_such_a_row_is_drawn_again(monkeypatch):
    first = next(generate_pretraining("train"))
    monkeypatch.setattr(pretraining, "_tested", lambda: {pretraining.mask_text(first.question)})
    assert next(generate_pretraining("train")).question != first.question


def test_dev_is_not_in_train(rows):
    assert not {row.question for row in generate_pretraining("dev")} & {row.question for row in rows}
    assert max(Counter(row.question for row in rows).values()) < 30


def test_gaps_are_filled_by_the_answer(rows):
    """Putting the answer's parts back at their sentinels gives text without gaps, and GSM8K's own words."""
    words = {re.sub(r"\W", "", word) for problem in read_gsm8k() for word in problem.question.split()}
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
        assert value_of(text) == value_of(answer), (text, answer)
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
