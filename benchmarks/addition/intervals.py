"""Paired differences over a few seeds, with Student's t."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from scipy import stats

from placevalue.evaluation.statistics import holm, seed_interval

LEVEL = 0.05
"""A difference is clear if chance alone would bring one as large with a lower probability."""


@dataclass(frozen=True)
class Difference:
    """The mean of paired differences, its 95% interval, and the probability of one as large by chance alone."""

    mean: float
    low: float
    high: float
    chance: float

    @property
    def is_clear(self) -> bool:
        """Whether the interval excludes 0."""
        return self.chance < LEVEL


def paired_difference(values: Sequence[float], rivals: Sequence[float]) -> Difference | None:
    """Compare values with rivals of the same seeds; None for fewer than two seeds."""
    gaps = [value - rival for value, rival in zip(values, rivals, strict=True)]
    if len(gaps) < 2:
        return None
    if np.ptp(gaps) == 0:
        return Difference(gaps[0], gaps[0], gaps[0], 1.0 if gaps[0] == 0 else 0.0)
    found = seed_interval(gaps)
    assert found.low is not None and found.high is not None
    return Difference(found.value, found.low, found.high, float(stats.ttest_1samp(gaps, 0).pvalue))


def surviving(chances: Sequence[float]) -> list[bool]:
    """Which of many comparisons remain clear after Holm's correction for their number."""
    return [chance <= LEVEL for chance in holm(chances)]
