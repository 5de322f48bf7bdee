import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from oracle import bootstrap_interval
from placevalue.common.errors import DataError
from placevalue.evaluation import statistics as statistics_module
from placevalue.evaluation.packed import Packed
from placevalue.evaluation.statistics import (
    bootstrap,
    crossed_interval,
    drawn_means,
    mcnemar,
    paired_test,
    permutation_p,
    resamples,
    score_groups,
    seed_interval,
    spread,
)

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


@settings(max_examples=60)
@given(st.lists(st.tuples(numbers, st.sampled_from([0.0, 1.0, math.nan]), *[st.integers(0, 3)] * 2), min_size=2))
def test_many_values_are_scored_in_parts_as_few_are_at_once(rows):
    values, units = np.array([row[:2] for row in rows]), np.array([unit for *_, unit, _ in rows])
    of_group = np.array([group for *_, group in rows])
    every = [np.flatnonzero(of_group == group) for group in np.unique(of_group)]
    packed = Packed(values[start : start + 3] for start in range(0, len(values), 3))
    for groups in (every[:1], every):
        with pytest.MonkeyPatch.context() as patch:
            at_once = score_groups(packed, units, groups, 20)
            patch.setattr(statistics_module, "_PART", 0)  # one unit at once
            patch.setattr(statistics_module, "bootstrap", None)  # calling it would fail
            patch.setattr(statistics_module, "bootstrap_mean", None)
            in_parts = score_groups(packed, units, groups, 20)
        for one, other in zip(at_once, in_parts, strict=True):
            assert (one is None) == (other is None)
            if one is not None:
                one, other = ([math.nan if v is None else v for v in vars(each).values()] for each in (one, other))
                assert other == pytest.approx(one, rel=1e-9, abs=1e-9, nan_ok=True)


def test_resamples_draw_as_many_as_there_are_and_do_not_go_by_blocks(monkeypatch):
    whole = np.concatenate(list(resamples(7, 20, seed=1)))
    assert whole.shape == (20, 7) and (whole.sum(1) == 7).all()
    monkeypatch.setattr(statistics_module, "_BLOCK", 30)
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
    assert seed_interval([0.5]) == statistics_module.Interval(0.5, None, None, 1)
    with pytest.raises(DataError, match="one for each seed"):
        seed_interval([])


def test_what_each_problem_adds_over_two_sets_by_hand():
    """Means 1/2 and 2/3: 7/12, and of a problem 3/2 of what it is above the first, 3/3 above the second, halved."""
    values = np.array([[1.0], [0.0], [1.0], [1.0], [0.0]])
    sets = [(np.array([0, 1]), np.array([0, 1])), (np.array([2, 3, 4]), np.array([2, 0, 1]))]
    assert spread(values, sets)[:, 0] == pytest.approx([9 / 8, -1 / 8, 3 / 4])
    assert spread(values[2:], [(np.arange(3), np.array([2, 0, 1]))])[:, 0] == pytest.approx([1, 0, 1])


def test_two_sets_with_the_same_answers_say_no_more_than_one():
    rng = np.random.default_rng(0)
    once = rng.random((8, 3))
    one, two = [(np.arange(8), np.arange(8))], [(np.arange(8), np.arange(8)), (np.arange(8, 16), np.arange(8))]
    assert spread(np.tile(once, (2, 1)), two) == pytest.approx(spread(once, one)) and spread(
        once, one
    ) == pytest.approx(once)


def test_a_crossed_interval_by_hand():
    """Problems' means 1, 4, 10: variance 21, by 3. Seeds' 4, 6: 2, by 2. The rest is 0 or 1: 4 by 2 degrees, by 6."""
    found, p = crossed_interval(np.array([[0.0, 2.0], [4.0, 4.0], [8.0, 12.0]]))
    variance = 7 + 1 - 1 / 3
    freedom = variance**2 / (7**2 / 2 + 1**2 / 1)
    half = stats.t.ppf(0.975, freedom) * math.sqrt(variance)
    assert (found.value, found.low, found.high, found.n) == pytest.approx((5, 5 - half, 5 + half, 6))
    assert p == pytest.approx(2 * stats.t.cdf(-5 / math.sqrt(variance), freedom))


def test_what_is_shared_never_takes_away_more_than_the_smaller_side():
    """Problems' means 1.5, 1.5; seeds' 1, 2: 0.5 by 2, of one degree. The rest, 4 by 1 by 4, is more than both."""
    found, p = crossed_interval(np.array([[0.0, 3.0], [2.0, 1.0]]))
    half = 12.706205 * 0.5  # t(0.975, 1)
    assert (found.low, found.high) == pytest.approx((1.5 - half, 1.5 + half), rel=1e-6)
    assert p == pytest.approx(1 - 2 * math.atan(3) / math.pi)  # one degree is Cauchy's distribution


@pytest.mark.parametrize("shape", [(6, 1), (1, 6)])
def test_one_seed_or_one_problem_is_the_ordinary_t_test(shape):
    values = np.array([0.1, 0.5, -0.2, 0.9, 0.4, 0.3])
    found, p = crossed_interval(values.reshape(shape))
    wanted = stats.ttest_1samp(values, 0)
    assert p == pytest.approx(wanted.pvalue)
    assert (found.low, found.high) == pytest.approx(tuple(wanted.confidence_interval(0.95)))
    alone = seed_interval(values.tolist())
    assert (alone.low, alone.high) == pytest.approx((found.low, found.high))


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


@pytest.mark.parametrize("draws", [1, 20, 1000])
def test_a_permutation_p_is_never_0(draws):
    """One in 2^39 draws is as extreme; what was seen itself counts as one of them."""
    assert permutation_p(np.ones(40), np.arange(40), draws) == 1 / (draws + 1)


def test_signs_go_by_the_seed_alone():
    differences = np.random.default_rng(0).normal(0.1, 1, 30)
    chances = [[permutation_p(differences, np.arange(30), seed=seed) for _ in range(3)] for seed in range(5)]
    assert all(len(set(same)) == 1 for same in chances) and len({p for p, *_ in chances}) > 1
    tests = [paired_test(np.zeros(30), differences, seed=seed) for seed in (3, 3, 4)]
    assert tests[0] == tests[1] and tests[0].p == chances[3][0] and tests[2].p == chances[4][0]
    assert (tests[0].low, tests[0].high) != (tests[2].low, tests[2].high)


def test_rows_of_one_problem_get_one_sign():
    first, second = np.zeros(8), np.ones(8)
    alone, together = paired_test(first, second), paired_test(first, second, np.array([0, 0, 0, 0, 1, 1, 1, 1]), 20000)
    assert (alone.test, alone.p) == ("exact McNemar", pytest.approx(2 / 2**8))
    assert (together.test, together.p) == ("permutation", pytest.approx(0.5, abs=0.02))
    assert paired_test(first + 0.5, second).test == "permutation"


def test_a_paired_test_draws_the_rows_of_one_problem_together():
    first, second = np.random.default_rng(0).normal(0, 1, (2, 12))
    once, together = paired_test(first, second), paired_test(*np.tile((first, second), 5), np.tile(np.arange(12), 5))
    assert (together.low, together.high, together.p) == pytest.approx((once.low, once.high, once.p))
    assert together.n == 60 and paired_test(*np.tile((first, second), 5)).p < once.p
