"""Compare the methods of an experiment: each over its seeds, and with a baseline."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Literal

import numpy as np

from placevalue.common.errors import ConfigError
from placevalue.common.records import Prediction
from placevalue.common.validation import one_of
from placevalue.data.copies import Copies
from placevalue.evaluation.metrics import METRICS
from placevalue.evaluation.scoring import group_rows, problem_units
from placevalue.evaluation.statistics import Groups, Interval, Units, Values, group_interval, holm, paired_test
from placevalue.reports.formatting import format_interval, format_value, listed
from placevalue.reports.results import Experiment
from placevalue.reports.trivial_rows import TrivialRows, trivial_rows

SIGNIFICANT = 0.05
BASELINE = "digits"  # the absolute row of the paper's tables


@dataclass(frozen=True)
class Column:
    """A column of a table."""

    kind: Literal["set", "mean", "unseen", "operation"]
    """`unseen` has the problems whose question copies none of the training data."""
    name: str
    n: int  # the number of problems; of the mean, the number of sets
    copies: int = 0  # how many of the column's questions copy one of the training data


@dataclass(frozen=True)
class Change:
    """A method's difference from the baseline, over the seeds that both have."""

    value: float
    low: float | None
    high: float | None
    p: float  # corrected by Holm's method for the methods of the column
    seeds: int


@dataclass(frozen=True)
class Cell:
    """A method's score in one column, and its change from the baseline."""

    score: Interval
    change: Change | None  # None for the baseline itself, if the two share no seed, and if the baseline has no score
    best: bool


@dataclass(frozen=True)
class Row:
    """One method over its seeds."""

    method: str
    seeds: tuple[int, ...]
    seconds: float  # training time, the mean over seeds
    cells: tuple[Cell | None, ...]  # one for each column; None if there is no value
    unreachable: int  # answers longer than the token limit; they count as wrong
    unreadable: tuple[int, int] = (0, 0)  # predictions of all seeds that could not be read back, and of how many
    covered: tuple[int, ...] = ()  # for each column, how many of its problems have a value


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
    copies: Copies  # of the training data, as far as that is available
    trivial: TrivialRows


def summarise(experiment: Experiment, baseline: str | None = None, metric: str = "accuracy_paper") -> Summary:
    """Average each method over its seeds, and compare it with the baseline: by default `digits`, else the first method.

    With several seeds, an interval accounts for the choice of both problems and seeds
    (`statistics.crossed_interval`). Changes are paired: the same problem and the same seed under both methods. With one
    seed, the score has the bootstrap interval of its record and the change that of `paired_test`; both account for the
    choice of problems only.
    """
    if metric not in METRICS:
        raise ConfigError(f"unknown metric {metric!r}: expected {one_of(METRICS, metric)}")
    methods = experiment.methods
    baseline = baseline or (BASELINE if BASELINE in methods else methods[0])
    if baseline not in methods:
        known = one_of(methods, baseline)
        raise ConfigError(f"the baseline {baseline!r} has no finished run in {experiment.folder}: expected {known}")
    methods = [baseline, *(each for each in methods if each != baseline)]
    values = {method: {run.seed: run.values(metric) for run in experiment.of(method)} for method in methods}
    asked = experiment.runs[0].rows
    units, columns = problem_units(asked), _columns(asked, experiment.copies)
    grouped = [[(chosen, units[chosen]) for chosen in groups] for groups in columns.values()]
    table = [
        _cells(experiment, column, groups, values, metric) for column, groups in zip(columns, grouped, strict=True)
    ]
    rows = []
    for method, *cells in zip(methods, *table, strict=True):
        runs = experiment.of(method)
        seconds = float(np.mean([run.train.durations["train"] for run in runs]))
        unreachable = max(sum(answer.reachable is False for answer in run.answers) for run in runs)
        readable = [answer.readable for run in runs for answer in run.answers]
        unread = readable.count(False), len(readable)
        valued = np.asarray(~np.isnan(np.stack([run.values(metric) for run in runs])).all(0))
        covered = tuple(sum(int(valued[chosen].sum()) for chosen in groups) for groups in columns.values())
        rows.append(Row(method, tuple(run.seed for run in runs), seconds, tuple(cells), unreachable, unread, covered))
    return Summary(
        *(experiment.name, experiment.model, metric, baseline, tuple(columns), tuple(rows), experiment.missing),
        copies=experiment.copies,
        trivial=trivial_rows(experiment, grouped, metric),
    )


def _columns(rows: Sequence[Prediction], copies: Copies) -> dict[Column, list[Units]]:
    """Every column with the groups of rows that it averages over."""
    sets, operations = group_rows([row.set for row in rows]), group_rows([row.operation for row in rows])
    copied = np.array([*copies.repeated, *copies.reworded], dtype=np.int64)

    def column(kind: Literal["set", "operation"], name: str, chosen: Units) -> Column:
        return Column(kind, name, len(chosen), int(np.isin(chosen, copied).sum()))

    found = {column("set", name, chosen): [chosen] for name, chosen in sets.items()}
    if len(sets) > 1:
        found[Column("mean", "mean over sets", len(sets), len(copied))] = list(sets.values())
    if 0 < len(copied) < len(rows):
        parts = [np.setdiff1d(chosen, copied) for chosen in sets.values()]  # averaged over sets, like the mean
        found[Column("unseen", "unseen", len(rows) - len(copied))] = [part for part in parts if len(part)]
    return found | {column("operation", name, operations[name]): [operations[name]] for name in sorted(operations)}


def _cells(
    experiment: Experiment, column: Column, groups: Groups, values: dict[str, dict[int, Values]], metric: str
) -> list[Cell | None]:
    """The cells of one column, one for each method; the first method is the baseline."""
    base, *others = values
    scores: dict[str, Interval] = {}
    for method, by_seed in values.items():
        if len(by_seed) > 1 or column.kind == "unseen":  # no record has the unseen problems alone
            if found := group_interval(np.stack(list(by_seed.values()), 1), groups):
                scores[method] = found[0]
        else:
            record = experiment.of(method)[0].score
            named = {"set": record.scores, "operation": record.operations, "mean": {column.name: record.averages}}
            if recorded := named[column.kind].get(column.name, {}).get(metric):
                scores[method] = Interval(**recorded)
    changes = {
        method: change
        for method in others
        if {base, method} <= scores.keys() and (change := _change(values[base], values[method], groups))
    }
    for method, p in zip(changes, holm([change.p for change in changes.values()]), strict=True):
        changes[method] = replace(changes[method], p=p)
    levels: dict[str, float] = {}
    for method, score in scores.items():
        levels[method] = _badness(score.value, metric)
        # A score over other problems than the baseline's is compared by its change from the baseline.
        if method in changes and score.n * len(values[base]) != scores[base].n * len(values[method]):
            levels[method] = _badness(scores[base].value + changes[method].value, metric)
    best = {method for method in levels if len(levels) > 1 and levels[method] <= min(levels.values()) + 1e-12}
    return [
        Cell(scores[method], changes.get(method), method in best) if method in scores else None for method in values
    ]


def _change(baseline: dict[int, Values], values: dict[int, Values], groups: Groups) -> Change | None:
    """A method's change from the baseline over the seeds of both, with an uncorrected p."""
    seeds = sorted(set(baseline) & set(values))
    if not seeds:
        return None
    first, second = (np.stack([each[seed] for seed in seeds], 1) for each in (baseline, values))
    if len(seeds) == 1 and len(groups) == 1:
        rows, units = groups[0]
        kept = ~np.isnan(first[rows, 0] + second[rows, 0])
        if not kept.any():
            return None
        test = paired_test(first[rows, 0][kept], second[rows, 0][kept], units[kept])
        return Change(test.difference, test.low, test.high, test.p, 1)
    found = group_interval(second - first, groups)
    return found and Change(found[0].value, found[0].low, found[0].high, found[1], len(seeds))


def _badness(value: float, metric: str) -> float:
    return {"higher": -value, "lower": value, "zero": abs(value)}[METRICS[metric].direction]


def is_gain(change: Change, metric: str, baseline: float) -> bool:
    """Whether a change improves on the baseline's score."""
    return _badness(baseline + change.value, metric) < _badness(baseline, metric)


def headline(summary: Summary) -> int:
    """The index of the column that conclusions are drawn from: the mean over sets, else the first set."""
    return next((index for index, column in enumerate(summary.columns) if column.kind == "mean"), 0)


def conclusion(summary: Summary) -> str:
    """What the intervals allow you to conclude, in words."""
    index, metric, baseline = headline(summary), summary.metric, summary.baseline
    column, base = summary.columns[index], summary.rows[0].cells[index]
    where = f"Over the {column.n} sets" if column.kind == "mean" else f"On {column.name}"
    unit = " points" if METRICS[metric].is_share else ""
    changes = {row.method: cell.change for row in summary.rows if (cell := row.cells[index]) and cell.change}
    unsure = [method for method, change in changes.items() if change.p >= SIGNIFICANT]
    differ = f"{listed(unsure)} {'does' if len(unsure) == 1 else 'do'} not differ significantly from {baseline}"
    found = []
    for method, change in changes.items():
        if base is not None and method not in unsure:
            better = "better" if is_gain(change, metric, base.score.value) else "worse"
            found.append(f"{method} is {better} than {baseline} ({_points(change, metric)}{unit})")
    if not changes:
        first = f"{where} there is nothing to compare {baseline} with."
    elif not found:
        spans = ", ".join(f"{method} {_points(changes[method], metric)}" for method in unsure)
        first = f"{where}, {differ}: {spans}{unit}."
    else:
        each = "each " if len(found) > 1 else ""
        first = f"{where}, {'; '.join(found)}, {each}with p < {SIGNIFICANT} after Holm's correction"
        first += f"; {differ}." if unsure else "."
    return " ".join(filter(None, (first, _coverage(changes), *_remarks(summary))))


def _points(change: Change, metric: str) -> str:
    span = format_interval(change.low, change.high, metric, signed=True)
    return f"{format_value(change.value, metric, signed=True)} {span}".strip()


def _coverage(changes: Mapping[str, Change]) -> str:
    """What the intervals of the changes account for."""
    if not changes:
        return ""
    single = [method for method, change in changes.items() if change.seeds == 1]
    counts = sorted({change.seeds for change in changes.values()} - {1})
    if not counts:
        only = "so the intervals account for the choice of problems only: another seed may change the order."
        return f"Every method was trained once, {only}"
    seeds = " to ".join(dict.fromkeys(map(str, (counts[0], counts[-1]))))
    but = f"; those of {listed(single)} rest on one seed and account for the problems only" if single else ""
    return f"The intervals account for the choice of problems and of seeds ({seeds} per method){but}."


def copy_remark(summary: Summary) -> str:
    """How many test questions copy training questions; empty if none does."""
    if not summary.copies:
        return ""
    asked = sum(column.n for column in summary.columns if column.kind == "set")
    return f"Copies of training questions among the {asked:,} test questions: {summary.copies}."


def _remarks(summary: Summary) -> Sequence[str]:
    """Questions that a model may know by heart, trivial answers, answers that it cannot write, missing runs."""
    found = [copy_remark(summary), summary.trivial.remark(headline(summary), summary.metric)]
    counts = sorted({row.unreachable for row in summary.rows})
    counted_wrong = summary.metric.startswith("accuracy") and not summary.metric.endswith("_reachable")
    if len(counts) > 1 and counted_wrong:
        methods = {count: [row.method for row in summary.rows if row.unreachable == count] for count in counts}
        parts = ", ".join(f"{count} for {listed(names)}" for count, names in methods.items())
        found.append(f"Answers longer than the token limit count as wrong: {parts}.")
    if unread := [f"{no:,} of {of:,} for {row.method}" for row in summary.rows for no, of in [row.unreadable] if no]:
        found.append(f"Predictions whose rewritten numbers cannot be read back count as wrong: {', '.join(unread)}.")
    if missing := len(summary.missing):
        found.append(f"{missing} run{' is' if missing == 1 else 's are'} missing.")
    return found
