"""What the cores of a launch know of each other, where they signal each other.

The same model as :mod:`ascsim.checks.clocks`, over all cores of a launch at once and over synchronisation alone: an
arrival carries what its pipe knows and has completed, a wait joins what all arrivals of its signal carried. Whether two
accesses of two cores are in order can then be asked; and what a wait learns of its own core's pipes, by way of others, is
what the loop over one core goes on with.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Collection, Sequence
from dataclasses import dataclass, field

import numpy as np

from ascsim.machine.trace import DATA_BARRIER, Kind, Trace
from ascsim.machine.visit import Flags, Visit
from ascsim.machine.words import N_PIPES, Pipe

KINDS = (Kind.SET_FLAG, Kind.WAIT_FLAG, Kind.BARRIER, Kind.LOCK, Kind.UNLOCK, Kind.ARRIVE, Kind.AWAIT)
"""The rows that order others."""


@dataclass
class Order:
    """The order between cores of the launches that have signals.

    Attributes:
        awaited: int64[waits, pipes], in visiting order: which stamps of each pipe of its own core a wait knows complete.
        launches: the launches that have signals, by their number in :class:`~ascsim.machine.visit.Visit`.
    """

    awaited: np.ndarray = field(default_factory=lambda: np.zeros((0, N_PIPES), np.int64))
    launches: frozenset[int] = frozenset()
    _known: dict[tuple[int, int], tuple[list[int], list[np.ndarray]]] = field(default_factory=dict)
    _first_core: dict[int, int] = field(default_factory=dict)

    def knows(self, core: int, pipe: int, position: int, other: int, other_pipe: int, other_position: int) -> bool:
        """Whether what ``other_pipe`` of core ``other`` did at a position is complete when ``pipe`` of ``core`` is at its.

        Cores are those of the visit, of one launch; positions those of rows in it.
        """
        positions, clocks = self._known.get((core, pipe), ([], []))
        number = bisect_left(positions, position) - 1
        if number < 0:
            return False
        column = (other - self._first_core[core]) * N_PIPES + other_pipe
        return bool(clocks[number][column] > other_position)


def order_of(
    trace: Trace, visit: Visit, flags: Flags, positions: np.ndarray, rows: np.ndarray, ordered: np.ndarray,
    seen: Sequence[tuple[int, int]] = (), shared: Collection[int] = (),
) -> Order:  # fmt: skip
    """Follow all synchronisation of the launches that have signals, or whose scalar units share memory on purpose.

    Args:
        trace, visit, flags: the trace, its cores in order, its flag operations.
        positions: of ``rows`` in the visit.
        rows: the rows of flags, barriers, locks and signals, and those of ``seen``, in the order in which they were
            carried out.
        ordered: for each pipe, whether it keeps its own instructions in order.
        seen: rows (read, write): one core's scalar unit read what another one's wrote, as a signal.
        shared: the launches with memory that scalar units share.
    """
    kinds = trace.kind[rows]
    cores = np.searchsorted(visit.starts, positions, side="right") - 1
    waits = np.flatnonzero(kinds == Kind.AWAIT)
    if not len(waits) and not shared:
        return Order()
    launches = frozenset([*visit.launch[cores[waits]].tolist(), *shared])
    sources: dict[int, list[int]] = {}
    for reader, writer in seen:
        sources.setdefault(reader, []).append(writer)
    number_of = dict(zip(flags.row.tolist(), range(len(flags.row)), strict=True))
    order = Order(np.zeros((len(waits), N_PIPES), np.int64), launches)
    turn = {int(row): n for n, row in enumerate(rows[waits][np.argsort(positions[waits])].tolist())}
    for launch in launches:
        here = np.flatnonzero(visit.launch[cores] == launch)
        members = np.flatnonzero(visit.launch == launch)
        _follow(
            trace, flags, order, number_of, turn, ordered, sources, members, rows[here], positions[here], cores[here]
        )
    return order


def _follow(
    trace: Trace, flags: Flags, order: Order, number_of: dict[int, int], turn: dict[int, int], ordered: np.ndarray,
    sources: dict[int, list[int]], members: np.ndarray, rows: np.ndarray, positions: np.ndarray, cores: np.ndarray,
) -> None:  # fmt: skip
    """One launch. A clock is a vector: for each core and pipe, up to which position all it did is complete."""
    first = int(members[0])
    size = len(members) * N_PIPES
    clock = np.zeros((size, size), np.int64)
    carried: dict[int, np.ndarray] = {}
    released: dict[tuple[int, int, int], np.ndarray] = {}
    tokens: dict[int, np.ndarray] = {}
    written: dict[int, np.ndarray] = {}
    signals = {writer for writers in sources.values() for writer in writers}
    order._first_core.update({int(core): first for core in members})

    def learn(core: int, pipe: int, position: int, what: np.ndarray) -> None:
        own = (core - first) * N_PIPES
        pipes = range(N_PIPES) if pipe == Pipe.S else (pipe,)  # S issues for all
        for each in pipes:
            np.maximum(clock[own + each], what, out=clock[own + each])
            keep(core, each, position)

    def keep(core: int, pipe: int, position: int) -> None:
        row = clock[(core - first) * N_PIPES + pipe]
        at, clocks = order._known.setdefault((core, pipe), ([], []))
        own = slice((core - first) * N_PIPES, (core - first + 1) * N_PIPES)
        before = clocks[-1] if clocks else np.zeros(size, np.int64)
        changed = row != before
        changed[own] = False
        if changed.any():
            at.append(position)
            clocks.append(row.copy())

    for row, position, core in zip(rows.tolist(), positions.tolist(), cores.tolist(), strict=True):
        record = trace.rows[row]
        kind, pipe, pipe2, arg = (int(record[name]) for name in ("kind", "pipe", "pipe2", "arg"))
        own = (core - first) * N_PIPES
        at = own + pipe
        for writer in sources.get(row, ()):
            if writer in written:
                learn(core, pipe, position, written[writer])
        if row in signals:
            written[row] = clock[at].copy()
            written[row][at] = position + 1
        if kind in (Kind.SET_FLAG, Kind.UNLOCK, Kind.ARRIVE):
            done = clock[at].copy()
            done[at] = position
            if kind == Kind.SET_FLAG:
                carried[number_of[row]] = done
            elif kind == Kind.UNLOCK:
                released[core, arg, pipe] = done
            else:
                tokens[arg] = np.maximum(tokens[arg], done) if arg in tokens else done
        elif kind == Kind.WAIT_FLAG:
            partner = int(flags.partner[number_of[row]])
            done = carried.get(partner)
            if done is None:  # a fault of the flags, told elsewhere: as if the set stood here
                done = clock[own + pipe2].copy()
                done[own + pipe2] = position
            learn(core, pipe, position, done)
        elif kind == Kind.LOCK and not pipe2:
            for (holder_core, mutex, holder), done in released.items():
                if (holder_core, mutex) == (core, arg) and holder != pipe:
                    learn(core, pipe, position, done)
        elif kind == Kind.AWAIT:
            if arg in tokens:
                learn(core, pipe, position, tokens[arg])
            order.awaited[turn[row]] = clock[at][own : own + N_PIPES]
        elif kind == Kind.BARRIER and pipe == Pipe.ALL:
            everything = clock[own : own + N_PIPES].max(axis=0)
            everything[own : own + N_PIPES] = position
            learn(core, Pipe.S, position, everything)
        elif kind == Kind.BARRIER and pipe == Pipe.S and arg == DATA_BARRIER:
            clock[own : own + N_PIPES, at] = position
        elif kind == Kind.BARRIER and not ordered[pipe]:
            clock[at, at] = position
