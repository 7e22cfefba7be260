"""What instructions work on: regions of memory, tiles, views of global memory, registers.

A :class:`Region` is the one description of bytes: the trace records it, the checks judge it, and the semantics see the
array that it views, so the three cannot disagree.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from functools import cached_property
from math import prod
from operator import index
from typing import ClassVar, NamedTuple, SupportsIndex

import numpy as np

from ascsim.machine.dtypes import DType
from ascsim.machine.layout import box_shape, byte_offset, element_strides
from ascsim.machine.words import BLayout, CompactMode, PadValue, SLayout, Space

REGISTER_BYTES = 256
NO_ADDRESS = -1
CUSTOM_PAD = 1 << 32
"""From here on a pad value's low 32 bits are the bits to fill with (PadValue::CustomBase)."""


class Region(NamedTuple):
    """Bytes of one space: bursts of ``length`` bytes, repeated over ``dims`` of (count, byte stride), outermost first.

    As an array it has shape ``(*counts, length // dtype.size)``.
    """

    space: int
    start: int
    length: int
    dims: tuple[tuple[int, int], ...]
    dtype: np.dtype

    def bounds(self) -> tuple[int, int]:
        """The first byte and one past the last byte touched."""
        low = high = 0
        for count, stride in self.dims:
            if not count:
                return self.start, self.start
            reach = (count - 1) * stride
            if reach > 0:
                high += reach
            else:
                low += reach
        return self.start + low, self.start + high + self.length

    def is_empty(self) -> bool:
        """True when no byte is touched."""
        return not self.length or any(count == 0 for count, _ in self.dims)

    def overlaps_itself(self) -> bool:
        """True when two bursts may share bytes."""
        reach = self.length
        for stride, count in sorted((abs(stride), count) for count, stride in self.dims if count > 1):
            if stride < reach:
                return True
            reach += (count - 1) * stride
        return False

    def over(self, count: int, stride: int) -> Region:
        """The same region, repeated ``count`` times ``stride`` bytes apart (a new outermost dimension)."""
        return self._replace(dims=((count, stride), *self.dims))


def folded(region: Region) -> tuple[int, tuple[tuple[int, int], ...]]:
    """(burst length, dims) of the same bytes with contiguous and single dimensions folded away."""
    length = region.length
    dims: list[tuple[int, int]] = []
    for count, stride in reversed(region.dims):  # innermost first
        if count == 1:
            continue
        if not dims and stride == length:
            length *= count
        elif dims and stride == dims[-1][0] * dims[-1][1]:
            dims[-1] = (dims[-1][0] * count, dims[-1][1])
        else:
            dims.append((count, stride))
    return length, tuple(reversed(dims))


@dataclass(frozen=True)
class Tile:
    """A PTO tile: a typed matrix at an address of one space, of which the top-left valid rows and columns count.

    ``address`` is a byte offset in ``space``; :data:`NO_ADDRESS` until assigned.
    """

    dtype: DType
    rows: int
    cols: int
    valid_rows: int
    valid_cols: int
    address: int = NO_ADDRESS
    space: Space = Space.UB
    blayout: BLayout = BLayout.ROW_MAJOR
    slayout: SLayout = SLayout.NONE_BOX
    fractal: int = 512
    pad: int = PadValue.NULL
    name: str = ""
    compact: CompactMode = CompactMode.NULL
    k_aligned: bool = False
    """Of a float operand of the cube: its inner dimension lies in multiples of 16 elements."""

    @cached_property
    def _hash(self) -> int:
        return hash((self.signature, self.address, self.name))

    def __hash__(self) -> int:
        return self._hash

    @cached_property
    def signature(self) -> tuple:
        """What legality may depend on: everything but the address and the name."""
        return (
            self.dtype.code, self.rows, self.cols, self.valid_rows, self.valid_cols, self.space, self.blayout,
            self.slayout, self.fractal, self.pad, self.address == NO_ADDRESS, self.compact, self.k_aligned,
        )  # fmt: skip

    @property
    def nbytes(self) -> int:
        """Bytes of the whole tile."""
        return self.rows * self.cols * self.dtype.size

    @property
    def is_row_major(self) -> bool:
        """True for ND, the layout without boxes that has its rows one after the other."""
        return self.blayout == BLayout.ROW_MAJOR and self.slayout == SLayout.NONE_BOX

    @property
    def row_bytes(self) -> int:
        """Bytes from one row to the next of a tile without boxes."""
        return self.cols * self.dtype.size if self.blayout == BLayout.ROW_MAJOR else self.dtype.size

    @property
    def col_bytes(self) -> int:
        """Bytes from one column to the next of a tile without boxes."""
        return self.dtype.size if self.blayout == BLayout.ROW_MAJOR else self.rows * self.dtype.size

    def at(self, address: int) -> Tile:
        """The same tile bound to an address."""
        return replace(self, address=address)

    def region(self, rows: int | None = None, cols: int | None = None, dtype: np.dtype | None = None) -> Region:
        """The bytes of the first ``rows`` by ``cols`` elements (default: the valid ones), as a (rows, cols) array."""
        rows = self.valid_rows if rows is None else rows
        cols = self.valid_cols if cols is None else cols
        kind = self.dtype.numpy if dtype is None else dtype
        size = self.dtype.size
        if self.slayout == SLayout.NONE_BOX:
            if self.blayout == BLayout.ROW_MAJOR:
                return Region(self.space, self.address, cols * size, ((rows, self.cols * size),), kind)
            return Region(self.space, self.address, size, ((rows, size), (cols, self.rows * size)), kind)
        box_rows, box_cols = box_shape(self.slayout, self.fractal, size)
        down, across, inner_row, inner_col = element_strides(
            self.blayout, self.slayout, self.fractal, size, self.rows, self.cols
        )
        dims = (
            (rows // box_rows, down), (box_rows, inner_row), (cols // box_cols, across), (box_cols, inner_col),
        )  # fmt: skip
        return Region(self.space, self.address, size, dims, kind)

    def byte_of(self, row: int, col: int) -> int:
        """The byte of the space where element (``row``, ``col``) begins."""
        return self.address + byte_offset(
            self.blayout, self.slayout, self.fractal, self.dtype.size, self.rows, self.cols, row, col
        )

    def describe(self) -> str:
        """For people: ``src 4x64 f32 at UB 0x1000``."""
        where = "unassigned" if self.address == NO_ADDRESS else f"{self.space.name} {self.address:#x}"
        valid = "" if (self.valid_rows, self.valid_cols) == (self.rows, self.cols) else (
            f" (valid {self.valid_rows}x{self.valid_cols})"
        )  # fmt: skip
        return f"{self.name or 'tile'} {self.rows}x{self.cols} {self.dtype.name}{valid} at {where}"

    def _repr_html_(self) -> str:
        from ascsim.machine.display import tile

        place = f"{self.space.name}, no address yet"
        if self.address != NO_ADDRESS:
            place = f"{self.space.name} {self.address:#x} to {self.address + self.nbytes - 1:#x}"
        facts = [
            ("type", self.dtype.name), ("rows x columns", f"{self.rows} x {self.cols}"),
            ("valid", f"{self.valid_rows} x {self.valid_cols}"), ("place", place), ("bytes", f"{self.nbytes:,}"),
            ("layout", f"{self.blayout.name}, {self.slayout.name}"),
        ]  # fmt: skip
        return tile(self.name, facts, (self.rows, self.cols), (self.valid_rows, self.valid_cols))


@dataclass(frozen=True)
class GlobalTensor:
    """A five-dimensional view of global memory; shape and strides in elements, ``address`` in bytes of GM."""

    dtype: DType
    address: int
    shape: tuple[int, int, int, int, int]
    strides: tuple[int, int, int, int, int]
    layout: int = 0
    name: str = ""

    @cached_property
    def _hash(self) -> int:
        return hash((self.signature, self.address, self.name))

    def __hash__(self) -> int:
        return self._hash

    @cached_property
    def signature(self) -> tuple:
        """What legality may depend on."""
        return (self.dtype.code, self.shape, self.strides, self.layout)

    def region(self) -> Region:
        """The bytes of the view as an array of its five dimensions."""
        size = self.dtype.size
        if self.strides[4] == 1 or self.shape[4] == 1:
            dims = tuple((n, s * size) for n, s in zip(self.shape[:4], self.strides[:4], strict=True))
            return Region(Space.GM, self.address, self.shape[4] * size, dims, self.dtype.numpy)
        dims = tuple((n, s * size) for n, s in zip(self.shape, self.strides, strict=True))
        return Region(Space.GM, self.address, size, dims, self.dtype.numpy)

    @property
    def elements(self) -> int:
        """How many elements the view has."""
        return prod(self.shape)

    def describe(self) -> str:
        """For people."""
        shape = "x".join(str(n) for n in self.shape)
        return f"{self.name or 'global'} {shape} {self.dtype.name} at GM {self.address:#x}"


@dataclass
class VReg:
    """A 256-byte vector register: ``data`` is uint8[256], ``dtype`` how its lanes are read."""

    dtype: DType
    data: np.ndarray = field(default_factory=lambda: np.zeros(REGISTER_BYTES, np.uint8))

    @property
    def lanes(self) -> np.ndarray:
        """The lanes as an array of the element type (a view)."""
        return self.data.view(self.dtype.numpy)

    @property
    def signature(self) -> tuple:
        """What legality may depend on."""
        return ("v", self.dtype.code)

    def _repr_html_(self) -> str:
        from ascsim.machine.display import lanes

        return lanes(f"vector register, {REGISTER_BYTES // self.dtype.size} lanes of {self.dtype.name}", self.lanes)


@dataclass
class MReg:
    """A mask register: ``data`` is uint8[256] of 0 and 1, one entry a byte of a vector register."""

    data: np.ndarray = field(default_factory=lambda: np.zeros(REGISTER_BYTES, np.uint8))
    signature = ("m",)

    def _repr_html_(self) -> str:
        from ascsim.machine.display import lanes

        counts = ", ".join(
            f"{int(self.data[::size].sum())} of {REGISTER_BYTES // size} b{8 * size}" for size in (1, 2, 4)
        )
        return lanes(f"mask register, active lanes: {counts}", self.data, self.data)


@dataclass
class UReg:
    """A register for unaligned loads and stores: ``data`` is uint8[32], the block of UB that it is for.

    It holds the bytes ``low`` to ``high`` of UB. ``number`` tells registers apart in the trace; 0: it held none yet.
    """

    data: np.ndarray = field(default_factory=lambda: np.zeros(32, np.uint8))
    low: int = 0
    high: int = 0
    number: int = 0
    signature = ("a",)

    _numbers: ClassVar[Iterator[int]] = itertools.count(1)

    @classmethod
    def next_number(cls) -> int:
        """A number that no register had."""
        return next(cls._numbers)


class Pointer(NamedTuple):
    """A typed address: ``offset`` bytes into ``space``; ``dtype`` None for ``void*``."""

    space: int
    offset: int
    dtype: DType | None
    name: str = ""

    @property
    def signature(self) -> tuple:
        """What legality may depend on: not the offset."""
        return ("p", self.space, self.dtype.code if self.dtype else 0)

    def __add__(self, elements: object) -> Pointer:
        """The pointer ``elements`` further on."""
        if not isinstance(elements, SupportsIndex) or isinstance(elements, bool):  # numpy's integers, too
            return NotImplemented
        return self._replace(offset=self.offset + index(elements) * (self.dtype.size if self.dtype else 1))
