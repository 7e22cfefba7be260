"""The report for people."""

from __future__ import annotations

import pytest

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
