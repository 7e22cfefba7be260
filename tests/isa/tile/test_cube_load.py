"""TLOAD to L1: layouts, what fills boxes up, what chips take from the view and from the tile."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ascsim.diagnostics import Refused
from ascsim.isa.tile.transfer import DN, ND
from ascsim.isa.tile.transfer import NZ as NZ_VIEW
from ascsim.machine.dtypes import dtype
from ascsim.machine.operands import GlobalTensor
from ascsim.machine.trace import Mode
from ascsim.machine.words import BLayout, Pipe, SLayout, Space
from cube import NZ, ZN, read, tile
from harness import Bench

PROFILES = ("a2a3", "a5", "cpu")
BASE = 4096
PLAIN: dict[str, Any] = {"blayout": BLayout.ROW_MAJOR, "slayout": SLayout.NONE_BOX}
COLUMNS: dict[str, Any] = {"blayout": BLayout.COL_MAJOR, "slayout": SLayout.NONE_BOX}


def matrix(
    bench: Bench, kind: str, rows: int, cols: int, pitch: int, layout: int = ND
) -> tuple[GlobalTensor, np.ndarray]:
    """A matrix in global memory, its rows (ND) or columns (DN) ``pitch`` elements apart, and what it holds."""
    known = dtype(kind)
    data = np.random.default_rng(rows * cols).integers(1, 100, (rows, cols)).astype(known.numpy)
    lines = data if layout == ND else data.T
    held = (
        bench.memory(Space.GM)[BASE : BASE + len(lines) * pitch * known.size]
        .view(known.numpy)
        .reshape(len(lines), pitch)
    )
    held[:, : lines.shape[1]] = lines
    strides = (1, 1, 1, pitch, 1) if layout == ND else (1, 1, 1, 1, pitch)
    return GlobalTensor(known, BASE, (1, 1, 1, rows, cols), strides, layout), data


WAYS = [
    (profile, kind, layout, boxes)
    for profile in PROFILES
    for kind in ("i8", "f16", "f32")
    for layout, boxes in ((ND, NZ), (DN, ZN), (DN, NZ), (ND, ZN))
    if (layout, boxes) in ((ND, NZ), (DN, ZN)) or profile == "cpu" or (profile == "a5" and boxes is NZ)
]


@pytest.mark.parametrize(("profile", "kind", "layout", "boxes"), WAYS)
def test_a_matrix_is_put_in_boxes(profile: str, kind: str, layout: int, boxes: dict[str, Any]) -> None:
    bench = Bench(profile)
    seen, data = matrix(bench, kind, 21, 37, 48, layout)
    held = tile(bench, Space.L1, kind, 32, 64, np.full((32, 64), 7), (21, 37), **boxes)
    bench.issue("tload", held, seen)
    assert bench.findings() == []
    assert np.array_equal(read(bench, held), data)
    width = 32 // dtype(kind).size
    everything = read(bench, held, 32, 64)
    if boxes is NZ:
        filled = -(-37 // width) * width
        assert not everything[:21, 37:filled].any()
        assert (everything[21:] == 7).all() and (everything[:, filled:] == 7).all()
    else:
        filled = -(-21 // width) * width
        assert not everything[21:filled, :37].any()
        assert (everything[filled:] == 7).all() and (everything[:, 37:] == 7).all()
    row = bench.trace().rows[0]
    assert row["pipe"] == Pipe.MTE2
    assert bench.traced(Mode.READ, Space.GM).sum() == data.nbytes


@given(rows=st.integers(1, 40), cols=st.integers(1, 70), profile=st.sampled_from(PROFILES))
@settings(deadline=None, max_examples=25)
def test_the_trace_has_the_bytes_that_change(rows: int, cols: int, profile: str) -> None:
    bench = Bench(profile)
    seen, _ = matrix(bench, "f16", rows, cols, cols)
    before = bench.memory(Space.L1)
    before[:] = 255
    bench.issue("tload", tile(bench, Space.L1, "f16", 48, 80, valid=(rows, cols), at=512), seen)
    changed = bench.memory(Space.L1) != 255
    assert not (changed & ~bench.traced(Mode.WRITE, Space.L1)).any()
    assert bench.traced(Mode.WRITE, Space.L1).sum() == rows * -(-cols // 16) * 32


@pytest.mark.parametrize("profile", PROFILES)
@pytest.mark.parametrize(("layout", "plain"), [(ND, PLAIN), (DN, COLUMNS)])
def test_what_needs_no_boxes_is_copied_as_it_lies(profile: str, layout: int, plain: dict[str, Any]) -> None:
    bench = Bench(profile)
    seen, data = matrix(bench, "f32", 24, 16, 40, layout)
    held = tile(bench, Space.L1, "f32", 24, 32, valid=(24, 16), **plain)
    bench.issue("tload", held, seen)
    assert bench.findings() == []
    assert np.array_equal(read(bench, held), data)


@pytest.mark.parametrize(("profile", "fills"), [("a2a3", True), ("a5", True), ("cpu", False)])
def test_a_single_row_is_filled_up_to_a_block(profile: str, fills: bool) -> None:
    bench = Bench(profile)
    seen, data = matrix(bench, "f32", 1, 19, 19)
    held = tile(bench, Space.L1, "f32", 1, 32, np.full((1, 32), 7), (1, 19), **PLAIN)
    bench.issue("tload", held, seen)
    assert np.array_equal(read(bench, held), data)
    assert (read(bench, held, 1, 32)[0, 19:24] == (0 if fills else 7)).all()
    assert (read(bench, held, 1, 32)[0, 24:] == 7).all()


def test_a2a3_copy_whole_blocks_of_lines() -> None:
    bench = Bench("a2a3")
    seen, data = matrix(bench, "f32", 3, 19, 19)
    held = tile(bench, Space.L1, "f32", 3, 32, np.full((3, 32), 7), (3, 19), **PLAIN)
    bench.issue("tload", held, seen)
    assert bench.findings() == ["TLOAD-8"]
    assert (read(bench, held, 3, 32)[:, 16:] == 7).all()
    assert np.array_equal(read(bench, held, 1, 16), data[:1, :16])


@pytest.mark.parametrize("profile", PROFILES)
def test_boxes_are_copied_as_they_lie(profile: str) -> None:
    bench = Bench(profile)
    data = np.random.default_rng(3).integers(0, 99, (2, 48, 16)).astype(np.float16)
    bench.memory(Space.GM)[BASE : BASE + data.nbytes] = data.view(np.uint8).reshape(-1)
    seen = GlobalTensor(dtype("f16"), BASE, (1, 2, 3, 16, 16), (1, 768, 256, 16, 1), NZ_VIEW)
    held = tile(bench, Space.L1, "f16", 64, 48, valid=(48, 32))
    bench.issue("tload", held, seen)
    assert np.array_equal(read(bench, held), data.transpose(1, 0, 2).reshape(48, 32))


def test_a2a3_lose_the_upper_bits_of_a_long_distance() -> None:
    bench = Bench("a2a3")
    seen = GlobalTensor(dtype("f16"), BASE, (1, 1, 1, 2, 16), (1, 1, 1, (1 << 16) + 32, 1), ND)
    held = tile(bench, Space.L1, "f16", 16, 16, valid=(2, 16))
    bench.issue("tload", held, seen)
    assert bench.findings() == ["TLOAD-6"]
    assert np.flatnonzero(bench.traced(Mode.READ, Space.GM)).max() == BASE + 64 + 31


@pytest.mark.parametrize(("profile", "rows", "cols"), [("a2a3", 5, 20), ("a5", 5, 9)])
def test_how_much_is_copied_is_the_views_business(profile: str, rows: int, cols: int) -> None:
    bench = Bench(profile)
    seen, data = matrix(bench, "f16", 5, 20, 20)
    held = tile(bench, Space.L1, "f16", 16, 32, np.full((16, 32), 7), (8, 9))
    bench.issue("tload", held, seen)
    assert bench.findings() == ["TLOAD-5"]
    assert np.array_equal(read(bench, held, rows, cols), data[:rows, :cols])
    assert (read(bench, held, 16, 32)[5:] == 7).all()


def test_strides_along_lines_are_seen_portably_and_not_by_chips() -> None:
    for profile, step in (("cpu", 3), ("a5", 1)):
        bench = Bench(profile)
        numbers = np.arange(64, dtype=np.float16)
        bench.memory(Space.GM)[BASE : BASE + 128] = numbers.view(np.uint8)
        seen = GlobalTensor(dtype("f16"), BASE, (1, 1, 1, 1, 16), (1, 1, 1, 64, 3), ND)
        held = tile(bench, Space.L1, "f16", 16, 16, valid=(1, 16))
        bench.issue("tload", held, seen)
        assert bench.findings() == ([] if profile == "cpu" else ["TLOAD-7"])
        assert np.array_equal(read(bench, held)[0], numbers[: 16 * step : step])


def test_a2a3_turn_no_columns_into_nz() -> None:
    bench = Bench("a2a3")
    seen, _ = matrix(bench, "f16", 16, 16, 16, DN)
    with pytest.raises(Refused, match="loads DN to NZ"):
        bench.issue("tload", tile(bench, Space.L1, "f16", 16, 16), seen)


def test_a_bias_goes_to_bt_portably() -> None:
    bench = Bench("cpu")
    seen, data = matrix(bench, "f32", 1, 19, 19)
    held = tile(bench, Space.BT, "f32", 1, 32, valid=(1, 19))
    bench.issue("tload", held, seen)
    assert np.array_equal(read(bench, held), data)
    with pytest.raises(Refused, match="dst lies in BT, which is not implemented"):
        other = Bench("a5")
        other.issue("tload", tile(other, Space.BT, "f32", 1, 32, valid=(1, 19)), matrix(other, "f32", 1, 19, 19)[0])
