"""The bytes of accesses, worked out: extents, bursts, exact intervals, what overlaps.

Tables of accesses are taken whole (NumPy); single accesses as intervals, for the few that a finding speaks of.
"""

from __future__ import annotations

import numpy as np

from ascsim.machine.trace import Trace

Intervals = list[tuple[int, int]]
"""Bytes as sorted (first, one past the last) pairs."""


def reaches(shapes: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """How far the bursts of each shape lie before the first one (0 or less), and how far behind it (0 or more)."""
    strides = [(shapes[f"n{i}"].astype(np.int64) - 1) * shapes[f"s{i}"] for i in (1, 2, 3)]
    before = np.sum([np.minimum(reach, 0) for reach in strides], axis=0)
    return before, np.sum([np.maximum(reach, 0) for reach in strides], axis=0)


def extent(accesses: np.ndarray, shapes: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The first byte of each access, and one past its last (int64)."""
    before, behind = reaches(shapes)
    shape, start = accesses["shape"], accesses["start"]
    return start + before[shape], start + accesses["length"] + behind[shape]


def bursts(access: np.void, shapes: np.ndarray) -> np.ndarray:
    """The first byte of each burst of one access, in the access's own order."""
    shape = shapes[access["shape"]]
    starts = np.array([access["start"]], np.int64)
    for count, stride in (("n3", "s3"), ("n2", "s2"), ("n1", "s1")):
        starts = (starts[:, None] + np.arange(shape[count], dtype=np.int64) * shape[stride]).ravel()
    return starts


def merged(intervals: Intervals) -> Intervals:
    """The same bytes as sorted intervals that do not touch."""
    joined: Intervals = []
    for low, high in sorted(intervals):
        if joined and low <= joined[-1][1]:
            joined[-1] = (joined[-1][0], max(joined[-1][1], high))
        elif low < high:
            joined.append((low, high))
    return joined


def touched(trace: Trace, number: int) -> Intervals:
    """The bytes of an access as sorted intervals: strides and mask worked out."""
    access = trace.accesses[number]
    length = int(access["length"])
    if not access["mask"]:
        starts = np.unique(bursts(access, trace.shapes))
        opens = np.flatnonzero(np.concatenate(([True], starts[1:] > starts[:-1] + length)))
        closes = np.concatenate((opens[1:], [len(starts)])) - 1
        return list(zip(starts[opens].tolist(), (starts[closes] + length).tolist(), strict=True))
    active = np.unpackbits(trace.masks[int(access["mask"]) - 1], bitorder="little")
    offsets = np.unique((bursts(access, trace.shapes)[:, None] + np.arange(length)).ravel()) - int(access["start"])
    inside = (offsets >= 0) & (offsets < 256)
    kept = offsets[~inside | (active[np.where(inside, offsets, 0)] != 0)] + int(access["start"])
    return merged([(byte, byte + 1) for byte in kept.tolist()])


def calls(trace: Trace, number: int) -> list[Intervals]:
    """The bytes of an access, those of each call by themselves where its row stands for the turns of a loop."""
    access = trace.accesses[number]
    if not trace.shapes["turns"][access["shape"]]:
        return [touched(trace, number)]
    length = int(access["length"])
    return [[(start, start + length)] for start in bursts(access, trace.shapes).tolist()]


def common(a: Intervals, b: Intervals) -> Intervals:
    """The bytes in both."""
    shared: Intervals = []
    i = j = 0
    while i < len(a) and j < len(b):
        low, high = max(a[i][0], b[j][0]), min(a[i][1], b[j][1])
        if low < high:
            shared.append((low, high))
        if a[i][1] < b[j][1]:
            i += 1
        else:
            j += 1
    return shared


def without(some: Intervals, others: Intervals) -> Intervals:
    """The bytes of the first that are not in the second."""
    left: Intervals = []
    for low, high in some:
        for begin, end in common([(low, high)], others):
            if low < begin:
                left.append((low, begin))
            low = end
        if low < high:
            left.append((low, high))
    return left


def within(intervals: Intervals, low: int, high: int) -> Intervals:
    """The part in [low, high)."""
    return common(intervals, [(low, high)])


def clusters(key: np.ndarray, low: np.ndarray, high: np.ndarray) -> np.ndarray:
    """Number the groups of extents that overlap, directly or through others; different keys never share a group."""
    order = np.lexsort((low, key))
    edges = np.sort(np.concatenate((low, high)))
    offset = np.searchsorted(key[order], key[order]) * len(edges)
    ends = np.maximum.accumulate(np.searchsorted(edges, high[order]) + offset)
    begins = np.searchsorted(edges, low[order]) + offset
    fresh = np.ones(len(order), bool)
    fresh[1:] = begins[1:] >= ends[:-1]
    numbers = np.empty(len(order), np.int64)
    numbers[order] = np.cumsum(fresh) - 1
    return numbers
