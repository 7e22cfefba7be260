"""TROWMAX: maxima of every type and layout, NaN and zeros, and what the A2/A3 do to tmp."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ascsim.diagnostics import Refused
from ascsim.machine.dtypes import dtype
from ascsim.machine.operands import Tile
from ascsim.machine.trace import Mode
from ascsim.machine.words import BLayout
from harness import Bench

CHIP_TYPES = ("f32", "f16", "i32", "i16")
TYPES = {"a2a3": CHIP_TYPES, "a5": (*CHIP_TYPES, "i64", "u64", "i8", "u8")}
TYPES["cpu"] = TYPES["a5"]
CASES = [(profile, kind) for profile, kinds in TYPES.items() for kind in kinds]


def column(bench: Bench, kind: str, rows: int) -> Tile:
    return bench.tile(kind, -(-rows // 32) * 32, 1, valid=(rows, 1), blayout=BLayout.COL_MAJOR)


def trowmax(bench: Bench, kind: str, data: Any, dst: Tile | None = None, tmp: Tile | None = None) -> np.ndarray:
    array = np.asarray(data)
    rows, columns = array.shape
    src = bench.tile(kind, rows, -(-columns // 32) * 32, array, valid=(rows, columns))
    dst = dst or bench.tile(kind, rows, 32, valid=(rows, 1))
    bench.issue("TROWMAX", dst, src, tmp or bench.tile(kind, rows, src.cols))
    return bench.read(dst, rows, 1).ravel()


@pytest.mark.parametrize(("profile", "kind"), CASES)
def test_by_hand(profile: str, kind: str) -> None:
    bench = Bench(profile)
    low = 0 if kind.startswith("u") else -7
    assert trowmax(bench, kind, [[low, 3, 2], [5, low, 4], [low, low, low]]).tolist() == [3, 5, low]
    assert bench.findings() == []


@pytest.mark.parametrize(("profile", "kind"), CASES)
@given(data=st.data())
@settings(max_examples=12, deadline=None)
def test_any_bits_and_shapes(profile: str, kind: str, data: st.DataObject) -> None:
    bench = Bench(profile)
    rng = np.random.default_rng(data.draw(st.integers(0, 999)))
    bench.memory()[:] = rng.integers(0, 256, bench.memory().size)
    before = bench.memory().copy()
    rows, columns = (
        data.draw(st.integers(1, 6)),
        data.draw(st.integers(1, 64 if profile == "a5" and kind.endswith("64") else 400)),
    )
    src = bench.tile(kind, 6, 416, valid=(rows, columns))
    dst = column(bench, kind, rows) if data.draw(st.booleans()) else bench.tile(kind, 6, 32, valid=(rows, 1))
    tmp = bench.tile(kind, 6, 416)
    values = bench.read(src)
    bench.issue("TROWMAX", dst, src, tmp)
    got = bench.read(dst, rows, 1).ravel()
    for row in range(rows):
        line = values[row].tolist()
        if any(v != v for v in line):
            assert got[row] != got[row]
        else:
            best = max(line)
            assert got[row] == best
            if best == 0 and values.dtype.kind == "f":
                assert np.signbit(got[row]) == all(np.signbit(v) for v in line if v == 0)
    written = bench.traced(Mode.WRITE)
    assert np.array_equal(bench.memory()[~written], before[~written])
    in_tmp = written[tmp.address : tmp.address + tmp.nbytes].sum()
    assert written.sum() - in_tmp == rows * values.itemsize
    assert profile == "a2a3" or not in_tmp


def test_nan_and_zeros() -> None:
    bench = Bench("a5")
    got = trowmax(bench, "f32", [[-np.inf, -np.inf], [np.nan, 1.0], [-0.0, 0.0], [-0.0, -0.0]])
    assert got[0] == -np.inf and np.isnan(got[1])
    assert np.signbit(got[2:]).tolist() == [False, True]


# tmp on the A2/A3


@pytest.mark.parametrize(
    ("kind", "columns", "touched"),
    [
        ("f32", 64, 0), ("f32", 65, 256), ("f32", 300, 256), ("f16", 128, 0), ("f16", 129, 256), ("i32", 3, 32),
        ("i16", 300, 32),
    ],
)  # fmt: skip
def test_a2a3_bytes_of_tmp(kind: str, columns: int, touched: int) -> None:
    bench = Bench("a2a3")
    rows = 3
    tmp = bench.tile(kind, rows, 320, np.full((rows, 320), 99))
    data = np.random.default_rng(1).integers(-90, 90, (rows, columns))
    trowmax(bench, kind, data, tmp=tmp)
    written = bench.traced(Mode.WRITE)[tmp.address : tmp.address + tmp.nbytes].reshape(rows, -1)
    per_row = written.sum(axis=1).tolist()
    assert per_row == ([32, 0, 0] if touched == 32 else [touched] * rows)
    assert all(line[: line.sum()].all() for line in written)
    held = bench.read(tmp)
    if touched == 256:
        lanes = 256 // held.itemsize
        for lane in range(lanes):
            assert held[:, lane].tolist() == data[:, lane::lanes].max(axis=1).tolist()
    elif touched == 32:
        lanes = 32 // held.itemsize
        lowest = np.iinfo(held.dtype).min
        want = [data[-1, lane::lanes].max() if lane < columns else lowest for lane in range(lanes)]
        assert held[0, :lanes].tolist() == want


@pytest.mark.parametrize("shape", [(64, 128), (32, 256), (16, 512), (8, 1024)])
def test_a2a3_short_ways_write_4096_bytes_of_tmp(shape: tuple[int, int]) -> None:
    bench = Bench("a2a3")
    rows, columns = shape
    tmp = bench.tile("f32", 1, 1024)
    data = np.random.default_rng(2).normal(size=shape).astype(np.float32)
    src = bench.tile("f32", rows, columns, data)
    dst = bench.tile("f32", rows, 1, blayout=BLayout.COL_MAJOR)
    bench.issue("TROWMAX", dst, src, tmp)
    assert bench.read(dst).ravel().tolist() == data.max(axis=1).tolist()
    assert bench.findings() == []
    assert bench.traced(Mode.WRITE)[tmp.address : tmp.address + 4096].all()
    bench.issue("TROWMAX", bench.tile("f32", rows, 8, valid=(rows, 1)), src, tmp)
    assert bench.findings() == ["TROWMAX-1"]  # into rows it takes the long way


def test_a2a3_small_tmp_is_reported() -> None:
    bench = Bench("a2a3")
    data = np.random.default_rng(3).normal(size=(4, 256)).astype(np.float32)
    for tmp in (bench.tile("f32", 3, 64), bench.tile("f32", 4, 32)):
        assert trowmax(bench, "f32", data, tmp=tmp).tolist() == data.max(axis=1).tolist()
    assert bench.findings() == ["TROWMAX-1", "TROWMAX-1"]
    told = [d["headline"] for k, d in bench.sink.notes if k == "finding"]
    assert told == [
        "TROWMAX: tmp has 768 bytes and 256 beyond it are written",
        "TROWMAX: rows of tmp are 128 bytes, and 256 of each are written: they overwrite each other",
    ]


@pytest.mark.parametrize(("kind", "columns"), [("f32", 65), ("f32", 127), ("f16", 129), ("f16", 255)])
def test_a2a3_do_nothing_with_narrow_rows_of_tmp(kind: str, columns: int) -> None:
    bench = Bench("a2a3")
    before = np.full((2, 1), 42)
    dst = bench.tile(kind, 2, 32, before, valid=(2, 1))
    trowmax(bench, kind, np.zeros((2, columns)), dst=dst, tmp=bench.tile(kind, 2, 32))
    assert bench.read(dst).tolist() == before.tolist()
    assert bench.findings() == ["TROWMAX-2"]
    assert bench.trace().accesses.size == 0


@pytest.mark.parametrize("profile", ("a5", "cpu"))
def test_others_do_not_look_at_tmp(profile: str) -> None:
    bench = Bench(profile)
    data = np.random.default_rng(3).normal(size=(4, 256)).astype(np.float32)
    assert trowmax(bench, "f32", data, tmp=bench.tile("f32", 1, 8)).tolist() == data.max(axis=1).tolist()
    assert bench.findings() == []


@pytest.mark.parametrize("profile", ("a2a3", "a5", "cpu"))
def test_shapes_that_do_not_fit_are_refused(profile: str) -> None:
    bench = Bench(profile)
    tmp = bench.tile("f32", 4, 32)
    with pytest.raises(Refused, match="there is nothing to reduce"):
        bench.issue("TROWMAX", bench.tile("f32", 4, 8), bench.tile("f32", 4, 32, valid=(4, 0)), tmp)
    wide = bench.tile("f32", 32, 2, valid=(4, 1), blayout=BLayout.COL_MAJOR)
    with pytest.raises(Refused, match="has 2 columns") as refusal:
        bench.issue("TROWMAX", wide, bench.tile("f32", 4, 32), tmp)
    assert refusal.value.diagnostic.code == "L004"


def test_chips_take_the_rows_of_src_where_cpu_refuses() -> None:
    for profile in ("a2a3", "a5", "cpu"):
        bench = Bench(profile)
        dst, src = bench.tile("i32", 4, 8, valid=(3, 1)), bench.tile("i32", 4, 32, [[n] * 32 for n in (4, 5, 6, 7)])
        if profile == "cpu":
            with pytest.raises(Refused, match="dst has 3 valid rows, src 4"):
                bench.issue("TROWMAX", dst, src, bench.tile("i32", 4, 32))
            continue
        bench.issue("TROWMAX", dst, src, bench.tile("i32", 4, 32))
        assert bench.read(dst, 4, 1).ravel().tolist() == [4, 5, 6, 7]
        assert bench.findings() == ["TROWMAX-3"]


@pytest.mark.parametrize("profile", ("a2a3", "a5", "cpu"))
@pytest.mark.parametrize("kind", ("f32", "f16", "i32", "i16"))
@pytest.mark.parametrize("columns", (1, 40, 100, 200, 600))
def test_smallest_of_rows(profile: str, kind: str, columns: int) -> None:
    bench = Bench(profile)
    a = np.random.default_rng(columns).integers(-999, 999, (3, columns)).astype(dtype(kind).numpy)
    src, dst = bench.tile(kind, 3, 608, a, valid=(3, columns)), bench.tile(kind, 3, 16, valid=(3, 1))
    bench.issue("trowmin", dst, src, bench.tile(kind, 3, 608))
    assert bench.read(dst)[:, 0].tolist() == a.min(axis=1).tolist()
    assert bench.findings() == []


def test_smallest_zero_and_nan() -> None:
    bench = Bench("a5")
    src = bench.tile("f32", 2, 8, [[0.0, -0.0] * 4, [1, np.nan] * 4])
    dst = bench.tile("f32", 2, 8, valid=(2, 1))
    bench.issue("trowmin", dst, src, src)
    got = bench.read(dst)[:, 0]
    assert np.signbit(got[0]) and got[0] == 0 and np.isnan(got[1])
