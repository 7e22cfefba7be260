"""TROWEXPANDADD and its kin: columns and blocks beside rows, either order, the A2/A3's working space and passes."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ascsim.diagnostics import Refused
from ascsim.isa import REGISTRY
from ascsim.machine.dtypes import dtype
from ascsim.machine.operands import Tile
from ascsim.machine.trace import Mode
from ascsim.machine.words import BLayout
from harness import Bench

PROFILES = ("a2a3", "a5", "cpu")
EXACT: dict[str, Any] = {
    "trowexpandadd": np.add, "trowexpandsub": np.subtract, "trowexpandmul": np.multiply, "trowexpanddiv": np.divide,
    "trowexpandmax": np.maximum, "trowexpandmin": np.minimum,
}  # fmt: skip


def line(bench: Bench, kind: str, rows: int, drawn: np.random.Generator, column: bool) -> Tile:
    elements = 32 // dtype(kind).size
    if column:
        data = drawn.integers(1, 9, (rows, 1))
        return bench.tile(kind, -(-rows // 32) * 32, 1, data, valid=(rows, 1), blayout=BLayout.COL_MAJOR)
    return bench.tile(kind, rows, elements, drawn.integers(1, 9, (rows, elements)))


def issue(bench: Bench, name: str, *args: Any) -> None:
    definition = next(d for d in REGISTRY.find(name, bench.profile))
    bench.machine.issue(bench.core, definition, args, bench.machine.site("test.py", 1))


@pytest.mark.parametrize("profile", PROFILES)
@pytest.mark.parametrize("name", EXACT)
@given(
    rows=st.sampled_from([1, 2, 7, 8, 33, 256, 260, 300]), cols=st.sampled_from([2, 17, 64, 130]), seed=st.integers(0, 99),
    column=st.booleans(), second=st.booleans(), with_tmp=st.booleans(),
)  # fmt: skip
@settings(max_examples=10, deadline=None)
def test_numbers_beside_rows(
    profile: str, name: str, rows: int, cols: int, seed: int, column: bool, second: bool, with_tmp: bool
) -> None:
    whole = () if name == "trowexpanddiv" and profile == "a2a3" else ("i32", "i16")
    for kind in ("f32", "f16", *whole):
        bench, drawn = Bench(profile), np.random.default_rng(seed)
        beside = line(bench, kind, rows, drawn, column)
        cols, pitch = (cols, 144) if rows < 100 else (min(cols, 17), 32)
        tile = bench.tile(kind, rows, pitch, drawn.integers(1, 90, (rows, cols)), valid=(rows, cols))
        if (tile.valid_rows, tile.valid_cols) == (beside.valid_rows, beside.valid_cols):
            continue
        dst = tile if rows < 100 else bench.tile(kind, rows, pitch, valid=(rows, cols))
        a, b = bench.read(tile).astype(np.float64), bench.read(beside).astype(np.float64).reshape(rows, -1)
        b = b[:, np.arange(cols) % b.shape[1]]
        sources = (beside, tile) if second else (tile, beside)
        extra = (bench.tile("u8", 1, 8192),) if with_tmp and column else ()
        issue(bench, name, dst, *sources, *extra)
        want = EXACT[name](b, a) if second else EXACT[name](a, b)
        exact = np.trunc(want) if kind.startswith("i") else want.astype(dtype(kind).numpy)
        assert np.array_equal(bench.read(dst).astype(np.float64), exact.astype(np.float64))
        assert bench.findings() == []


@pytest.mark.parametrize("profile", PROFILES)
def test_exponentials_of_differences(profile: str) -> None:
    for kind in ("f32", "f16"):
        for name in ("trowexpandexpdif", "tcolexpandexpdif"):
            bench = Bench(profile)
            tile = bench.tile(kind, 4, 32, np.random.default_rng(3).normal(size=(4, 32)))
            if name.startswith("trow"):
                beside = bench.tile(kind, 32, 1, [[0.3], [1], [2], [0.7]], valid=(4, 1), blayout=BLayout.COL_MAJOR)
            else:
                beside = bench.tile(kind, 1, 32, np.random.default_rng(4).normal(size=(1, 32)))
            dst = bench.tile(kind, 4, 32)
            issue(bench, name, dst, tile, beside)
            difference = bench.read(tile) - bench.read(beside).reshape(-1, 1 if name.startswith("trow") else 32)
            want = np.exp(difference.astype(np.float64)).astype(difference.dtype)
            assert np.array_equal(bench.read(dst), want)


def test_working_space_of_the_a2a3() -> None:
    hidden = 184 * 1024
    for rows in (1, 9, 255, 300):
        for own in (False, True):
            bench = Bench("a2a3")
            beside = bench.tile("f16", 512, 1, np.arange(512)[:, None], valid=(rows, 1), blayout=BLayout.COL_MAJOR)
            tile = bench.tile("f16", rows, 32, np.zeros((rows, 32)))
            tmp = bench.tile("f16", 1, 4096)
            issue(bench, "trowexpandadd", tile, tile, beside, *((tmp,) if own else ()))
            assert np.array_equal(bench.read(tile), np.repeat(np.arange(rows)[:, None], 32, 1))
            start = tmp.address if own else hidden
            blocks = 240 if rows >= 256 else -(-rows // 8) * 8
            written = np.flatnonzero(bench.traced(Mode.WRITE))
            written = written[(written < tile.address) | (written >= tile.address + tile.nbytes)]
            assert np.array_equal(written, np.arange(start, start + blocks * 32))
            held = bench.memory()[start : start + blocks * 32].view(np.float16).reshape(blocks, 16)
            want = np.arange(blocks) if rows < 256 else np.r_[np.arange(240, 304), np.arange(64, 240)]
            assert np.array_equal(held, np.repeat(want[:, None], 16, 1))
            assert bench.findings() == []


def test_rows_too_many_on_the_a2a3() -> None:
    bench = Bench("a2a3")
    beside = bench.tile("f16", 480, 1, np.ones((480, 1)), valid=(475, 1), blayout=BLayout.COL_MAJOR)
    tile = bench.tile("f16", 480, 16, np.zeros((480, 16)), valid=(475, 16))
    issue(bench, "trowexpandadd", tile, tile, beside)
    assert bench.findings() == ["TROWEXPANDADD-4"]
    assert (bench.read(tile, 480, 16) == 1).all()


def test_a_small_tmp_and_a_row_for_it() -> None:
    bench = Bench("a2a3")
    beside = bench.tile("f32", 16, 1, np.ones((16, 1)), valid=(9, 1), blayout=BLayout.COL_MAJOR)
    tile = bench.tile("f32", 9, 16)
    issue(bench, "trowexpandmul", tile, tile, beside, bench.tile("f32", 1, 64))
    assert bench.findings() == ["TROWEXPANDMUL-3"]


@pytest.mark.parametrize("profile", PROFILES)
def test_shapes_that_do_not_fit(profile: str) -> None:
    bench = Bench(profile)
    tile, wide = bench.tile("f32", 4, 32, np.ones((4, 32))), bench.tile("f32", 4, 16, np.ones((4, 16)), valid=(4, 7))
    if profile == "cpu":
        with pytest.raises(Refused, match="src1 has 7 valid columns; row-major it has 8"):
            issue(bench, "trowexpandadd", tile, tile, wide)
        return
    issue(bench, "trowexpandadd", tile, tile, wide)
    assert bench.findings() == ["TROWEXPANDADD-1", "TROWEXPANDADD-2"]


def test_the_a2a3_take_the_tile_with_longer_rows_where_both_could_be() -> None:
    for profile, want in (("a2a3", [[1], [0]]), ("cpu", None)):
        bench = Bench(profile)
        first = bench.tile("f32", 8, 1, [[3], [4]], valid=(2, 1), blayout=BLayout.COL_MAJOR)
        second, dst = bench.tile("f32", 2, 16, [[2], [4]], valid=(2, 1)), bench.tile("f32", 2, 16, valid=(2, 1))
        if want is None:
            with pytest.raises(Refused):
                issue(bench, "trowexpandsub", dst, first, second)
        else:
            issue(bench, "trowexpandsub", dst, first, second)
            assert bench.read(dst).tolist() == want
