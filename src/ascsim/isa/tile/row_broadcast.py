"""TROWEXPANDADD and its kin: a tile and one number, or one block of 32 bytes, for each of its rows.

Sources: pto-isa docs/isa/TROWEXPANDADD and its kin; include/pto/npu/a2a3 and a5: TRowExpandBinOp.hpp, TRowExpandAdd.hpp
and its kin; include/pto/cpu/TRowExpandOp.hpp.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import numpy as np

from ascsim.diagnostics import Severity
from ascsim.isa.definition import A2A3, A5, CHIPS, Definition, In, Operand, Out, Scratch, tile_instruction
from ascsim.isa.rules import Rule, dtype, finding, in_space, plain_layout, refuse, row_major, same_dtype
from ascsim.isa.tile.broadcast import (
    ADDED,
    DIVIDED,
    EXPONENTIAL_NOTES,
    LARGER,
    MULTIPLIED,
    NARROW,
    ON_CPU,
    ONE_UNIT,
    PRODUCT,
    QUOTIENT,
    SMALLER,
    SUBTRACTED,
    Combined,
    ExponentialOfDifference,
    Types,
)
from ascsim.isa.tile.elementwise import FLOATS, FLUSHED, FOUR, ROUNDED, WRITTEN, changed, precision_operand
from ascsim.machine.core import Core, Touch
from ascsim.machine.dtypes import f32, u8
from ascsim.machine.operands import REGISTER_BYTES, Region, Tile
from ascsim.machine.trace import Mode
from ascsim.machine.words import BLayout, Pipe, Space
from ascsim.profiles import Profile

_BLOCK_BYTES = 32
_HIDDEN_TMP = 184 * 1024
"""Where the A2/A3's library puts its own working space of 8 KiB (TMP_UB_OFFSET)."""
_PER_REPEAT = 8
_PASS_ROWS = 240
"""Rows that the A2/A3 spread out at a time where dst has 256 rows or more."""
_REPEATS = 255
_MANY = 256


def _has_shape_of(tile: Tile, dst: Tile) -> bool:
    return (tile.valid_rows, tile.valid_cols) == (dst.valid_rows, dst.valid_cols)


def _row_stride(tile: Tile) -> int:
    return tile.cols if tile.blayout == BLayout.ROW_MAJOR else 1


def _whole_and_line(call: SimpleNamespace, profile: Profile) -> tuple[str, str]:
    """The names of the tile and of what stands beside its rows, as the library tells them apart."""
    first = _has_shape_of(call.src0, call.dst)
    if first and _has_shape_of(call.src1, call.dst) and profile.name == "a2a3" and call.tmp is None:
        first = _row_stride(call.src0) >= _row_stride(call.src1)
    return ("src0", "src1") if first else ("src1", "src0")


def _spreads(call: SimpleNamespace, line: Tile, profile: Profile) -> bool:
    """Whether the A2/A3 write each number to a block of working space first (vbrcb)."""
    return profile.name == "a2a3" and (call.tmp is not None or line.blayout == BLayout.COL_MAJOR)


def _in_passes(call: SimpleNamespace) -> bool:
    return bool(call.dst.rows >= _MANY and call.dst.valid_rows >= _MANY)


def _rows(call: SimpleNamespace, profile: Profile) -> int:
    """The rows that are worked on: of those spread out in passes, whole ones where the last is nearly full."""
    rows = int(call.dst.valid_rows)
    line = getattr(call, _whole_and_line(call, profile)[1])
    repeats = -(-rows // _PER_REPEAT)
    if _spreads(call, line, profile) and _in_passes(call) and repeats * _PER_REPEAT % _PASS_ROWS == 0:
        return repeats * _PER_REPEAT
    return rows


def _tile_region(tile: Tile, rows: int, cols: int, profile: Profile) -> Region:
    """The bytes of the whole tile; of a column-major one chips take rows one element apart."""
    if tile.blayout == BLayout.ROW_MAJOR or not profile.is_chip:
        return tile.region(rows, cols)
    size = tile.dtype.size
    return Region(tile.space, tile.address, cols * size, ((rows, size),), tile.dtype.numpy)


def _beside(call: SimpleNamespace, profile: Profile) -> list[Region]:
    """The bytes beside the rows: for each row an element or a block."""
    line: Tile = getattr(call, _whole_and_line(call, profile)[1])
    rows, size, kind = _rows(call, profile), line.dtype.size, line.dtype.numpy
    if _spreads(call, line, profile):
        return [Region(line.space, line.address, rows * size, (), kind)]
    if line.blayout == BLayout.COL_MAJOR:
        pitch = size * (line.cols if profile.name == "a5" else 1)
        return [Region(line.space, line.address, size, ((rows, pitch),), kind)]
    pitch = _BLOCK_BYTES if profile.is_chip else line.row_bytes
    if profile.name != "a2a3" or not _in_passes(call):
        return [Region(line.space, line.address, _BLOCK_BYTES, ((rows, pitch),), kind)]
    return [
        Region(line.space, line.address + first * line.row_bytes, _BLOCK_BYTES, ((min(_REPEATS, rows - first), pitch),), kind)
        for first in range(0, rows, _REPEATS)
    ]  # fmt: skip


def _working_space(call: SimpleNamespace, profile: Profile) -> Region | None:
    """The bytes in which the A2/A3 spread out the numbers, eight blocks of them at a time."""
    line: Tile = getattr(call, _whole_and_line(call, profile)[1])
    if not _spreads(call, line, profile) or not call.dst.valid_rows:
        return None
    rows = _PASS_ROWS if _in_passes(call) else -(-call.dst.valid_rows // _PER_REPEAT) * _PER_REPEAT
    start = _HIDDEN_TMP if call.tmp is None else call.tmp.address
    return Region(line.space, start, _BLOCK_BYTES, ((rows, _BLOCK_BYTES),), line.dtype.numpy)


def _fetched(call: SimpleNamespace, profile: Profile) -> Region:
    """What vbrcb reads: whole repeats of eight elements."""
    line: Tile = getattr(call, _whole_and_line(call, profile)[1])
    elements = -(-call.dst.valid_rows // _PER_REPEAT) * _PER_REPEAT
    return Region(line.space, line.address, elements * line.dtype.size, (), line.dtype.numpy)


# Rules


def _shapes(call: SimpleNamespace, profile: Profile) -> str | None:
    dst = call.dst
    whole, line = _whole_and_line(call, profile)
    tile, beside = getattr(call, whole), getattr(call, line)
    if not _has_shape_of(tile, dst):
        return (
            f"dst has {dst.valid_rows}x{dst.valid_cols} valid, src0 {call.src0.valid_rows}x{call.src0.valid_cols} and "
            f"src1 {call.src1.valid_rows}x{call.src1.valid_cols}"
        )
    if tile.blayout == BLayout.COL_MAJOR:
        return f"{whole} has the valid region of dst and is column-major"
    if beside.valid_rows != dst.valid_rows:
        return f"{line} has {beside.valid_rows} valid rows for {dst.valid_rows}"
    is_column = beside.blayout == BLayout.COL_MAJOR
    if call.tmp is not None and profile.name == "a2a3" and not is_column:
        return f"{line} is row-major, where tmp is for a column"
    wanted = 1 if is_column else _BLOCK_BYTES // dst.dtype.size
    if beside.valid_cols == wanted:
        return None
    return f"{line} has {beside.valid_cols} valid columns; {'column' if is_column else 'row'}-major it has {wanted}"


def _unlike_dst(definition: Definition, call: SimpleNamespace, profile: Profile) -> str | None:
    return _shapes(call, profile)


def _with_other_shapes(call: SimpleNamespace, profile: Profile) -> Iterator[SimpleNamespace]:
    yield changed(call, "src0", valid_cols=call.src0.valid_cols - 1)
    yield changed(call, "src1", valid_rows=call.src1.valid_rows - 1)


def _wide_line(definition: Definition, call: SimpleNamespace, profile: Profile) -> str | None:
    _, name = _whole_and_line(call, profile)
    line = getattr(call, name)
    if _spreads(call, line, profile):
        return None
    if line.blayout == BLayout.COL_MAJOR:
        return f"{name} is column-major with {line.cols} columns" if profile.name == "a5" and line.cols > 1 else None
    return f"rows of {name} are {line.row_bytes} bytes apart" if line.row_bytes != _BLOCK_BYTES else None


def _with_wide_line(call: SimpleNamespace, profile: Profile) -> Iterator[SimpleNamespace]:
    elements = _BLOCK_BYTES // call.dst.dtype.size
    rows = call.dst.valid_rows
    call = changed(call, "src1", blayout=BLayout.ROW_MAJOR, cols=2 * elements, valid_cols=elements, rows=rows)
    for name in ("dst", "src0"):
        call = changed(call, name, cols=4 * elements, valid_cols=4 * elements)
    yield SimpleNamespace(**{**vars(call), "tmp": None})


def _small_tmp(definition: Definition, call: SimpleNamespace, profile: Profile) -> str | None:
    used = _working_space(call, profile)
    if used is None or call.tmp is None:
        return None
    beyond = used.bounds()[1] - call.tmp.address - call.tmp.nbytes
    return f"tmp has {call.tmp.nbytes} bytes and {beyond} beyond it are written" if beyond > 0 else None


def _with_small_tmp(call: SimpleNamespace, profile: Profile) -> Iterator[SimpleNamespace]:
    small = replace(call.dst, dtype=f32, rows=1, cols=8, valid_rows=1, valid_cols=8)
    yield SimpleNamespace(**{**vars(call), "tmp": small})


def _too_many_rows(definition: Definition, call: SimpleNamespace, profile: Profile) -> str | None:
    more = _rows(call, profile) - call.dst.valid_rows
    return f"dst has {call.dst.valid_rows} valid rows, and {more} more are written" if more else None


def _with_many_rows(call: SimpleNamespace, profile: Profile) -> Iterator[SimpleNamespace]:
    for name in ("dst", "src0"):
        call = changed(call, name, rows=480, valid_rows=475)
    call = changed(call, "src1", blayout=BLayout.COL_MAJOR, rows=480, cols=1, valid_rows=475, valid_cols=1)
    yield SimpleNamespace(**{**vars(call), "tmp": None})


def _taken_together(definition: Definition, call: SimpleNamespace, profile: Profile) -> str | None:
    dst, whole = call.dst, getattr(call, _whole_and_line(call, profile)[0])
    packed = dst.cols * dst.dtype.size < REGISTER_BYTES and dst.valid_cols == dst.cols and dst.rows > 1
    return (
        f"rows of dst have {dst.cols} columns, those of the source {whole.cols}"
        if packed and whole.cols != dst.cols
        else None
    )


def _with_other_pitch(call: SimpleNamespace, profile: Profile) -> Iterator[SimpleNamespace]:
    elements = _BLOCK_BYTES // call.dst.dtype.size
    call = changed(call, "dst", cols=elements, valid_cols=elements)
    yield changed(call, "src0", cols=2 * elements, valid_cols=elements)


def _rules(title: str, a2a3: Types, a5: Types, cpu: Types) -> tuple[Rule, ...]:
    tiles = ("dst", "src0", "src1")
    said = "one source has the valid region of dst, the other its rows and one column, or 32 bytes of columns"
    mend = "Give one source the valid region of dst, the other its rows: one column, or row-major rows of 32 bytes."
    return (
        dtype("dst", a2a3=a2a3, a5=a5, cpu=cpu),
        same_dtype(*tiles),
        row_major("dst"),
        in_space(Space.UB, *tiles, "tmp"),
        plain_layout("src0", "src1"),
        refuse("L007", said, _unlike_dst, breaks=_with_other_shapes, profiles=("cpu",), mend=mend),
        finding(f"{title}-1", said, _unlike_dst, breaks=_with_other_shapes, profiles=CHIPS, mend=mend,
                why="The library checks it in debug builds only."),
        finding(f"{title}-2", "what stands beside the rows lies close together", _wide_line, breaks=_with_wide_line,
                profiles=CHIPS, mend="Give it rows of 32 bytes, or one column.",
                why="The library takes the next 32 bytes for the next row, whatever the columns of the tile."),
        finding(f"{title}-3", "tmp holds what is written to it", _small_tmp, breaks=_with_small_tmp, profiles=A2A3,
                why="The library writes 256 bytes for every 8 rows, 7680 where dst has 256 rows or more.",
                mend="Give tmp 8 KiB."),
        finding(f"{title}-4", "no more rows than are valid are worked on", _too_many_rows, breaks=_with_many_rows,
                profiles=A2A3, mend="Round the valid rows up, or work on parts of at most 255 rows.",
                why="From 256 rows on the library works in passes of 240, counted in eights: up to 7 rows too many."),
        finding(f"{title}-5", "narrow rows have one pitch", _taken_together, breaks=_with_other_pitch, profiles=A5,
                severity=Severity.WARNING, mend="Give both tiles as many columns, or dst a dynamic valid region.",
                why="Where dst's valid region is static and fills rows of less than 256 bytes, the A5's library takes the "
                "rows of the source for as long as those of dst. ascsim cannot tell a static one, and takes it for dynamic."),
    )  # fmt: skip


class _RowBroadcast:
    values = "widen"

    def regions(self: Any, call: SimpleNamespace, profile: Profile) -> list[tuple[int, int, Region]]:
        """The valid region of dst in both tiles, the elements beside it, the A2/A3's working space."""
        rows, cols = _rows(call, profile), call.dst.valid_cols
        if not rows or not cols:
            return []
        whole, line = _whole_and_line(call, profile)
        numbers = {"src0": 1, "src1": 2}
        touched = [
            (0, int(Mode.WRITE), call.dst.region(rows, cols)),
            (numbers[whole], int(Mode.READ), _tile_region(getattr(call, whole), rows, cols, profile)),
        ]
        touched += [(numbers[line], int(Mode.READ), region) for region in _beside(call, profile)]
        used = _working_space(call, profile)
        if used is not None:
            touched.append((numbers[line] if call.tmp is None else 3, int(Mode.WRITE), used))
        return touched

    def touches(self: Any, core: Core, args: Sequence[Any]) -> list[Touch]:
        """The regions, and what is fetched beside them."""
        found: list[Touch] = super().touches(core, args)  # type: ignore[misc]
        call = self.call(args)
        if _working_space(call, core.profile) is not None and found:
            number = 1 if _whole_and_line(call, core.profile)[1] == "src0" else 2
            found.append(Touch(number, Mode.READ, _fetched(call, core.profile), used=False))
        return found

    def compute(self: Any, call: SimpleNamespace, arrays: list[np.ndarray], profile: Profile) -> tuple[np.ndarray, ...]:
        """The result, and what the working space holds."""
        if not arrays:
            return ()
        used = _working_space(call, profile)
        tile, *beside = arrays if used is None else arrays[:-1]
        line = np.concatenate(beside) if len(beside) > 1 else beside[0]
        line = line.reshape(len(tile), -1)
        line = line[:, np.arange(tile.shape[1]) % line.shape[1]]
        both = (tile, line) if _whole_and_line(call, profile)[0] == "src0" else (line, tile)
        result = self.combined(call, both, profile)
        return (result,) if used is None else (result, _spread(arrays[-1], used.dims[0][0]))


def _spread(fetched: np.ndarray, rows: int) -> np.ndarray:
    """(rows, 1): what each block of working space holds at last, pass after pass over it."""
    held = fetched[:rows].copy()
    for first in range(rows, fetched.size, rows):
        part = fetched[first : first + rows]
        held[: part.size] = part
    return held[:, None]


def _define(
    name: str, does: str, how: type[Combined], *, a2a3: Types = FOUR, a5: Types = NARROW, cpu: Types = ON_CPU,
    precision: str = "", notes: tuple[str, ...] = (),
) -> None:  # fmt: skip
    title = name.upper()
    operands: list[Operand] = [
        Out("dst", dtype="T"),
        In("src0", dtype="T"),
        In("src1", dtype="T", doc="beside the rows of src0; src0 may be beside those of src1 instead"),
        Scratch("tmp", optional=True, used_on=A2A3, doc="working space of the A2/A3 for a column; 8 KiB are enough"),
    ]
    if precision:
        operands.append(precision_operand(precision))
    body: dict[str, Any] = {
        "__doc__": does,
        "operands": tuple(operands),
        "rules": _rules(title, a2a3, a5, cpu),
        "notes": (
            *notes, WRITTEN,
            "What stands beside a row is one number (a column-major tile of one column), or 32 bytes that repeat along the row "
            "(a row-major tile).",
            "The A2/A3 spread out a column first, one block of 32 bytes a number: in tmp, or without it in the 8 KiB of UB "
            "from 184 KiB on.",
        ),
        "sources": (f"pto-isa docs/isa/{title}", "pto-isa include/pto/npu/a2a3 and a5: TRowExpandBinOp.hpp"),
    }  # fmt: skip
    tile_instruction(name, pipe=Pipe.V, cpp_templates=("precision",) if precision else ())(
        type(title, (_RowBroadcast, how), body)
    )


_define("trowexpandadd", "Add a number to each row, one for each.", ADDED, notes=(ROUNDED,))
_define("trowexpandsub", "Subtract a number from each row, one for each.", SUBTRACTED, notes=(ROUNDED,))
_define("trowexpandmul", "Multiply each row by a number, one for each.", PRODUCT, a5=MULTIPLIED, cpu=(*ON_CPU, u8),
        notes=(ROUNDED,))  # fmt: skip
_define("trowexpanddiv", "Divide each row by a number, one for each; integers towards zero.", QUOTIENT, a2a3=FLOATS,
        a5=DIVIDED, precision="DivAlgorithm", notes=(ROUNDED, FLUSHED, ONE_UNIT))  # fmt: skip
_define("trowexpandmax", "The larger of each element and a number of its row.", LARGER)
_define("trowexpandmin", "The smaller of each element and a number of its row.", SMALLER)
_define("trowexpandexpdif", "e to the power of each row minus a number; half is rounded after the subtraction.",
        ExponentialOfDifference, a2a3=FLOATS, a5=FLOATS, cpu=FLOATS, notes=EXPONENTIAL_NOTES)  # fmt: skip
