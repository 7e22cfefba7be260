"""TSORT32: sort each 32-element block of a row and carry the indices along.

Sources: pto-isa docs/isa/TSORT32, include/pto/npu/a2a3/TSort32.hpp, include/pto/npu/a5/TSort32.hpp,
include/pto/cpu/TSort32.hpp.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from functools import partial
from types import SimpleNamespace
from typing import Any, NamedTuple

import numpy as np

from ascsim.diagnostics import Severity
from ascsim.isa.definition import (
    A5,
    CHIPS,
    Bytes,
    Definition,
    In,
    Out,
    Scalar,
    Scratch,
    Sort,
    memory_instruction,
    tile_instruction,
    types_of,
)
from ascsim.isa.memory_form.fill import vector_dup
from ascsim.isa.memory_form.masked import set_mask_norm, set_vector_mask
from ascsim.isa.memory_form.sort import ASSUMED, BLOCK, NOTES, PAIR_BYTES, blocks_of, sort_findings, vbitsort
from ascsim.isa.rules import dtype, finding, in_space, row_major, same_dtype
from ascsim.isa.semantics import network
from ascsim.isa.semantics.order import BF16, F16, F32, SIGNED
from ascsim.isa.semantics.sort import sorted_pairs
from ascsim.isa.sync import pipe_barrier
from ascsim.isa.transfer import copy_ubuf_to_ubuf, whole_blocks
from ascsim.machine.core import Core, Finding, Group, Step, Touch
from ascsim.machine.dtypes import DType, bf16, f16, f32, i16, i32, u32
from ascsim.machine.native import Tried
from ascsim.machine.operands import REGISTER_BYTES, Pointer, Region, Tile
from ascsim.machine.trace import Mode
from ascsim.machine.words import Pipe, Space
from ascsim.profiles import Profile

MOST_BLOCKS = 255
"""Blocks that one vbitsort sorts (REPEAT_MAX)."""
COPIED_ROW = 8160
"""A row with a tail is copied to tmp as a whole up to here (MAX_UB_TMP): elements on A2/A3, bytes on the A5."""
PADDING: dict[DType, np.generic] = {f32: np.uint32(0xFFC00000), f16: np.uint16(0xFE00)}
"""What a tail is filled up with, the library's ``-(0.0 / 0.0)``: -NaN, which sorts last."""
_ORDERS = {f32: F32, f16: F16, bf16: BF16, i32: SIGNED, i16: SIGNED}


def _in_blocks(rows: np.ndarray, columns: int = BLOCK) -> np.ndarray:
    """Rows as (rows, blocks, columns of a block)."""
    return rows.reshape(len(rows), -1, columns)


def pair_columns(kind: DType) -> int:
    """Columns of dst that a pair takes."""
    return PAIR_BYTES // kind.size


class Work(NamedTuple):
    """What a call has to do on one profile, from the shapes alone."""

    rows: int
    columns: int
    size: int
    chip: bool
    pads: bool
    """The tail is padded in tmp: the four-operand form with columns that are not whole blocks."""
    copies_row: bool
    """The whole row is copied to tmp (path A), not the tail block alone (path B)."""
    blocks: int
    """Blocks of a row, the padded one included."""

    @staticmethod
    def of(call: SimpleNamespace, profile: Profile) -> Work:
        """The work of this call."""
        columns, size = call.src.valid_cols, call.src.dtype.size
        if not profile.is_chip:
            return Work(call.src.valid_rows, columns, size, False, False, False, columns // BLOCK)
        pads = call.tmp is not None and columns % BLOCK > 0
        copies = pads and (columns if profile.name == "a2a3" else columns * size) <= COPIED_ROW
        return Work(call.dst.valid_rows, columns, size, True, pads, copies, columns // BLOCK + pads)

    @property
    def tail(self) -> int:
        """Elements of the last block, if it is not whole."""
        return self.columns % BLOCK

    @property
    def pairs(self) -> int:
        """Pairs that each row writes."""
        return self.blocks * BLOCK if self.chip else self.columns

    @property
    def tmp_bytes(self) -> int:
        """Bytes of tmp that are written."""
        if not self.pads:
            return 0
        return (self.blocks if self.copies_row else 1) * BLOCK * self.size

    @property
    def last_calls(self) -> tuple[int, int]:
        """Without a row copy: how many full calls come first, and how many blocks the call after them is told.

        The library computes the second number as ``blocks % 255``, less one where a tail is padded: at a multiple of
        255 it is 0, or -1, which the instruction takes as 255.
        """
        full = -(-self.blocks // MOST_BLOCKS) - 1
        return full, self.blocks % MOST_BLOCKS - self.pads


# The A5's padding step


@memory_instruction(
    "vlds_vdup_vsts", asm=(), profiles=A5, pipe=Pipe.V, variants=types_of("f16", "f32"),
    operands=(
        Out("dst", Sort.POINTER, "T", doc="where the block is stored"),
        In("src", Sort.POINTER, "T", doc="where it is loaded from: 256 bytes, of which the tail counts"),
        Scalar("tail", i32, doc="elements to keep"),
    ),
    extent=lambda call: {
        "dst": Bytes(BLOCK * call.dst.dtype.size),
        "src": (
            Bytes(int(call.tail) * call.dst.dtype.size),
            Bytes(REGISTER_BYTES - int(call.tail) * call.dst.dtype.size, offset=int(call.tail) * call.dst.dtype.size,
                  used=False),
        ),
    },
    notes=("Stands for the vector function of TSort32.hpp: load a register, set its end to -NaN, store 32 elements.",),
    sources=("pto-isa include/pto/npu/a5/TSort32.hpp",),
)  # fmt: skip
def pad_tail(source: np.ndarray, tail: int) -> np.ndarray:
    """Fill a tail up to 32 elements with -NaN: the A5's padding inside TSORT32."""
    block = np.full((*source.shape[:-1], BLOCK), PADDING[f32 if source.itemsize == 4 else f16], source.dtype)
    block[..., :tail] = source
    return block


# Expansion


class _Rows(NamedTuple):
    """The addresses of a call, and the steps on them."""

    work: Work
    dst: Pointer
    src: Pointer
    idx: Pointer
    tmp: Pointer | None
    strides: tuple[int, int, int]
    """Bytes from row to row of dst, src and idx; 0 for an index row that all rows share."""
    chip: str

    @staticmethod
    def of(call: SimpleNamespace, profile: Profile) -> _Rows:
        dst, src, idx, tmp = call.dst, call.src, call.idx, call.tmp
        strides = (dst.row_bytes, src.row_bytes, 0 if idx.valid_rows == 1 else idx.row_bytes)
        scratch = None if tmp is None else Pointer(tmp.space, tmp.address, src.dtype, tmp.name)
        to, values, indices = [Pointer(tile.space, tile.address, tile.dtype, tile.name) for tile in (dst, src, idx)]
        return _Rows(Work.of(call, profile), to, values, indices, scratch, strides, profile.name)

    def sort(self, first: int, count: int, source: Pointer | None = None) -> list[Step]:
        """Sort ``count`` blocks from number ``first`` on; the values come from ``source``, or from src."""
        dst_row, src_row, idx_row = self.strides
        if source is None:
            source = self.src + first * BLOCK
        else:
            src_row = 0
        pairs = self.dst._replace(offset=self.dst.offset + first * BLOCK * PAIR_BYTES) if first else self.dst
        args = (pairs, source, self.idx + first * BLOCK, count & 0xFF)
        return self._step(vbitsort, args, (dst_row, src_row, idx_row, 0))

    def copy(self, first: int, elements: int) -> list[Step]:
        """Copy elements of each row, from block ``first`` on, to the start of tmp: whole 32-byte blocks."""
        blocks = whole_blocks(elements * self.work.size) // BLOCK
        args = (self.tmp, self.src + first * BLOCK, 1, blocks, 0, 0)
        return self._step(copy_ubuf_to_ubuf, args, (0, self.strides[1], 0, 0, 0, 0))

    def pad(self, block: int) -> list[Step]:
        """Fill the tail in this block of tmp up to 32 elements."""
        assert self.tmp is not None and self.tmp.dtype is not None
        where, kind = self.tmp + block * BLOCK, self.tmp.dtype
        if self.chip == "a5":
            return self._step(pad_tail, (where, where, self.work.tail), (0, 0, 0))
        value = PADDING[kind].view(kind.numpy)
        return self._step(vector_dup, (where, value, 1, 1, 1, 8, 0), (0,) * 7)

    def _step(self, instruction: Any, args: tuple, strides: tuple[int, ...]) -> list[Step]:
        rows = self.work.rows
        step = Step(instruction, args, rows, strides)
        return [step, Step(pipe_barrier, (Pipe.V,), rows, (0,))] if self.chip == "a2a3" else [step]


def _row_steps(rows: _Rows) -> list[Step]:
    work = rows.work
    if work.copies_row:
        return [*rows.copy(0, work.columns), *rows.pad(work.blocks - 1), *rows.sort(0, work.blocks, rows.tmp)]
    if not work.pads and work.blocks <= MOST_BLOCKS:
        return rows.sort(0, work.blocks)
    full, rest = work.last_calls
    steps = [step for call in range(full) for step in rows.sort(call * MOST_BLOCKS, MOST_BLOCKS)]
    steps += rows.sort(full * MOST_BLOCKS, rest)
    if work.pads:
        block = full * MOST_BLOCKS + rest
        steps += [*rows.copy(block, work.tail), *rows.pad(0), *rows.sort(block, 1, rows.tmp)]
    return steps


# Rules


def _narrow_dst(definition: Definition, call: SimpleNamespace, profile: Profile) -> str | None:
    work, need = Work.of(call, profile), pair_columns(call.dst.dtype)
    need *= work.pairs
    if call.dst.cols >= need:
        return None
    beyond = (need - call.dst.cols) * call.dst.dtype.size
    where = "beyond dst" if work.rows <= 1 else "on the next row, and of the last row beyond dst"
    return (
        f"each row writes {work.pairs} pairs, {need} columns of {call.dst.dtype.name}, but dst has {call.dst.cols}: "
        f"the last {beyond} bytes of a row fall {where}"
    )


def _with_narrow_dst(call: SimpleNamespace, profile: Profile) -> Iterator[SimpleNamespace]:
    cols = call.dst.cols // 2
    yield SimpleNamespace(**{**vars(call), "dst": replace(call.dst, cols=cols, valid_cols=cols)})


def _small_tmp(definition: Definition, call: SimpleNamespace, profile: Profile) -> str | None:
    need = Work.of(call, profile).tmp_bytes
    if not need or call.tmp.nbytes >= need:
        return None
    return f"tmp has {call.tmp.nbytes} bytes and {need} are written: the last {need - call.tmp.nbytes} fall beyond it"


def _with_tail(call: SimpleNamespace, columns: int, tmp_columns: int = 0) -> SimpleNamespace:
    """The call with so many valid columns, and a tmp of so many."""
    changed = {
        "src": replace(call.src, valid_cols=columns), "idx": replace(call.idx, valid_cols=columns), "tmp": None,
    }  # fmt: skip
    if tmp_columns:
        tmp = Tile(call.src.dtype, 1, tmp_columns, 1, tmp_columns, call.src.address, name="tmp")
        changed["tmp"] = tmp
    return SimpleNamespace(**{**vars(call), **changed})


def _with_small_tmp(call: SimpleNamespace, profile: Profile) -> Iterator[SimpleNamespace]:
    yield _with_tail(call, 13, 16)


def _tail_left(definition: Definition, call: SimpleNamespace, profile: Profile) -> str | None:
    tail = call.src.valid_cols % BLOCK
    if call.tmp is not None or not tail:
        return None
    return f"{call.src.valid_cols} columns are not whole blocks of 32: the last {tail} of each row are not sorted"


def _without_tmp(call: SimpleNamespace, profile: Profile) -> Iterator[SimpleNamespace]:
    yield _with_tail(call, 13)


def _few_indices(definition: Definition, call: SimpleNamespace, profile: Profile) -> str | None:
    idx, work = call.idx, Work.of(call, profile)
    if idx.valid_cols < work.columns:
        return f"idx has {idx.valid_cols} valid columns for {work.columns} of src"
    if idx.valid_rows != 1 and idx.valid_rows < work.rows:
        return f"idx has {idx.valid_rows} valid rows for {work.rows}; it takes as many, or one for all"
    return None


def _with_few_indices(call: SimpleNamespace, profile: Profile) -> Iterator[SimpleNamespace]:
    yield SimpleNamespace(**{**vars(call), "idx": replace(call.idx, valid_cols=call.src.valid_cols - 1)})


def _other_rows(definition: Definition, call: SimpleNamespace, profile: Profile) -> str | None:
    if call.dst.valid_rows == call.src.valid_rows:
        return None
    return f"dst has {call.dst.valid_rows} valid rows and src {call.src.valid_rows}; the chip sorts as many as dst has"


def _with_other_rows(call: SimpleNamespace, profile: Profile) -> Iterator[SimpleNamespace]:
    yield SimpleNamespace(**{**vars(call), "src": replace(call.src, valid_rows=call.src.valid_rows - 1)})


def _wide(call: SimpleNamespace, columns: int, tmp_columns: int) -> SimpleNamespace:
    """The call with one row of so many columns."""
    up = -(-columns // BLOCK) * BLOCK
    wide = {
        name: replace(getattr(call, name), rows=1, valid_rows=1, cols=up, valid_cols=columns) for name in ("src", "idx")
    }
    pairs = up * pair_columns(call.dst.dtype)
    wide["dst"] = replace(call.dst, rows=1, valid_rows=1, cols=pairs, valid_cols=pairs)
    return _with_tail(SimpleNamespace(**{**vars(call), **wide}), columns, tmp_columns)


def _unsorted_end(definition: Definition, call: SimpleNamespace, profile: Profile) -> str | None:
    work = Work.of(call, profile)
    if work.pads or work.blocks <= MOST_BLOCKS or work.blocks % MOST_BLOCKS:
        return None
    return f"a row has {work.blocks} blocks, a multiple of 255: the last 255 are never sorted"


def _unpadded_tail(definition: Definition, call: SimpleNamespace, profile: Profile) -> str | None:
    work = Work.of(call, profile)
    if not work.pads or work.copies_row or work.blocks % MOST_BLOCKS:
        return None
    block = work.blocks - MOST_BLOCKS - 1
    where = f"block {block} is overwritten" if block >= 0 else "32 pairs are written before the row of dst"
    return (
        f"a row has {work.blocks} blocks, a multiple of 255: its tail is sorted from src without padding, and {where} "
        f"with the first {work.tail} values of {'block ' + str(block) if block >= 0 else 'what lies before src'}"
    )


def _beyond_tmp(definition: Definition, call: SimpleNamespace, profile: Profile) -> str | None:
    work = Work.of(call, profile)
    if not work.pads:
        return None
    end = work.tmp_bytes - BLOCK * work.size + REGISTER_BYTES
    if call.tmp.nbytes >= end:
        return None
    return f"padding reads bytes {end - REGISTER_BYTES} to {end - 1} of tmp, which has {call.tmp.nbytes}"


def _no_blocks(definition: Definition, call: SimpleNamespace, profile: Profile) -> str | None:
    work = Work.of(call, profile)
    if work.copies_row or work.rows == 0:
        return None
    alone = work.blocks <= MOST_BLOCKS and not work.pads
    if (work.blocks if alone else work.last_calls[1]) != 0:
        return None
    return "the library issues a vbitsort of 0 blocks, which is not guaranteed to do nothing"


_BROKEN_LIBRARY = "The public library computes the blocks of the last call as the number of blocks modulo 255."
_OTHER_WIDTH = "Split the row into two tiles, or use another width."
_RULES = (
    dtype("dst", a2a3=(f16, f32), a5=(f16, f32), cpu=(f16, f32, bf16, i16, i32)),
    dtype("idx", a2a3=(u32,), a5=(u32,), cpu=(u32,)),
    same_dtype("dst", "src"),
    row_major("dst", "src", "idx"),
    in_space(Space.UB, "dst", "src", "idx", "tmp"),
    finding(
        "TSORT32-1", "dst has a column for every part of every pair", _narrow_dst, breaks=_with_narrow_dst,
        why="Each value becomes 8 bytes, and a padded tail block writes all its 32 pairs; the library checks no width.",
        mend="Give dst 2 columns (float, int32) or 4 (half, bfloat16, int16) for each column of src, rounded up to 32.",
    ),
    finding(
        "TSORT32-2", "tmp holds what is padded in it", _small_tmp, breaks=_with_small_tmp, profiles=CHIPS,
        why="The row, or its tail block, is copied to tmp and filled up to whole blocks; the library checks no size.",
        mend="Give tmp the columns of src rounded up to 32 (one block where the row is not copied).",
    ),
    finding(
        "TSORT32-3", "without tmp the columns are whole blocks", _tail_left, breaks=_without_tmp, profiles=CHIPS,
        why="The form without tmp sorts whole blocks only and leaves the tail of dst as it was.",
        mend="Pass a tmp tile, or pad src to a multiple of 32 columns.",
    ),
    finding(
        "TSORT32-4", "idx covers src, or has one row for all", _few_indices, breaks=_with_few_indices,
        why="Indices beyond its valid region are read.", mend="Give idx the valid shape of src, or one valid row.",
    ),
    finding(
        "TSORT32-5", "dst and src have as many valid rows", _other_rows, breaks=_with_other_rows, profiles=CHIPS,
        why="The library takes the rows from dst and never looks at those of src.", mend="Make them equal.",
    ),
    finding(
        "E-TSORT32-510", "the blocks of a row are not a multiple of 255 beyond 255", _unsorted_end,
        breaks=lambda call, profile: iter((_wide(call, 16320, 0),)), severity=Severity.WARNING, profiles=CHIPS,
        why=_BROKEN_LIBRARY, mend=_OTHER_WIDTH,
    ),
    finding(
        "E-TSORT32-TAIL", "the blocks of a padded row are not a multiple of 255", _unpadded_tail,
        breaks=lambda call, profile: iter((_wide(call, 16300, 64),)), severity=Severity.WARNING, profiles=CHIPS,
        why=f"{_BROKEN_LIBRARY} One less than 0 is taken as 255 blocks, and as block -1.", mend=_OTHER_WIDTH,
    ),
    finding(
        "E-TSORT32-READ", "tmp has 256 bytes from the start of its last block on", _beyond_tmp,
        breaks=lambda call, profile: iter((_with_tail(call, 13, 32),)), severity=Severity.WARNING, profiles=A5,
        why="The A5's padding loads a whole register there and stores 32 elements of it.",
        mend="Add 128 bytes (float) or 192 (half) to tmp, or see that they lie within UB.",
    ),
    finding(
        "E-TSORT32-ZERO", "no call sorts 0 blocks", _no_blocks,
        breaks=lambda call, profile: iter((_with_tail(call, 13),)), severity=Severity.WARNING, profiles=A5,
        why="The page of the A5's instruction does not say that a repeat of 0 does nothing.", mend=_OTHER_WIDTH,
    ),
)  # fmt: skip


@tile_instruction("tsort32", pipe=Pipe.V)
class TSort32:
    """Sort each block of 32 values of a row, largest first, and carry the indices along.

    Block ``b`` of a row covers columns ``32b`` to ``32b + 31`` of ``src``; the last block may be shorter. Its values
    and the indices beside them are sorted by value and written to ``dst`` as pairs of 8 bytes: value and 32-bit index
    (half: value, 0x0000, index). Pair ``k`` of a row takes columns ``2k`` and ``2k + 1`` (float) or ``4k`` to
    ``4k + 3`` (half).
    """

    operands = (
        Out("dst", doc="pairs; 2 columns (4-byte types) or 4 (2-byte types) for each column of src"),
        In("src", doc="values"),
        In("idx", doc="indices, u32; one valid row serves all rows"),
        Scratch(
            "tmp",
            optional=True,
            used_on=CHIPS,
            doc="where chips pad a tail; the columns of src rounded up to 32 are enough",
        ),
    )
    rules = _RULES
    warns = ("SORT-NAN", "SORT-TIE")
    values = "bits"
    wait_events = False
    notes = (
        *NOTES,
        "On chips the rows are those of dst, on cpu those of src.",
        "On chips without tmp a tail is not sorted, and its pairs are not written. With tmp it is padded to 32 with "
        "-NaN (f32 0xFFC00000, f16 0xFE00; not -infinity, as the manual has it) and all 32 pairs are written. On cpu "
        "the valid pairs are written, and tmp is not used.",
        "With a tail and tmp, A2/A3 copy the whole row to tmp up to 8160 elements, the A5 up to 8160 bytes; beyond, "
        "the tail block alone. One vbitsort sorts at most 255 blocks; longer rows take several.",
        "A2/A3: a barrier on pipe V after each step, and the vector mask is all ones afterwards. ascsim sets the mask "
        "for the padding once a call, before the rows, where the library sets it in each row.",
        "It waits for no events: order it with flags, or TSYNC.",
        "The public CPU simulator writes half rows of more than one block to wrong columns, and nothing at all when "
        "idx has one row for many; ascsim's cpu profile does what the manual says.",
    )
    assumed = (
        *ASSUMED,
        "Addresses that the library computes with 32-bit overflow (E-TSORT32-TAIL) wrap to block -1.",
    )
    sources = (
        "pto-isa docs/isa/TSORT32",
        "pto-isa include/pto/npu/a2a3/TSort32.hpp, include/pto/npu/a5/TSort32.hpp, include/pto/cpu/TSort32.hpp",
        "asc-devkit C-API vector_compute/asc_bitsort",
    )

    def regions(self, call: SimpleNamespace, profile: Profile) -> list[tuple[int, int, Region]]:
        """The portable form: values and indices read, valid pairs written."""
        rows, columns = call.src.valid_rows, call.src.valid_cols
        pairs = ((rows, call.dst.row_bytes),)
        written = Region(call.dst.space, call.dst.address, columns * PAIR_BYTES, pairs, np.dtype(np.uint32))
        index_rows = 1 if call.idx.valid_rows == 1 else rows
        return [
            (0, Mode.WRITE, written),
            (1, Mode.READ, call.src.region(rows, columns)),
            (2, Mode.READ, call.idx.region(index_rows, columns)),
        ]

    def compute(self, call: SimpleNamespace, arrays: list[np.ndarray], profile: Profile) -> np.ndarray:
        """Sort the parts of each row and lay the pairs side by side."""
        order, rows = _ORDERS[call.src.dtype], arrays[0].shape[0]
        pairs = [np.empty((rows, 0), np.uint32)]
        for bits, indices in zip(*map(blocks_of, arrays), strict=True):
            done = sorted_pairs(bits, np.broadcast_to(indices, bits.shape), order)
            pairs.append(done.reshape(rows, 2 * bits.shape[1] * bits.shape[2]))
        return np.concatenate(pairs, axis=1)

    def prepared(self: Any, core: Core, args: Sequence[Any], touches: list[Touch]) -> Callable[[], Any] | None:
        """See :class:`TileInstruction`; whole blocks by machine code where that is worth it."""
        reads, writes = self._lanes(core, args, touches)
        values, indices = (lanes.read() for lanes in reads)
        pairs = writes[0].view
        run, is_whole = self._bind(core, args, touches), values.size and not values.shape[1] % BLOCK
        if not is_whole or np.may_share_memory(pairs, values) or np.may_share_memory(pairs, indices):
            return run
        make = partial(
            network.sorting, _in_blocks(values), _in_blocks(indices), _in_blocks(pairs, 2 * BLOCK),
            _ORDERS[args[1].dtype],
        )  # fmt: skip
        return Tried(run, partial(network.is_worth_it, values.size), make)

    def expand(self, call: SimpleNamespace, profile: Profile) -> Iterator[Group]:
        """The steps of the chip's library."""
        rows = _Rows.of(call, profile)
        work = rows.work
        if work.rows == 0:
            return
        private = None
        if work.pads:
            private = (call.tmp.space, call.tmp.address, work.tmp_bytes)
        masks = work.pads and profile.name == "a2a3"
        if masks:
            beyond_tail = ~((1 << work.tail) - 1) & 0xFFFFFFFF
            yield Group([Step(set_mask_norm, ()), Step(set_vector_mask, (0, beyond_tail))])
        yield Group(_row_steps(rows), private)
        if masks:
            yield Group([Step(set_vector_mask, (-1, -1))])

    def observer(
        self: Any, core: Core, args: Sequence[Any], touches: list[Touch]
    ) -> Callable[[], Sequence[Finding]] | None:
        """Warn of NaNs, and of ties that the documents order differently."""
        call = self.call(args)
        work, order = Work.of(call, core.profile), _ORDERS[call.src.dtype]
        if not work.rows or not work.columns:
            return None
        bits = core.view(call.src.region(work.rows, work.columns)).view(call.src.dtype.bits_dtype)
        indices = core.view(call.idx.region(1 if call.idx.valid_rows == 1 else work.rows, work.columns))
        look = partial(sort_findings, self.title, bits, indices, order)
        if work.columns % BLOCK:
            return look
        make = partial(network.looking, _in_blocks(bits), _in_blocks(indices), order)
        return Tried(look, network.is_ready, make, ())
