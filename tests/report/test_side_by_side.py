"""The same kernel on several profiles: a column each, and the values that differ."""

from __future__ import annotations

import io

import numpy as np
from rich.console import Console

from ascsim.diagnostics import Diagnostic, Severity
from ascsim.report.side_by_side import Side, as_dict, differences, show

ERROR = Diagnostic("B004", Severity.ERROR, "read out of bounds", count=3)
HERE = {"k: out": np.array([1.0, 2.0, 3.0, 4.0, 5.0], np.float32)}
THERE = {"k: out": np.array([1.0, 7.0, 8.0, 9.0, 6.0], np.float32)}


def shown(*sides: Side) -> str:
    stream = io.StringIO()
    show(Console(file=stream, width=120, no_color=True, highlight=False), sides)
    return stream.getvalue()


def test_equal_results_are_told_in_one_sentence() -> None:
    text = shown(Side("a2a3", 0, results=HERE), Side("a5", 0, results=HERE))
    assert "The results are the same, bit for bit, on a2a3 and a5." in text
    assert not differences([Side("a2a3", 0, results=HERE), Side("a5", 0, results=HERE)])


def test_values_that_differ_are_counted_and_the_first_ones_shown() -> None:
    text = shown(Side("a2a3", 0, results=HERE), Side("a5", 0, results=THERE))
    assert "4 of 5 differ" in text
    assert "[1] is 7.0 on a5, 2.0 on a2a3" in text and "and 1 more" in text
    assert "same, bit for bit" not in text


def test_minus_zero_is_a_difference_and_a_nan_of_another_payload_none() -> None:
    a = {"x": np.array([0x00000000, 0x7FC00000], np.uint32).view(np.float32)}
    b = {"x": np.array([0x80000000, 0x7FC00001], np.uint32).view(np.float32)}
    ((_, _, comparison),) = differences([Side("a2a3", 0, results=a), Side("a5", 0, results=b)])
    assert comparison.differ == 1


def test_findings_are_rows_with_a_count_for_each_profile() -> None:
    sides = Side("a2a3", 1, diagnostics=(ERROR,)), Side("cpu", 0)
    row = next(line for line in shown(*sides).splitlines() if "B004" in line)
    assert row.split() == ["B004", "read", "out", "of", "bounds", "3", "-"]
    assert as_dict(sides)["findings"] == [
        {"code": "B004", "headline": "read out of bounds", "counts": {"a2a3": 3, "cpu": 0}}
    ]


def test_a_profile_that_does_not_run_says_why_and_the_others_are_compared() -> None:
    sides = Side("a2a3", 1, "no such instruction"), Side("a5", 0, results=HERE), Side("cpu", 0, results=THERE)
    text = shown(*sides)
    assert "does not run" in text and "a2a3: no such instruction" in text
    assert [(profile, base) for profile, base, _ in differences(sides)] == [("cpu", "a5")]
