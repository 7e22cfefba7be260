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
    adds 16-bit integers in 32). Assumed for half,
    whose steps no source describes: added in float32, rounded once by the caller.
    """
    return sum_groups(values, active, values.size, values.size)


def sum_groups(values: np.ndarray, active: np.ndarray, group: int, lanes: int) -> np.ndarray:
    """The sums of every ``group`` lanes, from lane 0 on; the other of ``lanes`` lanes (at most as many as there are) are 0.

    They are made as in :func:`reduce_sum`.

    Sources: asc_reduce_sum_datablock.md, asc_pair_reduce_sum.md.
    """
    sums = np.where(active != 0, values, np.zeros_like(values))
    result = np.zeros_like(values[:lanes])
    while group > 1:
        sums = sums[0::2] + sums[1::2]
        group //= 2
    result[: sums.size] = sums
    return result


def max_of_groups(bits: np.ndarray, active: np.ndarray, order: int, group: int) -> np.ndarray:
    """The largest active lane of every ``group``, from lane 0 on; the other lanes are 0.

    Arguments, NaN and groups without an active lane are as in :func:`reduce_max`. Source:
    asc_reduce_max_datablock.md; of NaN, on which it is silent, assumed.
    """
    score = rank(bits, order).astype(np.uint64) + np.uint64(1)
    return _winners(bits, active, score, _lowest(bits.itemsize, order), is_nan(bits, order), group)


def min_of_groups(bits: np.ndarray, active: np.ndarray, order: int, group: int) -> np.ndarray:
    """As :func:`max_of_groups` for the smallest."""
    score = np.uint64(1 << 32) - rank(bits, order).astype(np.uint64)
    return _winners(bits, active, score, _highest(bits.itemsize, order), is_nan(bits, order), group)


def _winners(
    bits: np.ndarray, active: np.ndarray, score: np.ndarray, empty: int, nan: np.ndarray, group: int
) -> np.ndarray:
    score = np.where(active != 0, np.where(nan, np.uint64(1 << 33), score), np.uint64(0))
    best = np.where(active != 0, bits, bits.dtype.type(empty))
    while group > 1:
        right = score[1::2] > score[0::2]
        best = np.where(right, best[1::2], best[0::2])
        score = np.where(right, score[1::2], score[0::2])
        group //= 2
    result = np.zeros_like(bits)
    result[: best.size] = best
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
