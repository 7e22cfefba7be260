"""TINTERLEAVE and TDEINTERLEAVE: by hand, as each other's inverse, every type, what overlaps."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ascsim.diagnostics import Refused
from ascsim.isa import REGISTRY
from ascsim.machine.operands import Tile
from ascsim.machine.trace import Mode
from harness import Bench

TYPES = ("i32", "u32", "f32", "i16", "u16", "f16", "bf16", "u8", "i8")
PROFILES = ("a5", "cpu")


def raw(bench: Bench, tile: Tile, columns: int | None = None) -> np.ndarray:
    return bench.core.view(tile.region(None, columns, np.dtype(f"u{tile.dtype.size}"))).copy()


@pytest.mark.parametrize("profile", PROFILES)
def test_by_hand(profile: str) -> None:
    bench = Bench(profile)
    src0, src1 = bench.tile("f32", 1, 8, [np.arange(8)]), bench.tile("f32", 1, 8, [10 + np.arange(8)])
    dst0, dst1 = bench.tile("f32", 1, 8), bench.tile("f32", 1, 8)
    bench.issue("TINTERLEAVE", dst0, dst1, src0, src1)
    assert bench.read(dst0)[0].tolist() == [0, 10, 1, 11, 2, 12, 3, 13]
    assert bench.read(dst1)[0].tolist() == [4, 14, 5, 15, 6, 16, 7, 17]
    even, odd = bench.tile("f32", 1, 8), bench.tile("f32", 1, 8)
    bench.issue("TDEINTERLEAVE", even, odd, src0, src1)
    assert bench.read(even)[0].tolist() == [0, 2, 4, 6, 10, 12, 14, 16]
    assert bench.read(odd)[0].tolist() == [1, 3, 5, 7, 11, 13, 15, 17]
    assert bench.findings() == []


@pytest.mark.parametrize("profile", PROFILES)
@pytest.mark.parametrize("kind", TYPES)
@given(data=st.data())
@settings(max_examples=10, deadline=None)
def test_every_type_shape_and_stride(profile: str, kind: str, data: st.DataObject) -> None:
    bench = Bench(profile)
    bench.memory()[:] = np.random.default_rng(data.draw(st.integers(0, 99))).integers(0, 256, bench.memory().size)
    before = bench.memory().copy()
    rows, columns = data.draw(st.integers(0, 4)), 2 * data.draw(st.integers(0, 50))
    tiles = [bench.tile(kind, 4, 128 + 32 * data.draw(st.integers(0, 2)), valid=(rows, columns)) for _ in range(6)]
    dst0, dst1, src0, src1, back0, back1 = tiles
    a, b = raw(bench, src0), raw(bench, src1)
    bench.issue("TINTERLEAVE", dst0, dst1, src0, src1)
    woven = np.stack([a, b], axis=2).reshape(rows, 2 * columns)
    assert np.array_equal(np.concatenate([raw(bench, dst0), raw(bench, dst1)], axis=1), woven)
    bench.issue("TDEINTERLEAVE", back0, back1, dst0, dst1)
    assert np.array_equal(raw(bench, back0), a) and np.array_equal(raw(bench, back1), b)
    written = bench.traced(Mode.WRITE)
    assert written.sum() == 4 * a.nbytes
    assert np.array_equal(bench.memory()[~written], before[~written])
    assert bench.findings() == []


@pytest.mark.parametrize("profile", PROFILES)
def test_one_source_has_the_rows_of_both(profile: str) -> None:
    bench = Bench(profile)
    src = bench.tile("i16", 2, 64, np.arange(120), valid=(2, 60))
    dst0, dst1 = bench.tile("i16", 2, 32, valid=(2, 30)), bench.tile("i16", 2, 48, valid=(2, 30))
    bench.issue("TDEINTERLEAVE", dst0, dst1, src)
    assert np.array_equal(bench.read(dst0), np.arange(120).reshape(2, 60)[:, 0::2])
    assert np.array_equal(bench.read(dst1), np.arange(120).reshape(2, 60)[:, 1::2])


def test_cpu_refuses_an_odd_number_of_columns_and_other_shapes() -> None:
    bench = Bench("cpu")
    odd = [bench.tile("i32", 1, 8, valid=(1, 7)) for _ in range(4)]
    for name in ("TINTERLEAVE", "TDEINTERLEAVE"):
        with pytest.raises(Refused, match="an odd number"):
            bench.issue(name, *odd)
        with pytest.raises(Refused, match="valid region of src1 is 1x4"):
            bench.issue(name, *(replace(t, valid_cols=n) for t, n in zip(odd, (6, 6, 6, 4), strict=True)))
    with pytest.raises(Refused, match="half the columns"):
        bench.issue("TDEINTERLEAVE", replace(odd[0], valid_cols=3), replace(odd[1], valid_cols=3), odd[2])


def test_the_a5_halves_an_odd_number_of_columns_and_rounds_down() -> None:
    bench = Bench("a5")
    a, b = (bench.tile("i32", 1, 8, [n + np.arange(7)], valid=(1, 7)) for n in (0, 10))
    dst = [bench.tile("i32", 1, 8, [[99] * 7], valid=(1, 7)) for _ in range(2)]
    bench.issue("TINTERLEAVE", *dst, a, b)
    assert [bench.read(t)[0].tolist() for t in dst] == [[0, 10, 1, 11, 2, 12, 3], [3, 13, 4, 14, 5, 15, 6]]
    dst = [bench.tile("i32", 1, 8, [[99] * 7], valid=(1, 7)) for _ in range(2)]
    bench.issue("TDEINTERLEAVE", *dst, a, b)
    assert [bench.read(t)[0].tolist() for t in dst] == [[0, 2, 4, 10, 12, 14, 99], [1, 3, 5, 11, 13, 15, 99]]
    halves = [bench.tile("i32", 1, 8, [[99] * 4], valid=(1, 4)) for _ in range(2)]
    bench.issue("TDEINTERLEAVE", *halves, a)
    assert [bench.read(t)[0].tolist() for t in halves] == [[0, 2, 4, 99], [1, 3, 5, 99]]
    assert bench.findings() == ["TINTERLEAVE-2", "TDEINTERLEAVE-2", "TDEINTERLEAVE-3"]


def test_on_the_a5_dst0_governs_or_the_one_source() -> None:
    bench = Bench("a5")
    src = [bench.tile("i32", 2, 8, n + np.arange(16).reshape(2, 8)) for n in (0, 20)]
    dst = [bench.tile("i32", 2, 8, valid=valid) for valid in ((1, 4), (2, 8))]
    bench.issue("TINTERLEAVE", *dst, *src)
    assert bench.read(dst[1]).tolist() == [[2, 22, 3, 23, 0, 0, 0, 0], [0] * 8]
    bench.issue("TDEINTERLEAVE", replace(dst[0], valid_cols=2), dst[1], src[0])
    assert bench.read(dst[1], 2, 4).tolist() == [[1, 3, 5, 7], [9, 11, 13, 15]]
    assert bench.findings() == ["TINTERLEAVE-1", "TDEINTERLEAVE-3"]


def test_in_place_is_reported_and_done_as_if_all_were_read_first() -> None:
    bench = Bench("a5")
    a, b = bench.tile("i32", 1, 8, [np.arange(8)]), bench.tile("i32", 1, 8, [10 + np.arange(8)])
    bench.issue("TINTERLEAVE", a, b, a, b)
    assert bench.read(b)[0].tolist() == [4, 14, 5, 15, 6, 16, 7, 17]
    assert bench.findings() == ["INTERLEAVE-1"]
    apart = replace(a, address=a.address + 32)
    bench.issue("TINTERLEAVE", apart, b, a, replace(a, address=a.address + 128))
    assert bench.findings() == ["INTERLEAVE-1"]  # side by side is no overlap
    bench.issue("TDEINTERLEAVE", replace(a, cols=8, valid_cols=4), replace(b, valid_cols=4), a)
    assert bench.findings() == ["INTERLEAVE-1"] * 2


def test_cpp_has_the_destinations_and_the_sources_the_other_way_round() -> None:
    orders = [d.cpp_order for name in ("TINTERLEAVE", "TDEINTERLEAVE") for d in REGISTRY.by_cpp[name]]
    assert orders == [("dst1", "dst0", "src1", "src0")] * 2 + [("dst1", "dst0", "src")]


def test_the_a2a3_has_neither() -> None:
    bench = Bench("a2a3")
    tiles = [bench.tile("f32", 1, 8) for _ in range(4)]
    for name in ("TINTERLEAVE", "TDEINTERLEAVE"):
        with pytest.raises(Refused, match="not available on a2a3"):
            bench.issue(name, *tiles)
