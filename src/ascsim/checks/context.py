"""What every check is given, and what it gives back."""

from __future__ import annotations

from collections.abc import Callable, Hashable
from dataclasses import dataclass, field
from functools import cache, cached_property
from typing import Any, NamedTuple

import numpy as np

from ascsim.checks.lines import Lines, follow
from ascsim.checks.order import KINDS, Order, order_of
from ascsim.checks.spans import extent
from ascsim.checks.sweep import Suspects, look_over
from ascsim.diagnostics import Place, Severity, Site
from ascsim.machine.native import as_sequence
from ascsim.machine.trace import Kind, Mode, Trace
from ascsim.machine.visit import Flags, Visit, pair_flags, visit_of
from ascsim.machine.words import N_PIPES, Pipe
from ascsim.profiles import Profile

Sites = Callable[[int, int], Site | None]
PLAIN_ROWS, PLAIN_BURSTS = 4000, 50_000
"""Up to so many rows, and bursts of their accesses, are checked in plain Python: to make compiled loops takes longer."""
WORTH_LOADING = 1500
"""After so many rows in one process it pays to load loops that were compiled before: a tenth of a second, once."""
WORTH_MAKING = 300_000
"""After so many it pays to make them: in plain Python these rows took as long."""
_rows_seen = 0


@dataclass(frozen=True)
class Found:
    """A finding before it is folded.

    ``rows`` are the trace rows it speaks of, first the one to blame, and ``whats`` says of each what it did there;
    ``places`` are others, that no row stands for.
    Findings of one code with the same instructions (by source site) and the same ``key`` (pipes, operands) are one.
    ``covers`` are rows whose own findings this one explains: findings are dropped where one of the rows in ``yields`` is
    explained by another. ``claims`` are rows that this finding alone speaks of: others that cover one of them are dropped.
    """

    code: str
    severity: Severity
    headline: str
    rows: tuple[int, ...] = ()
    whats: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()
    mend: str = ""
    count: int = 1
    key: Hashable = ()
    covers: tuple[int, ...] = ()
    yields: tuple[int, ...] = ()
    claims: tuple[int, ...] = ()
    places: tuple[Place, ...] = ()


class GmAccesses(NamedTuple):
    """The accesses to global memory in the order of their numbers (arrays): their rows, their cores in :attr:`Context.visit`,
    first bytes, the bytes behind their last, and whether they write."""

    numbers: np.ndarray
    rows: np.ndarray
    cores: np.ndarray
    low: np.ndarray
    high: np.ndarray
    writes: np.ndarray


class Tables(NamedTuple):
    """The tables of a trace, all of one sort: arrays for compiled loops, lists for plain ones."""

    rows: Any
    first: Any
    accesses: Any
    shapes: Any


@dataclass
class Context:
    """A trace under check."""

    trace: Trace
    profile: Profile
    sites: Sites
    notice: Callable[[str], None] | None = None
    compile: bool | None = None
    """Whether long loops run compiled; None: when the trace is long."""
    hidden: list[str] = field(default_factory=list)
    """What a check had to leave out, in sentences."""

    @cached_property
    def compiled(self) -> bool:
        """Whether to run long loops compiled."""
        global _rows_seen
        if self.compile is not None:
            return self.compile
        _rows_seen += len(self.trace.rows)
        if len(self.trace.rows) > PLAIN_ROWS or (
            _rows_seen > WORTH_LOADING and (_rows_seen > WORTH_MAKING or _are_made())
        ):
            return True
        shapes = self.trace.shapes
        bursts = shapes["n1"].astype(np.float64) * shapes["n2"] * shapes["n3"]
        return bool(np.sum(bursts[self.trace.accesses["shape"]]) > PLAIN_BURSTS)

    def loop(self, function: Callable, is_long: bool | None = None) -> Any:
        """A function of :mod:`ascsim.checks.clocks` or ``.sweep``, compiled if the trace is long (or ``is_long``)."""
        if not (self.compiled if is_long is None else is_long):
            return function
        from ascsim.machine.native import compiled

        return compiled(function, self.notice)

    @cached_property
    def tables(self) -> Tables:
        """The tables as loops want them."""
        trace = self.trace
        tables = (trace.rows, trace.first_access, trace.accesses, trace.shapes)
        return Tables(*(self.as_sequence(table) for table in tables))

    def as_sequence(self, table: np.ndarray) -> Any:
        """A table as loops want it: plain Python indexes lists several times faster than arrays."""
        return as_sequence(table, self.compiled)

    @cached_property
    def visit(self) -> Visit:
        """The rows in the order in which each core of each launch saw them."""
        return visit_of(self.trace)

    @cached_property
    def suspects(self) -> Suspects:
        """The accesses that need a look."""
        return look_over(self)

    @cached_property
    def gm(self) -> GmAccesses:
        """The accesses to global memory."""
        numbers = self.suspects.gm
        records, rows = self.trace.accessed(numbers), self.trace.rows_of(numbers)
        low, high = extent(records, self.trace.shapes)
        return GmAccesses(numbers, rows, self.cores_of(rows), low, high, records["mode"] == Mode.WRITE)

    @cached_property
    def stopped(self) -> np.ndarray:
        """For each core of :attr:`visit`, whether its run ended before the kernel did: a fault, a refusal, a crash."""
        stopped = np.zeros(len(self.visit.core), bool)
        for kind, data in self.trace.notes:
            if kind in ("fault", "refused") and len(self.trace.rows):
                row = data.get("row")
                stopped[slice(None) if row is None else self.cores_of(min(int(row), len(self.trace.rows) - 1))] = True
        awaits = self._marks(Kind.AWAIT)
        stopped[self.cores_of(awaits[self.trace.rows["arg"][awaits] == 0])] = True
        if len(self._begins) > len(self._ends):
            stopped[self.cores_of(self._begins[-1])] = True
        return stopped

    @cached_property
    def held(self) -> dict[int, int]:
        """Of each row that was held back (``--order late``), the row at which it took effect."""
        notes = self.trace.noted("held")
        return {row: note["until"] for note in notes for row in note["rows"]}

    @cached_property
    def launches(self) -> dict[int, dict]:
        """Notes of launches by number."""
        return {data.get("number", i): data for i, data in enumerate(self.trace.noted("launch"), start=1)}

    def _marks(self, *kinds: Kind) -> np.ndarray:
        """The rows of these kinds, none of which is that of instructions."""
        marks, wanted = self.trace.marks, np.zeros(256, bool)
        wanted[list(kinds)] = True  # a table: for the few rows of a short trace np.isin takes ten times as long
        return marks[wanted[self.trace.kind[marks]]]

    @cached_property
    def _begins(self) -> np.ndarray:
        return self._marks(Kind.LAUNCH_BEGIN)

    @cached_property
    def _ends(self) -> np.ndarray:
        return self._marks(Kind.LAUNCH_END)

    @cached_property
    def _positions(self) -> np.ndarray:
        positions = np.empty_like(self.visit.order)
        positions[self.visit.order] = np.arange(len(positions))
        return positions

    def positions(self, rows: np.ndarray | int) -> np.ndarray:
        """Where rows stand in :attr:`visit`."""
        return self._positions[rows] if len(self._positions) else np.asarray(rows)

    def in_order(self, rows: np.ndarray) -> np.ndarray:
        """Rows as :attr:`visit` comes by them."""
        return rows[np.argsort(self.positions(rows))] if len(self.visit.order) else rows

    def cores_of(self, rows: np.ndarray | int) -> np.ndarray:
        """The core of :attr:`visit` that rows belong to."""
        return np.searchsorted(self.visit.starts, self.positions(rows), side="right") - 1

    @cached_property
    def _vector_functions(self) -> tuple[np.ndarray, np.ndarray]:
        """Positions of begins and ends of vector functions, and which are begins."""
        edges = self.in_order(self._marks(Kind.VF_BEGIN, Kind.VF_END))
        return self.positions(edges), self.trace.kind[edges] == Kind.VF_BEGIN

    def in_vector_function(self, row: int) -> bool:
        """Whether a row is part of a vector function, which no flag or barrier can interrupt."""
        edges, begins = self._vector_functions
        index = int(np.searchsorted(edges, self.positions(row))) - 1
        return index >= 0 and bool(begins[index])

    @cached_property
    def flags(self) -> Flags:
        """The flag operations, paired."""
        rows = self.in_order(self._marks(Kind.SET_FLAG, Kind.WAIT_FLAG))
        return pair_flags(self.trace, rows, self.positions(rows), self.visit)

    @cached_property
    def ordered(self) -> np.ndarray:
        """For each pipe, whether it keeps its own instructions in order."""
        return np.array([Pipe(pipe).name in self.profile.ordered_pipes for pipe in range(N_PIPES)])

    @cached_property
    def order(self) -> Order:
        """The order between cores that signal each other."""
        if not len(self._marks(Kind.AWAIT)) and not self.lines.coherent:
            return Order()
        rows_of, lines = self.trace.rows_of, self.lines
        seen = [(int(rows_of(read)), int(rows_of(write))) for read, write in lines.seen]
        coherent = rows_of(np.array(sorted(lines.coherent), np.int64))
        shared = set(self.visit.launch[self.cores_of(coherent)].tolist())
        rows = np.union1d(self._marks(*KINDS), np.array(seen, np.int64).ravel())
        return order_of(
            self.trace, self.visit, self.flags, self.positions(rows), rows, self.ordered, seen, shared
        )  # fmt: skip

    @cached_property
    def lines(self) -> Lines:
        """What is known of the scalar units' data caches."""
        return follow(self.trace, self.visit, self.cores_of, self.gm.numbers, self.gm.rows)

    @cached_property
    def signals(self) -> np.ndarray:
        """The rows of arrivals and of waits for them, as they were carried out."""
        return self._marks(Kind.ARRIVE, Kind.AWAIT)

    @cached_property
    def locks(self) -> np.ndarray:
        """The rows of locks and unlocks, as :attr:`visit` comes by them."""
        return self.in_order(self._marks(Kind.LOCK, Kind.UNLOCK))

    @property
    def mutexes(self) -> int:
        """One more than the highest mutex in use."""
        return int(self.trace.rows["arg"][self.locks].max()) + 1 if len(self.locks) else 0

    # One row

    def root(self, row: int) -> int:
        """The instruction that the user wrote."""
        return self.trace.root(row)

    def roots(self, rows: np.ndarray) -> np.ndarray:
        """:meth:`root` of many rows."""
        parent = self.trace.rows["parent"]
        roots = np.asarray(rows, np.int64)
        while (inner := parent[roots] >= 0).any():
            roots = np.where(inner, parent[roots], roots)
        return roots

    def site(self, row: int) -> Site | None:
        """Where the user wrote it."""
        record = self.trace.rows[self.root(row)]
        return self.sites(int(record["site"]), int(record["flags"])) if record["site"] else None

    def line(self, row: int) -> tuple[int, int]:
        """What rows of one source line have in common; a row without one has a line of its own."""
        site = int(self.trace.rows["site"][self.root(row)])
        return (site, 0) if site else (0, row)

    def name(self, row: int) -> str:
        """The row's instruction by name."""
        return self.trace.titles.get(int(self.trace.rows["mnemonic"][row]), "an instruction")

    def pipe(self, row: int) -> str:
        """The row's pipe as kernels write it."""
        return pipe_name(int(self.trace.rows["pipe"][row]))

    def where(self, row: int, beside: int) -> str:
        """Where a row is, for a sentence about row ``beside``: its line, with the path where that is another one."""
        site, other = self.site(row), self.site(beside)
        if site is None:
            return self.name(self.root(row))
        return f"line {site.line}" if site.line and other and other.path == site.path else str(site)

    def step(self, row: int) -> str:
        """A note on the step of an expansion that a row is; empty for an instruction as written."""
        root = self.root(row)
        return "" if root == row else f"the step {self.name(row)} of {self.name(root)} did it"

    def kernel(self, row: int) -> str:
        """The name of the kernel the row belongs to, where it is noted."""
        index = int(np.searchsorted(self._begins, row, side="right")) - 1
        if index < 0:
            return ""
        number = int(self.trace.rows["arg"][self._begins[index]])
        return str(self.launches.get(number, {}).get("kernel", ""))


@cache
def _are_made() -> bool:
    """Whether the loops over long traces were compiled before."""
    from ascsim.checks.clocks import find_hazards
    from ascsim.machine.native import is_made

    return is_made(find_hazards)


def pipe_name(pipe: int) -> str:
    """``PIPE_V``."""
    try:
        return f"PIPE_{Pipe(pipe).name}"
    except ValueError:
        return f"pipe {pipe}"
