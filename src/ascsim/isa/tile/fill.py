"""TFILLPAD: a tile's valid region, and a pad value around it.

Sources: pto-isa docs/isa/TFILLPAD; include/pto/npu/a2a3/TFillPad.hpp, include/pto/npu/a5/TFillPad.hpp,
include/pto/cpu/TFillPad.hpp; include/pto/common/constants.hpp (pad values).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from enum import IntEnum
from types import SimpleNamespace
from typing import Any

import numpy as np

from ascsim.diagnostics import CATALOGUE, Severity
from ascsim.isa.definition import A2A3, A5, Asm, Choice, Definition, In, Operand, Out, tile_instruction
from ascsim.isa.memory_form.masked import set_mask_norm, set_vector_mask
from ascsim.isa.rules import Rule, changed, dtype, finding, refuse, same_size, vector_tiles
from ascsim.isa.steps import SCALAR_LOOP, VCOPY, VECTOR_DUP, flag_pair, group
from ascsim.isa.sync import dsb, pipe_barrier
from ascsim.isa.tile.transfer import pad_bits
from ascsim.isa.transfer import BLOCK, whole_blocks
from ascsim.machine.core import Core, Finding, Group, Step, Touch
from ascsim.machine.dtypes import bf16, f8e4m3, f8e5m2, f8e8m0, f16, f32, hif8, i8, i16, i32, u8, u16, u32
from ascsim.machine.operands import REGISTER_BYTES, Region, Tile
from ascsim.machine.trace import Mode
from ascsim.machine.words import PadValue, Pipe, Space
from ascsim.profiles import Profile

_CHIP_TYPES = (f32, i32, u32, f16, bf16, i16, u16, i8, u8)
_ALL_TYPES = (*_CHIP_TYPES, f8e4m3, f8e5m2, f8e8m0, hif8)
_MOST_REPEATS = 255
_BYTE_SIZED = 1
_DSB_UB = 2


class TFillPadMode(IntEnum):
    """Where the result goes; the numbers of PTO's TFillPadMode."""

    Normal = 0
    InPlace = 1
    Expand = 2


CATALOGUE.add(
    "TFILLPAD-1", Severity.ERROR, "TFILLPAD in place with two tiles",
    "The in-place form fills around the valid region of dst and copies nothing; dst and src are to be one tile in UB.\n\n"
    "Bind both to one address, or use the form that copies.",
)  # fmt: skip
CATALOGUE.add(
    "E-TFILLPAD-EMPTY", Severity.WARNING, "An empty fill at the end of UB",
    "The tile has no columns to fill, but the A2/A3 library issues the fill of its first row all the same, of no "
    "elements, at the address behind that row; here that is the end of UB. ascsim touches nothing there. Whether a chip "
    "objects to the address is not stated.\n\n"
    "Skip TFILLPAD where the valid region is the whole tile, or place the tile lower.",
)  # fmt: skip


def _with_other_shape(call: SimpleNamespace, profile: Profile) -> Iterator[SimpleNamespace]:
    yield changed(call, "src", rows=call.src.rows + 1)


def _other_shape(definition: Definition, call: SimpleNamespace, profile: Profile) -> str | None:
    dst, src, grows = call.dst, call.src, _mode(definition, call) == TFillPadMode.Expand
    fits = dst.rows >= src.rows and dst.cols >= src.cols if grows else (dst.rows, dst.cols) == (src.rows, src.cols)
    if fits:
        return None
    wanted = "at least as many rows and columns" if grows else "one shape"
    return f"dst is {dst.rows}x{dst.cols} and src {src.rows}x{src.cols}; they need {wanted}"


def _without_pad(definition: Definition, call: SimpleNamespace, profile: Profile) -> str | None:
    return "dst has no pad value" if call.dst.pad == PadValue.NULL else None


def _made_null(call: SimpleNamespace, profile: Profile) -> Iterator[SimpleNamespace]:
    yield changed(call, "dst", pad=PadValue.NULL)


def _fewer_rows(definition: Definition, call: SimpleNamespace, profile: Profile) -> str | None:
    dst, src = call.dst, call.src
    if dst.valid_rows >= src.valid_rows:
        return None
    return f"dst has {dst.valid_rows} valid rows and src {src.valid_rows}: the number of rows to fill is below 0"


def _with_fewer_rows(call: SimpleNamespace, profile: Profile) -> Iterator[SimpleNamespace]:
    yield changed(call, "dst", valid_rows=call.src.valid_rows - 1)


def _rows_left(definition: Definition, call: SimpleNamespace, profile: Profile) -> str | None:
    src = call.src
    if src.valid_rows <= 2 * _MOST_REPEATS or not _fills_blocks(call) or src.dtype.size == _BYTE_SIZED:
        return None
    filled = _MOST_REPEATS + (src.valid_rows - _MOST_REPEATS) % (_MOST_REPEATS + 1)
    return f"src has {src.valid_rows} valid rows; the last 32-byte block is filled up in {filled} of them only"


def _with_many_rows(call: SimpleNamespace, profile: Profile) -> Iterator[SimpleNamespace]:
    many = {"rows": 600, "valid_rows": 600, "valid_cols": 1}
    yield changed(changed(call, "src", **many), "dst", **many)


def _fills_blocks(call: SimpleNamespace) -> bool:
    """Whether A2/A3 fill up the last block of a row: where a load has not done it with the same value."""
    return call.dst.pad != call.src.pad and call.src.valid_cols * call.src.dtype.size % BLOCK != 0


def _mode(definition: Definition, call: SimpleNamespace) -> int:
    return int(getattr(definition, "mode", 0) or getattr(call, "mode", 0))


_RULES: tuple[Rule, ...] = (
    dtype("src", a2a3=_CHIP_TYPES, a5=_ALL_TYPES, cpu=_ALL_TYPES),
    same_size("dst", "src"),
    vector_tiles("dst", "src"),
    refuse("L007", "dst and src have one shape (Expand: dst is no smaller)", _other_shape, breaks=_with_other_shape,
           mend="Declare both tiles with the same rows and columns, or use TFILLPAD_EXPAND with a larger dst."),
    refuse("L006", "dst has a pad value", _without_pad, breaks=_made_null,
           mend="Declare dst with PadValue::Zero, Max or Min, or with PadValueCustom(number)."),
    finding("TFILLPAD-2", "dst has no fewer valid rows than src", _fewer_rows, breaks=_with_fewer_rows, profiles=A5,
            why="The library subtracts them as unsigned numbers and fills on, far beyond the tile.",
            mend="Give dst at least the valid rows of src."),
    finding("E-TFILLPAD-510", "src has at most 510 valid rows", _rows_left, breaks=_with_many_rows, profiles=A2A3,
            severity=Severity.WARNING, why="The library's fill takes two calls, the second with the rows modulo 256.",
            mend="Load src with the pad value of dst, which fills these columns, or split it."),
)  # fmt: skip


class _FillPad:
    """What the forms share."""

    rules = _RULES
    values = "bits"
    warns = ("TFILLPAD-1", "E-TFILLPAD-EMPTY")
    notes = (
        "Valid is what is valid in src; the valid columns of dst have no effect.",
        "cpu fills the whole of dst, chips the rows that are valid in dst: each as a whole, with all its columns.",
        "A2/A3: the last 32-byte block of a row is filled up only where dst and src have different pad values: a load "
        "with the same value has done it. 8-bit types have that done by a loop on the scalar pipe, with a flag V to S "
        "(event 0) before and a dsb after it. Rows of src are copied as a whole; the trace has their valid part, for "
        "the rest is filled. The vector mask is all ones afterwards, in normal mode.",
        "A5: one vector function.",
        "64-bit types are not taken, 8-bit float types are filled with 0 unless the pad value is a custom one.",
    )
    assumed = ("A2/A3: in counter mode vcopy works on as many elements in each of its repeats as the mask says.",)
    sources = (
        "pto-isa docs/isa/TFILLPAD",
        "pto-isa include/pto/npu/a2a3/TFillPad.hpp, include/pto/npu/a5/TFillPad.hpp, include/pto/cpu/TFillPad.hpp",
    )

    def regions(self: Any, call: SimpleNamespace, profile: Profile) -> list[tuple[int, int, Region]]:
        """The valid region of src, and of dst a copy of it, what is right of it, and what is below."""
        dst, src = call.dst, call.src
        rows, cols = src.valid_rows, src.valid_cols
        copies = _mode(self, call) != TFillPadMode.InPlace or not profile.is_chip
        if not profile.is_chip and not dst.valid_rows * dst.valid_cols:
            return []
        below = _below(call, profile)
        found = [
            *([(0, Mode.WRITE, _part(dst, 0, rows, 0, cols))] if copies else []),
            (0, Mode.WRITE, _part(dst, 0, rows, cols, dst.cols)),
            (0, Mode.WRITE, below),
            *([(1, Mode.READ, _part(src, 0, rows, 0, cols))] if copies else []),
        ]
        return [(number, int(mode), region) for number, mode, region in found]

    def compute(self: Any, call: SimpleNamespace, arrays: list[np.ndarray], profile: Profile) -> tuple[np.ndarray, ...]:
        """The copied elements, and the pad value twice."""
        pad = np.array(pad_bits(call.dst), call.dst.dtype.bits_dtype)
        regions = self.regions(call, profile)
        return (*(a.copy() for a in arrays), pad, pad) if regions else ()

    def expand(self: Any, call: SimpleNamespace, profile: Profile) -> Iterator[Group] | None:
        """The steps of the A2/A3 library."""
        return _expand(call, _mode(self, call)) if profile.name == "a2a3" else None

    def observe(self: Any, core: Core, args: Sequence[Any], touches: list[Touch]) -> list[Finding]:
        """Report two tiles in place, and a fill of nothing at the end of UB."""
        call, found = self.call(args), []
        dst, src = call.dst, call.src
        if not core.profile.is_chip:
            return []
        if _mode(self, call) == TFillPadMode.InPlace and dst.address != src.address:
            headline = f"{self.title}: dst lies at {dst.address:#x} and src at {src.address:#x}; src is not copied"
            found.append(Finding("TFILLPAD-1", Severity.ERROR, headline, (), "Bind both to one address."))
        is_full = whole_blocks(src.valid_cols * src.dtype.size) == dst.row_bytes
        end = dst.address + dst.row_bytes
        if core.profile.name == "a2a3" and is_full and end >= core.memory(Space.UB).capacity and dst.valid_rows:
            headline = f"{self.title}: the library issues a fill of no elements at {end:#x}, the end of UB"
            mend = "Skip it where the valid region is the whole tile, or place the tile lower."
            found.append(Finding("E-TFILLPAD-EMPTY", Severity.WARNING, headline, (), mend))
        return found


def _part(tile: Tile, first_row: int, end_row: int, first_col: int, end_col: int) -> Region:
    """Some columns of some rows of a row-major tile."""
    size, start = tile.dtype.size, tile.address + first_row * tile.row_bytes + first_col * tile.dtype.size
    length, rows = max(end_col - first_col, 0) * size, max(end_row - first_row, 0)
    return Region(tile.space, start, length, ((rows, tile.row_bytes),), tile.dtype.bits_dtype)


def _below(call: SimpleNamespace, profile: Profile) -> Region:
    """The rows under the valid ones of src."""
    dst, rows = call.dst, call.src.valid_rows
    if not profile.is_chip:
        return _part(dst, rows, dst.rows, 0, dst.cols)
    if dst.valid_rows >= rows:
        return _part(dst, rows, dst.valid_rows, 0, dst.cols)
    lanes = REGISTER_BYTES // dst.dtype.size  # TFILLPAD-2: unsigned arithmetic, as the library's
    elements = (dst.valid_rows - rows) * dst.cols % (1 << 32)
    elements = min(elements, -(-elements // lanes) % (1 << 16) * lanes)
    start = dst.address + rows * dst.row_bytes
    return Region(dst.space, start, elements * dst.dtype.size, ((1, 0),), dst.dtype.bits_dtype)


def _expand(call: SimpleNamespace, mode: int) -> Iterator[Group]:
    dst, src = call.dst, call.src
    if not dst.valid_rows * dst.valid_cols:
        return
    rows, cols, size, pad = src.valid_rows, src.valid_cols, src.dtype.size, pad_bits(dst)
    block_end = min(whole_blocks(cols * size) // size, dst.cols)
    fills_blocks = dst.pad != src.pad
    barrier = Step(pipe_barrier, (Pipe.V,))
    steps: list[Step] = []
    if mode != TFillPadMode.InPlace:
        until = cols if fills_blocks else min(block_end, src.cols)
        steps.append(VCOPY.step(dst, _part(dst, 0, rows, 0, until), src, _part(src, 0, rows, 0, until)))
    if fills_blocks and size == _BYTE_SIZED:
        filled = SCALAR_LOOP.step(dst, _part(dst, 0, rows, cols, block_end), bits=pad)
        steps += [*flag_pair(Pipe.V, Pipe.S), filled, Step(dsb, (_DSB_UB,))]
    elif fills_blocks:
        first = min(rows, _MOST_REPEATS) if src.rows > _MOST_REPEATS else rows
        for start, count in ((0, first), (first, (rows - first) % (_MOST_REPEATS + 1))):
            if count:
                steps.append(VECTOR_DUP.step(dst, _part(dst, start, start + count, cols, block_end), bits=pad))
        steps.append(barrier)
    steps += [VECTOR_DUP.step(dst, _part(dst, 0, 1, block_end, dst.cols), bits=pad), barrier]
    if src.rows > 1 and rows > 1:
        once = _part(dst, 0, 1, block_end, dst.cols)
        repeated = once._replace(dims=((rows - 1, 0),))
        steps.append(VCOPY.step(dst, _part(dst, 1, rows, block_end, dst.cols), dst, repeated))
    if dst.valid_rows > rows:
        steps.append(VECTOR_DUP.step(dst, _part(dst, rows, dst.valid_rows, 0, dst.cols), bits=pad))
    yield group(*steps, Step(set_mask_norm, ()), Step(set_vector_mask, (-1, -1)))


_DST: Operand = Out("dst", doc="its PadValue says what with")
_SRC: Operand = In("src")


@tile_instruction("tfillpad", pipe=Pipe.V, cpp_templates=("mode",), asm=(Asm("tfillpad", order=("src",)),))
class TFillPad(_FillPad):
    """Copy a tile's valid region and fill the rest of dst with its pad value."""

    operands = (_DST, _SRC, Choice("mode", TFillPadMode, optional=True, default=TFillPadMode.Normal,
                                   doc="Normal; InPlace and Expand as TFILLPAD_INPLACE and TFILLPAD_EXPAND"))  # fmt: skip


@tile_instruction("tfillpad_inplace", pipe=Pipe.V)
class TFillPadInPlace(_FillPad):
    """Fill around a tile's valid region; dst and src are one tile in UB, with their own valid regions and pad values."""

    operands = (_DST, In("src", shares="dst"))
    mode = TFillPadMode.InPlace


@tile_instruction("tfillpad_expand", pipe=Pipe.V)
class TFillPadExpand(_FillPad):
    """Copy a tile's valid region to a tile that may be larger, and fill the rest of it with its pad value."""

    operands = (_DST, _SRC)
    mode = TFillPadMode.Expand
