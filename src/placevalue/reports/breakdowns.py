"""Where methods differ: accuracy by length, place, operation and generated task, and the curves of training."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from placevalue.data.numeracy import FORMS, Cell
from placevalue.evaluation.metrics import PLACES, Answered
from placevalue.evaluation.scoring import group_rows, problem_units
from placevalue.evaluation.statistics import Interval, Units, group_interval
from placevalue.numbers.numerals import shortest_form
from placevalue.reports.results import Experiment, Run

LONGEST = 7  # answers with this many digits or more share a category
FLOOR, CEILING = 0.1, 0.9
"""Below or above, hardly anything can be told about a method."""
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
    problems: int = 0  # the number of problems in any category


@dataclass(frozen=True)
class TaskGrid:
    """One set of generated tasks: each task, and all of them, by length and in all."""

    title: str
    tasks: tuple[str, ...]  # the rows; the last is all of them
    columns: tuple[str, ...]  # the lengths, then the forms if there are several, then those of `_WHOLE_TASK`
    metrics: tuple[str, ...]  # one for each column
    counts: tuple[tuple[int, ...], ...]  # the number of problems in each cell
    scores: dict[str, tuple[tuple[Interval | None, ...], ...]]  # by method; None if there is no value

    @property
    def lengths(self) -> int:
        """How many of the columns are lengths."""
        return sum(column.isdecimal() for column in self.columns)

    def between(self, method: str) -> tuple[int, int]:
        """How many cells of task and length lie between `FLOOR` and `CEILING`, and how many there are."""
        cells = [score.value for row in self.scores[method][:-1] for score in row[: self.lengths] if score]
        return sum(FLOOR <= value <= CEILING for value in cells), len(cells)


_WHOLE_TASK = {"exact": "accuracy_exact", "off by": "magnitude_error"}
"""The columns of a task grid that are over all lengths, and their metrics."""


@dataclass(frozen=True)
class Curves:
    """A part of the loss, or the accuracy on dev, by step, for each method: every seed, and their mean."""

    title: str
    seeds: dict[str, list[Curve]]
    means: dict[str, Curve]
    share: bool = False  # whether the values are shares, shown in percent from 0


def break_down(experiment: Experiment) -> list[Breakdown]:
    """Accuracy by the gold answer's length, by operation, and the share of right digits at each place."""
    first = experiment.runs[0]
    lengths = group_rows([answer_length(answered) for answered in first.answers])
    operations = group_rows([row.operation for row in first.rows])
    by_length = {f"{size}+" if size == LONGEST else str(size): lengths[size] for size in sorted(lengths)}
    tasks = any(Cell.of(row.id) for row in first.rows)  # which `task_grids` show
    by_operation = {} if tasks else {name: operations[name] for name in sorted(operations) if name}
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
    covered = np.zeros(len(units), dtype=bool)
    for category, rows in categories.items():
        name = metric.format(category)
        known = rows[~np.isnan(experiment.runs[0].values(name)[rows])]
        if not len(known):
            continue
        counts[category], covered[known] = len(known), True
        for method, found in scores.items():
            values = np.stack([run.values(name) for run in experiment.of(method)], 1)
            interval = group_interval(values, [(rows, units[rows])])
            found.append(interval and interval[0])
    by_method = {method: tuple(found) for method, found in scores.items()}
    return Breakdown(title, axis, tuple(counts), tuple(counts.values()), by_method, int(covered.sum()))


def task_grids(experiment: Experiment) -> list[TaskGrid]:
    """Every set of generated tasks: accuracy by task and length, and each task's exactness and orders of magnitude."""
    rows = experiment.runs[0].rows
    sets = group_rows([row.set if Cell.of(row.id) else None for row in rows])
    return [_task_grid(experiment, name, chosen) for name, chosen in sets.items()]


def _task_grid(experiment: Experiment, name: str, chosen: Units) -> TaskGrid:
    rows = experiment.runs[0].rows
    units = problem_units(rows)
    cells = [cell for index in chosen if (cell := Cell.of(rows[index].id))]
    of_task, of_length, of_form = (np.array(column) for column in zip(*cells, strict=True))
    forms = [form for form in FORMS if form in of_form]
    by_column = {str(length): of_length == length for length in sorted(set(of_length.tolist()))}
    by_column |= {form: of_form == form for form in forms if len(forms) > 1}
    by_column |= {column: np.full(len(cells), True) for column in _WHOLE_TASK}
    by_task = {task: of_task == task for task in dict.fromkeys(of_task.tolist())} | {"all": np.full(len(cells), True)}
    metrics = [_WHOLE_TASK.get(column, "accuracy_paper") for column in by_column]
    parts = [[chosen[task & column] for column in by_column.values()] for task in by_task.values()]

    def scores(method: str) -> tuple[tuple[Interval | None, ...], ...]:
        runs = experiment.of(method)
        values = {metric: np.stack([run.values(metric) for run in runs], 1) for metric in metrics}
        found = [
            [group_interval(values[metric], [(part, units[part])]) for part, metric in zip(row, metrics, strict=True)]
            for row in parts
        ]
        return tuple(tuple(each and each[0] for each in row) for row in found)

    counts = tuple(tuple(map(len, row)) for row in parts)
    by_method = {method: scores(method) for method in experiment.methods}
    return TaskGrid(name, tuple(by_task), tuple(by_column), tuple(metrics), counts, by_method)


_DEV = "Accuracy on dev"


def learning_curves(experiment: Experiment) -> list[Curves]:
    """By step: accuracy on dev, the cross-entropy of every method, the auxiliary loss of those that have one.

    Methods write the same answer in more or fewer tokens, so only the cross-entropy of whole answers compares them:
    that of a token times the tokens of a mean training answer.
    """
    # A method without an auxiliary loss logs only its loss, which is the cross-entropy.
    found = []
    for title, part, scale in (
        (_DEV, lambda row: row.get("eval_accuracy"), lambda _: 1.0),
        ("Cross-entropy per answer", _cross_entropy, _answer_tokens),
        ("Cross-entropy per token", _cross_entropy, lambda _: 1.0),
        ("Auxiliary loss", lambda row: row.get("aux"), lambda _: 1.0),
    ):
        curves = Curves(title, {}, {}, share=title == _DEV)
        for method in experiment.methods:
            seeds = [_curve(run.train.losses, part, scale(run)) for run in experiment.of(method)]
            if seeds := [seed for seed in seeds if seed]:
                curves.seeds[method] = [_thinned(seed) for seed in seeds]
                curves.means[method] = _thinned(_mean_curve(seeds))
        if curves.seeds:
            found.append(curves)
    return found


def _cross_entropy(row: dict[str, Any]) -> Any:
    return row.get("ce", row.get("loss"))


def _answer_tokens(run: Run) -> float | None:
    """The mean number of tokens that training predicts in an answer; None if the record does not have it."""
    counts = run.train.counts
    return counts["answer_tokens"] / counts["problems"] if {"answer_tokens", "problems"} <= counts.keys() else None


def _curve(losses: Sequence[dict[str, Any]], part: Callable[[dict[str, Any]], Any], scale: float | None) -> Curve:
    """One run's curve, without values that are not finite, which are logged as text; empty without a scale."""
    pairs = [(row["step"], part(row)) for row in losses if "step" in row and scale is not None]
    return [(step, value * (scale or 1.0)) for step, value in pairs if isinstance(value, int | float)]


def _thinned(curve: Curve) -> Curve:
    """At most about `_POINTS` points, always with the last."""
    thinned = curve[:: max(1, -(-len(curve) // _POINTS))]
    return thinned if thinned[-1:] == curve[-1:] else [*thinned, curve[-1]]


def _mean_curve(curves: Sequence[Curve]) -> Curve:
    """The mean at the steps that all seeds logged."""
    by_step = [dict(curve) for curve in curves]
    steps = sorted(set.intersection(*map(set, by_step)))
    return [(step, float(np.mean([each[step] for each in by_step]))) for step in steps]
