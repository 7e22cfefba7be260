"""The time report for people: totals, what bounds the run, the critical path by line, bubbles, the roofline."""

from __future__ import annotations

import io
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.text import Text

from ascsim.diagnostics import plural
from ascsim.machine.trace import Trace
from ascsim.machine.words import Pipe
from ascsim.profiles import Profile
from ascsim.report import notebook, timeline
from ascsim.report.terminal import source_line
from ascsim.timing import Schedule, schedule
from ascsim.timing.summary import Sites, Summary, summarize

_BAR = 24
_SHOWN = 8


@dataclass(frozen=True)
class TimeReport:
    """Where the time of a run goes, to print or to show in a notebook; ``without`` is the run as it is, beside a what-if."""

    kernel: str
    profile: Profile
    schedule: Schedule
    summary: Summary
    without: Summary | None = None

    def __str__(self) -> str:
        return text(self.kernel, self.profile, self.summary, self.without)

    def _repr_html_(self) -> str:
        def show_all(console: Console) -> None:
            show(console, self.kernel, self.profile, self.summary, self.without)
            console.print()
            timeline.show(console, self.schedule)

        return notebook.html(show_all)


def report(kernel: str, profile: Profile, trace: Trace, sites: Sites, infinite: Collection[Pipe] = ()) -> TimeReport:
    """The report of a run.

    Raises:
        UserError: the profile is no chip.
    """
    plan = schedule(trace, profile, infinite)
    without = summarize(schedule(trace, profile), sites) if infinite else None
    return TimeReport(kernel, profile, plan, summarize(plan, sites), without)


def text(kernel: str, profile: Profile, summary: Summary, without: Summary | None = None) -> str:
    """The report without colour, 120 columns wide."""
    stream = io.StringIO()
    console = Console(file=stream, width=120, no_color=True, highlight=False, force_terminal=False)
    show(console, kernel, profile, summary, without)
    return stream.getvalue()


def show(console: Console, kernel: str, profile: Profile, summary: Summary, without: Summary | None = None) -> None:
    """Print the report. ``without`` is the summary before a what-if, to compare with."""

    def line(*parts: str | tuple[str, str]) -> None:
        console.print(Text.assemble(*parts), soft_wrap=True)

    where = plural(summary.cores, "core") + (f" in {summary.waves} waves" if summary.waves > 1 else "")
    launches = "" if summary.launches == 1 else f", {summary.launches} launches"
    line(("ascsim: ", "bold"), f"{kernel} on {profile.title}, {where}{launches}")
    line(
        (f"{summary.cycles:,} cycles", "bold"), f", {summary.microseconds:.3f} µs at {summary.mhz:g} MHz; ",
        (f"{summary.guess_share:.0%} of it are guesses", "yellow" if summary.guess_share else ""),
    )  # fmt: skip
    if without is not None:
        change = (summary.cycles - without.cycles) / max(without.cycles, 1)
        line(f"  as if {', '.join(summary.infinite)} took no time; with it {without.cycles:,} cycles ({change:+.0%})")
    if not summary.cycles:
        line("nothing of it takes time")
        return
    line("\n", ("pipe      instructions         at work            critical path", "dim"))
    for track in summary.tracks:
        part = track.on_path / summary.cycles
        bar = "█" * round(part * _BAR)
        line(
            (f"{track.name:<9}", "cyan"), f"{track.instructions:>13,}{track.cycles:>16,}  {track.share:>5.0%}"
            f"{track.on_path:>12,}  {part:>4.0%}  ", (bar, "cyan"),
        )  # fmt: skip
    line("bound by ", (summary.bound, "bold"), f": {summary.bound_share:.0%} of the critical path")
    line("\n", ("critical path by source line", "dim"))
    for entry in summary.lines[:_SHOWN]:
        written = _written(entry.where)
        line(
            f"{entry.cycles:>10,} {entry.share:>5.0%}  ", (near(entry.where), "blue"),
            f"  {', '.join(entry.instructions[:4])}", (f"  | {written}" if written else "", "dim"),
        )  # fmt: skip
    _left_out(line, summary.lines, "line")
    if summary.bubbles:
        line("\n", ("idle between work, and what for", "dim"))
        for bubble in summary.bubbles[:_SHOWN]:
            behind = f", behind {near(bubble.behind)}" if bubble.behind else ""
            line(
                (f"{bubble.track:<9}", "cyan"), f"{bubble.cycles:>10,} in {plural(bubble.times, 'gap')}: {bubble.cause}, ",
                (near(bubble.where), "blue"), behind,
            )  # fmt: skip
        _left_out(line, summary.bubbles, "reason")
    roof = summary.roofline
    line("\n", ("roofline", "dim"))
    side = "memory" if roof.bound == "memory" else "computing"
    moved = f"{roof.bytes:,} bytes of GM, {roof.operations:,} operations: {roof.intensity:.2f} a byte"
    line(f"{moved}; ridge at {roof.ridge:.2f}, so the roof is ", (side, "bold"))
    line(
        f"{roof.reached:.2f} operations a cycle, {_share(roof.reached, roof.roof)} of the {roof.roof:.2f} under that roof"
    )
    if summary.guesses:
        line("\n", ("guessed costs on the critical path", "dim"))
        for source, cycles in summary.guesses[:4]:
            line(f"{cycles:>10,}  {source.removeprefix('guess: ')}")
        _left_out(line, summary.guesses, "figure", 4)


def compare(console: Console, reports: Sequence[dict[str, Any]]) -> None:
    """Print the runs of a kernel on several chips side by side."""
    console.print(Text("\nside by side", "bold"))
    for report in reports:
        console.print(
            Text.assemble(
                (f"{report['profile']:<6}", "cyan"), f"{report['kernel']}: {report['cycles']:,} cycles, "
                f"{report['microseconds']:.3f} µs, bound by {report['bound']} ({report['bound_share']:.0%})",
            ),
            soft_wrap=True,
        )  # fmt: skip


def near(place: str) -> str:
    """A place ``path:line`` (perhaps after words) with its path as seen from here, if it lies below."""
    return place.replace(f"{Path.cwd()}/", "")


def _written(where: str) -> str:
    path, _, number = where.rpartition(":")
    found = source_line(path, int(number)) if number.isdigit() else None
    return (found or "").strip()


def _left_out(line: object, entries: Sequence[object], what: str, shown: int = _SHOWN) -> None:
    if len(entries) > shown and callable(line):
        line((f"{'':>10}  and {plural(len(entries) - shown, f'more {what}')}", "dim"))


def _share(part: float, whole: float) -> str:
    return f"{part / whole:.0%}" if whole else "0%"
