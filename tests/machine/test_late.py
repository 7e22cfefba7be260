"""A pipe held back: what waits for it, and what its instructions see."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pytest

import ascsim
from ascsim.frontends import launch
from ascsim.machine import late
from ascsim.machine.late import Held
from ascsim.machine.trace import Kind, MemorySink
from ascsim.machine.words import Pipe

SET = (Pipe.MTE2, Kind.SET_FLAG, Pipe.V, 3, 1)
WAIT = (Pipe.V, Kind.WAIT_FLAG, Pipe.MTE2, 3, 1)


@pytest.fixture
def held() -> Held:
    return Held(Pipe.MTE2, MemorySink())


@pytest.fixture(autouse=True)
def put_back() -> Iterator[None]:
    yield
    late.choose(None)


def given(held: Held, count: int, first: int = 0) -> list[int]:
    """Hold instructions back; the list fills as they are carried out."""
    done: list[int] = []
    for number in range(first, first + count):
        held.hold(number, lambda number=number: done.append(number))
    return done


def test_a_wait_carries_out_what_came_before_its_set(held: Held) -> None:
    first = given(held, 2)
    held.meet(SET, 2)
    later = given(held, 1, 3)
    held.meet((Pipe.MTE3, Kind.WAIT_FLAG, Pipe.MTE2, 3, 1), 4)  # another flag
    assert first == []
    held.meet(WAIT, 5)
    assert (first, later) == ([0, 1], [])
    held.meet(WAIT, 6)  # a wait without its set
    assert later == []
    held.release(7)
    assert later == [3]


def test_each_wait_takes_its_own_set(held: Held) -> None:
    first = given(held, 1)
    held.meet(SET, 1)
    second = given(held, 1, 2)
    held.meet(SET, 3)
    held.meet(WAIT, 4)
    assert (first, second) == ([0], [])
    held.meet(WAIT, 5)
    assert second == [2]


def test_locks_barriers_and_signals(held: Held) -> None:
    done = given(held, 1)
    held.meet((Pipe.MTE2, Kind.UNLOCK, 0, 7, 1), 1)
    done_later = given(held, 1, 2)
    for fields in (
        (Pipe.V, Kind.LOCK, 0, 6, 1), (Pipe.V, Kind.LOCK, 1, 7, 1), (Pipe.MTE2, Kind.LOCK, 0, 7, 1),
        (Pipe.V, Kind.BARRIER, 0, 0, 1), (Pipe.MTE2, Kind.BARRIER, 0, 0, 1), (Pipe.V, Kind.ARRIVE, 0, 0, 1),
    ):  # fmt: skip
        held.meet(fields, 3)
        assert done == []
    held.meet((Pipe.V, Kind.LOCK, 0, 7, 1), 4)
    assert (done, done_later) == ([0], [])
    held.meet((Pipe.ALL, Kind.BARRIER, 0, 0, 1), 5)
    assert done_later == [2]
    signalled = given(held, 1, 6)
    held.meet((Pipe.MTE2, Kind.ARRIVE, 0, 0, 1), 7)
    assert signalled == [6]


def test_the_trace_tells_when_rows_took_effect() -> None:
    sink = MemorySink()
    held = Held(Pipe.MTE3, sink)
    given(held, 2, 4)
    held.release(9)
    held.release(10)
    assert sink.notes == [("held", {"rows": [4, 5], "until": 9})]


def test_only_pipes_of_copies_can_be_held_back() -> None:
    with pytest.raises(ValueError, match="V cannot be held back, only MTE2, MTE3"):
        late.choose(Pipe.V)


def doubled(waits: bool, pipe: Pipe | None) -> tuple[np.ndarray, launch.Run]:
    """Twice a row of ones; the addition waits for the load, or does not."""
    late.choose(pipe)

    @ascsim.kernel
    def double(out, data):
        src, dst = ascsim.tile("f32", 1, 64, at=0x0), ascsim.tile("f32", 1, 64, at=0x1000)
        ascsim.tload(src, data)
        if waits:
            ascsim.set_flag(Pipe.MTE2, Pipe.V, 0)
            ascsim.wait_flag(Pipe.MTE2, Pipe.V, 0)
        ascsim.tadd(dst, src, src)
        if waits:
            ascsim.set_flag(Pipe.V, Pipe.MTE3, 0)
            ascsim.wait_flag(Pipe.V, Pipe.MTE3, 0)
        ascsim.tstore(out, dst)

    out = np.zeros((1, 64), np.float32)
    runs: list[launch.Run] = []
    launch.observe(runs.append)
    try:
        double[1](out, np.ones((1, 64), np.float32))
    except launch.KernelError:
        pass
    finally:
        launch.observe(None)
    return out, runs[0]


@pytest.mark.parametrize("pipe", [None, *late.PIPES])
def test_a_kernel_that_waits_is_as_ever(pipe: Pipe | None) -> None:
    out, run = doubled(True, pipe)
    assert (out == 2).all() and run.ok


def test_a_kernel_that_does_not_wait_gives_other_numbers_and_is_told_so() -> None:
    assert (doubled(False, None)[0] == 2).all()
    out, run = doubled(False, Pipe.MTE2)
    assert (out != 2).all()
    assert any(
        "in this run PIPE_V read them before PIPE_MTE2, held back" in n for d in run.diagnostics for n in d.notes
    )
    out, run = doubled(False, Pipe.MTE3)  # what is stored late is complete by then
    assert (out == 2).all() and not run.ok
