"""What was found while the kernel ran: by rules of instructions, and in the program that launches kernels."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from ascsim.checks.context import Context, Found
from ascsim.diagnostics import Place, Severity
from ascsim.machine.trace import SITE_PC


def check(context: Context) -> Iterator[Found]:
    """The findings that the run noted, each with the instruction it speaks of, or the line of the host program."""
    for note in context.trace.noted("finding"):
        row = int(note.get("row", -1))
        known = 0 <= row < len(context.trace.rows)
        yield Found(
            note["code"],
            Severity(note.get("severity", "error")),
            note["headline"],
            (row,) if known else (),
            (context.name(context.root(row)),) if known else (),
            tuple(text for text in note.get("notes", ()) if text),
            note.get("mend", ""),
            places=() if known else tuple(_places(context, note)),
        )


def _places(context: Context, note: dict[str, Any]) -> Iterator[Place]:
    """The places of a finding that no row stands for: where it was, and what it points to besides."""
    for what, number in [("called here", note.get("site")), *((p["what"], p["site"]) for p in note.get("places", ()))]:
        site = (context.sites(number, SITE_PC) or context.sites(number, 0)) if number else None
        if site is not None:
            yield Place(what, site)
