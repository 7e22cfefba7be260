"""Conversions on UB: every pair and rounding mode against NumPy and exact integers."""

from __future__ import annotations

import math
from fractions import Fraction

import ml_dtypes
import numpy as np
import pytest

from ascsim.machine.dtypes import dtype
from ascsim.machine.trace import Mode
from harness import Bench

RNG = np.random.default_rng(9)
COUNT = 170
NAMES = {
    "f32": "float", "f16": "half", "bf16": "bfloat16", "i64": "int64", "i32": "int32", "i16": "int16", "i8": "int8",
    "u8": "uint8",
}  # fmt: skip
ROUNDINGS = {
    "_rn": round,
    "_rna": lambda x: math.floor(abs(x) + Fraction(1, 2)) * (1 if x > 0 else -1),
    "_rd": math.floor,
    "_ru": math.ceil,
    "_rz": math.trunc,
}
TO_INTEGERS = [("f32", "i16"), ("f32", "i32"), ("f32", "i64"), ("f16", "i32"), ("f16", "i16"), ("f16", "i8"),
               ("f16", "u8"), ("bf16", "i32")]  # fmt: skip


def convert(source: str, target: str, ending: str, values: np.ndarray) -> np.ndarray:
    bench = Bench("a2a3")
    src, dst = bench.pointer(source, values), bench.pointer(target, count=len(values) + 8)
    bench.issue(f"asc_{NAMES[source]}2{NAMES[target]}{ending}", dst, src, len(values))
    found = bench.load(dst, len(values) + 8)
    assert not found[len(values) :].astype(np.float32).any()
    assert bench.traced(Mode.WRITE).sum() == len(values) * dtype(target).size
    assert bench.traced(Mode.READ).sum() == len(values) * dtype(source).size
    return found[: len(values)]


def floats(kind: str) -> np.ndarray:
    values = RNG.normal(0, 1, COUNT) * 10.0 ** RNG.integers(-2, 5, COUNT)
    values[:8] = [0.5, 1.5, -0.5, -2.5, 2.5, 254.5, -127.5, 3.0]
    return values.astype(dtype(kind).numpy)


@pytest.mark.parametrize(("source", "target"), TO_INTEGERS)
@pytest.mark.parametrize("ending", ROUNDINGS)
def test_floats_to_integers_round_and_stop(source: str, target: str, ending: str) -> None:
    values = floats(source)
    values = values[np.isfinite(values.astype(np.float64))]
    limits = np.iinfo(dtype(target).numpy)
    want = [min(max(ROUNDINGS[ending](Fraction(float(v))), limits.min), limits.max) for v in values]
    assert convert(source, target, ending, values).tolist() == want


@pytest.mark.parametrize("source", ("f32", "i64", "i32"))
@pytest.mark.parametrize("ending", ROUNDINGS)
def test_to_floats_of_32_bits(source: str, ending: str) -> None:
    if source == "f32":
        values = floats("f32")
        want = [float(ROUNDINGS[ending](Fraction(float(v)))) for v in values]
        assert convert("f32", "f32", ending, values).tolist() == want
        return
    values = RNG.integers(-(2**62), 2**62, COUNT) >> RNG.integers(0, 60, COUNT)
    values[:4] = [0, 1, -1, 2**24 + 1]
    values = values.astype(dtype(source).numpy)
    found = convert(source, "f32", ending, values)
    for value, number in zip(values.tolist(), found.tolist(), strict=True):
        ulp = Fraction(2) ** max(abs(value).bit_length() - 24, 0)
        assert Fraction(number) == ROUNDINGS[ending](Fraction(value) / ulp) * ulp


@pytest.mark.parametrize("target", ("f16", "bf16"))
def test_float_to_narrow_floats(target: str) -> None:
    values = (RNG.normal(0, 1, COUNT) * 10.0 ** RNG.integers(-3, 4, COUNT)).astype(np.float32)
    nearest = convert("f32", target, "_rn", values).astype(np.float32)
    assert np.array_equal(nearest, values.astype(dtype(target).numpy).astype(np.float32))
    down, up = (convert("f32", target, e, values).astype(np.float32) for e in ("_rd", "_ru"))
    assert (down <= values).all()
    assert (values <= up).all()
    assert ((nearest == down) | (nearest == up)).all()
    toward = convert("f32", target, "_rz", values).astype(np.float32)
    assert np.array_equal(toward, np.where(values < 0, up, down))


def test_a_half_that_is_too_large_stops() -> None:
    found = convert("f32", "f16", "", np.array([1e6, -1e6, np.nan, np.inf] * 8, np.float32))
    assert found[:4].tolist() == [65504, -65504, 0, 65504]


@pytest.mark.parametrize(
    ("source", "target"),
    [("f16", "f32"), ("bf16", "f32"), ("i16", "f32"), ("i8", "f16"), ("u8", "f16"), ("i32", "i64")],
)
def test_what_loses_nothing(source: str, target: str) -> None:
    values = RNG.integers(0, 100, COUNT).astype(dtype(source).numpy)
    assert convert(source, target, "", values).astype(int).tolist() == values.astype(int).tolist()
    assert ml_dtypes.bfloat16 is dtype("bf16").numpy.type


def test_integers_stop_at_the_limits_of_narrower_ones() -> None:
    assert convert("i32", "i16", "", np.array([40000, -40000, 5] * 3)).tolist() == [32767, -32768, 5] * 3
    assert convert("i64", "i32", "", np.array([2**40, -(2**40), 5] * 3)).tolist() == [2**31 - 1, -(2**31), 5] * 3


def test_two_4_bit_integers_share_a_byte() -> None:
    bench = Bench("a2a3")
    values = np.array([0, 1, -8, 7, 100, -100, 2.5, 3.5] * 20, np.float16)
    src, dst = bench.pointer("f16", values), bench.pointer("i4x2", count=96)
    bench.issue("asc_half2int4", dst, src, 160)
    bytes_ = bench.load(dst, 96)
    assert bytes_[:4].tolist() == [0x10, 0x78, 0x87, 0x42]
    assert not bytes_[80:].any()
    back = bench.pointer("f16", count=160)
    bench.issue("asc_int42half", back, dst, 160)
    assert bench.load(back, 8).tolist() == [0, 1, -8, 7, 7, -8, 2, 4]


def test_dequantising_multiplies_by_the_factor() -> None:
    bench = Bench("a2a3")
    values = RNG.integers(-1000, 1000, 64)
    src, dst = bench.pointer("i32", values), bench.pointer("f16", count=64)
    bench.issue("asc_set_deq_scale", 0.25)
    bench.issue("asc_deq_int322half", dst, src, 64)
    assert np.array_equal(bench.load(dst, 64), (values * 0.25).astype(np.float16))
