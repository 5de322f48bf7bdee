"""Where methods differ: accuracy by length, place and operation, and the loss over training."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from placevalue.evaluation.metrics import PLACES, Answered
from placevalue.evaluation.scoring import group_rows, problem_units
from placevalue.evaluation.statistics import Interval, Units, group_interval
from placevalue.numbers.numerals import shortest_form
from placevalue.reports.results import Experiment

LONGEST = 7  # answers with this many digits or more share a category
_POINTS = 120  # of a curve: more than a screen can show apart

Curve = list[tuple[int, float]]  # steps and values


@dataclass(frozen=True)
class Breakdown:
    """A metric in several categories, for each method."""

    title: str
    axis: str
    categories: tuple[str, ...]
    counts: tuple[int, ...]  # the number of problems in each category
    scores: dict[str, tuple[Interval | None, ...]]  # by method; None if there is no value


@dataclass(frozen=True)
class Curves:
    """A part of the loss by step, for each method: every seed, and their mean."""

    title: str
    seeds: dict[str, list[Curve]]
    means: dict[str, Curve]


def break_down(experiment: Experiment) -> list[Breakdown]:
    """Accuracy by the gold answer's length, by operation, and the share of right digits at each place."""
    first = experiment.runs[0]
    lengths = group_rows([answer_length(answered) for answered in first.answers])
    operations = group_rows([row.operation for row in first.rows])
    by_length = {f"{size}+" if size == LONGEST else str(size): lengths[size] for size in sorted(lengths)}
    by_operation = {name: operations[name] for name in sorted(operations) if name}
    by_place = {str(place): np.arange(len(first.rows)) for place in range(1, PLACES + 1)}
    found = [
        _breakdown(experiment, "Accuracy by length", "digits of the answer", by_length, "accuracy_paper"),
        _breakdown(experiment, "Right digits by place", "place from the left", by_place, "place_{}"),
        _breakdown(experiment, "Accuracy by operation", "operation", by_operation, "accuracy_paper"),
    ]
    return [each for each in found if each.categories]


def answer_length(answered: Answered) -> int | None:
    """The number of digits of the gold number in its shortest form, at most `LONGEST`; None if it is not a number."""
    if answered.gold_value is None:
        return None
    return min(len(shortest_form(answered.gold_value.copy_abs()).replace(".", "")), LONGEST)


def _breakdown(experiment: Experiment, title: str, axis: str, categories: dict[str, Units], metric: str) -> Breakdown:
    """Categories without a value are left out; `{}` in the metric is the category."""
    units = problem_units(experiment.runs[0].rows)
    counts: dict[str, int] = {}
    scores: dict[str, list[Interval | None]] = {method: [] for method in experiment.methods}
    for category, rows in categories.items():
        name = metric.format(category)
        if not (count := int((~np.isnan(experiment.runs[0].values(name)[rows])).sum())):
            continue
        counts[category] = count
        for method, found in scores.items():
            values = np.stack([run.values(name) for run in experiment.of(method)], 1)
            interval = group_interval(values, [(rows, units[rows])])
            found.append(interval and interval[0])
    return Breakdown(title, axis, tuple(counts), tuple(counts.values()), {m: tuple(s) for m, s in scores.items()})


def loss_curves(experiment: Experiment) -> list[Curves]:
    """The parts of the loss by step: cross-entropy of every method, the auxiliary loss of those that have one."""
    # A method without an auxiliary loss logs only its loss, which is the cross-entropy.
    parts = {"Cross-entropy": lambda row: row.get("ce", row.get("loss")), "Auxiliary loss": lambda row: row.get("aux")}
    found = []
    for title, part in parts.items():
        curves = Curves(title, {}, {})
        for method in experiment.methods:
            seeds = [_curve(run.train.losses, part) for run in experiment.of(method)]
            if seeds := [seed for seed in seeds if seed]:
                curves.seeds[method] = [_thinned(seed) for seed in seeds]
                curves.means[method] = _thinned(_mean_curve(seeds))
        if curves.seeds:
            found.append(curves)
    return found


def _curve(losses: Sequence[dict[str, Any]], part: Callable[[dict[str, Any]], Any]) -> Curve:
    """One run's curve, without values that are not finite, which are logged as text."""
    pairs = [(row["step"], part(row)) for row in losses if "step" in row]
    return [(step, value) for step, value in pairs if isinstance(value, int | float)]


def _thinned(curve: Curve) -> Curve:
    """At most about `_POINTS` points, always with the last."""
    thinned = curve[:: max(1, -(-len(curve) // _POINTS))]
    return thinned if thinned[-1:] == curve[-1:] else [*thinned, curve[-1]]


def _mean_curve(curves: Sequence[Curve]) -> Curve:
    """The mean at the steps that all seeds logged."""
    by_step = [dict(curve) for curve in curves]
    steps = sorted(set.intersection(*map(set, by_step)))
    return [(step, float(np.mean([each[step] for each in by_step]))) for step in steps]
