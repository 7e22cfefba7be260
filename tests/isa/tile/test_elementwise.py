"""TADD and TADDS: every type, rounding, wrapping, shapes, in place."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import ml_dtypes
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ascsim.diagnostics import Refused
from ascsim.isa.tile.elementwise import element_of
from ascsim.machine.dtypes import dtype
from ascsim.machine.trace import Mode
from ascsim.machine.words import Pipe
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
