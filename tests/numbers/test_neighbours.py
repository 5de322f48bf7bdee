import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from placevalue import AGGREGATIONS, neighbourhood_f1, per_number
from placevalue.common.errors import ConfigError
from placevalue.numbers import neighbours
from placevalue.numbers.neighbours import _natural, natural_neighbours, number_vectors, search


def rows(dim=16, seed=0):
    generator = torch.Generator().manual_seed(seed)
    return torch.randn(10, dim, generator=generator, dtype=torch.float64) + 3 * torch.ones(dim, dtype=torch.float64)


def brute_force(vectors, k, number, tolerance):
    """One number's expected share, by sorting all distances in full dimension."""
    distances = (vectors - vectors[number]).norm(dim=1)
    distances[number] = torch.inf
    edge = distances.sort().values[k - 1]
    closer = distances < edge - tolerance
    tied = ~closer & (distances <= edge + tolerance)
    belongs = closer.double() + tied.double() * (k - closer.sum()) / tied.sum()
    return sum(share * float(belongs[m]) for m, share in natural_neighbours(number, len(vectors), k).items()) / k


@pytest.mark.parametrize("longest", [3, pytest.param(4, marks=pytest.mark.slow)])
@pytest.mark.parametrize("name", AGGREGATIONS)
def test_equals_brute_force_on_every_number(name, longest):
    embeddings = rows()
    vectors = number_vectors(embeddings, name, longest)
    tolerance = 1e-9 * float(vectors.abs().max())
    found = neighbourhood_f1(embeddings, name, range(1, longest + 1))
    for length, share in found.items():
        numbers = range(0 if length == 1 else 10 ** (length - 1), 10**length)
        assert share == pytest.approx(np.mean([brute_force(vectors, 10, n, tolerance) for n in numbers]), abs=1e-6)


@pytest.mark.parametrize("k", [1, 3, 10])
@pytest.mark.parametrize("name", ["weighted", "sum", "mean", "interpolated"])
def test_ties_are_counted_by_expectation(name, k):
    embeddings = torch.eye(10, dtype=torch.float64)  # all digits equally far apart: ties everywhere
    vectors = number_vectors(embeddings, name, 3)
    found = neighbourhood_f1(embeddings, name, [1, 2, 3], k)
    for length, share in found.items():
        numbers = range(0 if length == 1 else 10 ** (length - 1), 10**length)
        wanted = np.mean([brute_force(vectors, k, n, 1e-9 * float(vectors.abs().max())) for n in numbers])
        assert share == pytest.approx(wanted, abs=1e-6)


@pytest.mark.parametrize("name", ["weighted", "sum"])
def test_a_pool_of_several_chunks_is_searched_as_one(name, monkeypatch):
    """Of numbers one by one, and of classes; the last chunk is not full."""
    embeddings = rows()
    vectors = number_vectors(embeddings, name, 2)
    monkeypatch.setattr(neighbours, "_CHUNK", 32)
    found = search(embeddings, name, 2, k=5)
    tolerance = 1e-9 * float(vectors.abs().max())
    assert found.shares == pytest.approx([brute_force(vectors, 5, n, tolerance) for n in range(100)], abs=1e-6)


@given(st.integers(0, 99), st.integers(1, 40))
def test_natural_neighbours_are_the_nearest_numbers(number, k):
    near = natural_neighbours(number, 100, k)
    assert sum(near.values()) == pytest.approx(k) and number not in near
    outside = [abs(m - number) for m in range(100) if m != number and m not in near]
    assert max(abs(m - number) for m in near) <= min(outside, default=100)
    found, belongs = _natural(0, 100, 100, k)
    assert {int(m): float(b) for m, b in zip(found[number], belongs[number], strict=True) if b} == near


def test_a_line_is_perfect_and_functions_of_ones_own_work():
    line = per_number(
        lambda values, places, embeddings: (values * 10.0**places).sum() * torch.ones(3, dtype=torch.float64)
    )
    assert neighbourhood_f1(rows(), line, [1, 2, 3]) == {1: 1.0, 2: 1.0, 3: 1.0}


def test_a_function_that_only_a_mirror_image_leaves_alone_is_no_class():
    def ends(digits, embeddings):
        middle = (digits.leading - 1) / 2
        return digits.fold(1 + (digits.places - middle).abs(), embeddings)

    vectors = number_vectors(rows(), ends, 3)
    tolerance = 1e-9 * float(vectors.abs().max())
    wanted = np.mean([brute_force(vectors, 10, n, tolerance) for n in range(100, 1000)])
    assert neighbourhood_f1(rows(), ends, [1, 2, 3])[3] == pytest.approx(wanted, abs=1e-6)


def test_few_dimensions_work():
    found = neighbourhood_f1(rows(dim=3), "weighted", [1, 2])
    assert 0 <= found[2] <= 1


def test_progress_counts_every_number():
    seen = []
    neighbourhood_f1(rows(), "sum", [1, 2, 3], progress=seen.append)
    neighbourhood_f1(rows(), "weighted", [1, 2, 3], progress=seen.append)
    assert sum(seen) == 2000


@pytest.mark.parametrize("name", ["sum", "weighted"])
def test_progress_counts_every_number_of_every_chunk(name, monkeypatch):
    seen = []
    monkeypatch.setattr(neighbours, "_CHUNK", 32)
    neighbourhood_f1(rows(), name, [1, 2], progress=seen.append)
    assert sum(seen) == 100 and len(seen) > 1


def test_bad_input_is_reported_together():
    with pytest.raises(ConfigError, match=r"shape \(9, 4\).*lengths=\[0, 9\]"):
        neighbourhood_f1(torch.ones(9, 4), "sum", [0, 9])
    with pytest.raises(ConfigError, match="k=10: expected 1 to 9"):
        neighbourhood_f1(rows(), "sum", [1])
