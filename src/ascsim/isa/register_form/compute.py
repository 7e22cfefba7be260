"""Filling, comparison, selection and reduction of registers, under a lane mask.

Sources: asc-devkit C-API reg/data_fill, index_operate, compare_and_select, reduce_compute.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from ascsim.isa.definition import Asm, In, LaneMask, Operand, Out, Role, Scalar, Sort, register_instruction, types_of
from ascsim.isa.semantics import arithmetic, order, reduce
from ascsim.machine.dtypes import DTYPES, DType
from ascsim.machine.operands import REGISTER_BYTES

_ARITHMETIC = types_of("u8", "i8", "u16", "i16", "f16", "bf16", "u32", "i32", "f32")
_DST, _SRC, _MASK = Out("dst", Sort.VREG, "T"), In("src", Sort.VREG, "T"), LaneMask()
_TWO = (In("src0", Sort.VREG, "T"), In("src1", Sort.VREG, "T"))
_ZEROED = "Inactive lanes of dst become 0 (the C API's page); PTO's page leaves them as they were."


def _lanes(types: dict[str, DType]) -> tuple[int]:
    return (REGISTER_BYTES // types["T"].size,)


# Filling

_FILLED = ("u8", "i8", "f8e4m3", "f8e5m2", "u16", "i16", "f16", "bf16", "u32", "i32", "f32")

register_instruction(
    "vdup", cpp="asc_duplicate", operands=(_DST, _SRC, _MASK), variants=types_of(*_FILLED), masking="zero",
    native="moves", extra=_lanes,
    asm=(Asm("vdup"), Asm("vdup", (), ("src",)), Asm("vdup", (("position", "LOWEST"),), ("src",))),
    doc="Put lane 0 of src into every active lane of dst; the others become 0.",
    notes=("PTO's page has no mask and names the lane by an attribute, whose values it does not list.",),
    sources=("asc-devkit C-API reg/data_fill/asc_duplicate", "pto-isa docs/isa vdup"),
)(arithmetic.duplicate)  # fmt: skip
register_instruction(
    "vdups", cpp="asc_duplicate_scalar", operands=(_DST, Scalar("value", "T"), _MASK), variants=types_of(*_FILLED),
    masking="zero", native="moves", extra=_lanes, asm=(Asm("vdup"),),
    doc="Put a number into every active lane of dst; the others become 0.",
    sources=("asc-devkit C-API reg/data_fill/asc_duplicate_scalar", "pto-isa docs/isa vdup"),
)(arithmetic.duplicate)  # fmt: skip
register_instruction(
    "vbr", cpp="asc_duplicate_scalar", operands=(_DST, Scalar("value", "T")), variants=types_of(*_FILLED, "f8e8m0"),
    native="moves", extra=_lanes, asm=(Asm("vbr"), Asm("vdup", (), ("value",))),
    doc="Put a number into every lane of dst.",
    sources=("asc-devkit C-API reg/data_fill/asc_duplicate_scalar", "pto-isa docs/isa vbr"),
)(arithmetic.duplicate)  # fmt: skip

_COUNTED = types_of("i8", "i16", "i32", "f16", "f32")
_COUNT_NOTE = "Integers wrap. Half lanes are computed in float32 and rounded once, where the page says nothing."

register_instruction(
    "vci", cpp="asc_arange", operands=(_DST, Scalar("value", "T")), variants=_COUNTED, values="widen",
    native="loops", extra=_lanes, asm=(Asm("vci"), Asm("vci", (("order", "ASC"),))),
    doc="Count up from ``value``: value, value + 1, ...", assumed=(_COUNT_NOTE,),
    sources=("asc-devkit C-API reg/index_operate/asc_arange", "pto-isa docs/isa vci"),
)(arithmetic.arange)  # fmt: skip
register_instruction(
    "vci_descend", cpp="asc_arange_descend", operands=(_DST, Scalar("value", "T")), variants=_COUNTED, values="widen",
    native="loops", extra=_lanes, asm=(Asm("vci", (("order", "DESC"),)),),
    doc="Count down to ``value``, which the last lane gets: value + lanes - 1, ..., value + 1, value.",
    assumed=(_COUNT_NOTE,),
    notes=("PTO's page counts down from value, so that the first lane gets it; this is what the C API's page says.",),
    sources=("asc-devkit C-API reg/index_operate/asc_arange", "pto-isa docs/isa vci"),
)(arithmetic.arange_descending)  # fmt: skip


# Comparison

_NAN = 'No comparison with a NaN holds but "not equal" (the pages of the scalar forms).'
_COMPARISONS: tuple[tuple[str, str, Callable[..., Any]], ...] = (
    ("lt", "less than", arithmetic.less),
    ("le", "at most", arithmetic.less_equal),
    ("gt", "greater than", arithmetic.greater),
    ("ge", "at least", arithmetic.greater_equal),
    ("eq", "equal to", arithmetic.equal),
    ("ne", "unequal to", arithmetic.not_equal),
)

for _name, _said, _function in _COMPARISONS:
    register_instruction(
        f"vcmp_{_name}", cpp=f"asc_{_name}", masking="zero", values="widen", native="loops",
        operands=(Operand("dst", Role.OUT, Sort.MREG, lane_mask="T"), *_TWO, _MASK),
        variants=tuple(v for v in _ARITHMETIC if _name != "ne" or v["T"].name != "bf16"),
        asm=(Asm("vcmp", (("", _name),)),),
        doc=f"Set dst where a lane of src0 is {_said} that of src1. Inactive lanes become 0. -0 equals +0.",
        assumed=(_NAN, "The bits that 16- and 32-bit lanes do not look at become 0."),
        sources=(f"asc-devkit C-API reg/compare_and_select/asc_{_name}", "pto-isa docs/isa vcmp"),
    )(_function)  # fmt: skip
    register_instruction(
        f"vcmps_{_name}", cpp=f"asc_{_name}_scalar", masking="zero", values="widen", native="loops",
        operands=(Operand("dst", Role.OUT, Sort.MREG, lane_mask="T"), _SRC, Scalar("value", "T"), _MASK),
        variants=_ARITHMETIC, asm=(Asm("vcmps", (("", _name),)),),
        doc=f"Set dst where a lane of src is {_said} a number. Inactive lanes become 0. -0 equals +0.",
        assumed=("The bits that 16- and 32-bit lanes do not look at become 0.",),
        sources=(f"asc-devkit C-API reg/compare_and_select/asc_{_name}_scalar", "pto-isa docs/isa vcmps"),
    )(_function)  # fmt: skip


# Selection


def select(src0: np.ndarray, src1: np.ndarray, mask: np.ndarray) -> np.ndarray:
    """``src0`` where ``mask`` is 1, else ``src1``."""
    return arithmetic.select(mask, src0, src1)


_SELECT_SOURCES = ("asc-devkit C-API reg/compare_and_select/asc_select",)

register_instruction(
    "vsel", cpp="asc_select", operands=(_DST, *_TWO, _MASK), native="loops",
    variants=types_of("u8", "i8", "f8e4m3", "hif8", "f8e5m2", "u16", "i16", "f16", "bf16", "u32", "i32", "f32"),
    doc="The lane of src0 where the mask is 1, that of src1 where it is 0.",
    sources=(*_SELECT_SOURCES, "pto-isa docs/isa vsel"),
)(select)  # fmt: skip
register_instruction(
    "psel", cpp="asc_select", native="loops",
    operands=(Out("dst", Sort.MREG), In("src0", Sort.MREG), In("src1", Sort.MREG), In("mask", Sort.MREG)),
    asm=(Asm("psel"), Asm("psel", (), ("src0", "src1", "mask", "_"))),
    doc="The bit of src0 where that of the mask is 1, that of src1 where it is 0: all 256 bits.",
    notes=("PTO's page has a fourth operand, an \"optional masking predicate\", of which it says no more.",),
    sources=(*_SELECT_SOURCES, "pto-isa docs/isa psel"),
)(select)  # fmt: skip


# Reduction

_ORDERS = {"u16": order.UNSIGNED, "u32": order.UNSIGNED, "f16": order.F16, "f32": order.F32}
_REDUCTIONS: tuple[tuple[str, str, str, Callable[..., Any]], ...] = (
    ("max", "largest", "lowest value (-infinity of floats)", reduce.reduce_max),
    ("min", "smallest", "highest value (infinity of floats)", reduce.reduce_min),
)
_IN_BLOCKS = {"max": reduce.max_of_groups, "min": reduce.min_of_groups}
_BLOCK = 32
"""Bytes of a block."""

for _name, _said, _empty, _function in _REDUCTIONS:
    register_instruction(
        f"vc{_name}", cpp=f"asc_reduce_{_name}", operands=(_DST, _SRC, _MASK), native="loops",
        variants=types_of("i16", "i32", "u16", "u32", "f16", "f32"),
        extra=lambda types: (_ORDERS.get(types["T"].name, order.SIGNED),),
        doc=f"""The {_said} active lane to lane 0 of dst, its number (an integer, whatever the type) to lane 1.

        The other lanes become 0. Among equals the first wins; +0 is larger than -0; the first NaN beats all. With no
        active lane, lane 0 gets the type's {_empty}.
        """,
        notes=(
            "A second sentence of the C API's page has the result fill all active lanes; its constraints, and the "
            "other pages, have it in lanes 0 and 1.",
            "With no active lane PTO's page has zeros.",
        ),
        sources=(f"asc-devkit C-API reg/reduce_compute/asc_reduce_{_name}", f"pto-isa docs/isa vc{_name}"),
    )(_function)  # fmt: skip
    register_instruction(
        f"vcg{_name}", cpp=f"asc_reduce_{_name}_datablock", operands=(_DST, _SRC, _MASK), native="loops",
        variants=types_of("i16", "i32", "u16", "u32", "f16", "f32"),
        extra=lambda types: (_ORDERS.get(types["T"].name, order.SIGNED), _BLOCK // types["T"].size),
        doc=f"""The {_said} active lane of each of the eight blocks of 32 bytes, to lanes 0 to 7 of dst.

        The other lanes become 0. A block without an active lane gives the type's {_empty}.
        """,
        notes=("PTO's page leaves each result in the first lane of its block, and has zeros for an empty one.",),
        assumed=("A NaN beats all, as in the reduction of a whole register; of several, the first.",),
        sources=(f"asc-devkit C-API reg/reduce_compute/asc_reduce_{_name}_datablock", f"pto-isa docs/isa vcg{_name}"),
    )(_IN_BLOCKS[_name])  # fmt: skip

_SUMS: tuple[dict[str, DType], ...] = tuple(
    {"T": DTYPES[t], "S": DTYPES[s]}
    for t, s in (("i32", "i16"), ("i32", "i32"), ("u32", "u16"), ("u32", "u32"), ("f16", "f16"), ("f32", "f32"))
)


def sum_groups(values: np.ndarray, active: np.ndarray, group: int, lanes: int) -> np.ndarray:
    """The sums of every ``group`` lanes; of 16-bit integers in 32 bits; one NaN is as good as another."""
    if values.itemsize == 2:
        values = values.astype(np.dtype(f"{values.dtype.kind}4"))
    sums = reduce.sum_groups(values, active, group, lanes)
    return np.where(sums != sums, np.float32(np.nan), sums) if sums.dtype.kind == "f" else sums


def _define_sum(name: str, cpp: str, bytes_of_group: int, doc: str, notes: tuple[str, ...]) -> None:
    in_pairs = not bytes_of_group
    register_instruction(
        name, cpp=cpp, operands=(_DST, In("src", Sort.VREG, "S"), LaneMask(of="S")), values="widen", native="loops",
        variants=tuple(v for v in _SUMS if not in_pairs or v["T"].kind == "f"),
        extra=lambda types: (2 if in_pairs else bytes_of_group // types["S"].size, *_lanes(types)),
        doc=f"{doc} The other lanes become 0. An inactive lane counts as 0.", notes=notes,
        assumed=(
            "Half lanes are added in float32 and the sum is rounded once.", "The sums of integers wrap.",
            "A NaN is the quiet one without a sign.",
        ),
        sources=(f"asc-devkit C-API reg/reduce_compute/{cpp}", f"pto-isa docs/isa {name}"),
    )(sum_groups)  # fmt: skip


_define_sum(
    "vcadd", "asc_reduce_sum", REGISTER_BYTES,
    "The sum of all active lanes to lane 0 of dst: neighbours first, then their sums, and so on. 16-bit integers are "
    "added in 32 bits.", (),
)  # fmt: skip
_define_sum(
    "vcgadd", "asc_reduce_sum_datablock", _BLOCK,
    "The sums of the active lanes of each of the eight blocks of 32 bytes, to lanes 0 to 7 of dst. 16-bit integers are "
    "added in 32 bits.", ("PTO's page leaves each sum in the first lane of its block.",),
)  # fmt: skip
_define_sum(
    "vcpadd", "asc_pair_reduce_sum", 0, "The sums of every two neighbouring lanes, to the lower half of dst.",
    ("PTO's page has sums of all lanes so far.",),
)  # fmt: skip
