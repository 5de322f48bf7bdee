"""How good answers are, problem by problem: extraction, accuracy, character error rate, places, magnitude.

Every metric is a plain function of one answered problem, and gives None where it means nothing there: a mean over
problems then leaves the problem out, and says over how many it was taken. Nothing absent is ever counted as 0.

A gold answer that is no number ("Not commutable" in FERMAT) can only be wrong under either extraction, as in the
paper; the metrics that end in `_numeric` leave such problems out.
"""

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from decimal import Decimal
from functools import lru_cache, partial
from typing import Any, Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from placevalue.common.errors import PlacevalueError
from placevalue.numbers.numerals import Numeral, find_numerals, shortest_form

PLACES = 8
"""How many significant digits from the left have a metric of their own."""

Values = NDArray[np.float64]
Direction = Literal["higher", "lower", "zero"]


def last_number(text: str) -> Decimal | None:
    """The last number of a text: `paper`, the extraction behind figures that are held against the paper's.

    Signs, thousands separators and exponents belong to the number (the pattern `extended`), so `-7`, `1,000` and `1e3`
    are read for what they are worth. On digits and points alone this is the paper's own pattern.

    Example:
        >>> last_number("3 and 4 make 7.")
        Decimal('7')
    """
    found = _numerals(text)
    return found[-1].value if found else None


def whole_number(text: str) -> Decimal | None:
    """The number that the whole text is, spaces around it aside: `exact`.

    Example:
        >>> whole_number(" 7.0 "), whole_number("7 apples")
        (Decimal('7.0'), None)
    """
    text = text.strip()
    found = _numerals(text)
    return found[0].value if len(found) == 1 and found[0].text == text else None


@lru_cache(maxsize=4096)  # the same answers come again in every run of an experiment
def _numerals(text: str) -> list[Numeral]:
    return find_numerals(text, "extended")


EXTRACTIONS: dict[str, Callable[[str], Decimal | None]] = {"paper": last_number, "exact": whole_number}


@dataclass(frozen=True)
class Answered:
    """A gold answer and what was predicted, with the numbers of both read once."""

    gold: str
    predicted: str
    gold_value: Decimal | None
    values: dict[str, Decimal | None]
    """What each extraction finds in the prediction."""
    reachable: bool | None
    """Whether the gold answer can be written in the tokens that were allowed; None where nobody knows."""


def read_answer(gold: str, predicted: str, reachable: bool | None = None, max_answer: int | None = None) -> Answered:
    """Read the numbers off a gold answer and a prediction.

    Args:
        gold: The answer as it is written in the data.
        predicted: The model's text.
        reachable: Whether the model could have written the gold answer, if somebody looked.
        max_answer: The target tokens that were allowed; decides where `reachable` is None, by `answer_tokens`.
    """
    gold, predicted = gold.strip(), predicted.strip()
    if reachable is None and max_answer is not None:
        tokens = answer_tokens(gold)
        reachable = None if tokens is None else tokens <= max_answer
    values = {name: extract(predicted) for name, extract in EXTRACTIONS.items()}
    return Answered(gold, predicted, whole_number(gold), values, reachable)


def answer_tokens(answer: str) -> int | None:
    """How many target tokens a number takes in the digit layouts: `[F]`, its characters, `[/F]`, end of sequence.

    An estimate for predictions that do not say whether their answer was reachable; None where the answer is no number.

    Example:
        >>> answer_tokens("439156969900.0")
        17
    """
    return None if whole_number(answer) is None else len(answer.strip()) + 3


def accuracy(answered: Answered, extraction: str) -> float:
    """1 where the extracted number is the gold one: as floats under `paper`, as decimals under `exact`."""
    gold, value = answered.gold_value, answered.values[extraction]
    if gold is None or value is None:
        return 0.0
    as_floats = extraction == "paper" and math.isfinite(float(gold)) and float(value) == float(gold)
    return float(value == gold or as_floats)


def cer(answered: Answered, shortest: bool) -> float:
    """Insertions, deletions and substitutions that turn the prediction into the answer, by the answer's length."""
    gold = answered.gold
    if shortest and answered.gold_value is not None:
        gold = shortest_form(answered.gold_value)
    return float(_levenshtein()(answered.predicted, gold)) / len(gold)


@lru_cache(maxsize=1)
def _levenshtein() -> Callable[[str, str], int]:
    try:
        from rapidfuzz.distance import Levenshtein
    except ImportError:
        raise PlacevalueError("rapidfuzz is missing: pip install 'placevalue[evaluate]'") from None
    distance: Any = Levenshtein.distance
    return distance


def digit_length(answered: Answered) -> float | None:
    """1 where the last number has as many digits before the point as the gold one; leading zeros do not count."""
    if answered.gold_value is None:
        return None
    value = answered.values["paper"]
    return float(value is not None and _whole_digits(value) == _whole_digits(answered.gold_value))


def place(answered: Answered, index: int) -> float | None:
    """1 where the significant digit `index` places from the left (from 1) is the gold one's; signs do not count."""
    if answered.gold_value is None:
        return None
    gold, value = _significant(answered.gold_value), answered.values["paper"]
    if len(gold) < index:
        return None
    return float(value is not None and _significant(value)[index - 1 : index] == gold[index - 1])


def log_error(answered: Answered) -> float | None:
    """log10(predicted / gold): 1 is ten times too much. None unless both are positive numbers."""
    gold, value = answered.gold_value, answered.values["paper"]
    if gold is None or value is None or gold <= 0 or value <= 0:
        return None
    return (value.adjusted() - gold.adjusted()) + math.log10(_leading(value)) - math.log10(_leading(gold))


def no_number(answered: Answered) -> float:
    """1 where the prediction holds no number at all."""
    return float(answered.values["paper"] is None)


def _whole_digits(value: Decimal) -> int:
    return len(format(value.copy_abs(), "f").partition(".")[0])


@lru_cache(maxsize=4096)
def _significant(value: Decimal) -> str:
    return shortest_form(value.copy_abs()).replace(".", "").lstrip("0") or "0"


def _leading(value: Decimal) -> float:
    """From 1 up to 10: the value without its power of ten, so that no number is too long for a float."""
    return float(value.scaleb(-value.adjusted()))


def _numeric(metric: Callable[[Answered], float], answered: Answered) -> float | None:
    return None if answered.gold_value is None else metric(answered)


def _reachable(metric: Callable[[Answered], float], answered: Answered) -> float | None:
    return metric(answered) if answered.gold_value is not None and answered.reachable else None


class Metric(NamedTuple):
    """A metric, which way is better, and what it says."""

    function: Callable[[Answered], float | None]
    direction: Direction
    description: str


_LAST, _EXACT = partial(accuracy, extraction="paper"), partial(accuracy, extraction="exact")
_WRITTEN, _SHORTEST = partial(cer, shortest=False), partial(cer, shortest=True)
_ORDINALS = ("first", "second", "third", "fourth", "fifth", "sixth", "seventh", "eighth")

METRICS: dict[str, Metric] = {
    "accuracy_paper": Metric(
        _LAST, "higher", "The last number of the prediction equals the gold number as a float, over all problems."
    ),
    "accuracy_exact": Metric(
        _EXACT, "higher", "The whole prediction is one number, exactly the gold number, over all problems."
    ),
    "accuracy_paper_numeric": Metric(
        partial(_numeric, _LAST), "higher", "`accuracy_paper` over the problems whose gold answer is a number."
    ),
    "accuracy_exact_numeric": Metric(
        partial(_numeric, _EXACT), "higher", "`accuracy_exact` over the problems whose gold answer is a number."
    ),
    "accuracy_paper_reachable": Metric(
        partial(_reachable, _LAST), "higher", "`accuracy_paper` over the gold numbers that the target has room for."
    ),
    "accuracy_exact_reachable": Metric(
        partial(_reachable, _EXACT), "higher", "`accuracy_exact` over the gold numbers that the target has room for."
    ),
    "cer_written": Metric(_WRITTEN, "lower", "Edit distance to the gold answer as written (7.0), by its length."),
    "cer_shortest": Metric(
        _SHORTEST, "lower", "Edit distance of the prediction, as written, to the gold answer's shortest form (7)."
    ),
    "cer_written_numeric": Metric(
        partial(_numeric, _WRITTEN), "lower", "`cer_written` over the problems whose gold answer is a number."
    ),
    "cer_shortest_numeric": Metric(
        partial(_numeric, _SHORTEST), "lower", "`cer_shortest` over the problems whose gold answer is a number."
    ),
    "digit_length": Metric(
        digit_length, "higher", "The last number has as many digits before the point as the gold number."
    ),
    "log_error": Metric(
        log_error, "zero", "Mean of log10(last number / gold number), over the pairs in which both are positive."
    ),
    "no_number": Metric(no_number, "lower", "The prediction holds no number."),
} | {
    f"place_{index}": Metric(
        partial(place, index=index),
        "higher",
        f"The {ordinal} significant digit from the left is right, over the gold numbers that have one.",
    )
    for index, ordinal in enumerate(_ORDINALS[:PLACES], 1)
}


def metric_values(answers: Iterable[Answered], names: Sequence[str] | None = None) -> Values:
    """Every metric of every problem: `(problems, metrics)`, NaN where a metric means nothing."""
    functions = [METRICS[name].function for name in names or METRICS]
    rows = [[function(answered) for function in functions] for answered in answers]
    return np.array(rows, dtype=np.float64).reshape(len(rows), len(functions))
