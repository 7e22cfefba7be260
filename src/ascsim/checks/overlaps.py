"""Tiles that lie across each other: a read through one of bytes that the other wrote since.

Tiles inside each other, or in one place, are left alone: views, reshaped tiles and memory used again look the same. What
lies across the end of another tile is a wrong address or a tile that grew, and it shows when data of the one are read
after the other was written.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from ascsim.checks.context import Context, Found
from ascsim.checks.naming import bytes_text, describe, tile_bytes
from ascsim.checks.spans import Intervals, common, merged, touched, without
from ascsim.diagnostics import CATALOGUE, Severity
from ascsim.machine.trace import Mode

_LOOKED_AT = 20_000
"""So many accesses of a pair of tiles are looked at on each core."""

CATALOGUE.add(
    "B010", Severity.WARNING, "Tiles overlap while both hold data",
    "Two tiles lie across each other in memory, and data of the one were read after the other had been written over "
    "them. What was read is the other tile's data.\n\n"
    "Move one of the tiles: the address of each must be at least the end of the one before it. If the memory is meant to "
    "be used again, write the first tile again before it is read.\n\n"
    "Example: a 16x64 float tile at UB 0x0 takes 4096 bytes; the next one at 0x800 lies across it.",
)  # fmt: skip


def check(context: Context) -> Iterator[Found]:
    """Findings of tiles that overwrote each other."""
    pairs = _pairs(context)
    if not pairs:
        return
    histories = _Histories(context)
    for one, other in pairs:
        runs = list(histories.of([*one, *other]))
        yield from _clashes(context, histories, runs, one)
        yield from _clashes(context, histories, runs, other)


class _Histories:
    """What became of some tiles, core by core."""

    def __init__(self, context: Context) -> None:
        trace = context.trace
        rows = trace.rows_of(np.arange(len(trace.accesses)))
        self._trace = trace
        self._core = context.cores_of(rows)
        order = np.argsort(context.positions(rows), kind="stable")
        by_object = np.argsort(trace.accesses["object"][order], kind="stable")
        self._turn = np.empty(len(order), np.int64)  # of each access
        self._turn[order] = np.arange(len(order))
        self._numbers = order[by_object]
        self._first = np.searchsorted(trace.accesses["object"][self._numbers], np.arange(len(trace.objects) + 2))
        self._bytes: dict[bytes, Intervals] = {}

    def of(self, objects: list[int]) -> Iterator[list[int]]:
        """The accesses to some objects in order, a list a core; a core that does as another did is left out."""
        numbers = np.concatenate([self._numbers[self._first[o] : self._first[o + 1]] for o in objects])
        numbers = numbers[np.argsort(self._turn[numbers], kind="stable")]
        told = set()
        cuts = np.flatnonzero(np.diff(self._core[numbers])) + 1
        for run in np.split(numbers, cuts):
            records = self._trace.accesses[run].tobytes()
            if records not in told:
                told.add(records)
                yield run[:_LOOKED_AT].tolist()

    def touched(self, number: int) -> Intervals:
        """The bytes of an access."""
        record = self._trace.accesses[number]
        key = bytes(record[["start", "length", "shape", "mask"]].tobytes())
        known = self._bytes.get(key)
        if known is None:
            known = self._bytes[key] = touched(self._trace, number)
        return known


def _pairs(context: Context) -> list[tuple[list[int], list[int]]]:
    """Places of tiles, each with the numbers of its objects, that overlap in part."""
    places: dict[tuple[int, int, int], list[int]] = {}
    for number, data in enumerate(context.trace.objects, start=1):
        if data.get("type") == "tile" and data.get("address", -1) >= 0:
            places.setdefault((data["space"], *tile_bytes(data)), []).append(number)
    ordered = sorted(places)
    pairs = []
    for i, (space, begin, end) in enumerate(ordered):
        for other in ordered[i + 1 :]:
            if other[0] != space or other[1] >= end:
                break
            if begin < other[1] and end < other[2]:
                pairs.append((places[space, begin, end], places[other]))
    return pairs


def _clashes(context: Context, histories: _Histories, runs: list[list[int]], mine: list[int]) -> Iterator[Found]:
    """The first read through a tile of what another wrote over it."""
    accesses = context.trace.accesses
    for run in runs:
        own: Intervals = []  # what this tile wrote
        lost: Intervals = []  # of these, what the other wrote since
        writer = -1
        for number in run:
            is_mine, is_write = int(accesses["object"][number]) in mine, accesses["mode"][number] == Mode.WRITE
            bytes_ = histories.touched(number)
            if is_mine and is_write:
                own, lost = merged([*own, *bytes_]), without(lost, bytes_)
            elif is_write and (over := common(own, bytes_)):
                lost = merged([*lost, *over])
                writer = number
            elif is_mine and (read := common(lost, bytes_)):
                yield _found(context, number, writer, read)
                return


def _found(context: Context, reader: int, writer: int, shared: Intervals) -> Found:
    trace = context.trace
    rows = tuple(int(trace.rows_of(number)) for number in (reader, writer))
    mine, other = (_tile(context, number) for number in (reader, writer))
    space = int(trace.accesses["space"][reader])
    return Found(
        "B010", Severity.WARNING, f"read of {describe(mine)} after {describe(other)} was written over it",
        rows,
        tuple(f"{what} by {context.name(context.root(row))}" for what, row in zip(("read", "write"), rows, strict=True)),
        (f"read and overwritten: {bytes_text(space, shared)}",),
        f"Leave the two apart: the first ends at {min(tile_bytes(mine)[1], tile_bytes(other)[1]):#x}.",
        key=(int(trace.accesses["object"][reader]), int(trace.accesses["object"][writer])), yields=rows,
    )  # fmt: skip


def _tile(context: Context, number: int) -> dict[str, Any]:
    return context.trace.objects[int(context.trace.accesses["object"][number]) - 1]
