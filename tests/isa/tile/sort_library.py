"""What the chips' libraries do for TSORT32, written down once more: loops over rows and calls, on plain bytes."""

from __future__ import annotations

import numpy as np

from ascsim.machine.operands import Tile

FLOATS = {4: np.float32, 2: np.float16}
NEGATIVE_NAN = {4: 0xFFC00000, 2: 0xFE00}


def sorted_block(values: np.ndarray, indices: np.ndarray) -> np.ndarray:
    """Raw values (u4 or u2) and indices of one block as pairs: value descending, then index, then position."""
    with np.errstate(invalid="ignore"):
        number = values.view(FLOATS[values.itemsize]).astype(np.float64)
    negative = values >> (8 * values.itemsize - 1) != 0
    nan = np.isnan(number)
    place = np.where(nan, np.where(negative, 1, -1), 0)
    payload = np.where(nan, np.where(negative, 1, -1) * values.astype(np.int64), 0)
    order = np.lexsort((np.arange(values.size), indices, payload, np.where(nan, 0.0, -number), place))
    return np.stack([values[order].astype(np.uint32), indices[order]], axis=1)


class Library:
    """TSORT32 of a chip on a copy of UB. ``before`` bytes lie in front of address 0."""

    def __init__(self, chip: str, ub: np.ndarray, dst: Tile, src: Tile, idx: Tile, tmp: Tile | None) -> None:
        self.chip, self.ub = chip, ub
        self.dst, self.src, self.idx, self.tmp = dst, src, idx, tmp
        self.size = src.dtype.size
        self.columns = src.valid_cols

    def run(self) -> np.ndarray:
        """UB afterwards."""
        for row in range(self.dst.valid_rows):
            to = self.dst.address + row * self.dst.row_bytes
            values = self.src.address + row * self.src.row_bytes
            indices = self.idx.address + (0 if self.idx.valid_rows == 1 else row * self.idx.row_bytes)
            self._row(to, values, indices)
        return self.ub

    def _row(self, to: int, values: int, indices: int) -> None:
        whole, tail = divmod(self.columns, 32)
        blocks = whole + (tail > 0)
        if self.tmp is None or not tail:
            calls = max(-(-whole // 255), 1)
            for call in range(calls):
                last = call == calls - 1
                count = (whole if calls == 1 else whole % 255) if last else 255
                self._vbitsort(to, values, indices, 255 * call, count)
            return
        scratch = self.tmp.address
        limit = self.columns if self.chip == "a2a3" else self.columns * self.size
        if limit <= 8160:
            self._copy(scratch, values, self.columns)
            self._pad(scratch + whole * 32 * self.size, tail)
            self._vbitsort(to, scratch, indices, 0, blocks)
            return
        calls = -(-blocks // 255)
        for call in range(calls - 1):
            self._vbitsort(to, values, indices, 255 * call, 255)
        rest = blocks % 255 - 1
        self._vbitsort(to, values, indices, 255 * (calls - 1), rest & 0xFF)
        block = 255 * (calls - 1) + rest
        self._copy(scratch, values + 32 * self.size * block, tail)
        self._pad(scratch, tail)
        self._vbitsort(to + 256 * block, scratch, indices + 128 * block, 0, 1)

    def _vbitsort(self, to: int, values: int, indices: int, first: int, count: int) -> None:
        for block in range(first, first + count):
            at = values + 32 * self.size * block
            taken = self.ub[at : at + 32 * self.size].copy().view(f"u{self.size}")
            beside = self.ub[indices + 128 * block : indices + 128 * block + 128].copy().view(np.uint32)
            pairs = np.ascontiguousarray(sorted_block(taken, beside))
            self.ub[to + 256 * block : to + 256 * block + 256] = pairs.view(np.uint8).ravel()

    def _copy(self, to: int, start: int, elements: int) -> None:
        length = -(-elements * self.size // 32) * 32
        self.ub[to : to + length] = self.ub[start : start + length].copy()

    def _pad(self, block: int, tail: int) -> None:
        padding = np.full(32 - tail, NEGATIVE_NAN[self.size], f"u{self.size}")
        self.ub[block + tail * self.size : block + 32 * self.size] = padding.view(np.uint8)
