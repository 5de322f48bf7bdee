"""How sure a mean is, and whether two runs differ: bootstrap, seeds, paired tests. Pure and seeded.

Problems are drawn, not rows: the ten FERMAT sets rewrite the same 1,111 problems, so the rows of one problem come and
go together. Where each row is a problem of its own, this is the ordinary bootstrap.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from placevalue.common.errors import DataError, PlacevalueError

DRAWS = 1000
COVERAGE = 0.95
_BLOCK = 2_000_000  # drawn units held in memory at once

Values = NDArray[np.float64]
Units = NDArray[np.int64]
Groups = Sequence[tuple[Units, Units]]
"""Rows, and the number of each row's problem, of every group that a mean is taken over."""


@dataclass(frozen=True)
class Interval:
    """A mean, the borders it lies between with 95% confidence, and over how many values it was taken."""

    value: float
    low: float | None
    high: float | None
    n: int


@dataclass(frozen=True)
class PairedTest:
    """Two runs on the same problems: the difference of the second from the first, and how likely chance makes it."""

    test: str
    n: int
    first: float
    second: float
    difference: float
    low: float | None
    high: float | None
    p: float
    only_first: int | None = None
    """Problems that only the first run got right, where right is all there is."""
    only_second: int | None = None


def resamples(units: int, draws: int = DRAWS, seed: int = 0) -> Iterator[Values]:
    """How often each unit is drawn when as many as there are are drawn with replacement: blocks of `(draws, units)`."""
    rng = np.random.default_rng(seed)
    block = max(1, _BLOCK // units)
    for start in range(0, draws, block):
        size = min(block, draws - start)
        drawn = rng.integers(units, size=(size, units)) + np.arange(size)[:, None] * units
        yield np.bincount(drawn.ravel(), minlength=size * units).reshape(size, units).astype(np.float64)


def unit_sums(values: Values, units: Units) -> tuple[Values, Values]:
    """Sums and counts of each unit's rows, NaN left out: two arrays `(units, columns)` of `values (rows, columns)`."""
    present = ~np.isnan(values)
    shape = (int(units.max()) + 1, values.shape[1])
    sums, counts = np.zeros(shape), np.zeros(shape)
    np.add.at(sums, units, np.where(present, values, 0.0))
    np.add.at(counts, units, present.astype(np.float64))
    return sums, counts


def drawn_means(values: Values, units: Units, draws: int = DRAWS, seed: int = 0) -> Values:
    """Each column's mean in each resample of the units: `(draws, columns)`, NaN where a resample has no value."""
    sums, counts = unit_sums(values, units)
    blocks = []
    for drawn in resamples(len(sums), draws, seed):
        totals, sizes = drawn @ sums, drawn @ counts
        blocks.append(np.divide(totals, sizes, out=np.full_like(totals, np.nan), where=sizes > 0))
    return np.concatenate(blocks)


def bootstrap(values: Values, units: Units | None = None, draws: int = DRAWS, seed: int = 0) -> list[Interval | None]:
    """The mean of every column with its percentile interval; None for a column without a value.

    Args:
        values: `(rows, columns)`, NaN where a row has no value.
        units: Which rows are drawn together, as numbers from 0; every row for itself where None.
        draws: How many resamples.
        seed: Makes the resamples; the same for every column.
    """
    units = np.arange(len(values)) if units is None else units
    means = drawn_means(values, units, draws, seed)
    found: list[Interval | None] = []
    for column, drawn in zip(values.T, means.T, strict=True):
        present = ~np.isnan(column)
        alone = len(np.unique(units[present])) < 2
        low, high = (None, None) if alone else borders(drawn)
        n = int(present.sum())
        found.append(Interval(float(column[present].mean()), low, high, n) if n else None)
    return found


def borders(drawn: Values) -> tuple[float, float] | tuple[None, None]:
    """The middle 95% of what was drawn, NaN left out; none where nothing is left."""
    present = drawn[~np.isnan(drawn)]
    if not len(present):
        return None, None
    tail = (1 - COVERAGE) / 2
    low, high = np.quantile(present, [tail, 1 - tail])
    return float(low), float(high)


def seed_interval(values: Sequence[float]) -> Interval:
    """The mean over runs that differ in their seed alone, with its t-interval; no borders for a single run.

    Example:
        >>> seed_interval([0.25, 0.35]).value
        0.3
    """
    if not values:
        raise DataError("no values were given: expected one for each seed")
    mean = float(np.mean(values))
    if len(values) == 1:
        return Interval(mean, None, None, 1)
    stats: Any = _stats()
    half = stats.t.ppf((1 + COVERAGE) / 2, len(values) - 1) * np.std(values, ddof=1) / np.sqrt(len(values))
    return Interval(mean, float(mean - half), float(mean + half), len(values))


def spread(values: Values, groups: Groups) -> Values | None:
    """What each problem adds to a mean over groups, `(problems, seeds)`, so that its mean is that of the groups.

    Rows of one problem go together, and a group with few rows counts as much as any other. None without a value.

    Args:
        values: `(rows, seeds)`, NaN where a row has no value.
        groups: The rows of each group, and the number of each row's problem.
    """
    parts = []
    present = [(rows[~np.isnan(values[rows]).any(1)], rows, units) for rows, units in groups]
    for kept, rows, units in present:
        if len(kept):
            found = values[kept]
            parts.append((found - found.mean(0), found.mean(0), units[np.isin(rows, kept)], len(kept)))
    if not parts:
        return None
    problems = np.unique(np.concatenate([units for _, _, units, _ in parts]))
    added = np.zeros((len(problems), values.shape[1]))
    for apart, _, units, size in parts:
        np.add.at(added, np.searchsorted(problems, units), apart * len(problems) / size / len(parts))
    total: Values = added + np.mean([mean for _, mean, _, _ in parts], axis=0)
    return total


def crossed_interval(values: Values) -> tuple[Interval, float]:
    """The mean of problems that several seeds answered, sure against other problems and other seeds; and its p.

    Problems and seeds are both drawn from more than there are, so both add to the variance of the mean: that of the
    problems' means, that of the seeds' means, less what is counted in both. The degrees of freedom are Satterthwaite's,
    and p is that of a mean of 0. With one seed only the problems count, with one problem only the seeds.

    Args:
        values: `(problems, seeds)`.

    Example:
        >>> crossed_interval(np.array([[1.0, 1.0], [0.0, 1.0]]))[0].value
        0.75
    """
    problems, seeds = values.shape
    mean = float(values.mean())
    sides = [
        (side.var(ddof=1) / len(side), len(side) - 1) for side in (values.mean(1), values.mean(0)) if len(side) > 1
    ]
    if not sides:
        return Interval(mean, None, None, values.size), 1.0
    variance = sum(part for part, _ in sides)
    if len(sides) == 2:
        rest = values - values.mean(1, keepdims=True) - values.mean(0) + mean
        shared = (rest**2).sum() / ((problems - 1) * (seeds - 1)) / values.size
        variance = max(variance - shared, *(part for part, _ in sides))
    if variance < 1e-18:  # every value is the same: as often as all signs fall alike
        return Interval(mean, mean, mean, values.size), 1.0 if abs(mean) < 1e-9 else 2.0 ** (1 - problems)
    freedom = variance**2 / sum(part**2 / freedom for part, freedom in sides)
    stats: Any = _stats()
    half = float(stats.t.ppf((1 + COVERAGE) / 2, freedom) * np.sqrt(variance))
    p = float(2 * stats.t.sf(abs(mean) / np.sqrt(variance), freedom))
    return Interval(mean, mean - half, mean + half, values.size), p


def holm(chances: Sequence[float]) -> list[float]:
    """p-values corrected for their number by Holm's steps, in the order given.

    Example:
        >>> holm([0.04, 0.01])
        [0.04, 0.02]
    """
    found = [0.0] * len(chances)
    highest = 0.0
    for rank, index in enumerate(sorted(range(len(chances)), key=chances.__getitem__)):
        highest = max(highest, min(1.0, (len(chances) - rank) * chances[index]))
        found[index] = highest
    return found


def mcnemar(first: Values, second: Values) -> tuple[float, int, int]:
    """Exact McNemar test of two columns of right (1) and wrong (0): p, only the first right, only the second."""
    only_first, only_second = int(((first == 1) & (second == 0)).sum()), int(((first == 0) & (second == 1)).sum())
    if not only_first + only_second:
        return 1.0, 0, 0
    return float(_stats().binomtest(only_first, only_first + only_second).pvalue), only_first, only_second


def permutation_p(differences: Values, units: Units, draws: int = DRAWS, seed: int = 0) -> float:
    """How often a mean difference at least as large comes about when each unit's sign is drawn by lot."""
    sums = unit_sums(differences[:, None], units)[0][:, 0]
    least = abs(sums.sum()) - 1e-9 * np.abs(sums).sum()  # a tie up to rounding is a tie
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
    """Two runs' values on the same problems, `(problems,)` each: exact McNemar where all are 0 or 1, else permutation.

    McNemar's test takes rows for independent, so rows that are drawn together (`units`) always get the permutation.
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
        raise PlacevalueError("scipy is missing: pip install 'placevalue[evaluate]'") from None
    return stats
