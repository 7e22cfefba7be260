"""The time report and the timeline for the terminal."""

from __future__ import annotations

import io

import numpy as np
import pytest
from rich.console import Console

from ascsim import profiles, timing
from ascsim.checks import noted_sites
from ascsim.machine.words import Pipe
from ascsim.report import time, timeline
from ascsim.timing.summary import Summary, summarize
from checks.builder import MTE2, Builder, V
from timing.test_schedule import PLAIN
from timing.test_summary import load_and_add


def schedule_of(builder: Builder, *infinite: Pipe) -> timing.Schedule:
    return timing.schedule(builder.trace(), profiles.find("a2a3"), infinite, PLAIN)


def summary_of(builder: Builder, *infinite: Pipe) -> Summary:
    return summarize(schedule_of(builder, *infinite), noted_sites(builder.trace()))


def test_report() -> None:
    text = time.text("kernel", profiles.find("a2a3"), summary_of(load_and_add(3)))
    assert "kernel on Atlas A2 / A3 (dav-2201), 1 core" in text
    assert "638 cycles, 0.638 µs at 1000 MHz; 2% of it are guesses" in text
    assert "bound by MTE2: 97% of the critical path" in text
    assert "kernel.cpp:10  TLOAD" in text
    assert "372 in 2 gaps: flag MTE2 to V, EVENT_ID0, kernel.cpp:12, behind TLOAD at kernel.cpp:10" in text
    assert "19,200 bytes of GM" in text


def test_what_if() -> None:
    builder = load_and_add(3)
    text = time.text("kernel", profiles.find("a2a3"), summary_of(builder, Pipe.MTE2), summary_of(builder))
    assert "as if MTE2 took no time; with it 638 cycles" in text


def test_nothing_to_tell() -> None:
    assert "nothing of it takes time" in time.text("kernel", profiles.find("a2a3"), summary_of(Builder()))


def test_timeline_shares() -> None:
    builder = Builder()
    builder.op(V, "long")
    builder.op(V, "long")
    builder.sync(V, MTE2)
    builder.op(MTE2)
    schedule = schedule_of(builder)
    total = schedule.total
    shares = dict(timeline.busy(schedule, [0], total))
    assert shares.keys() == {"V", "MTE2"}
    for name, pipe in (("V", V), ("MTE2", MTE2)):
        rows = np.flatnonzero(schedule.is_work & (schedule.track == pipe))
        wanted = np.zeros(total)
        for row in rows:
            wanted[schedule.start[row] : schedule.end[row]] = 1
        assert shares[name] == pytest.approx(wanted)


def test_timeline_text() -> None:
    stream = io.StringIO()
    timeline.show(Console(file=stream, width=52, no_color=True), schedule_of(load_and_add(2)))
    head, vector, load, foot = stream.getvalue().splitlines()
    assert head.startswith("10.9 cycles a character")
    assert load.startswith("     MTE2 |████") and load.endswith("▓ |")
    assert vector.startswith("        V |     ") and vector.endswith("█|")
    assert foot.endswith("437 cycles")
