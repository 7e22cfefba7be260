"""TTRANS: rows become columns.

Sources: pto-isa docs/isa/TTRANS; include/pto/npu/a2a3/TTrans.hpp, include/pto/npu/a5/TTrans.hpp, include/pto/cpu/TTrans.hpp.
"""

from __future__ import annotations

from collections.abc import Iterator
from types import SimpleNamespace
from typing import NamedTuple

import numpy as np

from ascsim.isa.definition import A2A3, A5, CHIPS, Asm, Definition, In, Out, Scratch, tile_instruction
from ascsim.isa.rules import changed, dtype, finding, in_space, plain_layout, refuse, row_major, same_size
from ascsim.isa.steps import COPY_UB, SCALAR_LOOP, Move, elements, flag_pair, group
from ascsim.isa.sync import pipe_barrier
from ascsim.isa.transfer import BLOCK, whole_blocks
from ascsim.machine.core import Group, Step
from ascsim.machine.dtypes import bf16, f8e4m3, f8e5m2, f8e8m0, f16, f32, hif8, i8, i16, i32, u8, u16, u32
from ascsim.machine.operands import Region
from ascsim.machine.trace import Mode
from ascsim.machine.words import BLayout, Pipe, Space
from ascsim.profiles import Profile

_CHIP_TYPES = (f32, i32, u32, f16, bf16, i16, u16, i8, u8)
_ALL_TYPES = (*_CHIP_TYPES, f8e4m3, f8e5m2, f8e8m0, hif8)
_CONVERSION = {size: Move(f"scatter_vnchwconv_b{8 * size}", Pipe.V) for size in (1, 2, 4)}
_UNUSED_ROWS = {
    size: Move(f"scatter_vnchwconv_b{8 * size}", Pipe.V, "scatter_vnchwconv, rows without a source", counts_reads=False)
    for size in (1, 2, 4)
}


class Blocks(NamedTuple):
    """How the A2/A3 library parts a tile: sub-tiles of ``height`` rows by ``width`` columns, one 32-byte block wide."""

    rows: int
    cols: int
    size: int
    height: int
    width: int
    across: int
    """Sub-tiles side by side, the last one as a whole."""
    tmp_stride: int
    """Elements of a row of tmp."""
    converts: bool
    """scatter_vnchwconv by way of tmp, not a scalar loop."""

    @staticmethod
    def of(call: SimpleNamespace) -> Blocks:
        """The parts of this call's source."""
        rows, cols, size = call.src.valid_rows, call.src.valid_cols, call.src.dtype.size
        height, width = (32 if size == 1 else 16), BLOCK // size
        aligned = _row_stride(call.dst) % height == 0 and _row_stride(call.src) % width == 0
        return Blocks(rows, cols, size, height, width, -(-cols // width), -(-rows // height) * height, aligned)

    @property
    def tmp_bytes(self) -> int:
        """Bytes of tmp that are written."""
        return self.across * self.width * self.tmp_stride * self.size if self.converts else 0


def _row_stride(tile: object) -> int:
    """The library's RowStride, in elements."""
    return tile.cols if tile.blayout == BLayout.ROW_MAJOR else 1  # type: ignore[attr-defined]


# Rules


def _small_dst(definition: Definition, call: SimpleNamespace, profile: Profile) -> str | None:
    dst, src = call.dst, call.src
    if dst.rows >= src.valid_cols and dst.cols >= src.valid_rows:
        return None
    return f"dst is {dst.rows}x{dst.cols}; the {src.valid_rows}x{src.valid_cols} valid elements of src need "\
           f"{src.valid_cols}x{src.valid_rows}"  # fmt: skip


def _with_small_dst(call: SimpleNamespace, profile: Profile) -> Iterator[SimpleNamespace]:
    yield changed(call, "dst", rows=call.src.valid_cols - 1, valid_rows=1)


def _other_valid(definition: Definition, call: SimpleNamespace, profile: Profile) -> str | None:
    dst, src = call.dst, call.src
    if (dst.valid_rows, dst.valid_cols) == (src.valid_cols, src.valid_rows):
        return None
    return f"dst has {dst.valid_rows}x{dst.valid_cols} valid and src {src.valid_rows}x{src.valid_cols}"


def _with_other_valid(call: SimpleNamespace, profile: Profile) -> Iterator[SimpleNamespace]:
    yield changed(call, "dst", valid_rows=call.dst.valid_rows - 1)


def _small_tmp(definition: Definition, call: SimpleNamespace, profile: Profile) -> str | None:
    need, has = Blocks.of(call).tmp_bytes, call.tmp.nbytes
    return None if has >= need else f"tmp has {has} bytes and {need} are written: the last {need - has} fall beyond it"


def _with_small_tmp(call: SimpleNamespace, profile: Profile) -> Iterator[SimpleNamespace]:
    yield changed(call, "tmp", rows=1, valid_rows=1, cols=32, valid_cols=32)


def _far_index(definition: Definition, call: SimpleNamespace, profile: Profile) -> str | None:
    tile = call.dst if call.src.rows < call.src.cols else call.src
    last = (tile.rows - 1) * _row_stride(tile) + tile.cols - 1
    if tile.dtype.size == 4 or last <= 0xFFFF:
        return None
    return f"{'dst' if tile is call.dst else 'src'} is {tile.rows}x{tile.cols}: its element {last} has no 16-bit index"


def _with_far_index(call: SimpleNamespace, profile: Profile) -> Iterator[SimpleNamespace]:
    far = changed(changed(call, "src", dtype=i16, rows=512, cols=256), "dst", dtype=i16)
    yield changed(far, "tmp", dtype=i16)


def _by_scalars(definition: Definition, call: SimpleNamespace, profile: Profile) -> str | None:
    dst = call.dst
    if dst.blayout == BLayout.ROW_MAJOR:
        return None
    return "dst is column-major: the library writes element (i, j) to i + j, one over the other"


def _with_columns(call: SimpleNamespace, profile: Profile) -> Iterator[SimpleNamespace]:
    yield changed(call, "dst", blayout=BLayout.COL_MAJOR)


@tile_instruction("ttrans", pipe=Pipe.V, asm=(Asm("ttrans", order=("src", "tmp")),))
class TTrans:
    """Transpose a tile: element (i, j) of src becomes element (j, i) of dst."""

    operands = (
        Out("dst", doc="as many valid rows as src has valid columns, and the other way round"),
        In("src"),
        Scratch(
            "tmp", used_on=A2A3, doc="where A2/A3 put 16-row (8-bit types: 32-row) sub-tiles together; unused elsewhere"
        ),
    )
    rules = (
        dtype("src", a2a3=_CHIP_TYPES, a5=_ALL_TYPES, cpu=_ALL_TYPES),
        same_size("dst", "src"),
        row_major("src"),
        plain_layout("dst"),
        in_space(Space.UB, "dst", "src"),
        refuse("L007", "dst has the valid shape of src, turned", _other_valid, breaks=_with_other_valid,
               profiles=("cpu",), mend="Set the valid rows and columns of dst to the valid columns and rows of src."),
        refuse("L006", "every element has a 16-bit index (8- and 16-bit types)", _far_index, breaks=_with_far_index,
               profiles=A5, mend="Transpose a smaller tile at a time."),
        finding("TTRANS-1", "dst has room for src turned", _small_dst, breaks=_with_small_dst, profiles=CHIPS,
                why="The library takes the size from the valid region of src and never looks at that of dst.",
                mend="Give dst as many rows as src has valid columns, and as many columns as src has valid rows."),
        finding("TTRANS-2", "tmp holds whole sub-tiles", _small_tmp, breaks=_with_small_tmp, profiles=A2A3,
                why="Sub-tiles are 32 bytes wide and 16 rows (8-bit types: 32) high, and are put together in tmp as a "
                "whole; the manual's formula rounds the rows up but not the columns.",
                mend="Give tmp the valid columns of src rounded up to 32 bytes, times its valid rows rounded up to 16 (32)."),
        finding("TTRANS-3", "dst is row-major", _by_scalars, breaks=_with_columns, profiles=CHIPS,
                why="The library takes the row stride of dst, which is 1 for a column-major tile, as the distance of rows.",
                mend="Declare dst row-major."),
    )  # fmt: skip
    values = "bits"
    notes = (
        "The size is that of the valid region of src; on chips the valid region of dst has no effect.",
        "A2/A3, where the columns of dst are a multiple of 16 (8-bit types: 32): scatter_vnchwconv to tmp, a barrier on "
        "V, a copy to dst in whole 32-byte blocks. Of the last block of a row, what lies beyond the valid rows of src "
        "is overwritten, with what stands at the start of UB; that read is not in the trace, for nothing depends on it.",
        "A2/A3 otherwise: a loop on the scalar pipe, with flags V to S before and S to V after it (event 0).",
        "A5: one vector function; tmp is not used.",
    )
    sources = (
        "pto-isa docs/isa/TTRANS",
        "pto-isa include/pto/npu/a2a3/TTrans.hpp, include/pto/npu/a5/TTrans.hpp, include/pto/cpu/TTrans.hpp",
    )

    def regions(self, call: SimpleNamespace, profile: Profile) -> list[tuple[int, int, Region]]:
        """The valid region of src, and as much of dst, in the order of src."""
        rows, cols = call.src.valid_rows, call.src.valid_cols
        return [(0, Mode.WRITE, _turned(call, profile)), (1, Mode.READ, call.src.region(rows, cols))]

    def compute(self, call: SimpleNamespace, arrays: list[np.ndarray], profile: Profile) -> np.ndarray:
        """The elements in the order of src."""
        rows, cols = call.src.valid_rows, call.src.valid_cols
        return arrays[0].reshape(rows, cols, 1)

    def expand(self, call: SimpleNamespace, profile: Profile) -> Iterator[Group] | None:
        """The steps of the A2/A3 library."""
        return _expand(call, profile) if profile.name == "a2a3" else None


def _turned(call: SimpleNamespace, profile: Profile) -> Region:
    """dst in the order of src: (rows of src, columns of src)."""
    dst, size = call.dst, call.dst.dtype.size
    row, col = dst.row_bytes, dst.col_bytes
    if profile.is_chip:
        row, col = _row_stride(dst) * size, size
    dims = ((call.src.valid_rows, col), (call.src.valid_cols, row))
    return Region(dst.space, dst.address, size, dims, dst.dtype.bits_dtype)


def _expand(call: SimpleNamespace, profile: Profile) -> Iterator[Group]:
    dst, src, tmp, parts = call.dst, call.src, call.tmp, Blocks.of(call)
    if not parts.converts:
        read = elements(src, 0, ((parts.rows, src.cols), (parts.cols, 1)))
        yield group(
            *flag_pair(Pipe.V, Pipe.S), SCALAR_LOOP.step(dst, _turned(call, profile), src, read),
            *flag_pair(Pipe.S, Pipe.V),
        )  # fmt: skip
        return
    size, wide = parts.size, parts.across * parts.width
    kind = src.dtype.bits_dtype
    steps: list[Step] = []
    whole = parts.rows // parts.height * parts.height
    for first, count in ((0, whole), (whole, parts.rows - whole)):
        if count:
            there = Region(
                tmp.space, tmp.address + first * size, count * size, ((wide, parts.tmp_stride * size),), kind
            )
            read = Region(
                src.space, src.address + first * src.row_bytes, size, ((wide, size), (count, src.row_bytes)), kind
            )
            steps.append(_CONVERSION[size].step(tmp, there, src, read))
    unused = parts.tmp_stride - parts.rows
    if unused:
        there = Region(
            tmp.space, tmp.address + parts.rows * size, unused * size, ((wide, parts.tmp_stride * size),), kind
        )
        read = Region(Space.UB, 0, size, ((wide, size), (unused, 0)), kind)
        steps.append(_UNUSED_ROWS[size].step(tmp, there, tmp, read))
    burst = whole_blocks(parts.rows * size)
    steps += [
        Step(pipe_barrier, (Pipe.V,)),
        COPY_UB.step(
            dst, Region(dst.space, dst.address, burst, ((parts.cols, dst.row_bytes),), kind),
            tmp, Region(tmp.space, tmp.address, burst, ((parts.cols, parts.tmp_stride * size),), kind),
        ),
    ]  # fmt: skip
    yield group(*steps)
