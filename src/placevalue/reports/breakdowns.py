"""Where methods differ: accuracy by length, place and operation, and the course of their losses."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from placevalue.evaluation.metrics import PLACES, Answered
from placevalue.evaluation.scoring import problem_units
from placevalue.evaluation.statistics import Groups, Interval, Units, Values, crossed_interval, spread
from placevalue.numbers.numerals import shortest_form
from placevalue.reports.results import Experiment, Run

LONGEST = 7
"""Answers of this many digits and more are one category."""
_POINTS = 120  # of a curve: more than a screen shows apart


@dataclass(frozen=True)
class Breakdown:
    """A metric in several categories, for each method."""

    title: str
    axis: str
    categories: tuple[str, ...]
    counts: tuple[int, ...]
    """Problems in each."""
    scores: dict[str, tuple[Interval | None, ...]]
    """By method; None where there is no value."""


@dataclass(frozen=True)
class Curves:
    """A part of the loss over the steps, for each method: its seeds, and their mean."""

    title: str
    seeds: dict[str, list[list[tuple[int, float]]]]
    means: dict[str, list[tuple[int, float]]]


def break_down(experiment: Experiment) -> list[Breakdown]:
    """Accuracy by the gold answer's length, by operation, and the share of right digits at each place."""
    first = experiment.runs[0]
    lengths = [answer_length(answered) for answered in first.answers]
    operations = [row.operation for row in first.rows]
    known = sorted({length for length in lengths if length is not None})
    by_length = {f"{size}+" if size == LONGEST else str(size): _where(lengths, size) for size in known}
    by_operation = {name: _where(operations, name) for name in sorted({each for each in operations if each})}
    all_rows = np.arange(len(first.rows))
    places = {str(place): all_rows for place in range(1, PLACES + 1)}
    accuracy: Callable[[str], str] = lambda _category: "accuracy_paper"  # noqa: E731
    found = [
        _breakdown(experiment, "Accuracy by length", "digits of the answer", by_length, accuracy),
        _breakdown(experiment, "Right digits by place", "place from the left", places, lambda place: f"place_{place}"),
        _breakdown(experiment, "Accuracy by operation", "operation", by_operation, accuracy),
    ]
    return [each for each in found if each.categories]


def answer_length(answered: Answered) -> int | None:
    """How many digits the gold number has in its shortest form, at most `LONGEST`; None where it is no number."""
    if answered.gold_value is None:
        return None
    digits = shortest_form(answered.gold_value.copy_abs()).replace(".", "")
    return min(len(digits), LONGEST)


def _where(keys: Sequence[object], wanted: object) -> Units:
    return np.flatnonzero([key == wanted for key in keys])


def _breakdown(
    experiment: Experiment, title: str, axis: str, categories: dict[str, Units], metric: Callable[[str], str]
) -> Breakdown:
    units = problem_units(experiment.runs[0].rows)
    values: dict[tuple[str, str], Values] = {}
    for method in experiment.methods:
        for name in {metric(category) for category in categories}:
            values[method, name] = np.stack([run.values(name) for run in experiment.of(method)], 1)
    counts = {
        category: int((~np.isnan(values[experiment.methods[0], metric(category)][rows, 0])).sum())
        for category, rows in categories.items()
    }
    kept = [category for category in categories if counts[category]]
    scores = {
        method: tuple(
            _interval(values[method, metric(category)], [(categories[category], units[categories[category]])])
            for category in kept
        )
        for method in experiment.methods
    }
    return Breakdown(title, axis, tuple(kept), tuple(counts[category] for category in kept), scores)


def _interval(values: Values, groups: Groups) -> Interval | None:
    drawn = spread(values, groups)
    return None if drawn is None else crossed_interval(drawn)[0]


def loss_curves(experiment: Experiment) -> list[Curves]:
    """Both parts of the loss by step: cross-entropy of every method, the auxiliary loss of those that have one."""
    parts = (("Cross-entropy", _cross_entropy), ("Auxiliary loss", lambda row: row.get("aux")))
    found = []
    for title, part in parts:
        seeds = {method: [_curve(run, part) for run in experiment.of(method)] for method in experiment.methods}
        seeds = {method: kept for method, curves in seeds.items() if (kept := [curve for curve in curves if curve])}
        if seeds:
            means = {method: _thinned(_mean_curve(curves)) for method, curves in seeds.items()}
            thin = {method: [_thinned(curve) for curve in curves] for method, curves in seeds.items()}
            found.append(Curves(title, thin, means))
    return found


def _cross_entropy(row: dict[str, object]) -> object:
    """A method without an auxiliary loss logs its loss alone, and that is its cross-entropy."""
    return row.get("ce", row.get("loss"))


def _curve(run: Run, part: Callable[[dict[str, object]], object]) -> list[tuple[int, float]]:
    """Steps and values of one run; what was logged as not finite is left out."""
    return [
        (int(row["step"]), float(value))
        for row in run.train.losses
        if "step" in row and isinstance(value := part(row), int | float)
    ]


def _thinned(curve: list[tuple[int, float]]) -> list[tuple[int, float]]:
    """As many points as a chart can show, the last among them."""
    every = max(1, -(-len(curve) // _POINTS))
    thinned = curve[::every]
    return thinned if not curve or thinned[-1] == curve[-1] else [*thinned, curve[-1]]


def _mean_curve(curves: Sequence[Sequence[tuple[int, float]]]) -> list[tuple[int, float]]:
    """The mean at the steps that all seeds have logged."""
    steps = sorted(set.intersection(*({step for step, _ in curve} for curve in curves)))
    looked = [dict(curve) for curve in curves]
    return [(step, float(np.mean([each[step] for each in looked]))) for step in steps]
