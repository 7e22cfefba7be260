"""What lies where in the on-chip memories, and from when to when.

A *region* is the place of a tile or a buffer. It is *live* from a write to the last read before the next write: a write
that follows a read begins another life. Reads through a view of what was written as a larger region keep that alive.
Tiles that lie across each other (neither inside the other) and live at one time *overlap*; of anything else it is not
known where it ends.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np

from ascsim.checks.naming import describe, space_name, tile_bytes
from ascsim.checks.spans import clusters, extent
from ascsim.machine.trace import Mode, Trace
from ascsim.machine.words import Space
from ascsim.report.page.bars import Bars
from ascsim.report.page.columns import packed
from ascsim.timing import Schedule

_OVERLAPS = 200
"""So many overlaps are listed."""
_SMALL = 32
"""Accesses of fewer bytes are of elements."""


@dataclass(frozen=True)
class Region:
    """Bytes ``[low, high)`` of a space, and what they are: a tile's place, or what was touched."""

    space: int
    low: int
    high: int
    name: str
    text: str
    is_tile: bool = False


@dataclass(frozen=True)
class Lives:
    """When regions are live (int64, one entry a life): ``core`` of the launches, ``region``, ``begin``, ``end``, and
    ``is_written``: whether it began with a write."""

    core: np.ndarray
    region: np.ndarray
    begin: np.ndarray
    end: np.ndarray
    is_written: np.ndarray


def memory_of(schedule: Schedule, bars: Bars) -> dict[str, Any]:
    """What the page reads of the memories."""
    trace = schedule.trace
    numbers = _on_chip(schedule)
    regions, region_of = regions_of(trace, numbers)
    owner = trace.rows_of(numbers)
    lives = lives_of(schedule, regions, region_of, owner, trace.accesses["mode"][numbers] == Mode.WRITE)
    slot_numbers = {core["slot"]: number for number, core in enumerate(bars.cores)}
    slot = np.array([slot_numbers[core.slot] for core in schedule.cores], np.int64)
    touches = _touches(schedule, bars, owner, region_of, trace.accesses["mode"][numbers])
    peaks = peaks_of(regions, lives, slot)
    by_place = np.lexsort((lives.begin, lives.region, slot[lives.core]))
    return {
        "regions": [
            {"space": space_name(r.space), "low": r.low, "high": r.high, "name": r.name, "text": r.text} for r in regions
        ],
        "spaces": [
            {
                "name": space_name(space), "capacity": schedule.profile.spaces[space_name(space)].capacity,
                "highest": max(r.high for r in regions if r.space == space), "peak": peaks[space],
            }
            for space in sorted({r.space for r in regions}) if space_name(space) in schedule.profile.spaces
        ],
        "lives": {
            "core": packed(slot[lives.core[by_place]], "u2"),
            "region": packed(lives.region[by_place], "i4"),
            "begin": packed(lives.begin[by_place], "i4"),
            "end": packed(lives.end[by_place], "i4"),
        },
        "touches": {
            "bar": packed(touches[0], "i4"),
            "region": packed(touches[1], "i4"),
            "mode": packed(touches[2], "u1"),
        },
        "overlaps": overlaps_of(regions, lives, slot),
    }  # fmt: skip


def _touches(schedule: Schedule, bars: Bars, owner: np.ndarray, region_of: np.ndarray, mode: np.ndarray) -> np.ndarray:
    """(bar, region, mode) of every access, in order; an instruction with steps touches what they touch."""
    roots = schedule.roots[owner]
    table = np.stack([np.append(bars.number[owner], bars.number[roots]), np.tile(region_of, 2), np.tile(mode, 2)])
    return np.unique(table[:, table[0] >= 0], axis=1)


def _on_chip(schedule: Schedule) -> np.ndarray:
    """The accesses of on-chip memories by rows that have a time."""
    accesses = schedule.trace.accesses
    is_local = (accesses["space"] != Space.GM) & (accesses["space"] != Space.STATE) & (accesses["length"] > 0)
    numbers = np.flatnonzero(is_local)
    return numbers[schedule.start[schedule.trace.rows_of(numbers)] >= 0] if len(numbers) else numbers


def regions_of(trace: Trace, numbers: np.ndarray) -> tuple[list[Region], np.ndarray]:
    """The regions that some accesses touch, and for each access the number of its region.

    A tile is its place. A named buffer is what is touched under its name, pieces that do not touch apart. Accesses
    that name nothing belong to the smallest region around them, or to the only buffer that they reach into; what is
    left makes regions without a name.
    """
    accesses = trace.accesses[numbers]
    low, high = extent(accesses, trace.shapes)
    low, high = low.astype(np.int64), high.astype(np.int64)
    space = accesses["space"].astype(np.int64)
    region_of = np.full(len(numbers), -1, np.int64)
    regions: list[Region] = []
    known: dict[tuple[int, int, int], int] = {}

    def add(region: Region) -> int:
        number = known.setdefault((region.space, region.low, region.high), len(regions))
        if number == len(regions):
            regions.append(region)
        return number

    named = accesses["object"].astype(np.int64)
    for number in np.unique(named[named > 0]).tolist():
        if number > len(trace.objects):
            continue
        data, mine = trace.objects[number - 1], np.flatnonzero(named == number)
        name = str(data.get("name") or "")
        if data.get("type") == "tile" and data.get("address", -1) >= 0:
            size = f"{data['rows']}x{data['cols']} {data['dtype']}"
            region_of[mine] = add(Region(data["space"], *tile_bytes(data), name or size, describe(data), True))
            continue
        for members, of, begin, end in _pieces(mine, space, low, high):
            region_of[members] = add(_buffer(name, of, begin, end))
    _fill(regions, region_of, space, low, high)
    buffers = [n for n, region in enumerate(regions) if region.name and not region.is_tile]
    for members, of, begin, end in _pieces(np.flatnonzero(region_of < 0), space, low, high):
        met = [n for n in buffers if regions[n].space == of and regions[n].low < end and begin < regions[n].high]
        if len(met) == 1:  # more of that buffer than what was touched under its name
            one = regions[met[0]]
            regions[met[0]] = _buffer(one.name, of, min(one.low, begin), max(one.high, end))
        region_of[members] = met[0] if len(met) == 1 else add(_buffer("", of, begin, end))
    return regions, region_of


def _buffer(name: str, space: int, low: int, high: int) -> Region:
    where = f"{high - low} bytes at {space_name(space)} {low:#x}"
    return Region(space, low, high, name, f"{name}, {where}" if name else where)


def _pieces(
    numbers: np.ndarray, space: np.ndarray, low: np.ndarray, high: np.ndarray
) -> Iterator[tuple[np.ndarray, int, int, int]]:
    """Accesses that share bytes: their numbers, space, first byte, and one past the last.

    Small ones need but lie side by side: an array that is touched element by element.
    """
    if not len(numbers):
        return
    reach = high[numbers] + (high[numbers] - low[numbers] < _SMALL)
    pieces = clusters(space[numbers], low[numbers], reach)
    order = np.argsort(pieces, kind="stable")
    for part in np.split(numbers[order], np.flatnonzero(np.diff(pieces[order])) + 1):
        yield part, int(space[part[0]]), int(low[part].min()), int(high[part].max())


def _fill(regions: list[Region], region_of: np.ndarray, space: np.ndarray, low: np.ndarray, high: np.ndarray) -> None:
    """Give accesses without a region the smallest one around them."""
    rest = np.flatnonzero(region_of < 0)
    for number in sorted(range(len(regions)), key=lambda n: regions[n].high - regions[n].low):
        if not len(rest):
            return
        region = regions[number]
        inside = (space[rest] == region.space) & (low[rest] >= region.low) & (high[rest] <= region.high)
        region_of[rest[inside]] = number
        rest = rest[~inside]


def lives_of(
    schedule: Schedule, regions: list[Region], region_of: np.ndarray, owner: np.ndarray, writes: np.ndarray
) -> Lives:
    """When regions are live, from the accesses: their regions, rows, and whether they write."""
    begin, end, core = (c[owner].astype(np.int64) for c in (schedule.start, schedule.end, schedule.core))
    lives = _lives(core, region_of, begin, end, writes)
    reach = int(lives.end.max(initial=0)) + 1
    when = lives.core * reach + lives.begin
    places = _Places(regions)
    for number in np.unique(lives.region[~lives.is_written]).tolist():
        views = np.flatnonzero((lives.region == number) & ~lives.is_written)
        source, since = np.full(len(views), -1), np.full(len(views), -1)
        for around in places.around(number):  # whose data are they? those of what was written last
            own = np.flatnonzero(lives.region == around)
            at = own[np.maximum(np.searchsorted(when[own], when[views], side="right") - 1, 0)] if len(own) else own
            if not len(at):
                continue
            known = (
                lives.is_written[at] & (lives.core[at] == lives.core[views]) & (lives.begin[at] <= lives.begin[views])
            )
            later = known & (lives.begin[at] > since)
            source[later], since[later] = at[later], lives.begin[at[later]]
        seen = source >= 0
        np.maximum.at(lives.end, source[seen], lives.end[views[seen]])
    return lives


def _lives(core: np.ndarray, region: np.ndarray, begin: np.ndarray, end: np.ndarray, writes: np.ndarray) -> Lives:
    order = np.lexsort((writes, begin, region, core))  # of one instruction, reads come first
    core, region, begin, end, writes = (column[order] for column in (core, region, begin, end, writes))
    fresh = np.ones(len(order), bool)
    same = (core[1:] == core[:-1]) & (region[1:] == region[:-1])
    fresh[1:] = ~same | (writes[1:] & ~writes[:-1] & (begin[1:] > begin[:-1]))
    first = np.flatnonzero(fresh)
    if not len(first):
        none = np.zeros(0, np.int64)
        return Lives(none, none, none, none, none.astype(bool))
    return Lives(core[first], region[first], begin[first], np.maximum.reduceat(end, first), writes[first])


class _Places:
    """Where regions are (int64 arrays): ``space``, ``low``, ``high``."""

    def __init__(self, regions: list[Region]) -> None:
        self.space = np.array([region.space for region in regions], np.int64)
        self.low = np.array([region.low for region in regions], np.int64)
        self.high = np.array([region.high for region in regions], np.int64)

    def around(self, number: int) -> list[int]:
        """The other regions around one."""
        holds = (self.low <= self.low[number]) & (self.high[number] <= self.high) & (self.space == self.space[number])
        holds[number] = False
        return np.flatnonzero(holds).tolist()

    def across(self, number: int) -> list[int]:
        """The regions behind one in the list that share bytes with it, and neither lies in the other."""
        low, high = np.maximum(self.low, self.low[number]), np.minimum(self.high, self.high[number])
        shares = (low < high) & (self.space == self.space[number])
        shares &= ~((low == self.low) & (high == self.high))
        shares &= ~((low == self.low[number]) & (high == self.high[number]))
        return [other for other in np.flatnonzero(shares).tolist() if other > number]


def peaks_of(regions: list[Region], lives: Lives, slot: np.ndarray) -> dict[int, dict[str, int]]:
    """For each space the most bytes that were live at once on one core, when, and on which of the chip's cores."""
    peaks: dict[int, dict[str, int]] = {}
    places = _Places(regions)
    for space in sorted({region.space for region in regions}):
        mine = places.space == space
        edges = np.unique(np.concatenate([places.low[mine], places.high[mine]])).tolist()
        best = {"bytes": 0, "at": 0, "core": 0}
        changes: dict[int, list[np.ndarray]] = {}
        for low, high in pairwise(edges):
            over = mine & (places.low <= low) & (high <= places.high)
            numbers = np.flatnonzero(over[lives.region])
            for core in np.unique(lives.core[numbers]).tolist():
                own = numbers[lives.core[numbers] == core]
                begin, end = _joined(lives.begin[own], lives.end[own])
                size = np.full(len(begin), high - low)
                changes.setdefault(core, []).append(np.stack([np.append(begin, end), np.append(size, -size)]))
        for core, parts in changes.items():
            table = np.concatenate(parts, axis=1)
            table = table[:, np.lexsort((table[1], table[0]))]  # at one time, ends come before begins
            level = np.cumsum(table[1])
            if int(level.max()) > best["bytes"]:
                at = int(level.argmax())
                best = {"bytes": int(level[at]), "at": int(table[0, at]), "core": int(slot[core])}
        peaks[space] = best
    return peaks


def _joined(begin: np.ndarray, end: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Times as intervals that do not touch."""
    order = np.argsort(begin, kind="stable")
    begin, reach = begin[order], np.maximum.accumulate(end[order])
    fresh = np.ones(len(order), bool)
    fresh[1:] = begin[1:] > reach[:-1]
    first = np.flatnonzero(fresh)
    return begin[first], reach[np.append(first[1:], len(order)) - 1]


def overlaps_of(regions: list[Region], lives: Lives, slot: np.ndarray) -> list[dict[str, int]]:
    """Tiles that lie across each other while both are live: bytes, core, from when to when."""
    found: list[dict[str, int]] = []
    places = _Places(regions)
    for a in range(len(regions)):
        for b in places.across(a) if regions[a].is_tile else ():
            if not regions[b].is_tile:
                continue
            low, high = max(regions[a].low, regions[b].low), min(regions[a].high, regions[b].high)
            for n in np.flatnonzero(lives.region == a).tolist():
                both = (lives.region == b) & (lives.core == lives.core[n])
                both &= (lives.begin < lives.end[n]) & (lives.begin[n] < lives.end)
                for m in np.flatnonzero(both).tolist():
                    begin, end = max(lives.begin[n], lives.begin[m]), min(lives.end[n], lives.end[m])
                    where = {"a": a, "b": b, "low": low, "high": high, "core": int(slot[lives.core[n]])}
                    found.append({**where, "begin": int(begin), "end": int(end)})
                    if len(found) >= _OVERLAPS:
                        return found
    return found
