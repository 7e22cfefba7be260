"""Lane-wise tile arithmetic: TADD and TADDS."""

from __future__ import annotations

from ascsim.isa.definition import In, Out, Scalar, Sort, tile_instruction
from ascsim.isa.rules import dtype, in_space, same_dtype, same_valid_shape
from ascsim.machine.dtypes import bf16, f16, f32, i8, i16, i32, u8, u16, u32
from ascsim.machine.words import Pipe, Space

_ADD_TYPES = {"a2a3": (f32, f16, i32, i16), "a5": (f32, f16, bf16, i32, u32, i16, u16, i8, u8), "cpu": (f32, f16, bf16, i32, u32, i16, u16, i8, u8)}


@tile_instruction("tadd", pipe=Pipe.V)
class TAdd:
    """Add two tiles lane by lane."""

    operands = (Out("dst"), In("src0"), In("src1"))
    values = "widen"
    over = "dst"
    rules = (
        dtype("dst", **_ADD_TYPES),
        same_dtype("dst", "src0", "src1"),
        in_space(Space.UB, "dst", "src0", "src1"),
        same_valid_shape("dst", "src0", "src1"),
    )
    semantics = staticmethod(lambda a, b: a + b)
