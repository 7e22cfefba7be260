"""TINTERLEAVE and TDEINTERLEAVE: weaving and unweaving the columns of tiles.

Sources: pto-isa docs/isa/TINTERLEAVE, TDEINTERLEAVE; include/pto/npu/a5 TInterleave.hpp, TDeInterleave.hpp;
include/pto/cpu TInterleave.hpp, TDeinterleave.hpp.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

from ascsim.diagnostics import CATALOGUE, Severity
from ascsim.isa.definition import A5, Definition, In, Out, tile_instruction
from ascsim.isa.rules import Rule, dtype, finding, in_space, refuse, row_major, same_dtype, same_valid_shape
from ascsim.isa.semantics.rearrange import deinterleave, interleave
from ascsim.machine.core import Core, Finding, Touch
from ascsim.machine.dtypes import bf16, f16, f32, i8, i16, i32, u8, u16, u32
from ascsim.machine.operands import Region
from ascsim.machine.trace import Mode
from ascsim.machine.words import Pipe, Space
from ascsim.profiles import Profile

_PROFILES = ("a5", "cpu")
_TYPES = (i32, u32, f32, i16, u16, f16, bf16, u8, i8)

CATALOGUE.add(
    "INTERLEAVE-1", Severity.ERROR, "TINTERLEAVE or TDEINTERLEAVE in place",
    "A destination and a source share bytes. The instruction goes row by row and writes columns of the destination "
    "before it has read all of the source, so that it works on its own results. ascsim read everything first. Write "
    "to other tiles.",
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


def _even(*profiles: str) -> Rule:
    return refuse("L007", "the number of valid columns is even", _odd, breaks=_made_odd, profiles=profiles,
                  mend="Work on an even number of columns.")  # fmt: skip


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


_FOUR = ("dst0", "dst1", "src0", "src1")
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
    rules = (*_tiles(*_FOUR), same_valid_shape(*_FOUR), _even("a5", "cpu"))
    values = "bits"
    observe = _used_in_place
    over = "dst0"
    semantics = staticmethod(interleave)
    notes = _NOTES
    sources = (
        "pto-isa docs/isa/TINTERLEAVE",
        "pto-isa include/pto/npu/a5/TInterleave.hpp, include/pto/cpu/TInterleave.hpp",
    )


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
        *_tiles(*_FOUR), same_valid_shape(*_FOUR), _even("cpu"),
        finding("TDEINTERLEAVE-1", "the number of valid columns is even", _odd, breaks=_made_odd, profiles=A5,
                why="The library halves it and rounds down: the last column is neither read nor written.",
                mend="Work on an even number of columns."),
    )  # fmt: skip
    values = "bits"
    observe = _used_in_place
    semantics = staticmethod(deinterleave)
    notes = _NOTES
    sources = (
        "pto-isa docs/isa/TDEINTERLEAVE",
        "pto-isa include/pto/npu/a5/TDeInterleave.hpp, include/pto/cpu/TDeinterleave.hpp",
    )

    def regions(self, call: SimpleNamespace, profile: Profile) -> list[tuple[int, int, Region]]:
        """An even number of valid columns of each."""
        rows, columns = call.dst0.valid_rows, call.dst0.valid_cols // 2 * 2
        modes = (Mode.WRITE, Mode.WRITE, Mode.READ, Mode.READ)
        return [
            (number, mode, getattr(call, name).region(rows, columns))
            for number, (name, mode) in enumerate(zip(_FOUR, modes, strict=True))
        ]


def _not_half(definition: Definition, call: SimpleNamespace, profile: Profile) -> str | None:
    src, odd = call.src, call.src.valid_cols % 2
    if odd and not profile.is_chip:
        return f"src has {src.valid_cols} valid columns, an odd number"
    for name in ("dst0", "dst1"):
        tile = getattr(call, name)
        if (tile.valid_rows, tile.valid_cols) != (src.valid_rows, src.valid_cols // 2):
            return (
                f"{name} has {tile.valid_rows}x{tile.valid_cols} valid and src {src.valid_rows}x{src.valid_cols}; "
                "it must have as many rows and half the columns"
            )
    return None


def _with_other_half(call: SimpleNamespace, profile: Profile) -> Iterator[SimpleNamespace]:
    yield _with(call, ["dst1"], valid_cols=call.dst1.valid_cols - 1)
    yield _with(call, ["src"], valid_rows=call.src.valid_rows - 1)


@tile_instruction("tdeinterleave", pipe=Pipe.V, profiles=_PROFILES, cpp_order=("dst1", "dst0", "src"))
class TDeInterleaveOne:
    """Part the rows of one tile into their even and their odd columns."""

    operands = (Out("dst0", doc="even columns"), Out("dst1", doc="odd columns"), In("src", doc="twice as wide"))
    rules = (
        *_tiles("dst0", "dst1", "src"),
        refuse("L007", "dst0 and dst1 have the valid rows of src and half its columns, an even number", _not_half,
               breaks=_with_other_half, mend="Give dst0 and dst1 half the valid columns of src."),
    )  # fmt: skip
    values = "bits"
    observe = _used_in_place
    notes = (*_NOTES[:1], "The C++ function has its destinations the other way round: dst1, dst0, src.", _NOTES[2])
    sources = TDeInterleave.sources

    def regions(self, call: SimpleNamespace, profile: Profile) -> list[tuple[int, int, Region]]:
        """Twice the columns of dst0 of the source."""
        rows, columns = call.dst0.valid_rows, call.dst0.valid_cols
        return [
            (0, Mode.WRITE, call.dst0.region()), (1, Mode.WRITE, call.dst1.region()),
            (2, Mode.READ, call.src.region(rows, 2 * columns)),
        ]  # fmt: skip

    def compute(self, call: SimpleNamespace, arrays: list[Any], profile: Profile) -> tuple[Any, Any]:
        """Even and odd columns."""
        return arrays[0][:, 0::2].copy(), arrays[0][:, 1::2].copy()
