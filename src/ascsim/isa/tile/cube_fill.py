"""TFILLPAD of tiles in L1: zeros around a matrix in boxes.

Sources: pto-isa docs/isa/TFILLPAD; include/pto/npu/a2a3/TFillPad.hpp, include/pto/npu/a5/TFillPad.hpp,
include/pto/cpu/TFillPad.hpp.
"""

from __future__ import annotations

from collections.abc import Iterator
from types import SimpleNamespace

import numpy as np

from ascsim.isa.definition import Definition, In, Out, tile_instruction
from ascsim.isa.rules import changed, dtype, in_space, refuse, same_dtype
from ascsim.isa.tile.boxes import SIDE, STRIP, Order, grid_of, order_of, up
from ascsim.machine.dtypes import bf16, f8e4m3, f8e5m2, f8e8m0, f16, f32, hif8, i8, i16, i32, u8, u16, u32
from ascsim.machine.operands import Region
from ascsim.machine.trace import Mode
from ascsim.machine.words import CompactMode, PadValue, Pipe, SLayout, Space
from ascsim.profiles import Profile

_CHIP_TYPES = (f32, i32, u32, f16, bf16, i16, u16, i8, u8)
_ALL_TYPES = (*_CHIP_TYPES, f8e4m3, f8e5m2, f8e8m0, hif8)


def _another_order(definition: Definition, call: SimpleNamespace, profile: Profile) -> str | None:
    return None if order_of(call.dst) is Order.NZ else "dst is not NZ"


def _with_another_order(call: SimpleNamespace, profile: Profile) -> Iterator[SimpleNamespace]:
    yield changed(call, "dst", slayout=SLayout.NONE_BOX)


def _another_value(definition: Definition, call: SimpleNamespace, profile: Profile) -> str | None:
    return None if call.dst.pad in (PadValue.NULL, PadValue.ZERO) else "dst has another PadValue than zero"


def _with_another_value(call: SimpleNamespace, profile: Profile) -> Iterator[SimpleNamespace]:
    yield changed(call, "dst", pad=PadValue.MAX)


def _another_tile(definition: Definition, call: SimpleNamespace, profile: Profile) -> str | None:
    dst, src = call.dst, call.src
    shapes = [(t.rows, t.cols, t.valid_rows, t.valid_cols, t.blayout, t.slayout) for t in (dst, src)]
    return None if shapes[0] == shapes[1] else "dst and src are tiles of two types"


def _with_another_tile(call: SimpleNamespace, profile: Profile) -> Iterator[SimpleNamespace]:
    yield changed(call, "src", rows=2 * call.src.rows)


def _packed(definition: Definition, call: SimpleNamespace, profile: Profile) -> str | None:
    known = (CompactMode.NULL, CompactMode.ROW_ALIGNED_PADDING)
    return None if call.dst.compact in known else f"dst has CompactMode {call.dst.compact.name}"


def _made_packed(call: SimpleNamespace, profile: Profile) -> Iterator[SimpleNamespace]:
    yield changed(call, "dst", compact=CompactMode.ROW_PLUS_ONE)


@tile_instruction("tfillpad", pipe=Pipe.MTE2, core="aic")
class TFillPadMat:
    """Fill what is not valid of a matrix in boxes with zeros: the rows below, and the boxes beside. src is dst itself."""

    operands = (Out("dst", lies_in=(Space.L1,)), In("src", lies_in=(Space.L1,), shares="dst"))
    rules = (
        dtype("dst", a2a3=_CHIP_TYPES, a5=_ALL_TYPES, cpu=_ALL_TYPES),
        same_dtype("dst", "src"),
        in_space(Space.L1, "dst", "src"),
        refuse("L004", "dst is NZ", _another_order, breaks=_with_another_order,
               mend="Declare it with BLayout::ColMajor and SLayout::RowMajor."),
        refuse("L006", "the PadValue of dst is Null or Zero", _another_value, breaks=_with_another_value,
               mend="Use PadValue::Zero."),
        refuse("L007", "dst and src are of one type", _another_tile, breaks=_with_another_tile, mend="Give one tile twice."),
        refuse("L012", "the CompactMode of dst is Null or RowAlignedPadding", _packed, breaks=_made_packed,
               mend="ascsim check FILE lists all such calls of a file."),
    )  # fmt: skip
    notes = (
        "src is not read. Columns that are not valid, in a box of which others are, keep what they have: TLOAD made zeros of "
        "them.",
        "With CompactMode::RowAlignedPadding chips fill the rows up to the next 16 alone.",
        "The portable form writes all of dst, and so copies src where that is another tile; here it is taken to be dst.",
    )
    sources = (
        "pto-isa docs/isa/TFILLPAD",
        "pto-isa include/pto/npu/a2a3/TFillPad.hpp, include/pto/npu/a5/TFillPad.hpp",
    )

    def regions(self, call: SimpleNamespace, profile: Profile) -> list[tuple[int, int, Region]]:
        """The lines below the valid ones in their strips; the other strips."""
        dst = call.dst
        width = STRIP // dst.dtype.size
        grid, wide = grid_of(dst, profile, dst.dtype.bits_dtype), up(dst.valid_cols, width)
        only_rows = profile.is_chip and dst.compact is CompactMode.ROW_ALIGNED_PADDING
        below = (up(dst.valid_rows, SIDE) if only_rows else dst.rows) - dst.valid_rows
        found = [(0, int(Mode.WRITE), grid.region(below, wide, dst.valid_rows))] if below and wide else []
        if wide < dst.cols and not only_rows:
            found.append((0, int(Mode.WRITE), grid.region(dst.rows, dst.cols - wide, 0, wide)))
        return found

    values = "bits"

    def compute(self, call: SimpleNamespace, arrays: list[np.ndarray], profile: Profile) -> tuple[int, ...]:
        """Zeros."""
        return (0,) * len(self.regions(call, profile))
