"""TSCATTER: elements to places that indices name, or that a pattern leaves room for.

Sources: pto-isa docs/isa/TSCATTER; include/pto/npu/a2a3/TScatter.hpp, include/pto/npu/a5/TScatter.hpp,
Int64Rearrange.hpp, include/pto/cpu/TScatter.hpp.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from enum import IntEnum
from types import SimpleNamespace
from typing import Any

import numpy as np

from ascsim.diagnostics import CATALOGUE, Severity
from ascsim.isa.definition import A2A3, A5, CHIPS, Asm, Choice, Definition, In, Out, tile_instruction
from ascsim.isa.indexed import (
    INDEXED_LOOP,
    Places,
    bytes_at,
    indices_of,
    put_bytes,
    rows_of,
    touches_of,
)
from ascsim.isa.memory_form.masked import set_mask_norm, set_vector_mask
from ascsim.isa.rules import Rule, changed, dtype, finding, refuse, same_dtype, vector_tiles
from ascsim.isa.steps import SCALAR_LOOP, VCOPY, VECTOR_DUP, flag_pair, group
from ascsim.isa.tile.transfer import TMov
from ascsim.machine.core import Core, Finding, Group, Step, Touch
from ascsim.machine.dtypes import bf16, f16, f32, i8, i16, i32, i64, u8, u16, u32, u64
from ascsim.machine.operands import REGISTER_BYTES, Region, Tile
from ascsim.machine.trace import Mode
from ascsim.machine.words import MaskPattern, Pipe
from ascsim.profiles import Profile

_A2A3_TYPES = (i32, i16, i8, u32, u16, u8, f16, f32, bf16)
_A5_TYPES = (*_A2A3_TYPES, i64, u64)
_INDEX_TYPES = (u16, u32, i16, i32)
_INDEX_SIZE = {1: 2, 2: 2, 4: 4, 8: 4}
_LANES_OF_PAIRS = REGISTER_BYTES // 4
_MOVE: Any = TMov


class ScatterAxis(IntEnum):
    """Along which axis a pattern leaves room; the numbers of PTO's ScatterAxis."""

    SCATTER_ROW = 0
    SCATTER_COL = 1


def period_and_place(pattern: int) -> tuple[int, int]:
    """(of how many elements one counts, which one)."""
    name = MaskPattern(pattern).name[1:]
    if name == "1111":
        return 1, 0
    period = 2 if name in ("0101", "1010") else 4
    return period, len(name) - 1 - name.rindex("1")


CATALOGUE.add(
    "TSCATTER-1", Severity.ERROR, "TSCATTER to places outside dst",
    "An index is not below the number of elements of dst (rows times columns), so that the element is written elsewhere "
    "in UB. A negative index is taken as a large number by all but the A2/A3.\n\n"
    "Indices are flat: element (i, j) of dst has index i * columns + j, with the columns of the tile, valid or not; the "
    "manual's formula takes them for rows.",
)  # fmt: skip


# By index


def _other_index(definition: Definition, call: SimpleNamespace, profile: Profile) -> str | None:
    need, has = _INDEX_SIZE[call.dst.dtype.size], call.idx.dtype
    if has.size == need:
        return None
    return f"idx holds {has.name}; elements of {call.dst.dtype.size} bytes need indices of {need}"


def _with_other_index(call: SimpleNamespace, profile: Profile) -> Iterator[SimpleNamespace]:
    yield changed(call, "idx", dtype=u16 if call.dst.dtype.size >= 4 else u32)


def _small_src(definition: Definition, call: SimpleNamespace, profile: Profile) -> str | None:
    src, idx = call.src, call.idx
    if src.valid_rows >= idx.valid_rows and src.valid_cols >= idx.valid_cols:
        return None
    return f"idx has {idx.valid_rows}x{idx.valid_cols} valid indices, src {src.valid_rows}x{src.valid_cols} elements"


def _with_small_src(call: SimpleNamespace, profile: Profile) -> Iterator[SimpleNamespace]:
    yield changed(call, "src", valid_cols=call.idx.valid_cols - 1)


def _wide(definition: Definition, call: SimpleNamespace, profile: Profile) -> str | None:
    tile = call.idx if hasattr(call, "idx") else call.src
    if call.dst.dtype.size != 8 or tile.valid_cols <= _LANES_OF_PAIRS or getattr(call, "pattern", None) == 7:
        return None
    return f"{tile.valid_cols} columns of 64-bit elements: the library moves the first 64 of each row"


def _with_wide(call: SimpleNamespace, profile: Profile) -> Iterator[SimpleNamespace]:
    wide: dict[str, Any] = {"cols": 128, "valid_cols": 128}
    call = changed(changed(call, "dst", dtype=i64, **wide), "src", dtype=i64, **wide)
    if hasattr(call, "idx"):
        yield changed(call, "idx", dtype=u32, **wide)
    else:
        yield SimpleNamespace(**{**vars(call), "pattern": MaskPattern.P0101})


_WIDE: Rule = finding(
    "E-TSCATTER-64", "64-bit elements have at most 64 columns", _wide, breaks=_with_wide, profiles=A5,
    severity=Severity.WARNING, why="The library's code for 64-bit types has no loop over columns.",
    mend="Scatter 64 columns at a time.",
)  # fmt: skip


@tile_instruction("tscatter", pipe=Pipe.V, asm=(Asm("tscatter", order=("src", "idx")),))
class TScatter:
    """Write each element of src to the element of dst that its index names: ``dst[idx[i, j]] = src[i, j]``.

    Indices are flat: row times the columns of dst, plus column.
    """

    operands = (Out("dst"), In("src"), In("idx", doc="flat element numbers; its valid region says how many"))
    rules = (
        dtype("dst", a2a3=_A2A3_TYPES, a5=_A5_TYPES, cpu=_A5_TYPES),
        dtype("idx", a2a3=_INDEX_TYPES, a5=_INDEX_TYPES, cpu=(*_INDEX_TYPES, i8, u8, i64, u64)),
        same_dtype("dst", "src"),
        vector_tiles("dst", "src", "idx"),
        refuse("L003", "an index has the size of an element (8-bit elements: 16 bits, 64-bit: 32)", _other_index,
               breaks=_with_other_index, profiles=CHIPS, mend="Convert the indices with TCVT."),
        finding("TSCATTER-2", "src has an element for every index", _small_src, breaks=_with_small_src,
                why="The size is taken from idx; what lies beyond the valid region of src is scattered too.",
                mend="Give src and idx one valid region."),
        _WIDE,
    )  # fmt: skip
    is_static = False
    warns = ("TSCATTER-1",)
    notes = (
        "Of several elements for one place the last one stays, row by row.",
        "Chips set all of dst to 0 first; on cpu what no index names keeps its value.",
        "A2/A3: a vector_dup, then a loop on the scalar pipe, with flags V to S and S to V (event 0) around it; indices "
        "keep their sign. A5: one vector function; negative indices count as unsigned numbers, as on cpu.",
    )
    assumed = ("A5: of lanes of one store for one place the last one stays.",)
    sources = (
        "pto-isa docs/isa/TSCATTER",
        "pto-isa include/pto/npu/a2a3/TScatter.hpp, include/pto/npu/a5/TScatter.hpp, include/pto/cpu/TScatter.hpp",
    )

    @staticmethod
    def places(call: SimpleNamespace, core: Core) -> Places:
        """Where each element goes."""
        dst, idx, size = call.dst, call.idx, call.dst.dtype.size
        cols = idx.valid_cols
        if core.profile.name == "a5" and size == 8:
            cols = min(cols, _LANES_OF_PAIRS)
        numbers = indices_of(core, idx, None, cols)
        if core.profile.name != "a2a3":
            numbers &= (1 << (8 * idx.dtype.size)) - 1 if core.profile.is_chip else 0xFFFFFFFF
        source = rows_of(call.src, idx.valid_rows, cols)
        return Places(size, (dst.address + numbers * size).ravel(), source.ravel())

    def touches(self: Any, core: Core, args: Sequence[Any]) -> list[Touch]:
        """All of dst on a chip, and what indices name; src and idx."""
        call = self.call(args)
        region = call.idx.region()
        try:
            places = self.places(call, core)
        except ValueError:
            return [Touch(2, Mode.READ, region)]
        space, found = call.dst.space, [Touch(2, Mode.READ, region)]
        found += touches_of(1, Mode.READ, call.src.space, places.source, places.size)
        if core.profile.is_chip:
            found.append(Touch(0, Mode.WRITE, _whole(call.dst)))
            inside = (places.to >= call.dst.address) & (places.to < call.dst.address + call.dst.nbytes)
            return [*found, *touches_of(0, Mode.WRITE, space, places.to[~inside], places.size)]
        return [*found, *touches_of(0, Mode.WRITE, space, places.to, places.size)]

    def perform(self: Any, core: Core, args: Sequence[Any], touches: list[Touch]) -> None:
        """Read everything, clear dst on a chip, write one after the other."""
        call = self.call(args)
        places = self.places(call, core)
        elements = bytes_at(core, call.src.space, places.source, places.size)
        if core.profile.is_chip:
            core.view(_whole(call.dst))[...] = 0
        put_bytes(core, call.dst.space, places.to, elements)

    def expand(self: Any, call: SimpleNamespace, profile: Profile) -> Iterator[Group] | None:
        """The steps of A2/A3."""
        return self.steps(call) if profile.name == "a2a3" else None

    def steps(self: Any, call: SimpleNamespace) -> Iterator[Group]:
        """See :meth:`expand`."""
        yield _cleared(call.dst)
        yield group(*flag_pair(Pipe.V, Pipe.S))
        moved = INDEXED_LOOP.by(call.dst, call.src, call.idx, call.idx.region(), lambda core: self.places(call, core))
        yield group(moved)
        yield group(*flag_pair(Pipe.S, Pipe.V))

    def observe(self: Any, core: Core, args: Sequence[Any], touches: list[Touch]) -> list[Finding]:
        """Report indices that leave dst."""
        call = self.call(args)
        numbers = indices_of(core, call.idx)
        wrong = (numbers < 0) | (numbers >= call.dst.rows * call.dst.cols)
        if not wrong.any():
            return []
        row, col = (int(n[0]) for n in np.nonzero(wrong))
        headline = (
            f"{self.title}: index {int(numbers[row, col])} at ({row}, {col}) is outside dst, "
            f"which has {call.dst.rows * call.dst.cols} elements"
        )
        return [Finding("TSCATTER-1", Severity.ERROR, headline, (), "Use flat element numbers below rows x columns.")]


def _whole(tile: Tile) -> Region:
    return Region(tile.space, tile.address, tile.nbytes, (), np.dtype(np.uint8))


def _cleared(tile: Tile) -> Group:
    bits = np.dtype("u4" if tile.dtype.size == 4 else "u2")
    filled = VECTOR_DUP.step(tile, _whole(tile)._replace(dtype=bits))
    return group(filled, Step(set_mask_norm, ()), Step(set_vector_mask, (-1, -1)))


# By pattern


def _is_move(call: SimpleNamespace) -> bool:
    return int(call.pattern) == MaskPattern.P1111


def _spread(call: SimpleNamespace) -> tuple[int, int]:
    """The valid rows and columns that dst is to have."""
    period, _ = period_and_place(call.pattern)
    along_rows = int(call.axis) == ScatterAxis.SCATTER_COL
    src = call.src
    return (src.valid_rows * period, src.valid_cols) if along_rows else (src.valid_rows, src.valid_cols * period)


def _other_valid(definition: Definition, call: SimpleNamespace, profile: Profile) -> str | None:
    dst, want = call.dst, _spread(call)
    if (dst.valid_rows, dst.valid_cols) == want:
        return None
    return f"dst has {dst.valid_rows}x{dst.valid_cols} valid; src spread out has {want[0]}x{want[1]}"


def _with_other_valid(call: SimpleNamespace, profile: Profile) -> Iterator[SimpleNamespace]:
    yield changed(call, "dst", valid_rows=call.dst.valid_rows - 1)


def _other_size(definition: Definition, call: SimpleNamespace, profile: Profile) -> str | None:
    size = call.src.dtype.size
    return None if _is_move(call) or size in (2, 4) else f"elements have {size} bytes"


def _with_bytes(call: SimpleNamespace, profile: Profile) -> Iterator[SimpleNamespace]:
    call = changed(changed(call, "dst", dtype=u8), "src", dtype=u8)
    yield SimpleNamespace(**{**vars(call), "pattern": MaskPattern.P0101, "axis": ScatterAxis.SCATTER_COL})


def _bytes_by_rows(definition: Definition, call: SimpleNamespace, profile: Profile) -> str | None:
    if call.src.dtype.size != 1 or int(call.axis) != ScatterAxis.SCATTER_COL or _is_move(call):
        return None
    return f"rows of {call.src.valid_cols} bytes are copied as {2 * call.src.valid_cols}"


def _other_shape(definition: Definition, call: SimpleNamespace, profile: Profile) -> str | None:
    dst, src = call.dst, call.src
    if not _is_move(call) or (dst.rows, dst.cols) == (src.rows, src.cols):
        return None
    return f"dst is {dst.rows}x{dst.cols} and src {src.rows}x{src.cols}"


def _with_other_shape(call: SimpleNamespace, profile: Profile) -> Iterator[SimpleNamespace]:
    yield SimpleNamespace(**{**vars(changed(call, "src", rows=call.src.rows + 1)), "pattern": MaskPattern.P1111})


@tile_instruction("tscatter", pipe=Pipe.V, asm=(), cpp_templates=("pattern", "pattern axis"))
class TScatterMask:
    """Spread the elements of src out by a pattern, with zeros between.

    P0101 puts element j of a row at column 2j, P1010 at 2j + 1; P0001, P0010, P0100 and P1000 at 4j, 4j + 1, 4j + 2 and
    4j + 3; P1111 is TMOV. SCATTER_COL does the same with rows.
    """

    operands = (
        Out("dst"), In("src"),
        Choice("pattern", MaskPattern, optional=True, default=MaskPattern.P1111, doc="where elements go"),
        Choice("axis", ScatterAxis, optional=True, default=ScatterAxis.SCATTER_ROW, doc="along columns, or along rows"),
    )  # fmt: skip
    rules = (
        dtype("dst", a2a3=_A2A3_TYPES, a5=_A5_TYPES, cpu=_A5_TYPES),
        same_dtype("dst", "src"),
        vector_tiles("dst", "src"),
        refuse("L002", "elements have 2 or 4 bytes", _other_size, breaks=_with_bytes, profiles=("cpu",),
               mend="Convert them first."),
        refuse("L007", "P1111: dst and src have one shape", _other_shape, breaks=_with_other_shape, profiles=A2A3,
               mend="Declare both tiles with the same rows and columns."),
        refuse("L007", "dst has the valid shape of src spread out", _other_valid, breaks=_with_other_valid,
               profiles=("cpu",), mend="Give dst twice or four times the valid columns (SCATTER_COL: rows) of src."),
        finding("TSCATTER-3", "dst has the valid shape of src spread out", _other_valid, breaks=_with_other_valid,
                profiles=CHIPS, why="The library checks it in debug builds only, and spreads what is valid in src.",
                mend="Give dst twice or four times the valid columns (SCATTER_COL: rows) of src."),
        finding("E-TSCATTER-8", "SCATTER_COL is not for bytes", _bytes_by_rows, breaks=_with_bytes, profiles=A2A3,
                severity=Severity.WARNING, why="The library copies as many 16-bit numbers as a row has elements.",
                mend="Give dst and src twice the columns, or scatter 16-bit elements."),
        _WIDE,
    )  # fmt: skip
    values = "bits"
    notes = (
        "Chips set all of dst to 0 first, cpu what is valid in src spread out.",
        "A2/A3: a vector_dup with flags V to S after it; then SCATTER_ROW is a loop on the scalar pipe, SCATTER_COL a "
        "vcopy a row; flags S to V after it. A5: one vector function.",
        "The public CPU simulator reads on through the columns of src that are not valid; ascsim's cpu profile does "
        "what the manual says.",
    )
    sources = TScatter.sources

    def regions(self: Any, call: SimpleNamespace, profile: Profile) -> list[tuple[int, int, Region]]:
        """What is cleared, the elements where they go, the elements of src."""
        if _is_move(call):
            return _MOVE.regions(call, profile)
        there, here = self.moved(call, profile)
        cleared = _whole(call.dst) if profile.is_chip else call.dst.region(*_spread(call), call.dst.dtype.bits_dtype)
        return [(0, Mode.WRITE, cleared), (0, Mode.WRITE, there), (1, Mode.READ, here)]

    def moved(self: Any, call: SimpleNamespace, profile: Profile) -> tuple[Region, Region]:
        """(written, read): rows of elements; of bytes on A2/A3 twice as many."""
        dst, src, (period, place) = call.dst, call.src, period_and_place(call.pattern)
        size, bits, cols = dst.dtype.size, dst.dtype.bits_dtype, src.valid_cols
        if profile.name == "a5" and size == 8:
            cols = min(cols, _LANES_OF_PAIRS)
        if int(call.axis) == ScatterAxis.SCATTER_COL:
            if profile.name == "a2a3" and size == 1:
                cols *= 2
            rows = ((src.valid_rows, period * dst.row_bytes),)
            there = Region(dst.space, dst.address + place * dst.row_bytes, cols * size, rows, bits)
        else:
            dims = ((src.valid_rows, dst.row_bytes), (cols, period * size))
            there = Region(dst.space, dst.address + place * size, size, dims, bits)
        return there, Region(src.space, src.address, cols * size, ((src.valid_rows, src.row_bytes),), bits)

    def compute(self: Any, call: SimpleNamespace, arrays: list[np.ndarray], profile: Profile) -> Any:
        """Zeros, then the elements in the shape of what is written."""
        if _is_move(call):
            return _MOVE.compute(call, arrays, profile)
        there, _ = self.moved(call, profile)
        shape = (*(n for n, _ in there.dims), -1)
        return np.zeros((), np.uint8), arrays[0].copy().reshape(shape)

    def expand(self: Any, call: SimpleNamespace, profile: Profile) -> Iterator[Group] | None:
        """The steps of A2/A3."""
        return self.steps(call, profile) if profile.name == "a2a3" and not _is_move(call) else None

    def steps(self: Any, call: SimpleNamespace, profile: Profile) -> Iterator[Group]:
        """See :meth:`expand`."""
        there, here = self.moved(call, profile)
        yield _cleared(call.dst)
        by_rows = int(call.axis) == ScatterAxis.SCATTER_COL
        moved = (VCOPY if by_rows else SCALAR_LOOP).step(call.dst, there, call.src, here)
        masks = (Step(set_mask_norm, ()), Step(set_vector_mask, (-1, -1))) if by_rows else ()
        yield group(*flag_pair(Pipe.V, Pipe.S), moved, *masks, *flag_pair(Pipe.S, Pipe.V))
