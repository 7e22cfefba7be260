"""Tiles and elements by byte."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ascsim.checks.naming import Tiles, bytes_text, element
from ascsim.machine.layout import byte_offset
from ascsim.machine.words import BLayout, SLayout, Space
from checks.builder import Builder, V


@settings(max_examples=300, deadline=None)
@given(
    blayout=st.sampled_from(list(BLayout)),
    layout=st.sampled_from([(SLayout.NONE_BOX, 512), (SLayout.ROW_MAJOR, 512), (SLayout.COL_MAJOR, 512),
                            (SLayout.ROW_MAJOR, 1024), (SLayout.ROW_MAJOR, 32), (SLayout.COL_MAJOR, 32)]),
    kind=st.sampled_from([("f32", 4), ("f16", 2), ("i8", 1)]),
    row=st.integers(0, 31), column=st.integers(0, 63), byte=st.integers(0, 3),
)  # fmt: skip
def test_element_is_the_inverse_of_the_layout(
    blayout: BLayout, layout: tuple[SLayout, int], kind: tuple[str, int], row: int, column: int, byte: int
) -> None:
    slayout, fractal = layout
    name, size = kind
    tile = {
        "address": 4096, "dtype": name, "rows": 32, "cols": 64, "blayout": int(blayout), "slayout": int(slayout),
        "fractal": fractal,
    }  # fmt: skip
    at = 4096 + byte_offset(blayout, slayout, fractal, size, 32, 64, row, column)
    assert element(tile, at + byte % size) == (row, column)


def test_bytes_outside_a_tile() -> None:
    builder = Builder()
    t = builder.tile("t", 0x1000, 2, 8)
    builder.op(V, "op", [{"start": 0x1000, "object": t.number}])
    tiles = Tiles(builder.trace())
    assert tiles.position(0, 0x1024) == "element (1, 1) of t 2x8 f32 at UB 0x1000"
    assert tiles.position(0, 0x1040) == "beyond t 2x8 f32 at UB 0x1000, where (2, 0) would be"
    assert tiles.position(0, 0xFFF) == "before t 2x8 f32 at UB 0x1000"


def test_a_tile_by_address_only_where_there_is_one() -> None:
    builder = Builder()
    builder.tile("a", 0x1000, 2, 8)
    builder.op(V, "op", [0x1008, 0x1050])
    assert [Tiles(builder.trace()).name(n) for n in (0, 1)] == ["a", ""]
    builder.tile("b", 0x1000, 1, 8)
    assert Tiles(builder.trace()).name(0) == ""


def test_what_is_no_tile_has_a_name_and_no_element() -> None:
    builder = Builder()
    builder.note("object", type="buffer", name="buffer", dtype="f32", space=int(Space.UB))
    builder.note("object", type="tile", name="early", dtype="f32", space=1, address=-1, rows=1, cols=8)
    builder.op(V, "op", [{"start": 0, "object": 1}, {"start": 0, "object": 2}])
    tiles = Tiles(builder.trace())
    assert [(tiles.name(n), tiles.position(n, 0)) for n in (0, 1)] == [("buffer", ""), ("early", "")]


@pytest.mark.parametrize(
    ("intervals", "text"),
    [
        ([(0, 1)], "UB 0x0 to 0x0 (1 byte)"),
        ([(16, 48)], "UB 0x10 to 0x2f (32 bytes)"),
        ([(0, 4), (8, 12)], "UB 0x0 to 0xb (8 bytes, 8 of the 12)"),
    ],
)
def test_bytes_in_words(intervals: list[tuple[int, int]], text: str) -> None:
    assert bytes_text(Space.UB, intervals) == text
