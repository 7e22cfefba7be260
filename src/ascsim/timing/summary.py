"""What a schedule comes to: cycles by pipe, what bounds the run, the critical path by source line, the bubbles."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from ascsim.diagnostics import Site
from ascsim.machine.dtypes import BY_CODE
from ascsim.machine.signals import unpacked
from ascsim.machine.trace import Kind
from ascsim.machine.words import Pipe
from ascsim.profiles.costs import LANES
from ascsim.timing.schedule import TRACKS, Path, Schedule

Sites = Callable[[int, int], Site | None]
ISSUE = "issue"
"""The name of what the scalar unit spends on giving out other pipes' instructions."""
_STEPS_BACK = 64
"""How many instructions before a late one are looked at for what held the scalar unit."""
_AT_ONCE = 1 << 20
"""Rows looked at together: what is made of them is small beside a long trace."""
_BOX = 16 * 16 * 32
"""Multiply-adds of a box that the cube multiplies, of one-byte elements."""
_HELD, _ISSUED, _FULL = range(3)
"""Why a pipe was idle: a wait or barrier held it, or its next instruction came late; or it came late for a queue was full."""


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
    """Bytes of global memory against operations: elements worked on, or, of a run with matrix products, their
    multiply-adds. Rates are for one cycle of the whole launch."""

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
    """The parts of a summary. What is the same of all rows of a form is worked out once; a long trace is passed in parts."""

    def __init__(self, schedule: Schedule, sites: Sites) -> None:
        self.schedule = schedule
        self.trace = schedule.trace
        self.sites = sites
        self._first = schedule.forms.first
        self._rows = self.trace.records(self._first)
        self._mnemonic, self._kind = self._rows["mnemonic"], self._rows["kind"]
        self._calls = schedule.forms.count * schedule.calls_of
        self._lines: list[str] = []
        self._line_of = self._number_lines()
        """For each form, the number of the source line of rows that are no steps."""
        self._read_path()

    # Names

    def _number_lines(self) -> np.ndarray:
        rows = self._rows
        numbers: dict[str, int] = {}
        of_form = np.zeros(len(rows), np.int64)
        of_site: dict[tuple[int, int], str] = {}
        for n, (number, flags) in enumerate(zip(rows["site"].tolist(), rows["flags"].tolist(), strict=True)):
            if number and (number, flags) not in of_site:
                site = self.sites(number, flags)
                of_site[number, flags] = "" if site is None else f"{site.path}:{site.line}" if site.line else site.path
            text = of_site.get((number, flags), "")
            of_form[n] = numbers.setdefault(text, len(numbers))
        self._lines = list(numbers)
        unknown = of_form == numbers.get("", -1)  # told apart by their instructions
        of_form[unknown] = len(numbers) + rows["mnemonic"][unknown]
        return of_form

    def _place(self, rows: np.ndarray) -> np.ndarray:
        """The numbers of the source lines of rows."""
        return self._line_of[self.schedule.forms.of[self.schedule.roots_of(rows)]]

    def where(self, row: int) -> str:
        """The source line of a row; where none is known, the instruction."""
        (root,) = self.schedule.roots_of(np.array([row])).tolist()
        number = int(self._line_of[self.schedule.forms.of[root]])
        return self._lines[number] if number < len(self._lines) else self.name(root)

    def _names(self, rows: Iterable[int]) -> tuple[str, ...]:
        return tuple(dict.fromkeys(self.name(row) for row in rows))

    def name(self, row: int) -> str:
        """The row's instruction."""
        kind = Kind(int(self.trace.kind[row]))
        if kind is Kind.VF_BEGIN:
            return "vector function"
        return self.trace.titles.get(int(self.trace.rows["mnemonic"][row]), kind.name.lower())

    # The critical path

    def _parts_of_path(self, begin: int = 0, end: int | None = None) -> Iterator[tuple[int, Path, np.ndarray]]:
        """The path in parts: where each begins in it, the part, and its cycles."""
        path, end = self.schedule.path, len(self.schedule.path.rows) if end is None else end
        for low in range(begin, end, _AT_ONCE):
            part = Path(*(column[low : min(low + _AT_ONCE, end)] for column in path))
            yield low, part, part.end - part.begin

    def _read_path(self) -> None:
        """Sums over the path by form: cycles of work of its rows; cycles of work and issue of what they are steps of."""
        forms = self.schedule.forms
        n = len(forms.first)
        self._on_path, self._on_path_as_root = np.zeros(n), np.zeros(n)  # exact: below 2**53
        self._issue_on_path = 0
        self._first_on_path = np.full(n, len(self.schedule.path.rows))
        for low, part, held in self._parts_of_path():
            work = ~part.is_issue
            self._on_path += np.bincount(forms.of[part.rows[work]], held[work], n)
            self._issue_on_path += int(held[part.is_issue].sum())
            of_root = forms.of[self.schedule.roots_of(part.rows)]
            self._on_path_as_root += np.bincount(of_root, held, n)
            here = np.full(n, len(self.schedule.path.rows))
            here[of_root[::-1]] = np.arange(low, low + len(of_root))[::-1]  # the first of each counts
            np.minimum(self._first_on_path, here, out=self._first_on_path)

    # Parts

    def tracks(self) -> Iterator[Track]:
        """Tracks that did anything, in order of number, and the issue of their instructions."""
        schedule = self.schedule
        whole = max(sum(core.end - core.begin for core in schedule.cores), 1)
        for number, name in enumerate(TRACKS):
            here = schedule.track_of == number
            calls = int(self._calls[here & schedule.works].sum())
            if calls:
                cycles = int(schedule.worked[number])
                yield Track(name, calls, cycles, cycles / whole, int(self._on_path[here].sum()))
        issued = int(np.count_nonzero(schedule.issue >= 0))
        if issued:
            cycles = issued * schedule.costs.issue
            yield Track(ISSUE, issued, cycles, cycles / whole, self._issue_on_path)

    def stretches(self, limit: int = 200) -> list[Stretch]:
        """The critical path in order of time, at most ``limit`` pieces, the longest."""
        found: list[tuple[int, int, int, int, int]] = []  # cycles, begin, end, first and last place in the path
        key = begin = end = first = last = -1
        for low, part, held in self._parts_of_path():
            lasting = np.flatnonzero(held > 0)
            if not len(lasting):
                continue
            rows = part.rows[lasting]
            keys = self._place(rows) * 256 + np.where(
                part.is_issue[lasting], 255, self.schedule.track_of[self.schedule.forms.of[rows]]
            )
            cuts = np.append(np.flatnonzero(np.diff(keys, prepend=key)), len(keys))
            if cuts[0] > 0:  # the piece before goes on
                end, last = int(part.end[lasting[cuts[0] - 1]]), low + int(lasting[cuts[0] - 1])
            if len(cuts) == 1:
                continue
            if key >= 0:
                found.append((end - begin, begin, end, first, last))
            firsts, lasts = lasting[cuts[:-1]], lasting[cuts[1:] - 1]
            pieces = np.stack([part.begin[firsts], part.end[lasts], low + firsts, low + lasts])
            key = int(keys[-1])
            begin, end, first, last = pieces[:, -1].tolist()
            pieces = pieces[:, :-1]
            pieces = pieces[:, np.argsort(pieces[0] - pieces[1], kind="stable")[:limit]]
            found += [(b - a, a, b, *places) for a, b, *places in pieces.T.tolist()]
            found = sorted(found, key=lambda piece: (-piece[0], piece[3]))[:limit]
        if key >= 0:
            found.append((end - begin, begin, end, first, last))
        longest = sorted(found, key=lambda piece: (-piece[0], piece[3]))[:limit]
        return [self._stretch(*piece[1:]) for piece in sorted(longest, key=lambda piece: piece[3])]

    def _stretch(self, begin: int, end: int, first: int, last: int) -> Stretch:
        """A piece of the path, from its first to its last place."""
        path, forms = self.schedule.path, self.schedule.forms
        row, is_issue = int(path.rows[first]), bool(path.is_issue[first])
        of_mnemonic: dict[int, int] = {}
        for _, part, held in self._parts_of_path(first, last + 1):
            rows = part.rows[held > 0]
            seen = np.full(len(forms.first), len(rows))
            seen[forms.of[rows][::-1]] = np.arange(len(rows))[::-1]
            for form in np.argsort(seen, kind="stable")[: np.count_nonzero(seen < len(rows))].tolist():
                of_mnemonic.setdefault(int(self._mnemonic[form]), int(rows[seen[form]]))
        names = self._names(of_mnemonic[mnemonic] for mnemonic in sorted(of_mnemonic))
        return Stretch(self.where(row), names, ISSUE if is_issue else self._track_name(row), begin, end)

    def _track_name(self, row: int) -> str:
        return TRACKS[int(self.schedule.track_of[self.schedule.forms.of[row]])]

    def lines(self) -> list[Line]:
        """Source lines by their part of the critical path, the largest first."""
        total, path = max(self.schedule.total, 1), self.schedule.path
        of_line: dict[int, list[int]] = {}
        found = np.argsort(self._first_on_path, kind="stable")
        for form in found[: np.count_nonzero(self._first_on_path < len(path.rows))].tolist():
            of_line.setdefault(int(self._line_of[form]), []).append(form)
        lines = []
        for number in sorted(of_line):
            forms = of_line[number]
            held = int(self._on_path_as_root[forms].sum())
            if held:
                roots = self.schedule.roots_of(path.rows[self._first_on_path[forms]]).tolist()
                of_mnemonic: dict[int, int] = {}
                for form, root in zip(forms, roots, strict=True):
                    of_mnemonic.setdefault(int(self._mnemonic[form]), root)
                lines.append(Line(self.where(roots[0]), self._names(of_mnemonic.values()), held, held / total))
        return sorted(lines, key=lambda line: -line.cycles)

    def bubbles(self) -> list[Bubble]:
        """Idle time of pipes between work, by what kept them, the longest first."""
        schedule = self.schedule
        works = schedule.works & (schedule.track_of != Pipe.S)
        sums: dict[tuple[str, str, str, str], list[int]] = {}
        for low in range(0, len(self.trace.rows), _AT_ONCE):
            here = slice(low, low + _AT_ONCE)
            rows = low + np.flatnonzero((schedule.idle[here] > 0) & works[schedule.forms.of[here]])
            for row, why, other, behind, cycles, times in self._reasons(rows):
                track = self._track_name(row)
                counted = sums.setdefault((track, *self._reason(row, why, other, behind)), [0, 0])
                counted[0] += cycles
                counted[1] += times
            self.trace.release()
        bubbles = [Bubble(*key, cycles, times) for key, (cycles, times) in sums.items()]
        return sorted(bubbles, key=lambda bubble: -bubble.cycles)

    def _reasons(self, rows: np.ndarray) -> Iterator[tuple[int, int, int, int, int, int]]:
        """What kept the pipes of rows idle, where it is the same of many at once: (the first row, why, the row that held it,
        what that waited for, cycles, times)."""
        if not len(rows):
            return
        schedule = self.schedule
        other = schedule.held[rows].astype(np.int64)
        why = np.full(len(rows), _HELD)
        late = np.flatnonzero(other < 0)
        if len(late):
            why[late], other[late] = self._late(rows[late])
        behind = np.where(why == _HELD, other, -1)
        while len(idle := np.flatnonzero((behind >= 0) & ~schedule.works[schedule.forms.of[behind]])):
            before = schedule.by[behind[idle]]
            behind[idle] = np.where(before == behind[idle], -1, before)  # it waited for nothing but its own issue
        keys = [schedule.track_of[schedule.forms.of[rows]], why]
        for column, counts in ((other, why != _ISSUED), (behind, behind >= 0)):
            named = np.where(counts & (column >= 0), column, rows)
            keys += [np.where(counts, schedule.forms.of[named], -1), np.where(counts, self._place(named), -1)]
        keys.append(np.where(why != _HELD, self._place(rows), -1))
        _, first, member = np.unique(np.stack(keys), axis=1, return_index=True, return_inverse=True)
        member = member.ravel()
        cycles = np.bincount(member, schedule.idle[rows]).astype(np.int64)
        order = np.argsort(first)  # as they come
        columns = (rows[first], why[first], other[first], behind[first], cycles, np.bincount(member))
        yield from zip(*(column[order].tolist() for column in columns), strict=True)

    def _late(self, rows: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Why the scalar unit gave rows out late: what held it, and the row that did."""
        schedule, at = self.schedule, rows.astype(np.int64)
        active = np.arange(len(at))
        for _ in range(_STEPS_BACK):
            active = active[schedule.given_by_issue[at[active]] & (schedule.given_by[at[active]] >= 0)]
            if not len(active):
                break
            at[active] = schedule.given_by[at[active]]
        holder = schedule.given_by[at].astype(np.int64)
        of = schedule.forms.of[holder]
        of_scalar = schedule.given_by_issue[at] | (holder < 0) | (schedule.track_of[of] == Pipe.S)
        is_wait = (holder >= 0) & (self._kind[of] == Kind.WAIT_FLAG)
        return np.where(of_scalar, np.where(is_wait, _HELD, _ISSUED), _FULL), holder

    def _reason(self, row: int, why: int, other: int, behind: int) -> tuple[str, str, str]:
        """(cause, source line, what that waited for) of the idle time before a row."""
        if why == _ISSUED:
            return f"{ISSUE}: the scalar unit gave it out only then", self.where(row), ""
        if why == _FULL:
            name = f"{self.name(other)} at {self.where(other)}"
            return f"{ISSUE}: the queue of {self._track_name(other)} is full", self.where(row), name
        record = self.trace.rows[other]
        if record["kind"] == Kind.WAIT_FLAG:
            source, target = Pipe(int(record["pipe2"])).name, Pipe(int(record["pipe"])).name
            cause = f"flag {source} to {target}, EVENT_ID{int(record['arg'])}"
        elif record["kind"] == Kind.LOCK:
            cause = f"mutex {int(record['arg'])}"
        elif record["kind"] == Kind.AWAIT:
            cause = f"flag {unpacked(int(record['pipe2']))[1]} of other cores"
        else:
            cause = f"barrier on PIPE_{Pipe(int(record['pipe'])).name}"
        return cause, self.where(other), f"{self.name(behind)} at {self.where(behind)}" if behind >= 0 else ""

    def roofline(self, cores: int) -> Roofline:
        """Where the run lies between memory and computing."""
        schedule, work, costs = self.schedule, self.schedule.work, self.schedule.costs
        count, calls, is_work = schedule.forms.count, self._calls, schedule.works
        computes = is_work & np.isin(schedule.track_of, (Pipe.V, Pipe.M, len(Pipe) + LANES.index("execute")))
        computes &= self._kind == Kind.INSTRUCTION
        register = computes & (schedule.track_of >= len(Pipe))
        codes = np.bincount(self._rows["dtype"][computes], calls[computes], 256)
        codes[0] = 0
        size = BY_CODE[int(codes.argmax())].size if codes.any() else 4
        products = computes & (schedule.track_of == Pipe.M)
        if products.any():
            operations, peak = self._products(products)
        else:
            operations = int((work.elements * count)[computes & ~register].sum())
            operations += int(calls[register].sum()) * (schedule.profile.vector_bytes // size)
            peak = float(costs.vector_bytes) / size
        moved = int((work.gm * count)[is_work].sum())
        peak *= cores
        copies = np.flatnonzero(is_work & (work.gm > 0))
        by_pipe = np.bincount(schedule.track_of[copies], (schedule.cycles.busy * count)[copies])
        longest = float(by_pipe.max(initial=0)) / max(cores, 1)  # loads and stores go side by side
        bandwidth = min(moved / longest, float(costs.gm_bytes)) if longest else float(costs.gm_bytes)
        intensity = operations / moved if moved else float(operations > 0) * 1e9
        return Roofline(
            moved, operations, intensity, peak, bandwidth, peak / bandwidth if bandwidth else 0.0,
            operations / schedule.total if schedule.total else 0.0, min(peak, intensity * bandwidth),
        )  # fmt: skip

    def _products(self, which: np.ndarray) -> tuple[int, float]:
        """Multiply-adds of some forms, and how many a core makes a cycle while it multiplies."""
        rows, schedule = self.trace.rows[self._first][which], self.schedule
        boxes = rows["work"].astype(np.int64) * schedule.forms.count[which]
        size = np.array([BY_CODE[code].size if code in BY_CODE else 1 for code in range(256)])
        each = np.array([float(entry.each.get("work", 1)) for entry in schedule.costs.entries])
        made = int((boxes * (_BOX // size[rows["dtype"]])).sum())
        return made, made / max(float((boxes * each[schedule.cycles.entry[which]]).sum()), 1.0)

    def guesses(self) -> list[tuple[str, int]]:
        """Guessed costs on the critical path: the entry's source and its cycles, largest first."""
        schedule, cycles = self.schedule, self.schedule.cycles
        part = self._on_path * cycles.guessed / np.maximum(cycles.busy + cycles.latency, 1)
        sums = {entry: float(part[cycles.entry == entry].sum()) for entry in np.unique(cycles.entry[part > 0]).tolist()}
        found = [(schedule.costs.entries[entry].source, round(value)) for entry, value in sums.items()]
        if self._issue_on_path and schedule.costs.sources["issue"].startswith("guess"):
            found.append(("guess: what the scalar unit takes to issue an instruction", self._issue_on_path))
        return sorted(found, key=lambda guess: -guess[1])
