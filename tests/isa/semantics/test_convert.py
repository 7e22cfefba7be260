"""Conversions between element types."""

from __future__ import annotations

import math
from fractions import Fraction

import ml_dtypes
import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from ascsim.isa.semantics import convert as c

MODES = {
    "none": c.NONE, "rint": c.RINT, "round": c.ROUND, "floor": c.FLOOR, "ceil": c.CEIL, "trunc": c.TRUNC, "odd": c.ODD,
}  # fmt: skip
ALL_16_BITS = np.arange(1 << 16, dtype=np.uint16)
F32 = st.floats(width=32)
INT32 = (-(2**31), 2**31 - 1)
LIMITS = [(-128, 127), (0, 255), (-32768, 32767), (0, 65535), INT32, (-(2**63), 2**63 - 1)]


def f32(*values):
    return np.array(values, np.float32)


def choose(exact, below, above, below_is_even, mode):
    """Which of two neighbours an exact number between them rounds to."""
    if exact in (below, above):
        return exact
    if mode == c.FLOOR:
        return below
    if mode == c.CEIL:
        return above
    if mode == c.TRUNC:
        return below if exact > 0 else above
    if mode == c.ODD:
        return above if below_is_even else below
    if exact - below != above - exact:
        return below if exact - below < above - exact else above
    if mode == c.ROUND:
        return above if exact > 0 else below
    return below if below_is_even else above


# Narrow floats


def grid(kind, limit):
    """All finite values of a 16-bit format in order, the first value beyond at each end, and the evenness of each."""
    bits = ALL_16_BITS[:0x8000]
    with np.errstate(invalid="ignore"):
        values = bits.view(kind).astype(np.float64)
    positive = [Fraction(v) for v in values[np.isfinite(values)].tolist()] + [Fraction(limit)]
    numbers = [-v for v in reversed(positive[1:])] + positive
    even = [i % 2 == 0 for i in range(len(positive))]
    return numbers, list(reversed(even[1:])) + even


GRIDS = {
    "f16": (c.f32_to_f16_bits, np.float16, 65536.0, grid(np.float16, 65536)),
    "bf16": (c.f32_to_bf16_bits, ml_dtypes.bfloat16, 2.0**128, grid(ml_dtypes.bfloat16, 2**128)),
}


def narrowed(x, name, mode, saturate):
    """The expected value of one conversion, by exact arithmetic on the list of all values of the format."""
    import bisect

    _, _, limit, (numbers, even) = GRIDS[name]
    if math.isnan(x):
        return 0.0 if saturate else math.nan
    largest = float(numbers[-2])
    if math.isinf(x) or abs(x) >= limit:
        return math.copysign(largest if saturate else math.inf, x)
    exact = Fraction(x)
    at = bisect.bisect_right(numbers, exact) - 1
    at = min(at, len(numbers) - 2)
    result = float(choose(exact, numbers[at], numbers[at + 1], even[at], mode))
    if abs(result) >= limit:
        result = math.copysign(largest if saturate else math.inf, x)
    return math.copysign(result, x)


def assert_narrows(values, name, mode, saturate):
    function, kind, _, _ = GRIDS[name]
    x = np.asarray(values, np.float32)
    got = function(x, mode, saturate)
    assert got.dtype == np.uint16 and got.shape == x.shape
    for value, raw in zip(x.ravel().tolist(), got.ravel(), strict=True):
        want = narrowed(value, name, mode, saturate)
        result = float(raw.reshape(1).view(kind)[0])
        if math.isnan(want):
            assert math.isnan(result)
        else:
            assert (result, math.copysign(1, result)) == (want, math.copysign(1, want)), (value, name, mode, saturate)


EDGES = f32(
    0.0, -0.0, 1.0, -1.0, np.inf, -np.inf, np.nan, 65504, 65505, 65519.996, 65520, -65520, 65535.996, 65536, -70000,
    3.4e38, -3.4e38, 3.3961775e38, 2.0**-14, 2.0**-14 - 2.0**-38, 2.0**-24, 2.0**-25, -(2.0**-25), 1.5 * 2.0**-25,
    2.0**-26, 1e-45, -1e-45, 1e-38, 1 + 2.0**-11, 1 + 3 * 2.0**-11, -1 - 2.0**-11, 1 + 2.0**-8, 1 + 3 * 2.0**-8,
)  # fmt: skip


@pytest.mark.parametrize("mode", MODES.values(), ids=MODES)
@pytest.mark.parametrize("saturate", [False, True])
@pytest.mark.parametrize("name", GRIDS)
def test_narrowing_at_the_edges(name, mode, saturate):
    assert_narrows(EDGES, name, mode, saturate)


@settings(deadline=None, max_examples=150)
@given(
    st.lists(
        st.one_of(F32, st.floats(-70000, 70000, width=32), st.floats(-(2.0**-12), 2.0**-12, width=32)), max_size=9
    ),
    st.sampled_from(sorted(MODES.values())),
    st.booleans(),
    st.sampled_from(sorted(GRIDS)),
)
def test_narrowing_of_any(values, mode, saturate, name):
    assert_narrows(values, name, mode, saturate)


def test_narrowing_by_the_documentation():
    """The worked examples of precision_conversion.md."""
    half, bfloat = {}, {}
    for name, mode in MODES.items():
        half[name] = float(c.f32_to_f16_bits(f32(0.5 + 2.0**-12), mode, True).view(np.float16)[0])
        bits = c.f32_to_bf16_bits(f32(0.5 + 2.0**-9 + 2.0**-11), mode, True)
        bfloat[name] = float(bits.view(ml_dtypes.bfloat16)[0])
    up, nearest_up = 0.5 + 2.0**-11, 0.5 + 2.0**-8
    assert half == {m: up if m in ("round", "ceil", "odd") else 0.5 for m in MODES}
    del bfloat["odd"]
    assert bfloat == {m: 0.5 if m in ("floor", "trunc") else nearest_up for m in bfloat}
    assert c.f32_to_f16_bits(f32(70000, -70000, np.inf, np.nan), c.RINT, False).view(np.float16)[:3].tolist() == [
        np.inf, -np.inf, np.inf,
    ]  # fmt: skip
    assert c.f32_to_f16_bits(f32(70000, -70000, np.inf, np.nan), c.RINT, True).view(np.float16).tolist() == [
        65504, -65504, 65504, 0,
    ]  # fmt: skip


def test_nan_keeps_sign_and_payload_and_is_quiet():
    bits = np.array([0x7FC00000, 0xFFC00000, 0x7F800001, 0xFFBFE000, 0x7F802000], np.uint32).view(np.float32)
    assert c.narrow_f16(bits).tolist() == [0x7E00, 0xFE00, 0x7E00, 0xFFFF, 0x7E01]
    assert c.narrow_bf16(bits).tolist() == [0x7FC0, 0xFFC0, 0x7FC0, 0xFFFF, 0x7FC0]


def test_ieee_narrowing_agrees_with_the_array_libraries():
    bits = np.random.default_rng(0).integers(0, 2**32, 20000).astype(np.uint32)
    bits[:10000] = (bits[:10000] & 0x81FFFFFF) | 0x38000000  # around the limits of f16
    x = bits.view(np.float32)
    x = np.concatenate([x[~np.isnan(x)], EDGES[~np.isnan(EDGES)]])
    with np.errstate(over="ignore"):
        assert (c.narrow_f16(x) == x.astype(np.float16).view(np.uint16)).all()
        assert (c.narrow_bf16(x) == x.astype(ml_dtypes.bfloat16).view(np.uint16)).all()


def test_widening_every_value():
    with np.errstate(invalid="ignore"):
        half = ALL_16_BITS.view(np.float16).astype(np.float32)
    got = c.f16_bits_to_f32(ALL_16_BITS)
    numbers = ~np.isnan(half)
    assert got.dtype == np.float32
    assert (got[numbers].view(np.uint32) == half[numbers].view(np.uint32)).all()
    wide = ALL_16_BITS.astype(np.uint32)
    payload = ((wide & 0x8000) << 16) | 0x7F800000 | ((wide & 0x3FF) << 13)
    assert (got[~numbers].view(np.uint32) == payload[~numbers]).all()
    assert (c.bf16_bits_to_f32(ALL_16_BITS).view(np.uint32) == wide << 16).all()


@pytest.mark.parametrize("mode", MODES.values(), ids=MODES)
def test_narrow_undoes_widen(mode):
    for widen, narrow, exponent in (
        (c.f16_bits_to_f32, c.f32_to_f16_bits, 0x7C00),
        (c.bf16_bits_to_f32, c.f32_to_bf16_bits, 0x7F80),
    ):
        magnitude = ALL_16_BITS & 0x7FFF
        numbers = ALL_16_BITS[magnitude <= exponent]
        assert (narrow(widen(numbers), mode, False) == numbers).all()
        finite = numbers[(numbers & 0x7FFF) < exponent]
        assert (narrow(widen(finite), mode, True) == finite).all()


# Whole numbers


def whole(x, mode):
    below = math.floor(x)
    return int(choose(Fraction(x), Fraction(below), Fraction(below + 1), below % 2 == 0, mode))


def to_int(x, mode, saturate, low, high):
    if math.isnan(x):
        return 0
    if math.isinf(x):
        return high if x > 0 else low
    number = whole(x, c.TRUNC if mode in (c.NONE, c.ODD) else mode)
    if saturate:
        return min(max(number, low), high)
    return (number - low) % (high - low + 1) + low


WHOLE_EDGES = f32(
    0, -0.0, 0.5, -0.5, 1.5, -1.5, 2.5, -2.5, 0.49999997, -0.49999997, 8388607.5, 126.5, 127.5, -128.5, 255.5, 256, 257,
    -1, 32767.5, -32768.5, 100000.5, 2**31, -(2.0**31), 2147483520, 2**32 + 512, 2**63, -(2.0**63), 1e20, -3e38, np.inf,
    -np.inf, np.nan, 1e-45, -1e-45,
)  # fmt: skip


@pytest.mark.parametrize("mode", MODES.values(), ids=MODES)
@pytest.mark.parametrize("limits", LIMITS, ids=str)
@pytest.mark.parametrize("saturate", [False, True])
def test_float_to_integer_at_the_edges(limits, mode, saturate):
    got = c.float_to_int(WHOLE_EDGES, mode, saturate, *limits)
    assert got.dtype == np.int64
    assert got.tolist() == [to_int(x, mode, saturate, *limits) for x in WHOLE_EDGES.tolist()]


@settings(deadline=None, max_examples=150)
@given(
    st.lists(st.one_of(F32, st.floats(-70000, 70000, width=32), st.floats(-4, 4, width=32)), max_size=8),
    st.sampled_from(sorted(MODES.values())),
    st.booleans(),
    st.sampled_from(LIMITS),
)
@example([4294967296.0, -4294967296.0], c.RINT, False, INT32)
def test_float_to_integer_of_any(values, mode, saturate, limits):
    got = c.float_to_int(np.array(values, np.float32), mode, saturate, *limits)
    assert got.tolist() == [to_int(float(x), mode, saturate, *limits) for x in values]


def test_float_to_integer_by_the_documentation():
    def one(x, mode, saturate, low, high):
        return c.float_to_int(f32(x), mode, saturate, low, high).tolist()[0]

    five = (c.RINT, c.FLOOR, c.CEIL, c.ROUND, c.TRUNC)
    assert [one(2.0**22 + 0.5, m, True, *INT32) - 2**22 for m in five] == [0, 0, 1, 1, 0]
    assert [one(-1.5, m, True, *INT32) for m in five] == [-2, -2, -1, -2, -1]
    assert [one(2.0**7 - 0.5, m, True, -128, 127) for m in five] == [127] * 5
    assert one(257, c.RINT, False, 0, 255) == 1
    assert one(257, c.RINT, True, 0, 255) == 255
    assert one(-np.inf, c.RINT, True, 0, 255) == 0
    assert one(np.inf, c.RINT, False, -32768, 32767) == 32767
    assert one(np.nan, c.RINT, False, -32768, 32767) == 0


def test_the_libraries_way_without_saturation():
    """Through int32: infinities become the low bits of its limits."""
    x = f32(np.inf, -np.inf, np.nan, 40000, -40000, 300.7, -1)
    assert c.float_to_int_by_way_of_i32(x, c.RINT, -32768, 32767).tolist() == [-1, 0, 0, -25536, 25536, 301, -1]
    assert c.float_to_int_by_way_of_i32(x, c.TRUNC, -128, 127).tolist() == [-1, 0, 0, 64, -64, 44, -1]


@settings(deadline=None, max_examples=100)
@given(st.lists(F32, max_size=8), st.sampled_from(sorted(MODES.values())))
@example(WHOLE_EDGES.tolist(), c.ODD)
@example(WHOLE_EDGES.tolist(), c.ROUND)
def test_rounding_to_whole_floats(values, mode):
    got = c.round_to_integer(np.array(values, np.float32), mode)
    for x, result in zip(values, got.tolist(), strict=True):
        want = x if math.isnan(x) or math.isinf(x) else float(whole(x, mode))
        assert result == want or (math.isnan(x) and math.isnan(result))
        assert math.isnan(x) or math.copysign(1, result) == math.copysign(1, x)
        assert math.isnan(x) or float(np.float32(result)) == result


def nearest_f32s(number):
    """The float32 at or below an integer and the one above, and whether the lower one's significand is even."""
    size = abs(number)
    step = 1 << max(size.bit_length() - 24, 0)
    below = number // step * step
    return Fraction(below), Fraction(below + step), (below // step) % 2 == 0


INTEGER_EDGES = [
    0,
    1,
    -1,
    2**24,
    2**24 + 1,
    -(2**24) - 1,
    2**24 + 3,
    2**25 + 3,
    2**31 - 1,
    -(2**31),
    2**31 - 65,
    2**32 - 1,
]


@settings(deadline=None, max_examples=100)
@given(
    st.lists(st.integers(-(2**31), 2**32 - 1), max_size=8),
    st.sampled_from(sorted(set(MODES.values()) - {c.ODD})),
)
@example(INTEGER_EDGES, c.RINT)
@example(INTEGER_EDGES, c.ROUND)
@example(INTEGER_EDGES, c.FLOOR)
def test_integer_to_float(numbers, mode):
    got = c.int_to_f32(np.array(numbers, np.int64), mode)
    assert got.dtype == np.float32
    assert [Fraction(v) for v in got.tolist()] == [choose(Fraction(n), *nearest_f32s(n), mode) for n in numbers]


def test_integer_to_float_by_the_documentation():
    five = (c.RINT, c.FLOOR, c.CEIL, c.ROUND, c.TRUNC)
    number = np.array([2**25 + 3], np.int32)
    assert [int(c.int_to_f32(number, m)[0]) - 2**25 for m in five] == [4, 0, 4, 4, 0]
    half = [c.f32_to_f16_bits(c.int_to_f32(np.array([2**12 + 2], np.int16), m), m, True) for m in five]
    assert [int(h.view(np.float16)[0]) - 2**12 for h in half] == [0, 0, 4, 4, 0]
    assert c.int_to_f32(np.array([0], np.int32), c.RINT).view(np.uint32).tolist() == [0]
    assert c.int_to_f32(np.array([255, 0], np.uint8), c.RINT).tolist() == [255, 0]


@settings(deadline=None)
@given(st.lists(st.integers(-(2**31), 2**32 - 1), max_size=8), st.booleans(), st.sampled_from(LIMITS[:5]))
def test_integer_to_integer(numbers, saturate, limits):
    low, high = limits
    got = c.int_to_int(np.array(numbers, np.int64), saturate, low, high)
    if saturate:
        want = [min(max(n, low), high) for n in numbers]
    else:
        want = [(n - low) % (high - low + 1) + low for n in numbers]
    assert got.tolist() == want


def test_integer_to_integer_by_the_documentation():
    assert c.int_to_int(np.array([511, 256, -256, -1]), False, -128, 127).tolist() == [-1, 0, 0, -1]
    assert c.int_to_int(np.array([511, -300, 100]), True, -128, 127).tolist() == [127, -128, 100]
    assert c.int_to_int(np.array([500, -10, 100]), True, 0, 255).tolist() == [255, 0, 100]
    assert c.int_to_int(np.array([-5], np.int16), True, 0, 2**32 - 1).tolist() == [0]


@settings(deadline=None, max_examples=100)
@given(
    st.integers(-(2**63), 2**63 - 1), st.integers(0, 62), st.sampled_from([c.RINT, c.ROUND, c.FLOOR, c.CEIL, c.TRUNC])
)
def test_64_bit_integers_to_float(number, shift, mode):
    for value in (number, number >> shift):
        got = float(c.int64_to_f32(np.array([value], np.int64), mode)[0])
        nearest = np.float32(0)
        with np.errstate(over="ignore"):
            below, above = _neighbours(value)
        nearest = {c.FLOOR: below, c.CEIL: above, c.TRUNC: below if value > 0 else above}.get(mode)
        if nearest is None:
            twice = 2 * value - below - above
            tie = (
                (below if (below >> (max(abs(value).bit_length() - 24, 0))) % 2 == 0 else above)
                if mode == c.RINT
                else (above if value > 0 else below)
            )
            nearest = tie if twice == 0 else (below if twice < 0 else above)
        assert got == float(nearest)


def _neighbours(value):
    """The float32 at most and at least ``value``, as integers."""
    unit = 1 << max(abs(value).bit_length() - 24, 0)
    return value // unit * unit, -(-value // unit) * unit


def test_the_table_of_pairs():
    pairs = {(r.source, r.target): r for r in c.CONVERSIONS}
    assert len(pairs) == len(c.CONVERSIONS)
    assert {r.family for r in c.CONVERSIONS} == {
        "widen",
        "narrow",
        "tiny",
        "whole",
        "to_int",
        "from_int",
        "int",
        "to_pairs",
        "from_pairs",
    }
    assert pairs["f32", "f16"].modes[-1] == c.ODD and pairs["f32", "f16"].default_rounding == c.RINT
    wrapping = {p for p, r in pairs.items() if not r.saturates}
    assert wrapping == {("f32", "i16"), ("f16", "i16"), ("f16", "i8"), ("f16", "u8"), ("i32", "i16"), ("i64", "i32")}
    assert all(r.default_rounding == c.TRUNC for r in c.CONVERSIONS if r.family == "to_int")


def test_compiled(agrees):
    random = np.random.default_rng(0)
    x = np.concatenate([EDGES, WHOLE_EDGES, (random.standard_normal(40) * 300).astype(np.float32)])
    integers = np.concatenate([random.integers(-(2**31), 2**31, 50), [0, 2**31 - 1, -(2**31)]]).astype(np.int32)
    for mode in MODES.values():
        for saturate in (False, True):
            agrees(c.f32_to_f16_bits, x, mode, saturate)
            agrees(c.f32_to_bf16_bits, x, mode, saturate)
            for limits in LIMITS:
                agrees(c.float_to_int, x, mode, saturate, *limits)
        agrees(c.round_to_integer, x[~np.isnan(x)], mode)
        agrees(c.int_to_f32, integers, mode)
    for limits in LIMITS[:4]:
        agrees(c.int_to_int, integers, False, *limits)
        agrees(c.int_to_int, integers, True, *limits)
    agrees(c.f16_bits_to_f32, ALL_16_BITS)
    agrees(c.bf16_bits_to_f32, ALL_16_BITS)


@pytest.mark.slow
def test_compiled_compositions(agrees):
    x = np.concatenate([EDGES, WHOLE_EDGES])[:64]
    for limits in LIMITS[:4]:
        agrees(c.float_to_int_by_way_of_i32, x, c.ROUND, *limits)
    agrees(c.narrow_f16, x)
    agrees(c.narrow_bf16, x)
