"""The loop over all accesses that lets the ordinary ones go by.

The loop itself is plain Python over sequences, in the part that Numba compiles, like :mod:`ascsim.checks.clocks`.
"""

from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from ascsim.checks.naming import Tiles, tile_bytes
from ascsim.checks.spans import reaches
from ascsim.machine.trace import Trace
from ascsim.machine.words import Space

if TYPE_CHECKING:
    from ascsim.checks.context import Context

FAR = np.iinfo(np.int64).max
_WRITE, _GM, _STATE = 2, 0, int(Space.STATE)


class Suspects(NamedTuple):
    """Numbers of accesses that need a closer look, by what for."""

    outside: np.ndarray
    misaligned: np.ndarray
    beyond_tile: np.ndarray
    gm: np.ndarray
    """All that are in GM."""
    beyond_array: np.ndarray
    """Writes that begin in an on-chip array of any launch, and end behind it."""
    state: np.ndarray
    """All of what a core keeps beside its memories (unaligned registers)."""
    by_register: np.ndarray
    """The first one of a vector register that is known by number, if there is any."""


def look_over(context: Context) -> Suspects:
    """The accesses of a trace that :func:`find_suspects` finds."""
    trace = context.trace
    floor, ceiling = np.zeros(256, np.int64), np.full(256, FAR)
    floor[[Space.GM, Space.STATE]] = -FAR
    for name, limits in context.profile.spaces.items():
        if name != Space.GM.name:
            ceiling[Space[name]] = limits.capacity - limits.reserved
    turns = np.where(trace.shapes["turns"], trace.shapes["n1"], 1).astype(np.int64)
    columns = (
        *reaches(trace.shapes), turns, np.ascontiguousarray(trace.shapes["s1"]), floor, ceiling, _tile_ends(trace),
        *_tiles_by_address(Tiles(trace)), *_arrays(trace),
    )  # fmt: skip
    given = [context.as_sequence(column) for column in columns]
    found, counts = np.empty((7, len(trace.accesses)), np.int64), np.zeros(7, np.int64)
    find = context.loop(find_suspects)
    for begin, end in trace.stretches("looking over all accesses", len(trace.accesses)):
        find(context.tables.accesses, *given, FAR, found, counts, begin, end)
    return Suspects(*(numbers[:count].copy() for numbers, count in zip(found, counts, strict=True)))


def _tile_ends(trace: Trace) -> np.ndarray:
    """For each object number, where its tile ends; 0 where its end must be looked up by address or is not known."""
    ends = np.zeros(len(trace.objects) + 1, np.int64)
    for number, data in enumerate(trace.objects, start=1):
        is_tile = data.get("type") == "tile" and data.get("address", -1) >= 0
        ends[number] = tile_bytes(data)[1] if is_tile else FAR
    return ends


def _tiles_by_address(tiles: Tiles) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """The tiles as :func:`tile_end` wants them."""
    spans = sorted((tile["space"], *tile_bytes(tile)) for tile in tiles.all)
    spaces, begins, ends = np.array(spans, np.int64).reshape(-1, 3).T
    first = np.searchsorted(spaces, np.arange(257))
    spaces_used = [(low, high) for low, high in pairwise(first.tolist()) if low < high]
    farthest = [np.maximum.accumulate(ends[low:high]) for low, high in spaces_used]
    return first, np.ascontiguousarray(begins), np.concatenate([ends[:0], *farthest])


def _arrays(trace: Trace) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """The on-chip arrays of all launches: where those of each space begin in the list, their first bytes, their ends."""
    spans = {
        (int(note["space"]), int(note["start"]), int(note["start"] + note["size"]))
        for note in trace.noted("local_array")
    }
    spaces, begins, ends = np.array(sorted(spans), np.int64).reshape(-1, 3).T
    first = np.searchsorted(spaces, np.arange(257))
    return first, np.ascontiguousarray(begins), np.ascontiguousarray(ends)


def rounded(end: int) -> int:
    """Where an array's end counts: transfers write whole blocks of 32 bytes."""
    return (end + 31) // 32 * 32


# The loop


def farthest(start: int, length: int, turns: int, step: int, begin: int, end: int) -> int:
    """How far that of a row's calls reaches which begins last in [begin, end); ``begin`` where none does.

    The calls are the turns of a loop: ``length`` bytes each, ``step`` apart.
    """
    turn = 0
    if step > 0:
        turn = min((end - 1 - start) // step, turns - 1)
    elif step < 0 and start >= end:
        turn = (start - end) // -step + 1
    at = start + turn * step
    return at + length if 0 <= turn < turns and begin <= at < end else begin


def tile_end(tiles: Any, begins: Any, reaches: Any, space: int, start: int, far: int) -> int:
    """Where the tile that holds a byte ends; ``far`` where none does.

    ``begins`` are the first bytes of the tiles, those of space s from ``tiles[s]`` to ``tiles[s + 1]`` in order;
    ``reaches`` how far a tile of that space up to that one reaches. Of several tiles in one place, the one that reaches
    farthest counts: it may be the one that is meant.
    """
    low, high = tiles[space], tiles[space + 1]
    first = low
    while low < high:
        middle = (low + high) // 2
        if begins[middle] <= start:
            low = middle + 1
        else:
            high = middle
    return reaches[low - 1] if low > first and reaches[low - 1] > start else far


def find_suspects(
    accesses: Any, before: Any, behind: Any, turns: Any, steps: Any, floor: Any, ceiling: Any, ends: Any, tiles: Any,
    begins: Any, reaches: Any, arrays: Any, array_begins: Any, array_ends: Any, far: int, found: Any, counts: Any,
    since: int, until: int,
) -> None:  # fmt: skip
    """Find the accesses that need a closer look, of those from ``since`` to ``until``.

    Args:
        accesses: the table: an array of records, or a list of mappings.
        before, behind: how far the bursts of each shape lie before its first one, and behind it.
        turns, steps: how many calls in turn the bursts of each shape are, and how far these lie apart.
        floor, ceiling: the first byte of each space and one past its last.
        ends: where the tile of each object ends; 0 where its end must be looked up by address.
        tiles, begins, reaches, far: see :func:`tile_end`; ``begins`` is empty where there are no tiles.
        arrays, array_begins, array_ends: the on-chip arrays, those of space s from ``arrays[s]`` to ``arrays[s + 1]``.
        found: filled; int64[7, accesses]: as in :class:`Suspects`.
        counts: filled; how many of each so far.
    """
    any_tiles = len(begins) > 0
    for a in range(since, until):
        access = accesses[a]
        space, start, shape = int(access["space"]), access["start"], access["shape"]
        high = start + access["length"] + behind[shape]
        if high > ceiling[space] or start + before[shape] < floor[space]:
            found[0, counts[0]] = a
            counts[0] += 1
        if start & ((1 << int(access["align"])) - 1):
            found[1, counts[1]] = a
            counts[1] += 1
        if space == _GM:
            found[3, counts[3]] = a
            counts[3] += 1
        if any_tiles and access["mode"] == _WRITE:
            reach = high if turns[shape] == 1 else start + access["length"]
            for turn in range(turns[shape]):
                end = ends[access["object"]]
                if end == 0:
                    end = tile_end(tiles, begins, reaches, space, start + turn * steps[shape], far)
                if reach + turn * steps[shape] > end:
                    found[2, counts[2]] = a
                    counts[2] += 1
                    break
        if access["mode"] == _WRITE:
            for k in range(arrays[space], arrays[space + 1]):
                begin, end = array_begins[k], array_ends[k]
                reach = high if begin <= start < end else begin
                if turns[shape] > 1:
                    reach = farthest(start, access["length"], turns[shape], steps[shape], begin, end)
                if reach > rounded(end):
                    found[4, counts[4]] = a
                    counts[4] += 1
                    break
        if space == _STATE:
            found[5, counts[5]] = a
            counts[5] += 1
        elif access["unused"] > 1 and counts[6] == 0:
            found[6, 0] = a
            counts[6] = 1
