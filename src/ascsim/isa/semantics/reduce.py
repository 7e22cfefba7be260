"""Reductions: of a register under a lane mask (``vcmax``, ``vcmin``, ``vcadd``), and of the rows of a tile."""

from __future__ import annotations

import numpy as np

from ascsim.isa.semantics.order import INFINITY_BITS, SIGNED, UNSIGNED, is_nan, rank

_ONE = np.float32(1)


def reduce_max(bits: np.ndarray, active: np.ndarray, order: int) -> np.ndarray:
    """The largest active lane and its number, in lanes 0 and 1 of the result; the other lanes are 0.

    ``bits`` is one register's raw lanes (uint8, uint16 or uint32), ``active`` 0/1 a lane, ``order`` how to read them
    (:mod:`ascsim.isa.semantics.order`). Among equals the first lane wins, +0 beats -0, and the first NaN beats all.
    With no lane active: the type's lowest value (-infinity of floats), and 0. The lane number is an integer of the
    lane's width. Source: asc_reduce_max.md. Disputed: PTO's vcmax.md fills with zeros when no lane is active.
    """
    score = rank(bits, order).astype(np.uint64) + np.uint64(1)
    return _winner(bits, active, score, _lowest(bits.itemsize, order), is_nan(bits, order))


def reduce_min(bits: np.ndarray, active: np.ndarray, order: int) -> np.ndarray:
    """As :func:`reduce_max` for the smallest: -0 beats +0; with no lane active the type's highest value (+infinity)."""
    score = np.uint64(1 << 32) - rank(bits, order).astype(np.uint64)
    return _winner(bits, active, score, _highest(bits.itemsize, order), is_nan(bits, order))


def _winner(bits: np.ndarray, active: np.ndarray, score: np.ndarray, empty: int, nan: np.ndarray) -> np.ndarray:
    score = np.where(nan, np.uint64(1 << 33), score)
    score = np.where(active != 0, score, np.uint64(0))
    best = np.argmax(score)
    result = np.zeros_like(bits)
    result[0] = np.where(score[best] == 0, bits.dtype.type(empty), bits[best])
    result[1] = best
    return result


def _lowest(itemsize: int, order: int) -> int:
    if order == UNSIGNED:
        return 0
    sign = 1 << (8 * itemsize - 1)
    return sign if order == SIGNED else sign | INFINITY_BITS[order]


def _highest(itemsize: int, order: int) -> int:
    if order == UNSIGNED:
        return (1 << (8 * itemsize)) - 1
    return (1 << (8 * itemsize - 1)) - 1 if order == SIGNED else INFINITY_BITS[order]


def reduce_sum(values: np.ndarray, active: np.ndarray) -> np.ndarray:
    """The sum of the active lanes in lane 0; the other lanes are 0; +0 with no lane active.

    Neighbours are added, then neighbouring sums, and so on; an inactive lane counts as 0 (asc_reduce_sum.md).
    ``values`` is a register's lanes, a power of two of them: float32, or an integer type that holds the sum (a chip
    adds 16-bit integers in 32). Assumed for half, whose steps no source describes: added in float32, rounded once by
    the caller.
    """
    sums = np.where(active != 0, values, np.zeros_like(values))
    while sums.size > 1:
        sums = sums[0::2] + sums[1::2]
    result = np.zeros_like(values)
    result[0] = sums[0]
    return result


def row_max(values: np.ndarray) -> np.ndarray:
    """The largest integer along the last axis, which is not empty."""
    columns = values.shape[-1]
    folded = np.ascontiguousarray(values)
    while columns > 1:
        half = columns // 2
        merged = np.maximum(folded[..., :half], folded[..., half : 2 * half])
        if columns % 2:
            merged[..., :1] = np.maximum(merged[..., :1], folded[..., columns - 1 : columns])
        folded, columns = merged, half
    return folded[..., 0].copy()


def float_row_max(values: np.ndarray) -> np.ndarray:
    """The largest float32 along the last axis, which is not empty; NaN if there is one; +0 is larger than -0."""
    largest = row_max(values)
    if np.any(largest == 0):
        largest = np.copysign(largest, row_max(np.copysign(_ONE, values)))
    return largest
