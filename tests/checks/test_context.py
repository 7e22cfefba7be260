"""When loops over traces run compiled."""

from __future__ import annotations

import numpy as np
import pytest

from ascsim import profiles
from ascsim.checks import context as module
from ascsim.checks.context import PLAIN_ROWS, WORTH_LOADING, WORTH_MAKING, Context
from ascsim.machine.trace import ACCESS, ROW, Trace


@pytest.fixture
def compiles(monkeypatch):
    """Whether a trace of so many rows is checked by compiled loops."""
    monkeypatch.setattr(module, "_rows_seen", 0)

    def check(rows: int, made: bool) -> bool:
        monkeypatch.setattr(module, "_are_made", lambda: made)
        trace = Trace(np.zeros(rows, ROW), np.zeros(0, ACCESS), np.zeros((0, 32), np.uint8))
        return Context(trace, profiles.load("a5"), lambda number, flags: None).compiled

    return check


def test_a_long_trace_compiles_the_loops(compiles):
    assert compiles(PLAIN_ROWS + 1, made=False)
    assert not compiles(PLAIN_ROWS, made=False)


def test_short_traces_load_compiled_loops_once_they_add_up(compiles):
    assert not compiles(WORTH_LOADING, made=True)
    assert compiles(1, made=True)
    assert compiles(1, made=True)


def test_short_traces_compile_only_once_they_add_up_to_more_than_that_takes(compiles):
    for _ in range(WORTH_MAKING // PLAIN_ROWS):
        assert not compiles(PLAIN_ROWS, made=False)
    assert compiles(1, made=False)
