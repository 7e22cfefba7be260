"""From a trace to a schedule: when every instruction of a run would start and end on the chip."""

from __future__ import annotations

from collections.abc import Callable, Collection
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np

from ascsim.machine.native import as_sequence, compiled
from ascsim.machine.trace import Kind, Trace
from ascsim.machine.visit import Visit, pair_flags, visit_of
from ascsim.machine.words import N_PIPES, Pipe
from ascsim.profiles import Profile
from ascsim.profiles.costs import LANES, Costs
from ascsim.profiles.costs import costs as costs_of
from ascsim.timing import pipes
from ascsim.timing.forms import Forms, forms_of
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
    its steps. ``issue`` is when the scalar unit gave it out. ``idle`` is how long its pipe was idle before it, between work,
    and ``held`` the row of the wait or barrier that kept it so (-1: it was not issued earlier). What rows have in common is
    told of their forms: the number in :data:`TRACKS` of where they run (``track_of``), how many calls they stand for
    (``calls_of``), ``work`` and ``cycles``.
    """

    trace: Trace
    profile: Profile
    costs: Costs
    forms: Forms
    track_of: np.ndarray
    calls_of: np.ndarray
    work: Work
    cycles: Cycles
    visit: Visit
    issue: np.ndarray
    start: np.ndarray
    end: np.ndarray
    idle: np.ndarray
    held: np.ndarray
    by: np.ndarray
    """The row that the start (of a flag operation or barrier: its effect) waited for, -1 for none."""
    given_by: np.ndarray
    """The row whose issue, or whose work, the issue of this one waited for, -1 for none."""
    given_by_issue: np.ndarray
    """Whether it was that row's issue."""
    waits_for: np.ndarray
    """By position in the visit: for a wait the position of its set, for a lock that of the unlock before it, else -1."""
    worked: np.ndarray
    """Cycles in which each track was at work, those of overlapping instructions counted once, all cores together."""
    cores: list[CoreRun]
    path: Path
    infinite: frozenset[int] = frozenset()

    @property
    def total(self) -> int:
        """Cycles from the begin of the first launch to the end of the last."""
        return max((core.end for core in self.cores), default=0)

    @cached_property
    def track(self) -> np.ndarray:
        """The number in :data:`TRACKS` of where each row runs."""
        return self.track_of[self.forms.of]

    @cached_property
    def core(self) -> np.ndarray:
        """The number in :attr:`cores` of each row's core."""
        return _by_row(np.repeat(np.arange(len(self.cores), dtype=np.int32), np.diff(self.visit.starts)), self.visit)

    @cached_property
    def is_span(self) -> np.ndarray:
        """The rows that have steps."""
        return self.forms.is_span[self.forms.of]

    @cached_property
    def partner(self) -> np.ndarray:
        """For a wait the row of its set, for a set that of its wait, for a lock the unlock before it, else -1."""
        both, waits = self.waits_for.copy(), np.flatnonzero(self.waits_for >= 0)
        both[both[waits]] = waits
        return _by_row(_rows(both, self.visit), self.visit)

    def roots_of(self, rows: np.ndarray) -> np.ndarray:
        """For rows the instructions that the user wrote: themselves, or those whose expansions they are steps of."""
        if not self.forms.is_span.any():
            return rows
        roots, parent = rows, self.trace.fields(rows, "parent")[0]
        while (inner := np.flatnonzero(parent >= 0)).size:
            roots = np.where(parent >= 0, parent, roots)
            parent = np.full_like(parent, -1)
            parent[inner] = self.trace.fields(roots[inner], "parent")[0]
        return roots

    @cached_property
    def roots(self) -> np.ndarray:
        """:meth:`roots_of` of all rows."""
        roots = np.arange(len(self.trace.rows), dtype=np.int32)
        for begin, end in self.trace.stretches("reading the trace"):
            roots[begin:end] = self.roots_of(roots[begin:end])
        return roots

    @cached_property
    def length(self) -> np.ndarray:
        """Cycles from start to end; those of the turns of a loop, which overlap, added up."""
        each, of = self.cycles.busy // self.calls_of + self.cycles.latency, self.forms.of
        return np.where(self.calls_of[of] > 1, (self.calls_of * each)[of], self.end - self.start)

    @cached_property
    def works(self) -> np.ndarray:
        """The forms whose rows keep a track busy: instructions and vector functions, not what is made of steps."""
        kind = self.trace.kind[self.forms.first]
        return ((kind == Kind.INSTRUCTION) | (kind == Kind.VF_BEGIN)) & ~self.forms.is_span

    @cached_property
    def is_work(self) -> np.ndarray:
        """The rows that keep a track busy."""
        return self.works[self.forms.of] & (self.start >= 0)


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
        compile: whether the loops run compiled; None: when the trace is long.
        notice: told, in a sentence, of the one-time compilation that a long trace may start.

    Raises:
        UserError: the profile is no chip.
    """
    table = costs or costs_of(profile.name)
    visit, n = visit_of(trace), len(trace.rows)
    turns = int(trace.rows["arg"][trace.folded].sum())
    is_long = n + turns > PLAIN_ROWS if compile is None else compile
    forms = forms_of(trace, visit, is_long, notice)
    sample = forms.sample(trace)
    work, lane = work_of(sample), lanes_of(sample, forms.inside)
    placed = _placed(trace, visit, table)
    share = _sharing(forms, visit, placed)
    instant = frozenset(int(pipe) for pipe in infinite)
    cycles = cycles_of(sample, work, table, lane, forms.is_serial, share, instant)
    kind, calls, busy = _kinds(sample, forms), sample.calls, _busy(sample, cycles, table)
    partner, since = _partners(trace, visit), np.zeros(n, np.int64)
    of = forms.of[visit.order] if len(visit.order) else forms.of
    columns = [
        np.ascontiguousarray(c, np.int64)
        for c in (kind, sample.rows["pipe"], lane, busy, cycles.latency, calls, sample.rows["body"])
    ]
    rows = pipes.Rows._make([*columns, of, partner, since])
    ordered = np.array([_name(pipe) in profile.ordered_pipes for pipe in range(N_PIPES)], np.int64)
    ports = np.array([table.ports[lane] for lane in LANES], np.int64)
    chip = np.array([table.issue, table.queue, table.vector_start, table.dispatch], np.int64)
    slots = 1 + max((core.slot for core in placed), default=0)
    slot = np.array([core.slot for core in placed], np.int64)
    signals = _signals(trace, visit)
    # No run takes longer than all of it one after the other, unless cores wait for each other in circles.
    longest = int(((busy + cycles.latency + table.issue + 2) * calls * forms.count).sum())
    longest += int(forms.count[kind == pipes.VF_BEGIN].sum()) * table.vector_start
    type_of_cycles = np.int32 if longest < np.iinfo(np.int32).max and not signals else np.int64

    def loop(function: Callable) -> Any:
        return compiled(function, notice) if is_long else function

    def given(*tables: Any) -> Any:
        """Tables as loops want them."""
        return [type(each)(*given(*each)) if isinstance(each, tuple) else as_sequence(each, is_long) for each in tables]

    arguments = given(pipes.Rules(ordered, ports, chip), rows, visit.starts, slot, visit.launch)

    def placed_once() -> tuple[pipes.Times, pipes.State, int]:
        times, last = pipes.new_times(n, type_of_cycles), -1
        state = pipes.new_state(N_PIPES, table.queue, int(ports.max()), slots)
        for begin, end in trace.stretches("scheduling"):
            last = loop(pipes.place)(*arguments, times, state, begin, end)
        return times, state, last

    times, state, last = placed_once()
    for _ in range(len(signals) + 1):
        if not _passed_on(signals, times, partner, since):
            break
        arguments[1:2] = given(rows)
        times, state, last = placed_once()
    else:  # more blocks than cores, and they wait for each other: on the chip they would for ever
        for waits, _ in signals:
            partner[waits], since[waits] = -1, 0
        arguments[1:2] = given(rows)
        times, state, last = placed_once()
    path = _path(loop(pipes.walk_back), arguments[1], times, last, visit)
    cores = _timed(placed, times, visit)
    if forms.is_span.any():
        records, positions = given(trace.rows, _inverse(visit.order))
        for begin, end in trace.stretches("scheduling"):
            loop(pipes.span)(records, arguments[1], times, positions, n - end, n - begin)
    given_by_issue = _by_row(times.issue_by >= n, visit)
    issue, start, ends, idle = (_by_row(column, visit) for column in (times.issue, times.start, times.end, times.idle))
    held, by, given_by = (_by_row(_rows(column, visit), visit) for column in (times.held, times.by, times.issue_by))
    track = np.where(lane >= 0, len(Pipe) + lane, sample.rows["pipe"]).astype(np.uint8)
    return Schedule(
        trace, profile, table, forms, track, calls, work, cycles, visit, issue, start, ends, idle, held, by, given_by,
        given_by_issue, partner, state.worked, cores, path, instant,
    )  # fmt: skip


def _kinds(sample: Trace, forms: Forms) -> np.ndarray:
    """What each form is to the pipes."""
    kind, rows = sample.kind, sample.rows
    seen = np.where(forms.is_span | np.isin(kind, (Kind.LAUNCH_BEGIN, Kind.LAUNCH_END, Kind.CACHE)), pipes.OTHER, kind)
    seen[(kind == Kind.ARRIVE) | (kind == Kind.UNLOCK)] = pipes.SET_FLAG
    seen[kind == Kind.LOCK] = pipes.WAIT_FLAG
    seen[(kind == Kind.LOCK) & (rows["pipe2"] == 1)] = pipes.OTHER  # it holds nothing back
    return seen


def _busy(sample: Trace, cycles: Cycles, table: Costs) -> np.ndarray:
    """For how long a call of each form holds its pipe."""
    busy, kind = cycles.busy // sample.calls, sample.kind
    busy[np.isin(kind, (*GIVES, *TAKES))] = table.flag
    barrier = kind == Kind.BARRIER
    busy[barrier] = table.barrier * np.maximum(sample.rows["arg"][barrier].astype(np.int64), 1)
    return busy


def _path(walk: Any, rows: Any, times: pipes.Times, last: int, visit: Visit) -> Path:
    """The critical path, back from the node that ends last."""
    n, number = len(times.end), times.end.dtype
    end = 0
    if last >= 0:
        end = int(times.end[last]) if last < n else int(times.end.max(initial=0))
    none = np.zeros(0, np.int32), np.zeros(0, number)
    length = walk(rows, times, last, end, *none)
    nodes, cuts = np.empty(length, np.int32), np.empty(length + 1, number)
    if length:
        walk(rows, times, last, end, nodes, cuts)
    is_issue = nodes >= n
    return Path(_rows(nodes, visit), is_issue, cuts[:-1], cuts[1:])


def _rows(nodes: np.ndarray, visit: Visit) -> np.ndarray:
    """The rows of nodes, in their place; -1 stays what it is."""
    np.subtract(nodes, int(visit.starts[-1]), out=nodes, where=nodes >= visit.starts[-1])
    if len(visit.order):
        nodes[:] = np.where(nodes >= 0, visit.order[nodes], -1)
    return nodes


def _by_row(column: np.ndarray, visit: Visit) -> np.ndarray:
    """A column by position as one by row."""
    if not len(visit.order):
        return column
    out = np.empty_like(column)
    out[visit.order] = column
    return out


def _inverse(order: np.ndarray) -> np.ndarray:
    positions = np.empty_like(order)
    positions[order] = np.arange(len(order), dtype=order.dtype)
    return positions


def _name(pipe: int) -> str:
    return Pipe(pipe).name


def _partners(trace: Trace, visit: Visit) -> np.ndarray:
    """For each position that is a wait the position of its set, for a lock that of the unlock before it; -1 elsewhere."""
    partner = np.full(len(trace.rows), -1, np.int32)
    rows, positions = _marks(trace, visit, Kind.SET_FLAG, Kind.WAIT_FLAG)
    flags = pair_flags(trace, rows, positions, visit)
    waits = np.flatnonzero(~flags.is_set & (flags.partner >= 0))
    partner[positions[waits]] = positions[flags.partner[waits]]
    unlocked: dict[tuple[int, int], int] = {}
    rows, positions = _marks(trace, visit, Kind.LOCK, Kind.UNLOCK)
    cores = np.searchsorted(visit.starts, positions, side="right")
    columns = (positions, cores, trace.rows["arg"][rows], trace.kind[rows])
    for position, core, mutex, kind in zip(*(column.tolist() for column in columns), strict=True):
        if kind == Kind.UNLOCK:
            unlocked[core, mutex] = position
        else:
            partner[position] = unlocked.get((core, mutex), -1)
    return partner


def _signals(trace: Trace, visit: Visit) -> list[tuple[list[int], list[int]]]:
    """Positions of the waits and of the arrivals of each signal between cores."""
    rows, positions = _marks(trace, visit, Kind.ARRIVE, Kind.AWAIT)
    launch = visit.launch[np.searchsorted(visit.starts, positions, side="right") - 1]
    columns = (positions, launch, trace.rows["arg"][rows], trace.kind[rows])
    found: dict[tuple[int, int], tuple[list[int], list[int]]] = {}
    for position, number, token, kind in zip(*(column.tolist() for column in columns), strict=True):
        waits, arrivals = found.setdefault((number, token), ([], []))
        (arrivals if kind == Kind.ARRIVE else waits).append(position)
    return [signal for (_, token), signal in found.items() if token and all(signal)]


def _marks(trace: Trace, visit: Visit, *kinds: Kind) -> tuple[np.ndarray, np.ndarray]:
    """The rows of these kinds, none of which is that of instructions, as the cores come by them, and their positions."""
    rows = trace.marks[np.isin(trace.kind[trace.marks], kinds)]
    if not len(visit.order):
        return rows, rows
    positions = _inverse(visit.order)[rows]
    order = np.argsort(positions)
    return rows[order], positions[order]


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


def _sharing(forms: Forms, visit: Visit, placed: list[CoreRun]) -> np.ndarray:
    """For each form, how many cores at once share global memory's bandwidth with its own: those of its launch that use it."""
    share = np.ones(len(forms.first), np.int64)
    for launch in {int(number) for number in visit.launch}:
        slots = {
            one.slot
            for one, used, number in zip(placed, forms.uses.tolist(), visit.launch.tolist(), strict=True)
            if number == launch and used
        }
        share[forms.launch == launch] = max(len(slots), 1)
    return share


__all__ = ["TRACKS", "CoreRun", "Path", "Schedule", "schedule"]
