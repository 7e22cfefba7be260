"""TINTERLEAVE and TDEINTERLEAVE: weaving and unweaving the columns of tiles.

Sources: pto-isa docs/isa/TINTERLEAVE, TDEINTERLEAVE; include/pto/npu/a5 TInterleave.hpp, TDeInterleave.hpp;
include/pto/cpu TInterleave.hpp, TDeinterleave.hpp.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import numpy as np

from ascsim.diagnostics import CATALOGUE, Severity
from ascsim.isa.definition import A5, Definition, In, Out, tile_instruction
from ascsim.isa.rules import (
    Rule,
    dtype,
    finding,
    in_space,
    refuse,
    row_major,
    same_dtype,
    same_valid_shape,
    unchecked_valid_shape,
)
from ascsim.isa.semantics.rearrange import deinterleave, interleave
from ascsim.machine.core import Core, Finding, Touch
from ascsim.machine.dtypes import bf16, f16, f32, i8, i16, i32, u8, u16, u32
from ascsim.machine.operands import Region
from ascsim.machine.trace import Mode
from ascsim.machine.words import Pipe, Space
from ascsim.profiles import Profile

_PROFILES = ("a5", "cpu")
_FOUR = ("dst0", "dst1", "src0", "src1")
_TYPES = (i32, u32, f32, i16, u16, f16, bf16, u8, i8)

CATALOGUE.add(
    "INTERLEAVE-1", Severity.ERROR, "TINTERLEAVE or TDEINTERLEAVE in place",
    "A destination and a source share bytes. The instruction goes row by row and writes columns of the destination "
    "before it has read all of the source, so that it works on its own results. ascsim read everything "
    "first.\n\n"
    "Write to other tiles.",
)  # fmt: skip


def _with(call: SimpleNamespace, names: Sequence[str], **changes: object) -> SimpleNamespace:
    return SimpleNamespace(**{**vars(call), **{name: replace(getattr(call, name), **changes) for name in names}})


def _tiles(*names: str) -> tuple[Rule, ...]:
    return (
        dtype("dst0", a5=_TYPES, cpu=_TYPES),
        same_dtype(*names),
        row_major(*names),
        in_space(Space.UB, *names),
    )


def _odd(definition: Definition, call: SimpleNamespace, profile: Profile) -> str | None:
    columns = call.dst0.valid_cols
    return f"{columns} valid columns, an odd number" if columns % 2 else None


def _made_odd(call: SimpleNamespace, profile: Profile) -> Iterator[SimpleNamespace]:
    yield _with(call, [o for o in ("dst0", "dst1", "src0", "src1") if hasattr(call, o)], valid_cols=3)


def _shapes(name: str, odd_why: str) -> tuple[Rule, ...]:
    """One valid shape, an even number of columns: refused on cpu, unchecked on the A5."""
    even, mend = "the number of valid columns is even", "Work on an even number of columns."
    return (
        same_valid_shape(*_FOUR, profiles=("cpu",)),
        refuse("L007", even, _odd, breaks=_made_odd, profiles=("cpu",), mend=mend),
        unchecked_valid_shape(f"{name}-1", *_FOUR, why="The library takes the valid region of dst0.", profiles=A5),
        finding(f"{name}-2", even, _odd, breaks=_made_odd, profiles=A5, why=odd_why, mend=mend),
    )


def _used_in_place(self: Any, core: Core, args: Sequence[Any], touches: list[Touch]) -> list[Finding]:
    """Report destinations that overlap sources."""
    written = [t.region for t in touches if t.mode == Mode.WRITE and not t.region.is_empty()]
    read = [t.region for t in touches if t.mode == Mode.READ and not t.region.is_empty()]
    for target in written:
        for source in read:
            (low, high), (start, end) = target.bounds(), source.bounds()
            first, last = max(low, start), min(high, end) - 1
            if first <= last:
                headline = f"{self.title}: a destination and a source share bytes {first:#x}..{last:#x}"
                return [Finding("INTERLEAVE-1", Severity.ERROR, headline, (), "Write to other tiles.")]
    return []


def _four_regions(call: SimpleNamespace, columns: int) -> list[tuple[int, int, Region]]:
    modes = (Mode.WRITE, Mode.WRITE, Mode.READ, Mode.READ)
    return [
        (number, mode, getattr(call, name).region(call.dst0.valid_rows, columns))
        for number, (name, mode) in enumerate(zip(_FOUR, modes, strict=True))
    ]


_NOTES = (
    "Elements keep their bits. A row's columns beyond the valid ones are not written.",
    "The C++ function has its operands the other way round: dst1, dst0, src1, src0.",
    "It is not for use in place (INTERLEAVE-1).",
)


@tile_instruction("tinterleave", pipe=Pipe.V, profiles=_PROFILES, cpp_order=("dst1", "dst0", "src1", "src0"))
class TInterleave:
    """Weave the rows of two tiles, column by column.

    The woven row ``src0[0] src1[0] src0[1] src1[1] ...`` is twice as long as the sources' rows: its first half goes to
    ``dst0``, its second half to ``dst1``.
    """

    operands = (
        Out("dst0", doc="first half of the woven rows"), Out("dst1", doc="second half"),
        In("src0", doc="goes to even columns"), In("src1", doc="goes to odd columns"),
    )  # fmt: skip
    rules = (
        *_tiles(*_FOUR),
        *_shapes("TINTERLEAVE", "The library halves it and rounds down: the middle column goes to dst0 and dst1."),
    )
    values = "bits"
    observe = _used_in_place
    warns = ("INTERLEAVE-1",)
    notes = _NOTES
    sources = (
        "pto-isa docs/isa/TINTERLEAVE",
        "pto-isa include/pto/npu/a5/TInterleave.hpp, include/pto/cpu/TInterleave.hpp",
    )

    def regions(self, call: SimpleNamespace, profile: Profile) -> list[tuple[int, int, Region]]:
        """The valid region of dst0 of each."""
        return _four_regions(call, call.dst0.valid_cols)

    def compute(self, call: SimpleNamespace, arrays: list[np.ndarray], profile: Profile) -> tuple[np.ndarray, ...]:
        """Both halves of the woven rows; an odd row's middle column is woven into both."""
        columns = arrays[0].shape[1]
        low, high = slice(0, columns - columns // 2), slice(columns // 2, columns)
        sources = [np.concatenate([a[:, low], a[:, high]], axis=1) for a in arrays]
        first, second = interleave(*sources)
        return first[:, :columns], second[:, :columns]


@tile_instruction("tdeinterleave", pipe=Pipe.V, profiles=_PROFILES, cpp_order=("dst1", "dst0", "src1", "src0"))
class TDeInterleave:
    """Part woven rows, held by two tiles one after the other, into their even and their odd columns.

    The inverse of TINTERLEAVE: of the row ``src0`` then ``src1``, ``dst0`` takes the even columns, ``dst1`` the odd.
    """

    operands = (
        Out("dst0", doc="even columns"), Out("dst1", doc="odd columns"),
        In("src0", doc="first half of the rows"), In("src1", doc="second half"),
    )  # fmt: skip
    rules = (
        *_tiles(*_FOUR),
        *_shapes("TDEINTERLEAVE", "The library halves it and rounds down: the last column is left out."),
    )
    values = "bits"
    observe = _used_in_place
    warns = ("INTERLEAVE-1",)
    semantics = staticmethod(deinterleave)
    notes = _NOTES
    sources = (
        "pto-isa docs/isa/TDEINTERLEAVE",
        "pto-isa include/pto/npu/a5/TDeInterleave.hpp, include/pto/cpu/TDeinterleave.hpp",
    )

    def regions(self, call: SimpleNamespace, profile: Profile) -> list[tuple[int, int, Region]]:
        """An even number of valid columns of each."""
        return _four_regions(call, call.dst0.valid_cols // 2 * 2)


def _not_half(definition: Definition, call: SimpleNamespace, profile: Profile) -> str | None:
    src = call.src
    for name in ("dst0", "dst1"):
        tile = getattr(call, name)
        if (tile.valid_rows, 2 * tile.valid_cols) != (src.valid_rows, src.valid_cols):
            return (
                f"{name} has {tile.valid_rows}x{tile.valid_cols} valid and src {src.valid_rows}x{src.valid_cols}; "
                "it must have as many rows and half the columns"
            )
    return None


def _with_other_half(call: SimpleNamespace, profile: Profile) -> Iterator[SimpleNamespace]:
    yield _with(call, ["dst1"], valid_cols=call.dst1.valid_cols - 1)
    yield _with(call, ["src"], valid_rows=call.src.valid_rows - 1)


_HALF = "dst0 and dst1 have the valid rows of src and half its columns"
_HALVE = "Give dst0 and dst1 half the valid columns of src, an even number."


@tile_instruction("tdeinterleave", pipe=Pipe.V, profiles=_PROFILES, cpp_order=("dst1", "dst0", "src"))
class TDeInterleaveOne:
    """Part the rows of one tile into their even and their odd columns."""

    operands = (Out("dst0", doc="even columns"), Out("dst1", doc="odd columns"), In("src", doc="twice as wide"))
    rules = (
        *_tiles("dst0", "dst1", "src"),
        refuse("L007", _HALF, _not_half, breaks=_with_other_half, mend=_HALVE, profiles=("cpu",)),
        finding("TDEINTERLEAVE-3", _HALF, _not_half, breaks=_with_other_half, mend=_HALVE, profiles=A5,
                why="The library takes the rows of src and half its columns, rounded down."),
    )  # fmt: skip
    values = "bits"
    observe = _used_in_place
    warns = ("INTERLEAVE-1",)
    notes = (*_NOTES[:1], "The C++ function has its destinations the other way round: dst1, dst0, src.", _NOTES[2])
    sources = TDeInterleave.sources

    def regions(self, call: SimpleNamespace, profile: Profile) -> list[tuple[int, int, Region]]:
        """An even number of the source's valid columns, half as many of the others."""
        rows, half = call.src.valid_rows, call.src.valid_cols // 2
        return [
            (0, Mode.WRITE, call.dst0.region(rows, half)), (1, Mode.WRITE, call.dst1.region(rows, half)),
            (2, Mode.READ, call.src.region(rows, 2 * half)),
        ]  # fmt: skip

    def compute(self, call: SimpleNamespace, arrays: list[Any], profile: Profile) -> tuple[Any, Any]:
        """Even and odd columns."""
        return arrays[0][:, 0::2].copy(), arrays[0][:, 1::2].copy()
