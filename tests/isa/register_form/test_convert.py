"""Conversions between the types of registers: which lanes, which mask bits, which rounding, what is out of range."""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ascsim.frontends.cpp.generate import public_names
from ascsim.isa import REGISTRY
from ascsim.isa.definition import RegisterInstruction
from ascsim.isa.register_form import convert
from ascsim.machine.dtypes import DTYPES, f16, f32
from harness import Bench, MReg, VReg
from registers import register


def name_of(row: convert.Row, rounding: convert.Rounding, saturates: bool | None, part: int) -> str:
    ends = (rounding.suffix, "sat" * bool(saturates), f"v{part + 1}" * bool(part))
    return f"asc_{row.base}" + "".join(f"_{e}" for e in ends if e)


PARTS = {"": 0, "_v2": 1}
ROUNDINGS = ("rn", "rna", "rd", "ru", "rz", "ro")
LARGEST = 65504.0
seeds = st.integers(0, 2**32 - 1)
ALL = MReg(np.ones(256, np.uint8))


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


def found_in_text(source: str, target: str, **attributes: str) -> set[str]:
    """The conversions of a pair of types that attributes of .pto text select."""
    wanted = tuple(sorted(attributes.items()))
    return {
        d.cpp
        for d in REGISTRY.by_asm["vcvt"]
        for s in d.asm
        if tuple(sorted(s.attributes)) == wanted and source in vars_of(d)["S"] and target in vars_of(d)["T"]
    }


def vars_of(definition: Any) -> dict[str, set[str]]:
    return {k: {v[k].name for v in definition.variants} for k in definition.variants[0]}


def test_pto_attributes_select_the_form() -> None:
    assert found_in_text("f16", "f32", part="EVEN") == {"asc_half2float"}
    assert found_in_text("f32", "f16", part="EVEN") == {"asc_float2half_rn"}
    assert found_in_text("f32", "f16", rnd="R", sat="SAT", part="ODD") == {"asc_float2half_rn_sat_v2"}
    assert found_in_text("f32", "f16", rnd="Z", sat="NOSAT", part="EVEN") == {"asc_float2half_rz"}
    assert found_in_text("f32", "i32", round_mode="ROUND_F", sat="RS_ENABLE") == {"asc_float2int32_rd_sat"}
    assert found_in_text("u8", "u32", part="P2") == {"asc_uint82uint32_v3"}
    assert found_in_text("f16", "i32", rnd="A", sat="SAT", part="EVEN") == {"asc_half2int32_rna"}
    assert found_in_text("f32", "f16", rnd="X", part="EVEN") == set()


# All pairs


def test_every_public_name_is_there_but_those_that_round_at_random() -> None:
    whole = ("rint", "round", "ceil", "floor", "trunc")
    begins = tuple(f"asc_{name}" for name in (*(row.base for row in convert.ROWS), *whole))
    public = {n for n, where in public_names()["c_api"].items() if n.startswith(begins) and "a5" in where}
    missing = {n for n in public if not any(isinstance(d, RegisterInstruction) for d in REGISTRY.by_cpp.get(n, ()))}
    assert missing and all("2hif8_rh" in n for n in missing)
    assert len(public - missing) == 430


FORMATS = {"f16": (11, -14, 15), "bf16": (8, -126, 127), "f32": (24, -126, 127), "f8e4m3": (4, -6, 8), "f8e5m2": (3, -14, 15),
           "f4e2m1x2": (2, 0, 2), "f4e1m2x2": (3, 0, 0)}  # fmt: skip
"""Bits of the significand, smallest and largest exponent."""
MAXIMUM = {"f8e4m3": Fraction(448)}


def step_of(exact: Fraction, digits: int, least: int) -> Fraction:
    exponent = max(least, exact.numerator.bit_length() - exact.denominator.bit_length() - 1)
    while Fraction(2) ** (exponent + 1) <= exact:
        exponent += 1
    return Fraction(2) ** (exponent - digits + 1)


def to_step(value: Fraction, step: Fraction, rounding: str) -> Fraction:
    """A multiple of the step near the value."""
    low = math.floor(value / step)
    rest = value / step - low
    up = {
        "": rest > Fraction(1, 2) or (rest == Fraction(1, 2) and low % 2 == 1),
        "rna": rest > Fraction(1, 2) or (rest == Fraction(1, 2) and value > 0),
        "rd": False, "ru": rest > 0, "rz": rest > 0 and value < 0,
    }[rounding.replace("rn", "") if rounding == "rn" else rounding]  # fmt: skip
    return (low + int(up)) * step


def float_of(kind: str, value: float, rounding: str, saturates: bool) -> float:
    """A number in a float type; NaN where it becomes one."""
    digits, least, most = FORMATS[kind]
    largest = MAXIMUM.get(kind, (2 - Fraction(2) ** (1 - digits)) * Fraction(2) ** most)
    always = kind.startswith("f4")
    if value != value:
        return 0.0 if saturates or always else np.nan
    exact = None if value in (np.inf, -np.inf) else abs(Fraction(value))
    if exact is not None:
        near = abs(to_step(Fraction(value), step_of(exact, digits, least), rounding)) if exact else Fraction(0)
        if near <= largest:
            return float(np.copysign(float(near), float(value)))
    if saturates or always:
        return float(np.copysign(float(largest), value))
    return np.nan if kind == "f8e4m3" else float(np.copysign(np.inf, value))


def integer_of(low: int, high: int, value: Any, rounding: str, saturates: bool) -> int:
    if value != value:
        return 0
    if value in (np.inf, -np.inf):
        return high if value > 0 else low
    whole = int(to_step(Fraction(value), Fraction(1), rounding))
    return min(max(whole, low), high) if saturates else (whole - low) % (high - low + 1) + low


def numbers_of(kind: str, register: VReg) -> list[Any]:
    """The numbers in a register; two a byte of types of four bits."""
    if kind in convert._BIT_FLOATS:
        codes = (
            register.data
            if kind not in convert._PAIRED
            else np.stack([register.data & 15, register.data >> 4], 1).ravel()
        )
        return [float(convert._BIT_FLOATS[kind][c]) for c in codes]
    return [float(x) if DTYPES[kind].kind == "f" else int(x) for x in register.lanes]


def limits_of(kind: str) -> tuple[int, int]:
    size = 4 if kind == "i4x2" else 8 * DTYPES[kind].size
    return (-(1 << (size - 1)), (1 << (size - 1)) - 1) if kind[0] == "i" else (0, (1 << size) - 1)


def is_integer(kind: str) -> bool:
    return kind[0] in "iu"


CASES = [
    (row, rounding, saturates, part)
    for row in convert.ROWS
    for rounding in row.roundings
    for saturates in row.saturations or (None,)
    for part in range(4)
    if name_of(row, rounding, saturates, part) in REGISTRY.by_cpp and rounding.suffix != "ro" and row.target != "hif8"
]  # fmt: skip


@settings(deadline=None, max_examples=300)
@given(st.sampled_from(CASES), seeds)
def test_conversions_against_fractions(case: Any, seed: int) -> None:
    row, rounding, saturates, part = case
    name = name_of(row, rounding, saturates, part)
    source, mask = register(row.source, seed), random_mask(seed)
    if row.source in ("f32", "bf16") and seed % 2:  # numbers that the target has room for
        near = np.random.default_rng(seed).normal(0, 200, source.lanes.size)
        source = VReg(DTYPES[row.source], near.astype(DTYPES[row.source].numpy).view(np.uint8))
    suffix = "ru" if name == "asc_bfloat162half_rn" or name == "asc_bfloat162half_rn_sat" else rounding.suffix or "rn"
    result = issue(name, source, mask)
    pairs = {row.source, row.target} & set(convert._PAIRED)
    given_, got = numbers_of(row.source, source), numbers_of(row.target, result)
    sizes = DTYPES[row.source].size, DTYPES[row.target].size
    ratio = 4 if pairs else max(sizes) // min(sizes)
    count = 128 if pairs else min(len(given_), len(got))
    on = mask.data[:: sizes[0]]
    used = set()
    for i in range(count):
        if row.source in convert._PAIRED:
            at, to, governs = 8 * (i // 2) + 2 * part + i % 2, i, 4 * (i // 2) + part
        elif row.target in convert._PAIRED:
            at, to, governs = i, 8 * (i // 2) + 2 * part + i % 2, i - i % 2
        else:
            at = i * ratio + part if sizes[0] < sizes[1] else i
            to = i * ratio + part if sizes[0] > sizes[1] else i
            governs = at
        used.add(to)
        value = given_[at]
        if is_integer(row.target):
            always = saturates is None
            expected: Any = integer_of(
                *limits_of(row.target), value, suffix, always if saturates is None else saturates
            )
        else:
            expected = float_of(
                row.target, value if isinstance(value, float) else Fraction(value), suffix, bool(saturates)
            )
        if not on[governs]:
            expected = 0
        assert got[to] == expected or (got[to] != got[to] and expected != expected), (name, i, value)
        if got[to] == 0 and on[governs] and isinstance(value, float) and not is_integer(row.target) and value == value:
            assert np.signbit(got[to]) == np.signbit(value), (name, value)
    assert all(got[i] == 0 for i in range(len(got)) if i not in used)


@pytest.mark.parametrize(("name", "kind", "values", "codes"), [
    ("float2hif8_rna", "f32", (1.0, 1.0625, -3.9375, 4.4, 2**-22, 2**-23, 2**-24, 40000, 40960, np.nan, -0.0),
     (0x08, 0x09, 0xA0, 0x21, 0x01, 0x01, 0, 0x6E, 0x6F, 0x80, 0)),
    ("float2hif8_rna_sat", "f32", (np.inf, -40960, np.nan, 1e9), (0x6E, 0xEE, 0, 0x6E)),
])  # fmt: skip
def test_hifloat8_by_hand(name: str, kind: str, values: tuple[float, ...], codes: tuple[int, ...]) -> None:
    bench = Bench("a5")
    result = bench.issue(f"asc_{name}", bench.vreg(kind, [*values, *[0] * (64 - len(values))]), ALL)
    assert result.data[::4][: len(codes)].tolist() == list(codes)


@pytest.mark.parametrize("part", range(4))
def test_hifloat8_survives_both_ways(part: int) -> None:
    end = f"_v{part + 1}" if part else ""
    source = VReg(DTYPES["hif8"], np.arange(256, dtype=np.uint8))
    back = issue(f"asc_float2hif8_rna{end}", issue(f"asc_hif82float{end}", source, ALL), ALL)
    assert back.data[part::4].tolist() == source.data[part::4].tolist()


WHOLE: dict[str, Any] = {
    "rint": np.rint, "floor": np.floor, "ceil": np.ceil, "trunc": np.trunc,
    "round": lambda x: np.copysign(np.floor(np.abs(x) + 0.5), x),
}  # fmt: skip


@settings(deadline=None, max_examples=40)
@given(st.sampled_from(tuple(WHOLE)), st.sampled_from(("f16", "bf16", "f32")), seeds)
def test_rounding_to_whole_numbers(name: str, kind: str, seed: int) -> None:
    source, mask = register(kind, seed), random_mask(seed)
    with np.errstate(invalid="ignore"):
        wide = source.lanes.astype(np.float64)
        expected = np.where(mask.data[:: DTYPES[kind].size], WHOLE[name](wide), 0)
    result = issue(f"asc_{name}", source, mask).lanes.astype(np.float64)
    np.testing.assert_array_equal(result, expected)
    number = ~np.isnan(expected)
    np.testing.assert_array_equal(np.signbit(result[number]), np.signbit(expected[number]))


def test_what_rounds_otherwise_than_its_name_says_is_told() -> None:
    bench = Bench("a5")
    source = bench.vreg("bf16", [1.0] * 128)
    bench.issue("asc_bfloat162half_ru", source, ALL)
    assert bench.findings() == []
    bench.issue("asc_bfloat162half_rn", source, ALL)
    assert bench.findings() == ["VCVT-1"]
