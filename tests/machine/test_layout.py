"""The layout function against a second way of computing it: reshaping an array of element numbers."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ascsim.machine.dtypes import DTYPES
from ascsim.machine.layout import box_shape, byte_offset
from ascsim.machine.operands import Tile
from ascsim.machine.words import BLayout, SLayout

LAYOUTS = {
    "ND": (BLayout.ROW_MAJOR, SLayout.NONE_BOX),
    "DN": (BLayout.COL_MAJOR, SLayout.NONE_BOX),
    "NZ": (BLayout.COL_MAJOR, SLayout.ROW_MAJOR),
    "ZZ": (BLayout.ROW_MAJOR, SLayout.ROW_MAJOR),
    "ZN": (BLayout.ROW_MAJOR, SLayout.COL_MAJOR),
    "NN": (BLayout.COL_MAJOR, SLayout.COL_MAJOR),
}


def positions(blayout, slayout, fractal, size, rows, cols):
    """Element positions by permuting axes: boxes in their order, elements in theirs."""
    box_rows, box_cols = box_shape(slayout, fractal, size)
    n = np.arange(rows * cols)
    down, across = rows // box_rows, cols // box_cols
    boxes = (down, across) if blayout == BLayout.ROW_MAJOR else (across, down)
    inner = (box_cols, box_rows) if slayout == SLayout.COL_MAJOR else (box_rows, box_cols)
    grid = n.reshape(*boxes, *inner)
    if blayout == BLayout.COL_MAJOR:
        grid = grid.transpose(1, 0, 2, 3)
    if slayout == SLayout.COL_MAJOR:
        grid = grid.transpose(0, 1, 3, 2)
    return grid.transpose(0, 2, 1, 3).reshape(rows, cols) * size


@pytest.mark.parametrize("name", LAYOUTS)
@pytest.mark.parametrize(("kind", "fractal"), [("f16", 512), ("f32", 512), ("i8", 512), ("f32", 1024), ("i8", 32)])
def test_offsets_match_permuted_axes(name, kind, fractal):
    blayout, slayout = LAYOUTS[name]
    size = DTYPES[kind].size
    rows, cols = 64, 96
    expected = positions(blayout, slayout, fractal, size, rows, cols)
    for row, col in [(0, 0), (0, 1), (1, 0), (17, 33), (63, 95), (16, 32), (15, 31)]:
        assert byte_offset(blayout, slayout, fractal, size, rows, cols, row, col) == expected[row, col]


@settings(deadline=None, max_examples=40)
@given(
    st.sampled_from(sorted(LAYOUTS)), st.sampled_from(["f16", "f32", "i8"]), st.integers(1, 3), st.integers(1, 3),
    st.integers(0, 95), st.integers(0, 95),
)  # fmt: skip
def test_tile_regions_agree_with_the_layout_function(name, kind, down, across, row, col):
    blayout, slayout = LAYOUTS[name]
    rows, cols = 32 * down, 32 * across
    tile = Tile(DTYPES[kind], rows, cols, rows, cols, 64, blayout=blayout, slayout=slayout)
    row, col = row % rows, col % cols
    memory = np.zeros(rows * cols * 4 + 64, np.uint8)
    memory[tile.byte_of(row, col)] = 7
    region = tile.region(dtype=np.dtype(np.uint8))
    view = np.ndarray(
        (*(n for n, _ in region.dims), region.length), np.uint8, memory, region.start, (*(s for _, s in region.dims), 1)
    )
    size = tile.dtype.size
    lanes = view.reshape(rows, cols * size) if slayout == SLayout.NONE_BOX else view.reshape(rows, cols, size)
    assert lanes.reshape(rows, cols, size)[row, col, 0] == 7
