import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

import oracle
from placevalue import AGGREGATIONS, per_number, place_weights
from placevalue.common.errors import ConfigError
from placevalue.numbers.aggregation import MAX_DIGITS, aggregate, find_aggregation
from placevalue.numbers.spans import find_digits
from placevalue.tokenizer.tokenizer import number_ids
from tokenizer.test_tokenizer import numbered

numerals = st.one_of(
    st.from_regex(r"\A[0-9]{1,7}\Z"),
    st.from_regex(r"\A[0-9]{0,4}\.[0-9]{1,4}\Z"),
    st.from_regex(r"\A[0-9]{14,40}\Z"),
    st.sampled_from(["1,000", "-12.5", "+7", "1.5e3", "2E-4", "1,234,567.89", "007", "0", "0.0", "9e99"]),
    st.sampled_from(["-0", "-0.0", "-.5", "-3e-2", "(1,250)", "($12.5)", "(5%)", "(0)", "-$7", "(1.5e3)"]),
)


def fold(texts, name, dim=6, dtype=torch.float32, decimals="places", embeddings=None):
    """Aggregates of the numbers of each text, through the tokenizer and the vectorised path."""
    tokenizer = numbered("bytes-gpt2", pattern="accounting")
    ids = tokenizer(texts, add_special_tokens=False, padding=True, return_tensors="pt")["input_ids"]
    if embeddings is None:
        embeddings = torch.randn(10, dim, generator=torch.Generator().manual_seed(1), dtype=torch.float64)
    digits = find_digits(ids, number_ids(tokenizer), decimals, at_agg=True)
    result = aggregate(find_aggregation(name), digits, embeddings.to(dtype))
    here = ids == number_ids(tokenizer).agg
    return [row[flags] for row, flags in zip(result, here, strict=True)], embeddings.to(dtype)


@settings(max_examples=60)
@given(st.lists(st.lists(numerals, max_size=4), min_size=1, max_size=4), st.sampled_from(["places", "ignore"]))
@pytest.mark.parametrize("name", AGGREGATIONS)
def test_vectorised_equals_the_slow_loop(name, rows, decimals):
    texts = [" ".join(f"the {numeral}" for numeral in row) for row in rows]
    found, embeddings = fold(texts, name, decimals=decimals)
    for vectors, row in zip(found, rows, strict=True):
        assert len(vectors) == len(row)
        for vector, numeral in zip(vectors, row, strict=True):
            wanted = oracle.signed_aggregate(name, numeral, embeddings, decimals)
            assert (vector.double() - wanted).norm() <= 2e-6 * wanted.norm() + 1e-12, numeral


def test_equation_one_by_hand():
    assert place_weights(1).tolist() == [1.0]
    assert place_weights(2).tolist() == [1.5, 0.25]
    assert place_weights(3).tolist() == pytest.approx([2.4, 0.6, 0.1])
    for n in range(1, MAX_DIGITS + 1):
        wanted = [2 ** (n - i) * 3 * (n + 1 - i) * (n + 2 - i) / (n * (n + 1) * (n + 2)) for i in range(1, n + 1)]
        assert place_weights(n).tolist() == pytest.approx(wanted, rel=1e-15)


def test_place_weights_need_a_digit():
    with pytest.raises(ConfigError, match="at least 1"):
        place_weights(0)


@pytest.mark.parametrize("n", [2, 5, MAX_DIGITS, MAX_DIGITS + 1, 40])
def test_digits_further_right_always_count_less(n):
    weights = place_weights(n)
    assert (weights[1:] < weights[:-1]).all() and (weights > 0).all()


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.float16])
@pytest.mark.parametrize("name", AGGREGATIONS)
def test_thousands_of_digits_stay_finite(name, dtype):
    embeddings = torch.linspace(-5, 5, 60, dtype=torch.float64).view(10, 6)
    (vectors,), _ = fold(["9" * 3000 + " x 0." + "1" * 3000], name, embeddings=embeddings)
    assert len(vectors) == 2 and vectors.to(dtype).isfinite().all()


def test_decimals_have_places():
    (vectors,), _ = fold(["1.25 12.5 125 0.125 .125"], "weighted")
    distances = torch.cdist(vectors, vectors) + torch.eye(5)
    assert (distances > 1e-3).all()
    (vectors,), _ = fold(["1.25 12.5 125"], "weighted", decimals="ignore")
    assert torch.equal(vectors[0], vectors[1]) and torch.equal(vectors[1], vectors[2])


@pytest.mark.parametrize("name", AGGREGATIONS)
def test_a_number_below_zero_has_the_opposite_vector(name):
    (vectors,), _ = fold(["5 -5 +5 0 -0 5-5 1,250 (1,250) -1250"], name)
    five, minus, plus, zero, minus_zero, first, second, thousand, bracketed, written = vectors
    assert torch.equal(minus, -five) and torch.equal(plus, five) and torch.equal(minus_zero, zero)
    assert torch.equal(first, five) and torch.equal(second, five)  # a minus between two numbers is no sign
    assert torch.equal(bracketed, -thousand) and torch.equal(written, -thousand)


def test_neighbours_stay_neighbours_below_zero():
    (vectors,), _ = fold(["-4529 -4530 4530"], "interpolated")
    assert (vectors[1] - vectors[0]).norm() < (vectors[2] - vectors[1]).norm() / 10


def test_single_digits_stay_intact():
    for name in AGGREGATIONS:
        (vectors,), embeddings = fold([" ".join("0123456789")], name)
        torch.testing.assert_close(vectors, embeddings, rtol=1e-6, atol=0)


def test_interpolated_keeps_neighbours_together_over_a_carry():
    (vectors,), _ = fold(["4528 4529 4530"], "interpolated")
    step, carry = (vectors[1] - vectors[0]).norm(), (vectors[2] - vectors[1]).norm()
    assert carry < 2 * step
    (vectors,), _ = fold(["4528 4529 4530"], "weighted")
    assert (vectors[2] - vectors[1]).norm() > 2 * (vectors[1] - vectors[0]).norm()


def test_numbers_without_digits_are_zero():
    ids = number_ids(numbered("bytes-gpt2"))
    row = torch.tensor(
        [[ids.open, ids.agg, ids.point, ids.close, ids.open, ids.agg, ids.close, ids.agg, ids.digits[3]]]
    )
    for name in AGGREGATIONS:
        digits = find_digits(row, ids, at_agg=True)
        assert not digits.mask.any()
        assert not find_aggregation(name)(digits, torch.ones(10, 3)).any()


def test_a_function_of_ones_own():
    first = per_number(lambda values, places, embeddings: embeddings[values[0]] * 10.0 ** places[0])
    AGGREGATIONS["first"] = first
    try:
        (vectors, others), embeddings = fold(["12 .5", "345"], "first")
    finally:
        del AGGREGATIONS["first"]
    torch.testing.assert_close(vectors, torch.stack([10 * embeddings[1], 0.1 * embeddings[5]]))
    torch.testing.assert_close(others[0], 100 * embeddings[3])


def test_unknown_aggregation():
    with pytest.raises(ConfigError, match="'wieghted' is unknown.*weighted"):
        find_aggregation("wieghted")


@pytest.mark.parametrize("name", AGGREGATIONS)
def test_gradients_are_right(name):
    embeddings = torch.randn(10, 4, dtype=torch.float64, generator=torch.Generator().manual_seed(3), requires_grad=True)
    tokenizer = numbered("bytes-gpt2")
    ids = tokenizer(["12 then 3.45"], return_tensors="pt")["input_ids"]
    digits = find_digits(ids, number_ids(tokenizer), at_agg=True)
    assert torch.autograd.gradcheck(lambda rows: find_aggregation(name)(digits, rows), embeddings)
