"""What rules of instructions found as the instruction was issued."""

from __future__ import annotations

from collections.abc import Iterator

from ascsim.checks.context import Context, Found
from ascsim.diagnostics import Severity


def check(context: Context) -> Iterator[Found]:
    """The findings that the run noted, each with the instruction it speaks of."""
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
        )
