import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from oracle import bootstrap_interval
from placevalue import intervals
from placevalue.errors import DataError
from placevalue.intervals import bootstrap, drawn_means, mcnemar, paired_test, permutation_p, resamples, seed_interval

numbers = st.floats(-10, 10) | st.just(math.nan)


@settings(max_examples=30)
@given(st.lists(st.tuples(numbers, numbers, st.integers(0, 3)), min_size=2, max_size=12))
def test_intervals_against_a_plain_loop_over_the_same_resamples(rows):
    names = sorted({unit for *_, unit in rows})
    units = np.array([names.index(unit) for *_, unit in rows])
    values = np.array([row[:2] for row in rows])
    draws = np.concatenate(list(resamples(len(names), 50, seed=3)))
    for column, found in zip(values.T, bootstrap(values, units, 50, seed=3), strict=True):
        present = column[~np.isnan(column)]
        if not len(present):
            assert found is None
            continue
        assert found.value == pytest.approx(present.mean()) and found.n == len(present)
        if len(set(units[~np.isnan(column)])) < 2:
            assert found.low is None and found.high is None
        else:
            low, high = bootstrap_interval(column.tolist(), units.tolist(), draws)
            assert (found.low, found.high) == pytest.approx((low, high), abs=1e-9)


def test_resamples_draw_as_many_as_there_are_and_do_not_go_by_blocks(monkeypatch):
    whole = np.concatenate(list(resamples(7, 20, seed=1)))
    assert whole.shape == (20, 7) and (whole.sum(1) == 7).all()
    monkeypatch.setattr(intervals, "_BLOCK", 30)
    assert (np.concatenate(list(resamples(7, 20, seed=1))) == whole).all()
    assert not (np.concatenate(list(resamples(7, 20, seed=2))) == whole).all()


def test_rows_of_one_problem_come_and_go_together():
    rng = np.random.default_rng(0)
    once = (rng.random((100, 1)) < 0.4).astype(float)
    tenfold, units = np.tile(once, (10, 1)), np.tile(np.arange(100), 10)
    one, together, apart = bootstrap(once)[0], bootstrap(tenfold, units)[0], bootstrap(tenfold)[0]
    assert (together.low, together.high) == pytest.approx((one.low, one.high))
    assert apart.high - apart.low < 0.5 * (one.high - one.low)


def test_intervals_cover_what_they_should():
    """A share of 0.3 over 200 problems: its standard error is sqrt(0.3 * 0.7 / 200) = 0.0324."""
    rng = np.random.default_rng(0)
    samples = (rng.random((200, 300)) < 0.3).astype(float)
    found = bootstrap(samples, draws=400)
    assert 0.91 < np.mean([each.low <= 0.3 <= each.high for each in found]) < 0.98
    assert np.mean([each.high - each.low for each in found]) == pytest.approx(2 * 1.96 * 0.0324, rel=0.05)


def test_a_resample_without_a_value_is_left_out():
    values = np.array([[1.0], [math.nan], [3.0]])
    means = drawn_means(values, np.arange(3), 200)
    assert np.isnan(means).any() and np.nanmin(means) == 1 and np.nanmax(means) == 3
    assert bootstrap(values)[0].value == 2


def test_seeds():
    found = seed_interval([1.0, 2.0, 3.0])
    half = 4.302653 / math.sqrt(3)  # t(0.975, 2) times the standard deviation, 1, by the root of n
    assert (found.value, found.low, found.high, found.n) == pytest.approx((2, 2 - half, 2 + half, 3), rel=1e-6)
    assert seed_interval([0.5]) == intervals.Interval(0.5, None, None, 1)
    with pytest.raises(DataError, match="one for each seed"):
        seed_interval([])


def test_mcnemar_by_hand():
    """Of 5 problems on which they differ, the first has 1 and the second 4: 2 * (1 + 5) / 2^5."""
    first, second = np.array([1, 0, 0, 0, 0, 1, 0.0]), np.array([0, 1, 1, 1, 1, 1, 0.0])
    assert mcnemar(first, second) == (pytest.approx(0.375), 1, 4)
    assert mcnemar(first, first) == (1.0, 0, 0)
    found = paired_test(first, second)
    assert (found.test, found.p, found.only_first, found.only_second) == ("exact McNemar", pytest.approx(0.375), 1, 4)
    assert found.difference == pytest.approx(3 / 7) and found.n == 7 and found.low < 3 / 7 < found.high


def test_permutation_by_hand():
    """All of 4 differences are positive: 2 of the 16 ways to draw the signs are as extreme."""
    p = permutation_p(np.array([1.0, 2.0, 0.5, 1.0]), np.arange(4), draws=20000)
    assert p == pytest.approx(2 / 16, abs=0.01)
    assert permutation_p(np.array([1.0, -1.0]), np.arange(2)) == 1
    assert permutation_p(np.zeros(3), np.arange(3)) == 1


def test_rows_of_one_problem_get_one_sign():
    first, second = np.zeros(8), np.ones(8)
    alone, together = paired_test(first, second), paired_test(first, second, np.array([0, 0, 0, 0, 1, 1, 1, 1]), 20000)
    assert (alone.test, alone.p) == ("exact McNemar", pytest.approx(2 / 2**8))
    assert (together.test, together.p) == ("permutation", pytest.approx(0.5, abs=0.02))
    assert paired_test(first + 0.5, second).test == "permutation"
