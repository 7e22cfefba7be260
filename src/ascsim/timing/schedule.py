"""From a trace to a schedule: when every instruction of a run would start and end on the chip."""

from __future__ import annotations

from collections.abc import Callable, Collection
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np

from ascsim.machine.native import compiled
from ascsim.machine.trace import Kind, Trace
from ascsim.machine.visit import Visit, pair_flags, visit_of
from ascsim.machine.words import N_PIPES, Pipe
from ascsim.profiles import Profile
from ascsim.profiles.costs import LANES, Costs
from ascsim.profiles.costs import costs as costs_of
from ascsim.timing import pipes
from ascsim.timing.work import Cycles, Work, cycles_of, lanes_of, work_of

PLAIN_ROWS = 4000
"""Up to so many rows are scheduled in plain Python: to load compiled loops takes longer."""
TRACKS = (*(pipe.name for pipe in Pipe), *LANES)
"""Names of the tracks of a core: its pipes, by number, and the lanes of its vector functions."""


class CoreRun(NamedTuple):
    """One core of a launch: ``launch`` counts from 0, ``number`` is the kernel's name for it in the trace, ``slot`` the
    core of the chip that it runs on (cube cores after vector cores). From ``begin`` to ``end`` in cycles."""

    launch: int
    number: int
    block: int
    side: str
    slot: int
    begin: int
    end: int


GIVES, TAKES = (Kind.SET_FLAG, Kind.UNLOCK, Kind.ARRIVE), (Kind.WAIT_FLAG, Kind.LOCK, Kind.AWAIT)
"""What tells another pipe or core that work is done, and what waits to be told."""


class Path(NamedTuple):
    """The critical path in order of time (arrays): rows, whether it was their issue, and from when to when."""

    rows: np.ndarray
    is_issue: np.ndarray
    begin: np.ndarray
    end: np.ndarray


@dataclass
class Schedule:
    """When everything happens: times in core cycles from the begin of the first launch, one entry a row of the trace.

    ``start`` and ``end`` are -1 for rows that take no part (begins and ends of launches); a row with an expansion spans
    its steps. ``issue`` is when the scalar unit gave it out. ``track`` is the number in :data:`TRACKS` of where it runs,
    ``core`` the number in :attr:`cores`. ``idle`` is how long its pipe was idle before it, between work, and ``held`` the
    row of the wait or barrier that kept it so (-1: it was not issued earlier). ``is_step`` marks steps of an expansion,
    ``is_span`` the rows that have them.
    """

    trace: Trace
    profile: Profile
    costs: Costs
    work: Work
    cycles: Cycles
    visit: Visit
    issue: np.ndarray
    start: np.ndarray
    end: np.ndarray
    idle: np.ndarray
    held: np.ndarray
    track: np.ndarray
    core: np.ndarray
    is_span: np.ndarray
    partner: np.ndarray
    """For a wait the row of its set, for a set that of its wait, for a lock the unlock before it, else -1."""
    by: np.ndarray
    """The row that the start (of a flag operation or barrier: its effect) waited for, -1 for none."""
    given_by: np.ndarray
    """The row whose issue, or whose work, the issue of this one waited for, -1 for none."""
    given_by_issue: np.ndarray
    """Whether it was that row's issue."""
    alone: np.ndarray
    """Of an instruction of a vector function, in how many cycles its lane works on none before it."""
    cores: list[CoreRun]
    path: Path
    infinite: frozenset[int] = frozenset()

    @property
    def total(self) -> int:
        """Cycles from the begin of the first launch to the end of the last."""
        return max((core.end for core in self.cores), default=0)

    @cached_property
    def roots(self) -> np.ndarray:
        """For each row the instruction that the user wrote: itself, or the one whose expansion it is a step of."""
        roots, parent = np.arange(len(self.trace.rows)), self.trace.rows["parent"]
        while (inner := parent[roots] >= 0).any():
            roots = np.where(inner, parent[roots], roots)
        return roots

    @cached_property
    def length(self) -> np.ndarray:
        """Cycles from start to end; those of the turns of a loop, which overlap, added up."""
        calls = self.trace.calls
        each = self.cycles.busy // calls + self.cycles.latency
        return np.where(calls > 1, calls * each, self.end - self.start)

    @cached_property
    def is_work(self) -> np.ndarray:
        """Rows that keep a track busy: instructions and vector functions, not what is made of steps."""
        kind = self.trace.kind
        return ((kind == Kind.INSTRUCTION) | (kind == Kind.VF_BEGIN)) & ~self.is_span & (self.start >= 0)


def schedule(
    trace: Trace,
    profile: Profile,
    infinite: Collection[Pipe] = (),
    costs: Costs | None = None,
    compile: bool | None = None,
    notice: Callable[[str], None] | None = None,
) -> Schedule:
    """Schedule a recorded run.

    Args:
        trace: the run.
        profile: the chip it ran on.
        infinite: pipes whose work takes no time.
        costs: another cost table than the profile's.
        compile: whether the loop runs compiled; None: when the trace is long.
        notice: told, in a sentence, of the one-time compilation that a long trace may start.

    Raises:
        UserError: the profile is no chip.
    """
    table = costs or costs_of(profile.name)
    visit, n = visit_of(trace), len(trace.rows)
    order = visit.order if len(visit.order) else np.arange(n)
    work = work_of(trace)
    kind, parent, inside = trace.kind, trace.rows["parent"], _inside_functions(trace, order)
    is_span = np.zeros(n, bool)
    is_span[parent[parent >= 0]] = True
    lane = lanes_of(trace, inside)
    placed = _placed(trace, visit, table)
    share = _sharing(work, order, visit, placed, table)
    instant = frozenset(int(pipe) for pipe in infinite)
    cycles = cycles_of(trace, work, table, lane, _serial(trace, order), share, instant)
    calls = trace.calls
    busy = cycles.busy // calls
    busy[np.isin(kind, (*GIVES, *TAKES))] = table.flag
    barrier = kind == Kind.BARRIER
    busy[barrier] = table.barrier * np.maximum(trace.rows["arg"][barrier].astype(np.int64), 1)
    seen = np.where(is_span | (kind == Kind.LAUNCH_BEGIN) | (kind == Kind.LAUNCH_END), pipes.OTHER, kind)
    seen[kind == Kind.CACHE] = pipes.OTHER
    seen[kind == Kind.ARRIVE] = pipes.SET_FLAG
    seen[kind == Kind.UNLOCK] = pipes.SET_FLAG
    seen[kind == Kind.LOCK] = pipes.WAIT_FLAG
    seen[(kind == Kind.LOCK) & (trace.rows["pipe2"] == 1)] = pipes.OTHER  # it holds nothing back
    partner = _partners(trace, order, visit)
    columns = (seen, trace.rows["pipe"], lane, busy, cycles.latency, calls, trace.rows["body"])
    since = np.zeros(n, np.int64)
    rows = pipes.Rows._make([*(np.ascontiguousarray(column[order], np.int64) for column in columns), partner, since])
    ordered = np.array([_name(pipe) in profile.ordered_pipes for pipe in range(N_PIPES)], np.int64)
    ports = np.array([table.ports[lane] for lane in LANES], np.int64)
    chip = np.array([table.issue, table.queue, table.vector_start, table.dispatch], np.int64)
    slots = 1 + max((core.slot for core in placed), default=0)
    slot = np.array([core.slot for core in placed], np.int64)
    is_long = int(calls.sum()) > PLAIN_ROWS if compile is None else compile
    place: Any = pipes.place
    walk: Any = pipes.walk_back
    if is_long:
        place, walk = compiled(pipes.place, notice), compiled(pipes.walk_back, notice)

    def placed_once() -> tuple[pipes.Times, int]:
        times = pipes.new_times(n)
        state = pipes.new_state(N_PIPES, table.queue, int(ports.max()), slots)
        arguments: Any = (pipes.Rules(ordered, ports, chip), rows, visit.starts, slot, visit.launch)
        if not is_long:
            arguments = (
                pipes.Rules(*(array.tolist() for array in arguments[0])),
                pipes.Rows(*(column.tolist() for column in rows)),
                *(array.tolist() for array in arguments[2:]),
            )
        return times, place(*arguments, times, state)

    times, last = placed_once()
    signals = _signals(trace, order, visit)
    for _ in range(len(signals) + 1):
        if not _passed_on(signals, times, partner, since):
            break
        times, last = placed_once()
    else:  # more blocks than cores, and they wait for each other: on the chip they would for ever
        for waits, _ in signals:
            partner[waits], since[waits] = -1, 0
        times, last = placed_once()
    ended = int(times.end.max(initial=0)) if last >= 0 else 0
    begin_end = [np.empty(2 * n + 1, np.int64) for _ in range(3)]
    length = walk(rows.kind, times, last, _time(times, last, n, ended), *begin_end)
    nodes, begins, ends = (array[:length][::-1].copy() for array in begin_end)

    def by_row(column: np.ndarray, fill: int = -1) -> np.ndarray:
        out = np.full(n, fill, np.int64)
        out[order] = column
        return out

    def rows_at(positions: np.ndarray) -> np.ndarray:
        return np.where(positions >= 0, order[np.maximum(positions, 0)] if n else positions, -1)

    start, end = by_row(times.start), by_row(times.end)
    _span(parent, trace.rows["pipe"], start, end)
    core = by_row(np.repeat(np.arange(len(visit.core)), np.diff(visit.starts)))
    return Schedule(
        trace, profile, table, work, cycles, visit, by_row(times.issue), start, end, by_row(times.idle, 0),
        by_row(rows_at(times.held)), np.where(lane >= 0, len(Pipe) + lane, trace.rows["pipe"]), core, is_span,
        by_row(rows_at(_both_ways(partner))), by_row(rows_at(_positions(times.by, n))),
        by_row(rows_at(_positions(times.issue_by, n))), by_row(times.issue_by >= n) == 1, by_row(times.alone, 0),
        _timed(placed, times, visit),
        Path(rows_at(_positions(nodes, n)), nodes >= n, begins, ends), instant,
    )  # fmt: skip


def _positions(nodes: np.ndarray, n: int) -> np.ndarray:
    return np.where(nodes >= n, nodes - n, nodes)


def _name(pipe: int) -> str:
    return Pipe(pipe).name


def _time(times: pipes.Times, node: int, n: int, ended: int) -> int:
    """When the last node is over."""
    if node < 0:
        return 0
    return int(times.end[node]) if node < n else ended


def _inside_functions(trace: Trace, order: np.ndarray) -> np.ndarray:
    """Rows between the begin and the end of a vector function."""
    kind = trace.kind[order]
    depth = np.cumsum((kind == Kind.VF_BEGIN).astype(np.int64) - (kind == Kind.VF_END))
    inside = np.zeros(len(order), bool)
    inside[order] = (depth > 0) & (kind != Kind.VF_BEGIN)
    return inside


def _serial(trace: Trace, order: np.ndarray) -> np.ndarray:
    """Rows that stand for several calls of an expansion, with a barrier after each: the next row is that barrier."""
    rows = trace.rows[order]
    serial = np.zeros(len(order), bool)
    if len(order) > 1:
        now, then = rows[:-1], rows[1:]
        is_pair = (now["parent"] >= 0) & (now["parent"] == then["parent"]) & (then["kind"] == Kind.BARRIER)
        serial[order[:-1]] = is_pair & (now["kind"] == Kind.INSTRUCTION) & (then["arg"] > 1)
    return serial


def _partners(trace: Trace, order: np.ndarray, visit: Visit) -> np.ndarray:
    """For each position that is a wait the position of its set, for a lock that of the unlock before it; -1 elsewhere."""
    partner = np.full(len(order), -1, np.int64)
    kind = trace.kind[order]
    positions = np.flatnonzero((kind == Kind.SET_FLAG) | (kind == Kind.WAIT_FLAG))
    flags = pair_flags(trace, order[positions], positions, visit)
    waits = np.flatnonzero(~flags.is_set & (flags.partner >= 0))
    partner[positions[waits]] = positions[flags.partner[waits]]
    unlocked: dict[tuple[int, int], int] = {}
    locks = np.flatnonzero((kind == Kind.LOCK) | (kind == Kind.UNLOCK))
    cores = np.searchsorted(visit.starts, locks, side="right")
    mutexes = trace.rows["arg"][order[locks]]
    for position, core, mutex in zip(locks.tolist(), cores.tolist(), mutexes.tolist(), strict=True):
        if kind[position] == Kind.UNLOCK:
            unlocked[core, mutex] = position
        else:
            partner[position] = unlocked.get((core, mutex), -1)
    return partner


def _signals(trace: Trace, order: np.ndarray, visit: Visit) -> list[tuple[list[int], list[int]]]:
    """Positions of the waits and of the arrivals of each signal between cores."""
    kind = trace.kind[order]
    positions = np.flatnonzero((kind == Kind.ARRIVE) | (kind == Kind.AWAIT))
    launch = visit.launch[np.searchsorted(visit.starts, positions, side="right") - 1]
    tokens = trace.rows["arg"][order[positions]]
    found: dict[tuple[int, int], tuple[list[int], list[int]]] = {}
    for position, number, token in zip(positions.tolist(), launch.tolist(), tokens.tolist(), strict=True):
        waits, arrivals = found.setdefault((number, token), ([], []))
        (arrivals if kind[position] == Kind.ARRIVE else waits).append(position)
    return [signal for (_, token), signal in found.items() if token and all(signal)]


def _passed_on(
    signals: list[tuple[list[int], list[int]]], times: pipes.Times, partner: np.ndarray, since: np.ndarray
) -> bool:
    """Tell the waits of each signal when its last arrival was complete; whether any hears something new.

    Cores are placed one after the other: where they wait for each other, as often as news come.
    """
    is_new = False
    for waits, arrivals in signals:
        newest = max(arrivals, key=lambda position: int(times.end[position]))
        at = int(times.end[newest])
        is_new |= bool((since[waits] != at).any())
        partner[waits], since[waits] = newest, at
    return is_new


def _both_ways(partner: np.ndarray) -> np.ndarray:
    both = partner.copy()
    waits = np.flatnonzero(partner >= 0)
    both[partner[waits]] = waits
    return both


def _placed(trace: Trace, visit: Visit, table: Costs) -> list[CoreRun]:
    """The cores of the launches and where they run; no times yet."""
    noted = {data.get("number", i): data for i, data in enumerate(trace.noted("launch"), start=1)}
    begins = trace.marks[trace.kind[trace.marks] == Kind.LAUNCH_BEGIN]
    numbers = {(int(trace.rows["core"][row]), int(row)): int(trace.rows["arg"][row]) for row in begins}
    placed: list[CoreRun] = []
    first_launch = int(visit.launch.min(initial=1))
    for index, (launch, core) in enumerate(zip(visit.launch.tolist(), visit.core.tolist(), strict=True)):
        first = int(visit.rows(visit.starts[index : index + 1])[0]) if visit.starts[index] < len(trace.rows) else -1
        cores = noted.get(numbers.get((core, first), -1), {}).get("cores", [])
        side, block = (cores[core % len(cores)][0], core // len(cores)) if cores else ("aiv", core)
        before = sum(1 for other in placed if other.launch == launch - first_launch and other.side == side)
        slot = before % table.slots if side == "aiv" else table.slots + before % max(table.slots // 2, 1)
        placed.append(CoreRun(launch - first_launch, core, block, side, slot, 0, 0))
    return placed


def _timed(placed: list[CoreRun], times: pipes.Times, visit: Visit) -> list[CoreRun]:
    """The cores with their begins and ends."""
    timed: list[CoreRun] = []
    for index, core in enumerate(placed):
        low, high = visit.starts[index], visit.starts[index + 1]
        earlier = [other for other in timed if other.launch < core.launch or other.slot == core.slot]
        begin = max((other.end for other in earlier), default=0)
        timed.append(core._replace(begin=begin, end=max(int(times.end[low:high].max(initial=-1)), begin)))
    return timed


def _sharing(work: Work, order: np.ndarray, visit: Visit, placed: list[CoreRun], table: Costs) -> np.ndarray:
    """For each row, how many cores at once share global memory's bandwidth with its own: those of its launch that use it."""
    core = np.repeat(np.arange(len(placed)), np.diff(visit.starts))
    uses = np.zeros(len(placed), bool)
    uses[core[work.gm[order] > 0]] = True
    share = np.ones(len(order), np.int64)
    for launch in {one.launch for one in placed}:
        slots = {one.slot for one, used in zip(placed, uses.tolist(), strict=True) if one.launch == launch and used}
        members = np.array([one.launch == launch for one in placed])
        share[order[members[core]]] = max(len(slots), 1)
    return share


def _span(parent: np.ndarray, pipe: np.ndarray, start: np.ndarray, end: np.ndarray) -> None:
    """Rows with steps last from the first step's start to the last one's end, of the steps on their own pipe."""
    far = np.iinfo(np.int64).max
    steps = np.flatnonzero((parent >= 0) & (start >= 0) & (pipe == pipe[parent]))
    while len(steps):
        owners = parent[steps]
        first, last = np.full(len(start), far), np.full(len(start), -1)
        np.minimum.at(first, owners, start[steps])
        np.maximum.at(last, owners, end[steps])
        owners = np.unique(owners)
        start[owners], end[owners] = first[owners], last[owners]
        steps = owners[parent[owners] >= 0]


__all__ = ["TRACKS", "CoreRun", "Path", "Schedule", "schedule"]
