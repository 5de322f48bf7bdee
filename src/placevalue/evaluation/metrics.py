"""Metrics of one answer: accuracy, character error rate, digits by place, magnitude.

Every metric is a plain function of one answered problem. It returns None if it is undefined there; means leave such
problems out and report how many they count. A missing value is never counted as 0.

A gold answer that is neither a number nor a list of numbers ("Not commutable" in FERMAT) always counts as wrong, as in
the paper; the metrics that end in `_numeric` are over single numbers alone.
"""

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from decimal import Decimal
from functools import lru_cache, partial
from itertools import pairwise
from typing import Any, Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from placevalue.common.errors import PlacevalueError
from placevalue.numbers.numerals import Numeral, find_numerals, shortest_form

PLACES = 8  # the significant digits, from the left, that have their own metric
Values = NDArray[np.float64]


def last_number(text: str) -> Decimal | None:
    """The last number of a text: the extraction `paper`, for comparison with the paper's figures.

    Signs, thousands separators and exponents belong to the number (the pattern `extended`): `-7`, `1,000` and `1e3` are
    read in full. For plain digits and decimal points this is the paper's own pattern.
    """
    found = _numerals(text)
    return found[-1].value if found else None


def whole_number(text: str) -> Decimal | None:
    """The value of a text that is one number, apart from surrounding spaces: the extraction `exact`."""
    text = text.strip()
    found = _numerals(text)
    return found[0].value if len(found) == 1 and found[0].text == text else None


def whole_list(text: str) -> tuple[Decimal, ...]:
    """The values of a text that is several numbers with commas or spaces between them; empty for any other text."""
    text = text.strip()
    found = _numerals(text)
    gaps = [text[one.end : other.start] for one, other in pairwise(found)]
    whole = len(found) > 1 and found[0].start == 0 and found[-1].end == len(text)
    listed = whole and all(gap and not gap.strip(", ") for gap in gaps)
    return tuple(each.value for each in found) if listed else ()


@lru_cache(maxsize=4096)  # the runs of an experiment repeat the same answers
def _numerals(text: str) -> list[Numeral]:
    return find_numerals(text, "extended")


EXTRACTIONS: dict[str, Callable[[str], Decimal | None]] = {"paper": last_number, "exact": whole_number}


@dataclass(frozen=True)
class Answered:
    """A gold answer and a prediction, with their numbers."""

    gold: str
    predicted: str
    gold_value: Decimal | None
    values: dict[str, Decimal | None]  # what each extraction finds in the prediction
    reachable: bool | None  # whether the gold answer fits into the token limit; None if unknown
    readable: bool | None = None  # whether rewritten numbers could be read back; None if none were rewritten


def read_answer(
    gold: str,
    predicted: str,
    reachable: bool | None = None,
    max_answer: int | None = None,
    readable: bool | None = None,
) -> Answered:
    """Read the numbers of a gold answer and a prediction; one that is not `readable` counts as an empty text.

    If `reachable` is None, `answer_tokens` estimates whether the gold answer fits into the token limit `max_answer`.
    """
    gold, predicted = gold.strip(), "" if readable is False else predicted.strip()
    if reachable is None and max_answer is not None:
        tokens = answer_tokens(gold)
        reachable = None if tokens is None else tokens <= max_answer
    values = {name: extract(predicted) for name, extract in EXTRACTIONS.items()}
    return Answered(gold, predicted, whole_number(gold), values, reachable, readable)


def answer_tokens(answer: str) -> int | None:
    """Estimate a number's target tokens in the digit layouts: `[F]`, its characters, `[/F]` and end of sequence.

    None if the answer is not a number.
    """
    return None if whole_number(answer) is None else len(answer.strip()) + 3


def accuracy(answered: Answered, extraction: str) -> float:
    """1 if the extracted number is the gold one: compared as floats under `paper`, as decimals under `exact`.

    If the gold answer is a list of n numbers, `paper` takes the last n numbers and `exact` the whole text.
    """
    gold, value = answered.gold_value, answered.values[extraction]
    if gold is None:
        return _list_accuracy(answered, extraction)
    if value is None:
        return 0.0
    as_floats = extraction == "paper" and math.isfinite(float(gold)) and float(value) == float(gold)
    return float(value == gold or as_floats)


def _list_accuracy(answered: Answered, extraction: str) -> float:
    gold = whole_list(answered.gold)
    if extraction == "exact":
        return float(bool(gold) and whole_list(answered.predicted) == gold)
    return float(bool(gold) and tuple(each.value for each in _numerals(answered.predicted)[-len(gold) :]) == gold)


def cer(answered: Answered, shortest: bool) -> float:
    """Edit distance from the prediction to the gold answer, divided by the answer's length."""
    gold = answered.gold
    if shortest and answered.gold_value is not None:
        gold = shortest_form(answered.gold_value)
    return float(_levenshtein()(answered.predicted, gold)) / len(gold)


@lru_cache(maxsize=1)
def _levenshtein() -> Callable[[str, str], int]:
    try:
        from rapidfuzz.distance import Levenshtein
    except ImportError:
        raise PlacevalueError("rapidfuzz is missing: pip install 'placevalue[all]'") from None
    distance: Any = Levenshtein.distance
    return distance


def digit_length(answered: Answered) -> float | None:
    """1 if the last number has as many digits before the point as the gold one, without leading zeros."""
    if answered.gold_value is None:
        return None
    value = answered.values["paper"]
    return float(value is not None and _whole_digits(value) == _whole_digits(answered.gold_value))


def place(answered: Answered, index: int) -> float | None:
    """1 if the significant digit at `index`, counted from 1 on the left, is the gold number's; signs do not count."""
    if answered.gold_value is None:
        return None
    gold, value = _significant(answered.gold_value), answered.values["paper"]
    if len(gold) < index:
        return None
    return float(value is not None and _significant(value)[index - 1 : index] == gold[index - 1])


def log_error(answered: Answered) -> float | None:
    """log10(predicted / gold): 1 means ten times too large. None unless both are positive numbers."""
    gold, value = answered.gold_value, answered.values["paper"]
    if gold is None or value is None or gold <= 0 or value <= 0:
        return None
    return (value.adjusted() - gold.adjusted()) + math.log10(_leading(value)) - math.log10(_leading(gold))


def magnitude_error(answered: Answered) -> float | None:
    """The size of `log_error`: 1 means ten times too large or too small."""
    error = log_error(answered)
    return None if error is None else abs(error)


def no_number(answered: Answered) -> float:
    """1 if the prediction contains no number."""
    return float(answered.values["paper"] is None)


def unreadable(answered: Answered) -> float | None:
    """1 if the prediction's rewritten numbers could not be read back; None if the method rewrites none."""
    return None if answered.readable is None else float(not answered.readable)


def _whole_digits(value: Decimal) -> int:
    return len(format(value.copy_abs(), "f").partition(".")[0])


@lru_cache(maxsize=4096)
def _significant(value: Decimal) -> str:
    return shortest_form(value.copy_abs()).replace(".", "").lstrip("0") or "0"


def _leading(value: Decimal) -> float:
    """The value without its power of ten, from 1 up to 10, so that no number overflows a float."""
    return float(value.scaleb(-value.adjusted()))


def _numeric(metric: Callable[[Answered], float], answered: Answered) -> float | None:
    return None if answered.gold_value is None else metric(answered)


def _reachable(metric: Callable[[Answered], float], answered: Answered) -> float | None:
    return metric(answered) if answered.gold_value is not None and answered.reachable else None


class Metric(NamedTuple):
    """A metric, which direction is better, and its description."""

    function: Callable[[Answered], float | None]
    direction: Literal["higher", "lower", "zero"]
    description: str
    is_share: bool = True
    """Whether it is a share, written in percent; if not, it counts powers of ten."""


_LAST, _EXACT = partial(accuracy, extraction="paper"), partial(accuracy, extraction="exact")
_WRITTEN, _SHORTEST = partial(cer, shortest=False), partial(cer, shortest=True)
_ORDINALS = ("first", "second", "third", "fourth", "fifth", "sixth", "seventh", "eighth")
_NUMBERS, _WITHIN = "the problems whose gold answer is a number", "the gold numbers that fit into the token limit"

METRICS: dict[str, Metric] = {
    "accuracy_paper": Metric(_LAST, "higher", "The last number of the prediction equals the gold number as a float."),
    "accuracy_exact": Metric(_EXACT, "higher", "The whole prediction is one number, exactly the gold number."),
    "accuracy_paper_numeric": Metric(partial(_numeric, _LAST), "higher", f"`accuracy_paper` over {_NUMBERS}."),
    "accuracy_exact_numeric": Metric(partial(_numeric, _EXACT), "higher", f"`accuracy_exact` over {_NUMBERS}."),
    "accuracy_paper_reachable": Metric(partial(_reachable, _LAST), "higher", f"`accuracy_paper` over {_WITHIN}."),
    "accuracy_exact_reachable": Metric(partial(_reachable, _EXACT), "higher", f"`accuracy_exact` over {_WITHIN}."),
    "cer_written": Metric(_WRITTEN, "lower", "Edit distance to the gold answer as written (7.0), by its length."),
    "cer_shortest": Metric(_SHORTEST, "lower", "Edit distance to the gold answer's shortest form (7), by its length."),
    "cer_written_numeric": Metric(partial(_numeric, _WRITTEN), "lower", f"`cer_written` over {_NUMBERS}."),
    "cer_shortest_numeric": Metric(partial(_numeric, _SHORTEST), "lower", f"`cer_shortest` over {_NUMBERS}."),
    "digit_length": Metric(
        digit_length, "higher", "The last number has as many digits before the point as the gold one."
    ),
    "log_error": Metric(log_error, "zero", "Mean of log10(last number / gold number), if both are positive.", False),
    "magnitude_error": Metric(
        magnitude_error, "lower", "Mean size of `log_error`: 1 is ten times too large or too small.", False
    ),
    "no_number": Metric(no_number, "lower", "The prediction contains no number."),
    "unreadable": Metric(
        unreadable, "lower", "The prediction's rewritten numbers cannot be read back, so it counts as empty."
    ),
}
for _index, _ordinal in enumerate(_ORDINALS[:PLACES], 1):
    _description = f"The {_ordinal} significant digit from the left is right, over the gold numbers that have one."
    METRICS[f"place_{_index}"] = Metric(partial(place, index=_index), "higher", _description)


def metric_values(answers: Iterable[Answered], names: Sequence[str] | None = None) -> Values:
    """Every metric of every problem: `(problems, metrics)`, NaN if a metric is undefined."""
    functions = [METRICS[name].function for name in names or METRICS]
    rows = [[function(answered) for function in functions] for answered in answers]
    return np.array(rows, dtype=np.float64).reshape(len(rows), len(functions))
