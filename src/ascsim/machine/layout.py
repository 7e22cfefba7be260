"""Layout: where the element (row, column) of a tile lies, for every space and chip.

A tile is a matrix of boxes. Without boxes (``NONE_BOX``) a box is one element. With boxes, a box is 16 rows by 32 bytes
(``ROW_MAJOR`` inside) or 32 bytes by 16 columns (``COL_MAJOR`` inside) for 512-byte fractals, 16 by 16 elements for the
1024-byte accumulator fractal, and 16 by 2 (or 2 by 16) elements for the 32-byte scale fractal. ``blayout`` orders the
boxes, ``slayout`` the elements inside one: ND is (row, none), DN (col, none), NZ (col, row), ZZ (row, row), ZN (row, col),
NN (col, col).

Source: pto-isa ``include/pto/common/pto_tile.hpp`` (inner rows and columns of the Tile template).
"""

from __future__ import annotations

from ascsim.machine.words import BLayout, SLayout

_BOX_ROWS = 16
_BOX_BYTES = 32
FRACTAL_AB, FRACTAL_C, FRACTAL_MX = 512, 1024, 32


def box_shape(slayout: SLayout, fractal: int, size: int) -> tuple[int, int]:
    """(rows, columns) of one box of elements of ``size`` bytes."""
    if slayout == SLayout.NONE_BOX:
        return 1, 1
    if fractal == FRACTAL_C:
        return _BOX_ROWS, _BOX_ROWS
    if fractal == FRACTAL_MX:
        return (_BOX_ROWS, 2) if slayout == SLayout.ROW_MAJOR else (2, _BOX_ROWS)
    inner = _BOX_BYTES // size
    return (_BOX_ROWS, inner) if slayout == SLayout.ROW_MAJOR else (inner, _BOX_ROWS)


def element_strides(
    blayout: BLayout, slayout: SLayout, fractal: int, size: int, rows: int, cols: int
) -> tuple[int, int, int, int]:
    """Byte strides (box row, box column, row inside a box, column inside a box) of a tile of ``rows`` by ``cols``."""
    box_rows, box_cols = box_shape(slayout, fractal, size)
    box_bytes = box_rows * box_cols * size
    if blayout == BLayout.ROW_MAJOR:
        across, down = box_bytes, box_bytes * (cols // box_cols)
    else:
        across, down = box_bytes * (rows // box_rows), box_bytes
    if slayout == SLayout.COL_MAJOR:
        return down, across, size, box_rows * size
    return down, across, box_cols * size, size


def byte_offset(
    blayout: BLayout, slayout: SLayout, fractal: int, size: int, rows: int, cols: int, row: int, col: int
) -> int:
    """The byte, from the tile's base, where element (``row``, ``col``) begins."""
    box_rows, box_cols = box_shape(slayout, fractal, size)
    down, across, inner_row, inner_col = element_strides(blayout, slayout, fractal, size, rows, cols)
    return row // box_rows * down + col // box_cols * across + row % box_rows * inner_row + col % box_cols * inner_col
