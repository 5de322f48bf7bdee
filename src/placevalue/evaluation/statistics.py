"""Confidence intervals of means and tests of differences: bootstrap, intervals over seeds, paired tests.

The bootstrap resamples problems, not rows: the ten FERMAT sets rewrite the same 1,111 problems, so the rows of one
problem are drawn together. If each row is a separate problem, this is the ordinary bootstrap.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from placevalue.common.errors import DataError, PlacevalueError
from placevalue.evaluation.metrics import Values
from placevalue.evaluation.packed import Packed

DRAWS = 1000
COVERAGE = 0.95
_BLOCK = 2_000_000  # drawn units in memory at once
_PART = 1_000_000  # values and counts of units in memory at once, if not all are

Units = NDArray[np.signedinteger[Any]]
Groups = Sequence[tuple[Units, Units]]
"""The rows of every group that a mean is taken over, and the number of each row's problem."""


@dataclass(frozen=True)
class Interval:
    """A mean of `n` values with its 95% confidence interval."""

    value: float
    low: float | None
    high: float | None
    n: int


@dataclass(frozen=True)
class PairedTest:
    """Two runs on the same problems: the second's difference from the first, with its interval and p-value."""

    test: str
    n: int
    first: float
    second: float
    difference: float
    low: float | None
    high: float | None
    p: float
    only_first: int | None = None  # problems that only the first run got right; None unless every value is 0 or 1
    only_second: int | None = None


def resamples(units: int, draws: int = DRAWS, seed: int = 0) -> Iterator[Values]:
    """How often each unit is drawn in each resample with replacement, in blocks of `(draws, units)`."""
    rng = np.random.default_rng(seed)
    block = max(1, _BLOCK // units)
    for start in range(0, draws, block):
        drawn = np.empty((min(block, draws - start), units))
        for row in drawn:
            row[:] = np.bincount(rng.integers(units, size=units), minlength=units)
        yield drawn


def unit_sums(values: Values, units: Units) -> tuple[Values, Values]:
    """Sums and counts of each unit's rows, ignoring NaN: two arrays `(units, columns)` of `values (rows, columns)`."""
    names, numbers = np.unique(units, return_inverse=True)
    present = ~np.isnan(values)
    sums, counts = np.zeros((2, len(names), values.shape[1]))
    np.add.at(sums, numbers, np.where(present, values, 0.0))
    np.add.at(counts, numbers, present.astype(np.float64))
    return sums, counts


def drawn_means(values: Values, units: Units, draws: int = DRAWS, seed: int = 0) -> Values:
    """Each column's mean in each resample of the units: `(draws, columns)`, NaN if a resample has no value."""
    sums, counts = unit_sums(values, units)
    blocks = []
    for drawn in resamples(len(sums), draws, seed):
        totals, sizes = drawn @ sums, drawn @ counts
        blocks.append(np.divide(totals, sizes, out=np.full_like(totals, np.nan), where=sizes > 0))
    return np.concatenate(blocks)


def bootstrap(values: Values, units: Units | None = None, draws: int = DRAWS, seed: int = 0) -> list[Interval | None]:
    """The mean of every column with its percentile interval; None for a column without values.

    `values` are `(rows, columns)`, NaN if a row has no value. Rows with the same unit are drawn together; by default
    every row is drawn alone. The resamples are the same for every column.
    """
    units = np.arange(len(values)) if units is None else units
    means = drawn_means(values, units, draws, seed)
    found: list[Interval | None] = []
    for column, drawn in zip(values.T, means.T, strict=True):
        present = column[kept := ~np.isnan(column)]
        low, high = borders(drawn) if len(np.unique(units[kept])) > 1 else (None, None)
        found.append(Interval(float(present.mean()), low, high, len(present)) if len(present) else None)
    return found


def bootstrap_mean(
    values: Values, units: Units, groups: Sequence[Units], draws: int = DRAWS, seed: int = 0
) -> list[Interval | None]:
    """Like `bootstrap`, for the mean over groups of rows in which a column has values; `n` is the number of groups."""
    rows, columns = values.shape
    apart = np.full((rows, len(groups), columns), np.nan)
    for index, chosen in enumerate(groups):
        apart[chosen, index] = values[chosen]
    drawn = drawn_means(apart.reshape(rows, -1), units, draws, seed).reshape(draws, len(groups), columns)
    found: list[Interval | None] = []
    for column in range(columns):
        having = np.flatnonzero(~np.isnan(apart[:, :, column]).all(0))
        low, high = borders(drawn[:, having, column].mean(1)) if len(having) else (None, None)
        means = [np.nanmean(apart[:, index, column]) for index in having]
        found.append(Interval(float(np.mean(means)), low, high, len(having)) if means else None)
    return found


def score_groups(
    values: Packed, units: Units, groups: Sequence[Units], draws: int = DRAWS, seed: int = 0
) -> list[Interval | None]:
    """What `bootstrap` finds for the rows of one group, or `bootstrap_mean` for several, in bounded memory.

    Few values are unpacked and scored all at once. Of many, the sums of each group's units stay packed, and parts of
    them are multiplied with what was drawn, which can change the last digit of an interval.
    """
    if sum(map(len, groups)) * len(groups) * values.columns <= _PART * 4:
        if len(groups) == 1:
            return bootstrap(values.take(groups[0]), units[groups[0]], draws, seed)
        return bootstrap_mean(values.take(np.arange(len(values))), units, groups, draws, seed)
    drawn = _drawn_in_parts(values, units, groups, draws, seed)
    found: list[Interval | None] = []
    for column in range(values.columns):
        every = values.column(column)
        present = [chosen[~np.isnan(every[chosen])] for chosen in groups]
        having = [index for index, rows in enumerate(present) if len(rows)]
        if not having:
            found.append(None)
            continue
        low, high = borders(drawn[:, having, column].mean(1))
        if len(groups) == 1 and len(np.unique(units[present[0]])) < 2:
            low, high = None, None
        mean = float(np.mean([every[present[index]].mean() for index in having]))
        found.append(Interval(mean, low, high, len(having) if len(groups) > 1 else len(present[0])))
    return found


def _drawn_in_parts(values: Packed, units: Units, groups: Sequence[Units], draws: int, seed: int) -> Values:
    """The mean of each column and group in each resample of the groups' units: `(draws, groups, columns)`."""
    names = np.unique(units[np.concatenate(groups)])
    step = max(1, _PART // values.columns)
    parts = []
    for rows in groups:
        rows = rows[np.argsort(units[rows], kind="stable")]
        own, firsts = np.unique(units[rows], return_index=True)
        cuts = [*firsts[::step].tolist(), len(rows)]
        summed = [unit_sums(values.take(rows[a:b]), units[rows[a:b]]) for a, b in pairwise(cuts)]
        sums, counts = (Packed(each) for each in zip(*summed, strict=True))
        parts.append((np.searchsorted(names, own), sums, counts))
    means = []
    for drawn in resamples(len(names), draws, seed):
        found = np.full((len(drawn), len(groups), values.columns), np.nan)
        for index, (own, sums, counts) in enumerate(parts):
            totals, sizes = np.zeros((2, len(drawn), values.columns))
            for start in range(0, len(own), step):
                chosen = np.arange(start, min(start + step, len(own)))
                totals += drawn[:, own[chosen]] @ sums.take(chosen)
                sizes += drawn[:, own[chosen]] @ counts.take(chosen)
            np.divide(totals, sizes, out=found[:, index], where=sizes > 0)
        means.append(found)
    return np.concatenate(means)


def borders(drawn: Values) -> tuple[float, float] | tuple[None, None]:
    """The bounds of the middle 95%, ignoring NaN; None without values."""
    present = drawn[~np.isnan(drawn)]
    if not len(present):
        return None, None
    tail = (1 - COVERAGE) / 2
    low, high = np.quantile(present, [tail, 1 - tail])
    return float(low), float(high)


def seed_interval(values: Sequence[float]) -> Interval:
    """The mean over runs that differ in their seed only, with its t-interval; a single run has no bounds.

    Example:
        >>> seed_interval([0.25, 0.35]).value
        0.3
    """
    if not values:
        raise DataError("no values were given: expected one for each seed")
    return crossed_interval(np.array([values], dtype=np.float64))[0]


def spread(values: Values, groups: Groups) -> Values | None:
    """What each problem adds to a mean over groups: `(problems, seeds)`, with the same mean; None without values.

    The rows of one problem are added up, and a group with few rows counts as much as any other. `values` are
    `(rows, seeds)`, NaN if a row has no value.
    """
    parts = []
    for rows, units in groups:
        kept = ~np.isnan(values[rows]).any(1)
        if kept.any():
            parts.append((values[rows[kept]], units[kept]))
    if not parts:
        return None
    problems = np.unique(np.concatenate([units for _, units in parts]))
    added = np.zeros((len(problems), values.shape[1]))
    for found, units in parts:
        share = (found - found.mean(0)) * len(problems) / len(found) / len(parts)
        np.add.at(added, np.searchsorted(problems, units), share)
    total: Values = added + np.mean([found.mean(0) for found, _ in parts], axis=0)
    return total


def group_interval(values: Values, groups: Groups, coverage: float = COVERAGE) -> tuple[Interval, float] | None:
    """The `crossed_interval` of a mean over groups, and its p; None without values. The arguments are `spread`'s."""
    drawn = spread(values, groups)
    return None if drawn is None else crossed_interval(drawn, coverage)


def smallest_visible(differences: Values, groups: Groups, comparisons: int = 1) -> float | None:
    """The smallest mean difference that would have been significant, given how these differences vary.

    It is half of the interval of the difference, at the level that Holm's correction asks of the clearest of as many
    comparisons. A true difference of this size is missed half of the time. None if there is no interval.
    """
    found = group_interval(differences, groups, 1 - (1 - COVERAGE) / comparisons)
    if found is None or found[0].low is None or found[0].high is None:
        return None
    return (found[0].high - found[0].low) / 2


def crossed_interval(values: Values, coverage: float = COVERAGE) -> tuple[Interval, float]:
    """The mean of problems answered under several seeds, its interval over both, and the p of a mean of 0.

    Problems and seeds are both samples, so both add to the variance of the mean: the variance of the problems' means
    plus that of the seeds' means, minus what both count. The degrees of freedom are Satterthwaite's. With one seed
    only the problems count, with one problem only the seeds. `values` are `(problems, seeds)`.
    """
    problems, seeds = values.shape
    mean = float(values.mean())
    means = [each for each in (values.mean(1), values.mean(0)) if len(each) > 1]
    sides = [(each.var(ddof=1) / len(each), len(each) - 1) for each in means]
    if not sides:
        return Interval(mean, None, None, values.size), 1.0
    variance = sum(part for part, _ in sides)
    if len(sides) == 2:
        rest = values - values.mean(1, keepdims=True) - values.mean(0) + mean
        shared = (rest**2).sum() / ((problems - 1) * (seeds - 1)) / values.size
        variance = max(variance - shared, *(part for part, _ in sides))
    if variance < 1e-18:  # all values are equal: p is that of a sign test
        return Interval(mean, mean, mean, values.size), 1.0 if abs(mean) < 1e-9 else 2.0 ** (1 - problems)
    freedom = variance**2 / sum(part**2 / freedom for part, freedom in sides)
    stats = _stats()
    half = float(stats.t.ppf((1 + coverage) / 2, freedom) * np.sqrt(variance))
    p = float(2 * stats.t.sf(abs(mean) / np.sqrt(variance), freedom))
    return Interval(mean, mean - half, mean + half, values.size), p


def holm(chances: Sequence[float]) -> list[float]:
    """p-values corrected by Holm's method, in the order given."""
    found = [0.0] * len(chances)
    highest = 0.0
    for rank, index in enumerate(sorted(range(len(chances)), key=chances.__getitem__)):
        highest = max(highest, min(1.0, (len(chances) - rank) * chances[index]))
        found[index] = highest
    return found


def mcnemar(first: Values, second: Values) -> tuple[float, int, int]:
    """Exact McNemar test of two columns of 0 and 1: p, and how many only the first or only the second has right."""
    only_first, only_second = int(((first == 1) & (second == 0)).sum()), int(((first == 0) & (second == 1)).sum())
    differing = only_first + only_second
    p = float(_stats().binomtest(only_first, differing).pvalue) if differing else 1.0
    return p, only_first, only_second


def permutation_p(differences: Values, units: Units, draws: int = DRAWS, seed: int = 0) -> float:
    """How often a mean difference at least as large occurs when each unit's sign is random."""
    sums = unit_sums(differences[:, None], units)[0][:, 0]
    least = abs(sums.sum()) - 1e-9 * np.abs(sums).sum()  # equal up to rounding is equal
    rng = np.random.default_rng(seed)
    block = max(1, _BLOCK // len(sums))
    hits = 0
    for start in range(0, draws, block):
        signs = rng.integers(2, size=(min(block, draws - start), len(sums))) * 2.0 - 1
        hits += int((np.abs(signs @ sums) >= least).sum())
    return (hits + 1) / (draws + 1)


def paired_test(
    first: Values, second: Values, units: Units | None = None, draws: int = DRAWS, seed: int = 0
) -> PairedTest:
    """Compare two runs' values, `(problems,)` each: exact McNemar test if all are 0 or 1, else permutation test.

    McNemar's test assumes independent rows, so rows that are drawn together always get the permutation test.
    """
    together = np.arange(len(first)) if units is None else units
    difference = bootstrap((second - first)[:, None], together, draws, seed)[0]
    assert difference is not None
    shared = difference.n, float(first.mean()), float(second.mean()), difference.value, difference.low, difference.high
    binary = bool(np.isin(first, (0, 1)).all() and np.isin(second, (0, 1)).all())
    if binary and len(np.unique(together)) == len(first):
        return PairedTest("exact McNemar", *shared, *mcnemar(first, second))
    return PairedTest("permutation", *shared, permutation_p(second - first, together, draws, seed))


def _stats() -> Any:
    try:
        from scipy import stats
    except ImportError:
        raise PlacevalueError("scipy is missing: pip install 'placevalue[all]'") from None
    return stats
