"""Regions: bounds, folding, and the arrays they view."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ascsim.machine.core import Memory
from ascsim.machine.dtypes import f16, f32
from ascsim.machine.operands import GlobalTensor, Pointer, Region, Tile, folded
from ascsim.machine.words import BLayout, Space

U8 = np.dtype(np.uint8)


def touched(start, length, dims):
    """All byte addresses, one by one."""
    addresses = [start]
    for count, stride in dims:
        addresses = [a + i * stride for a in addresses for i in range(count)]
    return sorted({a + i for a in addresses for i in range(length)})


dims_strategy = st.lists(st.tuples(st.integers(1, 4), st.integers(-3, 40)), max_size=4).map(tuple)


@settings(deadline=None)
@given(st.integers(200, 300), st.integers(1, 16), dims_strategy)
def test_folding_keeps_the_bytes(start, length, dims):
    folded_length, folded_dims = folded(Region(Space.UB, start, length, dims, U8))
    assert touched(start, folded_length, folded_dims) == touched(start, length, dims)


@settings(deadline=None)
@given(st.integers(200, 300), st.integers(1, 16), dims_strategy)
def test_bounds_are_the_first_and_last_byte(start, length, dims):
    low, high = Region(Space.UB, start, length, dims, U8).bounds()
    bytes_ = touched(start, length, dims)
    assert (low, high) == (bytes_[0], bytes_[-1] + 1)


def test_contiguous_rows_fold_to_one_burst():
    tile = Tile(f32, 4, 64, 4, 64, 0x100)
    assert folded(tile.region()) == (4 * 64 * 4, ())


def test_valid_region_keeps_its_row_stride():
    tile = Tile(f32, 4, 64, 3, 5, 0x100)
    assert folded(tile.region()) == (20, ((3, 256),))
    assert tile.region().bounds() == (0x100, 0x100 + 2 * 256 + 20)


def test_column_major_tile_views_as_rows_and_columns():
    memory = Memory(4096)
    tile = Tile(f16, 16, 8, 16, 8, 32, blayout=BLayout.COL_MAJOR)
    memory.view(tile.region())[3, 5] = 1.5
    assert memory.data[32 + (5 * 16 + 3) * 2 :][:2].view(np.float16)[0] == 1.5


def test_global_tensor_views_five_dimensions_with_a_stride():
    memory = Memory(4096)
    memory.data[: 4 * 64].view(np.float32)[:] = np.arange(64)
    view = memory.view(GlobalTensor(f32, 0, (1, 1, 1, 4, 3), (0, 0, 0, 16, 1)).region())
    assert view.reshape(4, 3).tolist() == [[0, 1, 2], [16, 17, 18], [32, 33, 34], [48, 49, 50]]


def test_global_tensor_with_a_column_stride():
    memory = Memory(4096)
    memory.data[: 4 * 64].view(np.float32)[:] = np.arange(64)
    view = memory.view(GlobalTensor(f32, 0, (1, 1, 1, 2, 3), (0, 0, 0, 1, 8)).region())
    assert view.reshape(2, 3).tolist() == [[0, 8, 16], [1, 9, 17]]


@pytest.mark.parametrize("elements", [3, np.int64(3), np.uint8(3)])
def test_a_pointer_moves_by_elements_of_any_integer_type(elements: int) -> None:
    moved = Pointer(Space.UB, 64, f32, "x") + elements
    assert (moved.offset, moved.name) == (76, "x")
    with pytest.raises(TypeError):
        Pointer(Space.UB, 64, f32) + 0.5
