"""From findings to diagnostics: equal ones become one with a count, and what is left out is said."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Sequence
from dataclasses import replace

from ascsim.checks.context import Context, Found
from ascsim.checks.suppressions import Rule, note_on, suppress
from ascsim.diagnostics import CATALOGUE, Diagnostic, Place, Severity

CATALOGUE.add(
    "N001", Severity.NOTE, "More findings than are shown",
    "The report ends at its limit. The note says how many findings of which codes were left out; it is an error where "
    "one of them is.\n\n"
    "Mend what is shown and run again, or raise the limit (--limit).",
)  # fmt: skip

_RANK = {Severity.ERROR: 0, Severity.WARNING: 1, Severity.NOTE: 2}


def fold(founds: Iterable[Found], context: Context, limit: int, rules: Sequence[Rule] = ()) -> list[Diagnostic]:
    """The diagnostics of all findings, in program order, at most ``limit`` and a note on the rest.

    What comments in the source or ``rules`` suppress is counted in another note.
    """
    folded: dict[Hashable, tuple[Found, int]] = {}
    for found in founds:
        key = (found.code, found.key, *(_who(context, row) for row in found.rows))
        if not found.rows:
            key = (*key, found.headline, found.places)
        first, count = folded.get(key, (found, 0))
        folded[key] = (first, count + found.count)
    explained = {_line(context, row) for found, _ in folded.values() for row in found.covers}
    claimed = {_line(context, row) for found, _ in folded.values() for row in found.claims}
    kept = [
        (found, count)
        for found, count in _by_cause(folded.values(), context)
        if not any(_line(context, row) in explained for row in found.yields)
        and not any(_line(context, row) in claimed for row in found.covers)
    ]
    kept.sort(key=lambda entry: entry[0].rows[0] if entry[0].rows else -1)
    told, silent = suppress([_diagnostic(found, count, context) for found, count in kept], rules)
    shown = told if len(told) <= limit else _worst(told, limit)
    hidden = [d for d in told if not any(d is other for other in shown)]
    notes = [_rest(hidden, context)] if hidden or context.hidden else []
    return [*shown, *notes, *([note_on(silent)] if silent else [])]


def _by_cause(entries: Iterable[tuple[Found, int]], context: Context) -> list[tuple[Found, int]]:
    """Findings that explain the same other rows have one cause: the first of them tells of the rest.

    A flag that nobody waits for, in a function that several kernels call, leaves a race in each of them.
    """
    causes: dict[Hashable, tuple[Found, int]] = {}
    for number, (found, count) in enumerate(entries):
        key = tuple(_line(context, row) for row in found.covers) or number
        if key not in causes:
            causes[key] = (found, count)
            continue
        first, so_far = causes[key]
        note = f"the same is missing for {found.whats[0]} at {context.where(found.rows[0], first.rows[0])}"
        causes[key] = (replace(first, notes=(*first.notes, note)), so_far + count)
    return list(causes.values())


def _who(context: Context, row: int) -> Hashable:
    """What makes two rows the same instruction to a reader: its name and source site."""
    root = context.root(row)
    site = context.site(row)
    name = context.name(root)
    return (name, site.path, site.line, site.column) if site else (name, int(context.trace.rows["site"][root]))


def _line(context: Context, row: int) -> Hashable:
    """The source line of a row, or the row itself where it is not known."""
    site = context.site(row)
    return (site.path, site.line, site.column) if site else row


def _worst(told: list[Diagnostic], limit: int) -> list[Diagnostic]:
    """The first ``limit`` findings, errors before warnings before notes; in program order."""
    chosen = sorted(range(len(told)), key=lambda i: (_RANK[told[i].severity], i))[:limit]
    return [told[i] for i in sorted(chosen)]


def _diagnostic(found: Found, count: int, context: Context) -> Diagnostic:
    places = tuple(Place(what, context.site(row), row) for what, row in zip(found.whats, found.rows, strict=True))
    places += found.places
    return Diagnostic(found.code, found.severity, found.headline, places, found.notes, found.mend, count)


def _rest(hidden: list[Diagnostic], context: Context) -> Diagnostic:
    codes: dict[str, int] = {}
    for found in hidden:
        codes[found.code] = codes.get(found.code, 0) + 1
    listing = ", ".join(f"{code} ({number})" for code, number in sorted(codes.items()))
    notes = ((f"left out: {listing}",) if codes else ()) + tuple(context.hidden)
    severity = min((found.severity for found in hidden), key=lambda s: _RANK[s], default=Severity.NOTE)
    headline = f"{len(hidden)} more findings are not shown" if hidden else "not everything could be looked at"
    return Diagnostic("N001", severity, headline, (), notes)
