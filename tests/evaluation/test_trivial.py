"""Answers that need no model: by hand, against the obvious loop, and on the splits that they judge."""

import random
from decimal import Decimal

import pytest

from placevalue.cli.main import main
from placevalue.data import Problem, load_data
from placevalue.data.copies import likeness
from placevalue.evaluation.metrics import metric_values, read_answer
from placevalue.evaluation.trivial import (
    FREQUENT,
    NEAREST,
    OPERATION,
    OPERATIONS,
    apply_operation,
    best_operation,
    most_frequent,
    nearest_questions,
    trivial_answers,
)


def problems(*rows, equation="x=1+1"):
    return [Problem(str(index), question, answer, equation) for index, (question, answer) in enumerate(rows)]


TRAIN = problems(
    ("Ann has 3 apples and buys 4 . How many has she ?", "7"),
    ("Tom had 9 pens and lost 2 . How many are left ?", "7.0"),
    ("A box weighs 12.5 kilograms , so how much do 2 boxes weigh ?", "25"),
    ("Ann has 5 apples and buys 1.5 . How many has she ?", "6.5"),
)


def test_each_kind_by_hand():
    asked = [
        "Ann has 30 apples and buys 12 . How many has she ?",
        "Why is it 8 ?",
        "Tom had 90 pens and lost 20 . Hm .",
    ]
    assert trivial_answers(asked, TRAIN) == {
        NEAREST: ["7", "7", "7.0"],
        FREQUENT: ["7", "7", "7"],
        OPERATION: ["42", "8", "110"],
    }


def test_what_cannot_be_known_is_left_out():
    assert trivial_answers(["How many ?"], []) == {}
    assert trivial_answers(["How many ?", None], TRAIN) == {FREQUENT: ["7", "7"]}
    without = problems(("1 and 2 ?", "3"), equation=None)
    assert trivial_answers(["1 and 2 ?"], without) == {NEAREST: ["3"], FREQUENT: ["3"]}


def test_the_nearest_question_is_the_obvious_one():
    """Against a loop over all pairs; of equally alike questions the first."""
    draw = random.Random(0)
    words = ["a", "b", "c", "d", "e", "1", "2", "."]
    known, asked = ([" ".join(draw.choices(words, k=draw.randint(1, 9))) for _ in range(count)] for count in (300, 60))
    asked = [*asked, *known[:5], "z z z z"]
    expected = [max(range(len(known)), key=lambda index: likeness(question, known[index])) for question in asked]
    alike = [likeness(question, known[index]) > 0 for question, index in zip(asked, expected, strict=True)]
    assert not alike[-1] and sum(alike) > 50
    assert nearest_questions(asked, known) == [i if some else None for i, some in zip(expected, alike, strict=True)]


def test_the_most_frequent_answer_counts_values():
    rows = [("?", answer) for answer in ("4", "4", "3.0", "3", "3.00", "five", "five")]
    assert most_frequent(problems(*rows)) == "3.0"


@pytest.mark.parametrize(
    ("name", "numbers", "result"),
    [("sum", "1 2.5 3", "6.5"), ("difference", "2 9 5", "7"), ("product", "1.5 2 2", "6"), ("quotient", "0.1 0.3", "3"),
     ("quotient", "6 5", "1.2"), ("quotient", "5 6", "1.2"), ("sum", "7", "7"), ("difference", "7", "0"), ("sum", "", ""),
     ("quotient", "0 3", ""), ("product", "1e999 1e999", ""), ("quotient", "3 10", "3.3333333333333335")],
)  # fmt: skip
def test_operations_by_hand(name, numbers, result):
    assert apply_operation(name, tuple(sorted(map(Decimal, numbers.split())))) == result


@pytest.mark.parametrize("name", OPERATIONS)
def test_the_best_operation_is_right_most_often(name):
    questions = [f"{a} and {b}" for a, b in ((3, 4), (2, 9), (10, 4), (5, 8))]
    rows = [
        (question, apply_operation(name, tuple(sorted(map(Decimal, question.split(" and "))))))
        for question in questions
    ]
    assert best_operation(problems(*rows, ("1 and 1", "77"))) == name


def score(test, answers):
    found = (read_answer(problem.answer, text) for problem, text in zip(test, answers, strict=True))
    return float(metric_values(found, ["accuracy_paper"]).mean())


def test_copying_fails_where_no_question_is_a_copy(capsys):
    """A quarter of the seeded split is right by copying the nearest answer, but under 8% of the grouped ones."""
    levels = {}
    for name in ("mawps", "mawps-grouped", *(f"mawps-grouped:fold-{fold}" for fold in range(1, 6))):
        test, train = (load_data(f"{name}:{part}") for part in ("test", "train"))
        levels[name] = score(test, trivial_answers([problem.question for problem in test], train)[NEAREST])
    assert levels.pop("mawps") == 0.25 and max(levels.values()) < 0.08
    assert main(["data", "check", "mawps:train", "mawps:test"]) == 0
    shown = capsys.readouterr().out
    assert "copies of mawps:train among the 500 questions of mawps:test: 104 (67 word for word" in shown
    assert "nearest question   25.0%" in shown and "best operation     19.6%" in shown


def test_a_file_of_ones_own_is_checked(tmp_path, capsys):
    for name in ("train", "test"):
        (tmp_path / f"{name}.csv").write_text("question,answer\nWhat do 1 and 2 make?,3\n")
    assert main(["data", "check", str(tmp_path / "train.csv"), str(tmp_path / "test.csv")]) == 0
    shown = capsys.readouterr().out
    assert "1 (1 word for word" in shown and "nearest question  100.0%" in shown and "operation" not in shown
