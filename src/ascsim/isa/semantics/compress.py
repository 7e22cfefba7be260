"""Squeezing active lanes together, counting them, packing and unpacking halves, and histograms."""

from __future__ import annotations

import numpy as np


def squeeze(lanes: np.ndarray, active: np.ndarray) -> np.ndarray:
    """The active lanes one after another, from lane 0 on; the rest are 0 (asc_squeeze.md)."""
    kept = active != 0
    so_far = np.cumsum(kept.astype(np.int64))
    others = so_far[-1] + np.arange(lanes.size) - so_far
    packed = np.zeros_like(lanes)
    packed[np.where(kept, so_far - 1, others)] = np.where(kept, lanes, 0)
    return packed


def squeeze_and_count(lanes: np.ndarray, active: np.ndarray, squeezed: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """:func:`squeeze`, and ``squeezed`` (one uint64) with the bytes of the active lanes added."""
    so_far = np.cumsum((active != 0).astype(np.int64))
    return squeeze(lanes, active), squeezed + (so_far[-1] * lanes.itemsize).astype(np.uint64)


def count_below(active: np.ndarray) -> np.ndarray:
    """For each lane how many lanes before it are active, int64: lane 0 gets 0 (asc_unsqueeze.md)."""
    one_each = (active != 0).astype(np.int64)
    return np.cumsum(one_each) - one_each


def pack(pieces: np.ndarray, high: bool) -> np.ndarray:
    """Every other one of the ``pieces``, close together in one half of the register; the other half is 0.

    Lanes are halved so, of each its lower half stays, and the even bits of masks are taken. Sources:
    asc_pack_to_low.md, asc_pack_to_high.md; of the other half, PTO's ppack.md.
    """
    whole = np.zeros_like(pieces)
    half = pieces.size // 2
    whole[high * half : (1 + high) * half] = pieces[0::2]
    return whole


def unpack(lanes: np.ndarray, upper: bool) -> np.ndarray:
    """The lower or upper half of the lanes, for the caller to widen (asc_unpack.md)."""
    half = lanes.size // 2
    return lanes[upper * half : (1 + upper) * half]


def unpack_mask(mask: np.ndarray, upper: bool) -> np.ndarray:
    """Each bit of the lower or upper half of a mask register, followed by a 0 (asc_unpack.md)."""
    half = mask.size // 2
    whole = np.zeros_like(mask)
    whole[0::2] = mask[upper * half : (1 + upper) * half]
    return whole


def histogram(bins: np.ndarray, values: np.ndarray, active: np.ndarray, first: int, cumulative: bool) -> np.ndarray:
    """``bins`` (uint16) with how often each of the values ``first``, ``first + 1``, ... occurs added.

    ``values`` are uint8, of which the active ones count. ``cumulative``: how many are not larger, from value 0 on,
    whichever half ``bins`` is for: PTO's THISTOGRAM, which is made of the instruction, wants it so. Counts wrap.
    """
    counts = np.bincount(np.where(active != 0, values.astype(np.int64), 256), None, 257)
    if cumulative:
        counts = np.cumsum(counts)
    return bins + counts[first : first + bins.size].astype(np.uint16)
