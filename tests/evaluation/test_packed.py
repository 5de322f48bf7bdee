import math

import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays

from placevalue.evaluation.packed import Packed

numbers = st.sampled_from([0.0, 1.0, math.nan, 2.0, 254.0]) | st.floats(width=64)


@given(arrays.arrays(float, st.tuples(st.integers(1, 12), st.integers(1, 4)), elements=numbers), st.data())
def test_what_was_packed_comes_out(values, data):
    size = data.draw(st.integers(1, 5))
    packed = Packed(values[start : start + size] for start in range(0, len(values), size))
    assert len(packed) == len(values) and packed.columns == values.shape[1]
    rows = np.array(data.draw(st.lists(st.integers(0, len(values) - 1))), dtype=np.int64)
    np.testing.assert_array_equal(packed.take(rows), values[rows])
    for index in range(packed.columns):
        np.testing.assert_array_equal(packed.column(index), values[:, index])


def test_a_metric_that_is_right_or_wrong_takes_a_byte():
    block = np.tile([[0.0, 1.0, math.nan, 0.25]], (100, 1))
    _, small, rest = Packed([block]).blocks[0]
    assert (small.nbytes, rest.nbytes) == (300, 800)
