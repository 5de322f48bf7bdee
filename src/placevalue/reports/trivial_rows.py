"""Trivial answers as rows of a table, and the methods that do not beat them."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from placevalue.evaluation.metrics import METRICS, metric_values
from placevalue.evaluation.statistics import Groups, Interval, Values, group_interval
from placevalue.reports.formatting import format_value, listed
from placevalue.reports.results import Experiment

SURE = 0.05


@dataclass(frozen=True)
class TrivialRows:
    """The trivial answers in every column of a table, and what they mean for the methods."""

    scores: dict[str, tuple[Interval | None, ...]]
    """Of each kind of answer, by its name: its score in each column."""
    unbeaten: dict[str, tuple[str, ...]]
    """Of each method: the best kind of answer in each column, empty if the method's score is significantly better."""

    def remark(self, column: int, metric: str) -> str:
        """Which methods do not beat the best trivial answers in a column, in words; empty if there are none."""
        found = {name: score for name, scores in self.scores.items() if (score := scores[column]) is not None}
        if not found:
            return ""
        best = _best(found, metric)
        row = f"the best trivial row, {best} ({format_value(found[best].value, metric)})"
        without = [method for method, names in self.unbeaten.items() if names[column]]
        if len(without) in (0, len(self.unbeaten)):
            return f"{'No' if without else 'Every'} method beats {row}."
        return f"{listed(without)} {'does' if len(without) == 1 else 'do'} not beat {row}."


def trivial_rows(experiment: Experiment, columns: Sequence[Groups], metric: str) -> TrivialRows:
    """Score the trivial answers in each column, and compare every method with the best of them.

    A method beats them if its score is better with p below 0.05, over problems and, if there are several, seeds.
    """
    signed = METRICS[metric].direction == "zero"
    answers = {} if signed else experiment.trivial
    values = {name: metric_values(each, [metric])[:, :1] for name, each in answers.items()}
    scores: dict[str, list[Interval | None]] = {name: [] for name in values}
    unbeaten: dict[str, list[str]] = {method: [] for method in experiment.methods}
    for groups in columns:
        found = {}
        for name, trivial in values.items():
            interval = group_interval(trivial, groups)
            scores[name].append(interval and interval[0])
            if interval:
                found[name] = interval[0]
        best = _best(found, metric) if found else ""
        for method, names in unbeaten.items():
            names.append(best if best and not _beats(experiment, method, values[best], groups, metric) else "")
    return TrivialRows(
        {name: tuple(each) for name, each in scores.items()}, {name: tuple(each) for name, each in unbeaten.items()}
    )


def _best(scores: dict[str, Interval], metric: str) -> str:
    lower = METRICS[metric].direction == "lower"
    return (min if lower else max)(scores, key=lambda name: scores[name].value)


def _beats(experiment: Experiment, method: str, trivial: Values, groups: Groups, metric: str) -> bool:
    """Whether a method is significantly better; also if the two have no problem in common."""
    ours = np.stack([run.values(metric) for run in experiment.of(method)], 1)
    found = group_interval(ours - trivial, groups)
    if found is None:
        return True
    interval, p = found
    return p < SURE and (interval.value < 0) == (METRICS[metric].direction == "lower")
