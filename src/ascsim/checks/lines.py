"""The scalar units' data caches, line by line: what is read stale, what is not written back, and who sees what of whom.

Each core's scalar unit has a cache of its own over global memory; copies, atomics and other cores go past it. What is in a
line stays there until ``dcci`` drops it, and what was written to a line is in memory only then (or when the kernel ends).
The trace is followed in the order in which it was recorded, and compared byte by byte.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field

import numpy as np

from ascsim.checks.spans import extent, merged, touched
from ascsim.machine.trace import ATOMIC, CACHE_LINE, CACHED, Kind, Mode, Trace
from ascsim.machine.visit import Visit
from ascsim.machine.words import Space

MOST = 20_000
"""So many accesses that share a line with the scalar unit are followed."""
STALE, BEHIND = "D001", "D002"

Pair = tuple[int, int]


@dataclass
class Lines:
    """What was found.

    Attributes:
        conflicts: code and accesses (later, earlier) of each conflict: the first of those of two instructions, and how
            many there are.
        seen: accesses (read, write): what the scalar unit of one core read of what that of another had written, on purpose.
        coherent: the accesses of scalar units that mean to share: atomics, and those to lines that their core drops.
        left: how many accesses were too many.
    """

    conflicts: list[tuple[str, Pair, int]] = field(default_factory=list)
    seen: list[Pair] = field(default_factory=list)
    coherent: frozenset[int] = frozenset()
    left: int = 0


@dataclass
class _Line:
    """What is known of one line of global memory: who has it in its cache since which row, and who wrote what."""

    since: dict[int, int] = field(default_factory=dict)
    dirty: dict[int, list[tuple[int, int, int]]] = field(default_factory=dict)
    """By core: bytes (first, one past the last) that it wrote and did not write back, and the access."""
    written: list[tuple[int, int, int, int, bool]] = field(default_factory=list)
    """Bytes that were written, the access, the core, and whether its scalar unit did it."""


def follow(
    trace: Trace, visit: Visit, cores_of: Callable[[np.ndarray | int], np.ndarray], gm: np.ndarray, rows: np.ndarray
) -> Lines:
    """Follow the accesses to global memory, whose numbers ``gm`` are, by ``rows``."""
    found = Lines()
    if not len(gm):
        return found
    (flags,) = trace.fields(rows, "flags")
    scalar = (flags & (CACHED | ATOMIC)) != 0
    if not scalar.any():
        return found
    numbers = gm[_shares_a_line(trace, gm, scalar)]
    found.left = max(len(numbers) - MOST, 0)
    numbers = numbers[:MOST]
    drops = np.flatnonzero(trace.accesses["space"] == Space.STATE)
    drops = drops[trace.kind[trace.rows_of(drops)] == Kind.CACHE]
    dropped = {(int(cores_of(trace.rows_of(n))), _dropped(trace, n)) for n in drops.tolist()}
    _Follower(trace, visit, cores_of, found, dropped).run(numbers, drops)
    return found


def _shares_a_line(trace: Trace, gm: np.ndarray, scalar: np.ndarray) -> np.ndarray:
    """Whether each access shares a line with a scalar one, by their extents."""
    low, high = extent(trace.accessed(gm), trace.shapes)
    low, high = low // CACHE_LINE, -(-high // CACHE_LINE)
    spans = merged(list(zip(low[scalar].tolist(), high[scalar].tolist(), strict=True)))
    begins, ends = (np.array(side) for side in zip(*spans, strict=True))
    place = np.searchsorted(ends, low, side="right")
    return (place < len(begins)) & (begins[np.minimum(place, len(begins) - 1)] < high)


def _dropped(trace: Trace, number: int) -> int:
    """The line that a row drops; -1 for all."""
    access = trace.accesses[number]
    return int(access["start"]) // CACHE_LINE if access["length"] else -1


@dataclass
class _Follower:
    trace: Trace
    visit: Visit
    cores_of: Callable[[np.ndarray | int], np.ndarray]
    found: Lines
    dropped: set[tuple[int, int]]
    """(core, line) that is dropped at some time; -1: all lines."""
    lines: dict[int, _Line] = field(default_factory=dict)

    def run(self, numbers: np.ndarray, drops: np.ndarray) -> None:
        trace = self.trace
        ends = trace.marks[trace.kind[trace.marks] == Kind.LAUNCH_END]
        both = np.concatenate((numbers, drops))
        events = [*zip(trace.rows_of(both).tolist(), both.tolist(), strict=True), *((row, -1) for row in ends.tolist())]
        first: dict[tuple[str, int, int], Pair] = {}
        counts: Counter[tuple[str, int, int]] = Counter()
        coherent: set[int] = set()
        launch = -1
        for row, number in sorted(events):
            core = int(self.cores_of(row))
            if self.visit.launch[core] != launch:
                launch, self.lines = int(self.visit.launch[core]), {}
            if number < 0:
                self._drop(self.lines.values(), core)
            elif trace.kind[row] == Kind.CACHE:
                place = _dropped(trace, number)
                known = self.lines.get(place)
                self._drop(self.lines.values() if place < 0 else [known] if known else [], core)
            else:
                if self._is_coherent(core, row, number):
                    coherent.add(number)
                for code, other in dict(self._access(core, row, number)).items():
                    sites = (int(trace.rows["site"][trace.root(int(trace.rows_of(n)))]) for n in (number, other))
                    key = (code, *sites)
                    first.setdefault(key, (number, other))  # type: ignore[arg-type]
                    counts[key] += 1  # type: ignore[index]
        self.found.conflicts = [(key[0], pair, counts[key]) for key, pair in first.items()]
        self.found.coherent = frozenset(coherent)

    def _drop(self, lines: Iterable[_Line], core: int) -> None:
        """The core's cache has these lines no longer; what it wrote is in memory."""
        for line in lines:
            line.since.pop(core, None)
            line.dirty.pop(core, None)

    def _is_coherent(self, core: int, row: int, number: int) -> bool:
        flags = int(self.trace.rows["flags"][row])
        if flags & ATOMIC:
            return True
        place = int(self.trace.accesses["start"][number]) // CACHE_LINE
        return bool(flags & CACHED) and ((core, place) in self.dropped or (core, -1) in self.dropped)

    def _access(self, core: int, row: int, number: int) -> Iterator[tuple[str, int]]:
        """Follow one access; gives its conflicts: a code, and the earlier access."""
        trace = self.trace
        flags = int(trace.rows["flags"][row])
        is_cached, is_scalar = bool(flags & CACHED), bool(flags & (CACHED | ATOMIC))
        writes = trace.accesses["mode"][number] == Mode.WRITE
        for low, high in touched(trace, number):
            for place in range(low // CACHE_LINE, -(-high // CACHE_LINE)):
                line = self.lines.setdefault(place, _Line())
                begin, end = max(low, place * CACHE_LINE), min(high, (place + 1) * CACHE_LINE)
                if is_cached:
                    line.since.setdefault(core, row)
                if writes:
                    if is_cached:
                        line.dirty.setdefault(core, []).append((begin, end, number))
                    line.written.append((begin, end, number, core, is_scalar))
                    continue
                behind = [
                    part for owner, dirty in line.dirty.items() if owner != core or not is_cached for part in dirty
                ]
                hit = _newest(behind, begin, end)
                if hit is not None:
                    yield BEHIND, hit
                    continue
                # what came into being behind the back of the core's scalar unit
                others = [(a, b, n) for a, b, n, who, by in line.written if who != core or not by]
                hit = _newest(others, begin, end)
                if hit is None or not is_scalar:
                    continue
                if is_cached and trace.rows_of(hit) > line.since[core]:
                    yield STALE, hit
                elif int(trace.rows["flags"][trace.rows_of(hit)]) & (CACHED | ATOMIC) and self._is_coherent(
                    core, row, number
                ):
                    self.found.seen.append((number, hit))


def _newest(written: list[tuple[int, int, int]], begin: int, end: int) -> int | None:
    """The newest of some writes that shares a byte."""
    return max((number for low, high, number in written if low < end and begin < high), default=None)
