"""What a schedule comes to: bounds, the critical path by line, bubbles with their cause, the roofline, guesses."""

from __future__ import annotations

import json
from unittest import mock

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ascsim import profiles, timing
from ascsim.checks import noted_sites
from ascsim.machine.trace import Trace
from ascsim.timing.summary import Summary, summarize
from checks.builder import MTE2, MTE3, Builder, S, V, gm, parts
from timing.test_schedule import PLAIN, programs


def of(builder: Builder, profile: str = "a2a3") -> Summary:
    """The summary of a built trace with the plain table."""
    trace = builder.trace()
    return summarize(timing.schedule(trace, profiles.find(profile), costs=PLAIN), noted_sites(trace))


def load_and_add(times: int = 1) -> Builder:
    """Loads of 6400 bytes, each added to once it is there."""
    builder = Builder()
    for _ in range(times):
        builder.op(MTE2, "TLOAD", reads=[gm(0, 6400)], writes=[{"start": 0, "length": 6400}], line=10)
        builder.set(MTE2, V, line=11)
        builder.wait(MTE2, V, line=12)
        builder.op(V, "TADD", reads=[{"start": 0, "length": 6400}], writes=[{"start": 8192, "length": 6400}], line=13)
    return builder


def test_totals_and_bound() -> None:
    summary = of(load_and_add())
    assert summary.cycles == 236
    assert summary.microseconds == pytest.approx(0.236)
    assert (summary.bound, summary.bound_share) == ("MTE2", pytest.approx(220 / 236))
    assert {track.name: (track.cycles, track.on_path) for track in summary.tracks} == {
        "V": (15, 15), "MTE2": (220, 220), "issue": (4, 1),
    }  # fmt: skip


def test_the_critical_path_is_told_as_source_lines() -> None:
    summary = of(load_and_add())
    assert [(line.where, line.instructions, line.cycles) for line in summary.lines] == [
        ("kernel.cpp:10", ("TLOAD",), 221), ("kernel.cpp:13", ("TADD",), 15),
    ]  # fmt: skip
    pieces = [(piece.where, piece.track, piece.begin, piece.end) for piece in summary.path]
    assert pieces == [
        ("kernel.cpp:10", "issue", 0, 1), ("kernel.cpp:10", "MTE2", 1, 221), ("kernel.cpp:13", "V", 221, 236),
    ]  # fmt: skip


def test_a_bubble_names_the_flag_and_what_it_waited_for() -> None:
    summary = of(load_and_add(3))
    (bubble,) = summary.bubbles
    assert bubble.track == "V"
    assert bubble.cause == "flag MTE2 to V, EVENT_ID0"
    assert bubble.where == "kernel.cpp:12"
    assert bubble.behind == "TLOAD at kernel.cpp:10"
    assert (bubble.cycles, bubble.times) == (2 * (200 + 1 - 15), 2), "a load and its set, without the add"


def test_a_full_queue_is_told() -> None:
    builder = Builder()
    builder.op(MTE2, line=1)
    for _ in range(6):
        builder.op(V, "long", line=2)
    builder.op(MTE2, line=3)
    (bubble,) = of(builder).bubbles
    assert (bubble.track, bubble.where) == ("MTE2", "kernel.cpp:3")
    assert bubble.cause == "issue: the queue of V is full"
    assert bubble.behind == "long at kernel.cpp:2"


def test_a_wait_of_the_scalar_unit_is_told() -> None:
    builder = Builder()
    builder.op(V, line=1)
    builder.op(MTE2, "long", line=2)
    builder.set(MTE2, S, line=3)
    builder.wait(MTE2, S, line=4)
    builder.op(V, line=5)
    (bubble,) = of(builder).bubbles
    assert (bubble.cause, bubble.where) == ("flag MTE2 to S, EVENT_ID0", "kernel.cpp:4")


def test_overlapping_work_of_a_pipe_counts_once() -> None:
    builder = Builder()
    for _ in range(3):
        builder.op(V, "long")
    (vector, _) = of(builder).tracks
    assert (vector.instructions, vector.cycles) == (3, 305)


def test_roofline() -> None:
    roof = of(load_and_add()).roofline
    assert (roof.bytes, roof.operations) == (6400, 6400), "one-byte elements"
    assert roof.intensity == 1
    assert roof.bandwidth == 32
    assert roof.reached <= roof.roof
    assert roof.bound == "memory"
    assert roof.roof == 32


def test_the_share_of_guesses() -> None:
    builder = Builder()
    builder.op(V, "long")
    builder.sync(V, MTE3)
    builder.op(MTE3, "unknown")
    summary = of(builder)
    assert summary.guess_share == pytest.approx(15 / summary.cycles)
    assert summary.guesses == (("guess: test", 15),)


def test_it_is_plain_data() -> None:
    data = json.loads(json.dumps(of(load_and_add(2)).as_dict()))
    assert data["roofline"]["bound"] == "memory"
    assert data["bubbles"][0]["cause"] == "flag MTE2 to V, EVENT_ID0"


def test_nothing_ran() -> None:
    summary = of(Builder())
    assert (summary.cycles, summary.lines, summary.bubbles) == (0, (), ())


def test_a_set_that_waited_for_nothing_is_not_followed_for_ever() -> None:
    builder = Builder()
    builder.op(MTE2, line=1)
    builder.op(S, "long", line=2)
    builder.set(V, S, line=3)
    builder.wait(V, S, line=4)
    builder.op(MTE2, line=5)
    (bubble,) = of(builder).bubbles
    assert (bubble.track, bubble.where, bubble.behind) == ("MTE2", "kernel.cpp:4", "")
    assert bubble.cause == "flag V to S, EVENT_ID0"


@given(trace=programs(), size=st.integers(1, 9))
@settings(deadline=None, max_examples=60)
def test_a_long_trace_in_parts_comes_to_the_same(trace: Trace, size: int) -> None:
    plan = timing.schedule(trace, profiles.find("a5"), costs=PLAIN)
    whole = summarize(plan, noted_sites(trace))
    with parts(size), mock.patch("ascsim.timing.summary._AT_ONCE", size):
        assert summarize(plan, noted_sites(trace)) == whole
        assert summarize(timing.schedule(trace, profiles.find("a5"), costs=PLAIN), noted_sites(trace)) == whole
