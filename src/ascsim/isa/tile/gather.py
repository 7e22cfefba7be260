"""TGATHER: elements by index, or by a pattern.

Sources: pto-isa docs/isa/TGATHER; include/pto/npu/a2a3/TGather.hpp, include/pto/npu/a5/TGather.hpp,
include/pto/cpu/TGather.hpp.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from enum import IntEnum
from functools import partial
from types import SimpleNamespace
from typing import Any

import numpy as np

from ascsim.diagnostics import CATALOGUE, Severity
from ascsim.isa.definition import A2A3, A5, CHIPS, Choice, Definition, In, Out, Scratch, tile_instruction
from ascsim.isa.indexed import NOTHING, IndexedMove, Places, rows_of
from ascsim.isa.memory_form.masked import set_mask_norm, set_vector_mask
from ascsim.isa.rules import changed, dtype, finding, refuse, same_dtype, vector_tiles
from ascsim.isa.steps import Move, elements, group
from ascsim.isa.sync import pipe_barrier
from ascsim.isa.tile.scatter import period_and_place
from ascsim.machine.core import GUARD, Core, Finding, Group, Step, Touch
from ascsim.machine.dtypes import (
    bf16,
    f8e4m3,
    f8e5m2,
    f16,
    f32,
    hif8,
    i8,
    i16,
    i32,
    i64,
    u8,
    u16,
    u32,
    u64,
)
from ascsim.machine.operands import REGISTER_BYTES, Region, Tile
from ascsim.machine.trace import Mode
from ascsim.machine.words import MaskPattern, Pipe
from ascsim.profiles import Profile

_HALVES_AND_WORDS = (i16, u16, i32, u32, f16, bf16, f32)
_A5_TYPES = (i8, u8, *_HALVES_AND_WORDS, i64, u64, f8e4m3, f8e5m2, hif8)
_PAGES = (
    "pto-isa docs/isa/TGATHER",
    "pto-isa include/pto/npu/a2a3/TGather.hpp, include/pto/npu/a5/TGather.hpp, include/pto/cpu/TGather.hpp",
)
_ALL_MASKED_IN = (Step(set_mask_norm, ()), Step(set_vector_mask, (-1, -1)))

CATALOGUE.add(
    "TGATHER-INDEX", Severity.ERROR, "TGATHER from outside src",
    "An index is not less than the elements of src (rows times columns of its type), or negative: on a chip other bytes "
    "of UB are gathered, or none; the portable form gives 0.\n\n"
    "Indices are flat: row times the columns of src, plus column.",
)  # fmt: skip
CATALOGUE.add(
    "TGATHER-OVERLAP", Severity.ERROR, "TGATHER overwrites what it reads",
    "dst and src share bytes, and elements may be overwritten before they are gathered. On A2 and A3 the offsets of "
    "4-byte elements are even worked out in dst first. ascsim read everything a step reads before the step writes.\n\n"
    "Gather into another tile.",
)  # fmt: skip


class GatherAxis(IntEnum):
    """Along which axis a pattern picks; the numbers of PTO's GatherAxis."""

    GATHER_ROW = 0
    GATHER_COL = 1


def _overlap(title: str, dst: Tile, written: int, src: Tile) -> list[Finding]:
    low, high = max(dst.address, src.address), min(dst.address + written, src.address + src.nbytes)
    if low >= high or dst.space != src.space:
        return []
    headline = f"{title}: dst and src share bytes {low:#x}..{high - 1:#x}"
    return [Finding("TGATHER-OVERLAP", Severity.ERROR, headline, (), "Gather into another tile.")]


# By a pattern

_MOST_PAIRS = REGISTER_BYTES // 4
"""8-byte elements of a row that the A5 gathers by a pattern."""
_REDUCE = Move("vreducev2", Pipe.V)
_ROW_COPY = Move("vcopy", Pipe.V)
_PATTERN_FUNCTION = Move("vector_function", Pipe.V, "a vector function")


def _is_by_rows(call: SimpleNamespace) -> bool:
    return int(call.axis) == GatherAxis.GATHER_COL


def _picked(call: SimpleNamespace) -> int:
    """How many columns of a row, or rows of src, the pattern picks."""
    period, place = period_and_place(call.pattern)
    extent = call.src.valid_rows if _is_by_rows(call) else call.src.valid_cols
    return len(range(place, extent, period))


def pattern_moves(call: SimpleNamespace, profile: Profile) -> Iterator[tuple[Region, Region]]:
    """(written, read) of each move: all elements at once, unless rows lie at irregular places."""
    dst, src, (period, place) = call.dst, call.src, period_and_place(call.pattern)
    if not _is_by_rows(call):
        count = _picked(call)
        if profile.name == "a5" and src.dtype.size == 8:  # one register of elements a row, and a pitch of its own
            count = min(src.valid_cols // period, _MOST_PAIRS)
            if count and src.valid_rows:
                yield (
                    elements(dst, 0, ((src.valid_rows, dst.cols // period), (count, 1))),
                    elements(src, place, ((src.valid_rows, src.cols), (count, period))),
                )
            return
        if count and src.valid_rows:
            yield (
                elements(dst, 0, ((src.valid_rows, count), (count, 1))),
                elements(src, place, ((src.valid_rows, src.cols), (count, period))),
            )
        return
    rows = src.valid_rows if profile.is_chip else _picked(call)
    if not rows or not src.valid_cols:
        return
    columns, farthest = (src.valid_cols, 1), (period * (rows - 1) + place) * src.cols
    if not profile.is_chip or farthest < 1 << 16:
        yield (
            elements(dst, 0, ((rows, dst.cols), columns)),
            elements(src, place * src.cols, ((rows, period * src.cols), columns)),
        )
        return
    for row in range(rows):  # the library keeps 16 bits of where a row begins
        start = (period * row + place) * src.cols & 0xFFFF
        yield elements(dst, row * dst.cols, (columns,)), elements(src, start, (columns,))


def _other_size(definition: Definition, call: SimpleNamespace, profile: Profile) -> str | None:
    dst, src = call.dst.dtype, call.src.dtype
    return None if dst.size == src.size else f"elements of dst have {dst.size} bytes and those of src {src.size}"


def _with_other_size(call: SimpleNamespace, profile: Profile) -> Iterator[SimpleNamespace]:
    yield changed(call, "src", dtype=f32 if call.src.dtype.size != 4 else f16)


def _not_dense(several_rows: bool) -> Any:
    def test(definition: Definition, call: SimpleNamespace, profile: Profile) -> str | None:
        dst = call.dst
        if _is_by_rows(call) or dst.valid_cols == dst.cols or (dst.valid_rows > 1) is not several_rows:
            return None
        return f"dst has {dst.valid_cols} valid columns of {dst.cols}, and elements are written one behind the other"

    return test


def _made_sparse(rows: int) -> Any:
    def breaks(call: SimpleNamespace, profile: Profile) -> Iterator[SimpleNamespace]:
        yield changed(call, "dst", valid_rows=rows, valid_cols=call.dst.valid_cols - 1)

    return breaks


def _pairs_by_rows(definition: Definition, call: SimpleNamespace, profile: Profile) -> str | None:
    return "GATHER_COL is not for 8-byte elements" if _is_by_rows(call) and call.src.dtype.size == 8 else None


def _with_pairs_by_rows(call: SimpleNamespace, profile: Profile) -> Iterator[SimpleNamespace]:
    yield SimpleNamespace(
        **{**vars(changed(changed(call, "src", dtype=i64), "dst", dtype=i64)), "axis": GatherAxis.GATHER_COL}
    )


def _long_pairs(definition: Definition, call: SimpleNamespace, profile: Profile) -> str | None:
    dst, src, (period, _) = call.dst, call.src, period_and_place(call.pattern)
    if src.dtype.size != 8 or _is_by_rows(call):
        return None
    count = src.valid_cols // period
    if count > _MOST_PAIRS:
        return f"{count} elements of a row are picked, and the library gathers {_MOST_PAIRS}"
    if src.valid_rows > 1 and dst.cols // period != count:
        return f"rows of {count} elements are written {dst.cols // period} apart"
    return None


def _with_long_pairs(call: SimpleNamespace, profile: Profile) -> Iterator[SimpleNamespace]:
    wide = {"dtype": i64, "cols": 512, "valid_cols": 512}
    yield SimpleNamespace(
        **{**vars(changed(changed(call, "src", **wide), "dst", **wide)), "pattern": MaskPattern.P0101}
    )


def _too_many(definition: Definition, call: SimpleNamespace, profile: Profile) -> str | None:
    if _is_by_rows(call):
        return None
    written, room = call.src.valid_rows * _picked(call), call.dst.rows * call.dst.cols
    return f"{written} elements are picked and dst has {room}" if written > room else None


def _with_too_many(call: SimpleNamespace, profile: Profile) -> Iterator[SimpleNamespace]:
    rows = call.dst.rows * 8
    yield changed(call, "src", rows=rows, valid_rows=rows)


def _other_rows(definition: Definition, call: SimpleNamespace, profile: Profile) -> str | None:
    if not _is_by_rows(call) or call.dst.valid_rows == call.dst.rows == _picked(call):
        return None
    return f"{_picked(call)} rows are picked; dst has {call.dst.valid_rows} valid of {call.dst.rows}"


def _by_rows(call: SimpleNamespace, profile: Profile) -> Iterator[SimpleNamespace]:
    yield SimpleNamespace(**{**vars(call), "axis": GatherAxis.GATHER_COL, "pattern": MaskPattern.P0101})


def _runs_on(definition: Definition, call: SimpleNamespace, profile: Profile) -> str | None:
    if not _is_by_rows(call) or _picked(call) == call.src.valid_rows:
        return None
    return (
        f"{call.src.valid_rows} rows are copied and not {_picked(call)}: rows {_picked(call)} to "
        f"{call.src.valid_rows - 1} of dst are written, from behind src"
    )


_DENSE_WHY = "The library writes rows one behind the other, and asserts full rows of dst in debug builds."
_DENSE_MEND = "Give dst as many columns as are valid."


@tile_instruction(
    "tgather", pipe=Pipe.V, cpp_templates=("dst src pattern", "dst src pattern axis"),
)  # fmt: skip
class TGatherPattern:
    """Pick elements of each row by a pattern, and write them one behind the other.

    P0101 picks columns 0, 2, 4, ...; P1010 1, 3, 5, ...; P0001, P0010, P0100 and P1000 each fourth one, from 0, 1, 2
    and 3 on; P1111 all. Each row of src begins anew, in dst there is no gap between rows. GATHER_COL picks rows.
    """

    operands = (
        Out("dst", doc="its valid columns are all its columns"), In("src"),
        Choice("pattern", MaskPattern, doc="which elements", asm_name="maskPattern"),
        Choice("axis", GatherAxis, optional=True, default=GatherAxis.GATHER_ROW, doc="along columns, or along rows"),
    )  # fmt: skip
    rules = (
        dtype("src", a2a3=_HALVES_AND_WORDS, a5=_A5_TYPES),
        dtype("dst", a5=_A5_TYPES),
        refuse("L003", "elements of dst and src have one size", _other_size, breaks=_with_other_size,
               mend="Give them types of one size: pairs of float may be read as uint32."),
        vector_tiles("dst", "src"),
        refuse("L007", "dst has no columns that are not valid", _not_dense(True), breaks=_made_sparse(2),
               profiles=("cpu",), mend=_DENSE_MEND),
        refuse("L007", "dst has no columns that are not valid", _not_dense(False), breaks=_made_sparse(1),
               profiles=("cpu",), mend=_DENSE_MEND),
        refuse("L007", "GATHER_COL: dst has as many rows as are picked", _other_rows, breaks=_by_rows,
               profiles=("cpu",), mend="Give dst a half or a quarter of the rows of src."),
        refuse("L012", "8-byte elements are not picked by rows", _pairs_by_rows, breaks=_with_pairs_by_rows,
               profiles=A5, mend="Move the rows one by one."),
        finding("E-TGATHER-B64", "rows of 8-byte elements are one register of results, close together", _long_pairs,
                breaks=_with_long_pairs, profiles=A5, severity=Severity.WARNING,
                why="The library gathers one register a row, and rows lie a half or a quarter of dst's columns apart.",
                mend="Give dst the columns of src, and src at most 128 valid columns (quarters: 256)."),
        finding("TGATHER-1", "rows of dst have no columns that are not valid", _not_dense(True),
                breaks=_made_sparse(2), profiles=CHIPS, why=_DENSE_WHY, mend=_DENSE_MEND),
        finding("TGATHER-2", "a single row of dst has no columns that are not valid", _not_dense(False),
                breaks=_made_sparse(1), profiles=CHIPS, severity=Severity.WARNING,
                why="It does no harm, but debug builds of the library stop there.", mend=_DENSE_MEND),
        finding("TGATHER-3", "dst has room for what is picked", _too_many, breaks=_with_too_many,
                why="The library writes all that it picks and checks no size.",
                mend="Give dst a half or a quarter of the elements of src (P1111: all)."),
        finding("E-TGATHER-COL", "GATHER_COL is not used with a pattern that leaves rows out", _runs_on,
                breaks=_by_rows, profiles=CHIPS, severity=Severity.WARNING,
                why="The library's loop runs over the rows of src, not over those that it picks.",
                mend="Leave room behind dst and src, or move the rows one by one."),
    )  # fmt: skip
    values = "bits"
    observes_data = False
    warns = ("TGATHER-OVERLAP",)
    notes = (
        "Of pairs that TSORT32 and TMRGSORT make: values by P0101 (float) or P0001 (half), indices by P1010 of the same "
        "bytes as uint32.",
        "Elements keep their bits, so that dst may have another type of the same size.",
        "A2/A3: one vreducev2 (GATHER_COL: a vcopy a row), after which the vector mask is all ones. A5: one vector "
        "function.",
    )
    sources = _PAGES

    def regions(self: Any, call: SimpleNamespace, profile: Profile) -> list[tuple[int, int, Region]]:
        """The portable form."""
        moves = list(pattern_moves(call, profile))
        return [(0, Mode.WRITE, moves[0][0]), (1, Mode.READ, moves[0][1])] if moves else []

    def computation(self: Any, call: SimpleNamespace, profile: Profile) -> Callable[..., Any]:
        """What was picked, in the shape of what is written."""
        shapes = [(*(n for n, _ in to.dims), to.length // to.dtype.itemsize) for to, _ in pattern_moves(call, profile)]
        return lambda *arrays: tuple(a.copy().reshape(shape) for a, shape in zip(arrays, shapes, strict=True))

    def expand(self: Any, call: SimpleNamespace, profile: Profile) -> Iterator[Group]:
        """The step, or one a row."""
        on_a2a3 = profile.name == "a2a3"
        kind = (_ROW_COPY if _is_by_rows(call) else _REDUCE) if on_a2a3 else _PATTERN_FUNCTION
        steps = [kind.step(call.dst, to, call.src, source) for to, source in pattern_moves(call, profile)]
        yield group(*steps, *(_ALL_MASKED_IN if on_a2a3 else ()))

    def observe(self: Any, core: Core, args: Sequence[Any], touches: list[Touch]) -> list[Finding]:
        """A destination over the source."""
        call = self.call(args)
        written = max((to.bounds()[1] for to, _ in pattern_moves(call, core.profile)), default=call.dst.address)
        return _overlap(self.title, call.dst, written - call.dst.address, call.src)


# By index


class _Scale(Move):
    """vmuls: indices times the size of an element, as 32-bit integers; its last argument is the size."""

    def perform(self, core: Core, args: Sequence[Any], touches: list[Touch]) -> None:
        """Write the offsets."""
        self.prepared(core, args, touches)()

    def prepared(self, core: Core, args: Sequence[Any], touches: list[Touch]) -> Callable[[], Any]:
        """See :class:`Move`; both lie in UB."""
        _, _, written, read, size = args
        return partial(np.multiply, core.view(read), np.uint32(size), core.view(written))


_SCALE = _Scale("vmuls", Pipe.V)
_GATHER = IndexedMove("vgather", Pipe.V)
_INDEX_FUNCTION = IndexedMove("vector_function", Pipe.V, "a vector function")


def _rows(tile: Tile, dst: Tile, pitch: int, kind: np.dtype) -> Region:
    """As many rows and columns of numbers as dst has valid, ``pitch`` numbers from row to row."""
    size = tile.dtype.size
    return Region(tile.space, tile.address, dst.valid_cols * size, ((dst.valid_rows, pitch * size),), kind)


def _destinations(dst: Tile) -> np.ndarray:
    return rows_of(dst).reshape(-1)


def _sources(core: Core, src: Tile, offsets: np.ndarray) -> np.ndarray:
    """Addresses from byte offsets; NOTHING where no memory is."""
    starts = src.address + offsets.astype(np.int64)
    starts[starts + src.dtype.size > core.profile.spaces[src.space.name].capacity + GUARD] = NOTHING
    return starts


def _without_tmp(definition: Definition, call: SimpleNamespace, profile: Profile) -> str | None:
    return "tmp is not given; only the portable form does without" if call.tmp is None else None


def _made_without_tmp(call: SimpleNamespace, profile: Profile) -> Iterator[SimpleNamespace]:
    yield SimpleNamespace(**{**vars(call), "tmp": None})


def _mixed_sizes(definition: Definition, call: SimpleNamespace, profile: Profile) -> str | None:
    size, of_index = call.src.dtype.size, call.idx.dtype.size
    if of_index == 4 and size != 1:
        return None
    if of_index == 2 and size in (1, 2):
        return None
    return f"elements of {size} bytes with indices of {of_index}; the library has no code for them that gathers"


def _with_mixed_sizes(call: SimpleNamespace, profile: Profile) -> Iterator[SimpleNamespace]:
    yield changed(changed(changed(call, "dst", dtype=u32), "src", dtype=u32), "idx", dtype=u16)


def _few_indices(definition: Definition, call: SimpleNamespace, profile: Profile) -> str | None:
    dst, idx = call.dst, call.idx
    if idx.valid_rows >= dst.valid_rows and idx.valid_cols >= dst.valid_cols:
        return None
    return f"dst has {dst.valid_rows}x{dst.valid_cols} valid, and idx {idx.valid_rows}x{idx.valid_cols}"


def _with_few_indices(call: SimpleNamespace, profile: Profile) -> Iterator[SimpleNamespace]:
    yield changed(call, "idx", valid_cols=call.dst.valid_cols - 1)


def _small_tmp(definition: Definition, call: SimpleNamespace, profile: Profile) -> str | None:
    dst = call.dst
    if dst.dtype.size != 2 or not dst.valid_rows:
        return None
    need = 4 * ((dst.valid_rows - 1) * dst.cols + dst.valid_cols)
    return f"offsets take {need} bytes of tmp, which has {call.tmp.nbytes}" if call.tmp.nbytes < need else None


def _with_small_tmp(call: SimpleNamespace, profile: Profile) -> Iterator[SimpleNamespace]:
    halves = changed(changed(call, "dst", dtype=f16), "src", dtype=f16)
    tmp = replace(call.idx, rows=1, valid_rows=1, cols=16, valid_cols=16)
    yield SimpleNamespace(**{**vars(halves), "tmp": tmp})


def _other_tmp(definition: Definition, call: SimpleNamespace, profile: Profile) -> str | None:
    if call.tmp is None or call.tmp.dtype is call.idx.dtype:
        return None
    return f"tmp has type {call.tmp.dtype.name}, and idx {call.idx.dtype.name}"


def _with_other_tmp(call: SimpleNamespace, profile: Profile) -> Iterator[SimpleNamespace]:
    other = u32 if call.idx.dtype is i32 else i32
    yield SimpleNamespace(**{**vars(call), "tmp": replace(call.idx, dtype=other)})


@tile_instruction("tgather", pipe=Pipe.V)
class TGatherIndex:
    """Gather elements by index: ``dst[i, j] = src[idx[i, j]]``.

    Indices are flat: row times the columns of src, plus column.
    """

    operands = (
        Out("dst"), In("src"), In("idx", doc="flat indices into src, for each valid element of dst"),
        Scratch("tmp", optional=True, used_on=A2A3,
                doc="of the type of idx; A2/A3: the offsets of 2-byte elements, in rows as dst's"),
    )  # fmt: skip
    rules = (
        dtype("dst", a2a3=_HALVES_AND_WORDS, a5=_A5_TYPES),
        dtype("idx", a2a3=(i32, u32), a5=(i16, u16, i32, u32), cpu=(i32, u32)),
        same_dtype("dst", "src"),
        vector_tiles("dst", "src", "idx", "tmp"),
        refuse("L009", "tmp is given", _without_tmp, breaks=_made_without_tmp, profiles=CHIPS,
               mend="Pass a tile of the type and shape of idx as the fourth operand."),
        refuse("L003", "tmp has the type of idx", _other_tmp, breaks=_with_other_tmp, profiles=A2A3,
               mend="Declare tmp as idx is declared."),
        refuse("L012", "the sizes of elements and indices go together", _mixed_sizes, breaks=_with_mixed_sizes,
               profiles=A5, mend="Use 2-byte indices for bytes, 4-byte indices for elements of 4 and 8 bytes."),
        finding("TGATHER-4", "idx covers dst", _few_indices, breaks=_with_few_indices,
                why="Numbers beyond its valid region are taken for indices too.",
                mend="Give idx the valid region of dst."),
        finding("TGATHER-5", "tmp has room for the offsets", _small_tmp, breaks=_with_small_tmp, profiles=A2A3,
                why="Offsets in bytes are worked out in tmp, in rows as long as dst's; the library checks no size.",
                mend="Give tmp the rows and columns of dst."),
    )  # fmt: skip
    is_static = False
    follows_data = True
    observes_data = False
    warns = ("TGATHER-INDEX", "TGATHER-OVERLAP")
    notes = (
        "Negative indices and those beyond src: the portable form gives 0, a chip whatever lies there (TGATHER-INDEX).",
        "A2/A3: a vmuls makes offsets of the indices, in dst itself (4-byte elements) or in tmp; a barrier; a vgather. "
        "The vector mask is all ones afterwards. A5: one vector function, and tmp is not used.",
    )
    assumed = ("Where an index leads out of UB altogether, 0 is gathered.",)
    sources = _PAGES

    def move(self: Any, call: SimpleNamespace, kind: IndexedMove) -> Step:
        """The gather by the indices themselves."""
        dst, src, idx = call.dst, call.src, call.idx
        region = _rows(idx, dst, idx.cols, idx.dtype.numpy)
        unsigned = idx.dtype.bits_dtype

        def find(core: Core) -> Places:
            numbers = core.view(region).reshape(-1)
            if core.profile.is_chip:
                starts = _sources(core, src, numbers.view(unsigned).astype(np.int64) * src.dtype.size)
            else:
                starts = src.address + numbers.astype(np.int64) * src.dtype.size
                starts[(numbers < 0) | (numbers >= src.rows * src.cols)] = NOTHING
            return Places(dst.dtype.size, _destinations(dst), starts)

        return kind.by(dst, src, idx, region, find)

    def decided_by(self: Any, core: Core, args: Sequence[Any]) -> Region:
        """The indices."""
        call = self.call(args)
        return _rows(call.idx, call.dst, call.idx.cols, call.idx.dtype.numpy)

    def touches(self: Any, core: Core, args: Sequence[Any]) -> list[Touch]:
        """Indices, and the elements that they name."""
        return _INDEX_FUNCTION.touches(core, self.move(self.call(args), _INDEX_FUNCTION).args)

    def perform(self: Any, core: Core, args: Sequence[Any], touches: list[Touch]) -> None:
        """Gather them."""
        _INDEX_FUNCTION.perform(core, self.move(self.call(args), _INDEX_FUNCTION).args, touches)

    def prepared(self: Any, core: Core, args: Sequence[Any], touches: list[Touch]) -> Callable[[], Any] | None:
        """See :class:`IndexedMove`."""
        return _INDEX_FUNCTION.prepared(core, self.move(self.call(args), _INDEX_FUNCTION).args, touches)

    def expand(self: Any, call: SimpleNamespace, profile: Profile) -> Iterator[Group]:
        """Offsets, a barrier and the gather (A2/A3); the gather alone (A5)."""
        if profile.name == "a5":
            yield group(self.move(call, _INDEX_FUNCTION))
            return
        dst, src, idx = call.dst, call.src, call.idx
        word = np.dtype(np.uint32)
        holder = dst if dst.dtype.size == 4 else call.tmp
        offsets = _rows(replace(holder, dtype=u32), dst, dst.cols, word)
        yield group(Step(_SCALE, (holder, idx, offsets, _rows(idx, dst, idx.cols, word), src.dtype.size)))
        yield group(Step(pipe_barrier, (Pipe.V,)))

        def find(core: Core) -> Places:
            return Places(dst.dtype.size, _destinations(dst), _sources(core, src, core.view(offsets).reshape(-1)))

        yield group(_GATHER.by(dst, src, holder, offsets, find))
        yield group(*_ALL_MASKED_IN)

    def observe(self: Any, core: Core, args: Sequence[Any], touches: list[Touch]) -> list[Finding]:
        """Indices that leave src, a destination over the source."""
        call = self.call(args)
        dst, src = call.dst, call.src
        indices = core.view(_rows(call.idx, dst, call.idx.cols, call.idx.dtype.numpy))
        outside = np.argwhere((indices < 0) | (indices >= src.rows * src.cols))
        found = []
        if outside.size:
            row, column = (int(n) for n in outside[0])
            headline = (
                f"{self.title}: index {int(indices[row, column])} at ({row}, {column}) is outside src, which has "
                f"{src.rows * src.cols} elements ({len(outside)} such indices)"
            )
            found.append(Finding("TGATHER-INDEX", Severity.ERROR, headline, (), "Indices are row * columns + column."))
        return [*found, *_overlap(self.title, dst, dst.nbytes, src)]
