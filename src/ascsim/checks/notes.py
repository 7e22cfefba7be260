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
            _in_the_kernel_s_words(context, row, note["headline"]) if known else note["headline"],
            (row,) if known else (),
            (context.name(context.root(row)),) if known else (),
            tuple(text for text in note.get("notes", ()) if text),
            note.get("mend", ""),
            places=() if known else tuple(_places(context, note)),
        )


def _in_the_kernel_s_words(context: Context, row: int, headline: str) -> str:
    """The headline with the instruction named as the kernel's language does; rules name it as C++ does."""
    number = int(context.trace.rows["mnemonic"][context.root(row)])
    titles = {data["id"]: data.get("title", data["name"]) for data in context.trace.noted("mnemonic")}
    title = titles.get(number, "")
    return headline.replace(f"{title}: ", f"{context.name(context.root(row))}: ", 1) if title else headline


def _places(context: Context, note: dict[str, Any]) -> Iterator[Place]:
    """The places of a finding that no row stands for: where it was, and what it points to besides."""
    for what, number in [("called here", note.get("site")), *((p["what"], p["site"]) for p in note.get("places", ()))]:
        site = (context.sites(number, SITE_PC) or context.sites(number, 0)) if number else None
        if site is not None:
            yield Place(what, site)
