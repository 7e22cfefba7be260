"""Trace files: the rules that MindStudio Insight, Perfetto and chrome://tracing have, on a schedule with all there is."""

from __future__ import annotations

import csv
import json
from collections import defaultdict
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings

from ascsim import profiles, timing
from ascsim.checks import noted_sites
from ascsim.machine.trace import Kind, Trace
from ascsim.report import insight, perfetto
from checks.builder import ALL, MTE2, MTE3, Builder, S, V, gm
from timing.test_schedule import PLAIN, programs


def kernel(cores: int = 2) -> Trace:
    """Overlapping loads, flags, a vector function, a barrier, a scalar instruction, on some cores."""
    builder = Builder()
    for core in range(cores):
        builder.core = core
        builder.launch(1, blocks=cores)
        for start in (0, 640):
            builder.op(MTE2, "TLOAD", reads=[gm(start, 640)], writes=[{"start": start, "length": 640}], line=1)
        builder.set(MTE2, V, line=2)
        builder.wait(MTE2, V, line=3)
        builder.row(V, Kind.VF_BEGIN, "vf", line=4)
        builder.op(V, "asc_loadalign", reads=[0], line=5)
        builder.op(V, "asc_add", line=6)
        builder.op(V, "asc_storealign", writes=[2048], line=7)
        builder.row(V, Kind.VF_END, "vf", line=4)
        builder.barrier(ALL, line=8)
        builder.op(S, "set_vector_mask", line=9)
        builder.op(MTE3, "TSTORE", line=10)
        builder.end(1)
    return builder.trace()


def of(trace: Trace, profile: str = "a5") -> timing.Schedule:
    return timing.schedule(trace, profiles.find(profile), costs=PLAIN)


@pytest.fixture
def written(tmp_path: Path) -> Path:
    """A directory with all files of a run."""
    trace = kernel()
    insight.write(tmp_path / "out.json", of(trace), noted_sites(trace))
    perfetto.write(tmp_path / "out.perfetto.json", of(trace), noted_sites(trace))
    return tmp_path


# MindStudio Insight


def test_insight_knows_the_file_by_its_first_keys(written: Path) -> None:
    text = (written / "out.json").read_text()
    head = text[: text.index("[")]
    assert list(json.loads(text)) == ["schemaVersion", "displayTimeUnit", "profilingType", "traceEvents"]
    assert (
        head.index('"schemaVersion": 2') < head.index('"displayTimeUnit": "ns"') < head.index('"profilingType": "op"')
    )


def test_insight_events(written: Path) -> None:
    events = json.loads((written / "out.json").read_text())["traceEvents"]
    assert {event["ph"] for event in events} == {"M", "X", "B", "E", "s", "t"}, "flows end with t, never with f"
    assert {event["pid"] for event in events} == {"core0.veccore0", "core0.veccore1"}
    order = {event["tid"]: event["args"]["sort_index"] for event in events if event["name"] == "thread_sort_index"}
    assert order == {
        "SCALAR": 1, "MTE2": 6, "VECTOR": 7, "MTE3": 8, "RVECEX": 18, "RVECST": 20, "RVECLD": 21,
    }  # fmt: skip
    slices = [event for event in events if event["ph"] == "X"]
    assert all(event["tid"] in order for event in slices)
    first = slices[0]
    assert (first["name"], first["tid"]) == ("TLOAD", "MTE2")
    assert (first["ts"], first["dur"]) == (0.001, 0.04), "microseconds at 1000 MHz"
    assert first["args"] == {"pc_addr": "0x1", "code": "kernel.cpp:1", "detail": "", "process_bytes": 640}
    colours = {event.get("cname") for event in events if event.get("tid") == "VECTOR" and event["ph"] == "X"}
    assert colours == {"cq_build_failed"}


def test_insight_flags_are_begins_and_ends_with_an_arrow(written: Path) -> None:
    events = json.loads((written / "out.json").read_text())["traceEvents"]
    flags = [event for event in events if event["name"] in ("SET_FLAG", "WAIT_FLAG")]
    assert [event["ph"] for event in flags] == ["B", "E"] * (len(flags) // 2)
    assert {event["name"]: event["cname"] for event in flags if event["ph"] == "B"} == {
        "SET_FLAG": "black", "WAIT_FLAG": "yellow",
    }  # fmt: skip
    assert flags[0]["args"]["detail"] == "from PIPE_MTE2 to PIPE_V, EVENT_ID0"
    arrows = [event for event in events if event["name"] == "flag"]
    by_id = defaultdict(list)
    for event in arrows:
        by_id[event["id"]].append((event["ph"], event["tid"]))
    assert list(by_id.values()) == [[("s", "MTE2"), ("t", "VECTOR")]] * 2


def test_tables_beside_it(written: Path) -> None:
    names = sorted(path.name for path in written.glob("*.csv"))
    assert names == [f"core0.veccore{n}_{kind}_exe.csv" for n in (0, 1) for kind in ("code", "instr")]
    with (written / "core0.veccore0_instr_exe.csv").open() as file:
        table = list(csv.DictReader(file))
    assert list(table[0]) == ["instr", "addr", "pipe", "call_count", "cycles", "running_time(us)", "detail"]
    assert {key: table[0][key] for key in ("instr", "addr", "pipe", "call_count", "cycles", "running_time(us)")} == {
        "instr": "TLOAD", "addr": "0x1", "pipe": "MTE2", "call_count": "2", "cycles": "80", "running_time(us)": "0.08",
    }  # fmt: skip
    with (written / "core0.veccore0_code_exe.csv").open() as file:
        lines = list(csv.DictReader(file))
    assert lines[0] == {"code": "kernel.cpp:1", "call_count": "2", "cycles": "80", "running_time(us)": "0.08"}


def test_cube_cores_have_processes_of_their_own() -> None:
    core = timing.CoreRun(0, 0, 3, "aic", 67, 0, 1)
    assert insight.core_name(core) == "core3.cubecore0"
    assert insight.core_name(core._replace(side="aiv", slot=3)) == "core1.veccore1"


# Perfetto


def check_perfetto(events: list[dict[str, Any]]) -> dict[tuple[int, int], list[tuple[int, int]]]:
    """The rules of Perfetto's reader; returns the slices (begin and end in nanoseconds) of each thread."""
    named = {(e["pid"], e["tid"]) for e in events if e["name"] == "thread_name"}
    threads = defaultdict(list)
    for event in events:
        assert isinstance(event["pid"], int) and isinstance(event["tid"], int)
        if event["ph"] == "X":
            assert (event["pid"], event["tid"]) in named
            begin, length = round(event["ts"] * 1000), round(event["dur"] * 1000)
            assert abs(event["ts"] * 1000 - begin) < 1e-3, "whole nanoseconds"
            threads[event["pid"], event["tid"]].append((begin, begin + length))
    for slices in threads.values():
        slices.sort()
        ends = np.array([end for _, end in slices])
        begins = np.array([begin for begin, _ in slices])
        assert (begins[1:] >= ends[:-1]).all(), "slices of a thread do not overlap"
    arrows = defaultdict(list)
    for event in events:
        if event["ph"] in "sf":
            arrows[event["id"]].append(event["ph"])
            at = round(event["ts"] * 1000)
            assert any(begin <= at <= end for begin, end in threads[event["pid"], event["tid"]]), "within a slice"
    assert all(sorted(ends) == ["f", "s"] for ends in arrows.values())
    return threads


def test_perfetto_events(written: Path) -> None:
    events = json.loads((written / "out.perfetto.json").read_text())["traceEvents"]
    check_perfetto(events)
    assert {event["ph"] for event in events} == {"M", "X", "s", "f"}, "no B and E"
    names = [event["args"]["name"] for event in events if event["name"] == "thread_name" and event["pid"] == 1]
    assert names == [
        "S", "V", "MTE2", "MTE2 (2)", "MTE3", "load", "execute", "store", "V flags", "MTE2 flags",
    ]  # fmt: skip
    assert [e["args"]["name"] for e in events if e["name"] == "process_name"] == ["core0.veccore0", "core0.veccore1"]
    load = next(event for event in events if event["name"] == "TLOAD")
    assert (load["args"]["cycle"], load["args"]["cycles"], load["args"]["code"]) == (1, 40, "kernel.cpp:1")


@given(trace=programs())
@settings(deadline=None, max_examples=30)
def test_perfetto_rules_hold_of_any_schedule(trace: Trace) -> None:
    schedule = timing.schedule(trace, profiles.find("a5"), costs=PLAIN)
    events = list(perfetto.events(schedule, noted_sites(trace)))
    threads = check_perfetto(events)
    flags = np.isin(trace.kind, (Kind.SET_FLAG, Kind.WAIT_FLAG)).sum()
    assert sum(map(len, threads.values())) == schedule.is_work.sum() + flags


def test_locks_and_signals_between_cores_have_arrows_too() -> None:
    builder = Builder()
    for core in range(2):
        builder.core = core
        builder.launch(1, blocks=2)
        builder.lock(MTE2, 4)
        builder.op(MTE2, "TLOAD")
        builder.unlock(MTE2, 4)
        builder.lock(V, 4)
        builder.arrive(V, 1)
        builder.take(S, 1)
        builder.end(1)
    schedule = of(builder.trace())
    for events in (insight.events(schedule, lambda *_: None), perfetto.events(schedule, lambda *_: None)):
        listed = list(events)
        arrows = {end: {e["id"] for e in listed if e["name"] == "flag" and e["ph"] in end} for end in ("s", "tf")}
        assert arrows["s"] == arrows["tf"]
        assert len(arrows["s"]) == 3, "an unlock of each core, and the arrival that came last"
        text = json.dumps(listed)
        assert "mutex 4" in text and "between cores" in text
