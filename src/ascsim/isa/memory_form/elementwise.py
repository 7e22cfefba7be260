"""Lane-wise arithmetic, logic and shifts on UB: ``vadd`` (``asc_add``) and its kin.

Sources: asc-devkit C-API vector_compute, a page an operation, and the code behind them; for calls of the builtins,
pto-isa include/pto/npu/a2a3.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from types import SimpleNamespace
from typing import Any

import numpy as np

from ascsim.isa.definition import Definition, In, InOut, Out, Scalar, Sort, types_of
from ascsim.isa.memory_form.masked import DST, SRC, SRC0, SRC1, vector_family
from ascsim.isa.rules import Rule, refuse
from ascsim.isa.semantics import arithmetic, convert, functions
from ascsim.machine.dtypes import DTYPES, DType, i32, u32
from ascsim.profiles import Profile

_FLOATS = types_of("f16", "f32")
_NUMBERS = types_of("f16", "f32", "i16", "i32")
_BITS = types_of("i16", "u16")
_ONE_ROUNDING = "Half lanes are computed in float32 and rounded once; integers wrap."
_ACCURATE = (
    "The result is that of float64, rounded once; the page states no tolerance, and a chip's last bits may differ.",
)


def by_kind(of_integers: Callable[..., Any], of_floats: Callable[..., Any]) -> Callable[..., Any]:
    """One function for integers and one for floats, by the first operand."""

    def either(a: np.ndarray, b: Any) -> np.ndarray:
        return np.asarray(of_floats(a, b) if a.dtype.kind == "f" else of_integers(a, b))

    return either


def _typed(a: np.ndarray, value: Any) -> Any:
    return np.asarray(value, a.dtype)


def with_value(function: Callable[..., Any]) -> Callable[..., Any]:
    """The function of an array and a number."""
    return lambda a, value: function(a, _typed(a, value))


_MAXIMUM = by_kind(arithmetic.maximum, arithmetic.float_maximum)
_MINIMUM = by_kind(arithmetic.minimum, arithmetic.float_minimum)


def multiply_add(a: np.ndarray, b: np.ndarray, c: np.ndarray) -> np.ndarray:
    """``a * b + c`` with one rounding: the product is exact in float64."""
    return (a.astype(np.float64) * np.asarray(b, np.float64) + c.astype(np.float64)).astype(np.float32)


def reciprocal(a: np.ndarray) -> np.ndarray:
    """``1 / a``."""
    return np.float32(1) / a


def shift_right_rounding(a: np.ndarray, count: int) -> np.ndarray:
    """``a >> count``, with the highest bit shifted out added: to nearest, halves up."""
    if count == 0:
        return a
    wide = a.astype(np.int64)
    return ((wide >> count) + ((wide >> (count - 1)) & 1)).astype(a.dtype)


# Two sources

_TWO = (DST, SRC0, SRC1)
_BINARY: tuple[tuple[str, str, str, Callable[..., Any], Sequence[dict[str, DType]], bool], ...] = (
    ("asc_add", "vadd", "Add two vectors lane by lane.", arithmetic.add, _NUMBERS, True),
    ("asc_sub", "vsub", "Subtract two vectors lane by lane.", arithmetic.subtract, _NUMBERS, True),
    ("asc_mul", "vmul", "Multiply two vectors lane by lane.", arithmetic.multiply, _NUMBERS, True),
    ("asc_max", "vmax", "The larger of two lanes.", _MAXIMUM, _NUMBERS, True),
    ("asc_min", "vmin", "The smaller of two lanes.", _MINIMUM, _NUMBERS, True),
    ("asc_div", "vdiv", "Divide two vectors lane by lane.", arithmetic.divide, _FLOATS, True),
    ("asc_and", "vand", "The bits that two lanes have in common.", arithmetic.bits_and, _BITS, False),
    ("asc_or", "vor", "The bits that one of two lanes has.", arithmetic.bits_or, _BITS, False),
)  # fmt: skip

for _cpp, _builtin, _doc, _function, _types, _folds in _BINARY:
    vector_family(
        _cpp, _builtin, _TWO, _types, semantics=_function, doc=_doc, folds=_folds,
        assumed=(_ONE_ROUNDING,) if _types is not _BITS else (),
    )  # fmt: skip


# The destination takes part

_INTO = (InOut("dst", Sort.POINTER, "T", doc="read, then the result"),)
_MIXED = (*_FLOATS, {"T": DTYPES["f32"], "S": DTYPES["f16"]})
_WITH_SOURCE = tuple({"S": v["T"], **v} for v in _MIXED)
_FUSED = ("Product and sum are rounded once, together.",)

vector_family(
    "asc_fma", "vmla", (*_INTO, In("src0", Sort.POINTER, "S"), In("src1", Sort.POINTER, "S")), _WITH_SOURCE,
    semantics=lambda dst, a, b: multiply_add(a, b, dst), doc="Add the product of two vectors to dst.", assumed=_FUSED,
)  # fmt: skip
vector_family(
    "asc_mul_add", "vmadd", (*_INTO, SRC0, SRC1), _FLOATS, semantics=lambda dst, a, b: multiply_add(a, dst, b),
    doc="Multiply dst by src0 and add src1: dst = src0 * dst + src1.", assumed=_FUSED,
)  # fmt: skip
vector_family(
    "asc_mul_add_relu", "vmaddrelu", (*_INTO, SRC0, SRC1), _FLOATS,
    semantics=lambda dst, a, b: arithmetic.relu(multiply_add(a, dst, b)),
    doc="Multiply dst by src0 and add src1; what is below 0 becomes 0.", assumed=_FUSED,
)  # fmt: skip
vector_family(
    "asc_axpy", "vaxpy", (*_INTO, In("src", Sort.POINTER, "S"), Scalar("value", "S", doc="the factor")), _WITH_SOURCE,
    semantics=lambda dst, a, value: multiply_add(a, value, dst), doc="Add src times a number to dst.", assumed=_FUSED,
)  # fmt: skip


# A vector and a number

_VALUE = Scalar("value", "T", doc="the number")
_SCALAR: tuple[tuple[str, str, str, Callable[..., Any], Sequence[dict[str, DType]]], ...] = (
    ("asc_add_scalar", "vadds", "Add a number to each lane.", arithmetic.add, _NUMBERS),
    ("asc_sub_scalar", "", "Subtract a number from each lane.", arithmetic.subtract, _NUMBERS),
    ("asc_mul_scalar", "vmuls", "Multiply each lane by a number.", arithmetic.multiply, _NUMBERS),
    ("asc_max_scalar", "vmaxs", "The larger of each lane and a number.", _MAXIMUM, _NUMBERS),
    ("asc_min_scalar", "vmins", "The smaller of each lane and a number.", _MINIMUM, _NUMBERS),
    ("asc_leakyrelu", "vlrelu", "Multiply lanes below 0 by a number.", arithmetic.leaky_relu, _FLOATS),
)  # fmt: skip

for _cpp, _builtin, _doc, _function, _types in _SCALAR:
    vector_family(
        _cpp, _builtin, (DST, SRC, _VALUE), _types, semantics=with_value(_function), doc=_doc, assumed=(_ONE_ROUNDING,),
        name=_builtin or "vadds",
    )  # fmt: skip


# One source

_UNARY: tuple[tuple[str, str, str, Callable[..., Any], Sequence[dict[str, DType]], Sequence[str]], ...] = (
    ("asc_abs", "vabs", "The size of each lane.", arithmetic.absolute, _FLOATS, ()),
    ("asc_exp", "vexp", "e to the power of each lane.", functions.exponential, _FLOATS, _ACCURATE),
    ("asc_log", "vln", "The natural logarithm of each lane.", functions.logarithm, _FLOATS, _ACCURATE),
    ("asc_sqrt", "vsqrt", "The square root of each lane.", arithmetic.square_root, _FLOATS, _ACCURATE),
    ("asc_rsqrt", "vrsqrt", "One over the square root of each lane.", arithmetic.reciprocal_root, _FLOATS, _ACCURATE),
    ("asc_rcp", "vrec", "One over each lane.", reciprocal, _FLOATS, _ACCURATE),
    ("asc_relu", "vrelu", "Each lane, or 0 where it is below.", arithmetic.relu, types_of("f16", "f32", "i32"), ()),
    ("asc_not", "vnot", "Each lane with all bits turned.", arithmetic.bits_not, _BITS, ()),
)  # fmt: skip

for _cpp, _builtin, _doc, _function, _types, _assumed in _UNARY:
    vector_family(_cpp, _builtin, (DST, SRC), _types, semantics=_function, doc=_doc, assumed=_assumed)


# Sums and differences cut off at 0, and products, narrowed


def narrowed(values: np.ndarray, kind: DType) -> np.ndarray:
    """Floats or integers to ``kind``: halves to even, what does not fit at the limit of its side."""
    if kind.kind == "f":
        return convert.f32_to_f16_bits(values, convert.RINT, True).view(np.float16)
    limits = np.iinfo(kind.numpy)
    low, high = int(limits.min), int(limits.max)
    if values.dtype.kind == "f":
        return convert.float_to_int(values, convert.RINT, True, low, high)
    return convert.int_to_int(values, True, low, high)


def _cut(function: Callable[..., Any], kind: DType | None) -> Callable[..., Any]:
    """relu of the function, narrowed to a type; sums of integers are not cut short before."""

    def compute(a: np.ndarray, b: np.ndarray) -> np.ndarray:
        if kind is None:
            return arithmetic.relu(np.asarray(function(a, b)))
        wide = a if a.dtype.kind == "f" else a.astype(np.int64)
        other = b if b.dtype.kind == "f" else b.astype(np.int64)
        return narrowed(arithmetic.relu(np.asarray(function(wide, other))), kind)

    return compute


_NARROWING = (("f16", "i8", "f162s8"), ("i16", "i8", "s162s8"), ("f32", "f16", "f322f16"))
_ROUNDED = ("The narrower type is reached by rounding to nearest, halves to even, and stops at its limits.",)
_FROM = (Out("dst", Sort.POINTER, "T"), In("src0", Sort.POINTER, "S"), In("src1", Sort.POINTER, "S"))

for _name, _function, _said in (("add", arithmetic.add, "sum"), ("sub", arithmetic.subtract, "difference")):
    _cpp, _doc = f"asc_{_name}_relu", f"The {_said} of two lanes, or 0 where it is below."
    vector_family(
        _cpp, f"v{_name}relu", _TWO, types_of("f16", "f32", "i16"), semantics=_cut(_function, None), doc=_doc,
        assumed=(_ONE_ROUNDING,),
    )  # fmt: skip
    for _source, _target, _pair in _NARROWING:
        vector_family(
            _cpp, f"v{_name}reluconv_{_pair}", _FROM, ({"T": DTYPES[_target], "S": DTYPES[_source]},),
            semantics=_cut(_function, DTYPES[_target]), doc=f"{_doc} Then to a narrower type.", assumed=_ROUNDED,
        )  # fmt: skip


def _product(kind: DType) -> Callable[..., Any]:
    return lambda a, b: narrowed(arithmetic.multiply(a, b), kind)


for _target, _word, _pair in (("i8", "int8", "f162s8"), ("u8", "uint8", "f162u8")):
    vector_family(
        f"asc_mul_cast_half2{_word}", f"vmulconv_{_pair}", _FROM, ({"T": DTYPES[_target], "S": DTYPES["f16"]},),
        semantics=_product(DTYPES[_target]),
        doc="The product of two lanes, rounded to an integer (halves to even) that stops at the limits of its type.",
    )  # fmt: skip


# Shifts


def _distance(name: str) -> Rule:
    """The distance is neither negative nor more than the width of the type."""

    def test(definition: Definition, call: SimpleNamespace, profile: Profile) -> str | None:
        distance, width = int(getattr(call, name)), 8 * call.src.dtype.size
        return None if 0 <= distance <= width else f"{name} is {distance}; it must be 0 to {width}"

    def breaks(call: SimpleNamespace, profile: Profile) -> Iterator[SimpleNamespace]:
        for distance in (-1, 33):
            yield SimpleNamespace(**{**vars(call), name: distance})

    return refuse("L006", f"{name} is 0 to the width of the type", test, breaks=breaks, mend="Shift by less.")


def _shift(function: Callable[..., Any]) -> Callable[..., Any]:
    return lambda a, distance: function(a, np.asarray(distance, np.int64))


vector_family(
    "asc_shiftleft", "vshl", (DST, SRC, Scalar("distance", u32, doc="bits")), types_of("i16", "u16", "i32", "u32"),
    semantics=_shift(arithmetic.shift_left), doc="Shift each lane to the left.", rules=(_distance("distance"),),
)  # fmt: skip
for _kind, _types, _name in ((i32, types_of("i16", "i32"), "vshr"), (u32, types_of("u16", "u32"), "vshr_unsigned")):
    vector_family(
        "asc_shiftright", "", (DST, SRC, Scalar("value", _kind, doc="bits")), _types, name=_name,
        semantics=_shift(arithmetic.shift_right), doc="Shift each lane to the right, signed ones with their sign.",
        rules=(_distance("value"),),
    )  # fmt: skip
vector_family(
    "asc_shiftright_round", "", (DST, SRC, Scalar("value", i32, doc="bits")), types_of("i16", "i32"), name="vshr_round",
    semantics=lambda a, value: shift_right_rounding(a, int(value)), page="asc_shiftright",
    doc="Shift each lane to the right with its sign, and add the highest bit that is lost.", rules=(_distance("value"),),
    assumed=("Adding 1 may wrap only where no bit is shifted, so never.",),
)  # fmt: skip
