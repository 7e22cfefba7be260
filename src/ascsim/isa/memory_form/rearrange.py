"""Moving elements within UB: ``vcopy``, ``vbrcb``, ``vgather``, ``vgatherb``, ``vreducev2``, ``vtranspose``,
``scatter_vnchwconv`` and the address registers that it takes.

Sources: asc-devkit C-API vector_compute (asc_copy, asc_brcb, asc_gather, asc_gather_datablock, asc_reduce,
asc_get_rsvd_count, asc_transpose, asc_transto5hd, asc_set_va_reg) and the code behind them; for what the C API's pages
leave out, the basic API's (Brcb, GatherMask, TransDataTo5HD).
"""

from __future__ import annotations

from collections.abc import Sequence
from types import SimpleNamespace
from typing import Any

import numpy as np

from ascsim.isa.definition import (
    A2A3,
    CHIPS,
    REGISTRY,
    Bytes,
    Choice,
    In,
    MemoryInstruction,
    Operand,
    Scalar,
    Sort,
    memory_instruction,
    plain_instruction,
    types_of,
)
from ascsim.isa.memory_form.masked import (
    BLOCK_BYTES,
    BLOCKS,
    DST,
    PAGES,
    REPEAT,
    SRC,
    SRC0,
    Context,
    Layout,
    VectorInstruction,
    counted,
    numbers_fit,
    vector_family,
)
from ascsim.isa.rules import scalar_range
from ascsim.isa.sync import synchronous
from ascsim.machine.core import Core, Touch
from ascsim.machine.dtypes import u8, u16, u32
from ascsim.machine.operands import REGISTER_BYTES, Region
from ascsim.machine.trace import Mode
from ascsim.machine.words import Pipe, Space, VectorAddress

_BYTE = np.dtype(np.uint8)
_ONES = types_of("i16", "u16", "f16", "bf16", "i32", "u32", "f32")
_WORDS = types_of("u16", "u32")


def scattered(operand: int, mode: Mode, space: int, starts: np.ndarray, size: int) -> list[Touch]:
    """Accesses to ``size`` bytes at each start, a window of 256 bytes each."""
    every = np.unique(starts.reshape(-1, 1).astype(np.int64) + np.arange(size))
    touched = []
    for window in np.split(every, np.flatnonzero(np.diff(every // REGISTER_BYTES)) + 1) if every.size else ():
        first, length = int(window[0]), int(window[-1] - window[0]) + 1
        mask = None
        if window.size < length:
            mask = np.zeros(REGISTER_BYTES, np.uint8)
            mask[window - first] = 1
        touched.append(Touch(operand, mode, Region(space, first, length, (), _BYTE), 0, mask))
    return touched


def _taken(core: Core, space: int, starts: np.ndarray, size: int) -> np.ndarray:
    """``size`` bytes at each start: (..., size)."""
    data = core.memory(space).data
    low, high = (int(starts.min()), int(starts.max()) + size) if starts.size else (0, 0)
    if low < 0 or high > data.size:
        raise ValueError(f"bytes {low:#x}..{high:#x} leave a memory of {core.memory(space).capacity} bytes")
    return np.asarray(data[starts[..., None] + np.arange(size)])


# Copies and broadcasts

vector_family(
    "asc_copy", "vcopy", (DST, SRC), types_of("i16", "u16", "i32", "u32"), semantics=lambda source: source,
    values="bits", doc="Copy the elements that the vector mask selects.",
)  # fmt: skip

_BRCB_SHAPE = (
    Scalar("dst_block_stride", u16, doc="from block to block of dst within a repeat, in blocks"),
    Scalar("dst_repeat_stride", u16, doc="from repeat to repeat of dst, in blocks"),
    REPEAT,
)


def _brcb_extent(call: SimpleNamespace) -> dict[str, Bytes]:
    count, block, repeat = (int(getattr(call, o.name)) for o in (_BRCB_SHAPE[2], *_BRCB_SHAPE[:2]))
    nbytes = BLOCKS * call.src.dtype.size
    walk = ((count, repeat * BLOCK_BYTES), (BLOCKS, block * BLOCK_BYTES))
    return {"dst": Bytes(BLOCK_BYTES, walk), "src": Bytes(nbytes, ((count, nbytes),))}


@memory_instruction(
    "vbrcb", cpp="asc_brcb", aliases=("vbrcb",), asm=(), profiles=A2A3, pipe=Pipe.V, variants=_WORDS,
    operands=(DST, SRC, *_BRCB_SHAPE), extent=_brcb_extent, work=lambda call: int(call.repeat),
    rules=numbers_fit(_BRCB_SHAPE), sources=(f"{PAGES}asc_brcb",),
    assumed=("The vector mask and the mask mode have no part in it.", "src begins at a block, as elsewhere."),
    notes=("dst and src may not be the same memory.",),
)  # fmt: skip
def vbrcb(source: np.ndarray, *shape: int) -> np.ndarray:
    """Fill 8 blocks with 8 numbers: each repeat takes the next 8 elements of src, each of which fills a block of dst."""
    return source[..., None]


synchronous(vbrcb, "asc_brcb_sync", vbrcb.sources)


# Gathering by offset


class GatherInstruction(VectorInstruction):
    """Elements, or blocks, from offsets in bytes: as many bytes for each offset as its group of lanes has."""

    def touches(self, core: Core, args: Sequence[Any]) -> list[Touch]:
        """The bytes of dst and of the offsets, and those of src that the offsets name."""
        touched = super().touches(core, args)
        known = self.geometry(args)
        call, walk, lanes = known.call, known.layouts["src_offset"], known.lanes
        for first, number, active in self.repeats(known, core.state):
            start = call.src_offset.offset + first * walk.repeat
            nbytes = walk.elements(lanes) * walk.size
            place = Region(call.src_offset.space, start, nbytes, ((number, walk.repeat),), np.dtype("<u4"))
            starts = call.src.offset + core.view(place)[:, walk.chosen(active)].astype(np.int64)
            unit = walk.group * call.dst.dtype.size
            touched += scattered(self._index["src"], Mode.READ, call.src.space, starts, unit)
        return touched


def gathered(context: Context, offsets: np.ndarray) -> np.ndarray:
    """The elements at the offsets; those that take no part are whatever lies at the start."""
    call, active = context.call, context.active
    group = active.size // offsets.shape[-1]
    wanted = np.where(active.reshape(-1, group).any(1), offsets.astype(np.int64), 0)
    found = _taken(context.core, call.src.space, call.src.offset + wanted, group * call.dst.dtype.size)
    return found.view(call.dst.dtype.bits_dtype).reshape(*offsets.shape[:-1], -1)


_OFFSETS = In("src_offset", Sort.POINTER, u32, doc="bytes from src")
_GATHER_SHAPE = (Scalar("dst_repeat_stride", u16, doc="from repeat to repeat of dst, in blocks"), REPEAT)
_BLOCK_SHAPE = (
    _GATHER_SHAPE[0], Scalar("dst_block_stride", u8, doc="from block to block of dst within a repeat, in blocks"), REPEAT,
)  # fmt: skip
_BEYOND = ("An offset that leaves UB is an error: what a chip reads there is not defined.",)


def _offsets_of(bytes_of: int | None) -> Any:
    """The layout of offsets that stand for an element each (None), or for so many bytes."""

    def layouts(call: SimpleNamespace) -> dict[str, Layout]:
        size = call.dst.dtype.size
        unit = bytes_of or size
        return {"src_offset": Layout(4, repeat=4 * REGISTER_BYTES // unit, group=unit // size)}

    return layouts


def _gather(
    name: str, cpp: str, types: Sequence[Any], shape: Sequence[Operand], doc: str, **record: Any
) -> GatherInstruction:  # fmt: skip
    made = GatherInstruction(
        name, cpp=cpp, profiles=A2A3, operands=(DST, SRC, _OFFSETS, *shape), variants=types, semantics=gathered,
        contextual=True, values="bits", loose=("src",), doc=doc, sources=(f"{PAGES}{cpp}",), rules=numbers_fit(shape),
        notes=_BEYOND, **record,
    )  # fmt: skip
    REGISTRY.add(made)
    return made


vgather = _gather(
    "vgather", "asc_gather", _ONES, _GATHER_SHAPE, layouts=_offsets_of(None),
    doc="Gather elements: each active element of dst is the one of src at its offset in bytes.",
)  # fmt: skip
synchronous(
    counted(vgather, "asc_gather", lambda call: {"repeat": 1, "dst_repeat_stride": BLOCKS}, vgather.sources),
    "asc_gather_sync", vgather.sources,
)  # fmt: skip
vgatherb = _gather(
    "vgatherb", "asc_gather_datablock", _WORDS, _BLOCK_SHAPE, layouts=_offsets_of(BLOCK_BYTES), unmasked=True,
    doc="Gather blocks: each 32-byte block of dst is the one of src at its offset in bytes, eight a repeat.",
    assumed=("The vector mask has no part in it (the basic API's form has none).", "Blocks may begin anywhere in UB."),
)  # fmt: skip
synchronous(vgatherb, "asc_gather_datablock_sync", vgatherb.sources)


# Gathering by mask

_PATTERNS = {1: (2, 0), 2: (2, 1), 3: (4, 0), 4: (4, 1), 5: (4, 2), 6: (4, 3), 7: (1, 0)}
"""The fixed patterns: (every how many elements, the first)."""
_REDUCE_SHAPE = (
    Scalar("repeat", u16, doc="repeats"),
    Scalar("src0_block_stride", u8, doc="from block to block of src0 within a repeat, in blocks"),
    Scalar("pattern_mode", u8, doc="1 to 7: a fixed pattern; 0: the bits at src1"),
    Scalar("src0_repeat_stride", u16, doc="from repeat to repeat of src0, in blocks"),
    Scalar("src1_repeat_stride", u8, doc="from repeat to repeat of src1, in blocks"),
)


class MaskGatherInstruction(MemoryInstruction):
    """Elements that a mask selects, one after the other: ``vreducev2``."""

    def elements(self, core: Core, call: SimpleNamespace) -> int:
        """Elements of a repeat: 256 bytes, in counter mode the low word of the vector mask."""
        return core.state.mask[1] if core.state.counter_mode else REGISTER_BYTES // int(call.dst.dtype.size)

    def chosen(self, core: Core, call: SimpleNamespace) -> np.ndarray:
        """Which elements are taken: (repeats, elements)."""
        count, repeats = self.elements(core, call), int(call.repeat)
        if int(call.pattern_mode):
            every, first = _PATTERNS[int(call.pattern_mode)]
            return np.broadcast_to(np.arange(count) % every == first, (repeats, count))
        place = Region(call.src1.space, call.src1.offset, -(-count // 8), self._mask_walk(call), _BYTE)
        return np.unpackbits(core.view(place), axis=-1, bitorder="little")[:, :count].astype(bool)

    def _mask_walk(self, call: SimpleNamespace) -> tuple[tuple[int, int], ...]:
        return ((int(call.repeat), int(call.src1_repeat_stride) * BLOCK_BYTES),)

    def starts(self, core: Core, call: SimpleNamespace) -> np.ndarray:
        """Where the elements of src0 begin: (repeats, elements)."""
        per, size = BLOCK_BYTES // call.dst.dtype.size, int(call.dst.dtype.size)
        number = np.arange(self.elements(core, call), dtype=np.int64)
        within = number // per * int(call.src0_block_stride) * BLOCK_BYTES + number % per * size
        repeat = np.arange(int(call.repeat), dtype=np.int64)[:, None] * int(call.src0_repeat_stride) * BLOCK_BYTES
        return call.src0.offset + repeat + within

    def touches(self, core: Core, args: Sequence[Any]) -> list[Touch]:
        """All of src0, the bits of src1 if they are asked for, as much of dst as there is to write."""
        call = self.call(args)
        size, count, repeats = int(call.dst.dtype.size), self.elements(core, call), int(call.repeat)
        if not count or not repeats:
            return []
        whole, rest = divmod(count * size, BLOCK_BYTES)
        block, repeat = int(call.src0_block_stride) * BLOCK_BYTES, int(call.src0_repeat_stride) * BLOCK_BYTES
        read: list[tuple[int, int, tuple]] = [(0, BLOCK_BYTES, ((repeats, repeat), (whole, block)))] if whole else []
        read += [(whole * block, rest, ((repeats, repeat),))] if rest else []
        kept = int(np.count_nonzero(self.chosen(core, call)))
        touched = [Touch(0, Mode.WRITE, Region(call.dst.space, call.dst.offset, kept * size, (), _BYTE), 5)]
        for offset, length, dims in read:
            touched.append(
                Touch(1, Mode.READ, Region(call.src0.space, call.src0.offset + offset, length, dims, _BYTE), 5)
            )
        if not int(call.pattern_mode):
            bits = Region(call.src1.space, call.src1.offset, -(-count // 8), self._mask_walk(call), _BYTE)
            touched.append(Touch(2, Mode.READ, bits, 5))
        return touched

    def perform(self, core: Core, args: Sequence[Any], touches: list[Touch]) -> None:
        """Take the chosen elements and count them."""
        call = self.call(args)
        if not touches:
            core.state.kept = 0
            return
        taken = _taken(core, call.src0.space, self.starts(core, call)[self.chosen(core, call)], call.dst.dtype.size)
        core.view(touches[0].region)[...] = taken.reshape(-1)
        core.state.kept = len(taken)


vreducev2 = MaskGatherInstruction(
    "vreducev2", cpp="asc_reduce", aliases=("vreducev2",), asm=(), profiles=A2A3, pipe=Pipe.V, variants=_WORDS,
    operands=(DST, SRC0, In("src1", Sort.POINTER, "T", doc="bits for pattern 0, an element each"), *_REDUCE_SHAPE),
    extent=lambda *_: {}, semantics=lambda *_: None, stateful=True, work=lambda call: int(call.repeat),
    rules=(scalar_range("pattern_mode", 0, 7), *numbers_fit(_REDUCE_SHAPE)), sources=(f"{PAGES}asc_reduce",),
    doc="""Gather the elements that a mask selects, and write them one after the other.

    The mask is a pattern (1 and 2: the even, the odd elements; 3 to 6: the first to the fourth of four; 7: all) or, as
    pattern 0, the bits at src1. How many were taken is kept for ``get_rsvd_cnt``.""",
    notes=("The vector mask has no part in it; in counter mode a repeat has as many elements as its low word says.",),
    assumed=("src0 is read whole, whatever the mask.",),
)  # fmt: skip
REGISTRY.add(vreducev2)

_COUNTED_REDUCE = {
    "repeat": 1, "src0_block_stride": 1, "pattern_mode": 0, "src0_repeat_stride": BLOCKS, "src1_repeat_stride": BLOCKS,
}  # fmt: skip
synchronous(
    counted(vreducev2, "asc_reduce", lambda call: _COUNTED_REDUCE, vreducev2.sources, without=("pattern_mode",)),
    "asc_reduce_sync", vreducev2.sources,
)  # fmt: skip


@plain_instruction(
    "get_rsvd_cnt", cpp="get_rsvd_cnt", aliases=("asc_get_rsvd_count",), asm=(), profiles=A2A3, result="int64_t",
    level="system", sources=(f"{PAGES}asc_get_rsvd_count",),
)  # fmt: skip
def get_rsvd_cnt(core: Core, call: SimpleNamespace) -> int:
    """How many elements the last gather by mask took."""
    return core.state.kept


# Transposing


@memory_instruction(
    "vtranspose", cpp="asc_transpose", aliases=("vtranspose",), asm=(), profiles=CHIPS, pipe=Pipe.V,
    variants=types_of("i16", "u16"), operands=(DST, SRC),
    extent=lambda call: {"dst": Bytes(512), "src": Bytes(512)}, sources=(f"{PAGES}asc_transpose",),
)  # fmt: skip
def vtranspose(source: np.ndarray) -> np.ndarray:
    """Transpose a matrix of 16 by 16 elements of 16 bits."""
    return np.swapaxes(source.reshape(*source.shape[:-1], 16, 16), -1, -2).reshape(source.shape)


synchronous(vtranspose, "asc_transpose_sync", vtranspose.sources)


class SetAddresses(MemoryInstruction):
    """Eight addresses into an address register."""

    def perform(self, core: Core, args: Sequence[Any], touches: list[Touch]) -> None:
        """Keep them."""
        registers = list(core.state.addresses)
        registers[int(args[0])] = tuple(pointer.offset for pointer in args[1:])
        core.state.addresses = tuple(registers)


set_va_reg = SetAddresses(
    "set_va_reg_sb", cpp="asc_set_va_reg", asm=(), profiles=CHIPS, pipe=Pipe.V,
    variants=types_of("i8", "u8", "i16", "u16", "f16", "i32", "u32", "f32"),
    operands=(
        Choice("addr", VectorAddress, doc="the address register, VA0 to VA7"),
        *(In(f"src{n}", Sort.POINTER, "T", element=("src_array", n), doc=f"block {n}") for n in range(8)),
    ),
    extent=lambda call: {}, semantics=lambda *_: None, rules=(scalar_range("addr", 0, 7),),
    doc="Load an address register with the addresses of eight blocks, for the transposing conversions.",
    notes=("C++ takes an array of eight addresses.",), sources=(f"{PAGES}asc_set_va_reg",),
)  # fmt: skip
REGISTRY.add(set_va_reg)


class Conversion5HD(MemoryInstruction):
    """Sixteen blocks, named by two address registers, transposed into sixteen others: ``scatter_vnchwconv``."""

    def __init__(self, size: int, **record: Any) -> None:
        super().__init__(f"scatter_vnchwconv_b{8 * size}", variants=({},), extent=lambda call: {}, **record)
        self.is_static = False
        self.size = size

    def touches(self, core: Core, args: Sequence[Any]) -> list[Touch]:
        """Sixteen blocks of each operand, repeat after repeat; of bytes, halves of blocks of dst."""
        call = self.call(args)
        touched = []
        for number, name in enumerate(("dst", "src")):
            repeats, stride = int(call.repeat), int(getattr(call, f"{name}_stride")) * BLOCK_BYTES
            register = int(getattr(call, name))
            length = BLOCK_BYTES // 2 if self.size == 1 else BLOCK_BYTES
            half = length if self.size == 1 and int(getattr(call, f"{name}_high_half")) else 0
            shift = stride if repeats == 1 else 0
            for at in core.state.addresses[register] + core.state.addresses[(register + 1) % 8]:
                place = Region(Space.UB, at + half + shift, length, ((repeats, stride),), np.dtype(f"u{self.size}"))
                align = 4 if half else 5
                touched.append(Touch(number, Mode.READ if number else Mode.WRITE, place, align))
        return touched if int(call.repeat) else []

    def perform(self, core: Core, args: Sequence[Any], touches: list[Touch]) -> None:
        """Repeat by repeat: element i of all sixteen source blocks becomes one block, or two, or half of one."""
        if not touches:
            return
        targets, sources = [core.view(t.region) for t in touches[:16]], [core.view(t.region) for t in touches[16:]]
        for repeat in range(int(args[2])):
            columns = np.stack([source[repeat] for source in sources]).T.copy()
            for target, elements in zip(targets, columns.reshape(16, -1), strict=True):
                target[repeat] = elements


def _conversion(size: int) -> None:
    cpp, builtin = f"asc_transto5hd_b{8 * size}", f"scatter_vnchwconv_b{8 * size}"
    halves = (
        Scalar("dst_high_half", u8, doc="whether the upper half of each block of dst is written"),
        Scalar("src_high_half", u8, doc="whether the upper half of each block of src is read"),
    )
    shape = (
        REPEAT,
        Scalar("dst_stride", u16, doc="from repeat to repeat of dst, in blocks"),
        Scalar("src_stride", u16, doc="from repeat to repeat of src, in blocks"),
    )
    made = Conversion5HD(
        size, cpp=cpp, aliases=(builtin,), asm=(), profiles=CHIPS, pipe=Pipe.V, semantics=lambda *_: None,
        operands=(
            Choice("dst", VectorAddress, doc="the first of two address registers with the blocks to write"),
            Choice("src", VectorAddress, doc="the first of two address registers with the blocks to read"),
            *shape, *(halves if size == 1 else ()),
        ),
        work=lambda call: int(call.repeat), rules=numbers_fit(shape),
        doc=f"""Transpose sixteen blocks of {8 * size}-bit elements, wherever they lie.

        Element i of the sixteen source blocks, in the order of their addresses, becomes {_WRITTEN[size]} i of the
        destination.""",
        notes=("With one repeat both strides are added to the addresses already; give 0 for the blocks themselves.",),
        sources=(f"{PAGES}asc_transto5hd",),
    )  # fmt: skip
    REGISTRY.add(made)
    synchronous(made, f"{cpp}_sync", made.sources)


_WRITTEN = {1: "half of block", 2: "block", 4: "pair of blocks"}
for _size in _WRITTEN:
    _conversion(_size)
