"""Making masks: from a pattern (``pset``), from a count of elements (``plt``), from the core's vector mask."""

from __future__ import annotations

import numpy as np

from ascsim.isa.definition import Asm, Choice, InOut, Operand, Out, Role, Sort, State, register_instruction
from ascsim.isa.register_form.words import Pattern, member
from ascsim.isa.semantics.masks import pattern_mask
from ascsim.machine.dtypes import DTYPES, u32
from ascsim.machine.operands import REGISTER_BYTES
from ascsim.machine.words import Kept

_UNUSED_BITS = "The bits that 16- and 32-bit lanes do not look at are 0; no source says what they are."


def next_mask(count: np.ndarray, lanes: int) -> tuple[np.ndarray, np.ndarray]:
    """The first ``count`` of so many lanes (bool), and the count that is left; ``count`` is an array of one."""
    return np.arange(lanes) < count, np.maximum(count.astype(np.int64) - lanes, 0)


for _bits in (8, 16, 32):
    register_instruction(
        f"pset_b{_bits}", cpp=f"asc_create_mask_b{_bits}", aliases=(f"pset_b{_bits}",), returns="mask",
        operands=(Out("mask", Sort.MREG), Choice("pattern", Pattern, doc="which lanes are set")),
        cpp_order=("pattern",), rules=(member("pattern", Pattern),), native="table",
        extra=lambda types, size=_bits // 8: (size,),
        doc=f"""Make the mask of a pattern for {_bits}-bit lanes.

        PAT_ALL sets all lanes, PAT_ALLF none, PAT_VLn the first n (at most all), PAT_H and PAT_Q the lower half and
        quarter, PAT_M3 and PAT_M4 the lanes whose numbers are multiples of 3 and 4.
        """,
        notes=(
            "PTO's pages put PAT_H and PAT_Q at the upper end, and give a b8, b16, b32 mask 8, 16, 32 lanes. This is "
            "what the C API's page and header say.",
        ),
        assumed=(
            _UNUSED_BITS,
            f"PAT_VLn with n above {REGISTER_BYTES * 8 // _bits} sets all lanes; PTO calls it illegal.",
        ),
        sources=("asc-devkit C-API reg/reg_data_types/asc_create_mask", f"pto-isa docs/isa pset-b{_bits}"),
    )(pattern_mask)  # fmt: skip
    register_instruction(
        f"plt_b{_bits}", cpp=f"asc_update_mask_b{_bits}", returns="mask", cpp_order=("value",),
        asm=(Asm(f"plt_b{_bits}"), Asm(f"plt_b{_bits}", (("post_update", ""),))),
        operands=(
            Operand("mask", Role.OUT, Sort.MREG, lane_mask="T"),
            InOut("value", Sort.SCALAR, u32, doc="how many elements there are still; falls by a register's worth"),
        ),
        variants=({"T": DTYPES[f"u{_bits}"]},), native="loops",
        extra=lambda types: (REGISTER_BYTES // types["T"].size,),
        doc=f"""Make the mask of the first ``value`` {_bits}-bit lanes, at most all, and take those off ``value``.

        In a loop it masks the last, partial register. ``value`` never falls below 0.
        """,
        assumed=(_UNUSED_BITS,),
        sources=("asc-devkit C-API reg/reg_data_types/asc_update_mask", f"pto-isa docs/isa plt-b{_bits}"),
    )(next_mask)  # fmt: skip


def spread(low: np.ndarray, high: np.ndarray, copies: int) -> np.ndarray:
    """The bits of two words, each so often, as a mask register."""
    lane = np.arange(REGISTER_BYTES) // copies
    by = (lane % 64).astype(np.uint64)
    return np.where(lane < 64, low >> by, high >> by) & np.uint64(1)


for _bits in (16, 32):
    register_instruction(
        f"movp_b{_bits}", cpp=f"asc_get_mask_spr_b{_bits}", aliases=(f"movp_b{_bits}",), returns="mask", asm=(),
        operands=(Out("mask", Sort.MREG), State(Kept.MASK_LOW, Role.IN), State(Kept.MASK_HIGH, Role.IN)),
        cpp_order=(), extra=lambda types, copies=_bits // 8: (copies,),
        doc=f"""The core's vector mask as a mask for {_bits}-bit lanes: each of its {REGISTER_BYTES * 8 // _bits} bits
        {_bits // 8} times.""",
        sources=("asc-devkit C-API reg/reg_data_types/asc_get_mask_spr",),
    )(spread)  # fmt: skip
