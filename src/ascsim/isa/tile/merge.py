"""TMRGSORT: merge sorted lists of pairs, those of one tile four at a time, or two to four tiles into one.

Sources: pto-isa docs/isa/TMRGSORT; include/pto/npu/a2a3/TMrgSort.hpp, include/pto/npu/a5/TMrgSort.hpp,
include/pto/cpu/TMrgSort.hpp.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import numpy as np

from ascsim.diagnostics import Severity
from ascsim.isa.definition import CHIPS, Asm, Choice, Definition, In, Out, Scalar, Scratch, Sort, tile_instruction
from ascsim.isa.memory_form.merge import (
    ASSUMED,
    LISTS,
    MOST_PAIRS,
    NOTES,
    Merge,
    get_vms4_sr,
    merged,
    vmrgsort4,
    watch_merge,
)
from ascsim.isa.memory_form.sort import PAIR_BYTES
from ascsim.isa.rules import Rule, dtype, finding, in_space, refuse, row_major, same_dtype
from ascsim.isa.steps import Move
from ascsim.isa.sync import pipe_barrier, set_flag, wait_flag
from ascsim.isa.transfer import copy_ubuf_to_ubuf, whole_blocks
from ascsim.machine.core import Core, Finding, Group, Step, Touch
from ascsim.machine.dtypes import f16, f32, u32
from ascsim.machine.operands import Pointer, Region, Tile
from ascsim.machine.trace import Mode
from ascsim.machine.words import Pipe, Space
from ascsim.profiles import Profile

_SOURCES = ("src0", "src1", "src2", "src3")
_BLOCK = 64
"""Elements that a block length is a multiple of."""
_UNIT = 32
_CODES = ("MRGSORT-ORDER", "MRGSORT-OVERLAP")
_PAGES = (
    "pto-isa docs/isa/TMRGSORT",
    "pto-isa include/pto/npu/a2a3/TMrgSort.hpp, include/pto/npu/a5/TMrgSort.hpp, include/pto/cpu/TMrgSort.hpp",
)


def _pairs(columns: int, tile: Tile) -> int:
    return columns * tile.dtype.size // PAIR_BYTES


def _pointer(tile: Tile, pairs: int = 0) -> Pointer:
    return Pointer(tile.space, tile.address + pairs * PAIR_BYTES, tile.dtype, tile.name)


def _with(call: SimpleNamespace, **changes: Any) -> SimpleNamespace:
    return SimpleNamespace(**{**vars(call), **changes})


# Rules


def _several_rows(*names: str) -> Rule:
    def test(definition: Definition, call: SimpleNamespace, profile: Profile) -> str | None:
        for name in names:
            tile = getattr(call, name)
            if tile is not None and tile.rows != 1:
                return f"operand {name} has {tile.rows} rows; a list lies in one"
        return None

    def breaks(call: SimpleNamespace, profile: Profile) -> Iterator[SimpleNamespace]:
        for name in names:
            tile = getattr(call, name)
            if tile is not None:
                yield _with(call, **{name: replace(tile, rows=2)})

    return refuse("L007", f"{', '.join(names)} have one row", test, breaks=breaks,
                  mend="Merge row by row: bind a tile of one row to each row's address.")  # fmt: skip


def _too_wide(first: str, *others: str) -> Rule:
    """What the library asserts of the memory that tiles take together."""

    def test(definition: Definition, call: SimpleNamespace, profile: Profile) -> str | None:
        room, tile = profile.spaces[Space.UB.name].capacity, getattr(call, first)
        taken = tile.nbytes + getattr(call, others[0]).nbytes
        if taken > room:
            return f"{first} and {others[0]} take {taken} bytes of UB, which has {room}"
        for name in others[1:]:
            tile = getattr(call, name)
            if tile is not None and tile.nbytes > room:
                return f"operand {name} takes {tile.nbytes} bytes of UB, which has {room}"
        return None

    def breaks(call: SimpleNamespace, profile: Profile) -> Iterator[SimpleNamespace]:
        columns = profile.spaces[Space.UB.name].capacity // getattr(call, first).dtype.size
        for name in (first, *others):
            tile = getattr(call, name)
            if tile is not None:
                yield _with(call, **{name: replace(tile, cols=columns + _BLOCK)})

    return refuse("L007", f"{first} and {others[0]} fit UB together", test, breaks=breaks, profiles=CHIPS,
                  mend="Merge shorter lists.")  # fmt: skip


def _tiles(*names: str, rows: Sequence[str]) -> tuple[Rule, ...]:
    return (
        dtype("dst", a2a3=(f16, f32), a5=(f16, f32), cpu=(f16, f32)),
        same_dtype(*names), in_space(Space.UB, *names), row_major(*names), _several_rows(*rows),
    )  # fmt: skip


# One tile, by block length


def _repeats(call: SimpleNamespace) -> int:
    """Groups of four blocks in src; the library keeps eight bits of their number."""
    group = int(call.block_len) * LISTS
    return call.src.valid_cols // group if group else 0


def _odd_block(definition: Definition, call: SimpleNamespace, profile: Profile) -> str | None:
    length = int(call.block_len)
    if length and length % _BLOCK == 0:
        return None
    return f"block_len is {length}, not a multiple of 64 elements"


def _with_odd_block(call: SimpleNamespace, profile: Profile) -> Iterator[SimpleNamespace]:
    yield _with(call, block_len=32)


def _partial_group(definition: Definition, call: SimpleNamespace, profile: Profile) -> str | None:
    group, columns = int(call.block_len) * LISTS, call.src.valid_cols
    if not group or columns % group == 0:
        return None
    return f"src has {columns} valid columns, not a multiple of four blocks ({group}): {columns % group} are left out"


def _with_partial_group(call: SimpleNamespace, profile: Profile) -> Iterator[SimpleNamespace]:
    yield _with(call, src=replace(call.src, valid_cols=call.src.valid_cols - _UNIT))


def _many_groups(definition: Definition, call: SimpleNamespace, profile: Profile) -> str | None:
    repeats = _repeats(call)
    if 1 <= repeats <= 255 or not int(call.block_len):
        return None
    return f"src has {repeats} groups of four blocks; one call merges 1 to 255"


def _with_many_groups(call: SimpleNamespace, profile: Profile) -> Iterator[SimpleNamespace]:
    yield _with(call, src=replace(call.src, valid_cols=0))


def _narrow_dst(definition: Definition, call: SimpleNamespace, profile: Profile) -> str | None:
    written = (_repeats(call) & 0xFF) * int(call.block_len) * LISTS
    if call.dst.cols >= written:
        return None
    return f"{written} columns are written and dst has {call.dst.cols}: the rest falls beyond it"


def _with_narrow_dst(call: SimpleNamespace, profile: Profile) -> Iterator[SimpleNamespace]:
    yield _with(call, dst=replace(call.dst, cols=_BLOCK, valid_cols=_BLOCK))


def _long_block(definition: Definition, call: SimpleNamespace, profile: Profile) -> str | None:
    pairs = _pairs(int(call.block_len), call.src)
    return f"a block has {pairs} pairs; a list has at most {MOST_PAIRS}" if pairs > MOST_PAIRS else None


def _with_long_block(call: SimpleNamespace, profile: Profile) -> Iterator[SimpleNamespace]:
    yield _with(call, block_len=_BLOCK * 256)


def _asserted(number: int, sentence: str, test: Any, breaks: Any, why: str, mend: str) -> tuple[Rule, ...]:
    """What a debug build asserts, or the manual alone says: a finding on chips, a refusal of the portable profile."""
    return (
        finding(f"TMRGSORT-{number}", sentence, test, breaks=breaks, why=why, mend=mend, profiles=CHIPS),
        refuse("L007", sentence, test, breaks=breaks, mend=mend, profiles=("cpu",)),
    )


@tile_instruction("tmrgsort", pipe=Pipe.V, cpp_templates=("dst src",))
class TMrgSortBlocks:
    """Merge the sorted blocks of a tile, four at a time.

    ``src`` is a row of blocks of ``block_len`` elements, each a list of pairs sorted largest first. Every four of them
    become one list in ``dst``, at the same place.
    """

    operands = (
        Out("dst", doc="the merged lists"),
        In("src", doc="pairs; its valid columns are a multiple of four blocks"),
        Scalar("block_len", u32, doc="elements of a block, values and indices: 64 for 32 pairs of float"),
    )
    rules = (
        *_tiles("dst", "src", rows=("dst", "src")),
        _too_wide("dst", "src"),
        *_asserted(1, "block_len is a multiple of 64", _odd_block, _with_odd_block,
                   "The manual says so; the A2/A3's library asserts it in debug builds.",
                   "Merge blocks as TSORT32 makes them: 64 elements (float), 128 (half)."),
        *_asserted(2, "the valid columns of src are a multiple of four blocks", _partial_group, _with_partial_group,
                   "The library merges whole groups of four and leaves the rest of dst as it was.",
                   "Merge what is left with the form for two to four lists."),
        *_asserted(3, "src has 1 to 255 groups of four blocks", _many_groups, _with_many_groups,
                   "The library keeps eight bits of the number of groups.", "Split the row."),
        finding("TMRGSORT-4", "dst has the columns that are written", _narrow_dst, breaks=_with_narrow_dst,
                why="The library checks no width.", mend="Give dst the columns of src."),
        finding("TMRGSORT-5", "a block has at most 4095 pairs", _long_block, breaks=_with_long_block, profiles=CHIPS,
                why="The documents of the instruction give a length 0 to 4095.",
                mend="Merge longer lists two by two, as far as they fit, or not at all."),
    )  # fmt: skip
    values = "bits"
    warns = _CODES
    notes = (
        *NOTES,
        "No barrier follows: on A2 and A3 what uses the result on pipe V needs pipe_barrier(PIPE_V).",
        "The public CPU simulator leaves a group that is not whole unwritten, as the chips do.",
    )
    assumed = ASSUMED[:1]
    sources = _PAGES

    @staticmethod
    def fields(call: SimpleNamespace) -> tuple[Any, ...]:
        """The operands of the one ``vmrgsort4`` that it is."""
        pairs = _pairs(int(call.block_len), call.src)
        lists = [_pointer(call.src, number * pairs) for number in range(LISTS)]
        return (_pointer(call.dst), *lists, _repeats(call) & 0xFF, *[pairs] * LISTS, 0, 0b1111)

    def regions(self, call: SimpleNamespace, profile: Profile) -> list[tuple[int, int, Region]]:
        """Whole groups."""
        columns = _repeats(call) * int(call.block_len) * LISTS
        if not columns:
            return []
        kind = np.dtype(np.uint64)
        return [(0, Mode.WRITE, call.dst.region(1, columns, kind)), (1, Mode.READ, call.src.region(1, columns, kind))]

    def perform(self: Any, core: Core, args: Sequence[Any], touches: list[Touch]) -> None:
        """The portable form: the merge, as often as src has groups."""
        call = self.call(args)
        if touches:
            merge = replace(Merge.of(vmrgsort4.call(self.fields(call))), repeats=_repeats(call))
            core.view(touches[0].region)[...] = merged(merge, core)[0].reshape(1, -1)

    def expand(self: Any, call: SimpleNamespace, profile: Profile) -> Iterator[Group]:
        """The one instruction of the chip's library."""
        yield Group([Step(vmrgsort4, self.fields(call))])

    def observe(self: Any, core: Core, args: Sequence[Any], touches: list[Touch]) -> list[Finding]:
        """Lists that do not descend, a destination over the source."""
        return watch_merge(self.title, Merge.of(vmrgsort4.call(self.fields(self.call(args)))), core)


# Two to four tiles


class _CopyMerged(Move):
    """The copy behind a merge that may have stopped: what lies beyond the merged pairs is copied, and means nothing."""

    is_static = False

    def touches(self, core: Core, args: Sequence[Any]) -> list[Touch]:
        """What the merge has written is read; all is written."""
        _, _, written, read, _ = args
        merged_bytes = min(sum(core.state.merged) * PAIR_BYTES, read.length)
        return [Touch(1, Mode.READ, read._replace(length=merged_bytes)), Touch(0, Mode.WRITE, written)]


_COPY_MERGED = _CopyMerged("copy_ubuf_to_ubuf", Pipe.V)


def _bytes(tile: Tile, length: int) -> Region:
    return Region(tile.space, tile.address, length, (), np.dtype(np.uint8))


def _lists(call: SimpleNamespace) -> list[Tile]:
    return [tile for tile in (getattr(call, name) for name in _SOURCES) if tile is not None]


def _total(call: SimpleNamespace) -> int:
    """Pairs of all lists."""
    return sum(_pairs(tile.valid_cols, tile) for tile in _lists(call))


def _skipped_list(definition: Definition, call: SimpleNamespace, profile: Profile) -> str | None:
    return "src3 is given without src2" if call.src3 is not None and call.src2 is None else None


def _with_skipped_list(call: SimpleNamespace, profile: Profile) -> Iterator[SimpleNamespace]:
    yield _with(call, src2=None, src3=call.src0)


def _small_tmp(definition: Definition, call: SimpleNamespace, profile: Profile) -> str | None:
    need = _total(call) * PAIR_BYTES
    if call.tmp.nbytes >= need:
        return None
    return f"the lists have {need} bytes of pairs, which are merged in tmp, and tmp has {call.tmp.nbytes}"


def _with_small_tmp(call: SimpleNamespace, profile: Profile) -> Iterator[SimpleNamespace]:
    yield _with(call, tmp=replace(call.tmp, cols=_UNIT, valid_cols=_UNIT))


def _long_list(definition: Definition, call: SimpleNamespace, profile: Profile) -> str | None:
    for number, tile in enumerate(_lists(call)):
        pairs = _pairs(tile.valid_cols, tile)
        if pairs > MOST_PAIRS:
            return f"src{number} has {pairs} pairs; a list has at most {MOST_PAIRS}"
    return None


def _with_long_list(call: SimpleNamespace, profile: Profile) -> Iterator[SimpleNamespace]:
    columns = (MOST_PAIRS + 1) * PAIR_BYTES // call.src0.dtype.size
    yield _with(call, src0=replace(call.src0, cols=columns, valid_cols=columns))


def _stale_end(definition: Definition, call: SimpleNamespace, profile: Profile) -> str | None:
    pairs = _total(call)
    columns = pairs * PAIR_BYTES // call.dst.dtype.size
    if call.dst.valid_cols <= columns:
        return None
    return f"the lists make {columns} columns and dst has {call.dst.valid_cols} valid: the rest is what tmp held before"


def _with_stale_end(call: SimpleNamespace, profile: Profile) -> Iterator[SimpleNamespace]:
    short = {name: replace(getattr(call, name), valid_cols=_UNIT // 2) for name in ("src0", "src1")}
    yield _with(call, **short, dst=replace(call.dst, valid_cols=call.dst.cols))


_SPELLINGS = tuple(Asm("tmrgsort", order=(*_SOURCES[:count], *tmp)) for count in (2, 3, 4) for tmp in (("tmp",), ()))
"""tmp follows the lists, or stands among the outputs."""


@tile_instruction(
    "tmrgsort", pipe=Pipe.V, asm=_SPELLINGS,
    cpp_order=("dst", "executed", "tmp", "src0", "src1", "src2", "src3", "exhausted"),
    cpp_templates=("dst tmp src0 src1 src2 src3 exhausted",),
)  # fmt: skip
class TMrgSortLists:
    """Merge two, three or four tiles, each a list of pairs sorted largest first, into one.

    ``dst`` takes as many of the merged pairs as it has valid columns for. With ``exhausted`` the merge stops when one
    list has ended; ``executed`` says how many pairs were taken of each, and what dst has beyond them is stale.
    """

    operands = (
        Out("dst", doc="the merged pairs, as many as its valid columns take"),
        Out("executed", Sort.COUNTS, doc="pairs taken of each list (MrgSortExecutedNumList); with exhausted alone"),
        Scratch("tmp", used_on=CHIPS, doc="where chips merge, before they copy to dst: the columns of all lists together"),
        In("src0", doc="pairs, largest first"), In("src1", doc="pairs, largest first"),
        In("src2", optional=True, doc="pairs, largest first"), In("src3", optional=True, doc="pairs, largest first"),
        Choice("exhausted", bool, optional=True, default=False, explicit=True,
               doc="whether to stop when one list has ended"),
    )  # fmt: skip
    rules = (
        *_tiles("dst", "tmp", *_SOURCES, rows=("dst", "tmp", "src0", "src1", "src2")),
        refuse("L009", "lists are given from the first on", _skipped_list, breaks=_with_skipped_list,
               mend="Give src2 before src3."),
        _too_wide("tmp", *_SOURCES),
        finding("TMRGSORT-6", "tmp has the bytes of all lists", _small_tmp, breaks=_with_small_tmp, profiles=CHIPS,
                why="The lists are merged in tmp, then as much as dst takes is copied; the library checks no size.",
                mend="Give tmp the columns of all lists together (GETMRGSORTTMPSIZE)."),
        finding("TMRGSORT-7", "a list has at most 4095 pairs", _long_list, breaks=_with_long_list, profiles=CHIPS,
                why="The documents of the instruction give a length 0 to 4095.", mend="Merge shorter lists."),
        finding("TMRGSORT-8", "dst has no more valid columns than the lists together", _stale_end,
                breaks=_with_stale_end, profiles=CHIPS, severity=Severity.WARNING,
                why="The library copies the valid columns of dst from tmp, however many were merged.",
                mend="Give dst the valid columns of all lists, or fewer."),
    )  # fmt: skip
    values = "bits"
    warns = _CODES
    notes = (
        *NOTES,
        "dst may be a source: the merge goes to tmp first. tmp may not.",
        "A2 and A3: a barrier on pipe V between the merge and the copy, none after it. With exhausted a flag from V to "
        "S (event 0) precedes the reading of the counts, on both chips.",
        "In Python the call returns the counts; None without exhausted. On cpu the counts are always given, and tmp is "
        "not used.",
    )
    assumed = ASSUMED
    sources = _PAGES

    @staticmethod
    def fields(call: SimpleNamespace, dst: Tile) -> tuple[Any, ...]:
        """The operands of the ``vmrgsort4`` that merges into ``dst``."""
        lists = _lists(call)
        lengths = [_pairs(tile.valid_cols, tile) for tile in lists] + [0] * (LISTS - len(lists))
        sources = [*map(_pointer, lists), *[None] * (LISTS - len(lists))]
        return (_pointer(dst), *sources, 1, *lengths, int(call.exhausted), (1 << len(lists)) - 1)

    def regions(self, call: SimpleNamespace, profile: Profile) -> list[tuple[int, int, Region]]:
        """The portable form: the lists, and what dst takes of them."""
        kind = np.dtype(np.uint64)
        per_pair = PAIR_BYTES // call.dst.dtype.size
        columns = min(_total(call), call.dst.valid_cols // per_pair) * per_pair
        read = [
            (2 + number, Mode.READ, tile.region(1, tile.valid_cols // per_pair * per_pair, kind))
            for number, tile in enumerate(_lists(call))
        ]
        return [(0, Mode.WRITE, call.dst.region(1, columns, kind)), *read]

    def perform(self: Any, core: Core, args: Sequence[Any], touches: list[Touch]) -> tuple[int, ...]:
        """The portable form: merge into dst."""
        call = self.call(args)
        pairs, counts = merged(Merge.of(vmrgsort4.call(self.fields(call, call.dst))), core)
        view = core.view(touches[0].region)
        room = min(view.shape[-1], pairs.shape[-1])
        view[..., :room] = pairs[:, :room]
        core.state.merged = (*counts, 0, 0)[:LISTS]  # type: ignore[assignment]
        return core.state.merged

    def expand(self: Any, call: SimpleNamespace, profile: Profile) -> Iterator[Group]:
        """Merge into tmp, say how far it came, copy to dst."""
        steps = [Step(vmrgsort4, self.fields(call, call.tmp))]
        if call.exhausted:
            flag = (Pipe.V, Pipe.S, 0)
            steps += [Step(set_flag, flag), Step(wait_flag, flag), Step(get_vms4_sr, ())]
        if profile.name == "a2a3":
            steps.append(Step(pipe_barrier, (Pipe.V,)))
        blocks = whole_blocks(call.dst.valid_cols * call.dst.dtype.size) // _UNIT
        if call.exhausted:
            there, here = _bytes(call.dst, blocks * _UNIT), _bytes(call.tmp, blocks * _UNIT)
            steps.append(_COPY_MERGED.step(call.dst, there, call.tmp, here))
        else:
            steps.append(Step(copy_ubuf_to_ubuf, (_pointer(call.dst), _pointer(call.tmp), 1, blocks, 0, 0)))
        for step in steps:
            yield Group([step])

    def conclude(self: Any, core: Core, args: Sequence[Any]) -> tuple[int, ...] | None:
        """The counts, where the call was to stop."""
        return core.state.merged if self.call(args).exhausted else None

    def observe(self: Any, core: Core, args: Sequence[Any], touches: list[Touch]) -> list[Finding]:
        """Lists that do not descend, a tmp over a list."""
        call = self.call(args)
        where = call.tmp if core.profile.is_chip else call.dst
        found = watch_merge(self.title, Merge.of(vmrgsort4.call(self.fields(call, where))), core)
        return found if core.profile.is_chip else [f for f in found if f.code != "MRGSORT-OVERLAP"]
