"""Flags and barriers: their rows, their limits, and what the composed ones are made of."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from ascsim.diagnostics import Refused
from ascsim.machine.trace import Kind
from ascsim.machine.words import Pipe
from harness import Bench

CHIPS = ("a2a3", "a5")


def rows(bench: Bench) -> list[tuple[Any, ...]]:
    return [(r["kind"], r["pipe"], r["pipe2"], r["arg"], r["parent"]) for r in bench.trace().rows]


@pytest.mark.parametrize("profile", (*CHIPS, "cpu"))
@pytest.mark.parametrize("names", [("set_flag", "wait_flag"), ("asc_sync_notify", "asc_sync_wait")])
def test_a_flag_stands_on_its_setter_and_its_waiter(profile: str, names: tuple[str, str]) -> None:
    bench = Bench(profile)
    for name in names:
        bench.issue(name, Pipe.MTE2, Pipe.V, 3)
    assert rows(bench) == [
        (Kind.SET_FLAG, Pipe.MTE2, Pipe.V, 3, -1), (Kind.WAIT_FLAG, Pipe.V, Pipe.MTE2, 3, -1),
    ]  # fmt: skip
    assert bench.findings() == []


@pytest.mark.parametrize("name", ("set_flag", "wait_flag"))
@pytest.mark.parametrize(
    ("args", "said"),
    [
        ((Pipe.MTE2, Pipe.V, 8), "event id 8 is out of range 0 to 7"),
        ((Pipe.MTE2, Pipe.V, -1), "event id -1"),
        ((Pipe.V, Pipe.V, 0), "V to V is none"),
        ((Pipe.ALL, Pipe.V, 0), "ALL to V is none"),
    ],
)
def test_flags_that_are_none_are_refused(name: str, args: tuple, said: str) -> None:
    bench = Bench("a5")
    with pytest.raises(Refused, match=said):
        bench.issue(name, *args)
    assert bench.trace().rows.size == 0


@pytest.mark.parametrize("pipe", (Pipe.V, Pipe.MTE2, Pipe.ALL, Pipe.S))
def test_a_barrier_names_its_pipe(pipe: Pipe) -> None:
    bench = Bench("a2a3")
    bench.issue("pipe_barrier", pipe)
    bench.issue("asc_sync_pipe", pipe)
    bench.issue("TSYNC", pipe)
    assert rows(bench) == [(Kind.BARRIER, pipe, 0, 0, -1)] * 3
    assert bench.findings() == (["SYNC-1"] if pipe == Pipe.S else [])


def test_the_a5_has_a_tsync_for_copies_alone() -> None:
    bench = Bench("a5")
    for pipe in (Pipe.MTE2, Pipe.MTE3, Pipe.ALL):
        bench.issue("TSYNC", pipe)
    assert [r[1] for r in rows(bench)] == [Pipe.MTE2, Pipe.MTE3, Pipe.ALL]
    with pytest.raises(Refused, match="no barrier on pipe V"):
        bench.issue("TSYNC", Pipe.V)


@pytest.mark.parametrize("profile", CHIPS)
@pytest.mark.parametrize("name", ("asc_sync", "asc_sync_vec"))
def test_all_pipes_wait(profile: str, name: str) -> None:
    bench = Bench(profile)
    bench.issue(name)
    assert rows(bench) == [(Kind.INSTRUCTION, Pipe.S, 0, 0, -1), (Kind.BARRIER, Pipe.ALL, 0, 0, 0)]


@pytest.mark.parametrize("profile", CHIPS)
@pytest.mark.parametrize(("name", "done", "other"), [("mte2", Pipe.MTE2, Pipe.MTE3), ("mte3", Pipe.MTE3, Pipe.MTE2)])
def test_waiting_for_a_copy_takes_two_flags_and_a_barrier(profile: str, name: str, done: Pipe, other: Pipe) -> None:
    bench = Bench(profile)
    bench.issue(f"asc_sync_{name}", 5)
    assert rows(bench)[1:] == [
        (Kind.SET_FLAG, done, other, 5, 0), (Kind.SET_FLAG, done, Pipe.V, 5, 0),
        (Kind.WAIT_FLAG, other, done, 5, 0), (Kind.WAIT_FLAG, Pipe.V, done, 5, 0),
        (Kind.BARRIER, done, 0, 0, 0),
    ]  # fmt: skip
    with pytest.raises(Refused, match="event id 8"):
        bench.issue(f"asc_sync_{name}", 8)


def test_nothing_of_it_touches_memory() -> None:
    bench = Bench("a2a3")
    before = bench.memory().copy()
    bench.issue("asc_sync_mte2", 0)
    bench.issue("pipe_barrier", Pipe.ALL)
    assert bench.trace().accesses.size == 0
    assert np.array_equal(before, bench.memory())
