"""The vector mask, and the fill that it governs: ``set_mask_norm``, ``set_vector_mask``, ``vector_dup``.

Sources: asc-devkit C-API vector_compute/asc_set_vector_mask, asc_set_mask_norm, asc_set_mask_count, asc_duplicate, and
the section on masks of the C-API's common constraints.
"""

from __future__ import annotations

from collections.abc import Iterator
from types import SimpleNamespace

import numpy as np

from ascsim.isa.definition import (
    A2A3,
    CHIPS,
    Bytes,
    Out,
    Scalar,
    Sort,
    memory_instruction,
    plain_instruction,
    types_of,
)  # fmt: skip
from ascsim.isa.rules import scalar_range
from ascsim.machine.core import Core, CoreState
from ascsim.machine.dtypes import i64, u8, u16, u64
from ascsim.machine.operands import REGISTER_BYTES
from ascsim.machine.words import Pipe

_BLOCK_BYTES = 32
_WORD = (1 << 64) - 1


@plain_instruction(
    "set_mask_norm", cpp="set_mask_norm", aliases=("asc_set_mask_norm",), profiles=CHIPS,
    sources=("asc-devkit C-API vector_compute/asc_set_mask_norm",),
)  # fmt: skip
def set_mask_norm(core: Core, call: SimpleNamespace) -> None:
    """Let the vector mask say, bit by bit, which elements of each repeat take part (the mode a core starts in)."""
    core.state.counter_mode = False


@plain_instruction(
    "set_mask_count", cpp="set_mask_count", aliases=("asc_set_mask_count",), profiles=A2A3,
    sources=("asc-devkit C-API vector_compute/asc_set_mask_count",),
)  # fmt: skip
def set_mask_count(core: Core, call: SimpleNamespace) -> None:
    """Let the low word of the vector mask say how many elements a whole call works on; repeat counts are ignored."""
    core.state.counter_mode = True


@plain_instruction(
    "set_vector_mask", cpp="set_vector_mask", aliases=("asc_set_vector_mask",), profiles=CHIPS,
    operands=(
        Scalar("mask1", u64, doc="elements 64 to 127 of a repeat (16-bit types only)"),
        Scalar("mask0", u64, doc="elements 0 to 63 of a repeat; in counter mode the number of elements"),
    ),
    sources=("asc-devkit C-API vector_compute/asc_set_vector_mask",),
)  # fmt: skip
def set_vector_mask(core: Core, call: SimpleNamespace) -> None:
    """Set the vector mask of memory-form vector instructions; -1 is all ones."""
    core.state.mask = (int(call.mask1) & _WORD, int(call.mask0) & _WORD)


def masked_repeats(state: CoreState, repeats: int, size: int) -> Iterator[tuple[int, int, np.ndarray]]:
    """(first repeat, how many, uint8 lanes that take part) for a call on elements of ``size`` bytes."""
    lanes = REGISTER_BYTES // size
    high, low = state.mask
    if state.counter_mode:
        whole, rest = divmod(low, lanes)
        if whole:
            yield 0, whole, np.ones(lanes, np.uint8)
        if rest:
            yield whole, 1, (np.arange(lanes) < rest).astype(np.uint8)
    elif repeats:
        bits = np.unpackbits(np.array([low, high], "<u8").view(np.uint8), bitorder="little")
        yield 0, repeats, bits[:lanes]


def masked_bytes(state: CoreState, repeats: int, size: int, block_stride: int, repeat_stride: int) -> list[Bytes]:
    """The bytes of an operand that a masked call works on; strides in 32-byte blocks."""
    found = []
    for first, count, lanes in masked_repeats(state, repeats, size):
        chosen = np.repeat(lanes, size)
        pieces = [(0, chosen)] if block_stride == 1 else list(enumerate(chosen.reshape(-1, _BLOCK_BYTES)))
        for number, piece in pieces:
            where = np.flatnonzero(piece)
            if not where.size:
                continue
            start, end = int(where[0]), int(where[-1]) + 1
            mask = None
            if where.size < end - start:
                mask = np.zeros(REGISTER_BYTES, np.uint8)
                mask[: end - start] = piece[start:end]
            offset = start + (number * block_stride + first * repeat_stride) * _BLOCK_BYTES
            dims = ((count, repeat_stride * _BLOCK_BYTES),) if count > 1 else ()
            found.append(Bytes(end - start, dims, offset=offset, mask=mask))
    return found


def _extent(call: SimpleNamespace, state: CoreState) -> dict[str, list[Bytes]]:
    strides = int(call.dst_block_stride), int(call.dst_repeat_stride)
    return {"dst": masked_bytes(state, int(call.repeat), call.dst.dtype.size, *strides)}


@memory_instruction(
    "vector_dup", cpp="vector_dup", asm=(), profiles=A2A3, pipe=Pipe.V, stateful=True,
    variants=types_of("f16", "bf16", "i16", "u16", "f32", "i32", "u32"),
    operands=(
        Out("dst", Sort.POINTER, "T"),
        Scalar("src", "T", doc="the value"),
        Scalar("repeat", u8, doc="repeats of 256 bytes; ignored in counter mode"),
        Scalar("dst_block_stride", u16, doc="from one 32-byte block of a repeat to the next, in blocks"),
        Scalar("src_block_stride", u16, doc="has no effect"),
        Scalar("dst_repeat_stride", u16, doc="from one repeat to the next, in blocks"),
        Scalar("src_repeat_stride", i64, doc="has no effect"),
    ),
    extent=_extent, work=lambda call: int(call.repeat), rules=(scalar_range("repeat", 0, 255),),
    notes=("Elements that the mask leaves out keep what they held.",),
    sources=("asc-devkit C-API vector_compute/asc_duplicate", "pto-isa include/pto/npu/a2a3/TSort32.hpp"),
)  # fmt: skip
def vector_dup(call: SimpleNamespace, state: CoreState) -> np.ndarray:
    """Write a value to the elements of each repeat that the vector mask selects."""
    kind = call.dst.dtype
    return np.array(call.src, kind.numpy).view(kind.bits_dtype)
