"""Lane-wise tile instructions: every type, rounding, wrapping, shapes, in place, the A2/A3's steps."""

from __future__ import annotations

from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import ml_dtypes
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ascsim import profiles
from ascsim.diagnostics import Refused
from ascsim.isa import REGISTRY
from ascsim.isa.tile.elementwise import element_of
from ascsim.machine.dtypes import DTYPES, dtype
from ascsim.machine.trace import Mode
from ascsim.machine.words import BLayout, Pipe
from harness import Bench

TYPES = {
    "a2a3": ("f32", "f16", "i32", "i16"),
    "a5": ("f32", "f16", "bf16", "i32", "u32", "i16", "u16", "i8", "u8", "i64", "u64"),
}
TYPES["cpu"] = TYPES["a5"]
CASES = [(profile, kind) for profile, kinds in TYPES.items() for kind in kinds]


def noise(bench: Bench, seed: int = 0) -> np.ndarray:
    bench.memory()[:] = np.random.default_rng(seed).integers(0, 256, bench.memory().size, np.uint8)
    return bench.memory().copy()


def bits(array: np.ndarray) -> np.ndarray:
    return np.ascontiguousarray(array).view(f"u{array.itemsize}")


def exact_sum(a: Any, b: Any, kind: str) -> np.ndarray:
    """Sums in a wider type, rounded once; integers modulo their width. NaN as NumPy's wider sum has it."""
    target = dtype(kind).numpy
    if kind == "f32":
        with np.errstate(over="ignore", invalid="ignore"):
            return (a.astype(np.float64) + b.astype(np.float64)).astype(np.float32)
    if dtype(kind).kind == "f":
        with np.errstate(over="ignore", invalid="ignore"):
            return (a.astype(np.float32) + b.astype(np.float32)).astype(target)
    wrapped = [(int(x) + int(y)) % (1 << (8 * target.itemsize)) for x, y in zip(a.ravel(), b.ravel(), strict=True)]
    return np.array(wrapped, np.uint64).astype(f"u{target.itemsize}").view(target).reshape(a.shape)


@pytest.mark.parametrize(("profile", "kind"), CASES)
def test_by_hand(profile: str, kind: str) -> None:
    bench = Bench(profile)
    a, b = bench.tile(kind, 2, 32, np.arange(64)), bench.tile(kind, 2, 32, [[3] * 32, [60] * 32])
    dst = bench.tile(kind, 2, 32)
    bench.issue("TADD", dst, a, b)
    got = bench.read(dst).astype(np.float64)
    assert got[0, :3].tolist() == [3, 4, 5]
    assert got[1, -1] == 123
    bench.issue("TADDS", dst, a, 5)
    assert bench.read(dst)[0, :3].astype(np.float64).tolist() == [5, 6, 7]
    assert bench.findings() == []
    assert set(bench.trace().rows["pipe"]) == {Pipe.V}


@pytest.mark.parametrize(("profile", "kind"), CASES)
@given(data=st.data())
@settings(max_examples=15, deadline=None)
def test_sums_of_any_bits_in_valid_regions_with_strides(profile: str, kind: str, data: st.DataObject) -> None:
    bench = Bench(profile)
    before = noise(bench, data.draw(st.integers(0, 1000)))
    valid = data.draw(st.integers(0, 5)), data.draw(st.integers(0, 70))
    tiles = [bench.tile(kind, 5, 64 + 32 * data.draw(st.integers(1, 3)), valid=valid) for _ in range(3)]
    a, b = (bench.read(t) for t in tiles[1:])
    bench.issue("TADD", *tiles)
    got, want = bench.read(tiles[0]), exact_sum(a, b, kind)
    same = (bits(got) == bits(want)) | (np.isnan(got.astype(np.float64)) & np.isnan(want.astype(np.float64)))
    assert same.all()
    written = bench.traced(Mode.WRITE)
    assert written.sum() == got.size * got.itemsize
    assert np.array_equal(bench.memory()[~written], before[~written])


@pytest.mark.parametrize(("kind", "largest"), [("f16", 65504.0), ("f32", 3.4028234663852886e38)])
def test_floats_overflow_to_infinity_and_round_to_even(kind: str, largest: float) -> None:
    bench = Bench("a2a3")
    a = bench.tile(kind, 1, 32, [[largest, -largest, 2048.0 if kind == "f16" else 2.0**24] + [0.0] * 29])
    b = bench.tile(kind, 1, 32, [[largest, -largest, 1.0] + [0.0] * 29])
    dst = bench.tile(kind, 1, 32)
    bench.issue("TADD", dst, a, b)
    assert bench.read(dst)[0, :3].astype(np.float64).tolist() == [np.inf, -np.inf, 2048.0 if kind == "f16" else 2.0**24]


def test_special_values() -> None:
    bench = Bench("a2a3")
    a = bench.tile("f32", 1, 8, [[np.inf, 0.0, -0.0, -0.0, np.nan, 1e-45, -np.inf, 1.0]])
    b = bench.tile("f32", 1, 8, [[-np.inf, -0.0, -0.0, 0.0, 1.0, 1e-45, -np.inf, -1.0]])
    dst = bench.tile("f32", 1, 8)
    bench.issue("TADD", dst, a, b)
    got = bench.read(dst)[0]
    assert np.isnan(got[[0, 4]]).all()
    assert np.signbit(got[[1, 2, 3, 7]]).tolist() == [False, True, False, False]
    assert got[5] == np.float32(3e-45) and got[6] == -np.inf


def test_half_sums_are_rounded_once_from_the_exact_sum() -> None:
    bench = Bench("a2a3")
    a, b = bench.tile("f16", 1, 16, [[1.0] * 16]), bench.tile("f16", 1, 16, [[2.0**-11 + 2.0**-21] * 16])
    dst = bench.tile("f16", 1, 16)
    bench.issue("TADD", dst, a, b)
    assert bench.read(dst)[0, 0] == np.float16(1.0 + 2.0**-10)


@pytest.mark.parametrize("profile", ("a2a3", "a5", "cpu"))
def test_in_place_and_twice_the_same_source(profile: str) -> None:
    bench = Bench(profile)
    tile = bench.tile("i16", 3, 16, np.arange(48))
    bench.issue("TADD", tile, tile, tile)
    bench.issue("TADDS", tile, tile, -1)
    assert bench.read(tile).ravel().tolist() == [2 * n - 1 for n in range(48)]


@pytest.mark.parametrize(
    ("kind", "number", "want"),
    [
        ("i16", 70000, 70000 - 65536), ("i32", -(2**31) - 1, 2**31 - 1), ("f16", 1e6, np.inf),
        ("f16", 1 + 2.0**-11, 1.0), ("f32", 0.1, np.float32(0.1)), ("i32", 2.9, 2),
    ],
)  # fmt: skip
def test_a_number_becomes_an_element_first(kind: str, number: float, want: float) -> None:
    bench = Bench("a2a3")
    src, dst = bench.tile(kind, 1, 16, [[0] * 16]), bench.tile(kind, 1, 16)
    bench.issue("TADDS", dst, src, number)
    assert bench.read(dst)[0, 0] == want
    assert element_of(number, dtype(kind).numpy) == want


def test_unsigned_and_wide_numbers() -> None:
    assert element_of(-1, np.dtype(np.uint8)) == 255
    assert element_of(2**64 - 1, np.dtype(np.uint64)) == 2**64 - 1
    assert element_of(2**64 - 1, np.dtype(np.int64)) == -1
    assert float(element_of(1.00390625, np.dtype(ml_dtypes.bfloat16))) == 1.0


@pytest.mark.parametrize("kind", ("bf16", "u32", "u16", "i8", "u8", "i64", "u64"))
@pytest.mark.parametrize("name", ("TADD", "TADDS"))
def test_types_that_the_a2a3_lacks_are_refused_with_those_it_has(kind: str, name: str) -> None:
    bench = Bench("a2a3")
    tile = bench.tile(kind, 1, 32)
    with pytest.raises(Refused, match="a2a3 takes f32, f16, i32, i16"):
        bench.issue(name, tile, tile, tile if name == "TADD" else 1)


def test_other_valid_regions_are_refused_on_cpu_and_taken_from_dst_on_chips() -> None:
    for profile in ("a2a3", "a5", "cpu"):
        bench = Bench(profile)
        dst, a = bench.tile("i32", 2, 8, valid=(2, 6)), bench.tile("i32", 2, 8, np.arange(16))
        narrow = replace(a, valid_cols=5)
        if profile == "cpu":
            for name, args in (("TADD", (dst, a, a)), ("TADDS", (dst, narrow, 1))):
                with pytest.raises(Refused, match="valid region of src"):
                    bench.issue(name, *args)
            continue
        bench.issue("TADD", dst, a, narrow)
        assert bench.read(dst, 2, 8)[0].tolist() == [0, 2, 4, 6, 8, 10, 0, 0]
        bench.issue("TADDS", dst, narrow, 1)
        want = [1, 2, 3, 4, 5, 6] if profile == "a5" else [0, 2, 4, 6, 8, 10]  # the A2/A3 write nothing
        assert bench.read(dst)[0].tolist() == want
        assert bench.findings() == ["TADD-1", "TADDS-1"]


# The whole table, against numbers of unlimited size and double precision

SCALARS = {"i": 3, "u": 3, "f": 1.5}
SUFFIX = {
    "tadd": "tadds",
    "tsub": "tsubs",
    "tmul": "tmuls",
    "tmax": "tmaxs",
    "tmin": "tmins",
    "tand": "tands",
    "tor": "tors",
}


def types_of(name: str, profile: str) -> list[str]:
    rule = next(r for r in Bench(profile).definition(name).rules if r.code == "L002")
    call = SimpleNamespace(dst=SimpleNamespace(dtype=None))
    found = []
    for kind in DTYPES.values():
        call.dst.dtype = kind
        if not rule.test(None, call, profiles.find(profile)):  # type: ignore[arg-type]
            found.append(kind.name)
    return found


def wrapped(number: int, kind: str) -> int:
    bits = 8 * dtype(kind).size
    number %= 1 << bits
    return number - (1 << bits) if dtype(kind).kind == "i" and number >> (bits - 1) else number


def quotient(a: int, b: int) -> int:
    return 0 if b == 0 else abs(a) // abs(b) * (1 if (a < 0) == (b < 0) else -1)


INTEGERS: dict[str, Any] = {
    "tadd": lambda a, b: a + b, "tsub": lambda a, b: a - b, "tmul": lambda a, b: a * b, "tdiv": quotient, "tmax": max,
    "tmin": min, "tand": lambda a, b: a & b, "tor": lambda a, b: a | b,
}  # fmt: skip
FLOATS: dict[str, Any] = {
    "tadd": np.add, "tsub": np.subtract, "tmul": np.multiply, "tdiv": np.divide, "tmax": np.maximum, "tmin": np.minimum,
}  # fmt: skip


def numbers(kind: str, seed: int, count: int = 64) -> np.ndarray:
    made = np.random.default_rng(seed)
    if dtype(kind).kind == "f":
        return (made.standard_normal(count) * 100).astype(dtype(kind).numpy)
    limits = np.iinfo(dtype(kind).numpy)
    drawn = made.integers(limits.min, limits.max, count, dtype(kind).numpy, endpoint=True)
    drawn[:4] = [limits.min, limits.max, 0, 1]
    return drawn


@pytest.mark.parametrize("profile", ("a2a3", "a5", "cpu"))
@pytest.mark.parametrize("name", INTEGERS)
def test_two_tiles_and_a_number_in_every_type(name: str, profile: str) -> None:
    for kind in types_of(name, profile):
        a, b = numbers(kind, 1), numbers(kind, 2)
        for second, of in ((b, name), (np.full_like(b, SCALARS[dtype(kind).kind]), SUFFIX.get(name, "tdivs"))):
            if kind not in types_of(of, profile):
                continue
            bench = Bench(profile)
            src, dst = bench.tile(kind, 1, 64, a), bench.tile(kind, 1, 64)
            bench.issue(of, dst, src, bench.tile(kind, 1, 64, second) if of == name else second[0].item())
            if name in ("tand", "tor"):
                want = INTEGERS[name](bits(a), bits(second)).view(dtype(kind).numpy)
            elif dtype(kind).kind == "f":
                with np.errstate(all="ignore"):
                    want = FLOATS[name](a.astype(np.float64), second.astype(np.float64)).astype(dtype(kind).numpy)
                    if kind == "bf16":  # one rounding from the exact result: float32 is as good
                        want = FLOATS[name](a.astype(np.float32), second.astype(np.float32)).astype(dtype(kind).numpy)
            else:
                want = np.array(
                    [wrapped(INTEGERS[name](int(x), int(y)), kind) for x, y in zip(a, second, strict=True)],
                    dtype(kind).numpy,
                )
            assert np.array_equal(bits(bench.read(dst)[0]), bits(want)), (of, kind)
            assert bench.findings() == []


@pytest.mark.parametrize("profile", ("a2a3", "a5", "cpu"))
@pytest.mark.parametrize("name", ("tshl", "tshr"))
def test_shifts_by_each_count(name: str, profile: str) -> None:
    for kind in types_of(name, profile):
        a = numbers(kind, 3)
        width = 8 * dtype(kind).size
        counts = np.minimum(np.arange(64), 127).astype(dtype(kind).numpy)
        bench = Bench(profile)
        src, by, dst = bench.tile(kind, 1, 64, a), bench.tile(kind, 1, 64, counts), bench.tile(kind, 1, 64)
        bench.issue(name, dst, src, by)
        pairs = [(int(x), int(n)) for x, n in zip(a, counts, strict=True)]
        want = [wrapped(x << n, kind) if n < width else 0 for x, n in pairs]
        if name == "tshr":
            want = [x >> min(n, width) for x, n in pairs]
        assert bench.read(dst)[0].tolist() == want, kind
        if kind in types_of(name + "s", profile):
            bench.issue(name + "s", dst, src, 5)
            shifted = [wrapped(int(x) << 5, kind) if name == "tshl" else int(x) >> 5 for x in a]
            assert bench.read(dst)[0].tolist() == shifted, kind


def test_functions_of_one_tile() -> None:
    values = np.array([[0.0, -0.0, 1.0, 4.0, -2.5, np.inf, -np.inf, np.nan]], np.float32)
    want = {
        "tabs": [0, 0, 1, 4, 2.5, np.inf, np.inf, np.nan], "tneg": [-0.0, 0.0, -1, -4, 2.5, -np.inf, np.inf, np.nan],
        "trelu": [0, 0, 1, 4, 0, np.inf, 0, np.nan], "tsqrt": [0, -0.0, 1, 2, np.nan, np.inf, np.nan, np.nan],
        "texp": [1, 1, np.exp(1.0), np.exp(4.0), np.exp(-2.5), np.inf, 0, np.nan],
        "tlog": [-np.inf, -np.inf, 0, np.log(4.0), np.nan, np.inf, np.nan, np.nan],
        "trecip": [np.inf, -np.inf, 1, 0.25, -0.4, 0, -0.0, np.nan],
    }  # fmt: skip
    for profile in ("a2a3", "a5", "cpu"):
        for name, results in want.items():
            bench = Bench(profile)
            src, dst = bench.tile("f32", 1, 8, values), bench.tile("f32", 1, 8)
            bench.issue(name, dst, src)
            expected = np.array(results).astype(np.float32)
            got = bench.read(dst)[0]
            same = (bits(got) == bits(expected)) | (np.isnan(got) & np.isnan(expected))
            assert same.all(), (profile, name, got)


def test_a_slope_counts_below_zero_and_for_minus_zero() -> None:
    bench = Bench("a5")
    src, dst = bench.tile("f32", 1, 8, [[-0.0, 0.0, 3, -3, np.nan, -np.inf, np.inf, -1]]), bench.tile("f32", 1, 8)
    bench.issue("tlrelu", dst, src, 0.5)
    got = bench.read(dst)[0]
    assert got[[1, 2, 3, 5, 6, 7]].tolist() == [0, 3, -1.5, -np.inf, np.inf, -0.5] and np.isnan(got[4])
    bench.issue("tlrelu", dst, src, np.inf)
    assert np.isnan(bench.read(dst)[0, 0]) and bench.read(dst)[0, 1] == 0


def test_the_a5_flushes_subnormals_unless_told_otherwise() -> None:
    tiny, smallest = 1e-40, 2.0**-126
    for profile, flushed in (("a5", True), ("a2a3", False), ("cpu", False)):
        for precision in (0, 1):
            bench = Bench(profile)
            one, small = bench.tile("f32", 1, 8, [[1.0] * 8]), bench.tile("f32", 1, 8, [[tiny, -tiny] * 4])
            dst = bench.tile("f32", 1, 8)
            bench.issue("tdiv", dst, small, one, precision)
            assert (bench.read(dst)[0, 0] == 0) == (flushed and not precision)
            bench.issue("tdiv", dst, small, small, precision)
            assert np.isnan(bench.read(dst)[0, 1]) == (flushed and not precision)
            bench.issue("tlog", dst, small, precision)
            assert (bench.read(dst)[0, 0] == -np.inf) == (flushed and not precision)
            half = bench.tile("f32", 1, 8, [[smallest] * 8])
            bench.issue("tdivs", dst, half, 2.0, precision)
            assert (bench.read(dst)[0, 0] == 0) == (flushed and not precision)
            bench.issue("tadd", dst, small, small)
            assert bench.read(dst)[0, 0] == np.float32(tiny) * 2


@pytest.mark.parametrize("profile", ("a2a3", "a5", "cpu"))
def test_exclusive_or_and_what_it_leaves_in_tmp(profile: str) -> None:
    for kind in types_of("txor", profile):
        bench = Bench(profile)
        a, b = numbers(kind, 4), numbers(kind, 5)
        src0, src1 = bench.tile(kind, 1, 64, a), bench.tile(kind, 1, 64, b)
        dst, tmp = bench.tile(kind, 1, 64), bench.tile(kind, 1, 64)
        bench.issue("txor", dst, src0, src1, tmp)
        assert np.array_equal(bench.read(dst)[0], a ^ b)
        assert np.array_equal(bench.read(tmp)[0], (a | b) if profile == "a2a3" else np.zeros_like(a))
        bench.issue("txors", dst, src0, 5, tmp)
        assert np.array_equal(bench.read(dst)[0], a ^ element_of(5, a.dtype))
        assert bench.findings() == []


def test_steps_of_the_a2a3_have_barriers_between_them() -> None:
    bench = Bench("a2a3")
    src, dst, tmp = bench.tile("i32", 1, 8, [[7] * 8]), bench.tile("i32", 1, 8), bench.tile("i32", 1, 8)
    bench.issue("txor", dst, src, src, tmp)
    names = {d.number: d.name for d in REGISTRY.definitions}
    steps = [names[row["mnemonic"]] for row in bench.trace().rows if row["parent"] >= 0]
    assert steps == ["tor", "pipe_barrier", "tand", "pipe_barrier", "tnot", "pipe_barrier", "tand"]
    small = replace(tmp, valid_cols=4)
    bench.issue("txor", dst, src, src, small)
    assert bench.findings() == ["TXOR-2"]


def test_in_place_where_the_a2a3_cannot() -> None:
    bench = Bench("a2a3")
    for name, want in (("tands", 5), ("tors", 5)):
        tile = bench.tile("i16", 1, 16, [[12] * 16])
        bench.issue(name, tile, tile, 5)
        assert bench.read(tile)[0, 0] == want
    tile = bench.tile("f32", 1, 8, [[4.0] * 8])
    bench.issue("trecip", tile, tile)
    assert bench.read(tile)[0, 0] == 1
    assert bench.findings() == ["TILE-INPLACE"] * 3
    other = bench.tile("f32", 1, 8, [[3.0] * 8])
    bench.issue("tdivs", other, other, 3.0)
    assert bench.read(other)[0, 0] == np.float32(3) * (np.float32(1) / np.float32(3))
    assert len(bench.findings()) == 3


def test_a_number_by_a_tile() -> None:
    for profile in ("a2a3", "a5", "cpu"):
        bench = Bench(profile)
        src, dst = bench.tile("i32", 1, 8, [[1, 2, 3, -4, 5, 0, 100, -1]]), bench.tile("i32", 1, 8)
        definition = next(d for d in REGISTRY.find("tdivs") if d.inputs[1].name == "scalar")
        bench.machine.issue(bench.core, definition, (dst, 60, src), 0)
        assert bench.read(dst)[0].tolist() == [60, 30, 20, -15, 12, 0, 0, -60]


@pytest.mark.parametrize("profile", ("a2a3", "a5", "cpu"))
def test_fills(profile: str) -> None:
    bench = Bench(profile)
    for kind, number, layout in (("f16", 1.5, 0), ("u8", 200, 0), ("i32", -7, 1), ("bf16", 3.0, 1)):
        before = noise(bench)
        dst = bench.tile(kind, 32, 64, valid=(5, 13), blayout=BLayout(layout))
        bench.issue("texpands", dst, number)
        written = bench.traced(Mode.WRITE)
        assert (bench.read(dst) == dtype(kind).numpy.type(number)).all()
        assert np.array_equal(bench.memory()[~written], before[~written])
        extra = 5 if kind == "u8" and profile == "a2a3" else 0
        assert written.sum() == 65 * dtype(kind).size + extra
        bench = Bench(profile)


def test_the_a5_works_on_64_numbers_of_64_bits() -> None:
    bench = Bench("a5")
    src, dst = bench.tile("i64", 2, 128, np.arange(256)), bench.tile("i64", 2, 128)
    bench.issue("tadds", dst, src, 1)
    assert bench.read(dst)[:, :64].ravel().tolist() == [*range(1, 65), *range(129, 193)]
    assert not bench.read(dst)[:, 64:].any()
    assert bench.findings() == ["TADDS-2"]
