"""Raw element bits as ranks: unsigned numbers that ascend with the value.

A rank is a uint32 whatever the element's width: narrower elements fill its high bits, so that one rule serves 8, 16
and 32 bits. Ranks are one to one with the bits; -0 ranks directly below +0. The sign of a NaN is its rank: negative
NaNs lie below -infinity, positive ones above +infinity, and the larger the payload the further out.
"""

from __future__ import annotations

import numpy as np

UNSIGNED, SIGNED, F32, F16, BF16 = range(5)
"""How the bits of an element are to be read (the ``order`` argument)."""

INFINITY_BITS = (0, 0, 0x7F800000, 0x7C00, 0x7F80)
"""The bits of +infinity by order; 0 for integers."""

_MAGNITUDE = (0, 0, 0x7FFFFFFF, 0x7FFF, 0x7FFF)
_SIGN = np.uint32(0x80000000)


def rank(bits: np.ndarray, order: int) -> np.ndarray:
    """Ranks (uint32, the shape of ``bits``) of raw elements, an unsigned array of 8, 16 or 32 bits."""
    wide = bits.astype(np.uint32)
    if bits.itemsize < 4:
        wide = wide << np.uint32(32 - 8 * bits.itemsize)
    if order == UNSIGNED:
        return wide
    if order == SIGNED:
        return wide ^ _SIGN
    all_ones_where_negative = (wide.view(np.int32) >> np.int32(31)).view(np.uint32)
    return wide ^ (all_ones_where_negative | _SIGN)


def bits_of_rank(ranks: np.ndarray, order: int, itemsize: int) -> np.ndarray:
    """The inverse of :func:`rank`: raw bits, as uint32, of elements of ``itemsize`` bytes."""
    if order == UNSIGNED:
        wide = ranks.copy()
    elif order == SIGNED:
        wide = ranks ^ _SIGN
    else:
        all_ones_where_negative = ~(ranks.view(np.int32) >> np.int32(31)).view(np.uint32)
        wide = ranks ^ (all_ones_where_negative | _SIGN)
    return wide >> np.uint32(32 - 8 * itemsize) if itemsize < 4 else wide


def magnitudes(order: int) -> tuple[int, int]:
    """The bits that are no sign, and those of +infinity: with more than these an element is NaN."""
    return _MAGNITUDE[order], INFINITY_BITS[order]


def is_nan(bits: np.ndarray, order: int) -> np.ndarray:
    """Which raw elements are NaN (bool, the shape of ``bits``); none, where ``order`` says integers."""
    return (bits & np.uint32(_MAGNITUDE[order])) > np.uint32(INFINITY_BITS[order])
