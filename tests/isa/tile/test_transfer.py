"""TLOAD, TSTORE, TMOV: shapes, strides, layouts, what fills a line up, sums."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ascsim.diagnostics import Refused
from ascsim.isa.tile.transfer import DN, ND, NZ, AtomicType, STPhase, pad_bits
from ascsim.machine.dtypes import dtype
from ascsim.machine.operands import CUSTOM_PAD, GlobalTensor, Tile
from ascsim.machine.trace import Mode
from ascsim.machine.words import BLayout, PadValue, Pipe, SLayout, Space
from harness import Bench

PROFILES = ("a2a3", "a5", "cpu")
CHIPS = ("a2a3", "a5")
PLAIN = ("i8", "u8", "i16", "u16", "i32", "u32", "i64", "u64", "f16", "bf16", "f32")
BASE = 4096


def noisy(profile: str, seed: int = 0) -> Bench:
    bench = Bench(profile)
    for number, space in enumerate((Space.UB, Space.GM)):
        data = bench.memory(space)
        data[:] = np.random.default_rng((seed, number)).integers(0, 256, data.size, np.uint8)
    return bench


def view(kind: str, shape: tuple, strides: tuple, layout: int = ND, at: int = BASE) -> GlobalTensor:
    return GlobalTensor(dtype(kind), at, shape, strides, layout)


def raw(bench: Bench, tile: Tile, rows: int | None = None, cols: int | None = None) -> np.ndarray:
    bits = bench.core.view(tile.region(rows, cols, np.dtype(f"u{tile.dtype.size}")))
    return bits.copy().reshape(bits.shape[:2])


def elements(bench: Bench, seen: GlobalTensor) -> np.ndarray:
    """A copy of what a view sees (five dimensions, raw bits), element by element."""
    size = seen.dtype.size
    data = bench.memory(Space.GM)
    found = np.zeros(seen.shape, f"u{size}")
    for place in np.ndindex(*seen.shape):
        at = seen.address + size * sum(i * s for i, s in zip(place, seen.strides, strict=True))
        found[place] = data[at : at + size].view(f"u{size}")[0]
    return found


def dense(shape: tuple[int, ...], gap: int = 0) -> tuple[int, ...]:
    strides, step = [], 1
    for count in reversed(shape):
        strides.append(step)
        step = step * count + gap
    return tuple(reversed(strides))


# TLOAD


@pytest.mark.parametrize("profile", PROFILES)
def test_load_by_hand(profile: str) -> None:
    bench = Bench(profile)
    bench.memory(Space.GM)[BASE : BASE + 400].view(np.float32)[:] = np.arange(100)
    tile = bench.tile("f32", 2, 8, valid=(2, 3))
    bench.issue("TLOAD", tile, view("f32", (1, 1, 1, 2, 3), (0, 0, 0, 10, 1)))
    assert bench.read(tile).tolist() == [[0, 1, 2], [10, 11, 12]]
    row = bench.trace().rows[0]
    assert (row["pipe"], bench.findings()) == (Pipe.MTE2, [])


@pytest.mark.parametrize("profile", PROFILES)
@pytest.mark.parametrize("kind", PLAIN)
@given(data=st.data())
@settings(max_examples=8, deadline=None)
def test_load_and_store_any_view(profile: str, kind: str, data: st.DataObject) -> None:
    """All five dimensions with gaps; the tile's padding aside, nothing else changes, in ND and DN."""
    bench = noisy(profile, data.draw(st.integers(0, 99)))
    by_rows = data.draw(st.booleans())
    shape = tuple(data.draw(st.lists(st.integers(1, 3), min_size=5, max_size=5)))
    outer = (0, 1, 2, 3) if by_rows else (0, 1, 2, 4)
    inner = 4 if by_rows else 3
    gap = data.draw(st.integers(0, 3))
    if by_rows:
        strides = dense(shape, gap)
    else:  # columns of the view are contiguous
        down = dense((*shape[:3], shape[4], shape[3]), gap)
        strides = (*down[:3], 1, down[3])
    lines, length = int(np.prod([shape[a] for a in outer])), shape[inner]
    layout = BLayout.ROW_MAJOR if by_rows else BLayout.COL_MAJOR
    size = (lines, 32) if by_rows else (32, lines)
    valid = (lines, length) if by_rows else (length, lines)
    tile = bench.tile(kind, *size, valid=valid, blayout=layout)
    seen = view(kind, shape, strides, ND if by_rows else DN)
    want = elements(bench, seen).transpose(*outer, inner).reshape(lines, length)
    before = {s: bench.memory(s).copy() for s in (Space.UB, Space.GM)}
    bench.issue("TLOAD", tile, seen)
    got = raw(bench, tile)
    assert np.array_equal(got if by_rows else got.T, want)
    written = bench.traced(Mode.WRITE)
    assert np.array_equal(bench.memory()[~written], before[Space.UB][~written])
    assert np.array_equal(bench.memory(Space.GM), before[Space.GM])
    unit = 32 if profile != "cpu" else 1
    nbytes = -(-length * tile.dtype.size // unit) * unit
    assert written.sum() == lines * nbytes

    other = replace(seen, address=BASE + 65536)
    bench.issue("TSTORE", other, tile)
    back = elements(bench, other).transpose(*outer, inner).reshape(lines, length)
    assert np.array_equal(back, want)
    stored = bench.traced(Mode.WRITE, Space.GM)
    assert stored.sum() == lines * length * tile.dtype.size
    assert np.array_equal(bench.memory(Space.GM)[~stored], before[Space.GM][~stored])
    assert bench.findings() == []


PADS = [
    ("f32", PadValue.ZERO, 0), ("f32", PadValue.MAX, 0x7F800000), ("f32", PadValue.MIN, 0xFF800000),
    ("f16", PadValue.MIN, 0xFC00), ("bf16", PadValue.MAX, 0x7F80), ("i32", PadValue.MAX, 0x7FFFFFFF),
    ("i32", PadValue.MIN, 0x80000000), ("u16", PadValue.MAX, 0xFFFF), ("u16", PadValue.MIN, 0),
    ("i8", PadValue.MIN, 0x80), ("f32", CUSTOM_PAD + 0xBF800000, 0xBF800000), ("u8", CUSTOM_PAD + 0x7F, 0x7F),
    ("i64", PadValue.ZERO, 0),
]  # fmt: skip


@pytest.mark.parametrize("profile", PROFILES)
@pytest.mark.parametrize(("kind", "pad", "bits"), PADS)
def test_a_pad_value_fills_each_line_up_to_a_block(profile: str, kind: str, pad: int, bits: int) -> None:
    bench = noisy(profile)
    tile = bench.tile(kind, 2, 64, valid=(2, 3), pad=pad)
    before = raw(bench, tile, 2, 64)
    seen = view(kind, (1, 1, 1, 2, 3), (0, 0, 0, 7, 1))
    bench.issue("TLOAD", tile, seen)
    got, block = raw(bench, tile, 2, 64), 32 // tile.dtype.size
    block = -(-3 // block) * block
    assert np.array_equal(got[:, :3], elements(bench, seen)[0, 0, 0])
    assert (got[:, 3:block] == bits).all()
    assert np.array_equal(got[:, block:], before[:, block:])
    assert pad_bits(tile) == bits


def test_without_a_pad_value_chips_fill_with_the_first_element_and_cpu_does_not() -> None:
    for profile in PROFILES:
        bench = noisy(profile)
        tile = bench.tile("i16", 2, 32, valid=(2, 3))
        before = raw(bench, tile, 2, 32)
        bench.issue("TLOAD", tile, view("i16", (1, 1, 1, 2, 3), (0, 0, 0, 3, 1)))
        got = raw(bench, tile, 2, 32)
        for row in range(2):
            want = before[row, 3:16] if profile == "cpu" else np.full(13, got[row, 0])
            assert np.array_equal(got[row, 3:16], want)
        assert np.array_equal(got[:, 16:], before[:, 16:])


def test_columns_are_filled_up_too() -> None:
    bench = noisy("a5")
    tile = bench.tile("f32", 16, 2, valid=(5, 2), blayout=BLayout.COL_MAJOR, pad=PadValue.MAX)
    bench.issue("TLOAD", tile, view("f32", (1, 1, 1, 5, 2), (0, 0, 0, 1, 9), DN))
    got = raw(bench, tile, 16, 2)
    assert (got[5:8] == 0x7F800000).all() and not (got[8:] == 0x7F800000).any()


@pytest.mark.parametrize("profile", CHIPS)
def test_the_stride_along_a_line_is_never_looked_at(profile: str) -> None:
    bench = noisy(profile)
    tile = bench.tile("i32", 1, 8)
    strided = view("i32", (1, 1, 1, 1, 8), (0, 0, 0, 0, 2))
    bench.issue("TLOAD", tile, strided)
    assert np.array_equal(raw(bench, tile)[0], elements(bench, replace(strided, strides=(0, 0, 0, 0, 1))).ravel())
    bench.issue("TSTORE", replace(strided, address=BASE + 8192), tile)
    assert bench.findings() == ["TLOAD-1", "TSTORE-1"]


def test_cpu_honours_the_stride_along_a_line() -> None:
    bench = noisy("cpu")
    tile = bench.tile("i32", 2, 8, valid=(2, 5))
    strided = view("i32", (1, 1, 1, 2, 5), (0, 0, 0, 20, 3))
    bench.issue("TLOAD", tile, strided)
    assert np.array_equal(raw(bench, tile), elements(bench, strided)[0, 0, 0])
    bench.issue("TSTORE", replace(strided, address=BASE + 8192), tile)
    assert np.array_equal(raw(bench, tile), elements(bench, replace(strided, address=BASE + 8192))[0, 0, 0])
    assert bench.findings() == []


@pytest.mark.parametrize("profile", PROFILES)
def test_elements_of_one_size_and_another_type_keep_their_bits(profile: str) -> None:
    bench = noisy(profile)
    tile = bench.tile("f32", 1, 8)
    bench.issue("TLOAD", tile, view("u32", (1, 1, 1, 1, 8), (0, 0, 0, 8, 1)))
    assert np.array_equal(raw(bench, tile)[0], elements(bench, view("u32", (1, 1, 1, 1, 8), (0, 0, 0, 8, 1))).ravel())
    with pytest.raises(Refused, match=r"elements of dst \(f32\) have 4 bytes, those of src \(f16\) 2"):
        bench.issue("TLOAD", tile, view("f16", (1, 1, 1, 1, 8), (0, 0, 0, 8, 1)))


# TSTORE


@pytest.mark.parametrize("profile", PROFILES)
@pytest.mark.parametrize("kind", ("f32", "f16", "bf16", "i32", "i16", "i8"))
def test_atomic_add(profile: str, kind: str) -> None:
    bench = Bench(profile)
    size = dtype(kind).size
    held = bench.memory(Space.GM)[BASE : BASE + 32 * size].view(dtype(kind).numpy)
    held[:] = np.arange(32).astype(held.dtype)
    tile = bench.tile(kind, 1, 32, [[100] * 32])
    seen = view(kind, (1, 1, 1, 1, 32), (0, 0, 0, 32, 1))
    bench.issue("TSTORE", seen, tile, AtomicType.AtomicAdd)
    want = (100 + np.arange(32)).astype(np.int64)
    if kind == "i8":
        want = want.astype(np.int8).astype(np.int64)
    assert np.array_equal(held.astype(np.float64), want.astype(held.dtype).astype(np.float64))
    modes = sorted(bench.accesses()["mode"][bench.accesses()["space"] == Space.GM].tolist())
    assert modes == [Mode.READ, Mode.WRITE]
    bench.issue("TSTORE", seen, tile, AtomicType.AtomicNone, STPhase.Final)
    assert (held.astype(np.float64) == 100).all()


@pytest.mark.parametrize("profile", PROFILES)
@pytest.mark.parametrize("kind", ("u32", "u8", "i64"))
def test_atomic_add_refuses_other_types(profile: str, kind: str) -> None:
    bench = Bench(profile)
    tile = bench.tile(kind, 1, 32)
    with pytest.raises(Refused, match="AtomicAdd does not take"):
        bench.issue("TSTORE", view(kind, (1, 1, 1, 1, 32), (0, 0, 0, 32, 1)), tile, AtomicType.AtomicAdd)


@pytest.mark.parametrize("profile", PROFILES)
def test_a_tile_of_one_row_is_stored_to_a_view_of_the_other_layout(profile: str) -> None:
    bench = Bench(profile)
    tile = bench.tile("f32", 1, 8, [np.arange(8)])
    seen = view("f32", (1, 1, 1, 1, 8), (0, 0, 0, 8, 1), DN)
    bench.issue("TSTORE", seen, tile)
    assert bench.memory(Space.GM)[BASE : BASE + 32].view(np.float32).tolist() == list(range(8))
    with pytest.raises(Refused, match="dst is ND, but src is DN"):
        bench.issue("TLOAD", tile, seen)


def test_the_portable_store_writes_the_valid_region_alone() -> None:
    """TSTORE's page: the valid region is what is transferred; the view may be larger."""
    bench = noisy("cpu")
    before = bench.memory(Space.GM).copy()
    tile = bench.tile("i32", 4, 8, np.arange(4 * 3), valid=(4, 3))
    seen = view("i32", (3, 1, 2, 2, 5), (40, 40, 20, 8, 1))
    bench.issue("TSTORE", seen, tile)
    got = elements(bench, seen).view(np.int32)
    assert np.array_equal(got[0, 0, :, :, :3].reshape(4, 3), np.arange(12).reshape(4, 3))
    before[BASE:][bench.traced(Mode.WRITE, Space.GM)[BASE:]] = 0
    after = bench.memory(Space.GM).copy()
    after[bench.traced(Mode.WRITE, Space.GM)] = 0
    assert np.array_equal(after, before)
    assert bench.traced(Mode.WRITE, Space.GM).sum() == 4 * 3 * 4
    columns = bench.tile("i32", 8, 2, valid=(3, 2), blayout=BLayout.COL_MAJOR)
    bench.core.view(columns.region(3, 2))[..., 0] = np.arange(6).reshape(3, 2)
    bench.issue("TSTORE", view("i32", (1, 1, 2, 5, 2), (40, 40, 20, 1, 5), DN), columns)
    got = bench.memory(Space.GM)[BASE : BASE + 40].view(np.int32)
    assert (got[:3].tolist(), got[5:8].tolist()) == ([0, 2, 4], [1, 3, 5])


@pytest.mark.parametrize(
    ("valid", "shape", "code"),
    [((3, 8), (1, 2, 1, 2, 8), "L012"), ((4, 8), (1, 1, 1, 3, 8), "L007"), ((4, 8), (1, 1, 1, 4, 7), "L007")],
)
def test_what_the_portable_store_cannot_hold(valid: tuple, shape: tuple, code: str) -> None:
    bench = Bench("cpu")
    with pytest.raises(Refused) as caught:
        bench.issue("TSTORE", view("i32", shape, dense(shape)), bench.tile("i32", 4, 8, valid=valid))
    assert caught.value.diagnostic.code == code


@pytest.mark.parametrize("profile", PROFILES)
def test_lines_that_overlap_are_stored_one_after_the_other(profile: str) -> None:
    bench = Bench(profile)
    tile = bench.tile("i32", 3, 8, np.arange(24), valid=(3, 8))
    bench.issue("TSTORE", view("i32", (1, 1, 1, 3, 8), (0, 0, 0, 2, 1)), tile)
    got = bench.memory(Space.GM)[BASE : BASE + 48].view(np.int32)
    assert got.tolist() == [0, 1, 8, 9, *range(16, 24)]
    bench.issue("TSTORE", view("i32", (1, 1, 1, 3, 8), (0, 0, 0, 0, 1)), tile)
    assert got[:8].tolist() == list(range(16, 24))


# Elements of 4 bits


@pytest.mark.parametrize("profile", ["a5", "cpu"])
@pytest.mark.parametrize("pad", [PadValue.NULL, PadValue.MAX])
def test_pairs_of_4_bit_elements_are_moved_as_bytes(profile: str, pad: PadValue) -> None:
    bench = noisy(profile)
    tile = bench.tile("f4e2m1x2", 2, 128, valid=(2, 64), pad=pad)
    seen = view("f4e2m1x2", (1, 1, 1, 2, 64), (0, 0, 0, 80, 1))
    given = np.stack([bench.memory(Space.GM)[BASE + at : BASE + at + 32] for at in (0, 40)])
    bench.issue("TLOAD", tile, seen)
    lines = bench.memory()[tile.address : tile.address + 128].reshape(2, 64)[:, :32]
    assert np.array_equal(lines, given)
    back = view("f4e2m1x2", (1, 1, 1, 2, 64), (0, 0, 0, 64, 1), at=2 * BASE)
    bench.issue("TSTORE", back, tile)
    assert np.array_equal(bench.memory(Space.GM)[2 * BASE : 2 * BASE + 64].reshape(2, 32), given)
    assert bench.traced(Mode.WRITE, Space.GM).sum() == 64


def test_the_a5_rounds_half_bytes_up() -> None:
    bench = noisy("a5")
    tile = bench.tile("f4e1m2x2", 2, 64, valid=(2, 5))
    bench.issue("TSTORE", view("f4e1m2x2", (1, 1, 1, 2, 5), (0, 0, 0, 7, 1)), tile)
    stored = bench.memory(Space.GM)[BASE : BASE + 7]
    lines = bench.memory()[tile.address : tile.address + 64].reshape(2, 32)
    assert np.array_equal(stored[:3], lines[0, :3]) and np.array_equal(stored[4:], lines[1, :3])


def test_columns_of_4_bit_elements() -> None:
    bench = noisy("cpu")
    tile = bench.tile("f4e1m2x2", 64, 3, valid=(4, 3), blayout=BLayout.COL_MAJOR)
    seen = view("f4e1m2x2", (1, 1, 1, 4, 3), (0, 0, 0, 1, 6), DN)
    bench.issue("TLOAD", tile, seen)
    got = bench.memory()[tile.address : tile.address + 96].reshape(3, 32)[:, :2]
    assert np.array_equal(got, np.stack([bench.memory(Space.GM)[BASE + 3 * n : BASE + 3 * n + 2] for n in range(3)]))
    with pytest.raises(Refused, match="no whole bytes"):
        bench.issue("TLOAD", replace(tile, valid_rows=3), view("f4e1m2x2", (1, 1, 1, 3, 3), (0, 0, 0, 1, 6), DN))


# What is empty


@pytest.mark.parametrize("profile", PROFILES)
@pytest.mark.parametrize(("rows", "cols"), [(0, 8), (2, 0)])
def test_nothing_is_copied_of_what_is_empty(profile: str, rows: int, cols: int) -> None:
    bench = noisy(profile)
    held = replace(bench.tile("f32", 2, 8), valid_rows=rows, valid_cols=cols)
    seen = view("f32", (1, 1, 1, rows, cols), (0, 0, 0, 8, 1))
    before = [bench.memory(space).copy() for space in (Space.UB, Space.GM)]
    for name, args in (("TLOAD", (held, seen)), ("TSTORE", (seen, held))):
        if profile == "cpu":
            with pytest.raises(Refused, match=f"{rows} rows by {cols} columns"):
                bench.issue(name, *args)
        else:
            bench.issue(name, *args)
    assert bench.findings() == (["TLOAD-3", "TSTORE-3"] if profile == "a2a3" else [])
    assert all(np.array_equal(b, bench.memory(s)) for b, s in zip(before, (Space.UB, Space.GM), strict=True))


# What both refuse


@pytest.mark.parametrize("profile", PROFILES)
@pytest.mark.parametrize(
    ("shape", "layout", "tile", "code", "said"),
    [
        ((1, 1, 1, 2, 8), DN, {}, "L004", "{view} is DN"),
        ((1, 1, 1, 2, 8), NZ, {}, "L004", "{view} is NZ"),
        ((1, 1, 1, 2, 8), NZ + 1, {}, "L012", "layouts other than ND, DN and NZ"),
        ((1, 1, 1, 2, 8), ND, {"space": Space.L0A}, "L012", "lies in L0A"),
        ((1, 1, 1, 2, 8), ND, {"valid_cols": 9}, "L013", "is 2x8 with 2x9 valid"),
    ],
)
def test_what_does_not_fit_is_refused(
    profile: str, shape: tuple, layout: int, tile: dict[str, Any], code: str, said: str
) -> None:
    bench = Bench(profile)
    held = replace(bench.tile("f32", 2, 8), **tile)
    seen = view("f32", shape, (0, 0, 0, 8, 1), layout)
    for name, args, roles in (
        ("TLOAD", (held, seen), {"tile": "dst", "view": "src"}),
        ("TSTORE", (seen, held), {"tile": "src", "view": "dst"}),
    ):
        with pytest.raises(Refused) as refusal:
            bench.issue(name, *args)
        assert refusal.value.diagnostic.code == code
        assert said.format(**roles) in refusal.value.diagnostic.headline
    assert bench.trace().rows.size == 0


@pytest.mark.parametrize(
    ("shape", "said"),
    [((1, 1, 1, 3, 8), "3 rows by 8 columns; dst has 2x8 valid"), ((1, 2, 1, 2, 8), "has shape 1x2x1x2x8")],
)
def test_portable_semantics_refuse_another_shape(shape: tuple, said: str) -> None:
    bench = Bench("cpu")
    with pytest.raises(Refused) as refusal:
        bench.issue("TLOAD", bench.tile("f32", 2, 8), view("f32", shape, (0, 0, 0, 8, 1)))
    assert refusal.value.diagnostic.code == "L007"
    assert said in refusal.value.diagnostic.headline


@pytest.mark.parametrize(("profile", "step"), [("a2a3", 13 + 3), ("a5", 13)])
def test_chips_copy_the_views_lines_as_long_as_the_tiles(profile: str, step: int) -> None:
    """A view of 3 by 13 into a tile of 2 by 16: three lines of 16, on A2/A3 with the gap of the view behind them."""
    bench = Bench(profile)
    values = np.arange(64, dtype=np.int32)
    bench.memory(Space.GM)[BASE : BASE + values.nbytes] = values.view(np.uint8)
    tile = bench.tile("i32", 4, 16, valid=(2, 16))
    seen = view("i32", (1, 1, 1, 3, 13), (0, 0, 0, 13, 1))
    bench.issue("TLOAD", tile, seen)
    loaded = bench.read(tile, 3, 16)
    assert loaded.tolist() == [list(range(row * step, row * step + 16)) for row in range(3)]
    assert bench.findings() == ["TLOAD-2"]
    bench.memory(Space.GM)[:] = 0
    bench.issue("TSTORE", seen, tile)
    stored = bench.memory(Space.GM)[BASE : BASE + 4 * (2 * step + 16)].view(np.int32)
    assert stored[2 * step :].tolist() == loaded[2].tolist()
    assert bench.findings() == ["TLOAD-2", "TSTORE-2"]


def test_one_copy_of_the_a2a3_moves_at_most_4095_lines() -> None:
    bench = Bench("a2a3")
    tile = Tile(dtype("u8"), 4096, 32, 4096, 32, 0)
    with pytest.raises(Refused, match="4095") as refusal:
        bench.issue("TLOAD", tile, view("u8", (1, 1, 1, 4096, 32), (0, 0, 0, 32, 1)))
    assert refusal.value.diagnostic.code == "L006"
    with pytest.raises(Refused, match="dst has 4096 rows"):
        bench.issue("TLOAD", tile, view("u8", (1, 1, 2, 2048, 32), (0, 0, 65536, 32, 1)))


def test_the_a5_is_warned_of_more_and_moves_them() -> None:
    bench = Bench("a5")
    tile = Tile(dtype("u8"), 4096, 32, 4096, 32, 0)
    bench.memory(Space.GM)[: 4096 * 32] = np.random.default_rng(3).integers(0, 256, 4096 * 32, np.uint8)
    bench.issue("TLOAD", tile, view("u8", (1, 1, 2, 2048, 32), (0, 0, 65536, 32, 1)))
    assert bench.findings() == []
    bench.issue("TLOAD", tile, view("u8", (1, 1, 1, 4096, 32), (0, 0, 0, 32, 1)))
    assert bench.findings() == ["TLOAD-4"]
    assert np.array_equal(bench.memory()[: 4096 * 32], bench.memory(Space.GM)[BASE : BASE + 4096 * 32])


def test_the_a5_pads_64_bits_with_zero_alone() -> None:
    bench = Bench("a5")
    tile = bench.tile("i64", 1, 8, valid=(1, 3), pad=PadValue.MAX)
    with pytest.raises(Refused, match="padded with zero only"):
        bench.issue("TLOAD", tile, view("i64", (1, 1, 1, 1, 3), (0, 0, 0, 3, 1)))


# TMOV


@pytest.mark.parametrize("profile", PROFILES)
@pytest.mark.parametrize("kind", ("f32", "f16", "i8"))
@given(data=st.data())
@settings(max_examples=15, deadline=None)
def test_move(profile: str, kind: str, data: st.DataObject) -> None:
    bench = noisy(profile, data.draw(st.integers(0, 99)))
    rows, cols = data.draw(st.integers(0, 3)), data.draw(st.integers(0, 64))
    src, dst = (bench.tile(kind, 3, 64, valid=(rows, cols)) for _ in range(2))
    want, before = raw(bench, src, 3, 64), bench.memory().copy()
    bench.issue("TMOV", dst, src)
    unit = 32 // dst.dtype.size if profile == "a2a3" else 1
    wide = -(-cols // unit) * unit
    assert np.array_equal(raw(bench, dst, rows, wide), want[:rows, :wide])
    written = bench.traced(Mode.WRITE)
    assert written.sum() == rows * wide * dst.dtype.size
    assert np.array_equal(bench.memory()[~written], before[~written])
    assert bench.findings() == []


def test_move_of_other_shapes() -> None:
    for profile in PROFILES:
        bench = noisy(profile)
        src = bench.tile("f32", 4, 16, valid=(2, 16))
        dst = bench.tile("f32", 4, 16, valid=(4, 9))
        if profile == "cpu":
            with pytest.raises(Refused, match="valid region of src is 2x16"):
                bench.issue("TMOV", dst, src)
            continue
        bench.issue("TMOV", dst, src)
        assert np.array_equal(raw(bench, dst, 2, 9), raw(bench, src, 2, 9))
        assert bench.findings() == ["TMOV-1"]
        wider = bench.tile("f32", 4, 32, valid=(2, 16))
        if profile == "a2a3":
            with pytest.raises(Refused, match="dst is 4x32 and src 4x16"):
                bench.issue("TMOV", wider, src)
        else:
            bench.issue("TMOV", wider, src)
            assert np.array_equal(raw(bench, wider), raw(bench, src))


@pytest.mark.parametrize("profile", PROFILES)
def test_moves_out_of_ub_are_not_done_yet(profile: str) -> None:
    bench = Bench(profile)
    tile = bench.tile("f32", 8, 8)
    for other in (replace(tile, space=Space.L1), replace(tile, blayout=BLayout.COL_MAJOR)):
        with pytest.raises(Refused) as refusal:
            bench.issue("TMOV", other, tile)
        assert refusal.value.diagnostic.code == "L012"


NZ_TILE: dict[str, Any] = {"blayout": BLayout.COL_MAJOR, "slayout": SLayout.ROW_MAJOR}


@pytest.mark.parametrize("profile", ("a2a3", "a5", "cpu"))
@pytest.mark.parametrize("kind", ("f32", "f16", "i8"))
@given(data=st.data())
@settings(max_examples=10, deadline=None)
def test_boxes_are_moved_as_they_are(profile: str, kind: str, data: st.DataObject) -> None:
    bench = Bench(profile)
    size = dtype(kind).size
    width = 32 // size
    outer, inner, down = (data.draw(st.integers(1, 3)) for _ in range(3))
    rows, cols = 16 * down, outer * inner * width
    gap = 16 * data.draw(st.integers(0, 2)) * width  # between columns of boxes
    pitch = rows * width + gap
    strides = (inner * pitch, pitch, 16 * width, width, 1)
    shape = (outer, inner, down, 16, width)
    tile = bench.tile(kind, rows + 16 * data.draw(st.integers(0, 1)), cols, valid=(rows, cols), **NZ_TILE)
    seen = GlobalTensor(dtype(kind), 4096, shape, strides, NZ)
    bits = np.dtype(f"u{size}")
    gm = bench.core.view(seen.region()._replace(dtype=bits))
    gm[...] = np.random.default_rng(3).integers(0, 256, gm.size).reshape(gm.shape)
    bench.issue("TLOAD", tile, seen)
    held = bench.core.view(tile.region(None, None, bits)).transpose(2, 0, 1, 3, 4).reshape(outer, inner, rows, width)
    assert np.array_equal(held.ravel(), gm.ravel())
    there = replace(seen, address=200_000)
    bench.issue("TSTORE", there, tile)
    assert np.array_equal(bench.core.view(there.region()._replace(dtype=bits)), gm)
    assert bench.findings() == []
    assert bench.traced(Mode.WRITE, Space.GM).sum() == rows * cols * size


@pytest.mark.parametrize("profile", ("a2a3", "a5"))
def test_columns_of_boxes_with_gaps_inside_are_told(profile: str) -> None:
    bench = Bench(profile)
    tile = bench.tile("f32", 32, 8, **NZ_TILE)
    bench.issue("TLOAD", tile, GlobalTensor(dtype("f32"), 0, (1, 1, 2, 16, 8), (512, 512, 256, 8, 1), NZ))
    assert bench.findings() == ["TLOAD-1"]
    with pytest.raises(Refused, match="boxes of 16x4"):
        bench.issue("TLOAD", tile, GlobalTensor(dtype("f32"), 0, (1, 2, 2, 16, 4), (0, 256, 64, 4, 1), NZ))
    with pytest.raises(Refused, match="64-bit"):
        wide = bench.tile("i64", 16, 4, **NZ_TILE)
        bench.issue("TLOAD", wide, GlobalTensor(dtype("i64"), 0, (1, 1, 1, 16, 4), (64, 64, 64, 4, 1), NZ))


@pytest.mark.parametrize("profile", PROFILES)
def test_rows_of_126_floats_with_a_pitch_of_128_leave_their_last_columns_behind(profile: str) -> None:
    bench = Bench(profile)
    tile = bench.tile("f32", 4, 128, np.arange(512).reshape(4, 128), valid=(4, 126))
    seen = view("f32", (1, 1, 1, 4, 126), (0, 0, 0, 126, 1))
    bench.issue("TSTORE", seen, tile)
    stored = bench.core.view(seen.region()).reshape(4, 126)
    assert np.array_equal(stored, np.arange(512).reshape(4, 128)[:, :126])
    assert bench.findings() == []
    written = bench.traced(Mode.WRITE, Space.GM)
    assert written.sum() == 4 * 126 * 4
    assert written[seen.address : seen.address + 4 * 126 * 4].all()
