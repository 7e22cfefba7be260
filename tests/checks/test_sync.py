"""Flags that do not pair."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from ascsim.checks.context import pipe_name
from ascsim.diagnostics import Severity
from checks.builder import MTE2, MTE3, Builder, S, V, gm


def test_pairs_in_turn_are_silent() -> None:
    builder = Builder()
    for _ in range(3):
        for event in range(8):
            builder.sync(MTE2, V)
            builder.set(MTE2, V, event)
            builder.wait(MTE2, V, event)
    assert builder.run() == []


def test_a_wait_without_its_set() -> None:
    builder = Builder()
    builder.op(MTE2, "TLOAD", [gm(0)], [0], line=1)
    builder.wait(MTE2, V, 0, line=2)
    builder.op(V, "TADD", [0], [512], line=3)
    (found,) = builder.run()
    assert (found.code, found.severity) == ("S001", Severity.ERROR)
    assert found.headline == (
        "wait without set: PIPE_V waits for ever for the flag from PIPE_MTE2 to PIPE_V, EVENT_ID0"
    )
    assert [str(place.site) for place in found.places] == ["kernel.cpp:2"]
    assert found.mend == "Add set_flag(PIPE_MTE2, PIPE_V, EVENT_ID0) after line 1."


def test_a_first_wait_of_a_loop_needs_a_set_before_it() -> None:
    builder = Builder()
    for _ in range(3):
        builder.wait(V, MTE2, 0, line=1)
        builder.op(MTE2, "TLOAD", [gm(0)], [0], line=2)
        builder.sync(MTE2, V)
        builder.op(V, "TADD", [0], [512], line=5)
        builder.set(V, MTE2, 0, line=6)
    builder.wait(V, MTE2, 0, line=7)
    (found,) = builder.run("a5")
    assert found.code == "S001"
    assert "before the loop" in found.mend


def test_waits_without_set_of_one_flag_are_one_finding() -> None:
    builder = Builder()
    for line in (1, 2, 3):
        builder.wait(MTE2, V, 0, line=line)
    (found,) = builder.run()
    assert (found.code, found.count) == ("S001", 3)


@pytest.mark.parametrize(
    ("source", "target", "event", "hint"),
    [
        (MTE2, MTE3, 0, "the event is set for another pair of pipes, PIPE_MTE2 to PIPE_MTE3, EVENT_ID0, at line 1"),
        (V, MTE2, 0, "the event is set for another pair of pipes, PIPE_V to PIPE_MTE2, EVENT_ID0, at line 1"),
        (MTE2, V, 1, "the pair has a set of another event id, EVENT_ID1, at line 1"),
    ],
)
def test_a_set_of_another_pair_or_id_is_pointed_at(source: int, target: int, event: int, hint: str) -> None:
    builder = Builder()
    builder.set(source, target, event, line=1)
    for _ in range(2):  # not as many as there are sets: not one for the other
        builder.wait(MTE2, V, 0, line=2)
    found = {d.code: d for d in builder.run()}
    assert set(found) == {"S001", "S003"}
    assert found["S001"].notes == (hint,)


def test_one_call_with_an_event_id_of_a_variable_is_one_finding() -> None:
    builder = Builder()
    for turn in range(10):
        builder.op(MTE2, "TLOAD", [], [4096 * turn], line=1)
        builder.wait(MTE2, V, turn % 2, line=3)
        builder.op(V, "TADD", [4096 * turn], [4096 * turn + 2048], line=4)
    (found,) = builder.run()
    assert (found.code, found.count) == ("S001", 10)
    assert found.mend == "Add set_flag(PIPE_MTE2, PIPE_V, EVENT_ID0) after line 1."
    assert "the same with EVENT_ID1" in found.notes


# A loop with one call wrong


def loop(turns: int, wrong: str = "", instead: tuple[int, int, int] | None = None) -> Builder:
    """Load, add, store over one pair of buffers; the call of that name is left out, or made for another flag."""
    builder = Builder()
    builder.launch(1)
    x, y = builder.tile("x", 0, 16, 64), builder.tile("y", 0x2000, 16, 64)

    def call(name: str, line: int) -> None:
        source, target = FLAGS[name]
        flag = instead if name == wrong else (source, target, 0)
        if flag is not None:
            (builder.set if name.startswith("set") else builder.wait)(*flag, line=line)

    call("set free x", 1)
    call("set free y", 2)
    for turn in range(turns):
        call("wait free x", 10)
        builder.op(MTE2, "TLOAD", [gm(4096 * turn, 4096)], [x], line=11)
        call("set loaded", 12)
        call("wait loaded", 13)
        call("wait free y", 14)
        builder.op(V, "TADD", [x], [y], line=15)
        call("set used x", 16)
        call("set added", 17)
        call("wait added", 18)
        builder.op(MTE3, "TSTORE", [y], [gm(0x1000000 + 4096 * turn, 4096)], line=19)
        call("set stored y", 20)
    call("wait last x", 30)
    call("wait last y", 31)
    builder.end(1)
    return builder


FLAGS = {
    "set free x": (V, MTE2), "set free y": (MTE3, V), "wait free x": (V, MTE2), "set loaded": (MTE2, V),
    "wait loaded": (MTE2, V), "wait free y": (MTE3, V), "set used x": (V, MTE2), "set added": (V, MTE3),
    "wait added": (V, MTE3), "set stored y": (MTE3, V), "wait last x": (V, MTE2), "wait last y": (MTE3, V),
}  # fmt: skip


def test_the_loop_is_silent() -> None:
    assert loop(1000).run() == []


@pytest.mark.parametrize("wrong", FLAGS)
@pytest.mark.parametrize("turns", [3, 1000])
def test_a_call_left_out_of_a_loop_is_one_finding(turns: int, wrong: str) -> None:
    (found,) = loop(turns, wrong).run()
    source, target = FLAGS[wrong]
    kind = "set_flag" if wrong.startswith("set") and found.code == "S001" else "wait_flag"
    assert f"Add {kind}({pipe_name(source)}, {pipe_name(target)}, EVENT_ID0)" in found.mend


@pytest.mark.parametrize("other", ["event id", "way round", "source", "target"])
@pytest.mark.parametrize("wrong", FLAGS)
def test_a_call_for_another_flag_is_one_finding_that_names_both(wrong: str, other: str) -> None:
    source, target = FLAGS[wrong]
    instead = {
        "event id": (source, target, 1), "way round": (target, source, 3), "source": (S, target, 0),
        "target": (source, S, 0),
    }[other]  # fmt: skip
    (found,) = loop(100, wrong, instead).run()
    assert found.code == "S005"
    for a, b, event in (instead, (source, target, 0)):
        assert f"_flag({pipe_name(a)}, {pipe_name(b)}, EVENT_ID{event})" in found.mend


def test_a_lonely_set_and_a_lonely_wait_that_have_nothing_to_do_with_each_other() -> None:
    builder = Builder()
    builder.set(V, MTE3, 0)
    builder.wait(MTE2, S, 1)
    assert sorted(builder.codes()) == ["S001", "S003"]


def test_a_wait_that_stands_before_its_set() -> None:
    builder = Builder()
    builder.wait(MTE2, V, 0, line=1)
    builder.op(V, "TADD", [0], [512], line=2)
    builder.op(MTE2, "TLOAD", [gm(0)], [4096], line=3)
    builder.set(MTE2, V, 0, line=4)
    (found,) = builder.run()
    assert (found.code, found.severity) == ("S002", Severity.ERROR)
    assert [str(place.site) for place in found.places] == ["kernel.cpp:1", "kernel.cpp:4"]
    assert found.mend == "Move set_flag(PIPE_MTE2, PIPE_V, EVENT_ID0) from line 4 to before line 1."


def test_a_set_without_its_wait() -> None:
    builder = Builder()
    builder.set(MTE2, V, 5, line=1)
    (found,) = builder.run()
    assert (found.code, found.severity) == ("S003", Severity.ERROR)
    assert "wait_flag(PIPE_MTE2, PIPE_V, EVENT_ID5)" in found.mend


def test_a_flag_of_one_core_is_not_the_other_s() -> None:
    builder = Builder()
    for builder.core in (0, 1):
        builder.launch(1, blocks=2)
        if builder.core == 0:
            builder.set(MTE2, V, line=1)
        else:
            builder.wait(MTE2, V, line=2)
        builder.end(1)
    assert sorted(builder.codes()) == ["S001", "S003"]


def test_a_flag_does_not_outlive_its_launch() -> None:
    builder = Builder()
    builder.launch(1)
    builder.set(MTE2, V, line=1)
    builder.end(1)
    builder.launch(2)
    builder.wait(MTE2, V, line=2)
    builder.end(2)
    assert sorted(builder.codes()) == ["S001", "S003"]


def test_a_flag_set_twice() -> None:
    builder = Builder()
    builder.set(MTE2, V, 0, line=1)
    builder.set(MTE2, V, 0, line=2)
    builder.wait(MTE2, V, 0, line=3)
    (found,) = builder.run()
    assert (found.code, found.severity) == ("S004", Severity.ERROR)
    assert [str(place.site) for place in found.places] == ["kernel.cpp:2", "kernel.cpp:1"]


def test_sets_and_waits_that_count_are_told_once() -> None:
    builder = Builder()
    builder.set(MTE2, V, 0, line=1)
    builder.set(MTE2, V, 0, line=2)
    builder.wait(MTE2, V, 0, line=3)
    builder.wait(MTE2, V, 0, line=4)
    assert builder.codes() == ["S004"]


def test_a_loop_of_sets_is_one_finding() -> None:
    builder = Builder()
    for _ in range(100):
        builder.set(S, V, 0, line=1)
    (found,) = builder.run()
    assert (found.code, found.count) == ("S004", 99)


def stop_by_fault(builder: Builder) -> None:
    """As the machine notes it: the row that could not go on."""
    builder.note("fault", row=1, site=0, message="too far")


def stop_by_refusal(builder: Builder) -> None:
    """As a front end notes it: the row that would have come next."""
    builder.note("refused", row=2)


def stop_without_a_row(builder: Builder) -> None:
    """Somewhere."""
    builder.note("refused")


def stop_by_crash(builder: Builder) -> None:
    """Nothing more comes: the launch has no end."""


@pytest.mark.parametrize("stop", [stop_by_fault, stop_by_refusal, stop_without_a_row, stop_by_crash])
def test_a_run_cut_short_left_its_flags_innocently(stop: Callable[[Builder], None]) -> None:
    builder = Builder()
    builder.launch(1)
    builder.set(MTE2, MTE3, line=1)
    stop(builder)
    if stop is not stop_by_crash:
        builder.end(1)
    assert builder.run() == []


def test_only_the_core_that_stopped_is_excused() -> None:
    builder = Builder()
    for builder.core in (0, 1):
        builder.launch(1, blocks=2)
        builder.set(MTE2, MTE3, line=builder.core + 1)
        builder.end(1)
    builder.note("fault", row=4, site=0, message="too far")
    (found,) = builder.run()
    assert [str(place.site) for place in found.places] == ["kernel.cpp:1"]


def test_a_set_that_does_not_take_turns_as_its_wait_does_is_one_finding() -> None:
    builder = Builder()
    for event in (0, 1):
        builder.set(MTE3, MTE2, event, line=1 + event)
    for turn in range(6):
        builder.wait(MTE3, MTE2, turn % 2, line=3)
        builder.op(MTE2, "load", writes=[2048 * (turn % 2)], line=4)
        builder.sync(MTE2, MTE3, turn % 2)
        builder.op(MTE3, "store", reads=[2048 * (turn % 2)], line=7)
        builder.set(MTE3, MTE2, 0, line=8)  # not turn % 2
    for event in (0, 1):
        builder.wait(MTE3, MTE2, event, line=9 + event)
    (found,) = builder.run()
    assert found.code == "S005" and found.count == 3
    assert found.places[1].site.line == 8 and "EVENT_ID1" in found.headline
    assert found.notes == ("in other turns of the loop that event id is right: let it change as that of the wait does",)
