"""TGATHERB: 32-byte blocks from where offsets say.

Sources: pto-isa docs/isa/TGATHERB; include/pto/npu/a2a3/TGatherB.hpp, include/pto/npu/a5/TGatherB.hpp,
include/pto/cpu/TGatherB.hpp.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from types import SimpleNamespace
from typing import Any, NamedTuple

import numpy as np

from ascsim.diagnostics import CATALOGUE, Severity
from ascsim.isa.definition import A2A3, CHIPS, Definition, In, Out, tile_instruction
from ascsim.isa.indexed import NOTHING, bytes_at, touches_of
from ascsim.isa.rules import changed, dtype, finding, refuse, vector_tiles
from ascsim.isa.transfer import BLOCK
from ascsim.machine.core import Core, Finding, Touch
from ascsim.machine.dtypes import bf16, f8e4m3, f8e5m2, f8e8m0, f16, f32, hif8, i8, i16, i32, u8, u16, u32
from ascsim.machine.operands import REGISTER_BYTES, Region
from ascsim.machine.trace import Mode
from ascsim.machine.words import Pipe
from ascsim.profiles import Profile

_TYPES = (i8, u8, i16, u16, i32, u32, f16, bf16, f32)
_A5_TYPES = (*_TYPES, f8e4m3, f8e5m2, f8e8m0, hif8)
_BLOCKS_OF_A_REPEAT = REGISTER_BYTES // BLOCK
_U32 = np.dtype(np.uint32)

CATALOGUE.add(
    "TGATHERB-1", Severity.ERROR, "TGATHERB from outside src",
    "An offset and the 32 bytes behind it do not lie within src: on a chip other bytes of UB are gathered, and the "
    "portable form leaves the block of dst as it was.\n\n"
    "Offsets count bytes from the start of src; the largest is the bytes of src less 32.",
)  # fmt: skip


class _Gather(NamedTuple):
    """One run of repeats: which numbers are read, and where their blocks go."""

    offsets: Region
    written: Region
    """As (rows, bytes)."""
    blocks: int
    """Offsets of a row."""


def gathers(call: SimpleNamespace, profile: Profile) -> list[_Gather]:
    """What the library's code does with these shapes."""
    dst, offset = call.dst, call.offset
    rows, nbytes = dst.valid_rows, dst.valid_cols * dst.dtype.size

    def one(first: int, blocks: int, length: int, pitch: int) -> _Gather:
        numbers = Region(offset.space, offset.address + 4 * first, 4 * blocks, ((rows, pitch),), _U32)
        start = dst.address + first * BLOCK
        bursts = ((rows, dst.row_bytes),)
        return _Gather(numbers, Region(dst.space, start, length, bursts, np.dtype(np.uint8)), blocks)

    if profile.name != "a2a3":
        if profile.name == "a5" and -(-dst.row_bytes // REGISTER_BYTES) > dst.rows:
            nbytes = -(-nbytes // 4) * 4  # stored as 32-bit lanes
        blocks = -(-nbytes // BLOCK)
        return [one(0, blocks, nbytes, offset.row_bytes)] if blocks else []
    whole = nbytes // REGISTER_BYTES * _BLOCKS_OF_A_REPEAT
    found = [one(0, whole, whole * BLOCK, offset.row_bytes)] if whole else []
    if nbytes % REGISTER_BYTES:
        found.append(one(whole, _BLOCKS_OF_A_REPEAT, REGISTER_BYTES, 4 * _BLOCKS_OF_A_REPEAT))
    return found


def _tail(definition: Definition, call: SimpleNamespace, profile: Profile) -> str | None:
    rest = call.dst.valid_cols * call.dst.dtype.size % REGISTER_BYTES
    if not rest:
        return None
    return (
        f"the last {rest} bytes of each row are gathered as 256, with the offsets of row i from 8 * i on (idx has "
        f"{call.offset.cols} columns)"
    )


def _with_tail(call: SimpleNamespace, profile: Profile) -> Iterator[SimpleNamespace]:
    yield changed(call, "dst", valid_cols=BLOCK // call.dst.dtype.size)


def _part_of_a_block(definition: Definition, call: SimpleNamespace, profile: Profile) -> str | None:
    rest = call.dst.valid_cols * call.dst.dtype.size % BLOCK
    return f"a row of dst has {rest} bytes more than whole 32-byte blocks" if rest else None


def _with_part(call: SimpleNamespace, profile: Profile) -> Iterator[SimpleNamespace]:
    yield changed(call, "dst", valid_cols=1)


def _few(definition: Definition, call: SimpleNamespace, profile: Profile) -> str | None:
    need = -(-call.dst.valid_cols * call.dst.dtype.size // BLOCK)
    if call.offset.valid_cols >= need and call.offset.valid_rows >= call.dst.valid_rows:
        return None
    valid = f"{call.offset.valid_rows}x{call.offset.valid_cols}"
    return f"offset has {valid} valid; dst needs {call.dst.valid_rows}x{need}"


def _with_few(call: SimpleNamespace, profile: Profile) -> Iterator[SimpleNamespace]:
    yield changed(call, "offset", valid_rows=1)


@tile_instruction("tgatherb", pipe=Pipe.V)
class TGatherB:
    """Gather blocks of 32 bytes: block ``c`` of row ``r`` of dst comes from ``offset[r, c]`` bytes into src."""

    operands = (Out("dst"), In("src"), In("offset", doc="u32, a byte offset into src for each 32-byte block of dst"))
    rules = (
        dtype("dst", a2a3=_TYPES, a5=_A5_TYPES, cpu=_A5_TYPES),
        dtype("offset", a2a3=(u32, i32, f32), a5=(u32, i32, f32), cpu=(u32, i32)),
        vector_tiles("dst", "src", "offset"),
        refuse("L007", "rows of dst are whole blocks", _part_of_a_block, breaks=_with_part, profiles=("cpu",),
               mend="Give dst valid columns that are a multiple of 32 bytes."),
        finding("TGATHERB-2", "there is an offset for each block", _few, breaks=_with_few, profiles=CHIPS,
                why="Numbers beyond the valid region of offset are taken for offsets too.",
                mend="Give offset the valid rows of dst, and a valid column for each 32 bytes of a row."),
        finding("E-TGATHERB-TAIL", "rows of dst are a multiple of 256 bytes", _tail, breaks=_with_tail, profiles=A2A3,
                severity=Severity.WARNING,
                why="The library's code for the end of a row gathers 8 blocks a row, and takes the offsets of all rows "
                "one behind the other.",
                mend="Work on whole 256 bytes a row, or give offset 8 columns and dst room for them."),
    )  # fmt: skip
    is_static = False
    warns = ("TGATHERB-1",)
    notes = (
        "A2/A3 gather 8 blocks at a time and write all of them, so that rows that are no multiple of 256 bytes write "
        "beyond their end. The A5 writes the valid columns; of rows longer than the tile is high, up to 4 bytes.",
        "Where an offset leaves src the portable form leaves the block of dst alone.",
    )
    sources = (
        "pto-isa docs/isa/TGATHERB",
        "pto-isa include/pto/npu/a2a3/TGatherB.hpp, include/pto/npu/a5/TGatherB.hpp, include/pto/cpu/TGatherB.hpp",
    )

    @staticmethod
    def sources_of(call: SimpleNamespace, core: Core, numbers: np.ndarray) -> np.ndarray:
        """The addresses that offsets mean."""
        starts = call.src.address + numbers.astype(np.int64)
        if not core.profile.is_chip:
            starts[numbers.astype(np.int64) + BLOCK > call.src.nbytes] = NOTHING
        return starts

    def touches(self: Any, core: Core, args: Sequence[Any]) -> list[Touch]:
        """Offsets and blocks read, rows written."""
        call = self.call(args)
        found: list[Touch] = []
        for one in gathers(call, core.profile):
            found += [Touch(2, Mode.READ, one.offsets), Touch(0, Mode.WRITE, one.written, 5)]
            try:
                starts = self.sources_of(call, core, core.view(one.offsets))
            except ValueError:
                continue
            found += touches_of(1, Mode.READ, call.src.space, starts.ravel(), BLOCK)
        return found

    def perform(self: Any, core: Core, args: Sequence[Any], touches: list[Touch]) -> None:
        """Gather run by run, row by row."""
        call = self.call(args)
        for one in gathers(call, core.profile):
            starts = self.sources_of(call, core, core.view(one.offsets))
            view = core.view(one.written)
            for row, held in zip(starts, view, strict=True):
                blocks = bytes_at(core, call.src.space, row, BLOCK)
                there = np.repeat(row != NOTHING, BLOCK)[: held.size]
                held[there] = blocks.ravel()[: held.size][there]

    def observe(self: Any, core: Core, args: Sequence[Any], touches: list[Touch]) -> list[Finding]:
        """Report offsets that leave src."""
        call = self.call(args)
        need = -(-call.dst.valid_cols * call.dst.dtype.size // BLOCK)
        rows, cols = min(call.dst.valid_rows, call.offset.rows), min(need, call.offset.cols)
        numbers = core.view(call.offset.region(rows, cols, _U32))
        wrong = numbers.astype(np.int64) + BLOCK > call.src.nbytes
        if not wrong.any():
            return []
        row, col = (int(n[0]) for n in np.nonzero(wrong))
        headline = (
            f"{self.title}: offset {int(numbers[row, col])} at ({row}, {col}) and 32 bytes leave src, "
            f"which has {call.src.nbytes}"
        )
        return [Finding("TGATHERB-1", Severity.ERROR, headline, (), "Use byte offsets within src.")]
