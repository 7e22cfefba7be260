"""TSCATTER by index and by pattern: results, what is touched, the steps of A2/A3, what is told."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ascsim.diagnostics import Refused
from ascsim.isa.tile.scatter import MaskPattern, ScatterAxis
from ascsim.machine.dtypes import dtype
from ascsim.machine.trace import Mode
from ascsim.machine.words import Pipe
from harness import Bench

PROFILES = ("a2a3", "a5", "cpu")
CHIPS = ("a2a3", "a5")
TYPES = ("f32", "i32", "u32", "f16", "bf16", "i16", "u16", "i8", "u8")
INDEX = {1: ("u16", "i16"), 2: ("u16", "i16"), 4: ("u32", "i32"), 8: ("u32", "i32")}


@pytest.mark.parametrize("profile", PROFILES)
@pytest.mark.parametrize("kind", TYPES)
@given(data=st.data())
@settings(max_examples=12, deadline=None)
def test_each_element_goes_where_its_index_says(profile: str, kind: str, data: st.DataObject) -> None:
    bench = Bench(profile)
    bench.memory()[:] = np.random.default_rng(data.draw(st.integers(0, 99))).integers(0, 256, bench.memory().size)
    size = dtype(kind).size
    rows, cols = data.draw(st.integers(1, 4)), data.draw(st.integers(1, 40))
    dst = bench.tile(kind, data.draw(st.integers(1, 6)), 32 * data.draw(st.integers(1, 2)))
    src = bench.tile(kind, rows, 64, valid=(rows, cols))
    numbers = data.draw(
        st.lists(st.integers(0, dst.rows * dst.cols - 1), min_size=rows * cols, max_size=rows * cols)
    )  # fmt: skip
    idx = bench.tile(data.draw(st.sampled_from(INDEX[size])), rows, 64, np.array(numbers).reshape(rows, cols),
                     valid=(rows, cols))  # fmt: skip
    before = bench.memory().copy()
    bits = np.dtype(f"u{size}")
    held = bench.core.view(src.region(None, None, bits)).ravel().copy()
    expected = bench.core.view(dst.region(None, None, bits)).copy().ravel()
    if profile != "cpu":
        expected[:] = 0
    for number, element in zip(numbers, held, strict=True):
        expected[number] = element
    bench.issue("TSCATTER", dst, src, idx)
    assert np.array_equal(bench.core.view(dst.region(None, None, bits)).ravel(), expected)
    written = bench.traced(Mode.WRITE)
    assert np.array_equal(bench.memory()[~written], before[~written])
    if profile == "cpu":
        assert written.sum() == len(set(numbers)) * size
    assert bench.findings() == []


@pytest.mark.parametrize("profile", PROFILES)
def test_indices_are_flat_and_the_last_element_wins(profile: str) -> None:
    """dst 2x16 float, src 1x16, all indices 1: element 1 of dst is written by the last source element."""
    bench = Bench(profile)
    dst = bench.tile("f32", 2, 16)
    src, idx = bench.tile("f32", 1, 16, [np.arange(16) + 1]), bench.tile("i32", 1, 16, [np.ones(16)])
    bench.issue("TSCATTER", dst, src, idx)
    result = bench.read(dst)
    assert result[0, 1] == 16
    assert np.count_nonzero(result) == 1
    assert bench.findings() == []


@pytest.mark.parametrize("profile", PROFILES)
def test_an_index_outside_dst_is_told_and_written_where_it_points(profile: str) -> None:
    bench = Bench(profile)
    dst, src = bench.tile("f32", 1, 8), bench.tile("f32", 1, 8, [np.full(8, 7)])
    bench.issue("TSCATTER", dst, src, bench.tile("u32", 1, 8, [[0, 1, 2, 3, 4, 5, 6, 9]]))
    assert bench.findings() == ["TSCATTER-1"]
    assert bench.memory().view(np.float32)[dst.address // 4 + 9] == 7
    assert bench.traced(Mode.WRITE)[dst.address + 36 : dst.address + 40].all()


def test_a_negative_index_keeps_its_sign_on_a2a3() -> None:
    bench = Bench("a2a3")
    bench.place(64)
    dst, src = bench.tile("f32", 1, 8), bench.tile("f32", 1, 8, [np.full(8, 7)], valid=(1, 1))
    bench.issue("TSCATTER", dst, src, bench.tile("i32", 1, 8, [[-2]], valid=(1, 1)))
    assert bench.memory().view(np.float32)[dst.address // 4 - 2] == 7
    assert bench.findings() == ["TSCATTER-1"]


def test_a2a3_loops_on_the_scalar_pipe() -> None:
    bench = Bench("a2a3")
    idx = bench.tile("u16", 1, 16, [np.arange(16)])
    bench.issue("TSCATTER", bench.tile("f16", 1, 16), bench.tile("f16", 1, 16), idx)
    pipes = [row["pipe"] for row in bench.trace().rows[1:] if row["n_access"] or row["kind"]]
    assert pipes == [Pipe.V, Pipe.V, Pipe.S, Pipe.S, Pipe.S, Pipe.V]
    assert (bench.core.state.counter_mode, bench.core.state.mask) == (False, ((1 << 64) - 1,) * 2)


def test_wide_elements_stop_at_64_columns_on_a5() -> None:
    bench = Bench("a5")
    dst, src = bench.tile("i64", 1, 128), bench.tile("i64", 1, 128, [np.arange(128) + 1])
    bench.issue("TSCATTER", dst, src, bench.tile("u32", 1, 128, [np.arange(128)]))
    assert bench.findings() == ["E-TSCATTER-64"]
    assert bench.read(dst)[0].tolist() == [*range(1, 65), *[0] * 64]


PATTERNS = {"P0101": (2, 0), "P1010": (2, 1), "P0001": (4, 0), "P0010": (4, 1), "P0100": (4, 2), "P1000": (4, 3)}


@pytest.mark.parametrize("profile", PROFILES)
@pytest.mark.parametrize("pattern", PATTERNS)
@pytest.mark.parametrize("axis", tuple(ScatterAxis))
@given(data=st.data())
@settings(max_examples=5, deadline=None)
def test_a_pattern_leaves_room(profile: str, pattern: str, axis: ScatterAxis, data: st.DataObject) -> None:
    bench = Bench(profile)
    period, place = PATTERNS[pattern]
    by_rows = axis is ScatterAxis.SCATTER_COL
    kind = data.draw(st.sampled_from(("f32", "f16", "i16") if profile == "cpu" or by_rows else TYPES))
    rows, cols = data.draw(st.integers(1, 3)), data.draw(st.integers(1, 32))
    shape = (rows * period, cols) if by_rows else (rows, cols * period)
    src = bench.tile(kind, rows, 32, np.arange(rows * cols).reshape(rows, cols) + 1, valid=(rows, cols))
    dst = bench.tile(kind, shape[0], 128, np.full((shape[0], 128), 9), valid=shape)
    bench.issue("TSCATTER", dst, src, MaskPattern[pattern], axis)
    expected = np.zeros(shape)
    expected[(np.s_[place::period], np.s_[:]) if by_rows else (np.s_[:], np.s_[place::period])] = bench.read(src)
    assert np.array_equal(bench.read(dst).astype(float), expected)
    assert (bench.read(dst, shape[0], 128)[:, shape[1] :] == (9 if profile == "cpu" else 0)).all()
    assert bench.findings() == []


@pytest.mark.parametrize("profile", PROFILES)
def test_the_full_pattern_is_a_move(profile: str) -> None:
    bench = Bench(profile)
    src, dst = bench.tile("f32", 2, 8, np.ones((2, 8))), bench.tile("f32", 2, 8)
    bench.issue("TSCATTER", dst, src)
    assert (bench.read(dst) == 1).all()
    assert bench.findings() == []


def test_rows_of_bytes_are_copied_twice_as_long_on_a2a3() -> None:
    bench = Bench("a2a3")
    src, dst = bench.tile("u8", 1, 32, [np.arange(32) + 1], valid=(1, 8)), bench.tile("u8", 2, 32, valid=(2, 8))
    bench.issue("TSCATTER", dst, src, MaskPattern.P0101, ScatterAxis.SCATTER_COL)
    assert bench.findings() == ["E-TSCATTER-8"]
    assert bench.read(dst, 2, 32)[0].tolist() == [*range(1, 17), *[0] * 16]


@pytest.mark.parametrize("profile", CHIPS)
def test_another_valid_shape_is_told_on_chips_and_refused_on_cpu(profile: str) -> None:
    bench = Bench(profile)
    src, dst = bench.tile("f32", 1, 8), bench.tile("f32", 1, 32)
    bench.issue("TSCATTER", dst, src, MaskPattern.P0101, 0)
    assert bench.findings() == ["TSCATTER-3"]
    bench = Bench("cpu")
    with pytest.raises(Refused, match="spread out"):
        bench.issue("TSCATTER", bench.tile("f32", 1, 32), bench.tile("f32", 1, 8), MaskPattern.P0101, 0)
