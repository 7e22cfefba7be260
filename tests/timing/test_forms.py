"""Which rows of a trace have one form."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ascsim.machine.trace import Kind, Trace
from ascsim.machine.visit import visit_of
from ascsim.timing import forms as module
from ascsim.timing.forms import Forms, forms_of
from checks.builder import MTE2, Builder, S, V, gm, parts
from timing.test_schedule import programs


def of(trace: Trace, is_long: bool = False) -> Forms:
    """The forms of a trace."""
    return forms_of(trace, visit_of(trace), is_long)


def at(start: int, length: int = 256, **more: int) -> dict[str, int]:
    return {"start": start, "length": length, **more}


def test_turns_of_a_loop_have_one_form_wherever_they_read() -> None:
    builder = Builder()
    for turn in range(5):
        builder.op(V, "add", reads=[at(turn * 256)], writes=[at(8192 + turn * 256)], line=3)
        builder.set(V, MTE2, line=4)
    forms = of(builder.trace())
    assert forms.of.tolist() == [0, 1] * 5
    assert (forms.first.tolist(), forms.count.tolist()) == ([0, 1], [5, 5])


OTHER: list[dict[str, Any]] = [
    {"name": "sub"}, {"line": 4}, {"reads": [at(0, 128)]}, {"reads": [at(0, n1=2, s1=256)]}, {"reads": []},
    {"reads": [at(0), at(256)]}, {"reads": [gm(0)]}, {"reads": [], "writes": [at(0)]}, {"pipe": S},
]  # fmt: skip


@pytest.mark.parametrize("other", OTHER, ids=str)
@pytest.mark.parametrize("is_long", [False, True])
def test_what_makes_another_form(other: dict[str, Any], is_long: bool) -> None:
    builder = Builder()
    for changes in ({}, other, {}):
        call = {"pipe": V, "name": "add", "reads": [at(0)], "writes": [], "line": 3, **changes}
        builder.op(call.pop("pipe"), call.pop("name"), call.pop("reads"), call.pop("writes"), **call)
    assert of(builder.trace(), is_long).of.tolist() == [0, 1, 0]


def test_where_a_row_stands_makes_another_form() -> None:
    builder = Builder()
    builder.op(V, "add", line=3)
    builder.row(V, Kind.VF_BEGIN, "vf")
    builder.op(V, "add", line=3)
    builder.row(V, Kind.VF_END, "vf")
    builder.op(V, "add", line=3)
    forms = of(builder.trace())
    assert forms.of[0] == forms.of[4] != forms.of[2]
    assert forms.inside.tolist() == [False, False, True, False]


def test_launches_share_the_forms_that_leave_global_memory_alone() -> None:
    builder = Builder()
    for number in (1, 2):
        builder.launch(number)
        builder.op(V, "add", line=3)
        builder.op(MTE2, "load", reads=[gm(0)], line=4)
        builder.end(number)
    forms = of(builder.trace())
    assert forms.of[1] == forms.of[5] and forms.of[2] != forms.of[6]
    assert forms.uses.tolist() == [True, True]
    assert sorted(forms.launch.tolist())[-2:] == sorted(set(visit_of(builder.trace()).launch.tolist()))


@given(trace=programs(), size=st.integers(1, 9))
@settings(deadline=None, max_examples=40)
def test_rows_of_a_form_are_alike_and_parts_and_compiled_loops_find_the_same(trace: Trace, size: int) -> None:
    forms = of(trace)
    for name in ("mnemonic", "pipe", "kind", "dtype", "work", "site", "n_access"):
        column = trace.rows[name]
        assert (column == column[forms.first][forms.of]).all()
    assert forms.count.tolist() == np.bincount(forms.of, minlength=len(forms.first)).tolist()
    with parts(size):
        for other in (of(trace), of(trace, is_long=True)):
            assert all((a == b).all() for a, b in zip(vars(forms).values(), vars(other).values(), strict=True))


def test_more_forms_than_there_was_room_for(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "_ROOM", 2)
    builder = Builder()
    for turn in range(40):
        builder.op(V, "add", line=1 + turn % 20)
    for is_long in (False, True):
        assert of(builder.trace(), is_long).of.tolist() == [*range(20)] * 2
