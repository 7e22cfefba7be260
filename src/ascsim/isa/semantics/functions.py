"""Exponential, logarithm and fused multiply-add, in float64 by additions, multiplications and divisions alone.

So NumPy and compiled loops give the same bits. Of the exponential and the logarithm the error before the one rounding
to float32 is a few units of float64: a result differs from the exact one rounded about once in a hundred million.
"""

from __future__ import annotations

import numpy as np

_LOG2_E = 1.4426950408889634
_LN2_HIGH = 6.93147180369123816490e-01  # 33 bits, so that its product with an exponent is exact
_LN2_LOW = 1.90821492927058770002e-10
_FACTORIALS = (
    6227020800.0, 479001600.0, 39916800.0, 3628800.0, 362880.0, 40320.0, 5040.0, 720.0, 120.0, 24.0, 6.0, 2.0, 1.0, 1.0,
)  # fmt: skip
_ODD = (23.0, 21.0, 19.0, 17.0, 15.0, 13.0, 11.0, 9.0, 7.0, 5.0, 3.0, 1.0)
_BIAS = 1023
_FRACTION = (1 << 52) - 1


def exponential(a: np.ndarray) -> np.ndarray:
    """e to the power of float32 ``a``, rounded once."""
    x = np.minimum(np.maximum(np.where(a == a, a, np.float32(0)).astype(np.float64), -200.0), 200.0)
    power = np.rint(x * _LOG2_E)
    rest = (x - power * _LN2_HIGH) - power * _LN2_LOW
    total = np.zeros_like(rest)
    for factorial in _FACTORIALS:
        total = total * rest + 1.0 / factorial
    scale = ((power.astype(np.int64) + _BIAS) << 52).view(np.float64)
    return np.where(a == a, (total * scale).astype(np.float32), a)


def logarithm(a: np.ndarray) -> np.ndarray:
    """The natural logarithm of float32 ``a``, rounded once; -infinity of 0, NaN below."""
    bits = np.abs(a).astype(np.float64).view(np.int64)
    mantissa = ((bits & _FRACTION) | (_BIAS << 52)).view(np.float64)
    above = mantissa > 1.4142135623730951
    mantissa = np.where(above, mantissa * 0.5, mantissa)
    exponent = ((bits >> 52) - _BIAS + above).astype(np.float64)
    ratio = (mantissa - 1.0) / (mantissa + 1.0)
    square = ratio * ratio
    series = np.zeros_like(ratio)
    for odd in _ODD:
        series = series * square + 1.0 / odd
    finite = (exponent * _LN2_HIGH + (2.0 * ratio * series + exponent * _LN2_LOW)).astype(np.float32)
    zero = np.where(a == 0, np.float32(-np.inf), np.float32(np.nan))
    return np.where(a > 0, np.where(a == np.float32(np.inf), a, finite), np.where(a == a, zero, a))


def multiply_add(a: np.ndarray, b: np.ndarray, c: np.ndarray, narrow: bool) -> np.ndarray:
    """``a * b + c`` of float32, rounded once; a NaN is the quiet one without a sign.

    ``narrow``: for a caller who goes on to f16 or bf16; what float32 cannot hold makes the last bit odd, so that his
    rounding is the only one.
    """
    product = a.astype(np.float64) * b.astype(np.float64)  # exact
    addend = c.astype(np.float64)
    total = product + addend
    other = total - product
    missing = (product - (total - other)) + (addend - other)
    # Rounded to odd instead: of the two neighbours of the exact sum, the one whose last bit is 1.
    bits = total.view(np.int64)
    towards = np.where((missing > 0) == (total > 0), np.int64(1), np.int64(-1))
    is_inexact = (missing != 0) & (missing - missing == 0) & ((bits & 1) == 0)
    odd = np.where(is_inexact, bits + towards, bits).view(np.float64)
    result = odd.astype(np.float32)
    if narrow:
        raw = result.view(np.int32)
        beyond = np.abs(result.astype(np.float64)) > np.abs(odd)
        truncated = (raw - beyond.astype(np.int32)) | np.int32(1)
        is_cut = (result.astype(np.float64) != odd) & (total - total == 0)
        result = np.where(is_cut, truncated, raw).view(np.float32)
    return np.where(result == result, result, np.float32(np.nan))
