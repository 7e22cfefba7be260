"""Sorting blocks of 32 with a network: the compiled twin of :func:`ascsim.isa.semantics.sort.sort_blocks`.

A network compares fixed pairs of places, whatever the data, so that many blocks are sorted side by side, one in each lane
of the processor's registers. What a value ranks is not written here again: the numbers that turn bits into ranks are read
off :func:`ascsim.isa.semantics.order.rank`, which flips some bits of a value, and flips them by its highest bit alone.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache, lru_cache
from typing import Any, NamedTuple

import numpy as np

from ascsim.isa.semantics.order import SIGNED, UNSIGNED, rank
from ascsim.machine.native import bound, is_made

PLACES = 32
ACROSS = 64
"""Blocks side by side: their keys stay in the processor's nearest cache."""
WORTH_LOADING, WORTH_MAKING = 1 << 22, 1 << 26
"""After so many elements in one process it pays to load what was compiled before, and to compile it."""
_CALL = 2000
"""What a call costs beside its elements, as so many of them."""
_sorted = 0
_TOP = 0x80000000
_NONE = -1


class Flips(NamedTuple):
    """Rank = bits, shifted up ``by``, with those of ``clear`` flipped, or those of ``set`` where the highest bit is set.

    ``zero`` is -0 shifted up, which shares the rank of +0 and whose sign a key does not hold; -1 for integers.
    """

    by: int
    clear: int
    set: int
    zero: int


@cache
def flips(order: int, itemsize: int) -> Flips:
    """Those of an order and elements of so many bytes."""
    by = 32 - 8 * itemsize
    clear, highest = rank(np.array([0, 1 << (8 * itemsize - 1)], f"u{itemsize}"), order).tolist()
    return Flips(by, clear, highest ^ _TOP, _NONE if order in (UNSIGNED, SIGNED) else _TOP)


def is_worth_it(elements: int) -> bool:
    """Whether to sort so many more elements with the network."""
    global _sorted
    _sorted += elements + _CALL
    return _sorted > WORTH_MAKING or (_sorted > WORTH_LOADING and _is_made())


@cache
def _is_made() -> bool:
    return is_made(sort_blocks_in)


def sorted_pairs(bits: np.ndarray, indices: np.ndarray, order: int) -> np.ndarray | None:
    """The pairs of sorted blocks, uint32 (..., 32, 2); None where there is a -0, for the network loses its sign."""
    work = _work(bits.size // PLACES, order, bits.dtype)
    work.bits.reshape(bits.shape)[...] = bits
    work.indices.reshape(bits.shape)[...] = indices
    return None if work.run() else work.pairs.view(np.uint32).reshape(*bits.shape, 2).copy()


class _Work(NamedTuple):
    """Arrays in which so many blocks are sorted."""

    bits: np.ndarray
    indices: np.ndarray
    pairs: np.ndarray
    run: Callable[[], int]


@lru_cache(maxsize=32)
def _work(blocks: int, order: int, dtype: np.dtype) -> _Work:
    bits, indices = np.empty((blocks, PLACES), dtype), np.empty((blocks, PLACES), np.uint32)
    pairs = np.empty((blocks, PLACES), np.uint64)
    rows, keys = np.empty((ACROSS, PLACES), np.uint64), np.empty((PLACES, ACROSS), np.uint64)
    arguments = (bits, indices, pairs, rows, keys, comparisons(), *flips(order, dtype.itemsize))
    return _Work(bits, indices, pairs, bound(sort_blocks_in, arguments))


@cache
def comparisons(places: int = PLACES) -> np.ndarray:
    """The pairs of places that Batcher's odd-even merge sort compares, one after the other: int64[n, 2]."""
    pairs = []
    run = 1
    while run < places:
        apart = run
        while apart:
            for first in range(apart % run, places - apart, 2 * apart):
                for low in range(first, min(first + apart, places - apart)):
                    if low // (2 * run) == (low + apart) // (2 * run):
                        pairs.append((low, low + apart))
            apart //= 2
        run *= 2
    return np.array(pairs, np.int64)


def _put_in_order(low: Any, high: Any) -> None:
    """Exchange what is not in order in two rows of keys."""
    for i in range(len(low)):
        a, b = low[i], high[i]
        low[i] = min(a, b)
        high[i] = max(a, b)


def sort_blocks_in(
    bits: Any, indices: Any, pairs: Any, rows: Any, keys: Any, network: Any, by: int, clear: int, set_: int, zero: int
) -> int:
    """Sort blocks of pairs, see :func:`ascsim.isa.semantics.sort.sort_blocks`.

    Args:
        bits, indices: (blocks, places). pairs: filled; uint64 (blocks, places), the value in the low half.
        rows, keys: scratch, uint64 (blocks side by side, places) and (places, blocks side by side).
        network: :func:`comparisons`.
        by, clear, set_, zero: :class:`Flips`.

    Returns whether there is a -0; then the signs of zeros in ``pairs`` are not right.
    """
    top, high, zeros = np.uint32(_TOP), np.uint64(32), False
    up, when_clear, when_set = np.uint32(by), np.uint32(clear), np.uint32(set_)
    for first in range(0, len(bits), keys.shape[1]):
        across = min(keys.shape[1], len(bits) - first)
        for j in range(across):
            for i in range(len(keys)):
                wide = np.uint32(bits[first + j, i]) << up
                zeros |= wide == zero
                ranked = wide ^ (when_set if wide >= top else when_clear)
                rows[j, i] = (np.uint64(~ranked) << high) | np.uint64(indices[first + j, i])
            for i in range(len(keys)):  # apart from the work: only so is that done on several elements at once
                keys[i, j] = rows[j, i]
        for c in range(len(network)):
            _put_in_order(keys[network[c, 0]], keys[network[c, 1]])
        for j in range(across):
            for i in range(len(keys)):
                rows[j, i] = keys[i, j]
            for i in range(len(keys)):
                ranked = ~np.uint32(rows[j, i] >> high)
                wide = ranked ^ when_clear
                if wide >= top:
                    wide = ranked ^ when_set
                pairs[first + j, i] = (rows[j, i] << high) | np.uint64(wide >> up)
    return zeros
