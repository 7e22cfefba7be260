"""Happens-before between the pipes of a core: the loop that finds unordered accesses to one byte.

The model. Each pipe starts its instructions in program order, and may start one before the last is complete; the
profile's ordered pipes keep dependent instructions of their own in order all the same, and an instruction of M may be
DONE_IN_ORDER by itself. Every pipe has a vector clock:
for each pipe, up to which of its instructions all are known to be complete.

========================  ================================================================================
an instruction on P       starts with P's clock
set_flag(P -> Q)          carries P's clock, and that all instructions of P so far are complete
wait_flag on Q            joins what its set carried into Q's clock
wait_flag on S            joins it into every pipe's: S issues for all pipes, and issues nothing while it waits
pipe_barrier(P)           all instructions of P so far are complete, for P
pipe_barrier(PIPE_ALL)    all instructions of all pipes so far are complete, for every pipe
unlock on P               leaves P's clock, and that all instructions of P so far are complete, with the mutex
wait of Q for a signal    joins what is known of its own core by way of others (:mod:`ascsim.checks.order`)
lock on Q                 joins what the other pipes left with the mutex into Q's clock
dsb (a barrier on S)      all reads and writes of S so far are complete, for every pipe: S issues for all of them
========================  ================================================================================

Assumed: a set_flag does not order its own pipe's later instructions, and being issued by S orders nothing: what S
itself reads or writes needs a flag like any other pipe's work. A wait whose set is missing or comes later is taken to
stand for a set at that place, so that one fault of the flags (which :mod:`ascsim.checks.sync` reports) is not told a
second time as races. In the same way a lock of a mutex that is locked is taken to stand behind its missing unlock.

Positions. Rows are visited core by core; the k-th visited row has stamp k, from 1. Clocks, and the shadow tables (last
write and last read of each block by each pipe), hold stamps, so a new core or launch needs no clearing: stamps from
before its start count as known.

A conflict is first looked for in the shadow tables, block by block, and then confirmed byte by byte against the rows of
that pipe that are not known to be complete, newest first. After a conflict the loop goes on as if the missing
synchronisation stood right there, and it looks at the pipe that worked last first: so one missing wait is one finding,
and what follows from it is none.

Everything here is plain Python over sequences, in the part that Numba compiles: short traces run it as it is (over
lists), long ones compiled (over arrays). See :mod:`ascsim.machine.native`.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from ascsim.machine.trace import DATA_BARRIER, DONE_IN_ORDER

RAW, WAR, WAW = 1, 2, 3
_INSTRUCTION, _SET_FLAG, _WAIT_FLAG, _BARRIER = 0, 1, 2, 3
_LOCK, _UNLOCK, _AWAIT = 9, 10, 12
_READ, _WRITE = 1, 2
_GM = 0
_PIPE_S, _PIPE_M, _PIPE_ALL = 0, 2, 6
_LOOKED_BACK = 256
"""So many stores are looked at for one that a load or store in a vector function shares a byte with."""
_MEM_BAR, _VV_ALL, _VST_VLD, _VST_VST = 8, 0, 1, 3
HIT_SLOTS = 8192
HITS = HIT_SLOTS // 2


HIT = np.dtype(
    [
        ("kind", "<i8"),
        ("times", "<i8"),
        ("later", "<i8"),
        ("earlier", "<i8"),
        ("pipes", "<i8"),
        ("later_site", "<i8"),
        ("earlier_site", "<i8"),
        ("later_mnemonic", "<i8"),
        ("earlier_mnemonic", "<i8"),
    ]
)
"""What was found, one entry a (kind, pipes, instructions by site): how often, and the first pair of accesses."""


PLACE = np.dtype([("base", "<i8"), ("blocks", "<i8"), ("bits", "<i8"), ("shift", "<i8")])
"""Where a space, or a cluster of GM, lies in the shadow tables: the first column, how many, log2 of the bytes of one,
and what turns an address into a byte counted from the first column."""


class Hits(NamedTuple):
    """Conflicts found. ``tally``: entries, conflicts without room, bursts that may still be compared byte by byte."""

    table: Any
    slots: Any
    tally: Any


class State(NamedTuple):
    """What the loop keeps: made outside, because compiled code that owns no array is several times faster, and because it
    goes over a long trace in parts.

    ``counts`` are the flag operations and waits for signals so far, the supposed waits, and how many pipes are in ``seen``.
    ``last`` is the newest stamp of each pipe, ``seen`` the pipes by it, newest first. ``knowledge`` is what a set
    carries and what a wait's pipe knows after it, by flag operation, and then by waits that were supposed;
    ``newest_wait``, ``wait_before`` and ``wait_at`` (positions) chain the waits of each pipe. ``lonely`` is the newest
    set that nothing waits for, by source and target. ``released`` is what the newest unlock of each mutex by each pipe
    left with it, ``holder`` the pipe that has a mutex locked, or -1. ``awaited`` is what each wait for another core learns of
    its own (:attr:`.order.Order.awaited`).
    """

    clock: Any
    last: Any
    seen: Any
    newest_wait: Any
    knowledge: Any
    wait_at: Any
    wait_before: Any
    lonely: Any
    released: Any
    holder: Any
    counts: Any
    awaited: Any


def new_state(pipes: int, flags: int, mutexes: int, awaited: np.ndarray, supposed: int = 1 << 14) -> State:
    """Room for so many pipes, flag operations, mutexes, and waits that the loop supposes (beyond it forgets them)."""
    waits = flags + supposed
    of_mutexes = ((mutexes * pipes, pipes), mutexes)
    before = [np.zeros(shape, np.int64) for shape in ((pipes, pipes), pipes, pipes, pipes)]
    many = [np.zeros(shape, np.int32) for shape in ((waits, pipes), waits, waits)]
    behind = [np.zeros(shape, np.int64) for shape in ((pipes, pipes), *of_mutexes, 4)]
    behind[-1][:] = 0, 0, flags, 0
    return State._make([*before, *many, *behind, awaited])


def new_hits(budget: int = 100_000_000) -> Hits:
    """An empty table. ``budget`` bounds the bursts compared byte by byte, so that no trace takes for ever."""
    slots, tally = np.full(HIT_SLOTS, -1, np.int64), np.array([0, 0, budget], np.int64)
    return Hits(np.zeros(HITS, HIT), slots, tally)


# Bytes


def meets(access: Any, shape: Any, low: int, high: int) -> bool:
    """Whether a burst of an access (its mask apart) has a byte in [low, high)."""
    length, n1, s1 = access["length"], shape["n1"], shape["s1"]
    for i3 in range(shape["n3"]):
        for i2 in range(shape["n2"]):
            at = access["start"] + i3 * shape["s3"] + i2 * shape["s2"]
            step = s1
            if step < 0:
                at += (n1 - 1) * step
                step = -step
            i1 = 0
            if step > 0 and at + length <= low:
                i1 = (low - length - at) // step + 1  # the first burst that ends beyond low
            if i1 < n1 and at + i1 * step < high and at + i1 * step + length > low:
                return True
    return False


def _active(access: Any, masks: Any, byte: int) -> bool:
    """Whether the mask of an access lets it touch ``byte``. A mask counts from the access's start."""
    mask = access["mask"]
    offset = byte - access["start"]
    if mask == 0 or offset < 0 or offset >= 256:
        return True
    return (int(masks[mask - 1, offset >> 3]) >> (offset & 7)) & 1 == 1


def share_a_byte(a: Any, b: Any, shapes: Any, masks: Any) -> bool:
    """Whether two accesses of one space have a byte in common, strides and masks considered."""
    if a["mask"] == 0 and b["mask"] != 0:
        a, b = b, a
    masked = a["mask"] != 0
    length = int(a["length"])
    shape, other = shapes[a["shape"]], shapes[b["shape"]]
    for i3 in range(shape["n3"]):
        for i2 in range(shape["n2"]):
            for i1 in range(shape["n1"]):
                at = a["start"] + i1 * shape["s1"] + i2 * shape["s2"] + i3 * shape["s3"]
                if not meets(b, other, at, at + length):
                    continue
                if not masked:
                    return True
                for byte in range(at, at + length):
                    if _active(a, masks, byte) and _active(b, masks, byte) and meets(b, other, byte, byte + 1):
                        return True
    return False


# Shadow tables


def _highest(values: Any) -> int:
    """The largest of some stamps."""
    return int(values.max())


def _highest_compiled(values: Any) -> int:
    """The same: Numba's own max is several times slower than this loop, Python's loop is slower still."""
    highest = values[0]
    for i in range(len(values)):
        if values[i] > highest:
            highest = values[i]
    return highest


def _fill(values: Any, stamp: int) -> None:
    """Set some stamps."""
    values[:] = stamp


def _fill_compiled(values: Any, stamp: int) -> None:
    """The same."""
    for i in range(len(values)):
        values[i] = stamp


def _cover(access: Any, shape: Any, place: Any, block: int) -> tuple:
    """(start, length, n1, s1, n2, s2, n3, s3) of an access, dimensions folded away where that leaves no block out.

    ``start`` counts from the first byte that the shadow tables hold of the space.
    """
    start, length = access["start"] + place["shift"], int(access["length"])
    n1, n2, n3 = int(shape["n1"]), int(shape["n2"]), int(shape["n3"])
    s1, s2, s3 = shape["s1"], shape["s2"], shape["s3"]
    if n1 > 1 and abs(s1) <= max(length, block):
        start, length, n1 = start + min((n1 - 1) * s1, 0), length + (n1 - 1) * abs(s1), 1
    if n1 == 1 and n2 > 1 and abs(s2) <= max(length, block):
        start, length, n2 = start + min((n2 - 1) * s2, 0), length + (n2 - 1) * abs(s2), 1
    if n1 == 1 and n2 == 1 and n3 > 1 and abs(s3) <= max(length, block):
        start, length, n3 = start + min((n3 - 1) * s3, 0), length + (n3 - 1) * abs(s3), 1
    return start, length, n1, s1, n2, s2, n3, s3


def _newest(table: Any, access: Any, shapes: Any, place: Any, pipe: int) -> int:
    """The newest stamp that ``pipe`` left on the blocks of an access."""
    base, blocks, bits = place["base"], place["blocks"], place["bits"]
    if access["shape"] == 0:
        at = access["start"] + place["shift"]
        low, high = max(at >> bits, 0), min(((at + int(access["length"]) - 1) >> bits) + 1, blocks)
        return _highest(table[pipe, base + low : base + high]) if low < high else 0
    start, length, n1, s1, n2, s2, n3, s3 = _cover(access, shapes[access["shape"]], place, 1 << bits)
    newest = 0
    for i3 in range(n3):
        for i2 in range(n2):
            for i1 in range(n1):
                at = start + i1 * s1 + i2 * s2 + i3 * s3
                low, high = max(at >> bits, 0), min(((at + length - 1) >> bits) + 1, blocks)
                if low < high:
                    newest = max(newest, _highest(table[pipe, base + low : base + high]))
    return newest


def _mark(table: Any, access: Any, shapes: Any, place: Any, pipe: int, stamp: int) -> None:
    """Leave a stamp on the blocks of an access that has more than one burst."""
    base, blocks, bits = place["base"], place["blocks"], place["bits"]
    start, length, n1, s1, n2, s2, n3, s3 = _cover(access, shapes[access["shape"]], place, 1 << bits)
    for i3 in range(n3):
        for i2 in range(n2):
            for i1 in range(n1):
                at = start + i1 * s1 + i2 * s2 + i3 * s3
                low, high = max(at >> bits, 0), min(((at + length - 1) >> bits) + 1, blocks)
                if low < high:
                    _fill(table[pipe, base + low : base + high], stamp)


def _place_of(access: Any, places: Any, cluster: Any, a: int) -> Any:
    """Where the access's bytes lie in the shadow tables: its space's place, or its cluster's in GM."""
    return places[cluster[a] if access["space"] == _GM else access["space"]]


# Conflicts


def _row_at(order: Any, position: int) -> int:
    """The row visited at a position: the one of that number where ``order`` is empty."""
    return order[position] if len(order) > 0 else position


def _before(rows: Any, order: Any, previous: Any, stamp: int, known: int) -> int:
    """The newest stamp below ``stamp`` of a row of the same pipe; ``known`` or less if there is none above that."""
    if stamp - 1 > known:
        row, before = rows[_row_at(order, stamp - 1)], rows[_row_at(order, stamp - 2)]
        if before["kind"] == _INSTRUCTION and before["pipe"] == row["pipe"]:
            return stamp - 1
    return previous[stamp - 1]


def _witness(
    rows: Any, first: Any, accesses: Any, shapes: Any, masks: Any, order: Any, previous: Any, access: Any, newest: int,
    known: int, mode: int, tally: Any,
) -> tuple:  # fmt: skip
    """(stamp, access) of the newest row, from ``newest`` back to ``known``, that touches a byte of ``access`` so."""
    shape = shapes[access["shape"]]
    stamp, bursts = newest, shape["n1"] * shape["n2"] * shape["n3"]
    while stamp > known and tally[2] > 0:
        row = _row_at(order, stamp - 1)
        tally[2] -= bursts if first[row] < first[row + 1] else 1
        for b in range(first[row], first[row + 1]):
            other = accesses[b]
            if other["mode"] != mode or other["space"] != access["space"]:
                continue
            if share_a_byte(access, other, shapes, masks):
                return stamp, b
        stamp = _before(rows, order, previous, stamp, known)
    return 0, 0


def _root(rows: Any, row: int) -> int:
    while rows[row]["parent"] >= 0:
        row = rows[row]["parent"]
    return row


def _record(rows: Any, hits: Any, kind: int, later: int, earlier: int, later_row: int, earlier_row: int) -> None:
    """Count a conflict at the entry of its kind, pipes and instructions; the first one makes the entry."""
    pipes = int(rows[later_row]["pipe"]) * 256 + int(rows[earlier_row]["pipe"])
    later_root, earlier_root = rows[_root(rows, later_row)], rows[_root(rows, earlier_row)]
    later_site, earlier_site = later_root["site"], earlier_root["site"]
    later_mnemonic, earlier_mnemonic = int(later_root["mnemonic"]), int(earlier_root["mnemonic"])
    mixed = (later_site & 0xFFFFFFFF) * 31 + (earlier_site & 0xFFFFFFFF) * 1009 + pipes * 7 + kind
    slot = (mixed + later_mnemonic * 101 + earlier_mnemonic * 211) % HIT_SLOTS
    while hits.slots[slot] >= 0:
        entry = hits.table[hits.slots[slot]]
        if (
            entry["kind"] == kind
            and entry["pipes"] == pipes
            and entry["later_site"] == later_site
            and entry["earlier_site"] == earlier_site
            and entry["later_mnemonic"] == later_mnemonic
            and entry["earlier_mnemonic"] == earlier_mnemonic
        ):
            entry["times"] += 1
            return
        slot = (slot + 1) % HIT_SLOTS
    number = hits.tally[0]
    if number == HITS:
        hits.tally[1] += 1
        return
    hits.tally[0] += 1
    hits.slots[slot] = number
    entry = hits.table[number]
    entry["kind"], entry["times"], entry["pipes"] = kind, 1, pipes
    entry["later"], entry["earlier"] = later, earlier
    entry["later_site"], entry["earlier_site"] = later_site, earlier_site
    entry["later_mnemonic"], entry["earlier_mnemonic"] = later_mnemonic, earlier_mnemonic


def _examine(
    rows: Any, first: Any, accesses: Any, shapes: Any, cluster: Any, masks: Any, order: Any, previous: Any,
    places: Any, written: Any, read: Any, hits: Any, row: int, other: int, known: int,
) -> int:  # fmt: skip
    """Record the conflicts of a row with what ``other`` did after stamp ``known``; the newest stamp of one, or 0.

    Two operands of a row that meet one earlier row in the same way are one conflict.
    """
    found = raw = war = waw = 0
    for a in range(first[row], first[row + 1]):
        access = accesses[a]
        place = _place_of(access, places, cluster, a)
        if place["blocks"] == 0:
            continue
        writes = access["mode"] == _WRITE
        for mode in (_WRITE, _READ):
            if mode == _READ and not writes:
                continue
            newest = _newest(written if mode == _WRITE else read, access, shapes, place, other)
            if newest <= known:
                continue
            stamp, b = _witness(
                rows, first, accesses, shapes, masks, order, previous, access, newest, known, mode, hits.tally
            )  # fmt: skip
            if stamp:
                found = max(found, stamp)
                if not writes and stamp != raw:
                    raw = stamp
                    _record(rows, hits, RAW, a, b, row, _row_at(order, stamp - 1))
                elif writes and mode == _WRITE and stamp != waw:
                    waw = stamp
                    _record(rows, hits, WAW, a, b, row, _row_at(order, stamp - 1))
                elif writes and mode == _READ and stamp != war:
                    war = stamp
                    _record(rows, hits, WAR, a, b, row, _row_at(order, stamp - 1))
    return found


def _join(clock: Any, pipe: int, table: Any, number: int) -> None:
    """The clock of ``pipe`` learns what a row of another table knows."""
    for entry in range(clock.shape[1]):
        clock[pipe, entry] = max(clock[pipe, entry], table[number, entry])


def _keep(table: Any, number: int, clock: Any, pipe: int) -> None:
    """A row of a table takes over the clock of ``pipe``."""
    for entry in range(clock.shape[1]):
        table[number, entry] = clock[pipe, entry]


def _join_all(clock: Any, pipe: int) -> None:
    """Every clock learns what ``pipe`` knows."""
    for each in range(clock.shape[0]):
        _join(clock, each, clock, pipe)


def _repair(state: Any, pipe: int, other: int, found: int, position: int, supposed: int) -> int:
    """Suppose that ``pipe`` waits, at a position, for what ``other`` had done by stamp ``found``.

    Returns how many flag operations and supposed waits there are now.
    """
    clock, newest_wait, knowledge = state.clock, state.newest_wait, state.knowledge
    if other == pipe:
        clock[pipe, pipe] = position
        return supposed
    for source in (other, _PIPE_S):
        wait = newest_wait[source]
        while wait >= 0 and state.wait_at[wait] >= found:
            wait = state.wait_before[wait]
        if wait >= 0:
            _join(clock, pipe, knowledge, wait)
    clock[pipe, other] = max(clock[pipe, other], found)
    wait = state.lonely[other, pipe]  # a set that was meant for the missing wait
    if wait >= 0 and knowledge[wait, other] >= found:
        _join(clock, pipe, knowledge, wait)
    return _waited(state, pipe, position, supposed)


def _waited(state: Any, pipe: int, position: int, supposed: int) -> int:
    """``pipe`` has learnt something at a position, from no flag; returns the next free number of such waits."""
    if supposed < len(state.wait_at):
        _keep(state.knowledge, supposed, state.clock, pipe)
        state.wait_at[supposed], state.wait_before[supposed] = position, state.newest_wait[pipe]
        state.newest_wait[pipe] = supposed
        supposed += 1
    if pipe == _PIPE_S:
        _join_all(state.clock, _PIPE_S)
    return supposed


def _unlock(state: Any, mutex: int, pipe: int, position: int) -> None:
    """``pipe`` leaves with a mutex what it knows, and that all it did before a position is complete."""
    number = mutex * len(state.last) + pipe
    _keep(state.released, number, state.clock, pipe)
    state.released[number, pipe] = position
    state.holder[mutex] = -1


def _to_front(seen: Any, n_seen: int, pipe: int) -> int:
    """Keep pipes sorted by their last row, newest first; returns how many there are."""
    place = 0
    while place < n_seen and seen[place] != pipe:
        place += 1
    n_seen = max(n_seen, place + 1)
    while place > 0:
        seen[place] = seen[place - 1]
        place -= 1
    seen[0] = pipe
    return n_seen


def _mark_rows(
    rows: Any, first: Any, accesses: Any, shapes: Any, cluster: Any, order: Any, places: Any, written: Any, read: Any,
    previous: Any, last: Any, pipe: int, position: int, end: int,
) -> int:  # fmt: skip
    """Leave the stamps of rows from a position on, up to ``end`` or a row of another pipe or kind; returns where.

    Most rows of a long trace are of this sort, one pipe's instructions that nothing of another pipe comes between: the
    loop is kept small for them, and leaves ``previous`` to the first of them.
    """
    previous[position] = last[pipe]
    while position < end:
        row = _row_at(order, position)
        if rows[row]["kind"] != _INSTRUCTION or rows[row]["pipe"] != pipe:
            break
        if first[row] < first[row + 1]:
            for a in range(first[row], first[row + 1]):
                access = accesses[a]
                place = _place_of(access, places, cluster, a)
                table = written if access["mode"] == _WRITE else read
                if access["shape"] != 0:
                    _mark(table, access, shapes, place, pipe, position + 1)
                    continue
                at, bits = access["start"] + place["shift"], place["bits"]
                low = max(at >> bits, 0)
                high = min(((at + int(access["length"]) - 1) >> bits) + 1, place["blocks"])
                if low < high:
                    _fill(table[pipe, place["base"] + low : place["base"] + high], position + 1)
            last[pipe] = position + 1
        position += 1
    return position


def find_hazards(
    rows: Any, first: Any, accesses: Any, shapes: Any, cluster: Any, masks: Any, order: Any, starts: Any, partner: Any,
    ordered: Any, places: Any, written: Any, read: Any, previous: Any, state: Any, hits: Any, repair: bool, begin: int,
    until: int,
) -> None:  # fmt: skip
    """Find every conflict that nothing orders, at the positions from ``begin`` to ``until``; all before were looked at.

    Args:
        rows, accesses, shapes, places: tables: arrays of records, or lists of mappings. Sites are signed.
        first: :attr:`Trace.first_access`. masks: uint8[n, 32].
        cluster: for each access its place in GM; 0 is a GM access to pass over.
        order: the row visited at each position, empty where that is the row of that number; ``starts`` where each core
            of a launch begins, and the end.
        partner: for each flag operation in visiting order the number of its counterpart, or -1.
        ordered: for each pipe, whether it keeps its own instructions in order.
        places: :data:`PLACE` of each space, and after them of each cluster of GM.
        written, read: the shadow tables, int32[pipes, blocks], zero. previous: int32 for each position, zero: where a
            pipe begins or goes on after rows of others (or other kinds), its newest stamp before that.
        state: from :func:`new_state`. hits: filled. repair: go on as if the missing synchronisation stood there.
    """
    clock, last, seen, newest_wait = state.clock, state.last, state.seen, state.newest_wait
    knowledge, wait_at, wait_before, lonely = state.knowledge, state.wait_at, state.wait_before, state.lonely
    released, holder = state.released, state.holder
    flag, signal, supposed, n_seen = state.counts[0] - 1, state.counts[1] - 1, state.counts[2], state.counts[3]
    for core in range(len(starts) - 1):
        position, end = max(starts[core], begin), min(starts[core + 1], until)
        if position >= end:
            continue
        if position == starts[core]:
            clock[:] = position
            last[:] = 0
            newest_wait[:] = -1
            lonely[:] = -1
            released[:] = 0
            holder[:] = -1
            n_seen = 0
        while position < end:
            row = _row_at(order, position)
            kind = rows[row]["kind"]
            pipe = rows[row]["pipe"]
            if kind == _INSTRUCTION and first[row] < first[row + 1]:
                is_safe = ordered[pipe]  # until another pipe has worked
                for index in range(n_seen):
                    other = seen[index]
                    known = position if other == pipe and ordered[pipe] else clock[pipe, other]
                    if last[other] <= known:
                        continue
                    is_safe = False
                    found = _examine(
                        rows, first, accesses, shapes, cluster, masks, order, previous, places, written, read, hits,
                        row, other, known,
                    )  # fmt: skip
                    if found and repair:
                        supposed = _repair(state, pipe, other, found, position, supposed)
                n_seen = _to_front(seen, n_seen, pipe)
                position = _mark_rows(
                    rows, first, accesses, shapes, cluster, order, places, written, read, previous, last, pipe,
                    position, end if is_safe else position + 1,
                )  # fmt: skip
                if pipe == _PIPE_M and rows[row]["arg"] == DONE_IN_ORDER:
                    clock[pipe, pipe] = position
                continue
            if kind == _INSTRUCTION:
                previous[position] = last[pipe]
            elif kind == _SET_FLAG:
                flag += 1
                _keep(knowledge, flag, clock, pipe)
                knowledge[flag, pipe] = position
                if partner[flag] < 0:
                    lonely[pipe, rows[row]["pipe2"]] = flag
            elif kind == _WAIT_FLAG:
                flag += 1
                source = rows[row]["pipe2"]
                match = partner[flag]
                if 0 <= match < flag:
                    _join(clock, pipe, knowledge, match)
                else:
                    _join(clock, pipe, clock, source)
                    clock[pipe, source] = position
                _keep(knowledge, flag, clock, pipe)
                wait_at[flag], wait_before[flag] = position, newest_wait[pipe]
                newest_wait[pipe] = flag
                if pipe == _PIPE_S:
                    _join_all(clock, _PIPE_S)
            elif kind == _BARRIER:
                if pipe == _PIPE_ALL:
                    clock[:] = position
                elif pipe == _PIPE_S and rows[row]["arg"] == DATA_BARRIER:
                    clock[:, _PIPE_S] = position
                elif not ordered[pipe]:
                    clock[pipe, pipe] = position
            elif kind == _AWAIT:
                signal += 1
                _join(clock, pipe, state.awaited, signal)
                supposed = _waited(state, pipe, position, supposed)
            elif kind == _UNLOCK:
                _unlock(state, rows[row]["arg"], pipe, position)
            elif kind == _LOCK and rows[row]["pipe2"] == 0:
                mutex = rows[row]["arg"]
                if holder[mutex] >= 0:
                    _unlock(state, mutex, holder[mutex], position)
                holder[mutex] = pipe
                for other in range(len(last)):
                    if other != pipe:
                        _join(clock, pipe, released, mutex * len(last) + other)
                supposed = _waited(state, pipe, position, supposed)
            position += 1
    state.counts[0], state.counts[1], state.counts[2], state.counts[3] = flag + 1, signal + 1, supposed, n_seen


# Inside vector functions


def _unbarred(
    rows: Any, first: Any, accesses: Any, shapes: Any, masks: Any, order: Any, chain: Any, hits: Any, a: int, row: int,
    newest: int, known: int, kind: int,
) -> bool:  # fmt: skip
    """Record the newest store after stamp ``known``, through another register, that shares a byte with an access."""
    access, stamp, steps = accesses[a], newest, 0
    while stamp > known and steps < _LOOKED_BACK:
        steps += 1
        other_row = _row_at(order, stamp - 1)
        for b in range(first[other_row], first[other_row + 1]):
            other = accesses[b]
            if other["space"] != access["space"] or other["unused"] == access["unused"] or other["unused"] < 2:
                continue
            if share_a_byte(access, other, shapes, masks):
                _record(rows, hits, kind, a, b, row, other_row)
                return True
        stamp = chain[stamp - 1]
    return False


def _newest_store(
    stored: Any, register: Any, others: Any, is_split: Any, low: int, high: int, own: int, stamp: int
) -> int:  # fmt: skip
    """The newest store to blocks [low, high) through another register than ``own``; leaves a stamp there, if not 0."""
    newest, block = 0, low
    while block < high:
        at, line = block, block >> 3
        if not is_split[line] and block & 7 == 0 and block + 8 <= high:
            block += 8
        else:
            if not is_split[line]:
                is_split[line] = 1
                for each in range((line << 3) + 1, (line << 3) + 8):
                    stored[each], register[each], others[each] = (
                        stored[line << 3], register[line << 3], others[line << 3],
                    )  # fmt: skip
            block += 1
        other = others[at] if register[at] == own else stored[at]
        newest = max(newest, other)
        if stamp:
            stored[at], register[at], others[at] = stamp, own, other
    return newest


def find_unbarred(
    rows: Any, first: Any, accesses: Any, shapes: Any, masks: Any, order: Any, starts: Any, ub: int, blocks: int,
    stored: Any, register: Any, others: Any, is_split: Any, chain: Any, hits: Any, since: Any, begin: int, until: int,
) -> None:  # fmt: skip
    """Find loads and stores of vector registers that meet an earlier store in UB without the memory barrier between.

    It looks at the positions from ``begin`` to ``until``; all before were looked at.

    Within a vector function two accesses through different registers are in no order but by barriers; those of one
    register are. A flag, a barrier of pipes, or the end of the function orders all. That a store comes after the load
    of what it overwrites is taken to follow from the data; so is that a store comes after what a load before it had to
    wait for.

    Args:
        rows to starts: see :func:`find_hazards`. ub: the number of UB; ``blocks`` of 32 bytes of it are watched.
        stored, register, others: int64, zero, for as many blocks and the rest of a line: of each block the newest store,
            its register, and the newest store of another register. is_split: the same, for each line of eight blocks:
            whether each of them has an entry of its own; of other lines the first one counts for all. chain: int32 for
            each position, zero: the store before each store.
        hits: filled. since: int64[6], kept from part to part: before which positions everything is done, is so for loads,
            and for stores; the last store; the blocks stored to since then, from the lowest up to the highest.
    """
    for core in range(len(starts) - 1):
        first_here, end = max(starts[core], begin), min(starts[core + 1], until)
        if first_here >= end:
            continue
        done, after_load, after_store = since[0], since[1], since[2]
        last, lowest, highest = since[3], since[4], since[5]
        if first_here == starts[core]:
            done = after_load = after_store = first_here
            last, lowest, highest = 0, blocks, 0
        for position in range(first_here, end):
            row = _row_at(order, position)
            kind = rows[row]["kind"]
            if kind == _MEM_BAR:
                mode = rows[row]["arg"]
                if mode in (_VV_ALL, _VST_VLD):
                    after_load = position
                if mode in (_VV_ALL, _VST_VST):
                    after_store = position
                continue
            if kind != _INSTRUCTION:
                done = after_load = after_store = position
                lowest, highest = blocks, 0
                continue
            for a in range(first[row], first[row + 1]):
                access = accesses[a]
                if access["space"] != ub or access["unused"] < 2:
                    continue
                is_load, own = access["mode"] == _READ, access["unused"]
                known = max(done, after_load if is_load else after_store)
                newest = 0
                shape, at, length = shapes[access["shape"]], access["start"], int(access["length"])
                bursts, step = int(shape["n1"]), int(shape["s1"])  # those of the turns of a loop
                if abs(step) <= length:
                    at += min(step, 0) * (bursts - 1)
                    length += abs(step) * (bursts - 1)
                    bursts = 1
                for _ in range(bursts):
                    low, high = max(at >> 5, 0), min(((at + length - 1) >> 5) + 1, blocks)
                    at += step
                    if low >= high:
                        continue
                    if not is_load:
                        lowest, highest = min(lowest, low), max(highest, high)
                        newer = _newest_store(stored, register, others, is_split, low, high, own, position + 1)
                        newest = max(newest, newer)
                    elif low < highest and high > lowest:
                        newer = _newest_store(stored, register, others, is_split, low, high, own, 0)
                        newest = max(newest, newer)
                if newest > known and _unbarred(
                    rows, first, accesses, shapes, masks, order, chain, hits, a, row, newest, known,
                    RAW if is_load else WAW,
                ):  # fmt: skip
                    after_load = after_store = position
                if is_load:
                    after_store = max(after_store, after_load)
                else:
                    chain[position], last = last, position + 1
        since[0], since[1], since[2], since[3], since[4], since[5] = (
            done, after_load, after_store, last, lowest, highest,
        )  # fmt: skip


# GM between cores


def find_shared(
    low: Any, high: Any, writes: Any, core: Any, launch: Any, best: Any, first: Any, second: Any
) -> int:  # fmt: skip
    """Bursts of different cores of one launch that share a byte, one of them writing.

    The bursts come sorted by launch and first byte. Of each burst that conflicts with an earlier one in that order, one
    such pair goes into ``first`` and ``second``. Returns how many. ``best`` is scratch, int64[2, 2]: of [touches,
    writes] the burst that reaches farthest, and the one that does of all other cores than that one's.
    """
    found = 0
    for i in range(len(low)):
        if i == 0 or launch[i] != launch[i - 1]:
            best[:] = -1
        against = 0 if writes[i] else 1
        for rank in range(2):
            j = best[against, rank]
            if j >= 0 and core[j] != core[i] and high[j] > low[i]:
                first[found], second[found] = j, i
                found += 1
                break
        for table in range(2 if writes[i] else 1):
            top = best[table, 0]
            if top < 0 or high[i] > high[top]:
                if top >= 0 and core[top] != core[i]:
                    best[table, 1] = top
                best[table, 0] = i
            elif core[top] != core[i] and (best[table, 1] < 0 or high[i] > high[best[table, 1]]):
                best[table, 1] = i
    return found
