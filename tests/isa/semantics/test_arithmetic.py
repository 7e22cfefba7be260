"""Lane-wise arithmetic."""

from __future__ import annotations

import math

import numba
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ascsim.isa.semantics import arithmetic as a

INTEGERS = [np.int8, np.uint8, np.int16, np.uint16, np.int32, np.uint32]
SPECIAL = np.array([0.0, -0.0, 1.0, -1.0, np.inf, -np.inf, np.nan, 1e-45, -1e-45, 3.4e38], np.float32)
GRID = np.meshgrid(SPECIAL, SPECIAL)


def wrap(number, kind):
    info = np.iinfo(kind)
    return (number - int(info.min)) % (1 << info.bits) + int(info.min)


@settings(deadline=None)
@given(st.sampled_from(INTEGERS), st.integers(0, 2**32 - 1), st.lists(st.integers(0, 4), max_size=3))
def test_integers_wrap(kind, seed, shape):
    info = np.iinfo(kind)
    random = np.random.default_rng(seed)
    x, y = (random.integers(info.min, int(info.max) + 1, shape).astype(kind).reshape(shape) for _ in range(2))
    pairs = list(zip(x.ravel().tolist(), y.ravel().tolist(), strict=True))
    for function, exact in ((a.add, int.__add__), (a.subtract, int.__sub__), (a.multiply, int.__mul__)):
        with np.errstate(over="ignore"):
            got = function(x, y)
        assert got.shape == x.shape and got.dtype == kind
        assert got.ravel().tolist() == [wrap(exact(p, q), kind) for p, q in pairs]
    assert a.maximum(x, y).ravel().tolist() == [max(p, q) for p, q in pairs]
    assert a.minimum(x, y).ravel().tolist() == [min(p, q) for p, q in pairs]
    assert a.absolute(x).ravel().tolist() == [wrap(abs(p), kind) for p, _ in pairs]
    with np.errstate(over="ignore"):
        assert a.negate(x).ravel().tolist() == [wrap(-p, kind) for p, _ in pairs]


def test_the_most_negative_integer_stays():
    lowest = np.array([-128], np.int8)
    assert a.absolute(lowest).tolist() == [-128]
    assert a.negate(lowest).tolist() == [-128]
    assert a.add(np.array([2**31 - 1], np.int32), np.array([1], np.int32)).tolist() == [-(2**31)]


def one_maximum(x, y):
    if math.isnan(x) or math.isnan(y):
        return math.nan
    if x == y:
        return x if math.copysign(1, x) > 0 else y
    return x if x > y else y


def bits_or_nan(values):
    return [None if math.isnan(v) else np.float32(v).tobytes() for v in np.ravel(values).tolist()]


def test_float_maximum_and_minimum_of_every_special_pair():
    x, y = GRID
    pairs = list(zip(x.ravel().tolist(), y.ravel().tolist(), strict=True))
    assert bits_or_nan(a.float_maximum(x, y)) == bits_or_nan([one_maximum(p, q) for p, q in pairs])
    assert bits_or_nan(a.float_minimum(x, y)) == bits_or_nan([-one_maximum(-p, -q) for p, q in pairs])


@settings(deadline=None)
@given(st.lists(st.tuples(st.integers(0, 2**32 - 1), st.integers(0, 2**32 - 1)), min_size=1))
def test_add_with_carry(pairs):
    x, y = (np.array(side, np.uint32) for side in zip(*pairs, strict=True))
    carry, total = a.add_with_carry(x, y)
    assert total.dtype == np.uint32
    assert [int(t) + (int(c) << 32) for c, t in zip(carry, total, strict=True)] == [p + q for p, q in pairs]


@settings(deadline=None)
@given(st.lists(st.tuples(st.floats(width=32), st.floats(width=32)), min_size=1, max_size=80))
def test_float_maximum_of_any(pairs):
    x, y = (np.array(side, np.float32) for side in zip(*pairs, strict=True))
    got = a.float_maximum(x, y)
    assert got.dtype == np.float32
    assert bits_or_nan(got) == bits_or_nan([one_maximum(p, q) for p, q in pairs])
    assert bits_or_nan(a.float_minimum(x, y)) == bits_or_nan([-one_maximum(-p, -q) for p, q in pairs])


def test_floats_follow_ieee():
    x, y = GRID
    with np.errstate(all="ignore"):
        assert bits_or_nan(a.add(x, y)) == bits_or_nan((x.astype(np.float64) + y).astype(np.float32))
        assert bits_or_nan(a.subtract(x, y)) == bits_or_nan((x.astype(np.float64) - y).astype(np.float32))
        assert bits_or_nan(a.multiply(x, y)) == bits_or_nan((x.astype(np.float64) * y).astype(np.float32))
    assert (a.negate(SPECIAL).view(np.uint32) == SPECIAL.view(np.uint32) ^ 0x80000000).all()
    assert (a.absolute(SPECIAL).view(np.uint32) == SPECIAL.view(np.uint32) & 0x7FFFFFFF).all()


def test_comparisons():
    x = np.array([1.0, 2.0, np.nan, 0.0, -np.inf], np.float32)
    y = np.array([1.0, 1.0, 1.0, -0.0, np.nan], np.float32)
    assert a.equal(x, y).tolist() == [True, False, False, True, False]
    assert a.not_equal(x, y).tolist() == [False, True, True, False, True]
    assert a.less(x, y).tolist() == [False, False, False, False, False]
    assert a.less_equal(x, y).tolist() == [True, False, False, True, False]
    assert a.greater(x, y).tolist() == [False, True, False, False, False]
    assert a.greater_equal(x, y).tolist() == [True, True, False, True, False]
    assert a.less(np.array([-1], np.int8), np.array([0], np.int8)).tolist() == [True]
    assert a.less(np.array([255], np.uint8), np.array([0], np.uint8)).tolist() == [False]


@settings(deadline=None)
@given(st.sampled_from([np.uint8, np.uint16, np.uint32, np.uint64]), st.integers(0, 2**32 - 1), st.integers(0, 300))
def test_select_keeps_bits(kind, seed, n):
    random = np.random.default_rng(seed)
    x, y = (random.integers(0, 256, n * np.dtype(kind).itemsize).astype(np.uint8).view(kind) for _ in range(2))
    mask = random.integers(0, 2, n).astype(np.uint8)
    got = a.select(mask, x, y)
    assert got.dtype == kind
    assert got.tolist() == [p if m else q for m, p, q in zip(mask, x.tolist(), y.tolist(), strict=True)]


def test_duplicate():
    got = a.duplicate(np.array([7, 8], np.uint16), 128)
    assert got.tolist() == [7] * 128 and got.dtype == np.uint16


def test_arange_by_the_documentation():
    start = np.array([10], np.int16)
    assert a.arange(start, 128).tolist() == list(range(10, 138))
    assert a.arange_descending(start, 128).tolist() == list(range(137, 9, -1))
    assert a.arange(start, 128).dtype == np.int16


def test_arange_wraps_and_counts_in_floats():
    assert a.arange(np.array([126], np.int8), 256)[:4].tolist() == [126, 127, -128, -127]
    assert a.arange_descending(np.array([0], np.int8), 256)[:2].tolist() == [-1, -2]
    assert a.arange(np.array([0.5], np.float32), 64).tolist() == [i + 0.5 for i in range(64)]


def test_compiled(agrees):
    random = np.random.default_rng(0)
    x, y = random.integers(-(2**31), 2**31, (2, 64)).astype(np.int32)
    for function in (a.add, a.subtract, a.multiply, a.maximum, a.minimum):
        agrees(function, x, y)
    agrees(a.add_with_carry, x.view(np.uint32), y.view(np.uint32))
    for function in (a.negate, a.absolute):
        agrees(function, random.integers(-128, 128, 256).astype(np.int8))
        agrees(function, SPECIAL[~np.isnan(SPECIAL)])
    p, q = (side.ravel() for side in GRID)
    floats = (a.float_maximum, a.float_minimum, a.add)
    comparisons = (a.equal, a.not_equal, a.less, a.less_equal, a.greater, a.greater_equal)
    finite = ~(np.isnan(p) | np.isnan(q) | np.isinf(p) | np.isinf(q))
    for function in floats:
        agrees(function, p[finite], q[finite])
    for function in comparisons:
        agrees(function, p, q)
    agrees(a.select, random.integers(0, 2, 64).astype(np.uint8), x.view(np.uint32), y.view(np.uint32))
    agrees(a.duplicate, x, 64)
    for start in (np.array([120], np.int8), np.array([-3.5], np.float32)):
        agrees(a.arange, start, 256)
        agrees(a.arange_descending, start, 256)


@pytest.mark.parametrize("function", [a.float_maximum, a.float_minimum, a.multiply])
def test_on_the_scalars_of_a_compiled_loop(function, compiled):
    scalar = compiled(function)

    @numba.njit
    def loop(x, y):
        result = np.empty_like(x)
        for i in range(x.size):
            result[i] = scalar(x[i], y[i])
        return result

    x, y = (side.ravel() for side in GRID)
    with np.errstate(all="ignore"):
        assert bits_or_nan(loop(x, y)) == bits_or_nan(function(x, y))


def test_select_on_the_scalars_of_a_compiled_loop(compiled):
    scalar = compiled(a.select)

    @numba.njit
    def loop(mask, x, y):
        result = np.empty_like(x)
        for i in range(x.size):
            result[i] = scalar(mask[i], x[i], y[i])
        return result

    mask = np.array([1, 0], np.uint8)
    x, y = np.array([0xFFFF, 1], np.uint16), np.array([2, 0xFFFE], np.uint16)
    assert loop(mask, x, y).tolist() == [0xFFFF, 0xFFFE]
