"""Sorting of 32-element blocks: what VBS32 (``vbitsort``, ``asc_bitsort``, TSORT32) does.

The last axis is the block: 32 elements, or a shorter tail; any shape may lead. Values are raw unsigned bits and
``order`` says how to read them (see :mod:`ascsim.isa.semantics.order`).
"""

from __future__ import annotations

import numpy as np

from ascsim.isa.semantics import network
from ascsim.isa.semantics.order import SIGNED, UNSIGNED, bits_of_rank, rank

_ZERO_RANK = np.uint32(0x80000000)
_HIGH = np.uint64(32)


def value_rank(bits: np.ndarray, order: int) -> np.ndarray:
    """Ranks as in :func:`~ascsim.isa.semantics.order.rank`, but -0 and +0 of a float share one."""
    ranks = rank(bits, order)
    if order in (UNSIGNED, SIGNED):
        return ranks
    negative_zeros = ranks == _ZERO_RANK - np.uint32(1)
    return ranks + negative_zeros if np.any(negative_zeros) else ranks


def sort_blocks(bits: np.ndarray, indices: np.ndarray, order: int) -> tuple[np.ndarray, np.ndarray]:
    """Sort each block by value, largest first, and carry the indices along.

    Equal values (-0 equals +0) stand by ascending index, those with equal indices by position. Values keep their exact
    bits. ``bits`` is uint8, uint16 or uint32, ``indices`` uint32 of the same shape; both come back sorted.

    Sources: TSORT32.md of the PTO manual (descending, ties by smaller index). Assumed, for no source tells: the rank of
    a NaN is its sign (the padding of tails with negative NaN relies on that end of it), and so its payload.
    """
    ranks = value_rank(bits, order)
    keys = np.empty(bits.shape, np.uint64)
    low, high = _words_of(keys)
    low[...] = indices
    np.invert(ranks, high)
    keys.sort()  # of 64-bit numbers NumPy sorts several at once, in the processor's widest registers
    ranked = ~high
    sorted_bits = bits_of_rank(ranked, order, bits.itemsize).astype(bits.dtype)
    if order not in (UNSIGNED, SIGNED):
        _restore_zeros(sorted_bits, ranked, bits, ranks, indices)
    return sorted_bits, low


def sorted_pairs(bits: np.ndarray, indices: np.ndarray, order: int) -> np.ndarray:
    """The pairs of :func:`sort_blocks`; where much is sorted, by its compiled twin."""
    if bits.shape[-1] == network.PLACES and network.is_worth_it(bits.size):
        pairs = network.sorted_pairs(bits, indices, order)
        if pairs is not None:
            return pairs
    return pack_pairs(*sort_blocks(bits, indices, order))


def _words_of(keys: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The low and the high 32 bits of 64-bit numbers: views of them."""
    words = keys.view(np.uint32).reshape(*keys.shape, 2)
    return words[..., 0], words[..., 1]


def _restore_zeros(
    sorted_bits: np.ndarray, ranked: np.ndarray, bits: np.ndarray, ranks: np.ndarray, indices: np.ndarray
) -> None:
    """Give the zeros in ``sorted_bits`` the signs that ``bits`` has: their shared rank has lost them.

    The zeros are sorted once more, by block, index and position (of 26, 32 and 5 bits), each taking its sign along.
    """
    zeros = ranks == _ZERO_RANK
    if not np.any(zeros):
        return
    before = np.flatnonzero(zeros)
    negative = bits.copy().reshape(-1)[before] != 0
    if not np.any(negative):
        return
    block, position = before // bits.shape[-1], before % bits.shape[-1]
    place = (block.astype(np.uint64) << np.uint64(38)) | (position.astype(np.uint64) << np.uint64(1))
    index = indices.copy().reshape(-1)[before].astype(np.uint64) << np.uint64(6)
    signs = np.sort(place | index | negative) & np.uint64(1)
    after = np.flatnonzero((ranked == _ZERO_RANK).reshape(-1))
    sorted_bits.reshape(-1)[after] = signs << np.uint64(8 * bits.itemsize - 1)


def depends_on_tie_rule(bits: np.ndarray, indices: np.ndarray, order: int) -> bool:
    """True if some block has equal values whose indices do not ascend with position.

    There the documented tie rules (smaller index first; earlier position first) part ways.
    """
    if np.all(indices[..., 1:] > indices[..., :-1]):
        return False
    columns = np.arange(bits.shape[-1]).astype(np.uint64)
    keys = np.sort((value_rank(bits, order).astype(np.uint64) << _HIGH) | columns).reshape(-1)
    rows = np.arange(bits.size) // bits.shape[-1] * bits.shape[-1]
    by_position = indices.copy().reshape(-1)[rows + (keys & np.uint64(0xFFFFFFFF)).astype(np.int64)]
    ranks = keys >> _HIGH
    tied = (ranks[1:] == ranks[:-1]) & (rows[1:] == rows[:-1])
    return bool(np.any(tied & (by_position[1:] < by_position[:-1])))


def pack_pairs(bits: np.ndarray, indices: np.ndarray) -> np.ndarray:
    """(value, index) pairs, uint32 of shape (..., n, 2): eight bytes a pair, a narrow value zero-extended."""
    pairs = np.empty((*bits.shape, 2), np.uint32)
    pairs[..., 0] = bits
    pairs[..., 1] = indices
    return pairs


def merge_order(heads: np.ndarray) -> np.ndarray:
    """The order in which a merge takes pairs: positions in ``heads``, the most urgent first.

    ``heads`` is what :func:`merge_heads` gives, lists one after the other along the last axis.
    """
    positions = np.arange(heads.shape[-1]).astype(np.uint64)
    keys = np.sort(((~heads).astype(np.uint64) << _HIGH) | positions)
    return keys.astype(np.uint32).astype(np.int64)


def merge_heads(ranks: np.ndarray, lengths: np.ndarray) -> np.ndarray:
    """How urgent each value of a list is to a merge that looks at the lists' heads alone: the largest goes first.

    ``ranks`` are those of the lists (:func:`value_rank`), one after the other along the last axis. A value waits for
    those before it, so it counts as no more than the least of them: in a list that descends, its own rank. Taken by this
    measure, ties by list and then by position, the lists come out as a merge of heads gives them.
    """
    heads, start = np.empty_like(ranks), 0
    for length in lengths:
        heads[..., start : start + length] = np.minimum.accumulate(ranks[..., start : start + length], axis=-1)
        start += length
    return heads


def taken_until_one_ends(taken: np.ndarray, lengths: np.ndarray) -> np.ndarray:
    """How many pairs a merge that stops with the first list to end takes of each list; ``taken`` is its whole order."""
    ends = np.cumsum(lengths)
    starts = ends - lengths
    last = np.zeros(taken.size, np.bool_)
    for end in ends:
        last |= taken == end - 1
    stop = int(np.argmax(last)) + 1 if np.all(lengths > 0) else 0
    first = taken[:stop]
    counts = np.zeros(lengths.size, np.int64)
    for number in range(lengths.size):
        counts[number] = np.sum((first >= starts[number]) & (first < ends[number]))
    return counts
