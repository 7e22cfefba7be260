"""Arithmetic of registers, lane by lane under a mask: one, two and three operands, numbers, carries.

Sources: asc-devkit C-API reg/arithmetic_compute and reg/compound_compute, its table of border values for register
instructions.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from ascsim.isa.definition import (
    Asm,
    In,
    InOut,
    LaneMask,
    Operand,
    Out,
    Role,
    Scalar,
    Sort,
    register_instruction,
    types_of,
)  # fmt: skip
from ascsim.isa.semantics import arithmetic, functions
from ascsim.isa.semantics.convert import ROUND, f32_to_f16_bits
from ascsim.machine.dtypes import DType, f16, f32

_INTEGERS = ("u8", "i8", "u16", "i16", "u32", "i32")
_EVERY = (*_INTEGERS, "f16", "bf16", "f32")
_FLOATS = ("f16", "f32")
_SIGNED = ("i8", "i16", "i32", *_FLOATS)
_PRODUCTS = ("i16", "u16", "f16", "i32", "u32", "f32")
_SMALLEST = {"f16": 2.0**-14, "f32": 2.0**-126}
"""The smallest number of a type that is not subnormal."""

_ZEROED = "Inactive lanes of dst become 0 (the C API's page); PTO's page leaves them as they were."
_WRAPS = "Integers wrap: bit 53 of CTRL chooses saturation, and is 0 after reset."
_LARGER = ("A NaN wins (the table of border values). Of two NaNs, src0's.",)
_FLUSHES = (
    "Subnormals are taken as 0, and a result that would be one becomes 0, both with their sign: the page of the basic "
    "API says so of the plain instruction.",
    "Computed more exactly than float32 and rounded; a chip's result may differ by one unit in the last place.",
)
_FUSED = "The product is not rounded: the basic API's page on the multiplication into dst says fused."


def _flush(types: dict[str, DType]) -> tuple[float, ...]:
    kind = types["T"].name
    return (_SMALLEST[kind],) if kind in _SMALLEST else ()


def _is_narrow(types: dict[str, DType]) -> tuple[bool]:
    return (types["T"].is_narrow_float,)


def divide(a: np.ndarray, b: np.ndarray, smallest: float) -> np.ndarray:
    """``a / b`` of floats without subnormals."""
    quotient = arithmetic.divide(arithmetic.flush(a, smallest), arithmetic.flush(b, smallest))
    return arithmetic.flush(quotient, smallest)


def exponential(a: np.ndarray, smallest: float) -> np.ndarray:
    """Of floats without subnormals."""
    return arithmetic.flush(functions.exponential(arithmetic.flush(a, smallest)), smallest)


def logarithm(a: np.ndarray, smallest: float) -> np.ndarray:
    """Of floats without subnormals."""
    return arithmetic.flush(functions.logarithm(arithmetic.flush(a, smallest)), smallest)


def square_root(a: np.ndarray, smallest: float) -> np.ndarray:
    """Of floats without subnormals."""
    return arithmetic.square_root(arithmetic.flush(a, smallest))


class Row(NamedTuple):
    """An instruction: the builtin's name, the C API's after ``asc_``, the inputs before the mask, types, semantics.

    An input is a register, ``value`` a number, ``dst`` one that is written too. ``of_floats`` stands in for floats.
    """

    name: str
    cpp: str
    inputs: tuple[str, ...]
    types: tuple[str, ...]
    of: Callable[..., Any]
    doc: str
    of_floats: Callable[..., Any] | None = None
    extra: Callable[[dict[str, DType]], tuple[Any, ...]] | None = None
    assumed: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()
    asm: tuple[Asm, ...] | None = None
    family: str = "arithmetic"


_TWO, _ONE, _NUMBER = ("src0", "src1"), ("src",), ("src", "value")
_LEAKY = "The lane of {} where it is above 0, else its product with {}. +0 stays; of -0 it is the product."

ROWS = (
    Row("vadd", "add", _TWO, _EVERY, arithmetic.add, "Add two registers.", assumed=(_WRAPS,)),
    Row("vsub", "sub", _TWO, _EVERY, arithmetic.subtract, "Subtract src1 from src0.", assumed=(_WRAPS,)),
    Row("vmul", "mul", _TWO, (*_PRODUCTS, "bf16"), arithmetic.multiply,
        "Multiply two registers. Integers keep the low bits."),
    Row("vdiv", "div", _TWO, _PRODUCTS, arithmetic.divide_integers, "Divide src0 by src1; integers towards zero.",
        divide, _flush, (*_FLUSHES, "An integer divided by 0 gives 0."),
        ("PTO's page has no division of integers.",)),
    Row("vmax", "max", _TWO, _EVERY, arithmetic.maximum,
        "The larger of two lanes. Of floats, +0 is larger than -0, and a NaN wins.", arithmetic.float_maximum,
        assumed=_LARGER),
    Row("vmin", "min", _TWO, _EVERY, arithmetic.minimum,
        "The smaller of two lanes. Of floats, -0 is smaller than +0, and a NaN wins.", arithmetic.float_minimum,
        assumed=_LARGER),
    Row("vadds", "add_scalar", _NUMBER, _EVERY, arithmetic.add, "Add a number to each lane.", assumed=(_WRAPS,)),
    Row("vmuls", "mul_scalar", _NUMBER, _PRODUCTS, arithmetic.multiply,
        "Multiply each lane by a number. Integers keep the low bits."),
    Row("vmaxs", "max_scalar", _NUMBER, _EVERY, arithmetic.maximum, "The larger of each lane and a number, as asc_max.",
        arithmetic.float_maximum, assumed=_LARGER),
    Row("vmins", "min_scalar", _NUMBER, tuple(t for t in _EVERY if t != "bf16"), arithmetic.minimum,
        "The smaller of each lane and a number, as asc_min.", arithmetic.float_minimum, assumed=_LARGER),
    Row("vabs", "abs", _ONE, _SIGNED, arithmetic.absolute, "The absolute value; the most negative integer stays."),
    Row("vneg", "neg", _ONE, _SIGNED, arithmetic.negate, "Change the sign; the most negative integer stays."),
    Row("vrelu", "relu", _ONE, ("i32", *_FLOATS), arithmetic.relu, "The lane where it is above 0, else +0; a NaN stays."),
    Row("vlrelu", "leakyrelu", _NUMBER, _FLOATS, arithmetic.leaky_relu, _LEAKY.format("src", "a number")),
    Row("vprelu", "prelu", _TWO, _FLOATS, arithmetic.leaky_relu, _LEAKY.format("src0", "that of src1")),
    Row("vexp", "exp", _ONE, _FLOATS, exponential, "e to the power of each lane.", extra=_flush, assumed=_FLUSHES),
    Row("vln", "ln", _ONE, _FLOATS, logarithm, "The natural logarithm: -infinity of 0, NaN of what is below.",
        extra=_flush, assumed=_FLUSHES),
    Row("vsqrt", "sqrt", _ONE, _FLOATS, square_root, "The square root: -0 of -0, NaN of what is below.",
        extra=_flush, assumed=_FLUSHES),
    Row("vabsdif", "abs_sub", _TWO, _FLOATS, arithmetic.absolute_difference, "The absolute value of src0 - src1.",
        family="compound"),
    Row("vaxpy", "axpy", ("dst", "src", "value"), _FLOATS, lambda y, x, a, narrow: functions.multiply_add(x, a, y, narrow),
        "Multiply src by a number and add it to dst.", extra=_is_narrow, assumed=(_FUSED,),
        asm=(Asm("vaxpy", (), ("src", "dst", "value", "mask")),), family="compound"),
    Row("vmadd", "madd", ("dst", *_TWO), _FLOATS, functions.multiply_add, "Multiply dst by src0 and add src1, in one.",
        extra=_is_narrow, asm=(Asm("vmula", (), ("src1", "dst", "src0", "mask")),), family="compound"),
)  # fmt: skip


def _operand(name: str) -> Operand:
    if name == "value":
        return Scalar("value", "T")
    return (InOut if name == "dst" else In)(name, Sort.VREG, "T")


for _row in ROWS:
    register_instruction(
        _row.name, cpp=f"asc_{_row.cpp}", values="widen", masking="zero", variants=types_of(*_row.types),
        operands=(
            *(() if "dst" in _row.inputs else (Out("dst", Sort.VREG, "T"),)), *map(_operand, _row.inputs), LaneMask(),
        ),
        extra=_row.extra, float_semantics=_row.of_floats, doc=_row.doc, assumed=_row.assumed,
        notes=(_ZEROED, *_row.notes), asm=_row.asm,
        sources=(
            f"asc-devkit C-API reg/{_row.family}_compute/asc_{_row.cpp}", "asc-devkit table of border values",
            f"pto-isa docs/isa {_row.asm[0].name if _row.asm else _row.name}",
        ),
    )(_row.of)  # fmt: skip


# Carries

_CARRY = Operand("carry", Role.OUT, Sort.MREG, lane_mask="T")
_CARRIED = Operand("carry_src", Role.IN, Sort.MREG, lane_mask="T", doc="the carry of the lanes below")
_BORROW = "A carry says that nothing was borrowed."
_PTO_BORROW = ("PTO's page has a borrow instead, the opposite of this carry.",)


def _define_with_carry(
    name: str, cpp: str, more: tuple[Operand, ...], function: Callable[..., Any], doc: str, notes: tuple[str, ...] = ()
) -> None:
    register_instruction(
        name, cpp=cpp, variants=types_of("u32"), masking="zero", asm=() if notes else (Asm(name),),
        operands=(_CARRY, Out("dst", Sort.VREG, "T"), *(In(n, Sort.VREG, "T") for n in _TWO), *more, LaneMask()),
        doc=doc, notes=notes,
        sources=(f"asc-devkit C-API reg/arithmetic_compute/{cpp}", f"pto-isa docs/isa {name}"),
    )(function)  # fmt: skip


_define_with_carry(
    "vaddc", "asc_add", (), arithmetic.add_with_carry,
    "Add two registers lane by lane; ``carry`` has the bit of each lane whose sum did not fit.",
)  # fmt: skip
_define_with_carry(
    "vaddcs", "asc_addc", (_CARRIED,), arithmetic.add_carried,
    "Add two registers and the bits of ``carry_src``; ``carry`` has the bit of each lane whose sum did not fit.",
)  # fmt: skip
_define_with_carry(
    "vsubc", "asc_sub", (), arithmetic.subtract_with_carry,
    f"Subtract src1 from src0; ``carry`` has the bit of each lane where src0 + ~src1 + 1 did not fit. {_BORROW}",
    _PTO_BORROW,
)  # fmt: skip
_define_with_carry(
    "vsubcs", "asc_subc", (_CARRIED,), arithmetic.subtract_carried,
    f"Add src0, ~src1 and the bits of ``carry_src``; ``carry`` has the bit of each lane that did not fit. {_BORROW}",
    _PTO_BORROW,
)  # fmt: skip
register_instruction(
    "vmull", cpp="asc_mull", values="native", masking="zero", variants=types_of("u32", "i32"), asm=(),
    operands=(*(Out(n, Sort.VREG, "T") for n in ("dst0", "dst1")), *(In(n, Sort.VREG, "T") for n in _TWO), LaneMask()),
    doc="Multiply two registers: the lower 32 bits of each product to dst0, the upper ones to dst1.",
    notes=("PTO's page subtracts the product from another register.",),
    sources=("asc-devkit C-API reg/arithmetic_compute/asc_mull", "asc-devkit table of border values"),
)(arithmetic.multiply_wide)  # fmt: skip


# Between half and float: half a register at a time, its even lanes or (``_v2``) its odd ones

_MASK_NOTE = "The mask is read as one for lanes of the source (the basic API's page)."


def exponential_of_difference(a: np.ndarray, b: np.ndarray, smallest: float) -> np.ndarray:
    """e to the power of ``a - b``, without subnormals."""
    return exponential(a - b, smallest)


def product_as_half(a: np.ndarray, value: np.ndarray) -> np.ndarray:
    """``a * value``, rounded to half with ties away from zero."""
    return f32_to_f16_bits(a * value, ROUND, False)


def _define_part(number: int, end: str, said: str) -> None:
    register_instruction(
        f"vexpdif{end}", cpp=f"asc_exp_sub{end}", values="widen", masking="zero", part=number, extra=_flush,
        operands=(Out("dst", Sort.VREG, "T"), *(In(n, Sort.VREG, "S") for n in _TWO), LaneMask(of="S")),
        variants=({"T": f32, "S": f32}, {"T": f32, "S": f16}),
        asm=() if end else (Asm("vexpdif", (), _TWO, (4,)),),
        doc=f"e to the power of src0 - src1, in float; of half, that of the {said} lanes.",
        notes=(_MASK_NOTE, "Deprecated."), assumed=_FLUSHES,
        sources=("asc-devkit C-API reg/compound_compute/asc_exp_sub", "pto-isa docs/isa vexpdif"),
    )(exponential_of_difference)  # fmt: skip
    register_instruction(
        f"vmulscvt{end}", cpp=f"asc_muls{end}", values="native", masking="zero", part=number, asm=(),
        operands=(Out("dst", Sort.VREG, "T"), In("src", Sort.VREG, "S"), Scalar("value", "S"), LaneMask(of="S")),
        variants=({"T": f16, "S": f32},),
        doc=f"""Multiply by a number and convert to half, to nearest with ties away from zero, into the {said} lanes of dst.

        The other lanes of dst become 0.
        """,
        notes=(_MASK_NOTE, "Deprecated."), assumed=("The product is rounded to float first.",),
        sources=("asc-devkit C-API reg/arithmetic_compute/asc_muls",),
    )(product_as_half)  # fmt: skip


_define_part(0, "", "even")
_define_part(1, "_v2", "odd")
