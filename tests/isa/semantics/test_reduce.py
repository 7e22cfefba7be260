"""Reductions."""

from __future__ import annotations

import math

import ml_dtypes
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ascsim.isa.semantics.order import BF16, F16, F32, SIGNED, UNSIGNED
from ascsim.isa.semantics.reduce import float_row_max, reduce_max, reduce_min, reduce_sum, row_max

KINDS = [
    (F32, np.float32), (F16, np.float16), (BF16, ml_dtypes.bfloat16), (SIGNED, np.int32), (SIGNED, np.int16),
    (UNSIGNED, np.uint32), (UNSIGNED, np.uint16),
]  # fmt: skip


def bits_of(values, kind):
    array = np.asarray(values, kind)
    return array.view(f"u{array.itemsize}")


def run(function, values, active, order, kind):
    bits = bits_of(values, kind)
    result = function(bits, np.asarray(active, np.uint8), order)
    assert result.dtype == bits.dtype and result.shape == bits.shape
    assert not result[2:].any()
    return result[:1].view(kind)[0], int(result[1])


def test_by_hand():
    values = [1.0, 9.0, 3.0, 9.0]
    assert run(reduce_max, values, [1, 1, 1, 1], F32, np.float32) == (9.0, 1)
    assert run(reduce_max, values, [1, 0, 1, 1], F32, np.float32) == (9.0, 3)
    assert run(reduce_min, values, [0, 1, 1, 1], F32, np.float32) == (3.0, 2)
    assert run(reduce_max, [-5, -128, 7], [1, 1, 0], SIGNED, np.int16) == (-5, 0)
    assert run(reduce_min, [65535, 3, 2], [1, 1, 0], UNSIGNED, np.uint16) == (3, 1)


def test_with_no_lane_active():
    none = [0, 0]
    assert run(reduce_max, [1, 2], none, F32, np.float32) == (-np.inf, 0)
    assert run(reduce_min, [1, 2], none, F16, np.float16) == (np.inf, 0)
    assert run(reduce_max, [1, 2], none, BF16, ml_dtypes.bfloat16) == (-np.inf, 0)
    assert run(reduce_max, [1, 2], none, SIGNED, np.int16) == (-32768, 0)
    assert run(reduce_min, [1, 2], none, SIGNED, np.int32) == (2**31 - 1, 0)
    assert run(reduce_max, [1, 2], none, UNSIGNED, np.uint32) == (0, 0)
    assert run(reduce_min, [1, 2], none, UNSIGNED, np.uint32) == (2**32 - 1, 0)


def test_the_limits_themselves_are_found():
    assert run(reduce_max, [1.0, -np.inf, -np.inf], [0, 0, 1], F32, np.float32) == (-np.inf, 2)
    assert run(reduce_min, [0, 255, 2**31 - 1], [0, 0, 1], SIGNED, np.int32) == (2**31 - 1, 2)
    assert run(reduce_min, [0, 2**32 - 1], [0, 1], UNSIGNED, np.uint32) == (2**32 - 1, 1)


def test_zeros_and_nan():
    value, index = run(reduce_max, [-0.0, 0.0, -0.0], [1, 1, 1], F16, np.float16)
    assert (value, math.copysign(1, value), index) == (0, 1, 1)
    value, index = run(reduce_min, [0.0, -0.0, 0.0], [1, 1, 1], F32, np.float32)
    assert (value, math.copysign(1, value), index) == (0, -1, 1)
    for function in (reduce_max, reduce_min):
        value, index = run(function, [np.inf, np.nan, -np.nan, -np.inf], [1, 0, 1, 1], F32, np.float32)
        assert math.isnan(value) and index == 2


@settings(deadline=None, max_examples=80)
@given(st.sampled_from(KINDS), st.integers(0, 2**32 - 1), st.integers(2, 256))
def test_against_a_loop(kind, seed, n):
    order, dtype = kind
    random = np.random.default_rng(seed)
    values = random.integers(-9, 9, n).astype(np.float64)
    values[random.random(n) < 0.1] = -0.0
    if order == UNSIGNED:
        values = abs(values)
    values = values.astype(dtype)
    active = random.integers(0, 2, n).astype(np.uint8)
    for function, sign in ((reduce_max, 1), (reduce_min, -1)):
        best = -1
        for i in np.flatnonzero(active):
            x, y = sign * float(values[i]), sign * float(values[best])
            if best < 0 or x > y or (x == y == 0 and math.copysign(1, x) > math.copysign(1, y)):
                best = int(i)
        value, index = run(function, values, active, order, dtype)
        if best >= 0:
            assert index == best
            assert np.asarray(value).tobytes() == values[best].tobytes()


def test_sum_is_a_binary_tree():
    big, one = np.float32(2.0**24), np.float32(1)
    active = np.ones(4, np.uint8)
    # one after another the first would give 0, halves onto each other the second 1
    assert reduce_sum(np.array([big, one, one, -big], np.float32), active).tolist() == [1.0, 0, 0, 0]
    assert reduce_sum(np.array([big, -big, one, one], np.float32), active).tolist() == [2.0, 0, 0, 0]
    assert reduce_sum(np.array([one, 2, 4, 8], np.float32), np.array([1, 0, 1, 0], np.uint8))[0] == 5


def test_sum_with_no_lane_active_is_plus_zero():
    result = reduce_sum(np.array([-0.0, np.nan], np.float32), np.zeros(2, np.uint8))
    assert result.tobytes() == bytes(8)


@settings(deadline=None)
@given(st.sampled_from([2, 32, 64, 128, 256]), st.integers(0, 2**32 - 1))
def test_integer_sums(n, seed):
    random = np.random.default_rng(seed)
    values = random.integers(-(2**31), 2**31, n).astype(np.int32)
    active = random.integers(0, 2, n).astype(np.uint8)
    exact = sum(int(v) for v, m in zip(values, active, strict=True) if m)
    with np.errstate(over="ignore"):
        result = reduce_sum(values, active)
    assert (int(result[0]) - exact) % 2**32 == 0 and not result[1:].any()


@settings(deadline=None)
@given(st.lists(st.integers(1, 4), max_size=2), st.integers(1, 70), st.integers(0, 2**32 - 1))
def test_row_max(leading, columns, seed):
    random = np.random.default_rng(seed)
    integers = random.integers(-50, 50, (*leading, columns)).astype(np.int16)
    assert row_max(integers).tolist() == integers.max(axis=-1).tolist()
    assert row_max(integers).dtype == np.int16
    floats = random.choice(np.array([-2.0, -0.0, 0.0, -np.inf, 1.5, np.nan], np.float32), (*leading, columns), p=[
        0.3, 0.3, 0.02, 0.3, 0.05, 0.03])  # fmt: skip
    got = float_row_max(floats)
    assert got.dtype == np.float32 and got.shape == tuple(leading)
    for row, value in zip(floats.reshape(-1, columns), np.ravel(got), strict=True):
        if np.isnan(row).any():
            assert np.isnan(value)
        else:
            want = max(row.tolist(), key=lambda v: (v, math.copysign(1, v)))
            assert (want, math.copysign(1, want)) == (value, math.copysign(1, value))


def test_row_max_is_a_new_array():
    values = np.array([[3.0], [4.0]], np.float32)
    got = float_row_max(values)
    got[:] = 0
    assert values.tolist() == [[3.0], [4.0]]


def test_compiled(agrees):
    random = np.random.default_rng(0)
    values = random.standard_normal(64).astype(np.float32).round(1)
    active = random.integers(0, 2, 64).astype(np.uint8)
    for mask in (active, np.zeros_like(active)):
        for function in (reduce_max, reduce_min):
            agrees(function, values.view(np.uint32), mask, F32)
            agrees(function, values.view(np.uint32), mask, UNSIGNED)
        agrees(reduce_sum, values, mask)
    agrees(reduce_sum, random.integers(-(2**31), 2**31, 64).astype(np.int32), active)
    agrees(float_row_max, random.standard_normal((5, 13)).astype(np.float32).round())


@pytest.mark.slow
def test_compiled_half(agrees):
    random = np.random.default_rng(0)
    bits = random.integers(0, 2**16, 128).astype(np.uint16)
    for order in (F16, SIGNED, UNSIGNED):
        agrees(reduce_max, bits, random.integers(0, 2, 128).astype(np.uint8), order)
    agrees(row_max, random.integers(-9, 9, (3, 4, 8)).astype(np.int32))
