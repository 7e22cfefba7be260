"""A compact timeline for the terminal: a line a pipe, a character a piece of time."""

from __future__ import annotations

import numpy as np
from rich.console import Console
from rich.text import Text

from ascsim.machine.words import Pipe
from ascsim.timing import TRACKS, Schedule

_SHADES = " ░▒▓█"
_CORES = 4


def show(console: Console, schedule: Schedule, cores: int = _CORES) -> None:
    """Print the timeline of the first cores: how dark a character is says how busy the pipe is in that time."""
    width = max(min(console.width, 160) - 12, 20)
    total = max(schedule.total, 1)
    console.print(Text(f"{total / width:,.1f} cycles a character; dark: at work", "dim"), soft_wrap=True)
    slots = sorted({core.slot for core in schedule.cores})
    for slot in slots[:cores]:
        members = [n for n, core in enumerate(schedule.cores) if core.slot == slot]
        if len(slots) > 1:
            console.print(Text(f"{schedule.cores[members[0]].side} core {slot}", "bold"))
        for name, shares in busy(schedule, members, width):
            bar = "".join(_SHADES[min(int(np.ceil(share * 4 - 1e-9)), 4)] for share in shares.tolist())
            console.print(Text.assemble((f"{name:>9} ", "cyan"), "|", bar, "|"), soft_wrap=True)
    if len(slots) > cores:
        console.print(Text(f"and {len(slots) - cores} more cores", "dim"))
    end = f"{total:,} cycles"
    console.print(Text(f"{'':>10}0{end:>{width}}", "dim"), soft_wrap=True)


def busy(schedule: Schedule, cores: list[int], bins: int) -> list[tuple[str, np.ndarray]]:
    """For each track that some cores used: its name, and the share of each of so many pieces of time (float64[bins])."""
    work = schedule.is_work & np.isin(schedule.core, cores)
    edges = np.linspace(0, max(schedule.total, 1), bins + 1)
    found = []
    for number, name in enumerate(TRACKS):
        rows = np.flatnonzero(work & (schedule.track == number))
        if not len(rows) or number == Pipe.S:
            continue
        rows = rows[np.argsort(schedule.start[rows], kind="stable")]
        start, end = schedule.start[rows], np.maximum.accumulate(schedule.end[rows])
        fresh = np.ones(len(rows), bool)
        fresh[1:] = start[1:] > end[:-1]
        first = np.flatnonzero(fresh)
        begins, ends = start[first], end[np.append(first[1:], len(rows)) - 1]
        points = np.stack([begins, ends], axis=1).ravel()
        sums = np.concatenate([[0], np.cumsum(ends - begins)])
        worked = np.interp(edges, points, np.repeat(sums, 2)[1:-1])
        found.append((name, np.diff(worked) / np.diff(edges)))
    return found
