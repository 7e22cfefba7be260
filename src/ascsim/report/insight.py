"""Trace files in the form of the vendor's simulator: a timeline that MindStudio Insight opens, and its tables.

The timeline is one JSON object whose first keys say what it is; then come metadata (order of processes and lanes),
slices (``X``) of instructions, ``B`` and ``E`` of flag operations, and flows (``s`` and ``t``) from sets to waits. The
tables are ``core*_instr_exe.csv``, a row an instruction at its address, and ``core*_code_exe.csv``, a row a source line.

Sources: the pages of msprof's operator simulator on its pipeline chart and its tables.
"""

from __future__ import annotations

import csv
import json
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

from ascsim.diagnostics import Site
from ascsim.machine.dtypes import BY_CODE
from ascsim.machine.signals import unpacked
from ascsim.machine.trace import Kind
from ascsim.timing import GIVES, TAKES, TRACKS, CoreRun, Schedule

Sites = Callable[[int, int], Site | None]

LANES = {
    "S": ("SCALAR", 1), "MTE1": ("MTE1", 3), "M": ("CUBE", 4), "FIX": ("FIXP", 5), "MTE2": ("MTE2", 6),
    "V": ("VECTOR", 7), "MTE3": ("MTE3", 8), "ALL": ("ALL", 11), "MTE4": ("MTE4", 13), "MTE5": ("MTE5", 14),
    "V2": ("VECTOR2", 15), "execute": ("RVECEX", 18), "store": ("RVECST", 20), "load": ("RVECLD", 21),
}  # fmt: skip
"""Track to lane and its place from above."""
COLOURS = {"VECTOR": "cq_build_failed", "MTE3": "rail_response", "WAIT_FLAG": "yellow", "SET_FLAG": "black"}
"""Colours by lane, else by name."""


_AT_ONCE = 100_000
"""Rows that are taken out of columns together."""


def core_name(core: CoreRun) -> str:
    """The process of a core: ``core0.veccore1`` is the second vector core of the first core."""
    if core.side == "aiv":
        return f"core{core.slot // 2}.veccore{core.slot % 2}"
    return f"core{core.block}.cubecore0"


def write(path: Path, schedule: Schedule, sites: Sites, suffix: str = "") -> list[Path]:
    """Write the timeline, and the tables of every core beside it; returns the files.

    ``suffix`` tells the tables of one run from those of others in the directory (``core0.veccore0_code_exe_2.csv``).

    Raises:
        OSError: a file cannot be written.
    """
    head = {"schemaVersion": 2, "displayTimeUnit": "ns", "profilingType": "op"}
    with path.open("w", encoding="utf-8") as file:
        file.write(json.dumps(head)[:-1] + ', "traceEvents": [\n')
        for number, event in enumerate(events(schedule, sites)):
            file.write((",\n" if number else "") + json.dumps(event))
        file.write("\n]}\n")
    return [path, *_write_tables(path.parent, schedule, sites, suffix)]


def events(schedule: Schedule, sites: Sites) -> Iterator[dict[str, Any]]:
    """The timeline's events."""
    names = [core_name(core) for core in schedule.cores]
    for order, name in enumerate(dict.fromkeys(names)):
        yield _meta("process_sort_index", name, None, order)
    work, flags = _rows(schedule)
    pairs = np.unique(np.stack([schedule.core[work], schedule.track[work]]), axis=1).T.tolist()
    lanes = {(names[core], *LANES[TRACKS[track]]) for core, track in pairs}
    for name, lane, order in sorted(lanes, key=lambda entry: (names.index(entry[0]), entry[2])):
        yield _meta("thread_sort_index", name, lane, order)
    read = Reader(schedule, sites)
    for row, start, end, track, core in _read(work, schedule.start, schedule.end, schedule.track, schedule.core):
        lane = LANES[TRACKS[track]][0]
        yield {
            "name": read.name(row), "ph": "X", "ts": read.time(start), "dur": read.time(end - start),
            "pid": names[core], "tid": lane, **_colour(lane), "args": read.arguments(row),
        }  # fmt: skip
    for row, core in _read(flags, schedule.core):
        yield from _flag(schedule, read, row, names[core])


def _read(rows: np.ndarray, *columns: np.ndarray) -> Iterator[tuple[int, ...]]:
    """Rows and what stands in columns for them, one by one."""
    for low in range(0, len(rows), _AT_ONCE):
        here = rows[low : low + _AT_ONCE]
        yield from zip(here.tolist(), *(column[here].tolist() for column in columns), strict=True)


def _rows(schedule: Schedule) -> tuple[np.ndarray, np.ndarray]:
    """Rows that work, and operations of flags, locks and signals."""
    flags = np.isin(schedule.trace.kind, (*GIVES, *TAKES)) & (schedule.start >= 0)
    return np.flatnonzero(schedule.is_work), np.flatnonzero(flags)


def _meta(what: str, process: str, thread: str | None, order: int) -> dict[str, Any]:
    event: dict[str, Any] = {"name": what, "ph": "M", "pid": process, "args": {"sort_index": order}}
    return event if thread is None else {**event, "tid": thread}


def _colour(name: str) -> dict[str, str]:
    return {"cname": COLOURS[name]} if name in COLOURS else {}


def _flag(schedule: Schedule, read: Reader, row: int, process: str) -> Iterator[dict[str, Any]]:
    """The begin and end of an operation of flags, locks or signals, and its end of the arrow from set to wait."""
    record = schedule.trace.rows[row]
    is_set = record["kind"] in GIVES
    name = Kind(record["kind"]).name
    lane = LANES[TRACKS[int(record["pipe"])]][0]
    where = {"pid": process, "tid": lane}
    begin, end = read.time(int(schedule.start[row])), read.time(int(schedule.end[row]))
    yield {"name": name, "ph": "B", "ts": begin, **where, **_colour(name), "args": read.arguments(row)}
    yield {"name": name, "ph": "E", "ts": end, **where}
    other = int(schedule.partner[row])
    if other >= 0:
        number = row if is_set else other
        yield {"name": "flag", "cat": "flag", "ph": "s" if is_set else "t", "id": number, "ts": end, **where}


class Reader:
    """Names, times and details of rows, for trace files: what is the same of all rows of a form is worked out once."""

    def __init__(self, schedule: Schedule, sites: Sites) -> None:
        forms = schedule.forms
        rows = schedule.trace.records(forms.first)
        self._titles = schedule.trace.titles
        self._sites = cache(sites)
        self._cycles = schedule.costs.mhz.denominator, schedule.costs.mhz.numerator
        self._kind, self._mnemonic, self._dtype = (
            rows["kind"].tolist(),
            rows["mnemonic"].tolist(),
            rows["dtype"].tolist(),
        )
        self._site, self._site_flags = rows["site"].tolist(), rows["flags"].tolist()
        self._pipes, self._arg = (rows["pipe"].tolist(), rows["pipe2"].tolist()), rows["arg"].tolist()
        self._bytes, self._calls = schedule.work.bytes.tolist(), schedule.calls_of.tolist()
        self._form, self._root_form = forms.of, forms.of[schedule.roots] if forms.is_span.any() else forms.of
        self._detail, self._code = cache(self._detail_of), cache(self._code_of)

    def time(self, cycles: int) -> float:
        """Cycles in microseconds."""
        return round(cycles * self._cycles[0] / self._cycles[1], 6)

    def name(self, row: int) -> str:
        """The row's instruction."""
        return self._name_of(int(self._form[row]))

    def _name_of(self, form: int) -> str:
        if self._kind[form] == Kind.VF_BEGIN:
            return "vector function"
        return self._titles.get(self._mnemonic[form], "")

    def code(self, row: int) -> str:
        """``file:line`` of a row, or nothing."""
        return self._code(int(self._root_form[row]))

    def _code_of(self, form: int) -> str:
        site = self._sites(self._site[form], self._site_flags[form]) if self._site[form] else None
        return f"{site.path}:{site.line}" if site is not None and site.line else ""

    def address(self, row: int) -> str:
        """The program counter of a row; of a kernel that has none, the number of its source line."""
        return f"{self._site[self._root_form[row]]:#x}"

    def detail(self, row: int) -> str:
        """What the row does, beyond its name."""
        return self._detail(int(self._form[row]), int(self._root_form[row]))

    def _detail_of(self, form: int, root: int) -> str:
        if self._kind[form] in (Kind.SET_FLAG, Kind.WAIT_FLAG):
            here, there = (TRACKS[pipes[form]] for pipes in self._pipes)
            source, target = (here, there) if self._kind[form] == Kind.SET_FLAG else (there, here)
            return f"from PIPE_{source} to PIPE_{target}, EVENT_ID{self._arg[form]}"
        if self._kind[form] in (Kind.LOCK, Kind.UNLOCK):
            return f"mutex {self._arg[form]}"
        if self._kind[form] in (Kind.ARRIVE, Kind.AWAIT):
            return f"flag {unpacked(self._pipes[1][form])[1]} between cores"
        parts = [BY_CODE[self._dtype[form]].name] if self._dtype[form] in BY_CODE else []
        return ", ".join([*parts, *([f"step of {self._name_of(root)}"] if root != form else [])])

    def arguments(self, row: int) -> dict[str, Any]:
        """The ``args`` of a row's event."""
        form = int(self._form[row])
        turns = [f"{self._calls[form]} turns of a loop"] if self._calls[form] > 1 else []
        return {
            "pc_addr": self.address(row), "code": self.code(row),
            "detail": ", ".join([*filter(None, [self.detail(row)]), *turns]), "process_bytes": self._bytes[form],
        }  # fmt: skip


# Tables


def _write_tables(directory: Path, schedule: Schedule, sites: Sites, suffix: str) -> list[Path]:
    read = Reader(schedule, sites)
    written = []
    for name in dict.fromkeys(core_name(core) for core in schedule.cores):
        members = [n for n, core in enumerate(schedule.cores) if core_name(core) == name]
        rows = np.flatnonzero(schedule.is_work & np.isin(schedule.core, members))
        by_instruction: dict[tuple[str, str, str], list[Any]] = {}
        by_line: dict[str, list[int]] = {}
        for row, cycles, track, calls in _read(rows, schedule.length, schedule.track, schedule.trace.calls):
            lane = LANES[TRACKS[track]][0]
            key = (read.name(row), read.address(row), lane)
            counted = by_instruction.setdefault(key, [0, 0, read.detail(row)])
            counted[0] += calls
            counted[1] += cycles
            if read.code(row):
                line = by_line.setdefault(read.code(row), [0, 0])
                line[0] += calls
                line[1] += cycles
        instructions = directory / f"{name}_instr_exe{suffix}.csv"
        with instructions.open("w", encoding="utf-8", newline="") as file:
            table = csv.writer(file)
            table.writerow(["instr", "addr", "pipe", "call_count", "cycles", "running_time(us)", "detail"])
            for (instr, addr, pipe), (calls, cycles, detail) in by_instruction.items():
                table.writerow([instr, addr, pipe, calls, cycles, read.time(cycles), detail])
        lines = directory / f"{name}_code_exe{suffix}.csv"
        with lines.open("w", encoding="utf-8", newline="") as file:
            table = csv.writer(file)
            table.writerow(["code", "call_count", "cycles", "running_time(us)"])
            for code, (calls, cycles) in by_line.items():
                table.writerow([code, calls, cycles, read.time(cycles)])
        written += [instructions, lines]
    return written
