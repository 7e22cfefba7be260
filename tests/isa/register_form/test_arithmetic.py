"""Arithmetic: hand-worked values, references in wider types or fractions, the tables of border values."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ascsim.isa.definition import Sort
from ascsim.machine.dtypes import DTYPES
from harness import Bench, MReg, VReg
from registers import bits, forms, from_bits, issue, lanes_of, random_mask, register

INTEGERS = ("u8", "i8", "u16", "i16", "u32", "i32")
FLOATS = ("f16", "bf16", "f32")
ARITHMETIC = (*INTEGERS, *FLOATS)
NAN = {"f16": 0x7E00, "bf16": 0x7FC0, "f32": 0x7FC00000}

seeds = st.integers(0, 2**32 - 1)


ALL = MReg(np.ones(256, np.uint8))


def types_of(cpp: str) -> set[str]:
    return {v["T"].name for v in forms(cpp)[0].variants}


def reference(kind: str, function: Any, *sources: VReg) -> np.ndarray:
    """The lane's bits: integers exactly and cut to width, floats in float64 and rounded once."""
    dtype = DTYPES[kind]
    if dtype.kind != "f":
        exact = function(*(s.lanes.astype(np.int64) for s in sources))
        return exact.astype(dtype.numpy).view(dtype.bits_dtype)
    with np.errstate(all="ignore"):
        wide = function(*(s.lanes.astype(np.float64) for s in sources))
        return wide.astype(np.float32).astype(dtype.numpy).view(dtype.bits_dtype) if kind != "f32" else (
            wide.astype(np.float32).view(np.uint32)
        )  # fmt: skip


REFERENCES: dict[str, Any] = {
    "add": np.add, "add_scalar": np.add, "sub": np.subtract, "mul": np.multiply, "mul_scalar": np.multiply,
    "abs": np.abs, "neg": np.negative, "abs_sub": lambda a, b: np.abs(a - b),
    "relu": lambda a: np.where(a <= 0, a * 0 if a.dtype.kind == "i" else 0.0, a),
}  # fmt: skip


def assert_lanes(kind: str, ours: np.ndarray, theirs: np.ndarray, active: np.ndarray) -> None:
    """Equal bits where active, any NaN for a NaN; 0 elsewhere."""
    nan = is_nan(kind, theirs)
    np.testing.assert_array_equal(ours[~active], 0)
    np.testing.assert_array_equal(is_nan(kind, ours)[active], nan[active])
    np.testing.assert_array_equal(ours[active & ~nan], theirs[active & ~nan])


def is_nan(kind: str, lanes: np.ndarray) -> np.ndarray:
    if DTYPES[kind].kind != "f":
        return np.zeros(lanes.size, bool)
    return np.isnan(lanes.view(DTYPES[kind].numpy).astype(np.float32))


@settings(deadline=None, max_examples=60)
@given(st.sampled_from(tuple(REFERENCES)), seeds, st.data())
def test_results_are_rounded_once_and_inactive_lanes_are_zero(name: str, seed: int, data: Any) -> None:
    kind = data.draw(st.sampled_from(sorted(types_of(f"asc_{name}"))))
    a, b, mask = register(kind, seed), register(kind, seed + 1), random_mask(seed)
    count = len([o for o in forms(f"asc_{name}")[0].inputs if o.sort is not Sort.MREG])
    given_: tuple[Any, ...] = (a, b)[:count]
    if name.endswith("_scalar"):
        number = b.lanes[seed % b.lanes.size]
        b = VReg(DTYPES[kind], np.full(b.lanes.size, number).view(np.uint8))
        given_ = (a, float(number) if DTYPES[kind].kind == "f" else int(number))
    ours, theirs = bits(issue(f"asc_{name}", *given_, mask)), reference(kind, REFERENCES[name], *(a, b)[:count])
    assert_lanes(kind, ours, theirs, lanes_of(mask, kind))


@pytest.mark.parametrize(
    ("kind", "a", "b", "expected"),
    [
        ("u8", 200, 100, 44), ("i8", 127, 1, -128), ("u16", 65535, 2, 1), ("i32", -(2**31), -1, 2**31 - 1),
        ("f16", 65504.0, 65504.0, np.inf), ("f16", 2048.0, 1.0, 2048.0), ("f16", 2048.0, 3.0, 2052.0),
        ("bf16", 256.0, 1.0, 256.0), ("f32", 2.0**24, 1.0, 2.0**24), ("f32", -0.0, 0.0, 0.0),
    ],
)  # fmt: skip
def test_hand_worked_sums(kind: str, a: float, b: float, expected: float) -> None:
    bench, lanes = Bench("a5"), 256 // DTYPES[kind].size
    result = bench.issue("asc_add", bench.vreg(kind, [a] * lanes), bench.vreg(kind, [b] * lanes), ALL)
    assert set(result.lanes.astype(float)) == {float(expected)}


def test_add_takes_the_types_of_its_page() -> None:
    assert types_of("asc_add") == types_of("asc_max") == set(ARITHMETIC)


@settings(deadline=None, max_examples=20)
@given(seeds)
def test_add_with_carry_marks_sums_that_do_not_fit(seed: int) -> None:
    a, b, mask = register("u32", seed), register("u32", seed + 1), random_mask(seed)
    carry, total = issue("vaddc", a, b, mask)
    exact = (a.lanes.astype(object) + b.lanes.astype(object)) * lanes_of(mask, "u32").astype(object)
    np.testing.assert_array_equal(total.lanes, [x % 2**32 for x in exact])
    np.testing.assert_array_equal(carry.data[::4], [x >= 2**32 for x in exact])
    assert not carry.data.reshape(64, 4)[:, 1:].any()


@settings(deadline=None, max_examples=60)
@given(st.sampled_from(ARITHMETIC), seeds)
def test_max_is_the_larger_lane(kind: str, seed: int) -> None:
    a, b, mask = register(kind, seed), register(kind, seed + 1), random_mask(seed)
    ours, active = bits(issue("asc_max", a, b, mask)), lanes_of(mask, kind)
    np.testing.assert_array_equal(ours[~active], 0)
    for i in np.flatnonzero(active):
        x, y = float(a.lanes[i]), float(b.lanes[i])
        result = ours[i : i + 1].view(DTYPES[kind].numpy)[0]
        if x != x or y != y:
            assert result != result
        elif x == y == 0:
            assert int(ours[i]) == int(bits(a)[i] & bits(b)[i])  # +0 unless both are -0
        else:
            assert float(result) == max(x, y)


@pytest.mark.parametrize("kind", FLOATS)
def test_max_of_zeros_is_plus_zero_unless_both_are_minus_zero(kind: str) -> None:
    minus = 1 << (8 * DTYPES[kind].size - 1)
    a, b = from_bits(kind, [0, minus, 0, minus]), from_bits(kind, [minus, 0, 0, minus])
    assert bits(issue("asc_max", a, b, ALL))[:4].tolist() == [0, 0, 0, minus]


@settings(deadline=None, max_examples=40)
@given(st.sampled_from(("max", "min")), st.data(), seeds)
def test_extremes_with_a_number_are_those_with_a_register_of_it(name: str, data: Any, seed: int) -> None:
    kind = data.draw(st.sampled_from(sorted(types_of(f"asc_{name}_scalar"))))
    a, mask = register(kind, seed), random_mask(seed)
    number = a.lanes[seed % a.lanes.size]
    every = VReg(DTYPES[kind], np.full(a.lanes.size, number).view(np.uint8))
    given_ = float(number) if DTYPES[kind].kind == "f" else int(number)
    ours, theirs = bits(issue(f"asc_{name}_scalar", a, given_, mask)), bits(issue(f"asc_{name}", a, every, mask))
    assert_lanes(kind, ours, theirs, lanes_of(mask, kind))


@settings(deadline=None, max_examples=40)
@given(st.sampled_from(FLOATS), seeds)
def test_min_is_the_larger_of_the_negated(kind: str, seed: int) -> None:
    minus = VReg(DTYPES[kind], np.full(256 // DTYPES[kind].size, -1).astype(DTYPES[kind].numpy).view(np.uint8))
    a, b = register(kind, seed), register(kind, seed + 1)
    low = issue("asc_min", a, b, ALL)
    high = issue("asc_max", issue("asc_mul", a, minus, ALL), issue("asc_mul", b, minus, ALL), ALL)
    assert_lanes(kind, bits(issue("asc_mul", high, minus, ALL)), bits(low), np.ones(low.lanes.size, bool))


@settings(deadline=None, max_examples=30)
@given(st.sampled_from(("i16", "u16", "i32", "u32")), seeds)
def test_integers_are_divided_towards_zero_and_by_zero_give_0(kind: str, seed: int) -> None:
    a, b, mask = register(kind, seed), register(kind, seed + 1), random_mask(seed)
    b.data.view(b.dtype.numpy)[::3] = np.arange(-1, b.lanes[::3].size - 1)  # -1 (or the largest), 0, 1, ...
    expected = [
        (abs(int(x)) // abs(int(y)) * (1 if (x < 0) == (y < 0) else -1) if y else 0) * int(on)
        for x, y, on in zip(a.lanes, b.lanes, lanes_of(mask, kind), strict=True)
    ]
    np.testing.assert_array_equal(
        bits(issue("asc_div", a, b, mask)), np.array(expected, object).astype(np.int64).astype(b.dtype.bits_dtype)
    )


FUNCTIONS: dict[str, Any] = {"exp": np.exp, "ln": np.log, "sqrt": np.sqrt, "div": np.divide}


@settings(deadline=None, max_examples=40)
@given(st.sampled_from(tuple(FUNCTIONS)), st.sampled_from(("f16", "f32")), seeds)
def test_functions_of_numbers_that_are_not_subnormal(name: str, kind: str, seed: int) -> None:
    rng = np.random.default_rng(seed)
    given_ = [Bench("a5").vreg(kind, rng.normal(0, 3, 256 // DTYPES[kind].size)) for _ in range(1 + (name == "div"))]
    given_[0].data.view(given_[0].dtype.numpy)[:6] = [0, -0.0, np.inf, -np.inf, np.nan, 1]
    ours, theirs = bits(issue(f"asc_{name}", *given_, ALL)), reference(kind, FUNCTIONS[name], *given_)
    smallest = 2.0**-14 if kind == "f16" else 2.0**-126
    normal = np.abs(theirs.view(DTYPES[kind].numpy).astype(np.float64)) >= smallest
    normal |= (theirs & (2 ** (8 * DTYPES[kind].size - 1) - 1)) == 0
    ours_, theirs_ = np.where(normal, ours, 0), np.where(normal, theirs, 0)
    assert_lanes(kind, ours_, theirs_, np.ones(ours.size, bool))


@pytest.mark.parametrize(("name", "given_", "expected"), [
    ("div", (0x3F800000, 0x8036A794), 0xFF800000),  # the page's examples: 1 / -5.0e-39, and two subnormals
    ("exp", (0xC2AEAC50,), 0), ("exp", (0x00000001,), 0x3F800000), ("ln", (0x00000001,), 0xFF800000),
    ("ln", (0x80000000,), 0xFF800000), ("sqrt", (0x00776672,), 0), ("sqrt", (0x80000000,), 0x80000000),
])  # fmt: skip
def test_subnormals_count_as_zero(name: str, given_: tuple[int, ...], expected: int) -> None:
    result = issue(f"asc_{name}", *(from_bits("f32", [x] * 64) for x in given_), ALL)
    assert set(bits(result).tolist()) == {expected}
    both = issue("asc_div", from_bits("f32", [0x0014440B]), from_bits("f32", [0x0053E3CF]), ALL)
    assert np.isnan(both.lanes[0])


def test_subnormals_stay_where_no_page_flushes_them() -> None:
    tiny = from_bits("f32", [1] * 64)
    assert set(bits(issue("asc_add", tiny, tiny, ALL)).tolist()) == {2}


@pytest.mark.parametrize("kind", ("f16", "f32"))
def test_leaky_relu_at_its_border(kind: str) -> None:
    a = Bench("a5").vreg(kind, [2, -2, 0.0, -0.0, np.inf, -np.inf, np.nan, -8] + [1] * (256 // DTYPES[kind].size - 8))
    slopes = Bench("a5").vreg(kind, [0.5] * a.lanes.size)
    for result in (issue("asc_leakyrelu", a, 0.5, ALL), issue("asc_prelu", a, slopes, ALL)):
        np.testing.assert_array_equal(result.lanes[:8], [2, -1, 0, 0, np.inf, -np.inf, np.nan, -4])
        assert np.signbit(result.lanes[:4]).tolist() == [False, True, False, True]


# Carries


@settings(deadline=None, max_examples=20)
@given(seeds)
def test_carries_chain_into_numbers_of_64_bits(seed: int) -> None:
    rng = np.random.default_rng(seed)
    a, b = (rng.integers(0, 2**64, 64, np.uint64, endpoint=False) for _ in range(2))
    b[::4] = a[::4]

    def halves(x: np.ndarray) -> tuple[VReg, VReg]:
        low, high = (x & np.uint64(0xFFFFFFFF)).astype(np.uint32), (x >> np.uint64(32)).astype(np.uint32)
        return VReg(DTYPES["u32"], low.view(np.uint8)), VReg(DTYPES["u32"], high.view(np.uint8))

    (a0, a1), (b0, b1) = halves(a), halves(b)
    for name, expected in (("add", a + b), ("sub", a - b)):
        carry, low = issue(f"v{name}c", a0, b0, ALL)
        out, high = issue(f"asc_{name}c", a1, b1, carry, ALL)
        np.testing.assert_array_equal(low.lanes | high.lanes.astype(np.uint64) << np.uint64(32), expected)
        beyond = expected < a if name == "add" else a >= b
        np.testing.assert_array_equal(out.data[::4], beyond)


def test_carries_of_inactive_lanes_are_0() -> None:
    full = from_bits("u32", [2**32 - 1] * 64)
    for result in issue("asc_addc", full, full, ALL, MReg()):
        assert not result.data.any()


@pytest.mark.parametrize(("kind", "a", "b", "low", "high"), [
    ("u32", 2**32 - 1, 2**32 - 1, 1, 2**32 - 2), ("i32", -(2**31), -(2**31), 0, 2**30),
    ("i32", -(2**31), 2**31 - 1, -(2**31), -(2**30)), ("i32", 2**31 - 1, 2**31 - 1, 1, 2**30 - 1),
])  # fmt: skip
def test_wide_products_as_in_the_table_of_border_values(kind: str, a: int, b: int, low: int, high: int) -> None:
    bench = Bench("a5")
    results = bench.issue("asc_mull", bench.vreg(kind, [a] * 64), bench.vreg(kind, [b] * 64), ALL)
    assert [set(r.lanes.tolist()) for r in results] == [{low}, {high}]


# Fused


def fused(a: float, b: float, c: float) -> Fraction | None:
    return Fraction(a) * Fraction(b) + Fraction(c) if np.isfinite([a, b, c]).all() else None


@settings(deadline=None, max_examples=25)
@given(st.sampled_from(("f16", "f32")), st.sampled_from(("madd", "axpy")), seeds)
def test_multiply_add_rounds_once(kind: str, name: str, seed: int) -> None:
    rng, numpy_type = np.random.default_rng(seed), DTYPES[kind].numpy
    lanes = 256 // DTYPES[kind].size
    a, b = (rng.normal(0, 1, lanes).astype(numpy_type) for _ in range(2))
    b[:] = b[0] if name == "axpy" else b
    near = -a.astype(np.float64) * b * (1 + rng.normal(0, 1, lanes) * 2.0 ** -rng.integers(0, 40, lanes))
    c, bench = near.astype(numpy_type), Bench("a5")
    registers = [bench.vreg(kind, x) for x in (a, b, c)]
    if name == "madd":
        result = bench.issue("asc_madd", *registers, ALL).lanes
    else:
        result = bench.issue("asc_axpy", registers[2], registers[0], float(b[0]), ALL).lanes
    for i in range(lanes):
        exact = fused(float(a[i]), float(b[i]), float(c[i]))
        assert exact is not None
        distance = abs(Fraction(float(result[i])) - exact)
        for neighbour in (-np.inf, np.inf):
            other = float(np.nextafter(result[i], numpy_type.type(neighbour)))
            if np.isfinite(other):
                further = abs(Fraction(other) - exact)
                assert distance < further or (
                    distance == further and not result[i : i + 1].view(f"u{result.itemsize}")[0] & 1
                )


def test_multiply_add_of_infinities_and_nans() -> None:
    bench = Bench("a5")
    table = [(np.inf, 1, -np.inf, np.nan), (np.inf, 2, 1, np.inf), (0, np.inf, 1, np.nan), (1, 1, np.nan, np.nan),
             (3e38, 10, -3e38, np.inf), (-0.0, 1, -0.0, -0.0), (-0.0, 1, 0.0, 0.0), (1, -1, 1, 0.0)]  # fmt: skip
    columns = [bench.vreg("f32", [row[i] for row in table] * 8) for i in range(4)]
    result = bench.issue("asc_madd", *columns[:3], ALL)
    np.testing.assert_array_equal(result.lanes, columns[3].lanes)
    finite = ~np.isnan(result.lanes)
    np.testing.assert_array_equal(np.signbit(result.lanes[finite]), np.signbit(columns[3].lanes[finite]))


# Between half and float


@pytest.mark.parametrize(("end", "part"), [("", 0), ("_v2", 1)])
def test_exp_sub_takes_every_other_half_lane(end: str, part: int) -> None:
    bench, rng = Bench("a5"), np.random.default_rng(3)
    a, b = (bench.vreg("f16", rng.normal(0, 1, 128)) for _ in range(2))
    x, y = (r.lanes.astype(np.float32)[part::2] for r in (a, b))
    expected = np.exp((x - y).astype(np.float64)).astype(np.float32)
    np.testing.assert_array_equal(bench.issue(f"asc_exp_sub{end}", a, b, ALL, result="f32").lanes, expected)
    wide = [bench.vreg("f32", r.lanes[:64]) for r in (a, b)]
    plain = bench.issue(f"asc_exp_sub{end}", *wide, ALL)
    difference = wide[0].lanes - wide[1].lanes
    np.testing.assert_array_equal(plain.lanes, np.exp(difference.astype(np.float64)).astype(np.float32))


@pytest.mark.parametrize(("end", "part"), [("", 0), ("_v2", 1)])
def test_muls_rounds_ties_away_from_zero_into_every_other_lane(end: str, part: int) -> None:
    bench = Bench("a5")
    source = bench.vreg("f32", [1.0 + 2.0**-11, -(1.0 + 2.0**-11), 1.0, 40000.0] * 16)
    lanes = bench.issue(f"asc_muls{end}", source, 2.0, ALL).lanes.astype(np.float64)
    assert lanes[part:8:2].tolist() == [2.0 + 2.0**-9, -(2.0 + 2.0**-9), 2.0, np.inf]
    assert not lanes[1 - part :: 2].any()
