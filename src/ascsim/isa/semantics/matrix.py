"""Products of matrices, as the cube adds them up."""

from __future__ import annotations

from functools import cache

import numpy as np


@cache
def _table(kind: np.dtype) -> np.ndarray:
    """The numbers behind all bit patterns of a narrow float."""
    bits = np.arange(1 << 8 * kind.itemsize, dtype=f"u{kind.itemsize}")
    with np.errstate(all="ignore"):
        return bits.view(kind).astype(np.float64)


def widened(matrix: np.ndarray) -> np.ndarray:
    """The elements in double precision, which holds all of theirs."""
    kind = matrix.dtype
    if kind.kind in "iu" or kind in (np.float32, np.float16):
        return matrix.astype(np.float64)
    return _table(kind)[np.ascontiguousarray(matrix).view(f"u{kind.itemsize}")]


def multiply(lhs: np.ndarray, rhs: np.ndarray, start: np.ndarray | None, kind: np.dtype) -> np.ndarray:
    """``start + lhs @ rhs``: products are exact, sums are taken in double precision, the result is rounded once.

    Of integers the result is exact, modulo 2**32: products of bytes have 15 bits, and fewer than 2**12 are added up.

    Args:
        lhs: m by k, rhs: k by n, of numbers that double precision holds.
        start: m by n, or n for all rows alike; None for zero.
        kind: float32 or int32, the type of the result.
    """
    total = widened(lhs) @ widened(rhs)
    if start is not None:
        total += start
    if kind == np.int32:
        return total.astype(np.int64).astype(np.int32)
    return total.astype(np.float32)
