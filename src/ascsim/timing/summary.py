"""What a schedule comes to: cycles by pipe, what bounds the run, the critical path by source line, the bubbles."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from ascsim.diagnostics import Site
from ascsim.machine.dtypes import BY_CODE
from ascsim.machine.signals import unpacked
from ascsim.machine.trace import Kind
from ascsim.machine.words import Pipe
from ascsim.profiles.costs import LANES
from ascsim.timing.schedule import TRACKS, Schedule

Sites = Callable[[int, int], Site | None]
ISSUE = "issue"
"""The name of what the scalar unit spends on giving out other pipes' instructions."""
_STEPS_BACK = 64
"""How many instructions before a late one are looked at for what held the scalar unit."""


@dataclass(frozen=True)
class Track:
    """One pipe (or lane of vector functions), all cores together: cycles at work, and as a share of the cores' time."""

    name: str
    instructions: int
    cycles: int
    share: float
    on_path: int
    """Cycles of the critical path that it is responsible for."""


@dataclass(frozen=True)
class Stretch:
    """A piece of the critical path: instructions of one source line, in turn."""

    where: str
    instructions: tuple[str, ...]
    track: str
    begin: int
    end: int


@dataclass(frozen=True)
class Line:
    """What a source line has of the critical path."""

    where: str
    instructions: tuple[str, ...]
    cycles: int
    share: float


@dataclass(frozen=True)
class Bubble:
    """A pipe idle between work, for one reason: ``cause`` is the flag, barrier or issue, ``where`` its source line,
    ``behind`` what that waited for."""

    track: str
    cause: str
    where: str
    behind: str
    cycles: int
    times: int


@dataclass(frozen=True)
class Roofline:
    """Bytes of global memory against elements worked on. Rates are for one cycle of the whole launch."""

    bytes: int
    operations: int
    intensity: float
    """Operations a byte."""
    peak: float
    """Operations a cycle at best, on the cores in use."""
    bandwidth: float
    """Bytes a cycle at best: copies of this size, each pipe at work all the time."""
    ridge: float
    """The intensity from which on computing bounds."""
    reached: float
    """Operations a cycle."""
    roof: float
    """Operations a cycle that this intensity allows."""

    @property
    def bound(self) -> str:
        """``memory`` or ``compute``."""
        return "memory" if self.intensity < self.ridge else "compute"


@dataclass(frozen=True)
class Summary:
    """The figures of a run. ``guess_share`` is the part of the critical path that rests on guessed costs, ``guesses``
    those costs, largest first, with their cycles on it."""

    cycles: int
    microseconds: float
    mhz: float
    launches: int
    cores: int
    waves: int
    bound: str
    bound_share: float
    tracks: tuple[Track, ...]
    lines: tuple[Line, ...]
    path: tuple[Stretch, ...]
    bubbles: tuple[Bubble, ...]
    roofline: Roofline
    guess_share: float
    guesses: tuple[tuple[str, int], ...]
    infinite: tuple[str, ...] = ()

    def as_dict(self) -> dict[str, Any]:
        """Plain data for JSON."""
        return asdict(self) | {"roofline": asdict(self.roofline) | {"bound": self.roofline.bound}}


def summarize(schedule: Schedule, sites: Sites) -> Summary:
    """The figures of a schedule; ``sites(number, flags)`` gives the source site behind a row's."""
    reader = _Reader(schedule, sites)
    tracks = tuple(reader.tracks())
    on_path = sorted(tracks, key=lambda track: -track.on_path)
    total = schedule.total
    guesses = reader.guesses()
    slots = {core.slot for core in schedule.cores}
    most = max((sum(c.launch == n for c in schedule.cores) for n in {c.launch for c in schedule.cores}), default=0)
    return Summary(
        cycles=total,
        microseconds=schedule.costs.microseconds(total),
        mhz=float(schedule.costs.mhz),
        launches=len({core.launch for core in schedule.cores}),
        cores=len(slots),
        waves=-(-most // max(len(slots), 1)),
        bound=on_path[0].name if on_path else "",
        bound_share=on_path[0].on_path / total if on_path and total else 0.0,
        tracks=tracks,
        lines=tuple(reader.lines()),
        path=tuple(reader.stretches()),
        bubbles=tuple(reader.bubbles()),
        roofline=reader.roofline(len(slots)),
        guess_share=sum(cycles for _, cycles in guesses) / total if total else 0.0,
        guesses=tuple(guesses),
        infinite=tuple(Pipe(pipe).name for pipe in sorted(schedule.infinite)),
    )


class _Reader:
    """The parts of a summary."""

    def __init__(self, schedule: Schedule, sites: Sites) -> None:
        self.schedule = schedule
        self.trace = schedule.trace
        self.sites = sites
        path = schedule.path
        self._held = path.end - path.begin
        """Cycles of each piece of the critical path."""

        self._roots = schedule.roots
        self._lines: list[str] = []
        self._line_of = self._number_lines()
        """For each row, the number of its source line."""

    # Names

    def _number_lines(self) -> np.ndarray:
        rows, roots = self.trace.rows, self._roots
        sites, first, member = np.unique(rows["site"][roots], return_index=True, return_inverse=True)
        numbers: dict[str, int] = {}
        of_site = np.zeros(len(sites), np.int64)
        for n, (number, row) in enumerate(zip(sites.tolist(), first.tolist(), strict=True)):
            site = self.sites(number, int(rows["flags"][roots[row]])) if number else None
            text = "" if site is None else f"{site.path}:{site.line}" if site.line else site.path
            of_site[n] = numbers.setdefault(text, len(numbers))
        self._lines = list(numbers)
        lines = of_site[member]
        unknown = lines == numbers.get("", -1)  # told apart by their instructions
        lines[unknown] = len(numbers) + rows["mnemonic"][roots[unknown]]
        return lines

    def where(self, row: int) -> str:
        """The source line of a row; where none is known, the instruction."""
        number = int(self._line_of[row])
        return self._lines[number] if number < len(self._lines) else self.name(int(self._roots[row]))

    def _names(self, rows: np.ndarray) -> tuple[str, ...]:
        return tuple(dict.fromkeys(self.name(row) for row in rows.tolist()))

    def name(self, row: int) -> str:
        """The row's instruction."""
        kind = Kind(int(self.trace.kind[row]))
        if kind is Kind.VF_BEGIN:
            return "vector function"
        return self.trace.titles.get(int(self.trace.rows["mnemonic"][row]), kind.name.lower())

    def _track_name(self, row: int, is_issue: bool) -> str:
        return ISSUE if is_issue else TRACKS[int(self.schedule.track[row])]

    # Parts

    def tracks(self) -> Iterator[Track]:
        """Tracks that did anything, in order of number, and the issue of their instructions."""
        schedule, path = self.schedule, self.schedule.path
        whole = max(sum(core.end - core.begin for core in schedule.cores), 1)
        work = np.flatnonzero(schedule.is_work)
        for number, name in enumerate(TRACKS):
            rows = work[schedule.track[work] == number]
            if len(rows):
                cycles = _at_work(schedule, rows)
                mine = ~path.is_issue & (schedule.track[path.rows] == number)
                yield Track(
                    name, int(self.trace.calls[rows].sum()), cycles, cycles / whole, int(self._held[mine].sum())
                )
        issued = int(np.count_nonzero(schedule.issue >= 0))
        if issued:
            cycles = issued * schedule.costs.issue
            yield Track(ISSUE, issued, cycles, cycles / whole, int(self._held[path.is_issue].sum()))

    def stretches(self, limit: int = 200) -> list[Stretch]:
        """The critical path in order of time, at most ``limit`` pieces, the longest."""
        path = self.schedule.path
        lasting = np.flatnonzero(self._held > 0)
        if not len(lasting):
            return []
        rows, is_issue = path.rows[lasting], path.is_issue[lasting]
        place, track = self._line_of[rows], np.where(is_issue, -1, self.schedule.track[rows])
        fresh = np.ones(len(rows), bool)
        fresh[1:] = (place[1:] != place[:-1]) | (track[1:] != track[:-1])
        first = np.flatnonzero(fresh)
        last = np.append(first[1:], len(rows)) - 1
        begin, end = path.begin[lasting][first], path.end[lasting][last]
        longest = np.sort(np.argsort(begin - end, kind="stable")[:limit])
        pieces = []
        for n in longest.tolist():
            inside = rows[first[n] : last[n] + 1]
            names = self._names(inside[np.unique(self.trace.rows["mnemonic"][inside], return_index=True)[1]])
            where, on = self.where(int(inside[0])), self._track_name(int(inside[0]), bool(is_issue[first[n]]))
            pieces.append(Stretch(where, names, on, int(begin[n]), int(end[n])))
        return pieces

    def lines(self) -> list[Line]:
        """Source lines by their part of the critical path, the largest first."""
        total, rows = max(self.schedule.total, 1), self.schedule.path.rows
        places, first, member = np.unique(self._line_of[rows], return_index=True, return_inverse=True)
        held = np.bincount(member, self._held, len(places)).astype(np.int64).tolist()
        kinds = np.stack([member, self.trace.rows["mnemonic"][self._roots[rows]]])
        _, distinct = np.unique(kinds, axis=1, return_index=True)
        names: dict[int, list[int]] = {}
        for number in sorted(distinct.tolist()):
            names.setdefault(int(member[number]), []).append(int(self._roots[rows[number]]))
        lines = [
            Line(self.where(int(rows[first[n]])), self._names(np.array(names[n])), held[n], held[n] / total)
            for n in range(len(places)) if held[n]
        ]  # fmt: skip
        return sorted(lines, key=lambda line: -line.cycles)

    def bubbles(self) -> list[Bubble]:
        """Idle time of pipes between work, by what kept them, the longest first."""
        schedule = self.schedule
        rows = np.flatnonzero((schedule.idle > 0) & schedule.is_work & (schedule.track != Pipe.S))
        sums: dict[tuple[str, str, str, str], list[int]] = {}
        for row, held, idle in zip(
            rows.tolist(), schedule.held[rows].tolist(), schedule.idle[rows].tolist(), strict=True
        ):
            key = (TRACKS[int(schedule.track[row])], *self._reason(row, held))
            counted = sums.setdefault(key, [0, 0])
            counted[0] += idle
            counted[1] += 1
        bubbles = [Bubble(*key, cycles, times) for key, (cycles, times) in sums.items()]
        return sorted(bubbles, key=lambda bubble: -bubble.cycles)

    def _reason(self, row: int, held: int) -> tuple[str, str, str]:
        """(cause, source line, what that waited for) of the idle time before a row."""
        if held < 0:
            return self._late(row)
        record = self.trace.rows[held]
        if record["kind"] == Kind.WAIT_FLAG:
            source, target = Pipe(int(record["pipe2"])).name, Pipe(int(record["pipe"])).name
            cause = f"flag {source} to {target}, EVENT_ID{int(record['arg'])}"
        elif record["kind"] == Kind.LOCK:
            cause = f"mutex {int(record['arg'])}"
        elif record["kind"] == Kind.AWAIT:
            cause = f"flag {unpacked(int(record['pipe2']))[1]} of other cores"
        else:
            cause = f"barrier on PIPE_{Pipe(int(record['pipe'])).name}"
        behind = held
        while behind >= 0 and not self.schedule.is_work[behind]:
            behind = int(self.schedule.by[behind])
        return cause, self.where(held), f"{self.name(behind)} at {self.where(behind)}" if behind >= 0 else ""

    def _late(self, row: int) -> tuple[str, str, str]:
        """The reason of a row that the scalar unit gave out late: what held the scalar unit."""
        schedule, at = self.schedule, row
        for _ in range(_STEPS_BACK):
            if not schedule.given_by_issue[at] or schedule.given_by[at] < 0:
                break
            at = int(schedule.given_by[at])
        holder = int(schedule.given_by[at])
        if schedule.given_by_issue[at] or holder < 0 or schedule.track[holder] == Pipe.S:
            if holder >= 0 and self.trace.kind[holder] == Kind.WAIT_FLAG:
                return self._reason(row, holder)
            return f"{ISSUE}: the scalar unit gave it out only then", self.where(row), ""
        name = f"{self.name(holder)} at {self.where(holder)}"
        return f"{ISSUE}: the queue of {TRACKS[int(schedule.track[holder])]} is full", self.where(row), name

    def roofline(self, cores: int) -> Roofline:
        """Where the run lies between memory and computing."""
        schedule, work, costs = self.schedule, self.schedule.work, self.schedule.costs
        is_work = schedule.is_work
        computes = is_work & np.isin(schedule.track, (Pipe.V, Pipe.M, len(Pipe) + LANES.index("execute")))
        computes &= self.trace.kind == Kind.INSTRUCTION
        register = computes & (schedule.track >= len(Pipe))
        codes = np.bincount(self.trace.rows["dtype"][computes], self.trace.calls[computes], 256)
        codes[0] = 0
        size = BY_CODE[int(codes.argmax())].size if codes.any() else 4
        operations = int(work.elements[computes & ~register].sum())
        operations += int(self.trace.calls[register].sum()) * (schedule.profile.vector_bytes // size)
        moved = int(work.gm[is_work].sum())
        peak = cores * float(costs.vector_bytes) / size
        copies = np.flatnonzero(is_work & (work.gm > 0))
        by_pipe = np.bincount(schedule.track[copies], schedule.cycles.busy[copies])
        longest = float(by_pipe.max(initial=0)) / max(cores, 1)  # loads and stores go side by side
        bandwidth = min(moved / longest, float(costs.gm_bytes)) if longest else float(costs.gm_bytes)
        intensity = operations / moved if moved else float(operations > 0) * 1e9
        return Roofline(
            moved, operations, intensity, peak, bandwidth, peak / bandwidth if bandwidth else 0.0,
            operations / schedule.total if schedule.total else 0.0, min(peak, intensity * bandwidth),
        )  # fmt: skip

    def guesses(self) -> list[tuple[str, int]]:
        """Guessed costs on the critical path: the entry's source and its cycles, largest first."""
        schedule, path = self.schedule, self.schedule.path
        sums: dict[int, float] = {}
        cycles = schedule.cycles
        whole = np.maximum(cycles.busy + cycles.latency, 1)
        rows = path.rows
        part = (
            np.where(path.is_issue, 0.0, self._held * cycles.guessed[rows] / whole[rows]) if len(rows) else np.zeros(0)
        )
        for entry in np.unique(cycles.entry[rows[part > 0]]).tolist():
            sums[entry] = float(part[cycles.entry[rows] == entry].sum())
        found = [(schedule.costs.entries[entry].source, round(value)) for entry, value in sums.items()]
        issue = int(self._held[path.is_issue].sum())
        if issue and schedule.costs.sources["issue"].startswith("guess"):
            found.append(("guess: what the scalar unit takes to issue an instruction", issue))
        return sorted(found, key=lambda guess: -guess[1])


def _at_work(schedule: Schedule, rows: np.ndarray) -> int:
    """Cycles in which rows of one track are at work, those of overlapping instructions counted once."""
    if schedule.track[rows[0]] >= len(Pipe):
        return int(schedule.alone[rows].sum())
    order = rows[np.lexsort((schedule.start[rows], schedule.core[rows]))]
    core, start, end = schedule.core[order], schedule.start[order], schedule.end[order]
    reach = _reach(core, end)
    before = np.full(len(order), -1, np.int64)
    same = core[1:] == core[:-1]
    before[1:][same] = reach[:-1][same]
    return int(np.maximum(end - np.maximum(start, before), 0).sum())


def _reach(core: np.ndarray, end: np.ndarray) -> np.ndarray:
    """The latest end up to each row of its core; rows come core by core."""
    high = int(end.max(initial=0)) + 1
    return np.maximum.accumulate(end + core * high) - core * high
