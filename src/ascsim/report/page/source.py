"""Source lines and what stands beside them: calls, cycles, the part of the critical path; and the instruction table."""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from ascsim.diagnostics import Site
from ascsim.machine.trace import Trace
from ascsim.report.page.columns import SPAN
from ascsim.report.time import near
from ascsim.timing import TRACKS, Schedule
from ascsim.timing.summary import Sites

if TYPE_CHECKING:
    from ascsim.report.page.bars import Bars

_LONGEST = 1_000_000
"""Sources of up to so many characters are shown."""
_ENTRIES = 1000
"""So many entries the instruction table has, those that take longest."""


class Lines:
    """The source lines that a page speaks of, numbered as they are asked for."""

    def __init__(self, sites: Sites) -> None:
        self._sites = cache(sites)
        self._numbers: dict[tuple[str, int], int] = {}

    def number_of(self, site: Site) -> int:
        """The number of a site's line."""
        return self._numbers.setdefault((site.path, site.line), len(self._numbers))

    def numbers(self, trace: Trace, roots: np.ndarray) -> np.ndarray:
        """For each row the number of its line, -1 where it is not known (int64)."""
        sites, first, member = np.unique(trace.rows["site"][roots], return_index=True, return_inverse=True)
        of_site = np.full(len(sites), -1, np.int64)
        for n, (number, row) in enumerate(zip(sites.tolist(), first.tolist(), strict=True)):
            site = self._sites(number, int(trace.rows["flags"][roots[row]])) if number else None
            of_site[n] = self.number_of(site) if site is not None else -1
        return of_site[member]

    def files(self, schedule: Schedule | None, bars: Bars | None) -> dict[str, Any]:
        """The lines by number, with what they come to, and the text of their files (None: not to be read)."""
        paths = list(dict.fromkeys(path for path, _ in self._numbers))
        calls, cycles, on_path = (np.zeros(len(self._numbers), np.int64) for _ in range(3))
        if schedule is not None and bars is not None:
            known = (bars.kind >= 0) & (bars.place >= 0)
            written = known & (schedule.trace.rows["parent"] < 0)
            calls = np.bincount(bars.place[written], schedule.trace.calls[written], len(calls)).astype(np.int64)
            rows = np.flatnonzero(known & schedule.is_work)
            places, length = bars.place[rows], schedule.length[rows]
            cycles = np.bincount(places, length, len(calls)).astype(np.int64)
            on_path = np.bincount(places, bars.on_path[rows], len(calls)).astype(np.int64)
        figures = zip(self._numbers, calls.tolist(), cycles.tolist(), on_path.tolist(), strict=True)
        lines = [
            {"file": paths.index(path), "line": line, "calls": called, "cycles": took, "onPath": held}
            for (path, line), called, took, held in figures
        ]
        return {"paths": [near(path) for path in paths], "texts": [_text(path) for path in paths], "lines": lines}

    def table(self, schedule: Schedule, bars: Bars) -> list[dict[str, Any]]:
        """Instructions as written, those of one name on one line together, the longest first.

        ``cycles`` of an instruction with steps reach from the first step's start to the last one's end; ``bytes`` are
        those of global memory.
        """
        rows = np.flatnonzero((schedule.trace.rows["parent"] < 0) & (bars.kind >= 0) & (bars.kind <= SPAN))
        if not len(rows):
            return []
        keys = np.stack([bars.name[rows], bars.place[rows], schedule.track[rows]])
        found, first, member = np.unique(keys, axis=1, return_index=True, return_inverse=True)
        member = member.ravel()
        length, times = schedule.length[rows], schedule.trace.calls[rows]
        size = found.shape[1]
        calls = np.bincount(member, times, size).astype(np.int64)
        sums = [
            np.bincount(member, v, size).astype(np.int64) for v in (length, bars.on_path[rows], schedule.idle[rows])
        ]
        gm = np.bincount(
            schedule.roots, schedule.work.gm[schedule.forms.of], len(schedule.roots)
        )  # that of steps counts for what they are of
        moved = np.bincount(member, gm[rows], size).astype(np.int64)
        most = np.zeros(size, np.int64)
        np.maximum.at(most, member, length // times)
        entries = [
            {
                "name": bars.names[name], "line": line, "track": TRACKS[track], "bar": int(bars.number[rows[first[n]]]),
                "calls": int(calls[n]), "cycles": int(sums[0][n]), "most": int(most[n]), "onPath": int(sums[1][n]),
                "idle": int(sums[2][n]), "bytes": int(moved[n]),
            }
            for n, (name, line, track) in enumerate(found.T.tolist())
        ]  # fmt: skip
        return sorted(entries, key=lambda entry: (-entry["onPath"], -entry["cycles"]))[:_ENTRIES]


def _text(path: str) -> str | None:
    try:
        text = Path(path).read_text(encoding="utf-8", errors="replace")
    except OSError:
        return None
    return text if len(text) <= _LONGEST else None
