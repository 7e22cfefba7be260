"""Matrices in boxes: how the cube's memories hold them, as regions and as arrays.

A box is 16 rows of 32 bytes, or 32 bytes by 16 columns; in L0C 16 by 16 elements. In NZ and ZN the boxes make *strips*: a
strip is as wide as a box, and in NZ as high as the matrix (in ZN as long as it is wide), with nothing between its lines.
ZN is NZ of the transposed matrix. In ZZ the boxes of a row of boxes lie one behind the other.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum

import numpy as np

from ascsim.machine.operands import Region, Tile
from ascsim.machine.words import BLayout, CompactMode, SLayout, Space
from ascsim.profiles import Profile

SIDE = 16
"""Lines of a box."""
STRIP = 32
"""Bytes of a line of a box, but in L0C."""

ALIGNED = {Space.L1: 5, Space.L0A: 9, Space.L0B: 9, Space.L0C: 6, Space.BT: 6}
"""What addresses of these memories are a multiple of, as a power of 2."""


class Order(Enum):
    """How the boxes lie, and the elements in them."""

    NZ = (BLayout.COL_MAJOR, SLayout.ROW_MAJOR)
    ZN = (BLayout.ROW_MAJOR, SLayout.COL_MAJOR)
    ZZ = (BLayout.ROW_MAJOR, SLayout.ROW_MAJOR)


def order_of(tile: Tile) -> Order | None:
    """The order of a tile's boxes; None for one without boxes, or with boxes of another kind."""
    fractal = 1024 if tile.space == Space.L0C else 512
    known = {order.value: order for order in Order}
    return known.get((tile.blayout, tile.slayout)) if tile.fractal == fractal else None


def up(number: int, unit: int) -> int:
    """The next multiple."""
    return -(-number // unit) * unit


@dataclass(frozen=True)
class Grid:
    """A matrix of ``rows`` by ``cols`` elements, whole boxes, from ``address`` on."""

    space: int
    address: int
    kind: np.dtype
    order: Order
    rows: int
    cols: int

    @property
    def width(self) -> int:
        """Elements across a strip."""
        return SIDE if self.space == Space.L0C else STRIP // self.kind.itemsize

    def turned(self) -> Grid:
        """The same bytes as the transposed matrix."""
        order = {Order.NZ: Order.ZN, Order.ZN: Order.NZ}[self.order]
        return Grid(self.space, self.address, self.kind, order, self.cols, self.rows)

    def region(self, rows: int, cols: int, row: int = 0, col: int = 0) -> Region:
        """The bytes of ``rows`` by ``cols`` elements from (``row``, ``col``) on: NZ whole strips across, ZN whole strips
        down, ZZ whole boxes. ``row`` and ``col`` are where a strip, or a box, begins."""
        if self.order is Order.ZN:
            return self.turned().region(cols, rows, col, row)
        size = self.kind.itemsize
        line = self.width * size
        across = -(-cols // self.width)
        if self.order is Order.NZ:
            start = self.address + (col // self.width * self.rows + row) * line
            return Region(self.space, start, rows * line, ((across, self.rows * line),), self.kind)
        box, pitch = SIDE * line, self.cols // self.width * SIDE * line
        start = self.address + row // SIDE * pitch + col // self.width * box
        return Region(self.space, start, across * box, ((-(-rows // SIDE), pitch),), self.kind)

    def matrix(self, array: np.ndarray, rows: int, cols: int) -> np.ndarray:
        """The matrix of ``rows`` by ``cols`` in the array of such a region."""
        if self.order is Order.ZN:
            return self.turned().matrix(array, cols, rows).T
        if self.order is Order.NZ:
            strips = array.reshape(-1, rows, self.width)
            return strips.transpose(1, 0, 2).reshape(rows, -1)[:, :cols]
        boxes = array.reshape(-(-rows // SIDE), -1, SIDE, self.width).transpose(0, 2, 1, 3)
        return boxes.reshape(-(-rows // SIDE) * SIDE, -1)[:rows, :cols]

    def boxed(self, matrix: np.ndarray) -> np.ndarray:
        """A matrix as the array of such a region, filled up with zeros to whole strips, or boxes."""
        if self.order is Order.ZN:
            return self.turned().boxed(matrix.T)
        rows, cols = matrix.shape
        across = -(-cols // self.width)
        high = rows if self.order is Order.NZ else up(rows, SIDE)
        if (high, across * self.width) != matrix.shape:
            whole = np.zeros((high, across * self.width), matrix.dtype)
            whole[:rows, :cols] = matrix
            matrix = whole
        if self.order is Order.NZ:
            return matrix.reshape(rows, across, self.width).transpose(1, 0, 2).reshape(across, -1)
        boxes = matrix.reshape(high // SIDE, SIDE, across, self.width).transpose(0, 2, 1, 3)
        return boxes.reshape(high // SIDE, -1)


def grid_of(tile: Tile, profile: Profile, kind: np.dtype | None = None, extents: tuple[int, int] | None = None) -> Grid:
    """The boxes of a tile, or of the part of it (``extents``) that lies there packed. In L0A a chip has an order of its own."""
    order = order_of(tile)
    if tile.space == Space.L0A and profile.left_order:
        order = Order[profile.left_order]
    assert order is not None
    rows, cols = extents or (tile.rows, tile.cols)
    return Grid(tile.space, tile.address, tile.dtype.numpy if kind is None else kind, order, rows, cols)


def whole_boxes(tile: Tile) -> tuple[int, int]:
    """The rows and columns of the boxes that hold the valid region."""
    across = SIDE if tile.space == Space.L0C else STRIP // tile.dtype.size
    if tile.slayout == SLayout.COL_MAJOR:
        return up(tile.valid_rows, across), up(tile.valid_cols, SIDE)
    return up(tile.valid_rows, SIDE), up(tile.valid_cols, across)


def is_packed(tile: Tile) -> bool:
    """Whether only the boxes of the valid region lie in memory."""
    return tile.compact is CompactMode.NORMAL
