"""The report page: one HTML file that needs nothing else, with findings, timeline, memory, source and instructions.

Python works the data out (this package), the page draws them (``page.html``, ``page.css`` and the ``.js`` files here).
Tables with an entry an instruction are columns of numbers, compressed; all else is JSON. The page never builds markup
from text, so nothing that a kernel or its source contains can act in it.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from importlib import resources
from pathlib import Path
from typing import Any

from ascsim.diagnostics import CATALOGUE, Diagnostic, Severity, UserError
from ascsim.machine.trace import Trace
from ascsim.profiles import Profile
from ascsim.report.page.bars import Bars, bars_of
from ascsim.report.page.memory import memory_of
from ascsim.report.page.source import Lines
from ascsim.report.terminal import counts, instructions
from ascsim.report.time import near
from ascsim.timing import Schedule
from ascsim.timing.summary import Sites, summarize

SCRIPTS = ("data.js", "timeline.js", "memory.js", "panes.js", "main.js")
"""The page's scripts, in the order in which they build on each other."""


@dataclass(frozen=True)
class Shown:
    """A run to show. ``schedule`` is None where the profile is no chip: then there are no times and no memory.

    ``outcomes`` are what else is known of it, each a sentence and whether it is good: results beside a golden file, the
    program's exit status.
    """

    kernel: str
    profile: Profile
    trace: Trace
    diagnostics: Sequence[Diagnostic]
    sync: str
    sites: Sites
    schedule: Schedule | None
    outcomes: tuple[tuple[str, bool], ...] = ()


def write(path: Path, runs: Sequence[Shown], title: str) -> None:
    """Write the page of some runs.

    Raises:
        UserError: the file cannot be written.
    """
    try:
        path.write_text(html(runs, title), encoding="utf-8")
    except OSError as problem:
        raise UserError(f"cannot write {path}: {problem.strerror or problem}") from None


def html(runs: Sequence[Shown], title: str) -> str:
    """The page as text."""
    data = {"title": title, "runs": [data_of(run) for run in runs]}
    script = "\n".join(_file(name) for name in SCRIPTS)
    # the data come last: a source that is shown may hold any of the markers
    parts = {
        "style": _file("page.css"),
        "script": f'"use strict";\n(() => {{\n{script}\n}})();',
        "data": embedded(data),
    }
    page = _file("page.html")
    for name, text in parts.items():
        before, marker, behind = page.partition(f"/* {name} */")
        assert marker, name
        page = before + text + behind
    return page


def embedded(data: object) -> str:
    """JSON that may stand inside a script element: no text in it can end the element or begin a comment."""
    text = json.dumps(data, separators=(",", ":"), ensure_ascii=False)
    return text.replace("<", "\\u003c").replace("\u2028", "\\u2028").replace("\u2029", "\\u2029")


def data_of(run: Shown) -> dict[str, Any]:
    """What the page knows of a run."""
    lines = Lines(run.sites)
    bars = bars_of(run.schedule, lines) if run.schedule is not None else None
    order = list(Severity)
    diagnostics = sorted(run.diagnostics, key=lambda diagnostic: order.index(diagnostic.severity))
    findings = [_finding(diagnostic, lines, bars) for diagnostic in diagnostics]
    launches = run.trace.noted("launch")
    data: dict[str, Any] = {
        "kernel": run.kernel,
        "profile": run.profile.name,
        "chip": run.profile.title,
        "sync": run.sync,
        "launches": len(launches),
        "blocks": sum(int(note.get("blocks", 1)) for note in launches),
        "instructions": instructions(run.trace),
        "counts": counts(run.diagnostics),
        "findings": findings,
        "outcomes": [{"text": text, "ok": ok} for text, ok in run.outcomes],
        "time": None,
    }
    if run.schedule is not None and bars is not None:
        summary = summarize(run.schedule, run.sites)
        data["time"] = summary.as_dict()
        for bubble in data["time"]["bubbles"]:
            bubble |= {"where": near(bubble["where"]), "behind": near(bubble["behind"])}
        data["timeline"] = bars.as_data()
        data["memory"] = memory_of(run.schedule, bars)
        data["table"] = lines.table(run.schedule, bars)
    data["files"] = lines.files(run.schedule, bars)
    return data


def _finding(diagnostic: Diagnostic, lines: Lines, bars: Bars | None) -> dict[str, Any]:
    code = CATALOGUE.codes.get(diagnostic.code)
    places = []
    for place in diagnostic.places:
        line = lines.number_of(place.site) if place.site is not None else -1
        bar = bars.of_place(place, line) if bars is not None else -1
        places.append({"what": place.what, "line": line, "bar": bar})
    return {
        "code": diagnostic.code,
        "severity": str(diagnostic.severity),
        "headline": diagnostic.headline,
        "places": places,
        "notes": list(diagnostic.notes),
        "mend": diagnostic.mend,
        "count": diagnostic.count,
        "about": code.text if code else "",
    }


def _file(name: str) -> str:
    return (resources.files(__name__) / name).read_text(encoding="utf-8")


__all__ = ["Shown", "data_of", "embedded", "html", "write"]
