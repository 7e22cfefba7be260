"""Weaving and unweaving of lanes (``vintlv``, ``vdintlv``, TINTERLEAVE, TDEINTERLEAVE) and of mask groups.

Lanes lie along the last axis, which is of even length; they move unchanged, so any element type will do.
"""

from __future__ import annotations

import numpy as np


def interleave(a: np.ndarray, b: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Weave ``a`` and ``b`` (one shape and type) lane by lane: ``a0 b0 a1 b1 ...``.

    Returns the first half of the result, made of the lower halves of the sources, then the second half.
    """
    half = a.shape[-1] // 2
    low, high = np.empty_like(a), np.empty_like(a)
    low[..., 0::2] = a[..., :half]
    low[..., 1::2] = b[..., :half]
    high[..., 0::2] = a[..., half:]
    high[..., 1::2] = b[..., half:]
    return low, high


def deinterleave(a: np.ndarray, b: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The inverse of :func:`interleave`: the even lanes of ``a`` then ``b``, and their odd lanes."""
    half = a.shape[-1] // 2
    even, odd = np.empty_like(a), np.empty_like(a)
    even[..., :half] = a[..., 0::2]
    even[..., half:] = b[..., 0::2]
    odd[..., :half] = a[..., 1::2]
    odd[..., half:] = b[..., 1::2]
    return even, odd


def interleave_mask(a: np.ndarray, b: np.ndarray, group: int) -> tuple[np.ndarray, np.ndarray]:
    """Weave two mask registers (uint8[256]) in groups of ``group`` entries: 1, 2, 4 for ``_b8``, ``_b16``, ``_b32``."""
    half = a.size // 2
    low, high = np.empty((half // group, 2, group), a.dtype), np.empty((half // group, 2, group), a.dtype)
    low[:, 0, :] = a[:half].reshape(half // group, group)
    low[:, 1, :] = b[:half].reshape(half // group, group)
    high[:, 0, :] = a[half:].reshape(half // group, group)
    high[:, 1, :] = b[half:].reshape(half // group, group)
    return low.reshape(a.size), high.reshape(a.size)


def deinterleave_mask(a: np.ndarray, b: np.ndarray, group: int) -> tuple[np.ndarray, np.ndarray]:
    """The inverse of :func:`interleave_mask`: the even groups of ``a`` then ``b``, and their odd groups."""
    pairs = a.size // group // 2
    even, odd = np.empty((2, pairs, group), a.dtype), np.empty((2, pairs, group), a.dtype)
    even[0] = a.reshape(pairs, 2, group)[:, 0, :]
    even[1] = b.reshape(pairs, 2, group)[:, 0, :]
    odd[0] = a.reshape(pairs, 2, group)[:, 1, :]
    odd[1] = b.reshape(pairs, 2, group)[:, 1, :]
    return even.reshape(a.size), odd.reshape(a.size)
