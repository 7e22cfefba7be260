"""Scalar arithmetic against Python's integers, fractions and NumPy's floats."""

import math
from collections.abc import Callable
from fractions import Fraction

import ml_dtypes
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from xdsl.dialects.builtin import (
    Float80Type,
    FunctionType,
    IndexType,
    IntegerType,
    Signedness,
    bf16,
    f16,
    f32,
    f64,
)

from ascsim.frontends.ptoas import scalars
from ascsim.frontends.ptoas.scalars import ScalarError, binary, cast, compare

WIDTHS = [1, 8, 16, 32, 64]
kinds = st.sampled_from([IntegerType(n) for n in WIDTHS] + [IndexType()])


def signed(value: int, bits: int) -> int:
    value %= 1 << bits
    return value - (1 << bits) if value >> (bits - 1) else value


def held(value: int, bits: int) -> int:
    """How the evaluator holds an integer: i1 as 0 or 1, others signed."""
    return value % 2 if bits == 1 else signed(value, bits)


def toward_zero(a: int, b: int) -> int:
    return math.trunc(Fraction(a, b))


# name: what the result is, from the signed and the unsigned values of the operands and the width
INTEGERS: dict[str, Callable[[int, int, int, int, int], int]] = {
    "addi": lambda a, b, ua, ub, n: a + b,
    "subi": lambda a, b, ua, ub, n: a - b,
    "muli": lambda a, b, ua, ub, n: a * b,
    "divsi": lambda a, b, ua, ub, n: toward_zero(a, b),
    "divui": lambda a, b, ua, ub, n: ua // ub,
    "ceildivsi": lambda a, b, ua, ub, n: math.ceil(Fraction(a, b)),
    "ceildivui": lambda a, b, ua, ub, n: math.ceil(Fraction(ua, ub)),
    "floordivsi": lambda a, b, ua, ub, n: math.floor(Fraction(a, b)),
    "remsi": lambda a, b, ua, ub, n: a - b * toward_zero(a, b),
    "remui": lambda a, b, ua, ub, n: ua % ub,
    "andi": lambda a, b, ua, ub, n: ua & ub,
    "ori": lambda a, b, ua, ub, n: ua | ub,
    "xori": lambda a, b, ua, ub, n: ua ^ ub,
    "minsi": lambda a, b, ua, ub, n: min(a, b),
    "maxsi": lambda a, b, ua, ub, n: max(a, b),
    "minui": lambda a, b, ua, ub, n: min(ua, ub),
    "maxui": lambda a, b, ua, ub, n: max(ua, ub),
    "shli": lambda a, b, ua, ub, n: ua << ub,
    "shrsi": lambda a, b, ua, ub, n: a >> ub,
    "shrui": lambda a, b, ua, ub, n: ua >> ub,
}


def test_every_integer_operation_has_a_reference() -> None:
    assert INTEGERS.keys() == scalars.INTEGER_BINARY.keys() | scalars.SHIFTS.keys()


@pytest.mark.parametrize("name", INTEGERS)
@given(kind=kinds, a=st.integers(), b=st.integers())
@settings(deadline=None, max_examples=60)
def test_integers_wrap_around_at_their_width(name: str, kind: IntegerType | IndexType, a: int, b: int) -> None:
    bits = scalars.bits_of(kind)
    compute = binary(name, kind)
    assert compute is not None
    divides, shifts = "div" in name or "rem" in name, name in scalars.SHIFTS
    if shifts:
        b %= bits
    ua, ub = a % (1 << bits), b % (1 << bits)
    if divides and not ub:
        with pytest.raises(ScalarError, match="by zero"):
            compute(held(a, bits), held(b, bits))
        return
    want = INTEGERS[name](signed(a, bits), signed(b, bits), ua, ub, bits)
    assert compute(held(a, bits), held(b, bits)) == held(want, bits)


@given(kind=kinds, a=st.integers(), b=st.integers())
@settings(deadline=None)
def test_a_shift_beyond_the_width_is_refused(kind: IntegerType | IndexType, a: int, b: int) -> None:
    bits = scalars.bits_of(kind)
    amount = b % (1 << bits)
    for name in scalars.SHIFTS:
        compute = binary(name, kind)
        assert compute is not None
        if amount >= bits:
            with pytest.raises(ScalarError, match=f"by {amount}; the amount is 0 to {bits - 1}"):
                compute(held(a, bits), held(b, bits))


COMPARISONS = {
    "eq": lambda a, b, ua, ub: a == b,
    "ne": lambda a, b, ua, ub: a != b,
    "slt": lambda a, b, ua, ub: a < b,
    "sle": lambda a, b, ua, ub: a <= b,
    "sgt": lambda a, b, ua, ub: a > b,
    "sge": lambda a, b, ua, ub: a >= b,
    "ult": lambda a, b, ua, ub: ua < ub,
    "ule": lambda a, b, ua, ub: ua <= ub,
    "ugt": lambda a, b, ua, ub: ua > ub,
    "uge": lambda a, b, ua, ub: ua >= ub,
}


@pytest.mark.parametrize("number", range(10))
@given(kind=kinds, a=st.integers(), b=st.integers(), same=st.booleans())
@settings(deadline=None, max_examples=60)
def test_integer_comparisons(number: int, kind: IntegerType | IndexType, a: int, b: int, same: bool) -> None:
    name = list(COMPARISONS)[number]
    assert scalars.INTEGER_COMPARE[number][0] == name
    bits = scalars.bits_of(kind)
    b = a if same else b
    want = COMPARISONS[name](signed(a, bits), signed(b, bits), a % (1 << bits), b % (1 << bits))
    assert compare(number, kind)(held(a, bits), held(b, bits)) == int(want)


@given(source=kinds, target=kinds, value=st.integers())
@settings(deadline=None)
def test_widening_and_narrowing(source: IntegerType | IndexType, target: IntegerType | IndexType, value: int) -> None:
    n, m = scalars.bits_of(source), scalars.bits_of(target)
    for name in ("extsi", "index_cast"):
        convert = cast(name, source, target)
        assert convert is not None and convert(held(value, n)) == held(signed(value, n), m)
    for name in ("extui", "index_castui"):
        convert = cast(name, source, target)
        assert convert is not None and convert(held(value, n)) == held(value % (1 << n), m)
    if m < n:
        convert = cast("trunci", source, target)
        assert convert is not None and convert(held(value, n)) == held(value, m)


def test_unsigned_types_hold_unsigned_values() -> None:
    assert scalars.wrapper(IntegerType(8, Signedness.UNSIGNED))(-1) == 255
    assert scalars.wrapper(IntegerType(8))(255) == -1


# Floats

FLOATS = {f16: np.float16, bf16: ml_dtypes.bfloat16, f32: np.float32, f64: np.float64}


@pytest.mark.parametrize("kind", FLOATS, ids=str)
@pytest.mark.parametrize("name", ["addf", "subf", "mulf", "divf"])
@given(a=st.floats(), b=st.floats())
@settings(deadline=None, max_examples=40)
def test_floats_round_once_to_their_type(name: str, kind: object, a: float, b: float) -> None:
    scalar = FLOATS[kind]
    with np.errstate(all="ignore"):
        left, right = scalar(a), scalar(b)
        if kind is bf16:  # its exact sum may round twice in NumPy: float32 is wide enough to be exact or innocuous
            operation = getattr(np, {"addf": "add", "subf": "subtract", "mulf": "multiply", "divf": "divide"}[name])
            want = float(scalar(operation(np.float64(left), np.float64(right))))
        else:
            operation = getattr(np, {"addf": "add", "subf": "subtract", "mulf": "multiply", "divf": "divide"}[name])
            want = float(operation(left, right))
    compute = binary(name, kind)  # type: ignore[arg-type]
    assert compute is not None
    got = compute(float(left), float(right))
    assert np.array_equal([got], [want], equal_nan=True)


@pytest.mark.parametrize(
    ("name", "a", "b", "want"),
    [
        ("maximumf", 1.0, math.nan, math.nan),
        ("maximumf", -0.0, 0.0, 0.0),
        ("minimumf", 0.0, -0.0, -0.0),
        ("minimumf", math.nan, 1.0, math.nan),
        ("maxnumf", math.nan, 1.0, 1.0),
        ("maxnumf", 3.0, 2.0, 3.0),
        ("minnumf", 2.0, math.nan, 2.0),
        ("minnumf", 2.0, 3.0, 2.0),
        ("remf", -7.0, 3.0, -1.0),
        ("remf", 7.0, math.inf, 7.0),
        ("remf", math.inf, 2.0, math.nan),
        ("divf", 1.0, 0.0, math.inf),
    ],
)
def test_float_corners(name: str, a: float, b: float, want: float) -> None:
    compute = binary(name, f32)
    assert compute is not None
    got = compute(a, b)
    assert got == want or (math.isnan(got) and math.isnan(want))
    assert math.copysign(1, got) == math.copysign(1, want) or math.isnan(want)


@given(a=st.floats(), b=st.floats(), same=st.booleans())
@settings(deadline=None)
def test_float_comparisons_split_by_order(a: float, b: float, same: bool) -> None:
    b = a if same else b
    unordered = math.isnan(a) or math.isnan(b)
    truth = {"eq": a == b, "gt": a > b, "ge": a >= b, "lt": a < b, "le": a <= b, "ne": a != b and not unordered}
    got = {name: compare(number, f64)(a, b) for number, (name, _) in enumerate(scalars.FLOAT_COMPARE)}
    assert (got["false"], got["true"]) == (0, 1)
    assert (got["ord"], got["uno"]) == (int(not unordered), int(unordered))
    for test, holds in truth.items():
        assert got[f"o{test}"] == int(holds and not unordered)
        assert got[f"u{test}"] == int(holds or unordered)


@pytest.mark.parametrize("kind", FLOATS, ids=str)
@given(value=st.integers(-(1 << 63), (1 << 63) - 1))
@settings(deadline=None)
def test_integers_become_the_nearest_float(kind: object, value: int) -> None:
    convert = cast("sitofp", IntegerType(64), kind)  # type: ignore[arg-type]
    assert convert is not None
    got = convert(value)
    if math.isinf(got):
        assert kind is f16 and abs(value) >= 65520
        return
    scalar = FLOATS[kind]
    around = [float(np.nextafter(scalar(got), scalar(s))) for s in (-math.inf, math.inf)]
    errors = [abs(Fraction(x) - value) for x in around if math.isfinite(x)]
    assert abs(Fraction(got) - value) <= min(errors)


def test_an_integer_is_not_rounded_twice_on_its_way_to_float32() -> None:
    convert = cast("sitofp", IntegerType(64), f32)
    assert convert is not None
    value = (1 << 60) + (1 << 36) + 1  # just above the middle of two float32; as a float64 exactly the middle
    assert convert(value) == float((1 << 60) + (1 << 37))


@pytest.mark.parametrize(
    ("name", "kind", "value", "want"),
    [
        ("fptosi", IntegerType(8), -1.9, -1),
        ("fptoui", IntegerType(8), 200.5, -56),
        ("uitofp", f32, -1, 255.0),
        ("truncf", f16, 1.0 + 2**-12, 1.0),
        ("negf", f32, 0.0, -0.0),
    ],
)
def test_conversions_between_floats_and_integers(name: str, kind: object, value: float, want: float) -> None:
    source = IntegerType(8) if name == "uitofp" else f32
    convert = cast(name, source, kind)  # type: ignore[arg-type]
    assert convert is not None
    assert convert(value) == want and math.copysign(1, convert(value)) == math.copysign(1, want)


@pytest.mark.parametrize("value", [128.0, -129.0, math.nan, math.inf])
def test_a_float_beyond_the_integer_is_refused(value: float) -> None:
    convert = cast("fptosi", f32, IntegerType(8))
    assert convert is not None
    with pytest.raises(ScalarError, match="not within -128 to 127"):
        convert(value)


@pytest.mark.parametrize(("kind", "bits"), [(f16, 16), (bf16, 16), (f32, 32), (f64, 64)])
@given(value=st.integers())
@settings(deadline=None)
def test_bitcast_keeps_the_bits(kind: object, bits: int, value: int) -> None:
    whole = IntegerType(bits)
    there, back = cast("bitcast", whole, kind), cast("bitcast", kind, whole)  # type: ignore[arg-type]
    assert there is not None and back is not None
    number = there(signed(value, bits))
    assert math.isnan(number) or back(number) == signed(value, bits)


def test_one_is_the_bits_of_one() -> None:
    for kind, bits, code in [(f16, 16, 0x3C00), (bf16, 16, 0x3F80), (f32, 32, 0x3F800000), (f64, 64, 0x3FF << 52)]:
        there = cast("bitcast", IntegerType(bits), kind)
        assert there is not None and there(code) == 1.0


def test_what_is_no_scalar_is_refused() -> None:
    nothing = FunctionType.from_lists([], [])
    for attempt in (
        lambda: scalars.bits_of(nothing),
        lambda: scalars.rounder(nothing),
        lambda: binary("addf", Float80Type()),
        lambda: binary("addi", nothing),
        lambda: compare(0, nothing),
    ):
        with pytest.raises(TypeError, match="type"):
            attempt()
    assert binary("shuffle", f32) is None
    assert cast("shuffle", f32, f32) is None
