"""TTRI: a triangle of ones.

Sources: pto-isa docs/isa/TTRI; include/pto/npu/a2a3/TTri.hpp, include/pto/npu/a5/TTri.hpp, include/pto/cpu/TTRI.hpp.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from types import SimpleNamespace
from typing import Any

import numpy as np

from ascsim.diagnostics import Severity
from ascsim.isa.definition import A5, Asm, Choice, Definition, Out, Scalar, tile_instruction
from ascsim.isa.indexed import touches_of
from ascsim.isa.memory_form.masked import set_mask_norm, set_vector_mask
from ascsim.isa.rules import changed, dtype, finding, refuse, vector_tiles
from ascsim.isa.steps import VECTOR_DUP, group
from ascsim.isa.sync import pipe_barrier
from ascsim.machine.core import Core, Group, Step, Touch
from ascsim.machine.dtypes import bf16, f16, f32, i8, i16, i32, i64, u8, u16, u32, u64
from ascsim.machine.operands import REGISTER_BYTES, Region, Tile
from ascsim.machine.trace import Mode
from ascsim.machine.words import Pipe
from ascsim.profiles import Profile

_A2A3_TYPES = (i32, i16, u32, u16, f16, f32)
_CPU_TYPES = (*_A2A3_TYPES, bf16)
_A5_TYPES = (*_CPU_TYPES, i8, u8, i64, u64)


def widths(call: SimpleNamespace, profile: Profile) -> np.ndarray:
    """How many elements of each row come first: ones of a lower triangle, zeros of an upper one.

    The A5 stores them beyond the valid columns where the diagonal lies there, up to the end of the last 256 bytes.
    """
    dst = call.dst
    reach = np.arange(dst.valid_rows, dtype=np.int64) + int(call.diagonal) + (0 if int(call.upper) else 1)
    last = dst.valid_cols
    if profile.name == "a5" and dst.dtype.size < 8:
        lanes = REGISTER_BYTES // dst.dtype.size
        last = -(-dst.valid_cols // lanes) * lanes
    return np.clip(reach, 0, last)


def _beyond(definition: Definition, call: SimpleNamespace, profile: Profile) -> str | None:
    wide = int(widths(call, profile).max(initial=0))
    if wide <= call.dst.valid_cols:
        return None
    what = "zeros" if int(call.upper) else "ones"
    return f"{what} are written up to column {wide - 1}; dst has {call.dst.valid_cols} valid columns"


def _made_beyond(call: SimpleNamespace, profile: Profile) -> Iterator[SimpleNamespace]:
    yield SimpleNamespace(**{**vars(changed(call, "dst", valid_cols=8)), "diagonal": 20})


def _neither(definition: Definition, call: SimpleNamespace, profile: Profile) -> str | None:
    return None if int(call.upper) in (0, 1) else f"upperOrLower is {int(call.upper)}; it is 0 (lower) or 1 (upper)"


def _made_neither(call: SimpleNamespace, profile: Profile) -> Iterator[SimpleNamespace]:
    yield SimpleNamespace(**{**vars(call), "upper": 2})


def _one(tile: Tile) -> int:
    """The bits of 1."""
    return int(np.array(1).astype(tile.dtype.numpy).view(tile.dtype.bits_dtype))


def _row(tile: Tile, row: int, cols: int) -> Region:
    return Region(tile.space, tile.address + row * tile.row_bytes, cols * tile.dtype.size, (), tile.dtype.bits_dtype)


@tile_instruction("ttri", pipe=Pipe.V, cpp_templates=("dst upper",), asm=(Asm("ttri", order=("diagonal",)),))
class TTri:
    """Fill a tile with a triangle of ones, and zeros elsewhere.

    Lower: element (i, j) is 1 where ``j <= i + diagonal``; upper: where ``j >= i + diagonal``.
    """

    operands = (
        Out("dst"), Scalar("diagonal", i32, doc="which diagonal bounds the ones; 0 is the main one"),
        Choice("upper", int, optional=True, default=0, asm_name="upperOrLower", doc="0 for lower, 1 for upper"),
    )  # fmt: skip
    rules = (
        dtype("dst", a2a3=_A2A3_TYPES, a5=_A5_TYPES, cpu=_CPU_TYPES),
        vector_tiles("dst"),
        refuse("L006", "upperOrLower is 0 or 1", _neither, breaks=_made_neither, mend="Use 0 for lower, 1 for upper."),
        finding("E-TTRI-WIDE", "the diagonal leaves no row beyond the valid columns", _beyond, breaks=_made_beyond,
                profiles=A5, severity=Severity.WARNING,
                why="The library stores as many elements as lie before the diagonal, without looking at the valid columns.",
                mend="Give dst more valid columns, or a smaller diagonal."),
    )  # fmt: skip
    values = "bits"
    notes = (
        "The valid region of dst is written. A2/A3: two vector_dup a row, each with a barrier on V after it; the vector "
        "mask is all ones afterwards, in normal mode. A5: one vector function.",
        "In C++ ``TTRI<TileData, upperOrLower>(dst, diagonal)``.",
    )
    sources = (
        "pto-isa docs/isa/TTRI",
        "pto-isa include/pto/npu/a2a3/TTri.hpp, include/pto/npu/a5/TTri.hpp, include/pto/cpu/TTRI.hpp",
    )

    def touches(self: Any, core: Core, args: Sequence[Any]) -> list[Touch]:
        """The valid region, and what the A5 writes beyond it."""
        call = self.call(args)
        dst, size = call.dst, call.dst.dtype.size
        beyond = [
            dst.address + row * dst.row_bytes + np.arange(dst.valid_cols, width) * size
            for row, width in enumerate(widths(call, core.profile).tolist())
            if width > dst.valid_cols
        ]
        found = [Touch(0, Mode.WRITE, dst.region(), 5)]
        return [*found, *touches_of(0, Mode.WRITE, dst.space, np.concatenate(beyond), size)] if beyond else found

    def perform(self: Any, core: Core, args: Sequence[Any], touches: list[Touch]) -> None:
        """Row by row."""
        call = self.call(args)
        dst, one = call.dst, _one(call.dst)
        first, rest = (0, one) if int(call.upper) else (one, 0)
        for row, width in enumerate(widths(call, core.profile).tolist()):
            core.view(_row(dst, row, dst.valid_cols))[...] = rest
            core.view(_row(dst, row, width))[...] = first

    def expand(self: Any, call: SimpleNamespace, profile: Profile) -> Iterator[Group] | None:
        """The steps of A2/A3."""
        return _expand(call, profile) if profile.name == "a2a3" else None


def _expand(call: SimpleNamespace, profile: Profile) -> Iterator[Group]:
    dst, one, barrier = call.dst, _one(call.dst), Step(pipe_barrier, (Pipe.V,))
    first, rest = (0, one) if int(call.upper) else (one, 0)
    steps: list[Step] = []
    for row, width in enumerate(widths(call, profile).tolist()):
        steps += [VECTOR_DUP.step(dst, _row(dst, row, dst.valid_cols), bits=rest), barrier]
        if width:
            steps += [VECTOR_DUP.step(dst, _row(dst, row, width), bits=first), barrier]
    yield group(*steps, Step(set_mask_norm, ()), Step(set_vector_mask, (-1, -1)))
