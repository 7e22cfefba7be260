"""Counting the work of rows, and what it costs."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest

from ascsim.machine.trace import Kind
from ascsim.machine.words import Space
from ascsim.timing.work import route_name, work_of
from checks.builder import MTE2, Builder, V, gm


def work(reads: Sequence[Any] = (), writes: Sequence[Any] = ()) -> dict[str, Any]:
    """The work of one row."""
    builder = Builder()
    builder.op(V, reads=reads, writes=writes)
    counted = work_of(builder.trace())
    names = ("bytes", "bursts", "repeats", "results", "gm", "elements")
    return {name: int(getattr(counted, name)[0]) for name in names} | {"route": route_name(int(counted.route[0]))}


def at(start: int, length: int, **more: int) -> dict[str, int]:
    return {"start": start, "length": length, **more}


@pytest.mark.parametrize(
    ("access", "repeats"),
    [
        (at(0, 256), 1), (at(0, 257), 2), (at(0, 16384), 64), (at(0, 4), 1),
        (at(0, 240, n1=60, s1=256), 60),  # rows narrower than a repeat
        (at(0, 320, n1=4, s1=512), 8),
        (at(0, 32, n1=8, s1=64), 1),  # the blocks of a repeat, with a stride
        (at(0, 32, n1=8, s1=64, n2=5, s2=512), 5),
        (at(0, 32, n1=9, s1=64), 9),
        (at(0, 4, n1=64, s1=8), 2),  # every other element
        (at(0, 4, n1=64, s1=8, n2=3, s2=1024), 6),
    ],
)  # fmt: skip
def test_repeats(access: dict[str, int], repeats: int) -> None:
    assert work(writes=[access])["repeats"] == repeats


def test_the_longest_operand_counts() -> None:
    counted = work(reads=[at(0, 512), at(1024, 256)], writes=[at(2048, 128)])
    assert (counted["bytes"], counted["repeats"], counted["results"]) == (512, 2, 128)


def test_bytes_of_global_memory_and_the_route() -> None:
    counted = work(reads=[gm(0, 100, n1=3, s1=200)], writes=[at(0, 320)])
    assert (counted["gm"], counted["bytes"], counted["bursts"], counted["route"]) == (300, 320, 3, "GM>UB")
    assert work(writes=[at(0, 32)])["route"] == ">UB"
    state = {"space": Space.STATE, "start": 0, "length": 16}
    assert work(reads=[state, at(0, 256)])["bytes"] == 256, "the vector mask is no memory"


def test_a_row_without_accesses_and_a_trace_without_rows() -> None:
    assert work()["bytes"] == 0
    assert len(work_of(Builder().trace()).bytes) == 0
    builder = Builder()
    builder.row(MTE2, Kind.SET_FLAG, "set_flag")
    assert work_of(builder.trace()).repeats.tolist() == [0]
