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
from placevalue.evaluation.statistics import (
    Groups,
    Interval,
    Units,
    Values,
    group_interval,
    holm,
    paired_test,
    smallest_visible,
)
from placevalue.reports.costs import tuning_remark
from placevalue.reports.results import Experiment
from placevalue.reports.trivial_rows import TrivialRows, trivial_rows

SIGNIFICANT = 0.05
Pair = tuple[str, str]


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
    """A method's difference from another, by default the baseline, over the seeds that both have."""

    value: float
    low: float | None
    high: float | None
    p: float  # corrected by Holm's method for the contrasts of the column; not corrected if it is exploratory
    seeds: int
    exploratory: bool = False  # whether the recipe has contrasts and this is none of them
    visible: float | None = None
    """The smallest difference that would have been significant; see `statistics.smallest_visible`."""

    @property
    def is_shown(self) -> bool:
        """Whether more than chance is shown: never from one seed, nor by what was not fixed beforehand."""
        return self.p < SIGNIFICANT and self.seeds > 1 and not self.exploratory


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
class Contrast:
    """The difference of two methods, none of them the baseline, that the recipe fixed beforehand."""

    first: str
    second: str
    changes: tuple[Change | None, ...]
    """The first's difference from the second in each column."""

    @property
    def name(self) -> str:
        """As `agg-before − pause`."""
        return f"{self.first} − {self.second}"


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
    contrasts: tuple[Contrast, ...] = ()
    """Those that are not in the rows, which have the baseline's."""
    tuning: str = ""
    """How each method got its own values, in words; empty without `tuning`."""


def summarise(experiment: Experiment, baseline: str | None = None, metric: str = "accuracy_paper") -> Summary:
    """Average each method over its seeds, and compare it with the baseline: by default the recipe's.

    With several seeds, an interval accounts for the choice of both problems and seeds
    (`statistics.crossed_interval`). Changes are paired: the same problem and the same seed under both methods. With one
    seed, the score has the bootstrap interval of its record and the change that of `paired_test`; both account for the
    choice of problems only.
    """
    if metric not in METRICS:
        raise ConfigError(f"unknown metric {metric!r}: expected {one_of(METRICS, metric)}")
    methods = experiment.methods
    baseline = baseline or experiment.baseline
    if baseline not in methods:
        known = one_of(methods, baseline)
        raise ConfigError(f"the baseline {baseline!r} has no finished run in {experiment.folder}: expected {known}")
    methods = [baseline, *(each for each in methods if each != baseline)]
    values = {method: {run.seed: run.values(metric) for run in experiment.of(method)} for method in methods}
    asked = experiment.runs[0].rows
    units, columns = problem_units(asked), _columns(asked, experiment.copies)
    grouped = [[(chosen, units[chosen]) for chosen in groups] for groups in columns.values()]
    fixed = [(first, second) for first, second in experiment.contrasts if {first, second} <= values.keys()]
    changes = [_changes(values, groups, fixed if experiment.contrasts else None) for groups in grouped]
    table = [
        _cells(experiment, column, groups, values, metric, found)
        for column, groups, found in zip(columns, grouped, changes, strict=True)
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
        contrasts=tuple(
            Contrast(*pair, tuple(found.get(pair) for found in changes)) for pair in fixed if baseline not in pair
        ),
        tuning=tuning_remark(experiment),
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


def _changes(values: dict[str, dict[int, Values]], groups: Groups, fixed: Sequence[Pair] | None) -> dict[Pair, Change]:
    """The differences of each method from the first, the baseline, and of the pairs that were fixed beforehand.

    p is corrected over those pairs, or over all methods if the recipe has none.
    """
    base, *others = values
    pairs = [(method, base) for method in others]
    turned = [pair if base not in pair else (next(each for each in pair if each != base), base) for pair in fixed or ()]
    found = {
        pair: change
        for pair in dict.fromkeys([*pairs, *turned])
        if (change := _change(values[pair[1]], values[pair[0]], groups))
    }
    counted = [pair for pair in found if fixed is None or pair in turned]
    for pair in found:
        first, second = (_shared(values[each], values[other]) for each, other in (pair, pair[::-1]))
        visible = smallest_visible(first - second, groups, max(1, len(counted)))
        found[pair] = replace(found[pair], exploratory=pair not in counted, visible=visible)
    for pair, p in zip(counted, holm([found[pair].p for pair in counted]), strict=True):
        found[pair] = replace(found[pair], p=p)
    return found


def _shared(values: dict[int, Values], others: dict[int, Values]) -> Values:
    """The values of the seeds that both have, `(rows, seeds)`."""
    return np.stack([values[seed] for seed in sorted(set(values) & set(others))], 1)


def _cells(
    experiment: Experiment,
    column: Column,
    groups: Groups,
    values: dict[str, dict[int, Values]],
    metric: str,
    found: Mapping[Pair, Change],
) -> list[Cell | None]:
    """The cells of one column, one for each method; the first method is the baseline."""
    base = next(iter(values))
    scores: dict[str, Interval] = {}
    for method, by_seed in values.items():
        if len(by_seed) > 1 or column.kind == "unseen":  # no record has the unseen problems alone
            if whole := group_interval(np.stack(list(by_seed.values()), 1), groups):
                scores[method] = whole[0]
        else:
            record = experiment.of(method)[0].score
            named = {"set": record.scores, "operation": record.operations, "mean": {column.name: record.averages}}
            if recorded := named[column.kind].get(column.name, {}).get(metric):
                scores[method] = Interval(**recorded)
    changes = {
        method: change for (method, other), change in found.items() if other == base and {base, method} <= scores.keys()
    }
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
    """A method's change from another over the seeds of both, with an uncorrected p."""
    seeds = sorted(set(baseline) & set(values))
    if not seeds:
        return None
    first, second = _shared(baseline, values), _shared(values, baseline)
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
