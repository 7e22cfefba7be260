"""Loads and stores whose parts lie apart: gather and scatter by an index register, blocks at a stride.

In the trace each part that takes part is an access of its own; parts that follow one another are one.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ascsim.isa.definition import (
    Asm,
    In,
    LaneMask,
    Load,
    Out,
    Parts,
    Scalar,
    Sort,
    Store,
    register_instruction,
    types_of,
)  # fmt: skip
from ascsim.isa.register_form.memory import B8, B16, B32, B64
from ascsim.isa.semantics.distribute import store_even, store_norm
from ascsim.machine.dtypes import DTYPES, DType, u16, u32
from ascsim.machine.operands import REGISTER_BYTES

BLOCK_BYTES = 32
BLOCKS = REGISTER_BYTES // BLOCK_BYTES

Types = dict[str, DType]

_TRACED_BYTES = (
    "An element or block that the mask leaves out is not touched and may lie anywhere; a load has zeros in its place."
)


# By an index register


def gathered(memory: np.ndarray, active: np.ndarray, size: int) -> np.ndarray:
    """The gathered elements, each at the lower end of as much as an index takes; seen as lanes of ``size`` bytes."""
    wider = REGISTER_BYTES // memory.size // memory.itemsize
    lanes = np.zeros((memory.size, wider), memory.dtype)
    lanes[:, 0] = memory
    return lanes.reshape(-1).view(f"u{size}")


def _gather_types() -> list[Types]:
    """Result, source, index. Bytes become 16-bit lanes."""
    bytes_ = {"i8": "i16", "u8": "u16", "hif8": "hif8", "f8e8m0": "f8e8m0", "f8e5m2": "f8e5m2", "f8e4m3": "f8e4m3"}
    found = [{"T": DTYPES[result], "S": DTYPES[source], "I": u16} for source, result in bytes_.items()]
    found += [{"T": DTYPES[t], "S": DTYPES[t], "I": u32 if t in B32 else u16} for t in (*B16, *B32)]
    return found + [{"T": DTYPES[t], "S": DTYPES[t], "I": u32} for t in B16]


def _gather_access(types: Types) -> Load:
    element, lane = types["S"].size, types["I"].size
    count = REGISTER_BYTES // lane
    parts = Parts(element, count, element, index="index", lane=lane, mask="mask", span=lane)
    return Load("src", element * count, BLOCK_BYTES, parts=parts)


register_instruction(
    "vgather2", cpp="asc_gather", variants=_gather_types(), memory=_gather_access, native="moves",
    extra=lambda types: (types["T"].size,),
    operands=(
        Out("dst", Sort.VREG, "T"), In("src", Sort.POINTER, "S"),
        In("index", Sort.VREG, "I", doc="how far from src each element lies, in elements"), LaneMask(of="I"),
    ),
    asm=(Asm("vgather2", (), ("src", "index", "mask")), Asm("vgather2_bc", (), ("src", "index", "mask"), (2,))),
    doc="Load an element of UB into each active lane, from where the lane's index says; other lanes become zero.",
    notes=(
        _TRACED_BYTES,
        "A byte fills the lower half of a 16-bit lane, the upper half is 0 (signed bytes too).",
        "16-bit elements with 32-bit indices are 64, each in the lower half of a 32-bit lane: store them packed.",
    ),
    assumed=(
        "The mask has a lane for each index. With 32-bit indices the upper halves are 0; PTO's library packs the lower "
        "ones, and nothing says what the upper ones are.",
    ),
    sources=("asc-devkit C-API reg/reg_load/asc_gather", "pto-isa docs/isa vgather2, vgather2-bc; npu/a5/TGather.hpp"),
)(gathered)  # fmt: skip


def _scatter_access(types: Types) -> Store:
    element, lane = types["T"].size, types["I"].size
    count = REGISTER_BYTES // lane
    parts = Parts(element, count, element, index="index", lane=lane, mask="mask", span=lane)
    return Store("dst", element * count, BLOCK_BYTES, parts=parts)


_SCATTER: dict[str, Any] = {
    "memory": _scatter_access, "native": "moves", "cpp": "asc_scatter",
    "operands": (
        Out("dst", Sort.POINTER, "T"), In("src", Sort.VREG, "T"),
        In("index", Sort.VREG, "I", doc="how far from dst each element goes, in elements"), LaneMask(),
    ),
    "cpp_others": (("src", "dst", "index", "mask"),),
    "asm": (Asm("vscatter", (), ("src", "dst", "index", "mask")),),
    "notes": (
        _TRACED_BYTES,
        "Indices must differ: the C API's page leaves open which of two elements stays. PTO's page has that of the "
        "lowest lane stay on the A5, which is what is done here.",
        "Older programs pass src before dst.",
    ),
    "sources": ("asc-devkit C-API reg/reg_store/asc_scatter, asc_scatter_deprecated", "pto-isa docs/isa vscatter"),
}  # fmt: skip

register_instruction(
    "vscatter", variants=[{"T": DTYPES[t], "I": u32 if t in B32 else u16} for t in (*B16, *B32)],
    doc="Store each active lane to where its index says.", **_SCATTER,
)(store_norm)  # fmt: skip
register_instruction(
    "vscatter_b8", variants=[{"T": DTYPES[t], "I": u16} for t in ("i8", "u8")],
    doc="Store every other active lane, from lane 0 on, to where its index says: lane 2i has index i.", **_SCATTER,
)(store_even)  # fmt: skip


# Blocks of 32 bytes


def blocks(memory: np.ndarray, *rest: np.ndarray) -> np.ndarray:
    """The blocks as they come: what was left out is zero already."""
    return memory.copy()


def _blocks_by_index(masked: bool) -> Load:
    """A mask is one of 32-bit lanes: its first eight lanes stand for the blocks."""
    mask: dict[str, Any] = {"mask": "mask", "span": 4} if masked else {}
    parts = Parts(BLOCK_BYTES, BLOCKS, 1, index="index", lane=4, align=BLOCK_BYTES, **mask)
    return Load("src", REGISTER_BYTES, BLOCK_BYTES, parts=parts)


_GATHERED_BLOCKS: dict[str, Any] = {
    "cpp": "asc_gather_datablock", "native": "moves",
    "variants": [{"T": DTYPES[t], "I": u32} for t in (*B8, *B16, *B32, *B64)],
    "sources": (
        "asc-devkit C-API reg/reg_load/asc_gather_datablock", "asc-devkit basic API Reg GatherB",
        "pto-isa docs/isa vgatherb",
    ),
}  # fmt: skip
_BLOCK_OPERANDS = (
    Out("dst", Sort.VREG, "T"), In("src", Sort.POINTER, "T"),
    In("index", Sort.VREG, "I", doc="how far from src each block lies, in bytes: the first eight lanes"),
)  # fmt: skip

register_instruction(
    "vgatherb", operands=(*_BLOCK_OPERANDS, LaneMask(of="I")), memory=lambda types: _blocks_by_index(masked=True),
    asm=(Asm("vgatherb", (), ("src", "index", "mask")),),
    doc="Load eight blocks of 32 bytes from where the first eight indices say, if the mask has them.",
    notes=(
        _TRACED_BYTES,
        "The mask is read as one of 32-bit lanes, of which the first eight stand for the blocks (the page of GatherB), "
        "though the C API's example makes it for lanes of the data.",
    ),
    **_GATHERED_BLOCKS,
)(blocks)  # fmt: skip
register_instruction(
    "vgatherb_all", operands=_BLOCK_OPERANDS, memory=lambda types: _blocks_by_index(masked=False),
    asm=(Asm("vgatherb", (), ("src", "index")),),
    doc="Load eight blocks of 32 bytes from where the first eight indices say.", **_GATHERED_BLOCKS,
)(blocks)  # fmt: skip


def _strided(types: Types) -> Parts:
    size = types["T"].size
    return Parts(
        BLOCK_BYTES, BLOCKS, BLOCK_BYTES, stride="block_stride", mask="mask", span=BLOCK_BYTES, step=size,
        asked=BLOCK_BYTES // size, align=BLOCK_BYTES,
    )  # fmt: skip


_STRIDES = (
    Scalar("block_stride", u16, doc="from the beginning of one block to that of the next, in blocks of 32 bytes"),
    Scalar("repeat_stride", u16, doc="how far on, in blocks of 32 bytes"),
)
_STRIDE_SOURCES = (
    "asc-devkit C-API reg/reg_load/asc_loadalign_v5_deprecated, reg/reg_store/asc_storealign_v5_deprecated",
    "asc-devkit basic API Reg LoadAlign, StoreAlign (blocks)", "pto-isa docs/isa vsldb, vsstb",
)  # fmt: skip
_STRIDE_TYPES = ("i8", "u8", "f8e8m0", "f8e5m2", "f8e4m3", "hif8", *B16, *B32)

for _post in (False, True):
    _end, _moves = ("_postupdate", " Then the pointer moves on by repeat_stride.") if _post else (
        "", " The first block lies repeat_stride blocks after the pointer.")  # fmt: skip
    register_instruction(
        f"vsldb{'_post' if _post else ''}", cpp=f"asc_loadalign{_end}", native="moves", post_update=_post,
        variants=types_of(*_STRIDE_TYPES, "f4e2m1x2", "f4e1m2x2", "i4x2", "i64"),
        memory=lambda types: Load("src", REGISTER_BYTES, BLOCK_BYTES, "repeat_stride", BLOCK_BYTES, _strided(types)),
        operands=(Out("dst", Sort.VREG, "T"), In("src", Sort.POINTER, "T"), *_STRIDES, LaneMask()), asm=(),
        doc="Load eight blocks of 32 bytes at a stride. A block with any active lane is loaded whole, another is zero."
        + _moves,
        notes=(_TRACED_BYTES,), sources=_STRIDE_SOURCES,
    )(blocks)  # fmt: skip
    register_instruction(
        f"vsstb{'_post' if _post else ''}", cpp=f"asc_storealign{_end}", native="moves", post_update=_post,
        variants=types_of(*_STRIDE_TYPES),
        memory=lambda types: Store("dst", REGISTER_BYTES, BLOCK_BYTES, "repeat_stride", BLOCK_BYTES, _strided(types)),
        operands=(Out("dst", Sort.POINTER, "T"), In("src", Sort.VREG, "T"), *_STRIDES, LaneMask()), asm=(),
        doc="Store eight blocks of 32 bytes at a stride: the active lanes, each in its place." + _moves,
        notes=(_TRACED_BYTES,), assumed=("A block of which some lanes are active is stored in those lanes only.",),
        sources=_STRIDE_SOURCES,
    )(store_norm)  # fmt: skip
