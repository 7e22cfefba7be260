"""TCVT: every pair, rounding mode, saturation default and way of each profile, against exact fractions."""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Any

import ml_dtypes
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ascsim.diagnostics import Refused
from ascsim.isa.tile.convert import PAIRS, SaturationMode
from ascsim.machine.dtypes import dtype
from ascsim.machine.trace import Mode
from ascsim.machine.words import RoundMode
from harness import Bench

NUMPY = {
    "f32": np.float32, "f16": np.float16, "bf16": ml_dtypes.bfloat16, "i8": np.int8, "u8": np.uint8, "i16": np.int16,
    "i32": np.int32, "i64": np.int64, "u16": np.uint16, "u32": np.uint32,
}  # fmt: skip
FLOATS = {"f32": (24, -149), "f16": (11, -24), "bf16": (8, -133)}
"""Precision, and the exponent of the smallest subnormal."""
LARGEST = {"f16": Fraction(65504), "bf16": Fraction(255) * 2**120}
DONE = (
    ("f32", "f32"), ("f32", "f16"), ("f32", "bf16"), ("f32", "i32"), ("f32", "i16"), ("f32", "i64"), ("f16", "f32"),
    ("f16", "i32"), ("f16", "i16"), ("f16", "i8"), ("f16", "u8"), ("bf16", "f32"), ("bf16", "i32"), ("i32", "f32"),
    ("i32", "i16"), ("i16", "f32"), ("i16", "f16"), ("i8", "f16"), ("u8", "f16"), ("i32", "i64"), ("i64", "i32"),
    ("i64", "f32"),
)  # fmt: skip
OF_THE_A5 = (
    ("i16", "u8"), ("i16", "u32"), ("i16", "i32"), ("i32", "u16"), ("i32", "u8"), ("u8", "u16"), ("i8", "i16"), ("i8", "i32"),
    ("u32", "u8"), ("u32", "u16"), ("u32", "i16"), ("bf16", "f16"),
)  # fmt: skip
TINY = (("f32", "f8e4m3"), ("f32", "f8e5m2"), ("f32", "hif8"), ("f16", "hif8"))
FROM_TINY = tuple((source, "f32") for source in ("f8e4m3", "f8e5m2", "hif8"))
HERE = {"a2a3": (*DONE, ("i32", "f16")), "a5": (*DONE, *OF_THE_A5)}
HERE["cpu"] = (*HERE["a5"], ("i32", "f16"))
OFF_BY_DEFAULT = {("f16", "u8"), ("f16", "i8"), ("f16", "i16"), ("f32", "i16"), ("i32", "i16"), ("i64", "i32")}
BY_WAY_OF_I32 = {("f32", "i16"), ("f16", "i16"), ("f16", "i8")}
CHIPS = ("a2a3", "a5")
PROFILES = (*CHIPS, "cpu")


# The reference


def rounded(x: Fraction, mode: int) -> int:
    """To a whole number."""
    low = math.floor(x)
    if x == low:
        return low
    if mode == RoundMode.FLOOR:
        return low
    if mode == RoundMode.CEIL:
        return low + 1
    if mode == RoundMode.TRUNC:
        return low if x > 0 else low + 1
    if mode == RoundMode.ODD:
        return low if low % 2 else low + 1
    rest = x - low
    if rest != Fraction(1, 2):
        return low + (rest > Fraction(1, 2))
    if mode == RoundMode.ROUND:
        return low + 1 if x > 0 else low
    return low + low % 2


def to_float(x: Fraction, mode: int, kind: str, saturate: bool) -> float:
    """The nearest number of a float type that the mode chooses, as a Python float."""
    precision, tiny = FLOATS[kind]
    exponent = max(_exponent(x) - precision + 1, tiny) if x else tiny
    scaled = rounded(x / Fraction(2) ** exponent, mode)
    got = scaled * Fraction(2) ** exponent
    if kind in LARGEST and abs(got) > LARGEST[kind]:
        return math.copysign(float(LARGEST[kind]) if saturate else math.inf, x)
    return float(got)


def _exponent(x: Fraction) -> int:
    guess = abs(x.numerator).bit_length() - x.denominator.bit_length()
    return guess if abs(x) >= Fraction(2) ** guess else guess - 1


def to_integer(x: float, mode: int, kind: str, saturate: bool, by_way: bool) -> int:
    limits = np.iinfo(NUMPY[kind])
    low, high = int(limits.min), int(limits.max)
    if x != x:
        return 0
    if by_way:
        if math.isinf(x):
            whole = 2**31 - 1 if x > 0 else -(2**31)
        else:
            whole = min(max(rounded(Fraction(x), mode), -(2**31)), 2**31 - 1)
        return (whole - low) % (high - low + 1) + low
    if math.isinf(x):
        return high if x > 0 else low
    whole = rounded(Fraction(x), mode)
    return min(max(whole, low), high) if saturate else (whole - low) % (high - low + 1) + low


def expected(value: Any, pair: tuple[str, str], mode: int, saturate: bool, by_way: bool) -> Any:
    """One element; None where it is NaN."""
    source, target = pair
    if source in FLOATS and target in FLOATS:
        x = float(value)
        if x != x:
            return 0.0 if saturate and target in LARGEST else None
        if math.isinf(x):
            return math.copysign(float(LARGEST[target]), x) if saturate and target in LARGEST else x
        if pair == ("f32", "f32"):
            return math.copysign(float(rounded(Fraction(x), mode)), x)
        return math.copysign(to_float(Fraction(x), mode, target, saturate), x)
    if source in FLOATS:
        return to_integer(float(value), mode, target, saturate, by_way)
    if target in FLOATS:
        return to_float(Fraction(int(value)), mode, target, saturate)
    return to_integer(int(value), mode, target, saturate, False)


def default_mode(pair: tuple[str, str]) -> int:
    return RoundMode.TRUNC if pair[0] in FLOATS and pair[1] not in FLOATS else RoundMode.RINT


def mode_used(pair: tuple[str, str], mode: int) -> int:
    lacks_odd = mode == RoundMode.ODD and pair != ("f32", "f16")
    return default_mode(pair) if mode == RoundMode.NONE or lacks_odd else mode


def way(profile: str, pair: tuple[str, str], sat: int | None, tmp: bool) -> tuple[bool, bool]:
    """(saturates, goes by way of int32): the rules of the libraries, once more."""
    to_half = pair in (("f32", "f16"), ("f32", "bf16"), ("bf16", "f16"))
    if profile == "cpu":
        saturate = sat == SaturationMode.ON
    elif profile == "a5":
        saturate = pair not in OFF_BY_DEFAULT if sat is None else sat == SaturationMode.ON
    elif to_half or (pair not in OFF_BY_DEFAULT and not tmp):
        saturate = True
    else:
        saturate = pair not in OFF_BY_DEFAULT if sat is None else sat == SaturationMode.ON
    by_way = pair in BY_WAY_OF_I32 and not saturate and (profile == "a5" or (profile == "a2a3" and tmp))
    return saturate, by_way


def convert(
    profile: str, pair: tuple[str, str], values: np.ndarray, mode: int = RoundMode.RINT, sat: int | None = None,
    tmp: bool = False,
) -> np.ndarray:  # fmt: skip
    bench = Bench(profile)
    rows, columns = values.shape
    wide = -(-columns // 32) * 32
    src = bench.tile(pair[0], rows, wide, valid=(rows, columns))
    bench.core.view(src.region())[...] = values
    dst = bench.tile(pair[1], rows, wide, valid=(rows, columns))
    scratch = bench.tile("i32", rows + 1, max(wide, 64)) if tmp else None
    bench.issue("TCVT", dst, src, mode, sat, scratch)
    assert bench.findings() == []
    return bench.read(dst)


# By hand

HALVES = [2.5, 3.5, -2.5, 2.4, 2.6, -2.4, -2.6, -0.5]
BY_MODE = {
    RoundMode.RINT: [2, 4, -2, 2, 3, -2, -3, 0],
    RoundMode.ROUND: [3, 4, -3, 2, 3, -2, -3, -1],
    RoundMode.FLOOR: [2, 3, -3, 2, 2, -3, -3, -1],
    RoundMode.CEIL: [3, 4, -2, 3, 3, -2, -2, 0],
    RoundMode.TRUNC: [2, 3, -2, 2, 2, -2, -2, 0],
    RoundMode.NONE: [2, 3, -2, 2, 2, -2, -2, 0],
    RoundMode.ODD: [2, 3, -2, 2, 2, -2, -2, 0],
}


@pytest.mark.parametrize("profile", PROFILES)
@pytest.mark.parametrize("mode", RoundMode)
def test_modes_by_hand(profile: str, mode: RoundMode) -> None:
    values = np.array([HALVES], np.float32)
    assert convert(profile, ("f32", "i32"), values, mode)[0].tolist() == BY_MODE[mode]
    whole = convert(profile, ("f32", "f32"), values, mode)[0]
    if mode in (RoundMode.NONE, RoundMode.ODD):
        assert whole.tolist() == BY_MODE[RoundMode.RINT]
    else:
        assert whole.tolist() == BY_MODE[mode]
    assert np.signbit(whole).tolist() == [v < 0 for v in HALVES]


@pytest.mark.parametrize("profile", PROFILES)
def test_odd_of_half_by_hand(profile: str) -> None:
    step = 2.0**-10
    values = np.array([[1.0, 1 + step / 4, 1 + step, 1 + 1.5 * step, -1 - step / 4, 1 + 1.9 * step]], np.float32)
    got = convert(profile, ("f32", "f16"), values, RoundMode.ODD)[0].astype(np.float64)
    assert got.tolist() == [1.0, 1 + step, 1 + step, 1 + step, -1 - step, 1 + step]


def test_saturation_by_hand() -> None:
    values = np.array([[300.7, -300.7, np.inf, -np.inf, np.nan, 127.4]], np.float16)
    pair = ("f16", "i8")
    on = [127, -128, 127, -128, 0, 127]
    assert convert("a5", pair, values, RoundMode.TRUNC, SaturationMode.ON)[0].tolist() == on
    assert convert("a2a3", pair, values, RoundMode.TRUNC, SaturationMode.ON)[0].tolist() == on
    wrapped = [44, -44, -1, 0, 0, 127]  # 300 is 0x12c; infinities are int32's limits first
    assert convert("a5", pair, values, RoundMode.TRUNC)[0].tolist() == wrapped
    assert convert("a2a3", pair, values, RoundMode.TRUNC, tmp=True)[0].tolist() == wrapped
    assert convert("a2a3", pair, values, RoundMode.TRUNC)[0].tolist() == [44, -44, 127, -128, 0, 127]


def test_the_a2a3_saturate_other_pairs_unless_they_have_a_tmp() -> None:
    values = np.array([[3e9, -3e9, np.inf, np.nan]], np.float32)
    limits = [2**31 - 1, -(2**31), 2**31 - 1, 0]
    wrapped = [3_000_000_000 - 2**32, -3_000_000_000 + 2**32, 2**31 - 1, 0]
    off = SaturationMode.OFF
    assert convert("a2a3", ("f32", "i32"), values, sat=off)[0].tolist() == limits
    assert convert("a2a3", ("f32", "i32"), values, sat=off, tmp=True)[0].tolist() == wrapped
    assert convert("a5", ("f32", "i32"), values, sat=off)[0].tolist() == wrapped
    assert convert("cpu", ("f32", "i32"), values)[0].tolist() == wrapped


def test_to_half_beyond_its_range() -> None:
    values = np.array([[1e6, -1e6, np.inf, np.nan, 65519.0, 65520.0]], np.float32)
    pair, off = ("f32", "f16"), SaturationMode.OFF
    on = [65504.0, -65504.0, 65504.0, 0.0, 65504.0, 65504.0]
    for tmp in (False, True):
        assert convert("a2a3", pair, values, sat=off, tmp=tmp)[0].tolist() == on
    assert convert("a5", pair, values)[0].tolist() == on
    got = convert("a5", pair, values, sat=off)[0]
    assert np.isnan(got[3])
    assert np.delete(got, 3).tolist() == [np.inf, -np.inf, np.inf, 65504.0, np.inf]
    assert np.isnan(convert("cpu", pair, values)[0][3])


# All pairs


def bits_of(kind: str) -> st.SearchStrategy[int]:
    width = 8 * np.dtype(NUMPY[kind]).itemsize
    anything = st.integers(0, (1 << width) - 1)
    if kind not in FLOATS:
        return anything | st.integers(0, 127)

    def bits(number: float) -> int:
        with np.errstate(over="ignore"):
            return int(np.array(number, np.float32).astype(NUMPY[kind]).view(f"u{width // 8}"))

    return anything | st.floats(-70000, 70000, width=32).map(bits) | st.integers(-600, 600).map(lambda v: bits(v / 2))


@pytest.mark.parametrize(
    ("profile", "pair"),
    [pytest.param(n, p, id=f"{n}-{'-'.join(p)}") for n, pairs in HERE.items() for p in pairs if p != ("i32", "f16")],
)
@given(data=st.data())
@settings(max_examples=25, deadline=None)
def test_all_pairs_modes_and_saturation(profile: str, pair: tuple[str, str], data: st.DataObject) -> None:
    raw = data.draw(st.lists(bits_of(pair[0]), min_size=8, max_size=8))
    kind = np.dtype(NUMPY[pair[0]])
    values = np.array(raw, f"u{kind.itemsize}").view(kind).reshape(1, 8)
    mode, tmp = data.draw(st.sampled_from(list(RoundMode))), data.draw(st.booleans())
    sat = data.draw(st.sampled_from([None, SaturationMode.ON, SaturationMode.OFF]))
    got = convert(profile, pair, values, mode, sat, tmp)[0]
    saturate, by_way = way(profile, pair, sat, tmp)
    for value, result in zip(values[0], got, strict=True):
        want = expected(value, pair, mode_used(pair, mode), saturate, by_way)
        if want is None:
            assert float(result) != float(result)
        elif pair[1] in FLOATS:
            assert (float(result), math.copysign(1, result)) == (want, math.copysign(1, want)), (value, mode)
        else:
            assert int(result) == want, (value, mode)


@pytest.mark.parametrize("pair", [("f16", "f32"), ("bf16", "f32"), ("f32", "f16"), ("f32", "bf16")], ids="-".join)
def test_nan_keeps_its_sign_and_payload_where_it_stays(pair: tuple[str, str]) -> None:
    source, target = (np.dtype(NUMPY[k]) for k in pair)
    quiet = {"f16": 0xFE01, "bf16": 0xFFC1, "f32": 0xFFC22000 if pair[1] == "f16" else 0xFFC10000}[pair[0]]
    values = np.array([[quiet]], f"u{source.itemsize}").view(source)
    got = int(convert("a5", pair, values, sat=SaturationMode.OFF).view(f"u{target.itemsize}")[0, 0])
    want = {("f16", "f32"): 0xFFC02000, ("bf16", "f32"): 0xFFC10000, ("f32", "f16"): 0xFE11, ("f32", "bf16"): 0xFFC1}
    assert got == want[pair]


# Which pairs there are


@pytest.mark.parametrize("profile", PROFILES)
def test_pairs_are_done_not_done_or_not_there(profile: str) -> None:
    bench = Bench(profile)
    kinds = sorted({k for pairs in PAIRS.values() for pair in pairs for k in pair})
    codes: dict[str, set[tuple[str, str]]] = {}
    for source in kinds:
        for target in kinds:
            src, dst = bench.tile(source, 1, 64), bench.tile(target, 1, 64)
            bench._next[src.space] = 0
            try:
                bench.issue("TCVT", dst, src)
                codes.setdefault("", set()).add((source, target))
            except Refused as refusal:
                codes.setdefault(refusal.diagnostic.code, set()).add((source, target))
    packed = {p for p in PAIRS[profile] if any("x2" in kind for kind in p)}
    here = {*HERE[profile], *(() if profile == "a2a3" else (*TINY, *FROM_TINY)), *packed}
    assert codes[""] == here == PAIRS[profile]
    assert packed and codes.keys() == {"", "L002"}


# Two elements a byte

GRIDS = {
    "i4x2": [*range(8), *range(-8, 0)],
    "f4e2m1x2": [*(grid := [0.0, 0.5, 1, 1.5, 2, 3, 4, 6]), *(-x for x in grid)],
    "f4e1m2x2": [*(grid := [0.0, 0.25, 0.5, 0.75, 1, 1.25, 1.5, 1.75]), *(-x for x in grid)],
}
PACKED = [("a2a3", "f16", "i4x2"), *((p, "bf16", t) for p in ("a5", "cpu") for t in ("f4e2m1x2", "f4e1m2x2"))]


def four_bits(x: float, kind: str, mode: int) -> int:
    """The code of the neighbour that the mode chooses, by looking at all codes."""
    grid = GRIDS[kind]
    codes = [c for c in range(16) if kind == "i4x2" or math.copysign(1, grid[c]) == math.copysign(1, x)]
    x = min(max(x, min(grid)), max(grid))
    below = max((c for c in codes if grid[c] <= x), key=lambda c: grid[c], default=None)
    above = min((c for c in codes if grid[c] >= x), key=lambda c: grid[c], default=None)
    if below is None or above is None or grid[below] == x:
        return below if above is None or (below is not None and grid[below] == x) else above
    toward_zero, away = (below, above) if x > 0 else (above, below)
    middle = (grid[below] + grid[above]) / 2
    return {
        RoundMode.FLOOR: below, RoundMode.CEIL: above, RoundMode.TRUNC: toward_zero,
        RoundMode.RINT: (below if below % 2 == 0 else above) if x == middle else (below if x < middle else above),
        RoundMode.ROUND: away if x == middle else (below if x < middle else above),
    }[RoundMode(mode)]  # fmt: skip


@pytest.mark.parametrize(("profile", "source", "target"), PACKED)
@pytest.mark.parametrize("mode", [RoundMode.RINT, RoundMode.ROUND, RoundMode.FLOOR, RoundMode.CEIL, RoundMode.TRUNC])
def test_two_elements_share_a_byte(profile: str, source: str, target: str, mode: RoundMode) -> None:
    bench = Bench(profile)
    bench.memory()[:] = 0xAA
    rng = np.random.default_rng(int(mode))
    values = np.concatenate([rng.uniform(-9, 9, 60), [2.5, -2.5, 0.25, -0.125, 0.625, 100.0, -100.0, 1.5]]).astype(
        np.float32
    )
    values = values.astype(NUMPY[source]).reshape(2, 34)
    src = bench.tile(source, 2, 64, values, valid=(2, 34))
    dst = bench.tile(target, 2, 64, valid=(2, 34))
    bench.issue("TCVT", dst, src, mode)
    pitch = 64 if profile == "a2a3" else 32
    rows = bench.memory()[dst.address : dst.address + 2 * pitch].reshape(2, pitch)
    codes = np.stack([rows[:, :17] & 15, rows[:, :17] >> 4], -1).reshape(2, 34)
    wanted = [[four_bits(float(x), target, mode) for x in row] for row in values]
    assert np.array_equal(codes, wanted)
    assert (rows[:, 17:] == (0 if profile == "a5" else 0xAA)).all()
    assert bench.traced(Mode.WRITE).sum() == (64 if profile == "a5" else 34)
    back = bench.tile(source, 2, 64, valid=(2, 34))
    bench.issue("TCVT", back, dst)
    assert np.array_equal(bench.read(back).astype(float), np.array(GRIDS[target])[codes])
    assert not bench.findings()


def test_the_a5_leaves_the_last_of_an_odd_number_out_and_others_refuse_it() -> None:
    for profile, source, target in PACKED:
        bench = Bench(profile)
        src = bench.tile(source, 1, 64, np.full((1, 3), 1.5), valid=(1, 3))
        dst = bench.tile(target, 1, 64, valid=(1, 3))
        if profile != "a5":
            with pytest.raises(Refused, match="half a byte at the end of each row"):
                bench.issue("TCVT", dst, src)
            continue
        bench.issue("TCVT", dst, src)
        code = GRIDS[target].index(1.5)
        assert bench.memory()[dst.address : dst.address + 3].tolist() == [code | code << 4, 0, 0]
        wide = bench.tile(source, 1, 64, valid=(1, 3))
        bench.issue("TCVT", wide, dst)
        assert bench.read(wide).astype(float).tolist() == [[1.5, 1.5, 0]]


def test_the_message_lists_what_the_source_converts_to() -> None:
    bench = Bench("a2a3")
    with pytest.raises(Refused, match="a2a3 does not convert u8 to f32; it converts u8 to f16"):
        bench.issue("TCVT", bench.tile("f32", 1, 32), bench.tile("u8", 1, 32))


# tmp


@pytest.mark.parametrize(
    ("pair", "shape", "needed"),
    [
        (("f32", "i16"), (2, 64), 256), (("f32", "i16"), (3, 72), 288 * 2 + 32), (("f32", "i16"), (1, 200), 768),
        (("f16", "i16"), (3, 40), 160), (("f16", "i16"), (3, 200), 256), (("f16", "i8"), (2, 8), 144),
        (("f16", "i8"), (2, 200), 256),
    ],
    ids=str,
)  # fmt: skip
def test_a2a3_bytes_of_tmp(pair: tuple[str, str], shape: tuple[int, int], needed: int) -> None:
    for columns, codes in ((up_to(needed), []), (up_to(needed) - 8, ["TCVT-1"])):
        bench = Bench("a2a3")
        wide = -(-shape[1] // 8) * 8 if pair[0] == "f32" else -(-shape[1] // 32) * 32
        src = bench.tile(pair[0], shape[0], wide, valid=shape)
        dst = bench.tile(pair[1], shape[0], -(-wide // 32) * 32, valid=shape)
        tmp = bench.tile("f32", 1, columns)
        bench.issue("TCVT", dst, src, RoundMode.TRUNC, None, tmp)
        assert bench.findings() == codes
        written = np.flatnonzero(bench.traced(Mode.WRITE)[tmp.address :])
        assert written[-1] + 1 == needed


def up_to(nbytes: int) -> int:
    """Floats in so many bytes, rounded up to blocks."""
    return -(-nbytes // 32) * 8


@pytest.mark.parametrize(
    ("profile", "pair", "sat"),
    [
        ("a5", ("f32", "i16"), None), ("cpu", ("f32", "i16"), None), ("a2a3", ("f32", "i16"), 0),
        ("a2a3", ("f32", "f16"), 1),
    ],
)  # fmt: skip
def test_tmp_is_left_alone_elsewhere(profile: str, pair: tuple[str, str], sat: int | None) -> None:
    bench = Bench(profile)
    src, dst, tmp = bench.tile(pair[0], 1, 32), bench.tile(pair[1], 1, 32), bench.tile("f32", 1, 8, [[7] * 8])
    bench.issue("TCVT", dst, src, RoundMode.RINT, sat, tmp)
    assert (bench.read(tmp) == 7).all()
    assert bench.findings() == []


# Shapes


@pytest.mark.parametrize("profile", PROFILES)
@given(data=st.data())
@settings(max_examples=25, deadline=None)
def test_valid_regions_and_strides(profile: str, data: st.DataObject) -> None:
    bench = Bench(profile)
    bench.memory()[:] = np.random.default_rng(data.draw(st.integers(0, 99))).integers(0, 256, bench.memory().size)
    before = bench.memory().copy()
    valid = data.draw(st.integers(0, 4)), data.draw(st.integers(0, 64))
    src = bench.tile("i16", 4, 64 + 16 * data.draw(st.integers(0, 2)), valid=valid)
    dst = bench.tile("f32", 4, 64 + 8 * data.draw(st.integers(0, 2)), valid=valid)
    values = bench.read(src)
    bench.issue("TCVT", dst, src)
    assert np.array_equal(bench.read(dst), values.astype(np.float32))
    written = bench.traced(Mode.WRITE)
    assert written.sum() == 4 * values.size
    assert np.array_equal(bench.memory()[~written], before[~written])


def test_other_valid_shapes_are_reported_and_governed_by_dst_or_on_cpu_src() -> None:
    for profile, converted in (("a2a3", 24), ("a5", 24), ("cpu", 16)):
        bench = Bench(profile)
        src = bench.tile("i16", 1, 32, [[1] * 32], valid=(1, 16))
        dst = bench.tile("f32", 1, 32, valid=(1, 24))
        bench.issue("TCVT", dst, src)
        assert bench.read(dst, 1, 32).sum() == converted
        assert bench.findings() == ["TCVT-2"]


def test_in_place_of_one_size() -> None:
    bench = Bench("a2a3")
    tile = bench.tile("f32", 1, 32, [np.arange(32) + 0.75])
    bench.issue("TCVT", tile, tile, RoundMode.FLOOR)
    assert bench.read(tile)[0].tolist() == list(range(32))


def test_int32_to_half_to_nearest_in_every_mode() -> None:
    values = np.array([[2049, 2051, -2049, 65519, 65520, -(2**31), 7, 0]], np.int32)
    for mode in RoundMode:
        assert convert("a2a3", ("i32", "f16"), values, mode)[0].tolist() == [
            2048,
            2052,
            -2048,
            65504,
            65504,
            -65504,
            7,
            0,
        ]


# Floats of eight bits


def nearest(x: float, kind: str, away: bool) -> float:
    """The nearest number of an 8-bit float, or of those that would follow its largest one; ties to even, or away."""
    codes = np.arange(128, dtype=np.uint8).view(dtype(kind).numpy).astype(np.float64)
    numbers = sorted({float(n) for n in codes if np.isfinite(n) and n >= 0})
    numbers.append(numbers[-1] + (numbers[-1] - numbers[-2]))
    size = abs(x)
    if size >= numbers[-1]:
        return math.copysign(math.inf, x)
    below = max(n for n in numbers if n <= size)
    above = min((n for n in numbers if n > size), default=math.inf)
    middle = (below + above) / 2
    tie_up = away or numbers.index(below) % 2 == 1
    got = above if size > middle or (size == middle and tie_up) else below
    return math.copysign(math.inf if got == numbers[-1] else got, x)


@pytest.mark.parametrize("pair", TINY, ids="-".join)
@pytest.mark.parametrize("mode", (RoundMode.RINT, RoundMode.FLOOR))
def test_to_8_bit_floats_the_nearest_in_every_mode(pair: tuple[str, str], mode: int) -> None:
    codes = np.arange(128, dtype=np.uint8).view(dtype(pair[1]).numpy).astype(np.float32)
    numbers = np.unique(codes[np.isfinite(codes)])
    middles = (numbers[1:] + numbers[:-1]) / 2
    tried = np.concatenate(
        [numbers, middles, middles * np.float32(1.01), numbers[-1:] * np.array([1.01, 1.5], np.float32)]
    )
    tried = np.concatenate([tried, -tried])[None].astype(NUMPY[pair[0]])
    for sat in (SaturationMode.ON, SaturationMode.OFF):
        got = convert("a5", pair, tried, mode, sat)[0].astype(np.float64)
        largest = float(numbers[-1])
        for x, y in zip(tried[0].astype(np.float64), got, strict=True):
            want = nearest(float(x), pair[1], pair[1] == "hif8")
            if math.isinf(want):
                held = largest if sat == SaturationMode.ON else (math.nan if pair[1] == "f8e4m3" else math.inf)
                want = math.copysign(held, x)
            assert y == want or (math.isnan(y) and math.isnan(want)), (x, y, want)


@pytest.mark.parametrize("pair", FROM_TINY, ids="-".join)
def test_from_8_bit_floats_exactly(pair: tuple[str, str]) -> None:
    every = np.arange(256, dtype=np.uint8).view(dtype(pair[0]).numpy)[None]
    got = convert("a5", pair, every)[0]
    want = every[0].astype(np.float32)
    assert ((got == want) | (np.isnan(got) & np.isnan(want))).all()
    assert np.isfinite(got).sum() > 240


def test_special_values_of_8_bit_floats() -> None:
    special = np.array([[np.nan, np.inf, -np.inf, -0.0] * 2], np.float32)
    for kind, largest in (("f8e4m3", 448), ("f8e5m2", 57344), ("hif8", 32768)):
        on = convert("a5", ("f32", kind), special, RoundMode.RINT, SaturationMode.ON)[0].astype(np.float32)
        assert on[:4].tolist() == [0, largest, -largest, 0]
        off = convert("a5", ("f32", kind), special, RoundMode.RINT, SaturationMode.OFF)[0].astype(np.float32)
        assert np.isnan(off[0]) and (np.isnan(off[1]) if kind == "f8e4m3" else off[1] == np.inf)
