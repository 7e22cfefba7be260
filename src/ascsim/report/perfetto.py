"""A timeline for Perfetto and chrome://tracing.

Both drop a slice that overlaps another on its thread without lying in it, and pair begins with ends by their order: so
work that overlaps on a pipe goes to several threads of it, and flag operations are whole slices on threads of their
own. Times are whole nanoseconds, rounded down alike for begins and ends, so that what does not overlap in cycles does
not here either; the exact cycles are among the arguments.
"""

from __future__ import annotations

import heapq
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

from ascsim.report.insight import Reader, Sites, core_name
from ascsim.timing import GIVES, TAKES, TRACKS, Schedule

_FLAGS = 100
"""Tracks of flag operations: those of the pipe, and so much."""
_SPLITS = 1000


def write(path: Path, schedule: Schedule, sites: Sites) -> None:
    """Write the timeline.

    Raises:
        OSError: the file cannot be written.
    """
    with path.open("w", encoding="utf-8") as file:
        file.write('{"displayTimeUnit": "ns", "traceEvents": [\n')
        for number, event in enumerate(events(schedule, sites)):
            file.write((",\n" if number else "") + json.dumps(event))
        file.write("\n]}\n")


def events(schedule: Schedule, sites: Sites) -> Iterator[dict[str, Any]]:
    """The timeline's events."""
    names = [core_name(core) for core in schedule.cores]
    process = {name: number for number, name in enumerate(dict.fromkeys(names), start=1)}
    for name, number in process.items():
        yield _meta("process_name", number, 0, {"name": name})
        yield _meta("process_sort_index", number, 0, {"sort_index": number})
    kind = schedule.trace.kind
    is_flag = np.isin(kind, (*GIVES, *TAKES)) & (schedule.start >= 0)
    rows = np.flatnonzero(schedule.is_work | is_flag)
    pid = np.array([process[name] for name in names], np.int64)[schedule.core[rows]]
    track = schedule.track[rows] + np.where(is_flag[rows], _FLAGS, 0)
    start, end = _nanoseconds(schedule, schedule.start[rows]), _nanoseconds(schedule, schedule.end[rows])
    thread = track * _SPLITS + _split(pid, track, start, end)
    for number, lane in np.unique(np.stack([pid, thread]), axis=1).T.tolist():
        pipe, split = divmod(lane, _SPLITS)
        name = TRACKS[pipe % _FLAGS] + (" flags" if pipe >= _FLAGS else "") + (f" ({split + 1})" if split else "")
        yield _meta("thread_name", number, lane, {"name": name})
        yield _meta("thread_sort_index", number, lane, {"sort_index": lane % (_FLAGS * _SPLITS) * 2 + (pipe >= _FLAGS)})
    read = Reader(schedule, sites)
    first, length = schedule.start[rows], (schedule.end - schedule.start)[rows]
    other = np.where(is_flag[rows], schedule.partner[rows], -1)
    is_set = np.isin(kind[rows], GIVES)
    columns = (rows, pid, thread, start, end, first, length, is_flag[rows], is_set, other)
    for row, number, lane, begin, finish, cycle, cycles, flag, sets, paired in zip(
        *(column.tolist() for column in columns), strict=True
    ):
        where = {"pid": number, "tid": lane}
        yield {
            "name": f"{read.name(row)} {read.detail(row)}" if flag else read.name(row), "cat": "instruction", "ph": "X",
            "ts": begin / 1000, "dur": (finish - begin) / 1000, **where,
            "args": read.arguments(row) | {"cycle": cycle, "cycles": cycles},
        }  # fmt: skip
        if paired >= 0:
            arrow = {"name": "flag", "cat": "flag", "id": row if sets else paired, "ts": begin / 1000, **where}
            yield {**arrow, "ph": "s"} if sets else {**arrow, "ph": "f", "bp": "e"}


def _meta(what: str, process: int, thread: int, arguments: dict[str, Any]) -> dict[str, Any]:
    return {"name": what, "ph": "M", "pid": process, "tid": thread, "args": arguments}


def _nanoseconds(schedule: Schedule, cycles: np.ndarray) -> np.ndarray:
    mhz = schedule.costs.mhz
    return cycles.astype(np.int64) * (1000 * mhz.denominator) // mhz.numerator


def _split(pid: np.ndarray, track: np.ndarray, start: np.ndarray, end: np.ndarray) -> np.ndarray:
    """For each slice the number of the thread of its track on which it overlaps none before it."""
    split = np.zeros(len(start), np.int64)
    order = np.lexsort((end, start, track, pid))
    free: list[tuple[int, int]] = []
    spare: list[int] = []
    last = None
    for n, key, begin, finish in zip(
        order.tolist(), zip(pid[order].tolist(), track[order].tolist(), strict=True), start[order].tolist(),
        end[order].tolist(), strict=True,
    ):  # fmt: skip
        if key != last:
            free, spare, used, last = [], [], 0, key
        while free and free[0][0] <= begin:
            heapq.heappush(spare, heapq.heappop(free)[1])
        if spare:
            split[n] = heapq.heappop(spare)
        else:
            split[n], used = used, used + 1
        heapq.heappush(free, (finish, int(split[n])))
    return split
