"""Sorting blocks of 32 with a network: the compiled twin of :func:`ascsim.isa.semantics.sort.sort_blocks`.

A network compares fixed pairs of places, whatever the data, so that many blocks are sorted side by side, one in each lane
of the processor's registers. What a value ranks is not written here again: the numbers that turn bits into ranks are read
off :func:`ascsim.isa.semantics.order.rank`, which flips some bits of a value, and flips them by its highest bit alone.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cache, lru_cache
from typing import Any, NamedTuple

import numpy as np

from ascsim.isa.semantics.order import SIGNED, UNSIGNED, magnitudes, rank
from ascsim.machine.native import Bound, bound, is_made

PLACES = 32
ACROSS = 64
"""Blocks side by side: their keys stay in the processor's nearest cache."""
FEW = 8
"""Fewer blocks than so many are sorted one by one."""
WORTH_LOADING, WORTH_MAKING = 1 << 17, 1 << 26
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


def is_ready() -> bool:
    """Whether sorting with the network is worth it by now."""
    return is_worth_it(-_CALL)


@cache
def _is_made() -> bool:
    return is_made(sort_blocks_in)


def sorted_pairs(bits: np.ndarray, indices: np.ndarray, order: int) -> np.ndarray | None:
    """The pairs of sorted blocks, uint32 (..., 32, 2); None where there is a -0, for the network loses its sign."""
    work = _work(bits.size // PLACES, order, bits.dtype)
    work.bits.reshape(bits.shape)[...] = bits
    work.indices.reshape(bits.shape)[...] = indices
    return None if work.run() else work.pairs.reshape(*bits.shape, 2).copy()


class _Work(NamedTuple):
    """Arrays in which so many blocks are sorted."""

    bits: np.ndarray
    indices: np.ndarray
    pairs: np.ndarray
    run: Callable[[], int]


@lru_cache(maxsize=32)
def _work(blocks: int, order: int, dtype: np.dtype) -> _Work:
    bits, indices = np.empty((blocks, PLACES), dtype), np.empty((blocks, PLACES), np.uint32)
    pairs = np.empty((blocks, 2 * PLACES), np.uint32)
    run = sorting(bits, indices, pairs, order)
    assert run is not None
    return _Work(bits, indices, pairs, run)


def sorting(bits: np.ndarray, indices: np.ndarray, pairs: np.ndarray, order: int) -> Bound | None:
    """What sorts blocks where they are: (..., 32) elements and their indices into (..., 64) words of pairs.

    Its result is 1, and nothing is done, where there is a -0. None where the arrays do not lie so that it can be done.
    """
    arrays, heads = _in_one_piece((bits, indices, pairs.view(np.uint64) if _is_dense(pairs) else None), bits.shape[:-1])
    if heads is None:
        return None
    rows, keys = np.empty((ACROSS, PLACES), np.uint64), np.empty((PLACES, ACROSS), np.uint64)
    scratch = (rows, keys, np.empty(PLACES, np.uint64), np.empty(PLACES, np.int64))
    return bound(sort_blocks_in, (*arrays, heads, *scratch, comparisons(), *flips(order, bits.itemsize)))


def looking(bits: np.ndarray, indices: np.ndarray, order: int) -> Bound | None:
    """What tells of blocks where they are (..., 32) whether there is a NaN, or indices that do not ascend; or None."""
    arrays, heads = _in_one_piece((bits, indices), bits.shape[:-1])
    if heads is None:
        return None
    return bound(needs_a_look, (*arrays, heads, *magnitudes(order)))


def _is_dense(pairs: np.ndarray) -> bool:
    return pairs.strides[-1] == pairs.itemsize


def _in_one_piece(
    arrays: Sequence[np.ndarray | None], shape: tuple[int, ...]
) -> tuple[list[np.ndarray], np.ndarray | None]:
    """Each array as one without gaps, and where in these the blocks begin: int64[blocks, arrays]; None: there is no such.

    An array may have fewer leading dimensions, or fewer elements in them, for blocks that it has once for all.
    """
    flat, heads = [], []
    for array in arrays:
        if array is None or array.size == 0 or array.strides[-1] != array.itemsize:
            return [], None
        wide = np.broadcast_to(array, (*shape, array.shape[-1]))
        starts = np.zeros(shape, np.int64)
        for axis, stride in enumerate(wide.strides[:-1]):
            if stride % array.itemsize or stride < 0:
                return [], None
            steps = np.arange(shape[axis]) * (stride // array.itemsize)
            starts = starts + steps.reshape(-1, *(1 for _ in shape[axis + 1 :]))
        length = int(starts.max()) + array.shape[-1]
        flat.append(np.lib.stride_tricks.as_strided(array, (length,), (array.itemsize,)))
        heads.append(starts.ravel())
    return flat, np.ascontiguousarray(np.stack(heads, axis=1))


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


def _put_in_places(row: Any, line: Any, places: Any) -> None:
    """Sort one row of keys: the place of each is the number of those below it. ``line`` and ``places`` are scratch."""
    for i in range(len(places)):
        places[i] = 0
    for k in range(len(places)):
        key = row[k]
        for i in range(len(places)):
            places[i] += (key < row[i]) | ((key == row[i]) & (k < i))
    for i in range(len(places)):
        line[i] = row[i]
    for i in range(len(places)):
        row[places[i]] = line[i]


def _has(bits: Any, heads: Any, up: Any, wanted: Any) -> bool:
    """Whether a block has an element of these bits, shifted up: then the least that sets an element apart is 0."""
    least = np.uint32(0xFFFFFFFF)
    for head in range(len(heads)):
        block = bits[heads[head, 0] : heads[head, 0] + PLACES]  # a loop over a slice takes a third of the time
        for i in range(PLACES):
            least = min(least, np.uint32((np.uint32(block[i]) << up) ^ wanted))
    return bool(least == 0)


def sort_blocks_in(
    bits: Any, indices: Any, pairs: Any, heads: Any, rows: Any, keys: Any, line: Any, places: Any, network: Any,
    by: int, clear: int, set_: int, zero: int,
) -> int:  # fmt: skip
    """Sort blocks of pairs, see :func:`ascsim.isa.semantics.sort.sort_blocks`.

    Args:
        bits, indices: all elements. pairs: filled; uint64, the value in the low half.
        heads: where each block begins in these three.
        rows, keys: scratch, uint64 (blocks side by side, places) and (places, blocks side by side).
        line, places: scratch, uint64 and int64 (places).
        network: :func:`comparisons`.
        by, clear, set_, zero: :class:`Flips`.

    Returns whether there is a -0; then nothing is written.
    """
    top, high = np.uint32(_TOP), np.uint64(32)
    up, when_clear, when_set = np.uint32(by), np.uint32(clear), np.uint32(set_)
    if zero != _NONE and _has(bits, heads, up, np.uint32(zero)):
        return 1
    for first in range(0, len(heads), keys.shape[1]):
        across = min(keys.shape[1], len(heads) - first)
        for j in range(across):
            start, numbers, row = heads[first + j, 0], heads[first + j, 1], rows[j]
            block, own = bits[start : start + PLACES], indices[numbers : numbers + PLACES]
            for i in range(len(keys)):
                wide = np.uint32(block[i]) << up
                ranked = wide ^ (when_set if wide >= top else when_clear)
                row[i] = (np.uint64(~ranked) << high) | np.uint64(own[i])
        if across < FEW:
            for j in range(across):
                _put_in_places(rows[j], line, places)
        else:
            for j in range(across):
                for i in range(len(keys)):  # apart from the work: only so is that done on several elements at once
                    keys[i, j] = rows[j, i]
            for c in range(len(network)):
                _put_in_order(keys[network[c, 0]], keys[network[c, 1]])
            for j in range(across):
                for i in range(len(keys)):
                    rows[j, i] = keys[i, j]
        for j in range(across):
            start, row = heads[first + j, 2], rows[j]
            made = pairs[start : start + PLACES]
            for i in range(len(keys)):
                ranked = ~np.uint32(row[i] >> high)
                wide = ranked ^ when_clear
                if wide >= top:
                    wide = ranked ^ when_set
                made[i] = (row[i] << high) | np.uint64(wide >> up)
    return 0


def needs_a_look(bits: Any, indices: Any, heads: Any, magnitude: int, infinity: int) -> int:
    """Whether a block has a NaN, or indices that do not ascend: then more than the order of the values may matter.

    Args:
        bits, indices: all elements. heads: where each block begins in them.
        magnitude, infinity: :func:`~ascsim.isa.semantics.order.magnitudes`.
    """
    largest, without_sign, falls = np.uint32(0), np.uint32(magnitude), np.int64(0)
    for head in range(len(heads)):
        start, first = heads[head, 0], heads[head, 1]
        block, numbers = bits[start : start + PLACES], indices[first : first + PLACES]
        for i in range(PLACES):
            largest = max(largest, np.uint32(np.uint32(block[i]) & without_sign))
        here = np.uint32(0)
        for i in range(PLACES - 1):
            here = np.uint32(here + np.uint32(numbers[i] >= numbers[i + 1]))
        falls += np.int64(here)
    return int(largest > np.uint32(infinity) or falls > 0)
