"""TROWSUM and TROWPROD: exact where order does not matter, in the chip's order where it does, tmp to the byte."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from ascsim.compiled import converts_halves
from ascsim.isa import lanewise
from ascsim.machine.dtypes import dtype
from ascsim.machine.trace import Mode
from ascsim.machine.words import BLayout
from harness import Bench

PROFILES = ("a2a3", "a5", "cpu")
COLUMNS = (1, 7, 16, 63, 64, 100, 128, 129, 200, 256, 320, 448, 500, 1000)


def reduced(profile: str, name: str, kind: str, data: Any, column: bool = False) -> np.ndarray:
    bench = Bench(profile)
    data = np.asarray(data)
    rows, columns = data.shape
    src = bench.tile(kind, rows, 1024, data, valid=(rows, columns))
    dst = bench.tile(kind, 32, 1, valid=(rows, 1), blayout=BLayout.COL_MAJOR) if column else bench.tile(
        kind, rows, 32, valid=(rows, 1)
    )  # fmt: skip
    bench.issue(name, dst, src, bench.tile(kind, rows, 1024))
    assert bench.findings() == []
    return bench.read(dst, rows, 1).ravel()


@pytest.mark.parametrize("profile", PROFILES)
@pytest.mark.parametrize("kind", ("f32", "f16", "i32", "i16"))
@pytest.mark.parametrize("columns", COLUMNS)
def test_whole_numbers_are_added_exactly(profile: str, kind: str, columns: int) -> None:
    data = np.random.default_rng(columns).integers(-9, 9, (5, columns))
    assert data.cumsum(axis=1).max() < 2048
    assert reduced(profile, "trowsum", kind, data, columns % 2 == 0).tolist() == data.sum(axis=1).tolist()


@pytest.mark.parametrize("profile", PROFILES)
@pytest.mark.parametrize("kind", ("f32", "f16", "i32", "i16"))
@pytest.mark.parametrize("columns", COLUMNS)
def test_signs_and_twos_are_multiplied_exactly(profile: str, kind: str, columns: int) -> None:
    drawn = np.random.default_rng(columns)
    data = drawn.choice([-1, 1], (5, columns))
    data[:, drawn.integers(0, columns, 4)] *= 2
    assert reduced(profile, "trowprod", kind, data, columns % 2 == 1).tolist() == data.prod(axis=1).tolist()


@pytest.mark.parametrize("profile", PROFILES)
def test_integers_wrap(profile: str) -> None:
    assert reduced(profile, "trowsum", "i16", [[30000, 30000, 1]]).tolist() == [60001 - 65536]
    assert reduced(profile, "trowprod", "i16", [[300, 300, 1]]).tolist() == [np.int64(90000).astype(np.int16)]


def test_64_bits_on_the_a5() -> None:
    bench = Bench("a5")
    data = np.random.default_rng(1).integers(-(2**62), 2**62, (3, 60))
    dst = bench.tile("i64", 3, 4, valid=(3, 1))
    bench.issue("trowsum", dst, bench.tile("i64", 3, 60, data), bench.tile("i64", 3, 60))
    with np.errstate(over="ignore"):
        assert bench.read(dst)[:, 0].tolist() == data.sum(axis=1).tolist()
    wide = bench.tile("i64", 3, 100, np.ones((3, 100)))
    bench.issue("trowsum", dst, wide, wide)
    assert bench.read(dst)[:, 0].tolist() == [64] * 3
    assert bench.findings() == ["TROWSUM-4"]


def test_the_order_of_additions() -> None:
    big = 2.0**24
    row = np.zeros((1, 130))
    row[0, [0, 1, 64, 128]] = [big, 1, 1, -big]  # float: big + 1 is big
    # A2/A3: lane 0 is (row[0] + row[64]) + row[128] = 0, lane 1 is 1
    assert reduced("a2a3", "trowsum", "f32", row).tolist() == [1]
    # A5: big + 1 = big, then 1 (lost), then -big
    assert reduced("a5", "trowsum", "f32", row).tolist() == [0]
    assert reduced("cpu", "trowsum", "f32", row).tolist() == [0]
    row[0, [0, 1, 64, 128]] = [big, -big, 1, 1]
    assert reduced("cpu", "trowsum", "f32", row).tolist() == [2]
    assert reduced("a2a3", "trowsum", "f32", row).tolist() == [0]  # lane 0 is big + 1 + 1


def test_half_stops_at_its_limit_on_the_a2a3() -> None:
    row = np.full((1, 4), 60000)
    assert reduced("a2a3", "trowsum", "f16", row).tolist() == [65504]
    assert reduced("a5", "trowsum", "f16", row).tolist() == [np.inf]


def test_products_of_half_in_float_at_the_end() -> None:
    row = np.ones((1, 16))
    row[0, :3] = [60000, 60000, 1 / 60000]
    want = np.float16(np.float32(np.float16(60000)) * np.float32(np.float16(60000)) * np.float32(np.float16(1 / 60000)))
    assert reduced("a2a3", "trowprod", "f16", row).tolist() == [want]
    assert reduced("cpu", "trowprod", "f16", row).tolist() == [np.inf]


@pytest.mark.parametrize(
    ("kind", "columns", "touched"),
    [
        ("f32", 64, 0), ("f32", 65, 256), ("f32", 255, 256), ("f32", 256, 512), ("f32", 330, 512), ("f16", 128, 0),
        ("f16", 129, 256), ("f16", 512, 512), ("i32", 3, 32), ("i16", 300, 32),
    ],
)  # fmt: skip
def test_bytes_of_tmp_on_the_a2a3(kind: str, columns: int, touched: int) -> None:
    bench = Bench("a2a3")
    rows = 3
    tmp = bench.tile(kind, rows, 1024)
    src = bench.tile(kind, rows, 1024, np.ones((rows, columns)), valid=(rows, columns))
    bench.issue("trowsum", bench.tile(kind, rows, 16, valid=(rows, 1)), src, tmp)
    written = bench.traced(Mode.WRITE)[tmp.address : tmp.address + tmp.nbytes].reshape(rows, -1)
    assert written.sum(axis=1).tolist() == ([32, 0, 0] if touched == 32 else [touched] * rows)
    lanes = (32 if touched == 32 else 256) // dtype(kind).size
    if touched:
        assert bench.read(tmp)[0, :lanes].sum() == columns


@pytest.mark.parametrize("shape", [(64, 128), (32, 256), (16, 512), (8, 1024)])
def test_short_ways_of_the_a2a3(shape: tuple[int, int]) -> None:
    bench = Bench("a2a3")
    rows, columns = shape
    tmp, dst = bench.tile("f32", 1, 1024), bench.tile("f32", rows, 1, blayout=BLayout.COL_MAJOR)
    data = np.random.default_rng(2).integers(-99, 99, shape)
    bench.issue("trowsum", dst, bench.tile("f32", rows, columns, data), tmp)
    assert bench.read(dst).ravel().tolist() == data.sum(axis=1).tolist()
    assert bench.findings() == []
    assert bench.traced(Mode.WRITE)[tmp.address : tmp.address + 4096].all()
    assert bench.read(tmp)[0, : rows * 8].reshape(rows, 8).sum(axis=1).tolist() == data.sum(axis=1).tolist()


def test_a_tmp_that_is_too_narrow() -> None:
    bench = Bench("a2a3")
    data = np.ones((4, 256))
    src, dst = bench.tile("f32", 4, 256, data), bench.tile("f32", 4, 8, valid=(4, 1))
    bench.issue("trowsum", dst, src, bench.tile("f32", 4, 64))
    assert bench.findings() == ["TROWSUM-1"]
    said = "rows of tmp are 256 bytes, and 512 of each are written: they overwrite each other"
    assert [d["headline"] for k, d in bench.sink.notes if k == "finding"] == [f"TROWSUM: {said}"]
    narrow = bench.tile("f32", 4, 72, data[:, :72])
    bench.issue("trowsum", dst, narrow, bench.tile("f32", 4, 32))
    assert bench.findings() == ["TROWSUM-1", "TROWSUM-2"]


@pytest.mark.parametrize(
    ("profile", "kind", "shape", "column_major"),
    [
        ("a2a3", "f32", (8, 64), False), ("a2a3", "f16", (8, 128), True), ("a5", "f16", (8, 256), False),
        ("cpu", "f16", (8, 30), False),
        *(pytest.param(*case, marks=pytest.mark.slow) for case in (
            ("a2a3", "f32", (64, 128), True), ("a2a3", "f32", (16, 512), True), ("a2a3", "f16", (64, 128), True),
            ("a5", "f32", (64, 128), True), ("cpu", "f32", (64, 128), True),
        )),
    ],
)  # fmt: skip
def test_machine_code_adds_as_numpy_does(
    profile: str, kind: str, shape: tuple[int, int], column_major: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(lanewise, "WORTH_LOADING", 0)
    monkeypatch.setattr(lanewise, "WORTH_MAKING", 0)
    bench, random = Bench(profile), np.random.default_rng(4)
    values = random.standard_normal(shape) * random.choice([1, 100, 3e4 if kind == "f16" else 3e30], shape)
    values[1, ::5], values[2, 3], values[3, 7] = -0.0, np.inf, np.nan
    values[-1] = -0.0
    src = bench.tile(kind, *shape, values)
    layout: dict[str, Any] = {"blayout": BLayout.COL_MAJOR} if column_major else {}
    dst = bench.tile(kind, shape[0], 1 if column_major else 16, valid=(shape[0], 1), **layout)
    args = (dst, src, bench.tile(kind, *shape, values))
    definition = bench.definition("trowsum", 3)
    work = definition.prepared(bench.core, args, definition.touches(bench.core, args))
    assert isinstance(work, lanewise.Work)
    before = bench.memory().copy()
    work.slow()
    by_numpy = bench.memory().copy()
    bench.memory()[:] = before
    work.code.seek()
    if kind == "f16" and not converts_halves():
        return
    assert work.code.entry is not None
    work.code.entry(work.place)
    assert not np.array_equal(before, by_numpy)
    assert np.array_equal(bench.memory(), by_numpy)
