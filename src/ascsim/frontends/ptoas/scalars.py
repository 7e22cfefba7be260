"""Scalar arithmetic of ``arith`` on Python numbers.

An integer of ``n`` bits is the Python int of its two's-complement value, an ``index`` one of 64 bits; ``i1`` is 0 or 1.
Floats are Python floats that the type can hold. Sources: MLIR's page of the ``arith`` dialect.
"""

from __future__ import annotations

import math
import operator
import struct
from collections.abc import Callable
from typing import Any

import ml_dtypes
import numpy as np
from xdsl.dialects.builtin import (
    BFloat16Type,
    Float16Type,
    Float32Type,
    Float64Type,
    IndexType,
    IntegerType,
    Signedness,
)
from xdsl.ir import Attribute

Number = int | float
INDEX_BITS = 64


class ScalarError(Exception):
    """An operation whose result MLIR leaves undefined: a division by zero, a shift beyond the width."""


def bits_of(kind: Attribute) -> int:
    """The width of an integer type or ``index``.

    Raises:
        TypeError: it is neither.
    """
    if isinstance(kind, IndexType):
        return INDEX_BITS
    if isinstance(kind, IntegerType):
        return kind.width.data
    raise TypeError(f"{kind} is not an integer type")


def wrapper(kind: Attribute) -> Callable[[int], int]:
    """The function that brings any integer into the range of ``kind``, keeping its low bits."""
    bits = bits_of(kind)
    mask = (1 << bits) - 1
    if bits == 1 or (isinstance(kind, IntegerType) and kind.signedness.data is Signedness.UNSIGNED):
        return lambda value: value & mask
    half = 1 << (bits - 1)
    return lambda value: ((value + half) & mask) - half


def rounder(kind: Attribute) -> Callable[[float], float]:
    """The function that rounds a Python float to the nearest of ``kind``, ties to even.

    Raises:
        TypeError: ``kind`` is no float type of the scalar unit (f16, bf16, f32, f64).
    """
    if isinstance(kind, Float64Type):
        return float
    for float_type, scalar in _FLOATS.items():
        if isinstance(kind, float_type):
            return _rounding(scalar)
    raise TypeError(f"{kind} is not a float type of the scalar unit")


_FLOATS: dict[type, Any] = {Float16Type: np.float16, BFloat16Type: ml_dtypes.bfloat16, Float32Type: np.float32}


def _rounding(scalar: Any) -> Callable[[float], float]:
    def rounded(value: float) -> float:
        with np.errstate(over="ignore", invalid="ignore"):
            return float(scalar(value))

    return rounded


# Integers: (how the operands are seen, what is computed). "s" signed, "u" unsigned, "" does not matter.


def _divide(a: int, b: int) -> int:
    """Towards zero."""
    quotient = abs(a) // abs(_divisor(b))
    return quotient if (a < 0) == (b < 0) else -quotient


def _divisor(b: int) -> int:
    if not b:
        raise ScalarError("divides by zero")
    return b


def _shift(shift: Callable[[int, int], int]) -> Callable[[int, int, int], int]:
    def apply(a: int, b: int, bits: int) -> int:
        amount = b & ((1 << bits) - 1)
        if amount >= bits:
            raise ScalarError(f"shifts a value of {bits} bits by {amount}; the amount is 0 to {bits - 1}")
        return shift(a, amount)

    return apply


INTEGER_BINARY: dict[str, tuple[str, Callable[[int, int], int]]] = {
    "addi": ("", operator.add),
    "subi": ("", operator.sub),
    "muli": ("", operator.mul),
    "divsi": ("s", _divide),
    "divui": ("u", lambda a, b: a // _divisor(b)),
    "ceildivsi": ("s", lambda a, b: -(-a // _divisor(b))),
    "ceildivui": ("u", lambda a, b: -(-a // _divisor(b))),
    "floordivsi": ("s", lambda a, b: a // _divisor(b)),
    "remsi": ("s", lambda a, b: a - b * _divide(a, b)),
    "remui": ("u", lambda a, b: a % _divisor(b)),
    "andi": ("", operator.and_),
    "ori": ("", operator.or_),
    "xori": ("", operator.xor),
    "minsi": ("s", min),
    "maxsi": ("s", max),
    "minui": ("u", min),
    "maxui": ("u", max),
}
SHIFTS: dict[str, tuple[str, Callable[[int, int, int], int]]] = {
    "shli": ("", _shift(operator.lshift)),
    "shrsi": ("s", _shift(operator.rshift)),
    "shrui": ("u", _shift(operator.rshift)),
}
INTEGER_COMPARE: tuple[tuple[str, str, Callable[[Any, Any], bool]], ...] = (
    ("eq", "", operator.eq),
    ("ne", "", operator.ne),
    ("slt", "s", operator.lt),
    ("sle", "s", operator.le),
    ("sgt", "s", operator.gt),
    ("sge", "s", operator.ge),
    ("ult", "u", operator.lt),
    ("ule", "u", operator.le),
    ("ugt", "u", operator.gt),
    ("uge", "u", operator.ge),
)
"""In the order of MLIR's predicate numbers."""


# Floats


def _float_divide(a: float, b: float) -> float:
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        return float(np.float64(a) / np.float64(b))


def _float_remainder(a: float, b: float) -> float:
    with np.errstate(invalid="ignore"):
        return float(np.fmod(np.float64(a), np.float64(b)))


def _larger(a: float, b: float) -> float:
    """With +0 above -0."""
    return b if a < b or (a == b and math.copysign(1, a) < 0) else a


def _smaller(a: float, b: float) -> float:
    return -_larger(-a, -b)


def _with_nan(choose: Callable[[float, float], float]) -> Callable[[float, float], float]:
    return lambda a, b: math.nan if a != a or b != b else choose(a, b)


def _without_nan(choose: Callable[[float, float], float]) -> Callable[[float, float], float]:
    return lambda a, b: b if a != a else a if b != b else choose(a, b)


FLOAT_BINARY: dict[str, Callable[[float, float], float]] = {
    "addf": operator.add,
    "subf": operator.sub,
    "mulf": operator.mul,
    "divf": _float_divide,
    "remf": _float_remainder,
    "maximumf": _with_nan(_larger),
    "minimumf": _with_nan(_smaller),
    "maxnumf": _without_nan(_larger),
    "minnumf": _without_nan(_smaller),
}


def _ordered(test: Callable[[float, float], bool]) -> Callable[[float, float], bool]:
    return lambda a, b: a == a and b == b and test(a, b)


def _unordered(test: Callable[[float, float], bool]) -> Callable[[float, float], bool]:
    return lambda a, b: a != a or b != b or test(a, b)


FLOAT_COMPARE: tuple[tuple[str, Callable[[float, float], bool]], ...] = (
    ("false", lambda a, b: False),
    ("oeq", _ordered(operator.eq)),
    ("ogt", _ordered(operator.gt)),
    ("oge", _ordered(operator.ge)),
    ("olt", _ordered(operator.lt)),
    ("ole", _ordered(operator.le)),
    ("one", _ordered(operator.ne)),
    ("ord", _ordered(lambda a, b: True)),
    ("ueq", _unordered(operator.eq)),
    ("ugt", _unordered(operator.gt)),
    ("uge", _unordered(operator.ge)),
    ("ult", _unordered(operator.lt)),
    ("ule", _unordered(operator.le)),
    ("une", _unordered(operator.ne)),
    ("uno", _unordered(lambda a, b: False)),
    ("true", lambda a, b: True),
)
"""In the order of MLIR's predicate numbers."""


# Views of an integer's bits


def seen(view: str, kind: Attribute) -> Callable[[int], int] | None:
    """The function that reads an integer as signed (``s``) or unsigned (``u``); None where it is read so already."""
    bits = bits_of(kind)
    mask = (1 << bits) - 1
    if view == "u":
        return lambda value: value & mask
    if view == "s" and bits == 1:
        return operator.neg  # the one bit is the sign
    return None


def binary(name: str, kind: Attribute) -> Callable[[Any, Any], Number] | None:
    """The function of ``arith.<name>`` on two numbers of type ``kind``; None for a name that is none.

    Raises:
        TypeError: the type is not a scalar that the operation takes.
    """
    if name in FLOAT_BINARY:
        compute, rounded = FLOAT_BINARY[name], rounder(kind)
        return lambda a, b: rounded(compute(a, b))
    if name in SHIFTS:
        view, shift = SHIFTS[name]
        look, wrap, bits = seen(view, kind) or int, wrapper(kind), bits_of(kind)
        return lambda a, b: wrap(shift(look(a), b, bits))
    if name not in INTEGER_BINARY:
        return None
    view, integer = INTEGER_BINARY[name]
    look_at, wrap = seen(view, kind), wrapper(kind)
    if look_at is None:
        return lambda a, b: wrap(integer(a, b))
    return lambda a, b: wrap(integer(look_at(a), look_at(b)))


def compare(predicate: int, kind: Attribute) -> Callable[[Any, Any], int]:
    """The function of ``arith.cmpi`` or ``arith.cmpf`` with that predicate number; it gives 0 or 1.

    Raises:
        TypeError: the type is not a scalar.
    """
    if not isinstance(kind, IntegerType | IndexType):
        rounder(kind)  # refuses what is no float
        test = FLOAT_COMPARE[predicate][1]
        return lambda a, b: int(test(a, b))
    _, view, holds = INTEGER_COMPARE[predicate]
    look_at = seen(view, kind)
    if look_at is None:
        return lambda a, b: int(holds(a, b))
    return lambda a, b: int(holds(look_at(a), look_at(b)))


def cast(name: str, source: Attribute, target: Attribute) -> Callable[[Any], Number] | None:
    """The function of the conversion ``arith.<name>`` from ``source`` to ``target``; None for a name that is none.

    Raises:
        TypeError: the types are not scalars that the conversion takes.
    """
    match name:
        case "index_cast" | "extsi":
            look, wrap = seen("s", source) or int, wrapper(target)
            return lambda a: wrap(look(a))
        case "index_castui" | "extui":
            look, wrap = seen("u", source) or int, wrapper(target)
            return lambda a: wrap(look(a))
        case "trunci":
            return wrapper(target)
        case "extf" | "truncf":
            return rounder(target)
        case "sitofp" | "uitofp":
            look, rounded = seen(name[0], source) or int, rounder(target)
            return lambda a: rounded(_to_float(look(a), target))
        case "fptosi" | "fptoui":
            return _to_integer(name == "fptosi", target)
        case "bitcast":
            return _bitcast(source, target)
        case "negf":
            rounder(target)
            return operator.neg
    return None


def _to_float(value: int, target: Attribute) -> float:
    """An integer on its way to a float type, rounded once: beyond 53 bits a Python float would round first."""
    if abs(value) < 1 << 53 or isinstance(target, Float64Type):
        return float(value)
    return _odd(value)


def _odd(value: int) -> float:
    """The float that keeps 53 bits of ``value``, the last one set if any below were: rounding it again rounds right."""
    shift = abs(value).bit_length() - 53
    head = abs(value) >> shift
    head |= int(head << shift != abs(value))
    return math.copysign(math.ldexp(head, shift), value)


def _to_integer(signed: bool, target: Attribute) -> Callable[[float], int]:
    bits, wrap = bits_of(target), wrapper(target)
    low = -(1 << (bits - 1)) if signed else 0
    high = (1 << (bits - 1)) - 1 if signed else (1 << bits) - 1

    def convert(value: float) -> int:
        whole = math.trunc(value) if math.isfinite(value) else None
        if whole is None or not low <= whole <= high:
            raise ScalarError(f"converts {value}, which is not within {low} to {high}")
        return wrap(whole)

    return convert


_CODES = {Float16Type: "<e", Float32Type: "<f", Float64Type: "<d"}


def _bitcast(source: Attribute, target: Attribute) -> Callable[[Any], Number]:
    to_bits, from_bits = _bit_codec(source)[0], _bit_codec(target)[1]
    return lambda value: from_bits(to_bits(value))


def _bit_codec(kind: Attribute) -> tuple[Callable[[Any], int], Callable[[int], Number]]:
    """(number to bits, bits to number) of a scalar type."""
    if isinstance(kind, IntegerType | IndexType):
        mask, wrap = (1 << bits_of(kind)) - 1, wrapper(kind)
        return lambda value: value & mask, wrap
    if isinstance(kind, BFloat16Type):
        return (
            lambda value: int(np.array(value, ml_dtypes.bfloat16).view(np.uint16)),
            lambda bits: float(np.array(bits, np.uint16).view(ml_dtypes.bfloat16)),
        )
    rounder(kind)
    real = next(code for float_type, code in _CODES.items() if isinstance(kind, float_type))
    size = struct.calcsize(real)
    return (
        lambda value: int.from_bytes(struct.pack(real, value), "little"),
        lambda bits: struct.unpack(real, bits.to_bytes(size, "little"))[0],
    )
