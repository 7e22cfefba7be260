"""What tests of the cube share: tiles in boxes, filled and read element by element by the one function of layout."""

from __future__ import annotations

from typing import Any

import numpy as np

from ascsim.machine.dtypes import dtype
from ascsim.machine.operands import Tile
from ascsim.machine.words import BLayout, SLayout, Space
from harness import Bench

NZ: dict[str, Any] = {"blayout": BLayout.COL_MAJOR, "slayout": SLayout.ROW_MAJOR}
ZN: dict[str, Any] = {"blayout": BLayout.ROW_MAJOR, "slayout": SLayout.COL_MAJOR}
ZZ: dict[str, Any] = {"blayout": BLayout.ROW_MAJOR, "slayout": SLayout.ROW_MAJOR}
PLAIN: dict[str, Any] = {}


def boxes(space: Space, profile: str) -> dict[str, Any]:
    """How tiles lie in a memory of the cube."""
    if space is Space.L0A:
        return ZZ if profile == "a2a3" else NZ
    return {Space.L0B: ZN, Space.L0C: {**NZ, "fractal": 1024}, Space.BT: PLAIN}.get(space, NZ)


def tile(
    bench: Bench, space: Space, kind: str, rows: int, cols: int, data: Any = None, valid: tuple[int, int] | None = None,
    at: int = 0, **more: Any,
) -> Tile:  # fmt: skip
    """A tile in one of the cube's memories, its first elements those of ``data``."""
    layout = boxes(space, bench.profile.name)
    made = Tile(dtype(kind), rows, cols, *(valid or (rows, cols)), at, space, **{**layout, **more})
    if data is not None:
        bits = np.asarray(data).astype(made.dtype.numpy).view(made.dtype.bits_dtype)
        held = bench.memory(space)
        for (row, col), number in np.ndenumerate(bits):
            place = made.byte_of(row, col)
            held[place : place + made.dtype.size].view(made.dtype.bits_dtype)[0] = number
    return made


def read(bench: Bench, made: Tile, rows: int | None = None, cols: int | None = None) -> np.ndarray:
    """The first elements of a tile (default: the valid ones), one by one."""
    shape = (made.valid_rows if rows is None else rows, made.valid_cols if cols is None else cols)
    held, size = bench.memory(Space(made.space)), made.dtype.size
    found = np.zeros(shape, made.dtype.bits_dtype)
    for row, col in np.ndindex(*shape):
        place = made.byte_of(row, col)
        found[row, col] = held[place : place + size].view(made.dtype.bits_dtype)[0]
    return found.view(made.dtype.numpy)


def whole(shape: tuple[int, int], kind: str, seed: int = 0) -> np.ndarray:
    """Small whole numbers, whose sums of products are exact in every type and order."""
    return np.random.default_rng(seed).integers(-6, 7, shape).astype(dtype(kind).numpy)
