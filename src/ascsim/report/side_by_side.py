"""The same kernel on several profiles: where they differ in legality, findings and values."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from rich.console import Console
from rich.table import Table
from rich.text import Text

from ascsim.diagnostics import Diagnostic, Severity, plural
from ascsim.report.compare import Comparison, compare

_SHOWN = 3
"""Elements shown of each result that differs."""


@dataclass(frozen=True)
class Side:
    """What a profile made of the kernel.

    Attributes:
        profile: its name.
        status: the exit status that a run on this profile alone has.
        problem: why it did not run at all (it does not compile, an instruction is lacking), or empty.
        diagnostics: the findings.
        results: arrays in global memory after each launch, by a name that is the same on all profiles.
    """

    profile: str
    status: int
    problem: str = ""
    diagnostics: Sequence[Diagnostic] = ()
    results: Mapping[str, np.ndarray] = field(default_factory=dict)


def differences(sides: Sequence[Side]) -> list[tuple[str, str, Comparison]]:
    """(profile, the profile that it is compared with, comparison) for each result that differs bit by bit.

    The first profile that ran is what the others are compared with. A result that a profile lacks, because its run
    ended before, is none.
    """
    ran = [side for side in sides if not side.problem]
    found = []
    for side in ran[1:]:
        for name, wanted in ran[0].results.items():
            if name in side.results:
                comparison = compare(name, side.results[name], wanted, show=_SHOWN)
                if not comparison.ok:
                    found.append((side.profile, ran[0].profile, comparison))
    return found


def show(console: Console, sides: Sequence[Side]) -> None:
    """Print a table, a column a profile, and below it the values that differ."""
    table = Table(box=None, pad_edge=False, header_style="bold", padding=(0, 2, 0, 0))
    table.add_column("")
    for side in sides:
        table.add_column(side.profile)
    table.add_row("verdict", *map(_verdict, sides))
    for code, headline, counts in _findings(sides):
        cells = [Text(str(count) if count else "-", "" if count else "dim") for count in counts]
        table.add_row(Text.assemble((code, "bold"), f" {headline}"), *cells)
    differing = differences(sides)
    names = list(dict.fromkeys(comparison.name for _, _, comparison in differing))
    for name in names:
        table.add_row(f"values of {name}", *(_cell(name, side, sides, differing) for side in sides))
    console.print(table)
    for side in sides:
        if side.problem:
            console.print(Text.assemble((f"{side.profile}: ", "bold"), side.problem), soft_wrap=True)
    for profile, base, comparison in differing:
        _show_values(console, profile, base, comparison)
    ran = [side for side in sides if not side.problem]
    if not names and len(ran) > 1 and any(side.results for side in ran):
        console.print(f"The results are the same, bit for bit, on {_listed([side.profile for side in ran])}.")


def as_dict(sides: Sequence[Side]) -> dict[str, Any]:
    """The comparison as plain data."""
    return {
        "profiles": [{"profile": s.profile, "status": s.status, "problem": s.problem} for s in sides],
        "findings": [
            {"code": code, "headline": headline, "counts": dict(zip([s.profile for s in sides], counts, strict=True))}
            for code, headline, counts in _findings(sides)
        ],
        "differences": [
            {"profile": profile, "from": base, "result": c.name, "differ": c.differ, "total": c.total,
             "problem": c.problem, "text": c.lines()}
            for profile, base, c in differences(sides)
        ],
    }  # fmt: skip


def _verdict(side: Side) -> Text:
    if side.problem:
        return Text("does not run", "bold red")
    errors = sum(d.severity is Severity.ERROR for d in side.diagnostics)
    if errors or side.status:
        return Text(plural(errors, "error") if errors else f"exit status {side.status}", "bold red")
    return Text("ok", "bold green")


def _findings(sides: Sequence[Side]) -> list[tuple[str, str, list[int]]]:
    """(code, headline, how often on each profile), in the order of the first appearance."""
    found: dict[str, str] = {}
    for side in sides:
        for diagnostic in side.diagnostics:
            found.setdefault(diagnostic.code, diagnostic.headline)
    return [
        (code, headline, [sum(d.count for d in side.diagnostics if d.code == code) for side in sides])
        for code, headline in found.items()
    ]


def _cell(name: str, side: Side, sides: Sequence[Side], differing: list[tuple[str, str, Comparison]]) -> Text:
    for profile, _, comparison in differing:
        if profile == side.profile and comparison.name == name:
            return Text(comparison.problem or f"{comparison.differ} of {comparison.total} differ", "yellow")
    return Text("same" if name in side.results and not side.problem else "-", "dim")


def _show_values(console: Console, profile: str, base: str, comparison: Comparison) -> None:
    where = Text.assemble((comparison.name, "bold"), f": {profile} differs from {base}")
    if comparison.problem:
        console.print(where, soft_wrap=True)
        return
    places = "; ".join(
        f"[{', '.join(map(str, at))}] is {got!s} on {profile}, {want!s} on {base}" for at, got, want in comparison.first
    )
    more = comparison.differ - len(comparison.first)
    console.print(Text.assemble(where, f" in {comparison.differ} of {comparison.total} elements: {places}"
                                + (f"; and {more} more" if more > 0 else "")), soft_wrap=True)  # fmt: skip


def _listed(words: Sequence[str]) -> str:
    return f"{', '.join(words[:-1])} and {words[-1]}"
