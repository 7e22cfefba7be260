"""Interleave and deinterleave: vector registers in 13 types, mask registers in three lane widths.

Sources: asc-devkit C-API pages asc_intlv and asc_deintlv (reg/data_rearrange).
"""

from __future__ import annotations

from ascsim.isa.definition import In, Out, Sort, register_instruction, types_of
from ascsim.isa.rules import different_registers
from ascsim.isa.semantics.rearrange import deinterleave, interleave

LANES_8_16_32 = types_of(
    "i8", "u8", "hif8", "f8e8m0", "f8e5m2", "f8e4m3", "i16", "u16", "f16", "bf16", "i32", "u32", "f32"
)
_VECTORS = (
    Out("dst0", Sort.VREG, "T"), Out("dst1", Sort.VREG, "T"), In("src0", Sort.VREG, "T"), In("src1", Sort.VREG, "T"),
)  # fmt: skip
_RECORD = {"operands": _VECTORS, "variants": LANES_8_16_32, "rules": (different_registers("dst0", "dst1"),)}

register_instruction(
    "vintlv", cpp="asc_intlv",
    doc="Weave two registers lane by lane; dst0 gets the first half of the result, dst1 the second.", **_RECORD,
)(interleave)  # fmt: skip
register_instruction(
    "vdintlv", cpp="asc_deintlv",
    doc="Take two registers apart: the even lanes of src0 followed by src1 to dst0, the odd lanes to dst1.", **_RECORD,
)(deinterleave)  # fmt: skip
