"""Neighbourhood F1: are the nearest number vectors those of the nearest numbers?

For each number below 10^longest, the natural neighbours are the k nearest numbers, and the embedding neighbours are the
numbers with the k nearest vectors. Both sets have k members, so precision, recall and F1 are all the share they have in
common. If distances tie (85 and 58 under `sum`), each tied number counts with the probability that it is drawn.

The search is exact. Linear aggregates lie in the span of the ten digit vectors, so rotating these onto ten axes keeps
all distances, and a million numbers take seconds. Aggregates that ignore the order of digits have few different values,
so numbers are searched by class.
"""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from placevalue.common.errors import ConfigError
from placevalue.numbers.aggregation import Aggregation, find_aggregation
from placevalue.numbers.spans import Digits

Array = np.ndarray
Progress = Callable[[int], object]

_TIE = 1e-9  # distances that differ by less than this times the vectors' size tie
_CHUNK = 1 << 16


def digits_of(numbers: Tensor) -> Digits:
    """The digits of whole numbers of the same length, one number in each row."""
    length = len(str(int(numbers[0])))
    return _as_digits(numbers[:, None] // 10 ** torch.arange(length - 1, -1, -1) % 10)


def _as_digits(values: Tensor) -> Digits:
    """Whole numbers from their digits `(count, length)`."""
    length, whole = values.shape[1], torch.ones_like(values)
    places = torch.arange(length - 1, -1, -1).expand_as(values)
    return Digits(values, places, whole * length, whole * 0, whole.bool(), 1)


def number_vectors(embeddings: Tensor, aggregation: str | Aggregation, longest: int) -> Tensor:
    """The vectors of all numbers of up to `longest` digits, in order: `(10^longest, dim)`."""
    function = find_aggregation(aggregation)
    return torch.cat([function(digits_of(part), embeddings)[:, 0] for part in _parts(longest)])


def _parts(longest: int) -> Iterator[Tensor]:
    """All numbers of up to `longest` digits, in chunks of the same length."""
    for length in range(1, longest + 1):
        first = 0 if length == 1 else 10 ** (length - 1)
        yield from torch.arange(first, 10**length).split(_CHUNK)


@dataclass(frozen=True)
class NumberSpace:
    """The result of an exact search."""

    shares: Array
    """For each number, the share of neighbours that are natural and embedding neighbours."""
    closest: float
    """The smallest distance between the vectors of two different numbers."""

    def f1(self, lengths: Iterable[int]) -> dict[int, float]:
        """The mean share of the numbers of each length."""
        return {n: float(self.shares[0 if n == 1 else 10 ** (n - 1) : 10**n].mean()) for n in lengths}


def neighbourhood_f1(
    digit_embeddings: Tensor,
    aggregation: str | Aggregation,
    lengths: Iterable[int] = range(1, 7),
    k: int = 10,
    progress: Progress | None = None,
) -> dict[int, float]:
    """Measure how well embedding neighbours match natural neighbours, by number of digits.

    Args:
        digit_embeddings: `(10, dim)`, the embeddings of the digits 0 to 9.
        aggregation: A name in `AGGREGATIONS`, or your own function.
        lengths: The lengths to report; neighbours come from all numbers up to the longest.
        k: The size of a neighbourhood.
        progress: Called with the number of numbers done since the last call.

    Example:
        >>> neighbourhood_f1(model.get_input_embeddings().weight[digit_ids], "weighted")  # doctest: +SKIP
    """
    lengths = sorted(set(lengths))
    faults = []
    if digit_embeddings.dim() != 2 or digit_embeddings.shape[0] != 10:
        faults.append(f"digit_embeddings has the shape {tuple(digit_embeddings.shape)}: expected (10, dim)")
    if not lengths or lengths[0] < 1 or lengths[-1] > 7:
        faults.append(f"lengths={lengths}: expected some of 1 to 7")
    elif not 1 <= k < 10 ** lengths[-1]:
        faults.append(f"k={k}: expected 1 to {10 ** lengths[-1] - 1}, the number of possible neighbours")
    if faults:
        raise ConfigError("; ".join(faults))
    return search(digit_embeddings, aggregation, lengths[-1], k, progress).f1(lengths)


def search(
    digit_embeddings: Tensor,
    aggregation: str | Aggregation,
    longest: int,
    k: int = 10,
    progress: Progress | None = None,
) -> NumberSpace:
    """Search all numbers of up to `longest` digits."""
    rows, function = digit_embeddings.detach().double().cpu(), find_aggregation(aggregation)
    rotated = torch.linalg.qr(rows.T, mode="r").R.T
    if _rotates(function, rows, rotated):
        rows = rotated
    if _ignores_order(function, rows):
        return _search_classes(rows, function, longest, k, progress)
    return search_vectors(number_vectors(rows, function, longest).numpy(), k, progress)


def _samples() -> list[Digits]:
    generator = torch.Generator().manual_seed(0)
    return [digits_of(torch.randint(10**n, 10 ** (n + 1), (50,), generator=generator)) for n in range(1, 6)]


def _rotates(function: Aggregation, rows: Tensor, rotated: Tensor) -> bool:
    """Whether rotating the embeddings rotates the aggregates, so that ten dimensions are enough for distances."""
    for digits in _samples():
        full, small = function(digits, rows)[:, 0], function(digits, rotated)[:, 0]
        if not torch.allclose(full @ full.T, small @ small.T, rtol=1e-9):
            return False
    return True


def _ignores_order(function: Aggregation, rows: Tensor) -> bool:
    """Whether the order of a number's digits does not matter, as for sum, mean, max, min and median."""
    for digits in _samples():
        rolled, swapped = digits.values.roll(1, 1), digits.values.clone()
        swapped[:, :2] = swapped[:, :2].flip(1)
        # These two generate every order; reversing alone would miss functions that treat both ends the same.
        for other in (rolled, swapped):
            if not torch.allclose(function(digits, rows), function(_as_digits(other), rows), rtol=1e-12):
                return False
    return True


def natural_neighbours(number: int, pool: int, k: int) -> dict[int, float]:
    """The k nearest numbers below `pool` with their weights: 1, or less if several tie for the last places."""
    near: dict[int, float] = {}
    for distance in range(1, pool):
        tied = [m for m in (number - distance, number + distance) if 0 <= m < pool]
        near |= dict.fromkeys(tied, min(1.0, (k - len(near)) / len(tied)) if tied else 0.0)
        if len(near) >= k:
            break
    return near


def _natural(first: int, last: int, pool: int, k: int) -> tuple[Array, Array]:
    """`natural_neighbours` of the numbers from `first` to `last`: `(count, k + 1)` numbers and their weights."""
    numbers = np.arange(first, last)[:, None]
    # Away from both ends every neighbourhood has the same shape.
    reach = (k + 1) // 2
    steps = np.concatenate([np.arange(-reach, 0), np.arange(1, reach + 1)])
    found, belongs = numbers + steps, np.where(np.abs(steps) <= k // 2, 1.0, 0.5) * np.ones((len(numbers), 1))
    for row in np.flatnonzero((numbers[:, 0] < k) | (numbers[:, 0] >= pool - k)):
        near = natural_neighbours(first + int(row), pool, k)
        found[row], belongs[row] = 0, 0.0
        found[row, : len(near)], belongs[row, : len(near)] = list(near), list(near.values())
    return found, belongs


def search_vectors(vectors: Array, k: int, progress: Progress | None = None) -> NumberSpace:
    """`search` among any vectors `(pool, dim)` of the numbers 0, 1, 2, .."""
    from scipy.spatial import cKDTree

    pool = len(vectors)
    spread = float(np.abs(vectors).max()) or 1.0
    tree = cKDTree(vectors)
    shares, closest = np.empty(pool), np.inf
    for first in range(0, pool, _CHUNK):
        left, wanted = np.arange(first, min(first + _CHUNK, pool)), min(k + 2, pool)
        while len(left):
            distances, found = tree.query(vectors[left], k=wanted, workers=-1)
            # The distance of the k-th neighbour, and whether all that tie with it were found.
            edge, closest = distances[:, k], min(closest, float(distances[:, 1].min()))
            done = (distances[:, -1] > edge + _TIE * spread) | (wanted == pool)
            shares[left[done]] = _common(left[done], found[done], distances[done], edge[done], k, pool, spread)
            left, wanted = left[~done], min(4 * wanted, pool)
        if progress is not None:
            progress(min(_CHUNK, pool - first))
    return NumberSpace(shares, closest)


def _common(numbers: Array, found: Array, distances: Array, edge: Array, k: int, pool: int, spread: float) -> Array:
    """The shares of some numbers, from their nearest vectors and all that tie with the last."""
    if not len(numbers):
        return np.empty(0)
    others = found != numbers[:, None]
    closer = others & (distances < edge[:, None] - _TIE * spread)
    tied = others & ~closer & (distances <= edge[:, None] + _TIE * spread)
    weights = closer + tied * ((k - closer.sum(1)) / np.maximum(tied.sum(1), 1))[:, None]
    first = int(numbers.min())
    near, natural = (each[numbers - first] for each in _natural(first, int(numbers.max()) + 1, pool, k))
    shares = np.zeros(len(numbers))
    for column in range(near.shape[1]):
        shares += natural[:, column] * (weights * (found == near[:, column, None])).sum(1)
    return shares / k


def _search_classes(
    rows: Tensor, function: Aggregation, longest: int, k: int, progress: Progress | None
) -> NumberSpace:
    """`search` if the order of digits does not matter, so that all numbers of a class share one vector."""
    from scipy.spatial.distance import cdist

    # A class is a 1, which keeps lengths apart, followed by its digits in descending order.
    keys = []
    for part in _parts(longest):
        values = digits_of(part).values.sort(1).values
        length = values.shape[1]
        keys.append((values * 10 ** torch.arange(length)).sum(1) + 10**length)
    classes, firsts, labels = np.unique(torch.cat(keys).numpy(), return_index=True, return_inverse=True)
    by_length = np.split(firsts, np.searchsorted(classes, 10 ** np.arange(2, longest + 1)))
    vectors = torch.cat([function(digits_of(torch.from_numpy(each)), rows)[:, 0] for each in by_length]).numpy()
    spread = float(np.abs(vectors).max()) or 1.0
    _, first_of, merged = np.unique(np.round(vectors / (_TIE * spread)), axis=0, return_index=True, return_inverse=True)
    labels, vectors = merged.reshape(-1)[labels], vectors[first_of]
    distances, sizes = cdist(vectors, vectors), np.bincount(labels)
    belongs = _belonging(distances, sizes, k, _TIE * spread)
    np.fill_diagonal(distances, np.where(sizes > 1, 0.0, np.inf))
    pool = len(labels)
    shares = np.empty(pool)
    for first in range(0, pool, _CHUNK):
        last = min(first + _CHUNK, pool)
        near, natural = _natural(first, last, pool, k)
        shares[first:last] = (natural * belongs[labels[first:last, None], labels[near]]).sum(1) / k
        if progress is not None:
            progress(last - first)
    return NumberSpace(shares, float(distances.min()))


def _belonging(distances: Array, sizes: Array, k: int, tolerance: float) -> Array:
    """The weight of a number of each class (column) among the k nearest of a number of another class (row)."""
    belongs = np.empty(distances.shape, np.float32)
    for label, row in enumerate(distances):
        order = np.argsort(row)
        edge = row[order[np.searchsorted(np.cumsum(sizes[order]) - 1, k)]]  # - 1: a number is not its own neighbour
        closer = row < edge - tolerance
        tied = ~closer & (row <= edge + tolerance)
        left = k - sizes[closer].sum() + closer[label]
        belongs[label] = closer + tied * (left / max(sizes[tied].sum() - tied[label], 1))
    return belongs
