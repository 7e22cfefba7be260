"""Conversions between half and float registers: which lanes, which mask bits, which rounding."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ascsim.isa import REGISTRY
from ascsim.machine.dtypes import DTYPES, f16, f32
from harness import Bench, MReg, VReg
from registers import register_bytes

PARTS = {"": 0, "_v2": 1}
ROUNDINGS = ("rn", "rna", "rd", "ru", "rz", "ro")
LARGEST = 65504.0
seeds = st.integers(0, 2**32 - 1)
ALL = MReg(np.ones(256, np.uint8))


def register(kind: str, seed: int) -> VReg:
    return VReg(DTYPES[kind], register_bytes(DTYPES[kind], np.random.default_rng(seed)))


def random_mask(seed: int) -> MReg:
    return MReg(np.random.default_rng(seed + 7).integers(0, 2, 256).astype(np.uint8))


def issue(name: str, *args: Any) -> VReg:
    return Bench("a5").issue(name, *args)


def halves() -> list[Fraction]:
    """All finite non-negative halves, in order; the number is the bits."""
    return [Fraction(float(x)) for x in np.arange(0x7C00, dtype=np.uint16).view(np.float16)]


HALVES = halves()
STEPS = np.array([float(h) for h in HALVES])
BEYOND = Fraction(65536)


def rounded(value: float, rounding: str, saturates: bool) -> int:
    """The bits of float32 ``value`` as half, worked out with fractions."""
    sign = 0x8000 if np.signbit(np.float32(value)) else 0
    if value != value:
        return 0 if saturates else -1  # some NaN
    if np.isinf(value):
        return sign | (0x7BFF if saturates else 0x7C00)
    exact = abs(Fraction(value))
    low = int(np.searchsorted(STEPS, float(exact), "right")) - 1
    below, above = HALVES[low], HALVES[low + 1] if low + 1 < len(HALVES) else BEYOND
    if below != exact:
        if low == 0x7BFF and exact >= BEYOND:
            low = 0x7C00
        else:
            tie = exact - below == above - exact
            nearer = exact - below > above - exact
            up = {
                "rn": nearer or (tie and low % 2 == 1), "rna": nearer or tie, "rd": bool(sign), "ru": not sign,
                "rz": False, "ro": low % 2 == 0,
            }[rounding]  # fmt: skip
            low += int(up)
    if low > 0x7BFF:
        return sign | (0x7BFF if saturates else 0x7C00)
    return sign | low


# half to float


@settings(deadline=None, max_examples=40)
@given(st.sampled_from(sorted(PARTS)), seeds)
def test_half_to_float_takes_even_or_odd_lanes_by_the_mask_of_half_lanes(end: str, seed: int) -> None:
    source, mask, part = register("f16", seed), random_mask(seed), PARTS[end]
    result = issue(f"asc_half2float{end}", source, mask)
    assert result.dtype is f32
    active = mask.data[::2][part::2].astype(bool)
    expected = np.where(active, source.lanes[part::2].astype(np.float32), np.float32(0))
    number = ~np.isnan(expected)
    np.testing.assert_array_equal(np.isnan(result.lanes), ~number)
    np.testing.assert_array_equal(result.lanes.view(np.uint32)[number], expected.view(np.uint32)[number])


def test_every_half_is_exact() -> None:
    for start in range(0, 1 << 16, 64):
        chunk = np.arange(start, start + 64, dtype=np.uint16)
        source = VReg(f16, np.repeat(chunk, 2).view(np.uint8))
        result = issue("asc_half2float", source, ALL).lanes
        wanted = chunk.view(np.float16).astype(np.float32)
        np.testing.assert_array_equal(np.isnan(result), np.isnan(wanted))
        np.testing.assert_array_equal(result[~np.isnan(result)], wanted[~np.isnan(wanted)])
        np.testing.assert_array_equal(np.signbit(result), np.signbit(wanted))


def test_a_mask_for_32_bit_lanes_lets_no_odd_half_through() -> None:
    bench, source = Bench("a5"), register("f16", 3)
    for32 = bench.issue("asc_create_mask_b32", 0)
    assert bench.issue("asc_half2float", source, for32).data.any()
    assert not bench.issue("asc_half2float_v2", source, for32).data.any()


# float to half


@settings(deadline=None, max_examples=40)
@given(st.sampled_from(ROUNDINGS), st.booleans(), st.sampled_from(sorted(PARTS)), seeds)
def test_float_to_half_rounds_into_even_or_odd_lanes(rounding: str, saturates: bool, end: str, seed: int) -> None:
    source, mask, part = register("f32", seed), random_mask(seed), PARTS[end]
    result = issue(f"asc_float2half_{rounding}{'_sat' * saturates}{end}", source, mask)
    assert result.dtype is f16
    lanes = result.data.view(np.uint16)
    np.testing.assert_array_equal(lanes[1 - part :: 2], 0)
    for i, value in enumerate(source.lanes):
        got = int(lanes[2 * i + part])
        expected = rounded(float(value), rounding, saturates) if mask.data[4 * i] else 0
        assert got & 0x7FFF > 0x7C00 if expected < 0 else got == expected, (value, rounding)


@pytest.mark.parametrize(
    ("name", "value", "expected"),
    [
        ("rn", 1 + 2**-11, 0x3C00), ("rna", 1 + 2**-11, 0x3C01), ("rd", -1 - 2**-20, 0xBC01),
        ("ru", 1 + 2**-20, 0x3C01), ("rz", 1.9999, 0x3FFF), ("ro", 1 + 2**-20, 0x3C01),
        ("rn", 70000.0, 0x7C00), ("rn_sat", 70000.0, 0x7BFF),
        ("rn", -70000.0, 0xFC00), ("rn_sat", -np.inf, 0xFBFF), ("rn_sat", np.nan, 0x0000), ("rn", np.inf, 0x7C00),
        ("rn", 65519.0, 0x7BFF), ("rn", 65520.0, 0x7C00), ("rn", 2.0**-25, 0x0000), ("rn", 2.0**-24, 0x0001),
        ("ru", 2.0**-30, 0x0001), ("rn", -0.0, 0x8000),
    ],
)  # fmt: skip
def test_hand_worked_conversions(name: str, value: float, expected: int) -> None:
    bench = Bench("a5")
    result = bench.issue(f"asc_float2half_{name}", bench.vreg("f32", [value] * 64), ALL)
    assert set(result.data.view(np.uint16)[::2].tolist()) == {expected}


@settings(deadline=None, max_examples=20)
@given(seeds)
def test_a_half_register_survives_both_ways(seed: int) -> None:
    bench, source = Bench("a5"), register("f16", seed)
    even = bench.issue("asc_float2half_rn", bench.issue("asc_half2float", source, ALL), ALL)
    odd = bench.issue("asc_float2half_rn_v2", bench.issue("asc_half2float_v2", source, ALL), ALL)
    both = even.data.view(np.uint16) | odd.data.view(np.uint16)
    number = ~np.isnan(source.lanes)
    np.testing.assert_array_equal(both[number], source.data.view(np.uint16)[number])


def test_pto_attributes_select_the_form() -> None:
    def found(**attributes: str) -> list[str]:
        wanted = tuple(sorted(attributes.items()))
        return [d.cpp for d in REGISTRY.by_asm["vcvt"] for s in d.asm if tuple(sorted(s.attributes)) == wanted]

    assert set(found(part="EVEN")) == {"asc_half2float", "asc_float2half_rn"}
    assert set(found(rnd="R", sat="SAT", part="ODD")) == {"asc_float2half_rn_sat_v2"}
    assert set(found(rnd="Z", sat="NOSAT", part="EVEN")) == {"asc_float2half_rz"}
    assert found(rnd="X", part="EVEN") == []
