"""TEXTRACT and TINSERT between vector tiles: a part of a larger tile, and back.

Sources: pto-isa docs/isa/TEXTRACT, TINSERT; include/pto/npu/{a2a3,a5} TExtract.hpp, TInsert.hpp and the files of
include/pto/common/arch/memory that they share; include/pto/cpu/TExtract.hpp, TInsert.hpp.
"""

from __future__ import annotations

from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any

import numpy as np

from ascsim.isa.definition import A2A3, A5, CHIPS, Asm, Definition, In, Operand, Out, Scalar, tile_instruction
from ascsim.isa.memory_form.masked import set_mask_norm, set_vector_mask
from ascsim.isa.rules import Rule, changed, dtype, finding, refuse, same_dtype, scalar_range
from ascsim.isa.steps import COPY_UB, SCALAR_LOOP, VCOPY, flag_pair, group
from ascsim.isa.tile.transfer import is_boxed
from ascsim.isa.transfer import BLOCK
from ascsim.machine.core import Group, Step
from ascsim.machine.dtypes import (
    bf16,
    f4e1m2x2,
    f4e2m1x2,
    f8e4m3,
    f8e5m2,
    f8e8m0,
    f16,
    f32,
    hif8,
    i4x2,
    i8,
    i16,
    i32,
    i64,
    u8,
    u16,
    u32,
    u64,
)  # fmt: skip
from ascsim.machine.operands import Region, Tile
from ascsim.machine.trace import Mode
from ascsim.machine.words import BLayout, Pipe, SLayout, Space
from ascsim.profiles import Profile

_A2A3_TYPES = (i8, u8, i16, u16, f16, bf16, f32, i32, u32)
_A5_TYPES = (f16, bf16, f32, i32, i8, f8e4m3, f8e5m2, f8e8m0, hif8)
_ALL_TYPES = (*_A2A3_TYPES, i64, u64, f8e4m3, f8e5m2, f8e8m0, hif8)
_PACKED = (f4e2m1x2, f4e1m2x2, i4x2)
_ROWS_OF_A_BOX = 16


def window(tile: Tile, row: int, col: int, rows: int, cols: int) -> list[Region]:
    """Some rows and columns of a tile: ND row by row; NZ the whole boxes' columns, and apart from them those left over.

    Of NZ tiles a column of boxes is 32 bytes of each row, one row after the other.
    """
    size, bits = tile.dtype.size, tile.dtype.bits_dtype
    if not is_boxed(tile):
        start = tile.address + row * tile.row_bytes + col * tile.col_bytes
        if tile.is_row_major:
            return [Region(tile.space, start, cols * size, ((rows, tile.row_bytes),), bits)]
        return [Region(tile.space, start, size, ((rows, tile.row_bytes), (cols, tile.col_bytes)), bits)]
    width = BLOCK // size
    pitch = tile.rows * BLOCK
    start = tile.address + col // width * pitch + row * BLOCK + col % width * size
    whole, rest = divmod(cols, width)
    found = [Region(tile.space, start, BLOCK, ((whole, pitch), (rows, BLOCK)), bits)] if whole else []
    if rest:
        found.append(Region(tile.space, start + whole * pitch, rest * size, ((rows, BLOCK),), bits))
    return found


# Rules


def _not_implemented(definition: Definition, call: SimpleNamespace, profile: Profile) -> str | None:
    places = [Space(tile.space) for tile in (call.src, call.dst)]
    if places != [Space.UB, Space.UB]:
        return f"moves from {places[0].name} to {places[1].name}, which is not implemented"
    for name in ("dst", "src"):
        tile = getattr(call, name)
        if tile.dtype in _PACKED and not profile.is_chip:
            return f"operand {name} has packed type {tile.dtype.name}"
        plain = tile.slayout == SLayout.NONE_BOX and (tile.is_row_major or not profile.is_chip)
        if not plain and not is_boxed(tile):
            return f"operand {name} is neither ND nor NZ"
    return None


def _elsewhere(call: SimpleNamespace, profile: Profile) -> Iterator[SimpleNamespace]:
    for name in ("dst", "src"):
        yield changed(call, name, space=Space.L1)
        yield changed(call, name, slayout=SLayout.COL_MAJOR)
    if not profile.is_chip:
        yield changed(changed(call, "dst", dtype=f4e2m1x2), "src", dtype=f4e2m1x2)


def _other_layout(definition: Definition, call: SimpleNamespace, profile: Profile) -> str | None:
    names = ["NZ" if is_boxed(tile) else "ND" for tile in (call.dst, call.src)]
    return None if names[0] == names[1] else f"dst is {names[0]}, but src is {names[1]}"


def _with_other_layout(call: SimpleNamespace, profile: Profile) -> Iterator[SimpleNamespace]:
    yield changed(call, "dst", blayout=BLayout.COL_MAJOR, slayout=SLayout.ROW_MAJOR)


class _Ends:
    """The smaller tile and the larger one, by name."""

    def __init__(self, small: str, large: str) -> None:
        self.small, self.large = small, large

    def of(self, call: SimpleNamespace) -> tuple[Tile, Tile]:
        """Both tiles."""
        return getattr(call, self.small), getattr(call, self.large)

    def rules(self, title: str) -> tuple[Rule, ...]:
        """The rules of one direction."""
        small, large = self.small, self.large
        return (
            dtype("dst", a2a3=_A2A3_TYPES, a5=(*_A5_TYPES, *_PACKED[:2]), cpu=(*_ALL_TYPES, *_PACKED)),
            refuse("L012", "both are vector tiles, ND or NZ (cpu: of elements at least a byte wide)", _not_implemented,
                   breaks=_elsewhere, mend="ascsim check FILE lists all such calls of a file."),
            same_dtype("dst", "src"),
            scalar_range("row", 0, 65535),
            scalar_range("col", 0, 65535),
            refuse("L004", "dst and src are both ND or both NZ", _other_layout, breaks=_with_other_layout,
                   profiles=CHIPS, mend="Move the data into one layout first."),
            refuse("L007", f"{small} has no more rows and columns than {large}", self._larger, breaks=self._made_larger,
                   profiles=CHIPS, mend=f"Declare {small} no larger than {large}."),
            refuse("L006", "the valid columns are a multiple of 2 bytes", self._odd, breaks=self._made_odd,
                   profiles=A2A3, mend="Move an even number of bytes, or a single element."),
            refuse("L006", "parts of ND tiles of 4-bit elements are whole 32-byte blocks", self._blocks,
                   breaks=self._made_blocks, profiles=A5, mend="Move a multiple of 32 bytes, or use NZ tiles."),
            refuse("L007", f"the part lies within the valid region of {large}", self._outside_valid,
                   breaks=self._made_outside, profiles=("cpu",), mend="Move the part, or make it smaller."),
            finding(f"{title}-1", f"the part lies within {large}", self._outside, breaks=self._made_outside,
                    profiles=CHIPS, why="The library checks it in debug builds only.",
                    mend="Move the part, or make it smaller."),
            finding(f"{title}-2", "the part begins at whole 32-byte blocks, and whole boxes", self._unaligned,
                    breaks=self._made_unaligned, profiles=CHIPS,
                    why="A2/A3 copy blocks; the A5 copies blocks of NZ tiles, and takes an NZ tile's first column by its "
                    "box. The library checks it in debug builds, if at all.",
                    mend="Begin at a multiple of 32 bytes (NZ on A2/A3: and of 16 rows)."),
        )  # fmt: skip

    def _larger(self, definition: Definition, call: SimpleNamespace, profile: Profile) -> str | None:
        small, large = self.of(call)
        nz_rows = profile.name == "a5" and is_boxed(small)
        if (small.rows <= large.rows or nz_rows) and small.cols <= large.cols:
            return None
        return f"{self.small} is {small.rows}x{small.cols}, {self.large} {large.rows}x{large.cols}"

    def _made_larger(self, call: SimpleNamespace, profile: Profile) -> Iterator[SimpleNamespace]:
        yield changed(call, self.small, rows=self.of(call)[1].rows + 16)

    def _odd(self, definition: Definition, call: SimpleNamespace, profile: Profile) -> str | None:
        small = self.of(call)[0]
        nbytes = small.valid_cols * small.dtype.size
        return f"{nbytes} bytes of each row, an odd number" if nbytes % 2 and not _is_single(small) else None

    def _made_odd(self, call: SimpleNamespace, profile: Profile) -> Iterator[SimpleNamespace]:
        yield changed(changed(changed(call, "dst", dtype=i8), "src", dtype=i8), self.small, valid_cols=3)

    def _blocks(self, definition: Definition, call: SimpleNamespace, profile: Profile) -> str | None:
        small, large = self.of(call)
        if small.dtype not in _PACKED or is_boxed(small) or _is_single(small):
            return None
        if not any(n % BLOCK for n in (small.cols, large.cols, small.valid_cols)):
            return None
        return (
            f"rows of {self.small} and {self.large} have {small.cols} and {large.cols} bytes, of which "
            f"{small.valid_cols} are moved"
        )

    def _made_blocks(self, call: SimpleNamespace, profile: Profile) -> Iterator[SimpleNamespace]:
        packed = changed(changed(call, "dst", dtype=f4e2m1x2), "src", dtype=f4e2m1x2)
        yield changed(packed, self.small, valid_cols=16)

    def _ends(self, call: SimpleNamespace) -> tuple[int, int]:
        small = self.of(call)[0]
        wide = _per_byte(small)
        return int(call.row) + small.valid_rows, -(-(int(call.col) + small.valid_cols) // wide)

    def _outside(self, definition: Definition, call: SimpleNamespace, profile: Profile) -> str | None:
        large, (row, col) = self.of(call)[1], self._ends(call)
        if row <= large.rows and col <= large.cols:
            return None
        return f"the part ends at row {row}, column {col}; {self.large} is {large.rows}x{large.cols}"

    def _outside_valid(self, definition: Definition, call: SimpleNamespace, profile: Profile) -> str | None:
        large, (row, col) = self.of(call)[1], self._ends(call)
        if row <= large.valid_rows and col <= large.valid_cols:
            return None
        return f"the part ends at row {row}, column {col}; {self.large} has {large.valid_rows}x{large.valid_cols} valid"

    def _made_outside(self, call: SimpleNamespace, profile: Profile) -> Iterator[SimpleNamespace]:
        yield SimpleNamespace(**{**vars(call), "row": 32})

    def _unaligned(self, definition: Definition, call: SimpleNamespace, profile: Profile) -> str | None:
        small, large = self.of(call)
        if _is_single(small):
            return None
        offset = int(call.col) // _per_byte(small) * large.dtype.size % BLOCK
        boxed = is_boxed(large)
        if offset and (boxed or profile.name == "a2a3"):
            return f"column {int(call.col)} begins {offset} bytes into a 32-byte block"
        if boxed and profile.name == "a2a3" and int(call.row) % _ROWS_OF_A_BOX:
            return f"row {int(call.row)} is not a multiple of 16, the rows of a box"
        return None

    def _made_unaligned(self, call: SimpleNamespace, profile: Profile) -> Iterator[SimpleNamespace]:
        nz: dict[str, Any] = {"blayout": BLayout.COL_MAJOR, "slayout": SLayout.ROW_MAJOR}
        boxed = changed(changed(call, "dst", **nz), "src", **nz)
        yield SimpleNamespace(**{**vars(changed(boxed, self.small, valid_cols=2)), "col": 1})


def _per_byte(small: Tile) -> int:
    """2 where columns count elements that share a byte: parts of the A5's NZ tiles of 4-bit elements.

    In ND tiles, and where a single element is moved, they count bytes.
    """
    return 2 if small.dtype in _PACKED and is_boxed(small) and not _is_single(small) else 1


def _is_single(tile: Tile) -> bool:
    return tile.valid_rows == 1 and tile.valid_cols == 1


_NOTES = (
    "What is moved is the valid region of the smaller tile. No other byte is written, but for NZ tiles on the A5: whole "
    "32-byte rows of their boxes are.",
    "Of tiles of 4-bit elements the A5 counts bytes in ND, and elements in NZ, whose columns it takes in halves.",
    "A single element (1x1 valid) is moved by the scalar pipe, with flags V to S and S to V (event 0) around it.",
    "A2/A3: copies of whole blocks, and for the columns left over a vcopy in counter mode; the vector mask is all ones "
    "afterwards.",
)
_ASSUMED = (
    "The chips decide by the tile type whether a single element is moved; here its valid region decides, be it static or not.",
    "A2/A3: in counter mode vcopy works on as many elements in each of its repeats as the mask says.",
)


class _Part:
    """What both share: ``ends`` says which tile is the smaller one."""

    values = "bits"
    notes = _NOTES
    assumed = _ASSUMED
    ends: _Ends

    def pieces(self: Any, call: SimpleNamespace, profile: Profile) -> list[tuple[Region, Region]]:
        """(written, read) regions, element by element in one order."""
        small, large = self.ends.of(call)
        rows, cols = small.valid_rows, small.valid_cols // _per_byte(small)
        if not rows * cols:
            return []
        col = int(call.col) // _per_byte(small)
        if is_boxed(small) and profile.name == "a5" and not _is_single(small):
            cols = -(-cols * small.dtype.size // BLOCK) * BLOCK // small.dtype.size
        if is_boxed(small) != is_boxed(large):  # the portable form: one 32-byte column after the other
            found = list(_by_columns(small, large, int(call.row), col))
        else:
            theirs = window(large, int(call.row), col, rows, cols)
            found = list(zip(window(small, 0, 0, rows, cols), theirs, strict=True))
        return found if self.ends.small == "dst" else [(b, a) for a, b in found]

    def regions(self: Any, call: SimpleNamespace, profile: Profile) -> list[tuple[int, int, Region]]:
        """The part in both tiles."""
        pieces = self.pieces(call, profile)
        written = [(0, int(Mode.WRITE), there) for there, _ in pieces]
        return [*written, *((1, int(Mode.READ), here) for _, here in pieces)]

    def compute(self: Any, call: SimpleNamespace, arrays: list[np.ndarray], profile: Profile) -> tuple[np.ndarray, ...]:
        """The elements in the order of what is written."""
        shapes = [tuple(n for n, _ in there.dims) for there, _ in self.pieces(call, profile)]
        return tuple(a.copy().reshape(*shape, -1) for a, shape in zip(arrays, shapes, strict=True))

    def expand(self: Any, call: SimpleNamespace, profile: Profile) -> Iterator[Group] | None:
        """The steps of the A2/A3 library, and those around a single element."""
        small = self.ends.of(call)[0]
        return self.steps(call, profile) if profile.name == "a2a3" or _is_single(small) else None

    def steps(self: Any, call: SimpleNamespace, profile: Profile) -> Iterator[Group]:
        """See :meth:`expand`."""
        small = self.ends.of(call)[0]
        steps: list[Step] = []
        for there, here in self.pieces(call, profile):
            if _is_single(small):
                moved = SCALAR_LOOP.step(call.dst, there, call.src, here)
                steps += [*flag_pair(Pipe.V, Pipe.S), moved, *flag_pair(Pipe.S, Pipe.V)]
                continue
            whole = there.length // BLOCK * BLOCK
            if whole:
                steps.append(
                    COPY_UB.step(call.dst, there._replace(length=whole), call.src, here._replace(length=whole))
                )
            if there.length > whole:
                left = [r._replace(start=r.start + whole, length=r.length - whole) for r in (there, here)]
                steps.append(VCOPY.step(call.dst, left[0], call.src, left[1]))
                steps += [Step(set_mask_norm, ()), Step(set_vector_mask, (-1, -1))]
        yield group(*steps)


def _by_columns(small: Tile, large: Tile, row: int, col: int) -> Iterator[tuple[Region, Region]]:
    """Pieces of two tiles of different layouts, one column each."""
    for number in range(small.valid_cols):
        (mine,) = window(small, 0, number, small.valid_rows, 1)
        (theirs,) = window(large, row, col + number, small.valid_rows, 1)
        yield mine, theirs


_DST: Operand = Out("dst")
_SRC: Operand = In("src")
_EXTRACT, _INSERT = _Ends("dst", "src"), _Ends("src", "dst")


@tile_instruction("textract", pipe=Pipe.V, asm=(Asm("textract", order=("src", "row", "col")),))
class TExtract(_Part):
    """Copy a part of src, from a row and a column on, to dst: as much as is valid in dst."""

    operands = (
        _DST, _SRC, Scalar("row", u16, optional=True, default=0, doc="first row of the part in src"),
        Scalar("col", u16, optional=True, default=0, doc="its first column"),
    )  # fmt: skip
    ends = _EXTRACT
    rules = _EXTRACT.rules("TEXTRACT")
    sources = (
        "pto-isa docs/isa/TEXTRACT",
        "pto-isa include/pto/npu/a2a3/TExtract.hpp, include/pto/npu/a5/TExtract.hpp, include/pto/cpu/TExtract.hpp",
    )


@tile_instruction("tinsert", pipe=Pipe.V, asm=(Asm("tinsert", order=("src", "row", "col")),))
class TInsert(_Part):
    """Copy src into dst, from a row and a column on: as much as is valid in src. The rest of dst stays."""

    operands = (
        Out("dst", doc="only the part is written"), _SRC, Scalar("row", u16, doc="first row of the part in dst"),
        Scalar("col", u16, doc="its first column"),
    )  # fmt: skip
    ends = _INSERT
    rules = _INSERT.rules("TINSERT")
    sources = (
        "pto-isa docs/isa/TINSERT",
        "pto-isa include/pto/npu/a2a3/TInsert.hpp, include/pto/npu/a5/TInsert.hpp, include/pto/cpu/TInsert.hpp",
    )
