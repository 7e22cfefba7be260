"""Interleave and deinterleave: vector registers in 13 types, mask registers in three lane widths."""

from __future__ import annotations

from ascsim.isa.definition import In, Out, Sort, register_instruction, types_of
from ascsim.isa.rules import different_registers
from ascsim.isa.semantics.rearrange import deinterleave, deinterleave_mask, interleave, interleave_mask

LANES_8_16_32 = types_of(
    "i8", "u8", "hif8", "f8e8m0", "f8e5m2", "f8e4m3", "i16", "u16", "f16", "bf16", "i32", "u32", "f32"
)
_VECTORS = (
    Out("dst0", Sort.VREG, "T"), Out("dst1", Sort.VREG, "T"), In("src0", Sort.VREG, "T"), In("src1", Sort.VREG, "T"),
)  # fmt: skip
_MASKS = (Out("dst0", Sort.MREG), Out("dst1", Sort.MREG), In("src0", Sort.MREG), In("src1", Sort.MREG))
_RULES = (different_registers("dst0", "dst1"),)

register_instruction(
    "vintlv", cpp="asc_intlv", operands=_VECTORS, variants=LANES_8_16_32, rules=_RULES, native="moves",
    doc="Weave two registers lane by lane; dst0 gets the first half of the result, dst1 the second.",
    sources=("asc-devkit C-API reg/data_rearrange/asc_intlv", "pto-isa docs/isa vintlv"),
)(interleave)  # fmt: skip
register_instruction(
    "vdintlv", cpp="asc_deintlv", operands=_VECTORS, variants=LANES_8_16_32, rules=_RULES, native="moves",
    doc="Take two registers apart: the even lanes of src0 followed by src1 to dst0, the odd lanes to dst1.",
    sources=("asc-devkit C-API reg/data_rearrange/asc_deintlv", "pto-isa docs/isa vdintlv"),
)(deinterleave)  # fmt: skip

for _bits in (8, 16, 32):
    _group = f"groups of {_bits // 8} {'bits' if _bits > 8 else 'bit'}, each the mask of one {_bits}-bit lane"
    register_instruction(
        f"pintlv_b{_bits}", cpp=f"asc_intlv_b{_bits}", operands=_MASKS, rules=_RULES, native="moves",
        extra=lambda types, group=_bits // 8: (group,),
        doc=f"Weave two mask registers in {_group}; dst0 gets the first half of the result, dst1 the second.",
        sources=("asc-devkit C-API reg/data_rearrange/asc_intlv", f"pto-isa docs/isa pintlv-b{_bits}"),
    )(interleave_mask)  # fmt: skip
    register_instruction(
        f"pdintlv_b{_bits}", cpp=f"asc_deintlv_b{_bits}", operands=_MASKS, rules=_RULES, native="moves",
        extra=lambda types, group=_bits // 8: (group,),
        doc=f"Take two mask registers apart in {_group}: the even ones of src0 and src1 to dst0, the odd to dst1.",
        sources=("asc-devkit C-API reg/data_rearrange/asc_deintlv", f"pto-isa docs/isa pdintlv-b{_bits}"),
    )(deinterleave_mask)  # fmt: skip
