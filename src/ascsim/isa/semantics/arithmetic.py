"""Lane-wise arithmetic, comparison and selection, on arrays of any shape and on the scalars of a compiled loop.

Integers wrap. That is the chips' default: bit 53 of CTRL, which is 0, chooses truncation (SetCtrlSpr.md), and the pages
of the A5's multiply and absolute say so themselves. Floats are float32 (narrow ones widened; the caller rounds the
result) and follow IEEE 754.
"""

from __future__ import annotations

import numpy as np

_ONE = np.float32(1)


def add(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """``a + b``."""
    return a + b


def add_with_carry(a: np.ndarray, b: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """(whether the sum of two unsigned integers does not fit, the sum that wraps) (asc_add.md)."""
    total = a + b
    return total < a, total


def add_carried(a: np.ndarray, b: np.ndarray, carry: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """(whether ``a + b + carry`` of uint32 does not fit, the sum that wraps); ``carry`` is 0 or 1 (asc_addc.md)."""
    total = a.astype(np.uint64) + b.astype(np.uint64) + carry.astype(np.uint64)
    return (total >> np.uint64(32)) != 0, total.astype(np.uint32)


def subtract_with_carry(a: np.ndarray, b: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """(whether nothing is borrowed, the difference that wraps): the carry of ``a + ~b + 1`` (asc_sub.md)."""
    return a >= b, a - b


def subtract_carried(a: np.ndarray, b: np.ndarray, carry: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The carry and the sum of ``a + ~b + carry`` (asc_subc.md)."""
    return add_carried(a, ~b, carry)


def subtract(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """``a - b``."""
    return a - b


def multiply(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """``a * b``."""
    return a * b


def multiply_wide(a: np.ndarray, b: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The lower and the upper 32 bits of ``a * b``, of 32-bit integers (asc_mull.md, table of border values)."""
    if a.dtype.kind == "u":
        unsigned = a.astype(np.uint64) * b.astype(np.uint64)
        return unsigned.astype(np.uint32), (unsigned >> np.uint64(32)).astype(np.uint32)
    product = a.astype(np.int64) * b.astype(np.int64)
    return product.astype(np.int32), (product >> np.int64(32)).astype(np.int32)


def absolute_difference(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """``|a - b|`` of floats."""
    return np.abs(a - b)


def divide(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """``a / b`` of floats."""
    return a / b


def divide_integers(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """``a / b`` of integers, towards zero; 0 where ``b`` is 0 (Int64Div.hpp; assumed of the other widths); wraps."""
    divisor = np.where(b == 0, np.ones_like(b), b)
    floor = a // divisor
    rest = a - floor * divisor
    towards_zero = np.where((rest != 0) & ((a < 0) != (divisor < 0)), floor + np.ones_like(floor), floor)
    return np.where(b == 0, np.zeros_like(b), towards_zero)


def maximum(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """The larger of two integers."""
    return np.maximum(a, b)


def minimum(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """The smaller of two integers."""
    return np.minimum(a, b)


def float_maximum(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """The larger of two floats; NaN where either is NaN; +0 is larger than -0.

    Sources: asc_max.md (zeros), vmax.md of the PTO manual (NaN).
    """
    sign = np.maximum(np.copysign(_ONE, a), np.copysign(_ONE, b))
    return np.copysign(np.maximum(a, b), sign)


def float_minimum(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """The smaller of two floats; NaN where either is NaN; -0 is smaller than +0 (asc_min.md, vmin.md)."""
    sign = np.minimum(np.copysign(_ONE, a), np.copysign(_ONE, b))
    return np.copysign(np.minimum(a, b), sign)


def negate(a: np.ndarray) -> np.ndarray:
    """``-a``; the most negative integer stays."""
    return -a


def absolute(a: np.ndarray) -> np.ndarray:
    """``|a|``; the most negative integer stays (Abs.md: truncated, not saturated)."""
    return np.abs(a)


def relu(a: np.ndarray) -> np.ndarray:
    """``a`` where it is above 0, else 0; of floats, NaN stays and -0 becomes +0 (the A5's table of border values)."""
    zero = np.zeros_like(a)
    return np.where(a <= zero, zero, a)


def leaky_relu(a: np.ndarray, slope: np.ndarray) -> np.ndarray:
    """``a`` where it is above 0 or +0, else ``a * slope`` (asc_leakyrelu.md, asc_prelu.md, table of border values)."""
    return np.where(np.signbit(a), a * slope, a)


def square_root(a: np.ndarray) -> np.ndarray:
    """The square root; NaN of negative numbers, -0 of -0."""
    return np.sqrt(a)


def reciprocal_root(a: np.ndarray) -> np.ndarray:
    """One over the square root of float32 ``a``, computed in float64 and rounded once; infinity of the zero's sign."""
    return (1.0 / np.sqrt(a.astype(np.float64))).astype(np.float32)


def flush(a: np.ndarray, smallest: float | np.float32) -> np.ndarray:
    """Zeros of their sign in place of floats nearer to 0 than ``smallest``."""
    return np.where(np.abs(a) < smallest, np.copysign(np.float32(0), a), a)


def bits_and(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """``a & b``."""
    return a & b


def bits_or(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """``a | b``."""
    return a | b


def bits_xor(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """``a ^ b``."""
    return a ^ b


def bits_not(a: np.ndarray) -> np.ndarray:
    """``~a``."""
    return ~a


def shift_left(a: np.ndarray, count: np.ndarray) -> np.ndarray:
    """``a << count``; 0 where ``count`` is at least the width of the type, or negative (which no page defines)."""
    width = 8 * a.itemsize
    fits = (count >= 0) & (count < width)
    return np.where(fits, a << np.where(fits, count, np.zeros_like(count)), np.zeros_like(a))


def shift_right(a: np.ndarray, count: np.ndarray) -> np.ndarray:
    """``a >> count``, signed integers with their sign; beyond the width of the type (or below 0) nothing but sign stays."""
    width = 8 * a.itemsize
    most = np.full_like(count, width - 1)
    fits = (count >= 0) & (count < width)
    shifted = a >> np.where(fits, count, most)
    return np.where(fits | (a < 0), shifted, np.zeros_like(a))


def equal(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """``a == b``; false where either is NaN; -0 equals +0 (asc_eq.md)."""
    return a == b


def not_equal(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """``a != b``; true where either is NaN (asc_ne_scalar.md)."""
    return a != b


def less(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """``a < b``; false where either is NaN."""
    return a < b


def less_equal(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """``a <= b``; false where either is NaN."""
    return a <= b


def greater(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """``a > b``; false where either is NaN (asc_gt_scalar.md)."""
    return a > b


def greater_equal(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """``a >= b``; false where either is NaN (asc_ge_scalar.md)."""
    return a >= b


def shift_lanes_left(a: np.ndarray, count: np.ndarray, signed: bool) -> np.ndarray:
    """``a << count``; 0 where the count is not below the width. Both are raw unsigned bits.

    A signed integer keeps its sign: only the bits below it move (asc_shiftleft.md, with examples). Assumed: a count
    that equals the width, or is negative, counts as too large; the page says that of larger ones only.
    """
    width = 8 * a.itemsize
    moved = (a.astype(np.uint64) << np.where(count < width, count, 0).astype(np.uint64)).astype(a.dtype)
    if signed:
        sign = a.dtype.type(1 << (width - 1))
        moved = (moved & ~sign) | (a & sign)
    return np.where(count < width, moved, a.dtype.type(0))


def shift_lanes_right(a: np.ndarray, count: np.ndarray, signed: bool) -> np.ndarray:
    """``a >> count``, filled up with the sign of a signed integer; 0 or -1 where the count is not below the width.

    Both are raw unsigned bits. Source: asc_shiftright.md. Assumed of equal and negative counts: as in
    :func:`shift_lanes_left`.
    """
    width = 8 * a.itemsize
    wide = a.astype(np.int64)
    if signed:
        wide = (wide ^ (1 << (width - 1))) - (1 << (width - 1))
    return (wide >> np.where(count < width, count, width).astype(np.int64)).astype(a.dtype)


def select(mask: np.ndarray, a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """``a`` where ``mask`` (0/1) is 1, else ``b``: raw unsigned bits, which keep every NaN and zero as it is."""
    return b ^ ((a ^ b) * mask)  # no branch, so that arrays and scalars share it


def duplicate(source: np.ndarray, lanes: int) -> np.ndarray:
    """The first element of ``source`` in ``lanes`` lanes."""
    return np.full(lanes, source[0], source.dtype)


def arange(start: np.ndarray, lanes: int) -> np.ndarray:
    """``start, start + 1, ...`` in ``lanes`` lanes; ``start`` is an array of one element, whose type the result has.

    Integers wrap (asc_arange.md).
    """
    return start + np.arange(lanes).astype(start.dtype)


def arange_descending(start: np.ndarray, lanes: int) -> np.ndarray:
    """``start + lanes - 1, ..., start + 1, start``: what asc_arange.md says of the descending order.

    Disputed: vci.md of the PTO manual counts down from ``start`` itself.
    """
    return start + np.arange(lanes)[::-1].astype(start.dtype)
