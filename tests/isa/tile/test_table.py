"""MGATHER and MSCATTER: by row and by element, beyond the table, adding up, the pipes of A2/A3."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ascsim.isa.tile.table import Coalesce, GatherOOB, ScatterAtomicOp, ScatterOOB
from ascsim.machine.dtypes import dtype
from ascsim.machine.operands import GlobalTensor
from ascsim.machine.trace import Mode
from ascsim.machine.words import BLayout, Pipe, SLayout, Space
from harness import Bench

PROFILES = ("a2a3", "a5", "cpu")
KINDS = ("f32", "i32", "f16", "bf16", "i8")
ROWS, COLS = 20, 16


def table_of(bench: Bench, kind: str, rows: int = ROWS, cols: int = COLS, at: int = 4096) -> GlobalTensor:
    view = GlobalTensor(dtype(kind), at, (1, 1, 1, rows, cols), (rows * cols, rows * cols, rows * cols, cols, 1))
    held = bench.core.view(view.region())
    held[...] = (np.arange(rows * cols) % 100).reshape(held.shape).astype(held.dtype)
    return view


def content(bench: Bench, view: GlobalTensor) -> np.ndarray:
    return bench.core.view(view.region()).reshape(view.shape[3:]).copy()


def remapped(numbers: np.ndarray, oob: str, capacity: int) -> np.ndarray:
    wide = numbers.astype(np.int64) & 0xFFFFFFFF
    if oob == "Clamp":
        return np.minimum(wide, capacity - 1)
    return wide % capacity if oob == "Wrap" else wide


@pytest.mark.parametrize("profile", PROFILES)
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("mode", tuple(Coalesce))
@given(data=st.data())
@settings(max_examples=6, deadline=None)
def test_gather(profile: str, kind: str, mode: Coalesce, data: st.DataObject) -> None:
    bench = Bench(profile)
    table = table_of(bench, kind)
    oob = data.draw(st.sampled_from(tuple(GatherOOB)))
    rows, cols = data.draw(st.integers(1, 6)), COLS if mode is Coalesce.Row else data.draw(st.integers(1, COLS))
    capacity = ROWS if mode is Coalesce.Row else ROWS * COLS
    beyond = 0 if oob is GatherOOB.Undefined else 50
    shape = (1, rows) if mode is Coalesce.Row else (rows, cols)
    numbers = np.random.default_rng(data.draw(st.integers(0, 99))).integers(0, capacity + beyond, shape)
    dst = bench.tile(kind, 8, 32, valid=(rows, cols))
    idx = bench.tile("u32", 8, 32, numbers, valid=shape)
    bench.issue("MGATHER", dst, table, idx, mode, oob)
    held = content(bench, table)
    flat = held if mode is Coalesce.Row else held.ravel()
    expected = flat[np.minimum(remapped(numbers, oob.name, capacity), capacity - 1)]
    if oob is GatherOOB.Zero:
        expected[numbers >= capacity] = 0
    assert np.array_equal(bench.read(dst), expected.reshape(rows, cols))
    assert bench.findings() == []
    assert bench.traced(Mode.WRITE).sum() == rows * cols * table.dtype.size


@pytest.mark.parametrize("profile", PROFILES)
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("mode", tuple(Coalesce))
@given(data=st.data())
@settings(max_examples=6, deadline=None)
def test_scatter(profile: str, kind: str, mode: Coalesce, data: st.DataObject) -> None:
    bench = Bench(profile)
    table = table_of(bench, kind)
    adds = data.draw(st.booleans()) and not (profile == "a5" and kind == "i8")
    oob = data.draw(st.sampled_from(tuple(ScatterOOB)))
    rows, cols = data.draw(st.integers(1, 6)), COLS if mode is Coalesce.Row else data.draw(st.integers(1, COLS))
    capacity = ROWS if mode is Coalesce.Row else ROWS * COLS
    beyond = 0 if oob is ScatterOOB.Undefined else 50
    shape = (1, rows) if mode is Coalesce.Row else (rows, cols)
    numbers = np.random.default_rng(data.draw(st.integers(0, 99))).integers(0, capacity + beyond, shape)
    src = bench.tile(kind, 8, 32, np.arange(rows * cols).reshape(rows, cols) % 50 + 1, valid=(rows, cols))
    idx = bench.tile("i32", 8, 32, numbers, valid=shape)
    expected = content(bench, table).reshape((ROWS, COLS) if mode is Coalesce.Row else (ROWS * COLS, 1))
    values = bench.read(src).reshape(-1, expected.shape[1])
    for value, raw, number in zip(values, numbers.ravel(), remapped(numbers, oob.name, capacity).ravel(), strict=True):
        if oob is not ScatterOOB.Skip or raw < capacity:
            expected[number] = expected[number] + value if adds else value
    bench.issue("MSCATTER", table, src, idx, mode, ScatterAtomicOp.Add if adds else ScatterAtomicOp.none, oob)
    assert np.array_equal(content(bench, table).ravel(), expected.ravel())
    assert bench.findings() == []


@pytest.mark.parametrize("profile", PROFILES)
@pytest.mark.parametrize("name", ("MGATHER", "MSCATTER"))
def test_an_index_beyond_the_table_is_told(profile: str, name: str) -> None:
    bench = Bench(profile)
    table = table_of(bench, "f32")
    tile, idx = bench.tile("f32", 1, 8), bench.tile("i32", 1, 8, [[0, 1, 2, 3, 4, 5, 6, ROWS * COLS]])
    operands = (tile, table) if name == "MGATHER" else (table, tile)
    bench.issue(name, *operands, idx, Coalesce.Elem)
    assert bench.findings() == ["TABLE-1"]


NZ_TILE = {"blayout": BLayout.COL_MAJOR, "slayout": SLayout.ROW_MAJOR}


@pytest.mark.parametrize("profile", ("a2a3", "cpu"))
@pytest.mark.parametrize("mode", tuple(Coalesce))
def test_tables_of_boxes(profile: str, mode: Coalesce) -> None:
    bench = Bench(profile)
    table = GlobalTensor(dtype("f32"), 4096, (1, 2, 2, 16, 8), (512, 256, 128, 8, 1), 2)
    matrix = np.arange(512, dtype=np.float32).reshape(32, 16)
    bench.core.view(table.region())[...] = matrix.reshape(2, 16, 2, 8).transpose(2, 0, 1, 3)[None]
    dst = bench.tile("f32", 16, 16, valid=(3, 16), **NZ_TILE)
    if mode is Coalesce.Row:
        idx = bench.tile("u32", 1, 8, [[31, 0, 17]], valid=(1, 3))
        expected = matrix[[31, 0, 17]]
    else:
        numbers = np.arange(48).reshape(3, 16) * 10
        idx, expected = bench.tile("u32", 3, 16, numbers), matrix.ravel()[numbers]
    bench.issue("MGATHER", dst, table, idx, mode)
    places = [[dst.byte_of(r, c) // 4 for c in range(16)] for r in range(3)]
    assert np.array_equal(bench.memory().view(np.float32)[np.array(places)], expected)
    assert bench.findings() == []


def pipes(bench: Bench) -> set[int]:
    rows = bench.trace().rows
    return {int(row["pipe"]) for row in rows[1:] if row["kind"] == 0 and row["n_access"]}


def test_a2a3_moves_rows_by_dma_and_elements_by_the_scalar_pipe() -> None:
    for mode, expected in ((Coalesce.Row, {Pipe.S, Pipe.MTE2}), (Coalesce.Elem, {Pipe.S})):
        bench = Bench("a2a3")
        shape = (1, 2) if mode is Coalesce.Row else (2, 16)
        bench.issue(
            "MGATHER", bench.tile("f32", 2, 16), table_of(bench, "f32"), bench.tile("u32", 2, 16, valid=shape), mode
        )
        assert pipes(bench) == expected
    bench = Bench("a2a3")
    bench.issue("MSCATTER", table_of(bench, "f32"), bench.tile("f32", 2, 16), bench.tile("u32", 1, 8, valid=(1, 2)), 0)
    assert pipes(bench) == {Pipe.S, Pipe.MTE3}


def test_the_default_is_rows_on_chips_and_elements_on_cpu() -> None:
    for profile, shape in (("a2a3", (1, 2)), ("a5", (1, 2)), ("cpu", (2, 16))):
        bench = Bench(profile)
        bench.issue("MGATHER", bench.tile("f32", 2, 16), table_of(bench, "f32"), bench.tile("u32", 2, 16, valid=shape))
        assert bench.findings() == []


def test_the_pitch_of_the_table_is_not_looked_at_on_a5() -> None:
    for profile, codes, first in (("a5", ["E-MGATHER-PITCH"], 8), ("a2a3", [], 16)):
        bench = Bench(profile)
        dst = bench.tile("f32", 1, 8)
        bench.issue("MGATHER", dst, table_of(bench, "f32"), bench.tile("u32", 1, 8, [[1]], valid=(1, 1)), Coalesce.Row)
        assert bench.findings() == codes
        assert bench.read(dst)[0, 0] == first


def test_the_last_of_several_stays_and_sums_add_up() -> None:
    bench = Bench("a5")
    table = table_of(bench, "f32")
    src, idx = bench.tile("f32", 1, 8, [np.arange(8) + 1]), bench.tile("u32", 1, 8, [np.full(8, 3)])
    bench.issue("MSCATTER", table, src, idx, Coalesce.Elem)
    assert content(bench, table)[0, 3] == 8
    bench.issue("MSCATTER", table, src, idx, Coalesce.Elem, ScatterAtomicOp.Add)
    assert content(bench, table)[0, 3] == 44
    bench.issue("MSCATTER", table, src, idx, Coalesce.Elem, ScatterAtomicOp.Min)
    assert content(bench, table)[0, 3] == 1
    assert bench.traced(Mode.WRITE, Space.GM).sum() == 4
