import math
import sys
from decimal import Decimal
from pathlib import Path

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from oracle import levenshtein
from placevalue.common.errors import PlacevalueError
from placevalue.evaluation.metrics import (
    METRICS,
    PLACES,
    _levenshtein,
    answer_tokens,
    last_number,
    metric_values,
    read_answer,
    shortest_form,
    whole_number,
)


def scores(gold, predicted, **more):
    """Every metric of one problem that has a value there."""
    answered = read_answer(gold, predicted, **more)
    found = {name: metric.function(answered) for name, metric in METRICS.items()}
    return {name: value for name, value in found.items() if value is not None}


def right(gold, predicted):
    """Whether the two extractions call it right: paper, exact."""
    found = scores(gold, predicted)
    return found["accuracy_paper"], found["accuracy_exact"]


@pytest.mark.parametrize(
    ("gold", "predicted", "paper", "exact"),
    [
        ("7.0", "7", 1, 1),
        ("7", "7.0", 1, 1),
        ("7.0", " 7.00\n", 1, 1),
        ("7.0", "", 0, 0),
        ("7.0", "seven", 0, 0),
        ("7.0", "the answer is 7", 1, 0),
        ("7.0", "7.", 1, 0),
        ("7.0", "7 or 8", 0, 0),
        ("8.0", "7 or 8", 1, 0),
        ("7.0", "[F] 7 [/F]", 1, 0),
        ("7.0", "70", 0, 0),
        ("1000", "1e3", 1, 1),
        ("1000.0", "1,000", 1, 1),
        ("1,000", "1000", 1, 1),
        ("1000", "1 000", 0, 0),
        ("-3", "-3", 1, 1),
        ("-3.0", "3", 0, 0),
        ("3", "-3", 0, 0),
        ("3", "5-3", 1, 0),
        ("0.1", ".1", 1, 1),
        ("0.1", "0.1000000000000000000001", 1, 0),  # equal as floats, not as decimals
        ("0", "-0", 1, 1),
        ("7", "٧", 0, 0),
        ("7", "7_0", 0, 0),
        ("7", "NaN", 0, 0),
        ("7", "Infinity", 0, 0),
        ("1e999", "1e998", 0, 0),  # both infinite as floats
        ("1e999", "1e999", 1, 1),
        ("Not commutable", "Not commutable", 0, 0),
        ("Not commutable", "7", 0, 0),
        ("7 apples", "7", 0, 0),
        ("3, 12, 45", "3, 12, 45", 1, 1),
        ("3, 12.50", " 3 12.5\n", 1, 1),
        ("3, 12, 45", "they are 3, 12, 45", 1, 0),
        ("3, 12, 45", "3, 45, 12", 0, 0),
        ("3, 12, 45", "12, 45", 0, 0),
        ("12, 45", "3, 12, 45", 1, 0),  # the last two
        ("3, 12, 45", "3,12,45", 1, 1),
        ("3, 120, 450", "3,120,450", 0, 0),  # one number with thousands separators
        ("3, 12", "3; 12", 1, 0),
        ("3, 12", "", 0, 0),
        ("3-4", "3, -4", 0, 0),
    ],
)
def test_accuracy_under_both_extractions(gold, predicted, paper, exact):
    assert right(gold, predicted) == (paper, exact)


def test_the_extractions_by_themselves():
    assert last_number("3 then 4.50") == Decimal("4.50") and last_number("none") is None and last_number("") is None
    assert whole_number("3 then 4") is None and whole_number(" +1,234.5 ") == Decimal("1234.5")
    assert whole_number("1.2.3") is None and whole_number("") is None


@pytest.mark.parametrize(
    ("gold", "predicted", "written", "shortest"),
    [
        ("7.0", "7", 2 / 3, 0),
        ("7.0", "7.0", 0, 2),
        ("7.0", "", 1, 1),
        ("70.0", "17", 4 / 4, 2 / 2),
        ("12.5", "12.5", 0, 0),
        ("12.50", " 12.5 ", 1 / 5, 0),
        ("1e3", "1000", 1, 0),
        ("-3", "3", 1 / 2, 1 / 2),
        ("Not commutable", "Not commutable", 0, 0),
        ("7", "[F] 7 [/F]", 9, 9),
        ("5", "1234567890", 9, 9),
    ],
)
def test_character_error_rate(gold, predicted, written, shortest):
    found = scores(gold, predicted)
    assert found["cer_written"] == pytest.approx(written)
    assert found["cer_shortest"] == pytest.approx(shortest)


@given(st.text("0123456789.-[F/] a", max_size=12), st.text("0123456789.a", min_size=1, max_size=12))
@example("", ".")
def test_character_error_rate_against_the_slow_twin(predicted, gold):
    found = scores(gold, predicted)
    assert found["cer_written"] == levenshtein(predicted.strip(), gold) / len(gold)
    value = whole_number(gold)
    short = gold if value is None else shortest_form(value)
    assert found["cer_shortest"] == levenshtein(predicted.strip(), short) / len(short)


def test_the_shortest_form():
    forms = {"7.0": "7", "7.50": "7.5", "700": "700", "1e3": "1000", "0.0": "0", "-0.0": "0", "007": "7", ".5": "0.5"}
    assert {text: shortest_form(Decimal(text)) for text in forms} == forms
    long = "1" * 50 + ".25"
    assert shortest_form(Decimal(long + "0")) == long


@given(st.decimals(allow_nan=False, allow_infinity=False, min_value=-(10**12), max_value=10**12, places=6))
def test_the_shortest_form_is_worth_the_same_and_right_under_both_extractions(value):
    assert Decimal(shortest_form(value)) == value
    assert right(format(value, "f"), shortest_form(value)) == (1, 1)


@pytest.mark.parametrize(
    ("gold", "predicted", "same"),
    [("70.0", "99", 1), ("70", "7", 0), ("0.5", "7", 1), ("-70", "12.345", 1), ("70", "007", 0), ("70", "none", 0), ("1e3", "1,234", 1)],
)  # fmt: skip
def test_digit_length(gold, predicted, same):
    assert scores(gold, predicted)["digit_length"] == same


@pytest.mark.parametrize(
    ("gold", "predicted", "places"),
    [
        ("1234.0", "1254", [1, 1, 0, 1]),
        ("70.0", "7", [1, 0]),
        ("0.0625", "6.25", [1, 1, 1]),
        ("0.0625", "0.06", [1, 0, 0]),
        ("0", "0", [1]),
        ("0", "", [0]),
        ("-12", "12", [1, 1]),
        ("7.0", "712", [1]),
        ("123456789012", "123456789012", [1] * PLACES),
    ],
)
def test_accuracy_by_place_from_the_left(gold, predicted, places):
    found = scores(gold, predicted)
    assert [value for name, value in found.items() if name.startswith("place_")] == places


def test_signed_log_error():
    assert scores("7", "70")["log_error"] == pytest.approx(1)
    assert scores("1000", "1")["log_error"] == pytest.approx(-3)
    assert scores("7.0", "7")["log_error"] == 0
    assert scores("3", "6")["log_error"] == pytest.approx(math.log10(2))
    assert scores("1e400", "1e401")["log_error"] == pytest.approx(1)  # past any float
    for gold, predicted in (("0", "7"), ("7", "0"), ("-7", "7"), ("7", "-7"), ("7", "none"), ("Not commutable", "7")):
        assert not {"log_error", "magnitude_error"} & scores(gold, predicted).keys()


def test_magnitude_error_is_the_size_of_the_signed_one():
    assert scores("1000", "1")["magnitude_error"] == pytest.approx(3) == scores("1", "1000")["magnitude_error"]
    assert "magnitude_error" not in scores("3, 12", "3, 13")
    values = metric_values([read_answer("1000", "1"), read_answer("1", "1000")], ["log_error", "magnitude_error"])
    assert values.mean(0) == pytest.approx([0, 3])


def test_what_means_nothing_is_absent():
    found = scores("Not commutable", "7")
    assert set(found) == {"accuracy_paper", "accuracy_exact", "cer_written", "cer_shortest", "no_number"}
    assert scores("7", "none")["no_number"] == 1 and scores("7", "7")["no_number"] == 0
    values = metric_values([read_answer("Not commutable", "7")], ["digit_length", "no_number"])
    assert np.isnan(values[0, 0]) and values[0, 1] == 0
    assert metric_values([]).shape == (0, len(METRICS))


def test_answers_beyond_the_token_limit():
    assert answer_tokens("7.0") == 6 and answer_tokens("Not commutable") is None
    assert answer_tokens("439156969900.0") == 17
    within = scores("39156969900.0", "39156969900.0", max_answer=16)
    beyond = scores("439156969900.0", "43915696990", max_answer=16)
    assert within["accuracy_paper_reachable"] == within["accuracy_exact_reachable"] == 1
    assert "accuracy_paper_reachable" not in beyond and beyond["accuracy_paper"] == 0
    assert "accuracy_paper_reachable" not in scores("7", "7"), "nobody looked"
    assert "accuracy_paper_reachable" not in scores("7", "7", reachable=False, max_answer=16), "who looked is right"
    assert scores("439156969900.0", "1", reachable=True, max_answer=16)["accuracy_paper_reachable"] == 0
    assert "accuracy_paper_reachable" not in scores("Not commutable", "7", reachable=True)


def test_every_metric_says_what_it_is():
    assert {metric.direction for metric in METRICS.values()} == {"higher", "lower", "zero"}
    for metric in METRICS.values():
        assert metric.description.endswith(".") and len(metric.description) < 120
    table = (Path(__file__).parents[2] / "docs" / "evaluation.md").read_text()
    assert all(f"| `{name}` | {metric.direction} | {metric.description} |" in table for name, metric in METRICS.items())
    assert len([name for name in METRICS if name.startswith("place_")]) == PLACES


@given(st.text(max_size=30), st.text(min_size=1, max_size=30).filter(str.strip))
def test_any_text_has_scores(predicted, gold):
    for name, value in scores(gold, predicted).items():
        assert math.isfinite(value) and (value >= 0 or name == "log_error")


def test_a_missing_extra_is_named(monkeypatch):
    _levenshtein.cache_clear()
    monkeypatch.setitem(sys.modules, "rapidfuzz.distance", None)
    with pytest.raises(PlacevalueError, match=r"pip install 'placevalue\[all\]'"):
        scores("7", "7")
    _levenshtein.cache_clear()
