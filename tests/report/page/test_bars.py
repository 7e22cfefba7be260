"""The bars of the timeline."""

from __future__ import annotations

import numpy as np

from ascsim.machine.trace import Kind
from ascsim.report.page import bars as bars_module
from ascsim.report.page import data_of
from ascsim.report.page.bars import Bars, bars_of
from ascsim.report.page.columns import SET, SPAN, WAIT, WORK, unpacked
from ascsim.report.page.source import Lines
from checks.builder import MTE2, Builder, V, gm
from report.page.pages import racy, shown


def bars(builder: Builder) -> Bars:
    run = shown(builder)
    assert run.schedule is not None
    return bars_of(run.schedule, Lines(run.sites))


def with_steps() -> Builder:
    """An instruction of two steps, and one without."""
    builder = Builder()
    builder.launch(1)
    parent = builder.op(V, "TSORT32", line=1)
    for start in (0, 512):
        builder.op(V, "bitsort", reads=[start], writes=[start + 1024], line=1, parent=parent)
    builder.op(V, "TADD", reads=[0], writes=[4096], line=2)
    builder.end(1)
    return builder


def test_lines_are_in_the_order_of_data() -> None:
    found = bars(racy(2))
    tracks = [found.as_data()["tracks"][line["track"]] for line in found.lines]
    assert tracks == ["MTE2", "V", "MTE3"] * 2
    assert [line["core"] for line in found.lines] == [0, 0, 0, 1, 1, 1]
    assert [core["name"] for core in found.cores] == ["Vector core 0", "Vector core 1"]
    assert found.lines[0]["first"] == 0 and found.lines[-1]["last"] == len(found.rows) == 10


def test_bars_of_a_line_are_in_order_of_time() -> None:
    found = bars(racy(3))
    start = found.schedule.start[found.rows]
    assert all((np.diff(start[line["first"] : line["last"]]) >= 0).all() for line in found.lines)
    assert (found.number[found.rows] == np.arange(len(found.rows))).all()


def test_sets_know_their_waits() -> None:
    found = bars(racy())
    columns = {name: unpacked(data) for name, data in found.as_data()["columns"].items()}
    (set_,), (wait,) = (np.flatnonzero(columns["kind"] == kind) for kind in (SET, WAIT))
    assert columns["partner"][set_] == wait and columns["partner"][wait] == set_
    stored = columns["held"] == wait
    assert not stored.any() or columns["idle"][stored].min() > 0


def test_steps_have_a_line_of_their_own() -> None:
    found = bars(with_steps())
    assert [line["level"] for line in found.lines] == [0, 1]
    names = [found.names[number] for number in found.name[found.rows]]
    assert names == ["TSORT32", "TADD", "bitsort", "bitsort"]
    assert found.kind[found.rows].tolist() == [SPAN, WORK, WORK, WORK]
    start, length = found.schedule.start[found.rows], (found.schedule.end - found.schedule.start)[found.rows]
    assert start[0] == start[2] and start[0] + length[0] == start[3] + length[3]
    busy = found.busy[found.rows]
    assert start[0] + busy[0] == start[3] + busy[3] and (busy <= length).all()
    assert found.on_path[found.rows[0]] == found.on_path[found.rows[2:]].sum()


def test_launches_and_their_ends_have_no_bars() -> None:
    found = bars(racy())
    kinds = found.schedule.trace.kind[found.rows]
    assert not np.isin(kinds, (Kind.LAUNCH_BEGIN, Kind.LAUNCH_END)).any()
    assert found.as_data()["launches"] == [{"kernel": "kernel", "blocks": 1, "begin": 0, "end": found.schedule.total}]


def test_what_is_too_much_is_left_out_and_counted(monkeypatch) -> None:  # type: ignore[no-untyped-def]
    builder = Builder()
    builder.launch(1)
    for _ in range(12):
        builder.op(MTE2, "TLOAD", reads=[gm(0)], writes=[0], line=1)
    builder.end(1)
    monkeypatch.setattr(bars_module, "LIMIT", 5)
    found = bars(builder)
    assert len(found.rows) == 5 and found.left_out == 7
    data = data_of(shown(builder))
    assert data["timeline"]["columns"]["start"]["length"] == 5
    assert data["table"][0]["calls"] == data["files"]["lines"][0]["calls"] == 12
    assert found.schedule.start[found.rows].max() < found.schedule.start.max()
