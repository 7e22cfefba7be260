"""Matrices in boxes: regions and arrays, against the one function of layout."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ascsim import profiles
from ascsim.isa.tile.boxes import Order, grid_of, order_of, whole_boxes
from ascsim.machine.words import SLayout, Space
from cube import NZ, ZN, ZZ, read, tile
from harness import Bench

KINDS = ("i8", "f16", "f32")
ORDERS = {Order.NZ: NZ, Order.ZN: ZN, Order.ZZ: ZZ}


@given(
    order=st.sampled_from(list(ORDERS)), kind=st.sampled_from(KINDS), down=st.integers(1, 3), across=st.integers(1, 3),
    part=st.tuples(st.integers(1, 48), st.integers(1, 48)), skipped=st.tuples(st.integers(0, 2), st.integers(0, 2)),
)  # fmt: skip
@settings(deadline=None, max_examples=80)
def test_a_part_of_a_matrix_is_what_the_layout_says(
    order: Order, kind: str, down: int, across: int, part: tuple[int, int], skipped: tuple[int, int]
) -> None:
    bench = Bench("cpu")
    unit = 32
    rows, cols = down * unit, across * unit
    data = np.arange(rows * cols).reshape(rows, cols)
    made = tile(bench, Space.L1, kind, rows, cols, data, **ORDERS[order])
    grid = grid_of(made, bench.profile)
    row, col = min(skipped[0], down - 1) * unit, min(skipped[1], across - 1) * unit
    high, wide = min(part[0], rows - row), min(part[1], cols - col)
    array = bench.core.view(grid.region(high, wide, row, col))
    expected = data.astype(made.dtype.numpy)[row : row + high, col : col + wide]
    assert np.array_equal(grid.matrix(array, high, wide), expected)


@given(
    order=st.sampled_from(list(ORDERS)),
    kind=st.sampled_from(KINDS),
    shape=st.tuples(st.integers(1, 40), st.integers(1, 40)),
)
@settings(deadline=None, max_examples=60)
def test_a_matrix_becomes_boxes_filled_up_with_zeros(order: Order, kind: str, shape: tuple[int, int]) -> None:
    bench = Bench("cpu")
    made = tile(bench, Space.L1, kind, 64, 64, **ORDERS[order])
    grid = grid_of(made, bench.profile)
    matrix = (np.arange(shape[0] * shape[1]) % 100 + 1).reshape(shape).astype(made.dtype.numpy)
    view = bench.core.view(grid.region(*shape))
    view[...] = 9
    view[...] = grid.boxed(matrix).reshape(view.shape)
    assert np.array_equal(read(bench, made, *shape), matrix)
    assert np.count_nonzero(view) == matrix.size


@pytest.mark.parametrize(("profile", "order"), [("a2a3", Order.ZZ), ("a5", Order.NZ), ("cpu", Order.ZZ)])
def test_l0a_has_the_order_of_the_chip_and_portably_that_of_the_tile(profile: str, order: Order) -> None:
    made = tile(Bench(profile), Space.L0A, "f16", 32, 32, **ZZ)
    assert grid_of(made, profiles.load(profile)).order is order


@pytest.mark.parametrize(
    ("layout", "fractal", "space", "order"),
    [
        (NZ, 512, Space.L1, Order.NZ), (NZ, 1024, Space.L0C, Order.NZ), (NZ, 512, Space.L0C, None),
        ({"slayout": SLayout.NONE_BOX}, 512, Space.L1, None),
        (ZN, 512, Space.L0B, Order.ZN), (ZN, 32, Space.L1, None),
    ],
)  # fmt: skip
def test_orders_are_told_by_the_tile_type(
    layout: dict[str, Any], fractal: int, space: Space, order: Order | None
) -> None:
    assert order_of(tile(Bench("cpu"), space, "f16", 32, 32, **layout, fractal=fractal)) is order


def test_whole_boxes_hold_the_valid_region() -> None:
    bench = Bench("a5")
    assert whole_boxes(tile(bench, Space.L1, "f16", 64, 64, valid=(17, 17))) == (32, 32)
    assert whole_boxes(tile(bench, Space.L1, "i8", 64, 64, valid=(17, 17))) == (32, 32)
    assert whole_boxes(tile(bench, Space.L0B, "f32", 64, 64, valid=(17, 17))) == (24, 32)
    assert whole_boxes(tile(bench, Space.L0C, "f32", 64, 64, valid=(1, 17))) == (16, 32)
