"""Paired differences over a few seeds: Student's t, written out, so that the study needs no further package."""

import math
from collections.abc import Sequence
from dataclasses import dataclass

LEVEL = 0.05
"""Intervals leave out so much of what chance would give."""


@dataclass(frozen=True)
class Difference:
    """The mean of paired differences, its interval, and how often chance alone would bring one as large."""

    mean: float
    low: float
    high: float
    chance: float

    @property
    def is_clear(self) -> bool:
        """Whether the interval leaves out 0."""
        return self.chance < LEVEL


def paired_difference(values: Sequence[float], rivals: Sequence[float]) -> Difference | None:
    """Values against rivals of the same seeds; None where there are fewer than two of them."""
    gaps = [value - rival for value, rival in zip(values, rivals, strict=True)]
    count = len(gaps)
    if count < 2:
        return None
    mean = math.fsum(gaps) / count
    error = math.sqrt(math.fsum((gap - mean) ** 2 for gap in gaps) / (count - 1) / count)
    if error == 0:
        return Difference(mean, mean, mean, 1.0 if mean == 0 else 0.0)
    reach = t_quantile(1 - LEVEL / 2, count - 1) * error
    return Difference(mean, mean - reach, mean + reach, 2 * (1 - t_probability(abs(mean) / error, count - 1)))


def t_probability(t: float, freedom: int) -> float:
    """Student's distribution function at t >= 0, for whole degrees of freedom (Abramowitz and Stegun, 26.7.3-4)."""
    angle = math.atan(t / math.sqrt(freedom))
    sine, cosine = math.sin(angle), math.cos(angle)
    total, term = 0.0, 1.0 if freedom % 2 == 0 else cosine
    for k in range(2 + freedom % 2, freedom + 1, 2):
        total += term
        term *= cosine**2 * (k - 1) / k
    inside = sine * total if freedom % 2 == 0 else 2 / math.pi * (angle + sine * total)
    return 0.5 + inside / 2


def t_quantile(probability: float, freedom: int) -> float:
    """Where Student's distribution function reaches a probability of 0.5 or more, by halving."""
    low, high = 0.0, 1.0
    while t_probability(high, freedom) < probability:
        high *= 2
    for _ in range(100):
        middle = (low + high) / 2
        low, high = (middle, high) if t_probability(middle, freedom) < probability else (low, middle)
    return high


def surviving(chances: Sequence[float]) -> list[bool]:
    """Which of many comparisons remain clear after Holm's correction for their number."""
    kept = [False] * len(chances)
    for rank, index in enumerate(sorted(range(len(chances)), key=lambda index: chances[index])):
        if chances[index] * (len(chances) - rank) > LEVEL:
            break
        kept[index] = True
    return kept
