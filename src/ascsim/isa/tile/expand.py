"""TROWEXPAND and TCOLEXPAND: the first element of each row across it, the first row down all rows.

Sources: pto-isa docs/isa/TROWEXPAND, TCOLEXPAND; include/pto/npu/a2a3 and a5: TRowExpand.hpp, TColExpand.hpp;
include/pto/npu/a5/Int64Rearrange.hpp; include/pto/cpu TRowExpand.hpp, TColExpand.hpp.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import numpy as np

from ascsim.isa.definition import A5, CHIPS, Definition, In, Out, tile_instruction
from ascsim.isa.rules import dtype, finding, in_space, plain_layout, refuse, row_major, same_dtype
from ascsim.isa.tile.elementwise import EVERY, WORDS_OF_INT64, changed, first_64
from ascsim.isa.transfer import whole_blocks
from ascsim.machine.dtypes import i64
from ascsim.machine.operands import Region
from ascsim.machine.trace import Mode
from ascsim.machine.words import BLayout, Pipe, Space
from ascsim.profiles import Profile

_NARROW = tuple(k for k in EVERY if k.size < 8)
_BLOCK_BYTES = 32
_WHY = "The library checks it in debug builds only."


def _columns(call: SimpleNamespace, profile: Profile) -> int:
    """Columns that are written: of 64-bit elements the A5 stores one register."""
    cols = int(call.dst.valid_cols)
    return min(cols, WORDS_OF_INT64) if call.dst.dtype.size == 8 and profile.name == "a5" else cols


# A number a row


def _is_line(call: SimpleNamespace, profile: Profile) -> bool:
    """Whether the A2/A3 spread a row of numbers, one to each row of dst (TRowExpandBrcb)."""
    dst, src = call.dst, call.src
    whole = all((t.valid_rows, t.valid_cols) == (t.rows, t.cols) for t in (dst, src))
    fits = dst.cols * dst.dtype.size == _BLOCK_BYTES and dst.dtype.size in (2, 4)
    row = src.blayout == BLayout.ROW_MAJOR and src.rows == 1 and src.cols == dst.rows
    return profile.name == "a2a3" and whole and fits and row


def _other_rows(definition: Definition, call: SimpleNamespace, profile: Profile) -> str | None:
    dst, src = call.dst, call.src
    if dst.valid_rows == src.valid_rows or _is_line(call, profile):
        return None
    return f"dst has {dst.valid_rows} valid rows, src {src.valid_rows}"


def _with_other_rows(call: SimpleNamespace, profile: Profile) -> Iterator[SimpleNamespace]:
    yield changed(call, "dst", valid_rows=call.dst.valid_rows - 1)


def _empty(definition: Definition, call: SimpleNamespace, profile: Profile) -> str | None:
    for name in ("src", "dst"):
        tile = getattr(call, name)
        if not tile.valid_rows or not tile.valid_cols:
            return f"{name} has {tile.valid_rows}x{tile.valid_cols} valid"
    return None


def _with_nothing(call: SimpleNamespace, profile: Profile) -> Iterator[SimpleNamespace]:
    yield changed(call, "src", valid_cols=0)


def _many_columns(definition: Definition, call: SimpleNamespace, profile: Profile) -> str | None:
    src = call.src
    return f"src has {src.valid_cols} valid columns" if src.valid_cols != 1 and src.valid_cols == src.cols else None


def _with_all_columns(call: SimpleNamespace, profile: Profile) -> Iterator[SimpleNamespace]:
    yield changed(call, "src", blayout=BLayout.ROW_MAJOR, cols=64, valid_cols=64)


def _wide_column(definition: Definition, call: SimpleNamespace, profile: Profile) -> str | None:
    src = call.src
    wide = src.blayout == BLayout.COL_MAJOR and src.cols > 1
    return f"src is column-major with {src.cols} columns" if wide else None


def _with_wide_column(call: SimpleNamespace, profile: Profile) -> Iterator[SimpleNamespace]:
    call = changed(call, "dst", rows=32, valid_rows=32)
    yield changed(call, "src", blayout=BLayout.COL_MAJOR, rows=32, cols=2, valid_rows=32, valid_cols=1)


def _with_wide_dst(call: SimpleNamespace, profile: Profile) -> Iterator[SimpleNamespace]:
    yield changed(changed(call, "src", dtype=i64), "dst", dtype=i64, cols=128, valid_cols=128)


@tile_instruction("trowexpand", pipe=Pipe.V)
class TRowExpand:
    """Write the first element of each row of ``src`` to all of that row of ``dst``."""

    operands = (Out("dst"), In("src", doc="its first column counts"))
    values = "bits"
    rules = (
        dtype("dst", a2a3=_NARROW, a5=EVERY, cpu=EVERY),
        same_dtype("dst", "src"),
        row_major("dst"),
        plain_layout("src"),
        in_space(Space.UB, "dst", "src"),
        refuse("L007", "dst has the valid rows of src", _other_rows, breaks=_with_other_rows, profiles=("cpu",)),
        refuse("L007", "src has one valid column, or a dynamic valid region", _many_columns, breaks=_with_all_columns,
               profiles=A5, mend="Give src one valid column."),
        finding("TROWEXPAND-1", "dst has the valid rows of src", _other_rows, breaks=_with_other_rows, profiles=CHIPS,
                why=f"{_WHY} It writes the rows of dst.", mend="Give both the same valid rows."),
        finding("TROWEXPAND-2", "src and dst are not empty", _empty, breaks=_with_nothing, profiles=CHIPS, why=_WHY,
                mend="Leave the call out."),
        finding("TROWEXPAND-3", "a column-major src has one column", _wide_column, breaks=_with_wide_column, profiles=A5,
                why="The library takes an element for each row, as many elements apart as src has columns.",
                mend="Give src one column."),
        replace(first_64("TROWEXPAND-4"), breaks=_with_wide_dst),
    )  # fmt: skip
    over = "dst"
    notes = (
        "The A2/A3 read each number by the scalar unit; the flags between the pipes are part of the instruction. Of 8-bit "
        "elements they write pairs: with an odd number of valid columns one more of each row.",
        "A2/A3: where dst is all valid with rows of 32 bytes, and src one row that is all valid, with an element for each row "
        "of dst, row i becomes element i of src.",
        "A5: a src with more than one valid column is refused where all its columns are valid: its type says so then. With a "
        "dynamic valid region the library takes it.",
    )
    sources = ("pto-isa docs/isa/TROWEXPAND", "pto-isa include/pto/npu/a2a3 and a5: TRowExpand.hpp")

    def regions(self: Any, call: SimpleNamespace, profile: Profile) -> list[tuple[int, int, Region]]:
        """An element for each row, the valid region of dst."""
        dst, src = call.dst, call.src
        size = dst.dtype.size
        cols = _columns(call, profile)
        if profile.name == "a2a3" and size == 1:
            cols += cols % 2
        if not dst.valid_rows or not cols:
            return []
        pitch = src.row_bytes if src.blayout == BLayout.ROW_MAJOR else size
        if profile.name == "a5" and src.blayout == BLayout.COL_MAJOR:
            pitch = size * src.cols
        if _is_line(call, profile):
            pitch = size
        firsts = Region(src.space, src.address, size, ((dst.valid_rows, pitch),), src.dtype.numpy)
        return [(1, int(Mode.READ), firsts), (0, int(Mode.WRITE), dst.region(dst.valid_rows, cols))]

    def compute(self: Any, call: SimpleNamespace, arrays: list[np.ndarray], profile: Profile) -> tuple[np.ndarray, ...]:
        """Each number, for all columns."""
        return tuple(array.copy() for array in arrays)


# A row


def _other_columns(definition: Definition, call: SimpleNamespace, profile: Profile) -> str | None:
    dst, src = call.dst, call.src
    return None if dst.valid_cols == src.valid_cols else f"dst has {dst.valid_cols} valid columns, src {src.valid_cols}"


def _with_other_columns(call: SimpleNamespace, profile: Profile) -> Iterator[SimpleNamespace]:
    yield changed(call, "dst", valid_cols=call.dst.valid_cols - 1)


@tile_instruction("tcolexpand", pipe=Pipe.V)
class TColExpand:
    """Write the first row of ``src`` to every row of ``dst``."""

    operands = (Out("dst"), In("src", doc="its first row counts"))
    values = "bits"
    rules = (
        dtype("dst", a2a3=_NARROW, a5=EVERY, cpu=EVERY),
        same_dtype("dst", "src"),
        row_major("dst", "src"),
        in_space(Space.UB, "dst", "src"),
        refuse("L007", "dst has the valid columns of src", _other_columns, breaks=_with_other_columns, profiles=("cpu",)),
        finding("TCOLEXPAND-1", "dst has the valid columns of src", _other_columns, breaks=_with_other_columns,
                profiles=CHIPS, why="The A5's library checks it in debug builds, the A2/A3's never; they take those of dst.",
                mend="Give both the same valid columns."),
        first_64("TCOLEXPAND-2"),
    )  # fmt: skip
    over = "dst"
    notes = (
        "A2/A3 copy whole blocks of 32 bytes: what lies beyond the valid columns of src comes along.",
        "An empty tile: nothing is written.",
    )
    sources = ("pto-isa docs/isa/TCOLEXPAND", "pto-isa include/pto/npu/a2a3 and a5: TColExpand.hpp")

    def regions(self: Any, call: SimpleNamespace, profile: Profile) -> list[tuple[int, int, Region]]:
        """A row, the valid region of dst; on the A2/A3 in whole blocks."""
        dst, src = call.dst, call.src
        if not (dst.valid_rows and dst.valid_cols and src.valid_rows and src.valid_cols):
            return []
        length = _columns(call, profile) * dst.dtype.size
        if profile.name == "a2a3":
            length = whole_blocks(length)
        row = Region(src.space, src.address, length, (), src.dtype.numpy)
        rows = Region(dst.space, dst.address, length, ((dst.valid_rows, dst.row_bytes),), dst.dtype.numpy)
        return [(1, int(Mode.READ), row), (0, int(Mode.WRITE), rows)]

    def compute(self: Any, call: SimpleNamespace, arrays: list[np.ndarray], profile: Profile) -> tuple[np.ndarray, ...]:
        """The row, for all rows."""
        return tuple(array.copy() for array in arrays)
