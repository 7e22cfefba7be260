"""The report for people."""

from __future__ import annotations

import io

import pytest
from rich.console import Console

from ascsim.diagnostics import Diagnostic, Place, Severity, Site
from ascsim.report import terminal


@pytest.mark.parametrize(("start", "length"), [(4, 10), (300, 12), (380, 20)])
def test_of_a_long_line_the_part_with_the_carets_is_shown(start: int, length: int) -> None:
    line = "".join(chr(ord("a") + i % 26) for i in range(400))
    part, at, size = terminal.excerpt(line, start, length)
    assert len(part) <= 111
    assert size == length
    assert part[at : at + size] == line[start : start + size]


def test_short_lines_stay_and_long_carets_end_with_their_line() -> None:
    assert terminal.excerpt("short", 1, 2) == ("short", 1, 2)
    part, at, size = terminal.excerpt("x" * 400, 0, 400)
    assert (at, size) == (0, len(part) - 1), "up to the ellipsis"


def test_carets_point_at_the_instruction_and_not_at_its_pipe() -> None:
    line = "    TLOAD(a, g); pipe_barrier(PIPE_MTE2); TADD(b, a, a);"
    place = Place("PIPE_MTE2 write by TLOAD", Site("kernel.cpp", 3))
    assert terminal.caret(line, place) == (4, 5)
    assert terminal.caret(line, Place("PIPE_MTE2 waits", Site("kernel.cpp", 3))) == (line.index("PIPE_MTE2"), 9)


def test_carets_point_at_whole_words() -> None:
    assert terminal.caret("set_flag(a); flag(b);", Place("flag", Site("kernel.py", 1))) == (13, 4)


def test_long_remarks_stand_below_their_beginning_on_a_terminal_and_are_one_line_elsewhere() -> None:
    found = Diagnostic("R001", Severity.ERROR, "a race", mend="Add this before that. " * 6)
    written = {}
    for is_terminal in (True, False):
        stream = io.StringIO()
        console = Console(file=stream, width=60, force_terminal=is_terminal, no_color=True, highlight=False)
        terminal.show_diagnostic(console, found)
        written[is_terminal] = [line for line in stream.getvalue().splitlines() if "Add" in line]
    assert len(written[False]) == 1
    assert len(written[True]) == 3
    assert all(len(line) <= 60 for line in written[True][1:])
    assert written[True][1].startswith(" " * 10)
