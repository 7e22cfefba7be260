"""THISTOGRAM: how many elements of a row have each value of one byte, as running totals.

Sources: pto-isa docs/isa/THISTOGRAM; include/pto/npu/a5/THistogram.hpp, include/pto/cpu/THistogram.hpp.
"""

from __future__ import annotations

from collections.abc import Iterator
from enum import IntEnum
from types import SimpleNamespace
from typing import Any

import numpy as np

from ascsim.isa.definition import A5, Choice, Definition, In, Out, tile_instruction
from ascsim.isa.rules import dtype, finding, in_space, refuse, row_major
from ascsim.isa.tile.elementwise import changed
from ascsim.machine.dtypes import u8, u16, u32
from ascsim.machine.operands import Region
from ascsim.machine.trace import Mode
from ascsim.machine.words import BLayout, Pipe, SLayout, Space
from ascsim.profiles import Profile

BINS = 256
_PROFILES = ("a5", "cpu")


class HistByte(IntEnum):
    """A byte of an element, the lowest first; the numbers of PTO's HistByte."""

    BYTE_0 = 0
    BYTE_1 = 1
    BYTE_2 = 2
    BYTE_3 = 3


def _byte(call: SimpleNamespace) -> int:
    return int(call.src.dtype.size) - 1 if call.byte is None else int(call.byte)


def _filters(call: SimpleNamespace) -> int:
    """How many bytes above the counted one must equal those of idx."""
    return int(call.src.dtype.size) - 1 - _byte(call)


def _no_byte(definition: Definition, call: SimpleNamespace, profile: Profile) -> str | None:
    byte, most = _byte(call), call.src.dtype.size - 1
    return None if 0 <= byte <= most else f"byte is {byte}; {call.src.dtype.name} has the bytes 0 to {most}"


def _with_no_byte(call: SimpleNamespace, profile: Profile) -> Iterator[SimpleNamespace]:
    yield SimpleNamespace(**{**vars(call), "byte": 4})


def _other_index(definition: Definition, call: SimpleNamespace, profile: Profile) -> str | None:
    idx, filters = call.idx, _filters(call)
    if call.src.dtype is u16:
        if idx.slayout == SLayout.NONE_BOX and idx.blayout == BLayout.COL_MAJOR and idx.cols == 1:
            return None
        return f"idx is {idx.rows}x{idx.cols}; beside u16 it is one column, column-major without boxes"
    if not filters or (idx.is_row_major and (idx.rows, idx.cols) == (filters, call.src.cols)):
        return None
    return f"idx is {idx.rows}x{idx.cols}; it is row-major with {filters} rows and {call.src.cols} columns, as src"


def _with_other_index(call: SimpleNamespace, profile: Profile) -> Iterator[SimpleNamespace]:
    call = SimpleNamespace(**{**vars(changed(call, "src", dtype=u32)), "byte": 0})
    yield changed(
        call, "idx", rows=2, valid_rows=2, blayout=BLayout.ROW_MAJOR, cols=call.src.cols, valid_cols=call.src.cols
    )


def _few_bins(definition: Definition, call: SimpleNamespace, profile: Profile) -> str | None:
    dst = call.dst
    if dst.cols == BINS or (dst.cols > BINS and (not profile.is_chip or call.src.valid_rows < 2)):
        return None
    return f"dst has {dst.cols} columns; the counts of a row are {BINS}, and rows lie {BINS} words apart"


def _with_few_bins(call: SimpleNamespace, profile: Profile) -> Iterator[SimpleNamespace]:
    yield changed(call, "dst", cols=64, valid_cols=64)


@tile_instruction("thistogram", pipe=Pipe.V, profiles=_PROFILES, cpp_templates=("byte",))
class THistogram:
    """Count, for each row of ``src``, the elements whose chosen byte is at most 0, 1, ..., 255.

    Counted are the elements whose higher bytes equal those of ``idx``: with 16-bit elements the byte of the row, with
    32-bit ones the first byte of row 0 (the highest byte), of row 1, of row 2.
    """

    operands = (
        Out("dst", doc="256 counts a row"),
        In("src"),
        In("idx", doc="the higher bytes; not read where the highest byte is counted"),
        Choice("byte", HistByte, optional=True, asm_name="isMSB",
               doc="which byte, or else the highest; of .pto's isMSB, true is byte 1 and false byte 0"),
    )  # fmt: skip
    rules = (
        dtype("src", a5=(u16, u32), cpu=(u16, u32)),
        dtype("dst", a5=(u32,), cpu=(u32,)),
        dtype("idx", a5=(u8,), cpu=(u8,)),
        row_major("dst", "src"),
        in_space(Space.UB, "dst", "src", "idx"),
        refuse("L006", "src has the byte", _no_byte, breaks=_with_no_byte, mend="Use HistByte::BYTE_0 and its kin."),
        refuse("L007", "idx has the shape that goes with src and byte", _other_index, breaks=_with_other_index, profiles=A5,
               mend="One column beside uint16_t; a row for each higher byte beside uint32_t."),
        finding("THISTOGRAM-1", "dst has 256 columns", _few_bins, breaks=_with_few_bins, profiles=_PROFILES,
                why="The library writes 256 counts a row, whatever dst's columns are.", mend="Give dst 256 columns."),
    )  # fmt: skip
    values = "bits"
    notes = (
        "The manual has counts; the chip's library, the public simulator and their tests have running totals, of which "
        "each count is the difference to the one before.",
    )
    assumed = ("The A5's totals of the values 128 to 255 include those of 0 to 127, as the public tests expect.",)
    sources = (
        "pto-isa docs/isa/THISTOGRAM",
        "pto-isa include/pto/npu/a5/THistogram.hpp, include/pto/cpu/THistogram.hpp",
    )

    def regions(self: Any, call: SimpleNamespace, profile: Profile) -> list[tuple[int, int, Region]]:
        """256 words for each row of src, which is valid as a whole; the bytes of idx."""
        dst, src, idx = call.dst, call.src, call.idx
        rows = src.valid_rows
        stride = BINS * 4 if profile.is_chip else dst.row_bytes
        made = [
            (0, int(Mode.WRITE), Region(dst.space, dst.address, BINS * 4, ((rows, stride),), np.dtype(np.uint32))),
            (1, int(Mode.READ), src.region()),
        ]
        lines = rows if src.dtype is u16 else _filters(call)
        if _filters(call):
            made.append(
                (2, int(Mode.READ), Region(idx.space, idx.address, 1, ((lines, idx.row_bytes),), np.dtype(np.uint8)))
            )
        return made

    def compute(self: Any, call: SimpleNamespace, arrays: list[np.ndarray], profile: Profile) -> np.ndarray:
        """The running totals."""
        src, byte = arrays[0], _byte(call)
        passes = np.ones(src.shape, bool)
        for number in range(_filters(call)):
            above = (src >> src.dtype.type(8 * (src.itemsize - 1 - number))) & src.dtype.type(255)
            wanted = arrays[1] if call.src.dtype is u16 else arrays[1][number]
            passes &= above == wanted
        counted = ((src >> src.dtype.type(8 * byte)) & src.dtype.type(255)).astype(np.int64)
        totals = [np.bincount(line[take], minlength=BINS) for line, take in zip(counted, passes, strict=True)]
        return np.cumsum(totals, axis=1).astype(np.uint32).reshape(len(src), BINS)
