"""TLOAD to L1: matrices from global memory, as they are or in boxes for the cube.

Sources: pto-isa docs/isa/TLOAD; include/pto/common/arch/memory/tload_common.hpp and include/pto/npu/a2a3/TLoad.hpp (A2/A3);
include/pto/common/arch/register/tload_common.hpp and include/pto/npu/a5/TLoad.hpp; include/pto/cpu/TLoad.hpp;
asc-devkit C-API cube_datamove (asc_copy_gm2l1_nd2nz, asc_copy_gm2l1_dn2nz): what fills the last box.
"""

from __future__ import annotations

from collections.abc import Iterator
from math import prod
from types import SimpleNamespace
from typing import NamedTuple

import numpy as np

from ascsim.diagnostics import Severity
from ascsim.isa.definition import A2A3, CHIPS, Definition, In, Out, Sort, tile_instruction
from ascsim.isa.rules import Rule, changed, dtype, finding, in_space, refuse, row_major, same_dtype, same_size
from ascsim.isa.tile.boxes import Grid, Order, order_of
from ascsim.isa.tile.transfer import (
    DN,
    ND,
    NZ,
    boxes_of_view,
    copies_nothing,
    global_lines,
    tile_lines,
    unsigned,
)  # fmt: skip
from ascsim.isa.transfer import BLOCK, whole_blocks
from ascsim.machine.dtypes import bf16, f8e4m3, f8e5m2, f8e8m0, f16, f32, hif8, i8, i16, i32, i64, u8, u16, u32, u64
from ascsim.machine.operands import GlobalTensor, Region, Tile
from ascsim.machine.trace import Mode
from ascsim.machine.words import BLayout, PadValue, Pipe, SLayout, Space
from ascsim.profiles import Profile

_PLAIN_TYPES = (i8, u8, i16, u16, i32, u32, i64, u64, f16, bf16, f32)
_ALL_TYPES = (*_PLAIN_TYPES, f8e4m3, f8e5m2, f8e8m0, hif8)
_NAMES = {ND: "ND", DN: "DN", NZ: "NZ"}
_WAYS = {
    "a2a3": ("ND to ND", "DN to DN", "NZ to NZ", "ND to NZ", "DN to ZN"),
    "a5": ("ND to ND", "DN to DN", "NZ to NZ", "ND to NZ", "DN to NZ", "DN to ZN"),
    "cpu": ("ND to ND", "DN to DN", "NZ to NZ", "ND to NZ", "DN to NZ", "ND to ZN", "DN to ZN"),
}
"""From what layout of a view to what layout of a tile a profile copies."""
_MOST = (1 << 16) - 1
"""What the numbers of an A2/A3's copy into boxes hold."""


def _layout(tile: Tile) -> str:
    if tile.slayout == SLayout.NONE_BOX:
        return "ND" if tile.blayout == BLayout.ROW_MAJOR else "DN"
    order = order_of(tile)
    return order.name if order else "another"


def _way(call: SimpleNamespace) -> str:
    return f"{_NAMES.get(call.src.layout, 'another layout')} to {_layout(call.dst)}"


def _makes_boxes(call: SimpleNamespace) -> bool:
    """Whether a view without boxes becomes a tile with boxes."""
    return call.src.layout != NZ and call.dst.slayout != SLayout.NONE_BOX


# Rules


def _unknown_way(definition: Definition, call: SimpleNamespace, profile: Profile) -> str | None:
    way, ways = _way(call), _WAYS[profile.name]
    return None if way in ways else f"loads {way}; {profile.name} loads {', '.join(ways)}"


def _another_way(call: SimpleNamespace, profile: Profile) -> Iterator[SimpleNamespace]:
    yield changed(changed(call, "src", layout=NZ), "dst", slayout=SLayout.NONE_BOX, cols=64)
    yield changed(call, "dst", blayout=BLayout.ROW_MAJOR, slayout=SLayout.ROW_MAJOR)


def _wide(definition: Definition, call: SimpleNamespace, profile: Profile) -> str | None:
    if call.dst.dtype.size == 8 and call.dst.slayout != SLayout.NONE_BOX:
        return "64-bit elements are loaded ND to ND or DN to DN only"
    return None


def _made_wide(call: SimpleNamespace, profile: Profile) -> Iterator[SimpleNamespace]:
    yield changed(changed(call, "dst", dtype=i64), "src", dtype=i64)


def _deep(definition: Definition, call: SimpleNamespace, profile: Profile) -> str | None:
    if _makes_boxes(call) and call.src.shape[:3] != (1, 1, 1):
        return f"src has shape {'x'.join(map(str, call.src.shape))}; a copy into boxes takes two dimensions"
    return None


def _made_deep(call: SimpleNamespace, profile: Profile) -> Iterator[SimpleNamespace]:
    yield changed(call, "src", shape=(1, 1, 2, *call.src.shape[3:]))


def _high(definition: Definition, call: SimpleNamespace, profile: Profile) -> str | None:
    lines = call.dst.cols if _layout(call.dst) == "ZN" else call.dst.rows
    return f"dst has {lines} lines; at most 16384" if lines > 16384 else None


def _made_high(call: SimpleNamespace, profile: Profile) -> Iterator[SimpleNamespace]:
    yield changed(call, "dst", rows=16400)


def _other_shape(definition: Definition, call: SimpleNamespace, profile: Profile) -> str | None:
    tile, view = call.dst, call.src
    outer = prod(view.shape[:3])
    rows, cols = outer * view.shape[3], view.shape[4]
    if view.layout == DN:
        rows, cols = view.shape[3], outer * view.shape[4]
    elif view.layout == NZ:
        rows, cols = view.shape[2] * view.shape[3], view.shape[0] * view.shape[1] * view.shape[4]
    if (tile.valid_rows, tile.valid_cols) == (rows, cols):
        return None
    shape = "x".join(str(n) for n in view.shape)
    return f"src has shape {shape}, {rows} rows by {cols} columns; dst has {tile.valid_rows}x{tile.valid_cols} valid"


def _with_other_shape(call: SimpleNamespace, profile: Profile) -> Iterator[SimpleNamespace]:
    yield changed(call, "dst", valid_rows=call.dst.valid_rows - 1)
    yield changed(call, "dst", valid_cols=call.dst.valid_cols - 1)


def _numbers(view: GlobalTensor) -> tuple[int, int, int]:
    """(lines, elements of a line, from line to line) of a view in two dimensions."""
    by_rows = view.layout == ND
    line, along = (3, 4) if by_rows else (4, 3)
    return view.shape[line], view.shape[along], view.strides[line]


def _narrow(definition: Definition, call: SimpleNamespace, profile: Profile) -> str | None:
    if not _makes_boxes(call):
        return None
    lines, length, pitch = _numbers(call.src)
    for said, number, most in (("lines", lines, 16384), ("elements a line", length, _MOST),
                               ("elements from line to line", pitch, _MOST)):  # fmt: skip
        if number > most:
            return f"src has {number} {said}; at most {most}"
    return None


def _made_narrow(call: SimpleNamespace, profile: Profile) -> Iterator[SimpleNamespace]:
    axis = 3 if call.src.layout == ND else 4
    strides = list(call.src.strides)
    strides[axis] = 1 << 16
    yield changed(call, "src", strides=tuple(strides))


def _loose(definition: Definition, call: SimpleNamespace, profile: Profile) -> str | None:
    if call.src.layout == NZ:
        return None
    axis = 4 if call.src.layout == ND else 3
    if call.src.shape[axis] == 1 or call.src.strides[axis] == 1:
        return None
    return f"src has stride {call.src.strides[axis]} along its lines (dimension {axis}); the copy takes them for contiguous"


def _made_loose(call: SimpleNamespace, profile: Profile) -> Iterator[SimpleNamespace]:
    yield changed(call, "src", strides=(*call.src.strides[:4], 2))


def _ragged(definition: Definition, call: SimpleNamespace, profile: Profile) -> str | None:
    tile = call.dst
    if tile.slayout != SLayout.NONE_BOX or _single_line(tile):
        return None
    length = tile.valid_cols if tile.blayout == BLayout.ROW_MAJOR else tile.valid_rows
    nbytes = length * tile.dtype.size
    return (
        f"lines of dst have {nbytes} valid bytes; whole 32-byte blocks of them are copied" if nbytes % BLOCK else None
    )


def _made_ragged(call: SimpleNamespace, profile: Profile) -> Iterator[SimpleNamespace]:
    plain = changed(call, "dst", blayout=BLayout.ROW_MAJOR, slayout=SLayout.NONE_BOX, valid_cols=call.dst.cols - 1)
    yield changed(plain, "src", shape=(*call.src.shape[:4], call.dst.cols - 1))


def _single_line(tile: Tile) -> bool:
    """A tile of one row (ND) or column (DN), which A2/A3 copy as a matrix in boxes of one line."""
    return (tile.rows if tile.blayout == BLayout.ROW_MAJOR else tile.cols) == 1


def _padded(definition: Definition, call: SimpleNamespace, profile: Profile) -> str | None:
    return "dst has a PadValue" if call.dst.pad not in (PadValue.NULL, PadValue.ZERO) else None


def _made_padded(call: SimpleNamespace, profile: Profile) -> Iterator[SimpleNamespace]:
    yield changed(call, "dst", pad=PadValue.MAX)


def _no_rows(definition: Definition, call: SimpleNamespace, profile: Profile) -> str | None:
    return None if call.src.layout == ND else "src is not ND"


def _made_no_rows(call: SimpleNamespace, profile: Profile) -> Iterator[SimpleNamespace]:
    yield changed(call, "src", layout=DN)


class _Matrix(NamedTuple):
    """What a copy into boxes moves: rows and columns, as many elements, and where they lie in global memory."""

    rows: int
    cols: int
    region: Region
    turned: bool
    """The region's lines are columns."""


def _matrix(call: SimpleNamespace, profile: Profile) -> _Matrix:
    view, tile = call.src, call.dst
    kind, size = unsigned(view.dtype), view.dtype.size
    by_rows = view.layout == ND
    lines, length, pitch = _numbers(view)
    if profile.name == "a2a3":
        lines, length, pitch = lines & _MOST, length & _MOST, pitch & _MOST
    elif profile.name == "a5":  # which takes the number of rows from the view, and what it calls D from the tile
        rows, cols = (
            (view.shape[3], tile.valid_cols) if order_of(tile) is Order.NZ else (tile.valid_rows, view.shape[4])
        )
        lines, length = (rows, cols) if by_rows else (cols, rows)
    step = view.strides[4 if by_rows else 3]
    rows, cols = (lines, length) if by_rows else (length, lines)
    if profile.is_chip or step == 1 or length == 1:
        region = Region(Space.GM, view.address, length * size, ((lines, pitch * size),), kind)
    else:
        region = Region(Space.GM, view.address, size, ((lines, pitch * size), (length, step * size)), kind)
    return _Matrix(rows, cols, region, not by_rows)


def _rules() -> tuple[Rule, ...]:
    mend = "Set the tile's valid rows and columns (or the view's shape) to what is copied."
    said = "the valid region of dst has the shape of src"
    return (
        dtype("dst", a2a3=_PLAIN_TYPES, a5=_ALL_TYPES, cpu=_ALL_TYPES),
        in_space(Space.L1, "dst"),
        same_size("dst", "src"),
        *(
            refuse("L004", f"the copy is {', '.join(ways[:-1])} or {ways[-1]}", _unknown_way, breaks=_another_way,
                   profiles=(name,), mend="Declare the tile or the GlobalTensor in one of these layouts.")
            for name, ways in _WAYS.items()
        ),
        refuse("L004", "64-bit elements are loaded ND to ND or DN to DN", _wide, breaks=_made_wide,
               mend="Load them as they lie."),
        boxes_of_view("dst", "src"),
        refuse("L007", "a view that becomes a tile in boxes has two dimensions", _deep, breaks=_made_deep,
               mend="Load it part by part, with a view of two dimensions each."),
        refuse("L006", "dst has at most 16384 rows (ZN: columns)", _high, breaks=_made_high, profiles=CHIPS,
               mend="Use a lower tile."),
        refuse("L012", "dst has no PadValue, or zero", _padded, breaks=_made_padded,
               mend="Use PadValue::Null or PadValue::Zero."),
        refuse("L007", said, _other_shape, breaks=_with_other_shape, profiles=("cpu",), mend=mend),
        finding("TLOAD-5", f"{said} (L1)", _other_shape, breaks=_with_other_shape, profiles=CHIPS,
                severity=Severity.WARNING, mend=mend,
                why="The library takes how much it copies from the view, on the A5 in part from the tile, and compares "
                "neither with the other."),
        finding("TLOAD-6", "lines, their length and their distance are numbers of 16 bits", _narrow, breaks=_made_narrow,
                profiles=A2A3, why="The library checks it in debug builds only; otherwise the upper bits are lost.",
                mend="Load the matrix in parts; a longer distance from row to row needs a copy for each row."),
        finding("TLOAD-7", "src is contiguous along its lines (L1)", _loose, breaks=_made_loose, profiles=CHIPS,
                why="The copy never looks at the stride of the dimension along its lines.",
                mend="Say with the GlobalTensor's layout (ND, DN) which dimension is contiguous."),
        finding("TLOAD-8", "lines of tiles without boxes are whole 32-byte blocks (L1)", _ragged, breaks=_made_ragged,
                profiles=A2A3, why="The library checks it in debug builds only, and counts in blocks.",
                mend="Load a multiple of 32 bytes a line."),
    )  # fmt: skip


@tile_instruction("tload", pipe=Pipe.MTE2, core="aic")
class TLoadMat:
    """Load a matrix from global memory to L1, as it lies there or in boxes for the cube.

    ND to NZ makes boxes of 16 rows by 32 bytes, one column of boxes after the other: what TMOV and TEXTRACT take to L0A
    and L0B. DN to ZN is the same of the transposed matrix. What comes in boxes already is copied NZ to NZ.
    """

    operands = (
        Out("dst", lies_in=(Space.L1,)),
        In("src", Sort.GLOBAL, doc="a view of global memory, five dimensions with strides"),
    )
    rules = _rules()
    notes = (
        "Columns (ZN: rows) that do not fill a box of their own are filled up with zeros to its end. Rows (ZN: columns) "
        "that the view has not are left alone.",
        "The public CPU simulator fills the whole tile with zeros before it loads.",
    )
    assumed = (
        "A2/A3: what fills a last box up is zero, as the page of the A5's copy tells; that of the A2/A3's does not say.",
    )
    sources = (
        "pto-isa docs/isa/TLOAD",
        "pto-isa include/pto/common/arch/{memory,register}/tload_common.hpp",
        "asc-devkit C-API cube_datamove/asc_copy_gm2l1_nd2nz, asc_copy_gm2l1_dn2nz",
    )

    def regions(self, call: SimpleNamespace, profile: Profile) -> list[tuple[int, int, Region]]:
        """What is written of the tile; the view."""
        if _makes_boxes(call):
            moved = _matrix(call, profile)
            if not moved.rows * moved.cols:
                return []
            return [(0, Mode.WRITE, self._grid(call).region(moved.rows, moved.cols)), (1, Mode.READ, moved.region)]
        if copies_nothing(call.dst, call.src, profile):
            return []
        written = tile_lines(call.dst, call.src, profile, self._fills_blocks(call, profile))
        read = global_lines(call.src, call.dst, profile, loads=False)
        if self._in_blocks(call, profile):
            length = written.length // BLOCK * BLOCK
            written, read = written._replace(length=length), read._replace(length=length)
        return [(0, Mode.WRITE, written), (1, Mode.READ, read)] if written.length else []

    def compute(self, call: SimpleNamespace, arrays: list[np.ndarray], profile: Profile) -> np.ndarray | tuple:
        """The view's elements in the tile's order."""
        if not arrays:
            return ()
        if _makes_boxes(call):
            moved = _matrix(call, profile)
            matrix = arrays[0].reshape((moved.cols, moved.rows) if moved.turned else (moved.rows, moved.cols))
            return self._grid(call).boxed(matrix.T if moved.turned else matrix)
        tile = call.dst
        if call.src.layout == NZ:
            return arrays[0].reshape(*call.src.shape[:2], -1)
        length = tile.valid_cols if call.src.layout == ND else tile.valid_rows
        if self._in_blocks(call, profile):
            length = length * tile.dtype.size // BLOCK * BLOCK // tile.dtype.size
        lines = arrays[0].reshape(-1, length)
        if not self._fills_blocks(call, profile):
            return lines
        filled = np.zeros((len(lines), whole_blocks(length * tile.dtype.size) // tile.dtype.size), lines.dtype)
        filled[:, :length] = lines
        return filled

    @staticmethod
    def _grid(call: SimpleNamespace) -> Grid:
        tile, order = call.dst, order_of(call.dst)
        assert order is not None
        return Grid(tile.space, tile.address, unsigned(tile.dtype), order, tile.rows, tile.cols)

    @staticmethod
    def _fills_blocks(call: SimpleNamespace, profile: Profile) -> bool:
        """Whether lines without boxes are filled up to whole blocks."""
        return call.src.layout != NZ and (profile.name == "a5" or (profile.name == "a2a3" and _single_line(call.dst)))

    @staticmethod
    def _in_blocks(call: SimpleNamespace, profile: Profile) -> bool:
        """Whether of each line only whole blocks are copied."""
        return profile.name == "a2a3" and call.src.layout != NZ and not _single_line(call.dst)


@tile_instruction("tload", pipe=Pipe.MTE2, core="aic", profiles=("cpu",))
class TLoadBias:
    """Load a row from global memory to BT, where TMATMUL_BIAS finds it. Chips go by way of L1."""

    operands = (Out("dst", lies_in=(Space.BT,)), In("src", Sort.GLOBAL, doc="a view of one row"))
    rules = (
        same_dtype("dst", "src"),
        in_space(Space.BT, "dst"),
        row_major("dst"),
        refuse("L004", "src is ND", _no_rows, breaks=_made_no_rows, mend="Declare the GlobalTensor with Layout::ND."),
        refuse("L007", "the valid region of dst has the shape of src", _other_shape, breaks=_with_other_shape,
               mend="Set the tile's valid rows and columns (or the view's shape) to what is copied."),
    )  # fmt: skip
    sources = ("pto-isa include/pto/cpu/TLoad.hpp, and the tests of TMATMUL_BIAS beside it",)

    def compute(self, call: SimpleNamespace, arrays: list[np.ndarray], profile: Profile) -> np.ndarray:
        """The elements, one row after the other."""
        return arrays[0].reshape(call.dst.valid_rows, call.dst.valid_cols)
