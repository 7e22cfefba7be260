"""The timeline's bars: one a row of the trace that has a time, line by line, in order of start."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from ascsim.diagnostics import Place
from ascsim.machine.trace import Kind
from ascsim.report.page.columns import BARRIER, OTHER, SET, SPAN, WAIT, WORK, packed
from ascsim.report.page.source import Lines
from ascsim.timing import TRACKS, CoreRun, Schedule

LIMIT = 400_000
"""So many bars a page shows, the earliest; browsers take files of some ten megabytes."""
_KINDS = {
    Kind.INSTRUCTION: WORK, Kind.VF_BEGIN: WORK, Kind.SET_FLAG: SET, Kind.WAIT_FLAG: WAIT, Kind.BARRIER: BARRIER,
    Kind.UNLOCK: SET, Kind.LOCK: WAIT, Kind.MEM_BAR: BARRIER, Kind.ARRIVE: OTHER, Kind.AWAIT: OTHER,
}  # fmt: skip
_ORDER = ("S", "MTE2", "MTE1", "M", "V", "V2", "load", "execute", "store", "FIX", "MTE3", "MTE4", "MTE5", "ALL")
"""Tracks from above: data come in, are worked on, and go out."""


@dataclass(frozen=True)
class Bars:
    """The bars of a schedule.

    ``rows`` are the bars' rows, ``number`` the bar of each row (-1: none). Of every row, whether it has a bar or not,
    are ``kind`` (-1: it has no time), ``place`` (the number of its source line), ``name`` (a number in ``names``),
    ``on_path`` (cycles of the critical path) and ``busy``. ``lines`` says for each line of the timeline its core (a
    number in ``cores``), track, level (0: as written, 1: steps) and its bars ``[first, last)``.
    """

    schedule: Schedule
    rows: np.ndarray
    number: np.ndarray
    kind: np.ndarray
    place: np.ndarray
    on_path: np.ndarray
    busy: np.ndarray
    names: list[str]
    name: np.ndarray
    cores: list[dict[str, Any]]
    lines: list[dict[str, int]]
    left_out: int

    def of_place(self, place: Place, line: int) -> int:
        """The bar of a finding's place: that of its row, else the first of its source line; -1 for none."""
        if place.row is not None and 0 <= place.row < len(self.number) and self.number[place.row] >= 0:
            return int(self.number[place.row])
        found = self.rows[self.place[self.rows] == line] if line >= 0 else self.rows[:0]
        return int(self.number[found.min()]) if len(found) else -1

    def as_data(self) -> dict[str, Any]:
        """What the page reads."""
        schedule, rows = self.schedule, self.rows

        def bar_of(column: np.ndarray) -> np.ndarray:
            other = column[rows]
            return np.where(other >= 0, self.number[other], -1)

        columns = {
            "start": packed(schedule.start[rows], "i4"),
            "length": packed((schedule.end - schedule.start)[rows], "i4"),
            "busy": packed(self.busy[rows], "i4"),
            "kind": packed(self.kind[rows], "u1"),
            "name": packed(self.name[rows], "u2"),
            "place": packed(self.place[rows], "i4"),
            "partner": packed(bar_of(schedule.partner), "i4"),
            "held": packed(bar_of(schedule.held), "i4"),
            "idle": packed(schedule.idle[rows], "i4"),
            "root": packed(bar_of(schedule.roots), "i4"),
            "onPath": packed(self.on_path[rows], "i4"),
            "bytes": packed(schedule.work.bytes[schedule.forms.of[rows]], "i4"),
            "arg": packed(schedule.trace.rows["arg"][rows].astype(np.int64), "i4"),
            "turns": packed(schedule.trace.calls[rows], "i4"),
            "mutex": packed(np.isin(schedule.trace.kind[rows], (Kind.LOCK, Kind.UNLOCK)), "u1"),
        }
        runs = [
            {"launch": run.launch, "block": run.block, "begin": run.begin, "end": run.end} for run in schedule.cores
        ]
        return {
            "total": schedule.total,
            "mhz": float(schedule.costs.mhz),
            "columns": columns,
            "names": self.names,
            "tracks": list(TRACKS),
            "cores": self.cores,
            "lines": self.lines,
            "runs": runs,
            "launches": _launches(schedule),
            "leftOut": self.left_out,
        }


def bars_of(schedule: Schedule, lines: Lines) -> Bars:
    """The bars of a schedule, the first :data:`LIMIT` in order of time."""
    trace = schedule.trace
    of_kind = np.full(256, -1, np.int64)
    for member, what in _KINDS.items():
        of_kind[member] = what
    kind = of_kind[trace.kind]
    kind[schedule.is_span] = SPAN
    is_mid = schedule.is_span & (trace.rows["parent"] >= 0)  # steps that have steps: their own are shown
    kind[(schedule.start < 0) | is_mid] = -1
    rows = np.flatnonzero(kind >= 0)
    left_out = max(len(rows) - LIMIT, 0)
    if left_out:
        rows = np.sort(rows[np.argsort(schedule.start[rows], kind="stable")[:LIMIT]])
    slots, slot_of = _slots(schedule.cores)
    rank = np.array([_ORDER.index(track) if track in _ORDER else len(_ORDER) for track in TRACKS], np.int64)
    level = (trace.rows["parent"][rows] >= 0).astype(np.int64)
    slot = slot_of[schedule.core[rows]]
    key = (slot * 32 + rank[schedule.track[rows]]) * 2 + level
    order = np.lexsort((rows, schedule.start[rows], key))
    rows, key, slot = rows[order], key[order], slot[order]
    number = np.full(len(trace.rows), -1, np.int64)
    number[rows] = np.arange(len(rows))
    names, name = _names(schedule)
    firsts = np.flatnonzero(np.diff(key, prepend=-1))
    ends = np.append(firsts[1:], len(rows))[: len(firsts)]
    table = [
        {"core": int(slot[a]), "track": int(schedule.track[rows[a]]), "level": int(key[a] & 1), "first": int(a), "last": int(b)}
        for a, b in zip(firsts.tolist(), ends.tolist(), strict=True)
    ]  # fmt: skip
    path = schedule.path
    work = ~path.is_issue
    on_path = np.bincount(path.rows[work], (path.end - path.begin)[work], len(trace.rows)).astype(np.int64)
    inner = np.flatnonzero((on_path > 0) & (schedule.roots != np.arange(len(trace.rows))))
    np.add.at(on_path, schedule.roots[inner], on_path[inner])
    place = lines.numbers(trace, schedule.roots)
    return Bars(schedule, rows, number, kind, place, on_path, _busy(schedule), names, name, slots, table, left_out)


def _busy(schedule: Schedule) -> np.ndarray:
    """For each row how long it holds its pipe; the rest is latency that the next instruction may overlap."""
    busy = np.minimum(schedule.cycles.busy[schedule.forms.of], schedule.end - schedule.start)
    vector = schedule.trace.kind == Kind.VF_BEGIN
    busy[vector] = (schedule.end - schedule.start)[vector]
    steps = np.flatnonzero((schedule.roots != np.arange(len(busy))) & (schedule.start >= 0))
    roots = schedule.roots[steps]
    steps = steps[schedule.track[steps] == schedule.track[roots]]
    roots = schedule.roots[steps]
    held = np.zeros(len(busy), np.int64)
    np.maximum.at(held, roots, schedule.start[steps] + busy[steps] - schedule.start[roots])
    return np.where(schedule.is_span, held, busy)


def _slots(cores: list[CoreRun]) -> tuple[list[dict[str, Any]], np.ndarray]:
    """The chip's cores that are used, in order, and for each core of the launches the one it runs on."""
    slots = sorted({(core.slot, core.side) for core in cores})
    names = {"aiv": "Vector core", "aic": "Cube core"}
    listed = [{"name": f"{names.get(side, side)} {slot}", "slot": slot} for slot, side in slots]
    cube = [n for n, (_, side) in enumerate(slots) if side == "aic"]
    for count, n in enumerate(cube):
        listed[n]["name"] = f"{names['aic']} {count}"
    return listed, np.array([slots.index((core.slot, core.side)) for core in cores], np.int64)


def _names(schedule: Schedule) -> tuple[list[str], np.ndarray]:
    """The instructions' names, and the number of each row's."""
    titles = schedule.trace.titles
    key = schedule.trace.rows["mnemonic"].astype(np.int64) * 16 + schedule.trace.kind
    found, member = np.unique(key, return_inverse=True)
    names = []
    for value in found.tolist():
        mnemonic, what = divmod(value, 16)
        is_function = what == Kind.VF_BEGIN
        names.append("vector function" if is_function else titles.get(mnemonic, Kind(what).name.lower()))
    return names, member


def _launches(schedule: Schedule) -> list[dict[str, Any]]:
    noted = schedule.trace.noted("launch")
    found = []
    for number in sorted({core.launch for core in schedule.cores}):
        members = [core for core in schedule.cores if core.launch == number]
        note = noted[number] if number < len(noted) else {}
        begin, end = min(core.begin for core in members), max(core.end for core in members)
        found.append({"kernel": str(note.get("kernel", "")), "blocks": len(members), "begin": begin, "end": end})
    return found


__all__ = ["LIMIT", "Bars", "bars_of"]
