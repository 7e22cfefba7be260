"""TCONCAT: two tiles side by side.

Sources: pto-isa docs/isa/TCONCAT; include/pto/npu/a2a3/TConcat.hpp, include/pto/npu/a5/TConcat.hpp,
include/pto/cpu/TConcat.hpp.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from types import SimpleNamespace
from typing import Any

import numpy as np

from ascsim.isa.definition import A5, CHIPS, Definition, In, Out, tile_instruction
from ascsim.isa.indexed import Places, bytes_at, put_bytes, rows_of, touches_of
from ascsim.isa.rules import Rule, changed, dtype, finding, refuse, same_dtype, vector_tiles
from ascsim.isa.steps import COPY_UB, SCALAR_LOOP, flag_pair, group
from ascsim.isa.transfer import BLOCK, whole_blocks
from ascsim.machine.core import Core, Group, Touch
from ascsim.machine.dtypes import bf16, f16, f32, i8, i16, i32, u8, u16, u32
from ascsim.machine.operands import Region, Tile
from ascsim.machine.trace import Mode
from ascsim.machine.words import Pipe
from ascsim.profiles import Profile

_TYPES = (i32, i16, i8, u32, u16, u8, f16, f32, bf16)
_COUNT_TYPES = (i32, i16, i8, u32, u16, u8)


def _other_rows(definition: Definition, call: SimpleNamespace, profile: Profile) -> str | None:
    rows = [call.dst.valid_rows, call.src0.valid_rows, call.src1.valid_rows]
    return None if len(set(rows)) == 1 else f"dst, src0 and src1 have {rows[0]}, {rows[1]} and {rows[2]} valid rows"


def _with_other_rows(call: SimpleNamespace, profile: Profile) -> Iterator[SimpleNamespace]:
    yield changed(call, "src1", valid_rows=call.src1.valid_rows - 1)


def _other_cols(definition: Definition, call: SimpleNamespace, profile: Profile) -> str | None:
    both, has = call.src0.valid_cols + call.src1.valid_cols, call.dst.valid_cols
    return None if both == has else f"dst has {has} valid columns; src0 and src1 have {both} together"


def _with_other_cols(call: SimpleNamespace, profile: Profile) -> Iterator[SimpleNamespace]:
    yield changed(call, "dst", valid_cols=call.dst.valid_cols - 1)


def _too_wide(definition: Definition, call: SimpleNamespace, profile: Profile) -> str | None:
    both = call.src0.valid_cols + call.src1.valid_cols
    return (
        None if both <= call.dst.cols else f"dst has {call.dst.cols} columns; src0 and src1 have {both} valid together"
    )


def _made_too_wide(call: SimpleNamespace, profile: Profile) -> Iterator[SimpleNamespace]:
    yield changed(call, "dst", cols=32, valid_cols=32)


def _far_index(definition: Definition, call: SimpleNamespace, profile: Profile) -> str | None:
    dst = call.dst
    if dst.dtype.size == 4 or dst.valid_rows * dst.cols <= 1 << (8 * dst.dtype.size):
        return None
    return (
        f"dst has elements beyond number {(1 << (8 * dst.dtype.size)) - 1}, which the library's {8 * dst.dtype.size}-bit "
        "index cannot name; what it does then is not implemented"
    )


def _made_far(call: SimpleNamespace, profile: Profile) -> Iterator[SimpleNamespace]:
    narrow = changed(changed(changed(call, "dst", dtype=i8), "src0", dtype=i8), "src1", dtype=i8)
    yield changed(narrow, "dst", rows=32, valid_rows=32, cols=128)


_ADJUST = "Give src0 and src1 the valid rows of dst, and dst their valid columns together."
_RULES: tuple[Rule, ...] = (
    dtype("dst", a2a3=_TYPES, a5=_TYPES, cpu=_TYPES),
    same_dtype("dst", "src0", "src1"),
    vector_tiles("dst", "src0", "src1"),
    refuse("L012", "every element of dst has an index as wide as an element", _far_index, breaks=_made_far, profiles=A5,
           mend="Use a smaller dst, or wider elements."),
    refuse("L007", "dst, src0 and src1 have as many valid rows", _other_rows, breaks=_with_other_rows, profiles=("cpu",),
           mend=_ADJUST),
    refuse("L007", "dst has the valid columns of both sources", _other_cols, breaks=_with_other_cols, profiles=("cpu",),
           mend=_ADJUST),
    finding("TCONCAT-1", "dst, src0 and src1 have as many valid rows", _other_rows, breaks=_with_other_rows,
            profiles=CHIPS, why="The library takes the rows of dst, and checks in debug builds only.", mend=_ADJUST),
    finding("TCONCAT-2", "dst has room for both sources", _too_wide, breaks=_made_too_wide, profiles=CHIPS,
            why="The library checks it in debug builds only; the end of each row falls on the next.", mend=_ADJUST),
)  # fmt: skip


def _columns(tile: Tile, first: int, rows: int, cols: int) -> Region:
    size = tile.dtype.size
    return Region(
        tile.space, tile.address + first * size, cols * size, ((rows, tile.row_bytes),), tile.dtype.bits_dtype
    )


@tile_instruction("tconcat", pipe=Pipe.V)
class TConcat:
    """Put the rows of two tiles side by side: the columns of src0, then those of src1."""

    operands = (Out("dst"), In("src0"), In("src1"))
    rules = _RULES
    values = "bits"
    notes = (
        "The valid columns of src0 and src1 say what is copied; on chips the rows are those of dst.",
        "A2/A3 copy whole 32-byte blocks: what lies beyond the end of a row, up to the block, is overwritten. Where "
        "src0's columns are no whole blocks, src1 goes element by element on the scalar pipe, with flags V to S and MTE2 "
        "to S (event 0) before it and none after it: what reads dst then needs a flag from S.",
        "A5: one vector function.",
    )
    sources = (
        "pto-isa docs/isa/TCONCAT",
        "pto-isa include/pto/npu/a2a3/TConcat.hpp, include/pto/npu/a5/TConcat.hpp, include/pto/cpu/TConcat.hpp",
    )

    def regions(self, call: SimpleNamespace, profile: Profile) -> list[tuple[int, int, Region]]:
        """Both parts of dst, and the sources."""
        rows, first, second = call.dst.valid_rows, call.src0.valid_cols, call.src1.valid_cols
        return [
            (0, Mode.WRITE, _columns(call.dst, 0, rows, first)), (0, Mode.WRITE, _columns(call.dst, first, rows, second)),
            (1, Mode.READ, _columns(call.src0, 0, rows, first)), (2, Mode.READ, _columns(call.src1, 0, rows, second)),
        ]  # fmt: skip

    def compute(self, call: SimpleNamespace, arrays: list[np.ndarray], profile: Profile) -> tuple[np.ndarray, ...]:
        """The elements as they are."""
        return tuple(a.copy() for a in arrays)

    def expand(self, call: SimpleNamespace, profile: Profile) -> Iterator[Group] | None:
        """The steps of A2/A3."""
        return _expand(call) if profile.name == "a2a3" else None


def _expand(call: SimpleNamespace) -> Iterator[Group]:
    dst, src0, src1 = call.dst, call.src0, call.src1
    rows, size, first = dst.valid_rows, dst.dtype.size, src0.valid_cols
    wide = [whole_blocks(src.valid_cols * size) // size for src in (src0, src1)]
    steps = [COPY_UB.step(dst, _columns(dst, 0, rows, wide[0]), src0, _columns(src0, 0, rows, wide[0]))]
    if first * size % BLOCK == 0:
        steps.append(COPY_UB.step(dst, _columns(dst, first, rows, wide[1]), src1, _columns(src1, 0, rows, wide[1])))
    else:
        there, here = _columns(dst, first, rows, src1.valid_cols), _columns(src1, 0, rows, src1.valid_cols)
        moved = SCALAR_LOOP.step(dst, there, src1, here)
        steps += [*flag_pair(Pipe.V, Pipe.S), *flag_pair(Pipe.MTE2, Pipe.S), moved]
    yield group(*steps)


# With counts


class _Counted:
    """The forms that take how much of each row counts, in bytes of the counts' own type."""

    is_static = False
    notes = (
        "A count is the first element of each row of its tile, in bytes of the type of the counts: 4 columns are 16 in "
        "an i32 tile, 8 in an i16 tile.",
        "The A5 moves no more than the valid columns of dst; cpu what the counts say, whose sum it leaves as it is, be it "
        "a multiple of an element's bytes or not.",
        "On A2/A3 these forms are not implemented.",
    )
    sources = TConcat.sources

    def places(self: Any, call: SimpleNamespace, core: Core) -> tuple[Places, Places, np.ndarray]:
        """Where src0 and src1 go, and the columns of each row of dst, in bytes."""
        dst, size, rows = call.dst, call.dst.dtype.size, call.dst.valid_rows
        unit = call.count0.dtype.size
        given = [core.view(tile.region(rows, 1)).astype(np.int64).ravel() for tile in (call.count0, call.count1)]
        first, second = (count // unit for count in given)
        total = given[0] + given[1]
        if core.profile.is_chip:
            first = np.minimum(first, dst.valid_cols)
            second = np.minimum(second, dst.valid_cols - first)
            total = (first + second) * unit
        parts = []
        for source, counts, shift in ((call.src0, first, np.zeros_like(first)), (call.src1, second, first)):
            to, here = [np.empty(0, np.int64)], [np.empty(0, np.int64)]
            for row in range(rows):
                columns = np.arange(counts[row])
                to.append(dst.address + row * dst.row_bytes + (shift[row] + columns) * size)
                here.append(source.address + row * source.row_bytes + columns * size)
            parts.append(Places(size, np.concatenate(to), np.concatenate(here)))
        return parts[0], parts[1], total

    def touches(self: Any, core: Core, args: Sequence[Any]) -> list[Touch]:
        """The counts, what they say of the sources and of dst."""
        call = self.call(args)
        number = {operand.name: n for n, operand in enumerate(self.inputs)}
        rows = call.dst.valid_rows
        found = [Touch(number[n], Mode.READ, getattr(call, n).region(rows, 1)) for n in ("count0", "count1")]
        try:
            first, second, _ = self.places(call, core)
        except ValueError:
            return found
        for name, places in (("src0", first), ("src1", second)):
            space = call.dst.space
            found += touches_of(number[name], Mode.READ, space, places.source, places.size)
            found += touches_of(0, Mode.WRITE, space, places.to, places.size)
        if "dst_count" in number:
            found.append(Touch(number["dst_count"], Mode.WRITE, call.dst_count.region(rows, 1)))
        return found

    def perform(self: Any, core: Core, args: Sequence[Any], touches: list[Touch]) -> None:
        """Read everything, then write."""
        call = self.call(args)
        *parts, total = self.places(call, core)
        held = [bytes_at(core, call.dst.space, places.source, places.size) for places in parts]
        for places, elements in zip(parts, held, strict=True):
            put_bytes(core, call.dst.space, places.to, elements)
        if hasattr(call, "dst_count"):
            starts = rows_of(call.dst_count, call.dst.valid_rows, 1).ravel()
            numbers = total.astype(call.dst_count.dtype.numpy)
            put_bytes(core, call.dst.space, starts, numbers.view(np.uint8).reshape(starts.size, -1))


_COUNTS = {"count0": "columns of src0 in each row, in bytes", "count1": "columns of src1 in each row, in bytes"}
_COUNTED_PROFILES = ("a5", "cpu")


def _counted_rules(*counts: str) -> tuple[Rule, ...]:
    return (
        *_RULES[:5],
        dtype("count0", a5=_COUNT_TYPES, cpu=_COUNT_TYPES),
        same_dtype("count0", *counts),
        vector_tiles("count0", *counts),
        _RULES[6],
    )


@tile_instruction("tconcat", pipe=Pipe.V, profiles=_COUNTED_PROFILES, asm=())
class TConcatCounted(_Counted):
    """Put the beginnings of the rows of two tiles side by side, each as long as a count of its row says."""

    operands = (Out("dst"), In("src0"), In("src1"), *(In(name, doc=said) for name, said in _COUNTS.items()))
    rules = _counted_rules("count1")


@tile_instruction(
    "tconcat", pipe=Pipe.V, profiles=_COUNTED_PROFILES, asm=(),
    cpp_order=("dst", "src0", "src1", "dst_count", "count0", "count1"),
)  # fmt: skip
class TConcatCounting(_Counted):
    """Put the beginnings of the rows of two tiles side by side, each as long as a count says, and count those of dst."""

    operands = (
        Out("dst"), In("src0"), In("src1"), Out("dst_count", doc="columns of dst in each row, in bytes"),
        *(In(name, doc=said) for name, said in _COUNTS.items()),
    )  # fmt: skip
    rules = _counted_rules("count1", "dst_count")
