"""The loop over all accesses that lets the ordinary ones go by.

Plain Python over sequences, in the part that Numba compiles, like :mod:`ascsim.checks.clocks`.
"""

from __future__ import annotations

from typing import Any

_WRITE = 2


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
    accesses: Any, before: Any, behind: Any, floor: Any, ceiling: Any, ends: Any, tiles: Any, begins: Any, reaches: Any,
    far: int, found: Any, counts: Any,
) -> None:  # fmt: skip
    """Find the accesses that need a closer look.

    Args:
        accesses: the table: an array of records, or a list of mappings.
        before, behind: how far the bursts of each shape lie before its first one, and behind it.
        floor, ceiling: the first byte of each space and one past its last.
        ends: where the tile of each object ends; 0 where its end must be looked up by address.
        tiles, begins, reaches, far: see :func:`tile_end`; ``begins`` is empty where there are no tiles.
        found: filled; int64[3, accesses]: outside their memory, misaligned, writing beyond their tile.
        counts: filled; how many of each.
    """
    any_tiles = len(begins) > 0
    for a in range(len(accesses)):
        access = accesses[a]
        space, start, shape = int(access["space"]), access["start"], access["shape"]
        high = start + access["length"] + behind[shape]
        if high > ceiling[space] or start + before[shape] < floor[space]:
            found[0, counts[0]] = a
            counts[0] += 1
        if start & ((1 << int(access["align"])) - 1):
            found[1, counts[1]] = a
            counts[1] += 1
        if any_tiles and access["mode"] == _WRITE:
            end = ends[access["object"]]
            if end == 0:
                end = tile_end(tiles, begins, reaches, space, start, far)
            if high > end:
                found[2, counts[2]] = a
                counts[2] += 1
