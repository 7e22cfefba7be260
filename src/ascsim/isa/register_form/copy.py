"""Copies between registers, and elements of a register by index: what asc_copy and asc_gather are on registers."""

from __future__ import annotations

import numpy as np

from ascsim.isa.definition import Asm, In, InOut, LaneMask, Out, Scalar, Sort, register_instruction, types_of
from ascsim.isa.register_form.memory import B16, B32
from ascsim.machine.dtypes import DTYPES, i16, u8, u16, u32
from ascsim.machine.operands import REGISTER_BYTES

_PAGE = "asc-devkit C-API reg/reg_load/asc_copy"

register_instruction(
    "vmov", cpp="asc_copy", variants=types_of("i8", "u8", *B16, *B32), masking="merge", asm=(),
    operands=(InOut("dst", Sort.VREG, "T", doc="inactive lanes stay"), In("src", Sort.VREG, "T"), LaneMask()),
    doc="Copy the active lanes; the others keep what they held.", sources=(_PAGE,),
)(lambda src: src.copy())  # fmt: skip


def copied(src: np.ndarray) -> np.ndarray:
    """All of it."""
    return src.copy()


def kept(src: np.ndarray, mask: np.ndarray) -> np.ndarray:
    """What the mask has."""
    return src & mask


register_instruction(
    "pmov", cpp="asc_copy", operands=(Out("dst", Sort.MREG), In("src", Sort.MREG)), native="moves", asm=(),
    doc="Copy a mask register, all 256 bits.", sources=(_PAGE,),
)(copied)  # fmt: skip
register_instruction(
    "pmov_masked", cpp="asc_copy", operands=(Out("dst", Sort.MREG), In("src", Sort.MREG), In("mask", Sort.MREG)), asm=(),
    doc="Copy the bits of a mask register that another has; the others become 0.",
    assumed=("Bits are taken one by one; the page speaks of one bit a lane, and lanes look at no other.",),
    sources=(_PAGE,),
)(kept)  # fmt: skip


def widened(src: np.ndarray, part: np.ndarray) -> np.ndarray:
    """The bits of one part of a register, each as often as a lane has bytes, as a mask register."""
    bits = 8 * src.itemsize
    entry = np.arange(REGISTER_BYTES) // src.itemsize  # the bit that each entry of the mask is
    lane = part.astype(np.int64) * (REGISTER_BYTES // src.itemsize // bits) + entry // bits
    words = src[lane & (src.size - 1)]
    return ((words >> (entry % bits).astype(src.dtype)) & src.dtype.type(1)).astype(np.uint8)


register_instruction(
    "movvp", cpp="asc_copy", variants=types_of("u16", "u32"), asm=(),
    operands=(
        Out("dst", Sort.MREG), In("src", Sort.VREG, "T"),
        Scalar("part", i16, doc="which part: 0 to 15 of 16 bytes (16-bit lanes), 0 to 31 of 8 bytes (32-bit lanes)"),
    ),
    doc="Make a mask of the bits of one part of a register: a bit becomes 2 (16-bit lanes) or 4 (32-bit lanes).",
    assumed=("Of a part beyond the last the number is taken modulo their count.",), sources=(_PAGE,),
)(widened)  # fmt: skip


def selected(src: np.ndarray, index: np.ndarray) -> np.ndarray:
    """The lane of each index, modulo the number of lanes."""
    return src[index.astype(np.int64) & (src.size - 1)]


_INDEX = {1: u8, 2: u16, 4: u32}
register_instruction(
    "vselr", cpp="asc_gather", asm=(Asm("vselr", (), ("src", "index")),),
    variants=[
        {"T": DTYPES[t], "I": _INDEX[DTYPES[t].size]}
        for t in ("i8", "u8", "hif8", "f8e8m0", "f8e5m2", "f8e4m3", *B16, "i32", "u32")
    ],
    operands=(Out("dst", Sort.VREG, "T"), In("src", Sort.VREG, "T"), In("index", Sort.VREG, "I")),
    doc="Take the lane of src that each lane's index names, modulo the number of lanes.",
    sources=("asc-devkit C-API reg/reg_load/asc_gather", "pto-isa docs/isa vselr"),
)(selected)  # fmt: skip
