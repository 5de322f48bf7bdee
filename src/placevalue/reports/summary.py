"""The methods of an experiment side by side: each over its seeds, and against a baseline."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from placevalue.common.errors import ConfigError
from placevalue.common.records import Prediction, ScoreRecord
from placevalue.evaluation.metrics import METRICS
from placevalue.evaluation.scoring import group_rows, problem_units
from placevalue.evaluation.statistics import (
    Groups,
    Interval,
    Units,
    Values,
    crossed_interval,
    holm,
    paired_test,
    spread,
)
from placevalue.reports.formatting import format_interval, format_value, listed
from placevalue.reports.results import Experiment

SIGNIFICANT = 0.05
BASELINE = "digits"  # the absolute row of the paper's tables


@dataclass(frozen=True)
class Column:
    """What a column of a table is about."""

    kind: Literal["set", "mean", "unseen", "operation"]
    """`unseen` is all problems whose question does not stand in the training data word for word."""
    name: str
    n: int
    """Problems; of the mean, sets."""


@dataclass(frozen=True)
class Change:
    """How far a method is from the baseline, over the seeds that both have."""

    value: float
    low: float | None
    high: float | None
    p: float
    """Corrected by Holm for the methods that the column compares."""
    seeds: int


@dataclass(frozen=True)
class Cell:
    """A method's score in one column, and its change from the baseline."""

    score: Interval
    change: Change | None
    """None in the baseline's own row, where the two share no seed, and where the baseline has no score."""
    best: bool


@dataclass(frozen=True)
class Row:
    """One method over its seeds."""

    method: str
    seeds: tuple[int, ...]
    seconds: float
    """Training, the mean over seeds."""
    cells: tuple[Cell | None, ...]
    """One for each column; None where there is no value."""
    unreachable: int
    """Answers longer than the model may write; they count as wrong."""


@dataclass(frozen=True)
class Summary:
    """All methods of an experiment under one metric, the baseline first. Scores are shares, as in records."""

    name: str
    model: str
    metric: str
    baseline: str
    columns: tuple[Column, ...]
    rows: tuple[Row, ...]
    missing: tuple[str, ...]
    seen: int
    """Questions that stand in the training data, as far as that is at hand."""


def summarise(experiment: Experiment, baseline: str | None = None, metric: str = "accuracy_paper") -> Summary:
    """Means over seeds with their intervals, and each method's change from the baseline with its interval and p.

    With several seeds both the problems and the seeds are taken for draws from more (`intervals.crossed_interval`), so
    an interval says what other problems of the kind and other seeds would give. Changes are paired: the same problem
    and the same seed under both methods. With one seed the score has the bootstrap interval of its record and the
    change that of `paired_test`, and both cover the problems alone.

    Args:
        experiment: From `load_experiment`.
        baseline: The method to compare with; `digits` where it was trained, as in the paper, else the first.
        metric: A name in `METRICS`.

    Example:
        >>> summarise(load_experiment("results/flan-t5-small-title-mawps")).rows[0].method  # doctest: +SKIP
        'digits'
    """
    if metric not in METRICS:
        raise ConfigError(f"the metric {metric!r} is unknown: expected one of {', '.join(METRICS)}")
    methods = experiment.methods
    if baseline is None:
        baseline = BASELINE if BASELINE in methods else methods[0]
    if baseline not in methods:
        raise ConfigError(
            f"the baseline {baseline!r} has no finished run in {experiment.folder}: expected {', '.join(methods)}"
        )
    methods = [baseline, *(each for each in methods if each != baseline)]
    values = {method: {run.seed: run.values(metric) for run in experiment.of(method)} for method in methods}
    columns, groups = _columns(experiment.runs[0].rows, experiment.unseen)
    units = problem_units(experiment.runs[0].rows)
    table = [
        _compare(experiment, column, [(each, units[each]) for each in chosen], values, metric)
        for column, chosen in zip(columns, groups, strict=True)
    ]
    rows = []
    for index, method in enumerate(methods):
        runs = experiment.of(method)
        seconds = float(np.mean([run.train.durations["train"] for run in runs]))
        cells = tuple(column[index] for column in table)
        unreachable = max(sum(answer.reachable is False for answer in run.answers) for run in runs)
        rows.append(Row(method, tuple(run.seed for run in runs), seconds, cells, unreachable))
    seen = len(units) - len(experiment.unseen)
    return Summary(
        experiment.name, experiment.model, metric, baseline, tuple(columns), tuple(rows), experiment.missing, seen
    )


def _columns(rows: Sequence[Prediction], unseen: Units) -> tuple[list[Column], list[list[Units]]]:
    """Sets, their mean where there are several, what was not seen in training where something was, operations.

    Each with its rows, in as many groups as are averaged.
    """
    sets, operations = group_rows([row.set for row in rows]), group_rows([row.operation for row in rows])
    columns = [Column("set", name, len(chosen)) for name, chosen in sets.items()]
    groups = [[chosen] for chosen in sets.values()]
    if len(sets) > 1:
        columns.append(Column("mean", "mean over sets", len(sets)))
        groups.append(list(sets.values()))
    if 0 < len(unseen) < len(rows):
        columns.append(Column("unseen", "unseen", len(unseen)))
        parts = (np.intersect1d(chosen, unseen) for chosen in sets.values())  # averaged over sets, as the mean is
        groups.append([part for part in parts if len(part)])
    columns += [Column("operation", name, len(operations[name])) for name in sorted(operations)]
    return columns, groups + [[operations[name]] for name in sorted(operations)]


def _compare(
    experiment: Experiment, column: Column, groups: Groups, values: dict[str, dict[int, Values]], metric: str
) -> list[Cell | None]:
    """The cells of one column, method by method; the first method is the baseline."""
    methods = list(values)
    scores: dict[str, Interval] = {}
    for method in methods:
        if len(values[method]) > 1 or column.kind == "unseen":  # which no record has
            drawn = spread(np.stack(list(values[method].values()), 1), groups)
            if drawn is not None:
                scores[method] = crossed_interval(drawn)[0]
        elif found := _recorded(experiment.of(method)[0].score, column).get(metric):
            scores[method] = Interval(**found)
    changes = {
        method: change
        for method in methods[1:]
        if {methods[0], method} <= scores.keys()
        and (change := _change(values[methods[0]], values[method], groups)) is not None
    }
    corrected = dict(zip(changes, holm([change.p for change in changes.values()]), strict=True))
    best = _best({method: _level(method, scores, changes, values) for method in scores}, metric)
    cells: list[Cell | None] = []
    for method in methods:
        change = changes.get(method)
        if change is not None:
            change = Change(change.value, change.low, change.high, corrected[method], change.seeds)
        cells.append(Cell(scores[method], change, method in best) if method in scores else None)
    return cells


def _recorded(score: ScoreRecord, column: Column) -> dict[str, Any]:
    """The scores of a record that belong into a column."""
    if column.kind == "mean":
        return score.averages
    return (score.scores if column.kind == "set" else score.operations).get(column.name, {})


def _change(baseline: dict[int, Values], values: dict[int, Values], groups: Groups) -> Change | None:
    """A method's change from the baseline over the seeds of both, p as it is by itself."""
    seeds = sorted(set(baseline) & set(values))
    if not seeds:
        return None
    first, second = (np.stack([each[seed] for seed in seeds], 1) for each in (baseline, values))
    if len(seeds) == 1 and len(groups) == 1:
        rows, units = groups[0]
        kept = ~np.isnan(first[rows, 0] + second[rows, 0])
        if not kept.any():
            return None
        numbered = np.unique(units[kept], return_inverse=True)[1]
        test = paired_test(first[rows, 0][kept], second[rows, 0][kept], numbered)
        return Change(test.difference, test.low, test.high, test.p, 1)
    drawn = spread(second - first, groups)
    if drawn is None:
        return None
    found, p = crossed_interval(drawn)
    return Change(found.value, found.low, found.high, p, len(seeds))


def _level(
    method: str, scores: dict[str, Interval], changes: dict[str, Change], values: dict[str, dict[int, Values]]
) -> float:
    """A method's score, as far from the baseline's as its change is where the two are of other problems."""
    base = next(iter(values))
    if method in changes and scores[method].n * len(values[base]) != scores[base].n * len(values[method]):
        return scores[base].value + changes[method].value
    return scores[method].value


def _best(scores: dict[str, float], metric: str) -> set[str]:
    """The methods with the best score; none where there is but one."""
    if len(scores) < 2:
        return set()
    least = min(_badness(value, metric) for value in scores.values())
    return {method for method, value in scores.items() if _badness(value, metric) <= least + 1e-12}


def _badness(value: float, metric: str) -> float:
    return {"higher": -value, "lower": value, "zero": abs(value)}[METRICS[metric].direction]


def is_gain(change: Change, metric: str, baseline: float) -> bool:
    """Whether a change from the baseline's score is for the better."""
    return _badness(baseline + change.value, metric) < _badness(baseline, metric)


def headline(summary: Summary) -> int:
    """The column that says most: the mean over sets, else the first set."""
    means = [index for index, column in enumerate(summary.columns) if column.kind == "mean"]
    return means[0] if means else 0


def conclusion(summary: Summary) -> str:
    """What the intervals allow one to conclude, in words.

    Example:
        >>> conclusion(summarise(load_experiment("runs/quick")))  # doctest: +SKIP
        'On mawps:test, no method can be told from digits ...'
    """
    index = headline(summary)
    column = summary.columns[index]
    where = f"Over the {column.n} sets" if column.kind == "mean" else f"On {column.name}"
    base = summary.rows[0].cells[index]
    level = 0.0 if base is None else base.score.value  # without a score there is no change from it
    unit = "" if METRICS[summary.metric].direction == "zero" else " points"
    changes = {row.method: cell.change for row in summary.rows if (cell := row.cells[index]) and cell.change}
    sure = {method: change for method, change in changes.items() if change.p < SIGNIFICANT}
    open_ = [method for method in changes if method not in sure]
    told = [
        f"{method} is {'better' if is_gain(change, summary.metric, level) else 'worse'} than {summary.baseline} "
        f"({_points(change, summary.metric)}{unit})"
        for method, change in sure.items()
    ]
    unsure = f"{listed(open_)} cannot be told from {summary.baseline}"
    if not changes:
        first = f"{where} there is nothing to compare {summary.baseline} with."
    elif not sure:
        spans = ", ".join(f"{method} {_points(changes[method], summary.metric)}" for method in open_)
        first = f"{where}, {unsure}: {spans}{unit}."
    else:
        each = "each " if len(told) > 1 else ""
        first = f"{where}, {'; '.join(told)}, {each}with p < {SIGNIFICANT} after Holm" + (
            f"; {unsure}." if open_ else "."
        )
    return " ".join(filter(None, (first, _coverage(changes), _seen(summary), _reach(summary), _gaps(summary))))


def _points(change: Change, metric: str) -> str:
    span = format_interval(change.low, change.high, metric, signed=True)
    return f"{format_value(change.value, metric, signed=True)} {span}".strip()


def _coverage(changes: Mapping[str, Change]) -> str:
    """What the intervals of the changes cover, method by method where they differ."""
    single = [method for method, change in changes.items() if change.seeds == 1]
    counts = sorted({change.seeds for change in changes.values() if change.seeds > 1})
    if not changes:
        return ""
    if not counts:
        return (
            "Every method was trained once, so the intervals cover the choice of problems alone: "
            "another seed may change the order."
        )
    seeds = f"{counts[0]}" if len(counts) == 1 else f"{counts[0]} to {counts[-1]}"
    but = f"; those of {listed(single)} rest on one seed and cover problems alone" if single else ""
    return f"The intervals cover other problems of the kind and other seeds ({seeds} a method){but}."


def _seen(summary: Summary) -> str:
    """How many questions a model may know by heart."""
    asked = sum(column.n for column in summary.columns if column.kind == "set")
    return f"{summary.seen} of the {asked} questions stand in the training data." if summary.seen else ""


def _reach(summary: Summary) -> str:
    """Which methods cannot write all answers, where they differ in it and the metric counts that as wrong."""
    counts = {row.unreachable for row in summary.rows}
    if len(counts) == 1 or not summary.metric.startswith("accuracy") or summary.metric.endswith("_reachable"):
        return ""
    methods = {count: [row.method for row in summary.rows if row.unreachable == count] for count in sorted(counts)}
    told = ", ".join(f"{count} with {listed(names)}" for count, names in methods.items())
    return f"Answers longer than the model may write count as wrong: {told}."


def _gaps(summary: Summary) -> str:
    count = len(summary.missing)
    return f"{count} run{' is' if count == 1 else 's are'} missing." if count else ""
