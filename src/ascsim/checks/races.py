"""Races between the pipes of a core: two accesses to one byte, one a write, that nothing orders.

:mod:`ascsim.checks.clocks` finds them; this module prepares its tables and puts what it found into words.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

from ascsim.checks import clocks
from ascsim.checks.calls import calls_of
from ascsim.checks.context import Context, Found, pipe_name
from ascsim.checks.naming import Tiles, bytes_text, space_name
from ascsim.checks.spans import Intervals, clusters, common, touched
from ascsim.checks.sweep import rounded
from ascsim.diagnostics import CATALOGUE, Severity, Site
from ascsim.machine.native import readonly
from ascsim.machine.trace import Mode
from ascsim.machine.words import N_PIPES, Space

_MARGIN = 65536
"""Bytes beyond a memory that are still watched: an overrun races too."""
_LOCAL_BITS = 5
_GM_COLUMNS = 1 << 22
_ALSO = 6
"""How many further conflicts of one cause a finding lists."""
_KIND_NAMES = {clocks.RAW: "RAW", clocks.WAR: "WAR", clocks.WAW: "WAW"}
_CODES = {clocks.RAW: "R001", clocks.WAR: "R002", clocks.WAW: "R003"}

_WHY = (
    "The pipes of a core run side by side: instructions of two pipes are in no order unless a flag puts them in one, "
    "and most pipes do not even finish one instruction of their own before they begin the next. "
)  # fmt: skip
_HOW = (
    "\n\nBetween two pipes, add set_flag on the first after its instruction and wait_flag on the second before its "
    "own; within one, add pipe_barrier for that pipe between the two. The report names the calls and the lines.\n\n"
)  # fmt: skip
CATALOGUE.add(
    "R001", Severity.ERROR, "Read after write without order (RAW)",
    _WHY + "Here an instruction reads bytes that another writes before it in the program, and may read them before "
    "they are written: the result is stale or half new data, and changes from run to run." + _HOW +
    "Example:\n"
    "    TLOAD(a, global);                          // PIPE_MTE2 writes a\n"
    "    set_flag(PIPE_MTE2, PIPE_V, EVENT_ID0);    // missing\n"
    "    wait_flag(PIPE_MTE2, PIPE_V, EVENT_ID0);   // missing\n"
    "    TADD(c, a, b);                             // PIPE_V reads a",
)  # fmt: skip
CATALOGUE.add(
    "R002", Severity.ERROR, "Write after read without order (WAR)",
    _WHY + "Here an instruction writes bytes that another reads before it in the program, and may write them before "
    "they are read: the reader sees the new data. Buffers used again in a loop are the usual place." + _HOW +
    "Example:\n"
    "    TSTORE(global, a);                          // PIPE_MTE3 reads a\n"
    "    set_flag(PIPE_MTE3, PIPE_MTE2, EVENT_ID0);  // missing\n"
    "    wait_flag(PIPE_MTE3, PIPE_MTE2, EVENT_ID0); // missing\n"
    "    TLOAD(a, next);                             // PIPE_MTE2 writes a\n"
    "In a loop the set stands at the end of the body and the wait at its beginning; then one set before the loop and "
    "one wait after it make the counts even.",
)  # fmt: skip
CATALOGUE.add(
    "R003", Severity.ERROR, "Write after write without order (WAW)",
    _WHY + "Here two instructions write the same bytes, and either may come last." + _HOW +
    "Example:\n"
    "    TSTORE(global, a);                          // PIPE_MTE3 writes global\n"
    "    pipe_barrier(PIPE_MTE3);                    // missing\n"
    "    TSTORE(global, b);                          // PIPE_MTE3 writes it again",
)  # fmt: skip
CATALOGUE.add(
    "R004", Severity.WARNING, "Steps of one instruction without order",
    "An instruction that the chip's library carries out in several steps has two steps that touch the same bytes with "
    "nothing between them that orders them.\n\n"
    "The fault is the library's; a kernel can avoid it only by another "
    "instruction, other operands or another shape.",
)  # fmt: skip


def check(context: Context) -> Iterator[Found]:
    """Findings of unordered accesses of one core."""
    hits = hazards(context)
    n = int(hits.tally[0])
    if hits.tally[1]:
        context.hidden.append(f"{hits.tally[1]} more conflicts of other instructions were found and not kept")
    if hits.tally[2] <= 0:
        context.hidden.append("the race check gave up comparing rows byte by byte: more races may be there")
    if not n:
        return
    tiles = Tiles(context.trace)
    for alike in _causes([_Entry(context, hits, index) for index in range(n)]):
        yield _found(context, tiles, alike)


# The search


def hazards(context: Context, repair: bool = True, hits: clocks.Hits | None = None) -> clocks.Hits:
    """Run :func:`ascsim.checks.clocks.find_hazards` over a trace. See there for ``repair``; ``hits`` is filled."""
    trace, visit, flags = context.trace, context.visit, context.flags
    hits = hits or clocks.new_hits()
    if not len(trace.accesses):
        return hits
    cluster, places, columns = _places(context)
    shadows = [np.zeros((N_PIPES, columns), np.int32) for _ in range(2)]
    previous = np.zeros(len(trace.rows), np.int32)
    state = clocks.new_state(N_PIPES, len(flags.partner), context.mutexes, context.order.awaited)

    numbers = [
        context.as_sequence(column) for column in (visit.order, visit.starts, flags.partner, context.ordered, places)
    ]
    find = context.loop(clocks.find_hazards)
    for begin, end in trace.stretches("looking for races"):
        find(
            *context.tables, context.as_sequence(cluster), readonly(trace.masks), *numbers, *shadows, previous, state,
            hits, repair, begin, end,
        )  # fmt: skip
    return hits


def _places(context: Context) -> tuple[np.ndarray, np.ndarray, int]:
    """(cluster of each access, :data:`clocks.PLACE` of each space and cluster, columns of the shadow tables)."""
    places = np.zeros(256, clocks.PLACE)
    columns = 0
    for name, limits in context.profile.spaces.items():
        blocks = (limits.capacity + _MARGIN) >> _LOCAL_BITS
        places[Space[name]] = (columns, blocks, _LOCAL_BITS, 0)
        columns += blocks
    places[Space.GM] = (0, 0, 0, 0)  # what of GM needs a look lies in clusters
    cluster = np.zeros(len(context.trace.accesses), np.int32)
    if len(context.suspects.gm) > 1:
        gm = context.gm
        number, made, need = _gm_clusters(gm.cores, gm.low, gm.high, gm.writes)
        cluster[gm.numbers] = np.where(number >= 0, number + len(places), 0)
        made["base"] = columns
        places, columns = np.concatenate((places, made)), columns + need
    return cluster, places, columns


def _gm_clusters(
    core: np.ndarray, low: np.ndarray, high: np.ndarray, write: np.ndarray
) -> tuple[np.ndarray, np.ndarray, int]:
    """Group the GM accesses that share their extents with others of their core, one of them a write.

    Returns the group of each access (-1: none), each group's place (``base`` left open), and how many columns all need.
    """
    number = clusters(core, low, high)
    count = int(number.max()) + 1
    wanted = (np.bincount(number) > 1) & (np.bincount(number, write) > 0)
    lowest, highest = np.full(count, np.iinfo(np.int64).max), np.full(count, np.iinfo(np.int64).min)
    np.minimum.at(lowest, number, low)
    np.maximum.at(highest, number, high)
    owner = np.zeros(count, np.int64)
    owner[number] = core
    lowest, highest, owner = lowest[wanted], highest[wanted], owner[wanted]
    made = np.zeros(len(owner), clocks.PLACE)
    bits, need, total = _LOCAL_BITS, np.zeros(0, np.int64), 0
    while len(owner):
        need = ((highest - 1) >> bits) - (lowest >> bits) + 1
        total = int(np.bincount(owner, need).max())
        if total <= _GM_COLUMNS:
            break
        bits += 1  # wide views get coarser blocks: what they hit is compared byte by byte anyway
    # Every core begins at the first column again: what other cores left there counts as known.
    order = np.argsort(owner, kind="stable")
    begins = np.cumsum(need[order]) - need[order]
    firsts = np.searchsorted(owner[order], owner[order])
    column = np.zeros(len(owner), np.int64)
    column[order] = begins - begins[firsts]
    made["blocks"], made["bits"] = column + need, bits
    made["shift"] = (column - (lowest >> bits)) << bits
    return np.where(wanted, np.cumsum(wanted) - 1, -1)[number], made, total


# In words


class _Entry:
    """One entry of the hits: two instructions, one conflict."""

    def __init__(self, context: Context, hits: clocks.Hits, index: int) -> None:
        hit = hits.table[index]
        self.kind, self.count = int(hit["kind"]), int(hit["times"])
        self.later, self.earlier = int(hit["later"]), int(hit["earlier"])
        self.row, self.earlier_row = context.trace.rows_of(np.array([self.later, self.earlier])).tolist()
        self.at, self.earlier_at = (int(context.positions(row)) for row in (self.row, self.earlier_row))
        self.core = int(context.cores_of(self.row))
        self.same_instruction = context.root(self.row) == context.root(self.earlier_row)
        self.pipes = int(hit["pipes"])
        self.cause = (int(hit["later_site"]), int(hit["later_mnemonic"]), self.pipes, self.same_instruction)


def _causes(entries: list[_Entry]) -> list[list[_Entry]]:
    """Conflicts that one pair of calls (or one barrier) mends, together.

    Those are conflicts of one instruction with one pipe, and of two pipes all those whose earlier instructions come
    before the first of the later ones: a set after the former and a wait before the latter orders them all.
    """
    causes: list[list[_Entry]] = []
    known: dict[tuple, list[_Entry]] = {}
    open_: dict[tuple, list[_Entry]] = {}
    for entry in sorted(entries, key=lambda e: (e.at, e.earlier_at)):
        place = (entry.core, entry.pipes, entry.same_instruction)
        alike = known.get(entry.cause)
        if alike is None:
            alike = open_.get(place)
            if alike is None or entry.same_instruction or entry.earlier_at > alike[0].at:
                alike = open_[place] = []
                causes.append(alike)
            known[entry.cause] = alike
        alike.append(entry)
    return causes


class _Mend(NamedTuple):
    text: str
    notes: tuple[str, ...] = ()
    covers: tuple[int, ...] = ()


def _found(context: Context, tiles: Tiles, alike: list[_Entry]) -> Found:
    """One finding for conflicts of one cause."""
    rank = {clocks.RAW: 0, clocks.WAW: 1, clocks.WAR: 2}
    first = min(entry.at for entry in alike)
    main = min((e for e in alike if e.at == first), key=lambda e: (rank[e.kind], -e.earlier_at))
    accesses = context.trace.accesses
    shared = common(touched(context.trace, main.later), touched(context.trace, main.earlier))
    space = int(accesses["space"][main.later])
    notes = [f"both touch {bytes_text(space, shared)}"]
    positions = [tiles.position(number, shared[0][0]) for number in (main.later, main.earlier)]
    notes += [f"the first byte is {' and '.join(dict.fromkeys(p for p in positions if p))}"] if any(positions) else []
    notes += [text for text in (context.step(main.row), context.step(main.earlier_row)) if text]
    notes += [text] if (text := _late(context, main)) else []
    others = [entry for entry in alike if entry is not main]
    notes += dict.fromkeys(_also(context, tiles, entry, main) for entry in others[:_ALSO])
    notes += [f"and {len(others) - _ALSO} more hazards of the same cause"] if len(others) > _ALSO else []
    kernel = context.kernel(main.row)
    headline = f"Potential {_KIND_NAMES[main.kind]} hazard detected at {space_name(space)}"
    headline += f" in {kernel}" if kernel else ""
    whats = (_access(context, tiles, main.later), _access(context, tiles, main.earlier))
    if main.same_instruction:
        return Found(
            "R004", Severity.WARNING, headline, (main.row, main.earlier_row), whats, tuple(notes),
            "The steps belong to one instruction: nothing in the kernel can stand between them.", main.count,
            key=main.pipes,
        )  # fmt: skip
    newest = max((e for e in alike if e.earlier_at < first and e.core == main.core), key=lambda e: e.earlier_at)
    mend = _mend(context, main.row, newest.earlier_row)
    rows = (main.row, main.earlier_row)
    stray = _stray(tiles, main, shared)
    if stray is not None:
        mend = _Mend(
            f"{stray.text} If the memory is meant to be shared: {mend.text}", (*stray.notes, *mend.notes), rows
        )
    return Found(
        _CODES[main.kind], Severity.ERROR, headline, rows, whats, (*notes, *mend.notes), mend.text, main.count,
        key=main.pipes, covers=mend.covers,
    )  # fmt: skip


def _stray(tiles: Tiles, main: _Entry, shared: Intervals) -> _Mend | None:
    """What to do where the two meet only because a tile lies across another, or a write leaves its array."""
    one, other = (tiles.place(number) for number in (main.later, main.earlier))
    if one is None or other is None or max(one.start, other.start) >= min(one.end, other.end):
        over = [place for place in (one, other) if place is not None and shared[0][0] >= rounded(place.end)]
        if not over or (one == other):
            return None
        note = f"these bytes are beyond {over[0].what}, which ends at {over[0].end:#x}"
        return _Mend(f"Touch less of {over[0].what}, or make it larger.", (note,))
    first, second = sorted((one, other))
    if first.start == second.start or second.end <= first.end:
        return None  # in one place, or one inside the other: as is usual
    note = f"{first.what} and {second.what} lie across each other"
    return _Mend(f"Leave the two apart: the first ends at {first.end:#x}.", (note,))


def _late(context: Context, entry: _Entry) -> str:
    """A note where the earlier instruction was held back and the later one came first."""
    if context.held.get(entry.earlier_row, -1) <= entry.row:
        return ""
    later, earlier = (
        "wrote" if context.trace.accesses["mode"][number] == Mode.WRITE else "read"
        for number in (entry.later, entry.earlier)
    )
    pipe, other = context.pipe(entry.row), context.pipe(entry.earlier_row)
    return f"in this run {pipe} {later} them before {other}, held back by --order late, {earlier} them"


def _access(context: Context, tiles: Tiles, number: int) -> str:
    """``PIPE_V read of src by TADD``."""
    row = int(context.trace.rows_of(number))
    verb = "write" if context.trace.accesses["mode"][number] == Mode.WRITE else "read"
    name = tiles.name(number)
    return f"{context.pipe(row)} {verb}{f' of {name}' if name else ''} by {context.name(context.root(row))}"


def _also(context: Context, tiles: Tiles, entry: _Entry, main: _Entry) -> str:
    """Another conflict of the same cause: its later access, then its earlier one, with their lines."""
    space = space_name(int(context.trace.accesses["space"][entry.later]))
    later, earlier = (
        f"{_access(context, tiles, number)} at {context.where(row, main.row)}"
        for number, row in ((entry.later, entry.row), (entry.earlier, entry.earlier_row))
    )
    return f"the same call orders a {_KIND_NAMES[entry.kind]} hazard at {space}: {later}, {earlier}"


def _mend(context: Context, row: int, earlier_row: int) -> _Mend:
    """The call to add or to move so that ``earlier_row`` is complete before ``row``."""
    rows, calls, flags = context.trace.rows, calls_of(context.trace), context.flags
    source, target = int(rows["pipe"][earlier_row]), int(rows["pipe"][row])
    before, after = f"before {_spot(context, row, row)}", f"after {_spot(context, earlier_row, row)}"
    if source == target:
        return _Mend(f"Add {calls.barrier(source)} {before}.")
    begin, end = int(context.positions(earlier_row)), int(context.positions(row))
    core = int(context.cores_of(row))
    mend = _misplaced(context, flags.between(core, source, target), begin, end, before, after)
    if mend is not None:
        return mend
    event, spare = _free_event(context, core, source, target)
    names = f"{pipe_name(source)} to {pipe_name(target)}"
    notes = [] if spare else [f"all event ids from {names} are in use: one must be used again"]
    site, earlier_site = context.site(row), context.site(earlier_row)
    if site and earlier_site and site.path == earlier_site.path and _is_further(earlier_site, site):
        notes.append(
            f"from one turn of a loop to the next: {calls.set(source, target, event)} once before the loop and "
            f"{calls.wait(source, target, event)} once after it keep the counts even"
        )
    strangers = _other_sources(context, core, begin, end, source, target)
    if strangers:
        notes.append(f"in between, {pipe_name(target)} waits for {strangers} only: that does not order {names}")
    add = f"Add {calls.set(source, target, event)} {after} and {calls.wait(source, target, event)} {before}."
    return _Mend(add, tuple(notes))


def _is_further(site: Site, other: Site) -> bool:
    """Whether a site stands at the other or behind it in its file; on one line that needs columns to tell."""
    if site.line == other.line and not (site.column and other.column):
        return False
    return (site.line, site.column) >= (other.line, other.column)


def _spot(context: Context, row: int, beside: int) -> str:
    """Where a call can stand next to a row: a vector function is one instruction to its pipe."""
    where = context.where(row, beside)
    return f"the call of the vector function of {where}" if context.in_vector_function(row) else where


def _misplaced(
    context: Context, pair: np.ndarray, begin: int, end: int, before: str, after: str
) -> _Mend | None:  # fmt: skip
    """What to do about a flag of the pair that was meant to order two positions and does not.

    It lacks its wait, or one of its calls stands in the wrong place.
    """
    flags, calls = context.flags, calls_of(context.trace)
    row = int(context.visit.rows(np.array(end)))
    sets = pair[flags.is_set[pair]]
    at, partner = flags.position[sets], flags.partner[sets]
    wait = np.where(partner >= 0, flags.position[partner], -1)
    between = (begin < at) & (at < end)
    for kind, fits in (
        ("lonely", between & (wait < 0)),
        ("late", between & (wait > end)),
        ("early", (at < begin) & (begin < wait) & (wait < end)),
    ):
        if not fits.any():
            continue
        number = int(sets[np.flatnonzero(fits)[-1]])
        flag = int(flags.source[number]), int(flags.target[number]), int(flags.event[number])
        setter = int(flags.row[number])
        here, target = context.where(setter, row), pipe_name(flag[1])
        if kind == "lonely":
            note = f"the flag that {here} sets for {target} is never waited for"
            return _Mend(f"Add {calls.wait(*flag)} {before}.", (note,), (setter,))
        if kind == "late":
            there = context.where(int(flags.row[flags.partner[number]]), row)
            note = f"the flag that {here} sets is waited for too late, at {there}"
            return _Mend(f"Move {calls.wait(*flag)} from {there} to {before}.", (note,))
        note = f"the flag that {target} waits for is set too early, at {here}"
        return _Mend(f"Move {calls.set(*flag)} from {here} to {after}.", (note,))
    return None


def _free_event(context: Context, core: int, source: int, target: int) -> tuple[int, bool]:
    """An event id that no core of the launch uses for the pipe pair, and whether there is one."""
    flags, visit = context.flags, context.visit
    in_launch = visit.launch[flags.core] == visit.launch[core]
    used = set(flags.event[in_launch & (flags.source == source) & (flags.target == target)].tolist())
    free = [event for event in range(context.profile.event_ids) if event not in used]
    return (free[0], True) if free else (0, False)


def _other_sources(context: Context, core: int, begin: int, end: int, source: int, target: int) -> str:
    """The pipes, other than ``source``, that ``target`` waits for between two positions."""
    flags = context.flags
    waits = ~flags.is_set & (flags.core == core) & (flags.position > begin) & (flags.position < end)
    pipes = np.unique(flags.source[waits & (flags.target == target) & (flags.source != source)])
    return " and ".join(pipe_name(pipe) for pipe in pipes.tolist())
