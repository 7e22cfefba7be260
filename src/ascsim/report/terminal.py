"""The report for people: findings with their source, then one line of summary."""

from __future__ import annotations

import io
import re
import textwrap
from collections.abc import Sequence
from dataclasses import replace
from functools import lru_cache
from pathlib import Path

import numpy as np
from rich.console import Console
from rich.text import Text

from ascsim.diagnostics import Diagnostic, Place, Severity, plural
from ascsim.machine.trace import Kind, Trace
from ascsim.profiles import Profile

_STYLE = {Severity.ERROR: "bold red", Severity.WARNING: "bold yellow", Severity.NOTE: "bold cyan"}


def text(kernel: str, profile: Profile, trace: Trace, diagnostics: Sequence[Diagnostic], sync: str) -> str:
    """The whole report without colour, 120 columns wide."""
    stream = io.StringIO()
    console = Console(file=stream, width=120, no_color=True, highlight=False, force_terminal=False)
    show(console, kernel, profile, trace, diagnostics, sync)
    return stream.getvalue()


def show(
    console: Console, kernel: str, profile: Profile, trace: Trace, diagnostics: Sequence[Diagnostic], sync: str
) -> None:
    """Print findings, errors first, and the summary."""
    order = list(Severity)
    for diagnostic in sorted(diagnostics, key=lambda d: order.index(d.severity)):
        show_diagnostic(console, diagnostic)
    console.print(summary(kernel, profile, trace, diagnostics, sync), soft_wrap=True)


def show_diagnostic(console: Console, diagnostic: Diagnostic) -> None:
    """Print one finding: headline, each place with its source line, notes, the mend."""
    style = _STYLE[diagnostic.severity]
    headline = Text.assemble((f"{diagnostic.severity}[{diagnostic.code}]", style), (f": {diagnostic.headline}", "bold"))
    console.print(headline, soft_wrap=True)
    for place in diagnostic.places:
        _show_place(console, place, style)
    for note in diagnostic.notes:
        _show_remark(console, "note", "cyan", note)
    if diagnostic.mend:
        _show_remark(console, "mend", "green", diagnostic.mend)
    if diagnostic.count > 1:
        console.print(Text(f"  = {diagnostic.count} times the same", "dim"), soft_wrap=True)
    console.print()


def _show_remark(console: Console, word: str, style: str, remark: str) -> None:
    """A note or a mend: on a terminal further lines stand below its text, elsewhere it is one line."""
    head = f"  = {word}: "
    if not console.is_terminal:
        console.print(Text.assemble((head, style), remark), soft_wrap=True)
        return
    first, *more = textwrap.wrap(remark, max(console.width - len(head), 40), break_on_hyphens=False) or [""]
    console.print(Text.assemble((head, style), first), soft_wrap=True)
    for line in more:
        console.print(Text(" " * len(head) + line), soft_wrap=True)


def _show_place(console: Console, place: Place, style: str) -> None:
    if place.site is None:
        console.print(Text.assemble(("  --> ", "blue"), place.what), soft_wrap=True)
        return
    where = str(replace(place.site, path=_near(place.site.path)))
    console.print(Text.assemble(("  --> ", "blue"), where, (f"  {place.what}", "dim")), soft_wrap=True)
    line = source_line(place.site.path, place.site.line)
    if line is None:
        return
    margin = f"{place.site.line:>6}"
    start, length = caret(line, place)
    line, start, length = excerpt(line.rstrip(), start, length)
    console.print(Text.assemble((f"{margin} | ", "blue"), line), soft_wrap=True)
    gutter = " " * len(margin)
    console.print(Text.assemble((f"{gutter} | ", "blue"), " " * start, ("^" * length, style)), soft_wrap=True)


def excerpt(line: str, start: int, length: int, width: int = 110) -> tuple[str, int, int]:
    """The part of a long line around what the carets point to, with where that is in it."""
    if len(line) <= width:
        return line, start, length
    first = 0 if start + length < width - 1 else max(start - 8, 0)
    part = line[first : first + width - (first > 0) - 1]
    begin, end = ("…" if first else ""), ("…" if first + len(part) < len(line) else "")
    start = start - first + len(begin)
    return begin + part + end, start, max(1, min(length, len(begin + part) - start))


def _near(path: str) -> str:
    """The path as seen from here, if it lies below."""
    try:
        return str(Path(path).relative_to(Path.cwd()))
    except ValueError:
        return path


def caret(line: str, place: Place) -> tuple[int, int]:
    """Where to point: the column the site gives, else the first word of the place that the line holds, else the text."""
    assert place.site is not None
    if place.site.column:
        start = place.site.column - 1
        word = line[start:].split("(")[0].split(" ")[0]
        return start, max(1, len(word))
    what = place.what.replace(",", " ").replace("(", " ")
    if " by " in what:  # an instruction did it: the name of its pipe may stand in another call of the line
        what = re.sub(r"\bPIPE_\w+", " ", what)
    for word in what.split():
        found = re.search(rf"\b{re.escape(word)}\b", line, re.IGNORECASE)
        if len(word) > 2 and found and word.isidentifier():
            return found.start(), len(word)
    stripped = line.strip()
    return len(line) - len(line.lstrip()), max(1, len(stripped))


@lru_cache(maxsize=64)
def _source(path: str) -> tuple[str, ...]:
    try:
        return tuple(Path(path).read_text(encoding="utf-8", errors="replace").splitlines())
    except OSError:
        return ()


def source_line(path: str, line: int) -> str | None:
    """That line of the file, tabs expanded, or None."""
    lines = _source(path)
    return lines[line - 1].expandtabs(4) if 0 < line <= len(lines) else None


def counts(diagnostics: Sequence[Diagnostic]) -> dict[str, int]:
    """How many findings of each severity, folded ones counted once."""
    return {str(s): sum(d.severity is s for d in diagnostics) for s in Severity}


def instructions(trace: Trace) -> int:
    """Instructions and sync operations that the user wrote."""
    others = (Kind.LAUNCH_BEGIN, Kind.LAUNCH_END, Kind.VF_BEGIN, Kind.VF_END)
    written = 0
    for begin, end in trace.stretches("counting instructions"):
        written += int(np.count_nonzero(trace.rows["parent"][begin:end] < 0))
    written += int(np.sum(trace.rows["arg"][trace.folded].astype(np.int64) - 1))
    edges = trace.marks[np.isin(trace.kind[trace.marks], others)]
    return written - int(np.count_nonzero(trace.rows["parent"][edges] < 0))


def summary(kernel: str, profile: Profile, trace: Trace, diagnostics: Sequence[Diagnostic], sync: str) -> Text:
    """One line: what ran, where, how much, and the verdict."""
    found = counts(diagnostics)
    launches = trace.noted("launch")
    blocks = sum(int(n.get("blocks", 1)) for n in launches)
    parts = [
        profile.title,
        f"kernel {kernel}" if len(launches) <= 1 else plural(len(launches), "launch").replace("launchs", "launches"),
        plural(blocks, "block"),
        plural(instructions(trace), "instruction"),
        f"{sync} sync",
    ]
    verdict = "no findings"
    style = "bold green"
    if any(found.values()):
        verdict = ", ".join(plural(n, name) for name, n in found.items() if n)
        style = _STYLE[next(s for s in Severity if found[str(s)])]
    return Text.assemble(("ascsim: ", "bold"), " · ".join(parts), " · ", (verdict, style))
