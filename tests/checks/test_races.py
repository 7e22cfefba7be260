"""Races in words, racy kernels beside their race-free twins, and races of public bug reports."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from ascsim import profiles
from ascsim.checks import run
from ascsim.checks.context import pipe_name
from ascsim.checks.races import hazards
from ascsim.diagnostics import Diagnostic, Severity
from ascsim.machine.trace import Kind, Trace
from ascsim.machine.words import Space
from checks.builder import ALL, FIX, MTE1, MTE2, MTE3, Builder, M, S, V, gm
from checks.programs import (
    Block,
    block_races,
    blocks,
    build,
    build_block,
    needed_edges,
    programs,
    synchronised,
)
from checks.reference import BARRIER, SET, Op, Reference


def add_kernel(builder: Builder, load_flag: bool = True, store_flag: bool = True) -> None:
    """Load a and b, add, store."""
    builder.launch(1, "AddKernel")
    a, b, c = (builder.tile(name, 0x1000 * i, 4, 64) for i, name in enumerate("abc"))
    builder.op(MTE2, "TLOAD", [gm(0, 1024)], [a], line=10)
    builder.op(MTE2, "TLOAD", [gm(1024, 1024)], [b], line=11)
    if load_flag:
        builder.set(MTE2, V, 0, line=12)
        builder.wait(MTE2, V, 0, line=13)
    builder.op(V, "TADD", [a, b], [c], line=14)
    if store_flag:
        builder.set(V, MTE3, 0, line=15)
        builder.wait(V, MTE3, 0, line=16)
    builder.op(MTE3, "TSTORE", [c], [gm(4096, 1024)], line=17)
    builder.end(1)


def only(builder: Builder, profile: str = "a2a3") -> Diagnostic:
    """The one diagnostic there is."""
    found = builder.run(profile)
    assert len(found) == 1, [d.headline for d in found]
    return found[0]


@pytest.mark.parametrize("profile", profiles.NAMES)
def test_a_synchronised_kernel_is_silent(profile: str) -> None:
    builder = Builder()
    add_kernel(builder)
    assert builder.run(profile) == []


def test_what_a_missing_pair_is_told_like() -> None:
    builder = Builder()
    add_kernel(builder, load_flag=False)
    found = only(builder)
    assert (found.code, found.severity, found.count) == ("R001", Severity.ERROR, 1)
    assert found.headline == "Potential RAW hazard detected at UB in AddKernel"
    assert [(place.what, str(place.site)) for place in found.places] == [
        ("PIPE_V read of b by TADD", "kernel.cpp:14"),
        ("PIPE_MTE2 write of b by TLOAD", "kernel.cpp:11"),
    ]
    assert found.mend == (
        "Add set_flag(PIPE_MTE2, PIPE_V, EVENT_ID0) after line 11 "
        "and wait_flag(PIPE_MTE2, PIPE_V, EVENT_ID0) before line 14."
    )
    assert found.notes[0] == "both touch UB 0x1000 to 0x13ff (1024 bytes)"
    assert found.notes[1] == "the first byte is element (0, 0) of b 4x64 f32 at UB 0x1000"
    assert found.notes[2] == (
        "the same call orders a RAW hazard at UB: PIPE_V read of a by TADD at line 14, "
        "PIPE_MTE2 write of a by TLOAD at line 10"
    )


def test_a_second_missing_pair_is_a_second_finding() -> None:
    builder = Builder()
    add_kernel(builder, load_flag=False, store_flag=False)
    assert [(d.code, d.places[0].site.line) for d in builder.run() if d.places[0].site] == [("R001", 14), ("R001", 17)]


@pytest.mark.parametrize(
    ("dialect", "pair", "barrier"),
    [
        ("pto", "set_flag(PIPE_V, PIPE_MTE3, EVENT_ID0)", "pipe_barrier(PIPE_MTE3)"),
        ("c_api", "asc_sync_notify(PIPE_V, PIPE_MTE3, EVENT_ID0)", "asc_sync_pipe(PIPE_MTE3)"),
        ("ptoas", "pto.set_flag[<PIPE_V>, <PIPE_MTE3>, <EVENT_ID0>]", "pto.barrier <PIPE_MTE3>"),
        ("python", "set_flag(Pipe.V, Pipe.MTE3, 0)", "pipe_barrier(Pipe.MTE3)"),
        ("unheard of", "set_flag(PIPE_V, PIPE_MTE3, EVENT_ID0)", "pipe_barrier(PIPE_MTE3)"),
    ],
)
def test_the_mend_speaks_the_kernel_s_language(dialect: str, pair: str, barrier: str) -> None:
    builder = Builder()
    builder.note("dialect", name=dialect)
    builder.op(V, "add", writes=[0])
    builder.op(MTE3, "store", [0], [gm(0)])
    builder.op(MTE3, "store", [512], [gm(0)])
    first, second = builder.run()
    assert pair in first.mend
    assert second.mend == f"Add {barrier} before line 3."


def test_the_event_id_of_the_mend_is_free_in_the_whole_launch() -> None:
    builder = Builder()
    for builder.core in (0, 1):
        builder.launch(1, blocks=2)
        if builder.core == 1:
            builder.sync(MTE2, V)
            builder.set(MTE2, V, 1)
            builder.wait(MTE2, V, 1)
        else:
            builder.op(MTE2, "load", writes=[0])
            builder.op(V, "add", [0])
        builder.end(1)
    assert "set_flag(PIPE_MTE2, PIPE_V, EVENT_ID2)" in only(builder).mend


def test_no_event_id_is_free() -> None:
    builder = Builder()
    for event in range(8):
        builder.set(MTE2, V, event)
        builder.wait(MTE2, V, event)
    builder.op(MTE2, "load", writes=[0])
    builder.op(V, "add", [0])
    found = only(builder)
    assert "EVENT_ID0" in found.mend
    assert "all event ids from PIPE_MTE2 to PIPE_V are in use: one must be used again" in found.notes


def test_a_set_whose_wait_is_missing_is_told_once() -> None:
    builder = Builder()
    builder.op(MTE2, "load", writes=[0], line=1)
    builder.set(MTE2, V, 3, line=2)
    builder.op(V, "add", [0], line=3)
    found = only(builder)
    assert found.code == "R001"
    assert found.mend == "Add wait_flag(PIPE_MTE2, PIPE_V, EVENT_ID3) before line 3."
    assert "the flag that line 2 sets for PIPE_V is never waited for" in found.notes


def test_a_wait_that_comes_too_late() -> None:
    builder = Builder()
    builder.op(MTE2, "load", writes=[0], line=1)
    builder.set(MTE2, V, 0, line=2)
    builder.op(V, "add", [0], line=3)
    builder.wait(MTE2, V, 0, line=4)
    assert only(builder).mend == "Move wait_flag(PIPE_MTE2, PIPE_V, EVENT_ID0) from line 4 to before line 3."


def test_a_set_that_comes_too_early() -> None:
    builder = Builder()
    builder.set(MTE2, V, 0, line=1)
    builder.op(MTE2, "load", writes=[0], line=2)
    builder.wait(MTE2, V, 0, line=3)
    builder.op(V, "add", [0], line=4)
    assert only(builder).mend == "Move set_flag(PIPE_MTE2, PIPE_V, EVENT_ID0) from line 1 to after line 2."


def test_a_race_from_one_turn_of_a_loop_to_the_next() -> None:
    builder = Builder()
    for _ in range(1000 // 10):
        builder.op(MTE2, "load", [gm(0)], [0], line=2)
        builder.set(MTE2, V, 0, line=3)
        builder.wait(MTE2, V, 0, line=4)
        builder.op(V, "add", [0], [4096], line=5)
    found = [d for d in builder.run("a5") if d.code == "R002"]
    assert len(found) == 1
    assert found[0].count == 99
    assert any("once before the loop" in note for note in found[0].notes)


def test_one_cause_is_one_finding_whatever_follows() -> None:
    builder = Builder()
    builder.op(MTE2, "load", writes=[0], line=1)
    for line in range(2, 8):
        builder.op(V, "use", [0], [4096 * line], line=line)
    builder.sync(V, MTE3)
    builder.op(MTE3, "store", [0], [gm(0)], line=20)
    assert [place.what for place in only(builder).places] == ["PIPE_V read by use", "PIPE_MTE2 write by load"]


@pytest.mark.parametrize("lonely_set", [False, True])
def test_what_one_pair_of_calls_would_order_is_one_finding(lonely_set: bool) -> None:
    builder = Builder()
    builder.op(MTE2, "load", writes=[0], line=1)
    builder.op(MTE2, "load", writes=[512], line=2)
    if lonely_set:
        builder.set(MTE2, V, 0, line=3)
    builder.op(V, "use", [0], line=4)
    builder.op(V, "use", [512], line=5)
    found = only(builder)
    assert [str(place.site) for place in found.places] == ["kernel.cpp:4", "kernel.cpp:1"]
    if lonely_set:
        assert found.mend == "Add wait_flag(PIPE_MTE2, PIPE_V, EVENT_ID0) before line 4."
        return
    assert "after line 2 and wait_flag(PIPE_MTE2, PIPE_V, EVENT_ID0) before line 4" in found.mend
    assert found.notes[-1] == (
        "the same call orders a RAW hazard at UB: PIPE_V read by use at line 5, PIPE_MTE2 write by load at line 2"
    )


def test_of_many_conflicts_of_one_cause_some_are_listed() -> None:
    builder = Builder()
    for pipe in (MTE2, V):
        for turn in range(20):
            writes = [512 * turn] if pipe == MTE2 else []
            builder.op(pipe, "op", [] if writes else [512 * turn], writes)
    found = only(builder)
    assert found.notes[-1] == "and 13 more hazards of the same cause"
    assert sum(note.startswith("the same call orders") for note in found.notes) == 6


def test_what_needs_two_pairs_of_calls_is_two_findings() -> None:
    builder = Builder()
    for address, line in ((0, 1), (512, 3)):
        builder.op(MTE2, "load", writes=[address], line=line)
        builder.op(V, "use", [address], line=line + 1)
    assert [d.mend for d in builder.run()] == [
        f"Add set_flag(PIPE_MTE2, PIPE_V, EVENT_ID0) after line {line} "
        f"and wait_flag(PIPE_MTE2, PIPE_V, EVENT_ID0) before line {line + 1}."
        for line in (1, 3)
    ]


def test_the_pipe_that_worked_last_is_the_one_to_wait_for() -> None:
    builder = Builder()
    builder.op(V, "add", writes=[0], line=1)
    builder.sync(V, MTE3)
    builder.op(MTE3, "store", [0], [gm(0)], line=4)
    builder.op(MTE2, "load", [gm(4096)], [0], line=5)
    assert only(builder).code == "R002"


def test_order_within_a_pipe_by_profile() -> None:
    builder = Builder()
    builder.op(V, "TADD", writes=[0], line=1)
    builder.op(V, "TMUL", [0], [512], line=2)
    assert only(builder, "a2a3").mend == "Add pipe_barrier(PIPE_V) before line 2."
    assert builder.run("a5") == []
    assert builder.run("cpu") == []


@pytest.mark.parametrize("profile", ["a2a3", "a5"])
@pytest.mark.parametrize("pipe", [MTE2, MTE3])
def test_transfers_to_the_same_bytes_need_a_barrier_on_both_chips(profile: str, pipe: int) -> None:
    builder = Builder()
    builder.op(pipe, "copy", writes=[gm(0)], line=1)
    builder.op(pipe, "copy", writes=[gm(128)], line=2)
    assert only(builder, profile).code == "R003"
    twin = Builder()
    twin.op(pipe, "copy", writes=[gm(0)])
    twin.barrier(pipe)
    twin.op(pipe, "copy", writes=[gm(128)])
    assert twin.run(profile) == []


@pytest.mark.parametrize(("pipe", "space"), [(MTE1, Space.L0A), (M, Space.L0C), (FIX, Space.GM), (MTE2, Space.L1)])
def test_every_memory(pipe: int, space: Space) -> None:
    where = {"space": space, "start": 1024}
    builder = Builder()
    builder.op(pipe, "write", writes=[where])
    builder.op(S if pipe != S else V, "read", [where])
    assert only(builder).headline == f"Potential RAW hazard detected at {space.name}"


def test_core_state_is_no_memory() -> None:
    builder = Builder()
    builder.op(S, "set_mask", writes=[{"space": Space.STATE, "start": 0}])
    builder.op(V, "add", [{"space": Space.STATE, "start": 0}])
    assert builder.run() == []


def test_bytes_and_elements_of_a_partial_overlap() -> None:
    builder = Builder()
    a = builder.tile("a", 0x1000, 4, 64)
    b = builder.tile("b", 0x1180, 2, 64, "f16")
    builder.op(MTE2, "TLOAD", [gm(0)], [a])
    builder.op(V, "TADD", [b])
    found = only(builder)
    assert found.notes[0] == "both touch UB 0x1180 to 0x127f (256 bytes)"
    assert found.notes[1] == (
        "the first byte is element (0, 0) of b 2x64 f16 at UB 0x1180 and element (1, 32) of a 4x64 f32 at UB 0x1000"
    )


def test_a_step_of_an_expansion_is_told_as_its_instruction() -> None:
    builder = Builder()
    src = builder.tile("src", 0x1000, 1, 64)
    builder.op(MTE2, "TLOAD", [gm(0)], [src], line=1)
    root = builder.op(V, "TSORT32", line=2)
    builder.op(V, "vbitsort", [{"start": 0x1000}], [{"start": 0x2000}], line=2, parent=root)
    found = only(builder)
    assert found.places[0].what == "PIPE_V read of src by TSORT32"
    assert "the step vbitsort of TSORT32 did it" in found.notes


def test_steps_of_one_instruction_without_order_are_the_library_s_fault() -> None:
    builder = Builder()
    root = builder.op(V, "TSORT32", line=2)
    builder.op(V, "copy", [0x1000], [0x3000], line=2, parent=root)
    builder.op(V, "vbitsort", [0x3000], [0x2000], line=2, parent=root)
    found = only(builder)
    assert (found.code, found.severity) == ("R004", Severity.WARNING)
    twin = Builder()
    root = twin.op(V, "TSORT32", line=2)
    twin.op(V, "copy", [0x1000], [0x3000], line=2, parent=root)
    twin.barrier(V, line=2, parent=root)
    twin.op(V, "vbitsort", [0x3000], [0x2000], line=2, parent=root)
    assert twin.run() == []


def test_no_call_can_stand_inside_a_vector_function() -> None:
    builder = Builder()
    builder.op(MTE2, "copy", writes=[0], line=20)
    builder.row(V, Kind.VF_BEGIN, "vf", line=1)
    builder.op(V, "vlds", [0], line=2)
    builder.op(V, "vsts", [], [512], line=3)
    builder.row(V, Kind.VF_END, "vf", line=1)
    builder.op(MTE3, "copy", [512], [gm(0)], line=30)
    load, store = builder.run("a5")
    assert load.mend.endswith("before the call of the vector function of line 2.")
    assert "after the call of the vector function of line 3 and" in store.mend
    twin = Builder()
    twin.row(V, Kind.VF_BEGIN, "vf")
    twin.op(V, "vsts", [], [0])
    twin.op(V, "vlds", [0])
    twin.row(V, Kind.VF_END, "vf")
    assert twin.run("a5") == []


def test_rows_without_a_site_are_told_by_name() -> None:
    builder = Builder()
    builder.op(MTE2, "load", writes=[0], line=0)
    builder.op(V, "add", [0], line=0)
    found = only(builder)
    assert found.places[0].site is None
    assert "after load and" in found.mend


def test_a_long_trace_is_checked_compiled_and_says_so_once() -> None:
    builder = Builder()
    for _ in range(2400):
        builder.op(MTE2, "load", writes=[0], line=1)
        builder.op(V, "add", [0], line=2)
    context = builder.context()
    assert context.compiled
    found = builder.run(notice=lambda text: None)
    assert {(d.code, d.count) for d in found} == {("R001", 2400), ("R002", 2399)} | {
        (d.code, d.count) for d in found if d.code == "R003"
    }


def test_a_table_at_an_odd_address() -> None:
    builder = Builder()
    add_kernel(builder, load_flag=False)
    trace = builder.trace()
    moved = np.frombuffer(b"\0" + trace.accesses.tobytes(), np.uint8)[1:].view(trace.accesses.dtype)
    shifted = Trace(trace.rows, moved, trace.masks, trace.notes)
    profile = profiles.find("a2a3")
    assert [d.code for d in run(shifted, profile)] == ["R001"]
    context = builder.context(compile=True)
    context.trace = shifted
    assert hazards(context).tally[0] == 2


# Random programs: with enough synchronisation silent, with one edge less exactly that one


@settings(max_examples=60, deadline=None)
@given(ops=programs(size=12), profile=st.sampled_from(profiles.NAMES))
def test_random_programs_with_enough_synchronisation_are_silent(ops: list[Op], profile: str) -> None:
    safe = synchronised(ops, profiles.load(profile).ordered_pipes)
    assert [d.headline for d in build(safe).run(profile)] == []


@settings(max_examples=80, deadline=None)
@given(ops=programs(size=12), choice=st.integers(0, 1000))
def test_random_programs_with_one_edge_less_are_told_of_that_edge(ops: list[Op], choice: int) -> None:
    ordered = profiles.load("a2a3").ordered_pipes
    safe = synchronised(ops, ordered)
    inserted = [i for i, op in enumerate(safe) if (op.kind == SET and op.event == 7) or op.kind == BARRIER]
    assume(inserted)
    gone = inserted[choice % len(inserted)]
    removed = safe[gone]
    racy = safe[:gone] + safe[gone + (2 if removed.kind == SET else 1) :]
    races = Reference(racy, ordered).races()
    found = build(racy).run("a2a3")
    assert bool(found) == bool(races)
    assert all(d.code in ("R001", "R002", "R003") for d in found)
    pairs = {(racy[i].pipe, racy[j].pipe) for _, j, i in races}
    if pairs == {(removed.pipe, removed.pipe2)}:  # else the edge also was part of a longer way
        assert f"_flag({pipe_name(removed.pipe)}, {pipe_name(removed.pipe2)}, " in found[0].mend
    elif pairs == {(removed.pipe, removed.pipe)}:
        assert f"pipe_barrier({pipe_name(removed.pipe)})" in found[0].mend


@pytest.mark.parametrize("profile", profiles.NAMES)
@settings(max_examples=40, deadline=None)
@given(block=blocks(), choice=st.integers(0, 1000))
def test_kernels_with_loops_and_branches_on_two_cores(profile: str, block: Block, choice: int) -> None:
    """Silent with sufficient synchronisation; without one edge that nothing else implies, exactly that is told."""
    ordered = profiles.load(profile).ordered_pipes
    edges = needed_edges(block, ordered)
    assert build_block(block, edges).run(profile) == []
    assume(edges)
    gone = sorted(edges)[choice % len(edges)]
    races = block_races(block, edges - {gone}, ordered)
    found = build_block(block, edges - {gone}).run(profile)
    assert {(d.code, d.places[0].site.line) for d in found if d.places[0].site} <= {
        ({"RAW": "R001", "WAR": "R002", "WAW": "R003"}[kind], line) for kind, (line, _) in races
    }
    if {edge for _, edge in races} != {gone}:  # it also was part of a longer way
        assert found
        return
    (only_one,) = found
    line, source = gone
    target = int(_pipe_of(block, line))
    call = "pipe_barrier(" if source == target else "wait_flag("
    names = pipe_name(source) if source == target else f"{pipe_name(source)}, {pipe_name(target)}"
    assert f"{call}{names}" in only_one.mend
    assert f"before line {line}." in only_one.mend


def _pipe_of(block: Block, line: int) -> int:
    for part in block.body:
        if isinstance(part, Block):
            if (pipe := _pipe_of(part, line)) >= 0:
                return pipe
        elif part.line == line:
            return part.op.pipe
    return -1


# A kernel with two buffers: each call taken away in turn is told, and told once


def pipeline(skip: int = 0, turns: int = 5) -> Builder:
    """Load, add, store over two pairs of buffers, with flags both ways; without the call of line ``skip``."""
    builder = Builder()
    builder.launch(1, "pipeline")
    x = [builder.tile(f"x{p}", 0x4000 * p, 16, 64) for p in range(2)]
    y = [builder.tile(f"y{p}", 0x4000 * p + 0x2000, 16, 64) for p in range(2)]

    def call(line: int, what: Callable[..., int], source: int, target: int, event: int) -> None:
        if line != skip:
            what(source, target, event, line=line)

    for p in range(2):
        call(1 + p, builder.set, V, MTE2, p)
        call(3 + p, builder.set, MTE3, V, p)
    for turn in range(turns):
        p = turn % 2
        base = 10 + 20 * p
        call(base, builder.wait, V, MTE2, p)
        builder.op(MTE2, "TLOAD", [gm(4096 * turn, 4096)], [x[p]], line=base + 1)
        call(base + 2, builder.set, MTE2, V, p)
        call(base + 3, builder.wait, MTE2, V, p)
        call(base + 4, builder.wait, MTE3, V, p)
        builder.op(V, "TADD", [x[p], x[p]], [y[p]], line=base + 5)
        call(base + 6, builder.set, V, MTE2, p)
        call(base + 7, builder.set, V, MTE3, p)
        call(base + 8, builder.wait, V, MTE3, p)
        builder.op(MTE3, "TSTORE", [y[p]], [gm(0x100000 + 4096 * turn, 4096)], line=base + 9)
        call(base + 10, builder.set, MTE3, V, p)
    for p in range(2):
        call(51 + p, builder.wait, V, MTE2, p)
        call(53 + p, builder.wait, MTE3, V, p)
    builder.end(1)
    return builder


CALLS = [1, 2, 3, 4, *(base + i for base in (10, 30) for i in (0, 2, 3, 4, 6, 7, 8, 10)), 51, 52, 53, 54]


def test_the_pipeline_is_silent() -> None:
    assert pipeline().run() == []
    assert pipeline(turns=400).run() == []


@pytest.mark.parametrize("line", CALLS)
def test_each_call_of_the_pipeline_is_missed(line: int) -> None:
    whole, without = pipeline().trace(), pipeline(line)
    rows = whole.rows[[s == line for s in _lines(whole)]]
    row = rows[0]
    found = only(without)
    pipe, other, event = int(row["pipe"]), int(row["pipe2"]), int(row["arg"])
    source, target = (pipe, other) if row["kind"] == 1 else (other, pipe)
    name = "set_flag" if row["kind"] == 1 else "wait_flag"
    assert f"{name}({pipe_name(source)}, {pipe_name(target)}, EVENT_ID{event})" in found.mend


def _lines(trace: Trace) -> list[int]:
    noted = [0, *(data["line"] for data in trace.noted("site"))]
    return [noted[site] for site in trace.rows["site"].tolist()]


# Races of public bug reports, rebuilt


def test_scalar_loop_then_vector() -> None:
    """PTOAS#735: TCI without tmp fills a tile on the scalar pipe, TMULS reads it."""
    racy, mended = Builder(), Builder()
    for builder in (racy, mended):
        t = builder.tile("t", 0, 1, 64, "i32")
        builder.op(S, "TCI", [], [t], line=1)
        if builder is mended:
            builder.sync(S, V)
        builder.op(V, "TMULS", [t], [builder.tile("d", 4096, 1, 64, "i32")], line=3)
    found = only(racy)
    assert found.code == "R001"
    assert "set_flag(PIPE_S, PIPE_V, EVENT_ID0) after line 1" in found.mend
    assert mended.run() == []


def test_a_flag_for_the_wrong_pipe() -> None:
    """PTOAS#1532: TCI with tmp runs on V, TSTORE waits for S."""

    def kernel(source: int) -> Builder:
        builder = Builder()
        t = builder.tile("t", 0, 1, 192, "i32")
        root = builder.op(V, "TCI", line=1)
        builder.op(V, "vadds", [4096], [t], line=1, parent=root)
        builder.set(source, MTE3, 0, line=2)
        builder.wait(source, MTE3, 0, line=3)
        builder.op(MTE3, "TSTORE", [t], [gm(0, 768)], line=4)
        return builder

    found = only(kernel(S))
    assert found.code == "R001"
    assert "set_flag(PIPE_V, PIPE_MTE3, EVENT_ID0)" in found.mend
    assert any("waits for PIPE_S only" in note for note in found.notes)
    assert kernel(V).run() == []


@pytest.mark.parametrize("n", [1, 2])
def test_a_wait_in_a_loop_that_makes_no_turn(n: int) -> None:
    """PTOAS#533: the wait for the loads stands in `for i in 1..n`."""
    builder = Builder()
    places = (("a", 6304, 1024), ("b", 10400, 8), ("c", 10432, 8))
    a, b, c = (builder.tile(name, at, 1, size) for name, at, size in places)
    for line, tile in enumerate((a, b, c), start=1):
        builder.op(MTE2, "TLOAD", [gm(8192 * line, tile.nbytes)], [tile], line=line)
    builder.set(MTE2, V, 0, line=4)
    for _ in range(1, n):
        builder.wait(MTE2, V, 0, line=6)
    builder.op(V, "TROWEXPANDDIV", [a, b], [builder.tile("d", 20480, 1, 1024)], line=8)
    if n == 2:
        assert builder.run() == []
        return
    found = only(builder)
    assert found.code == "R001"
    assert found.mend == "Add wait_flag(PIPE_MTE2, PIPE_V, EVENT_ID0) before line 8."


@pytest.mark.parametrize("n", [0, 1])
@pytest.mark.parametrize("profile", ["a2a3", "a5"])
def test_a_barrier_in_a_branch_not_taken(n: int, profile: str) -> None:
    """tilelang-ascend#1824: fill(a); if n > 0 { fill(b); barrier; add(c) }; add(d, a, a)."""
    builder = Builder()
    a, b, c, d = (builder.tile(name, 256 * i) for i, name in enumerate("abcd"))
    builder.op(V, "fill", [], [a], line=1)
    if n > 0:
        builder.op(V, "fill", [], [b], line=3)
        builder.barrier(V, line=4)
        builder.op(V, "add", [b, b], [c], line=5)
    builder.op(V, "add", [a, a], [d], line=7)
    if n > 0 or profile == "a5":
        assert builder.run(profile) == []
    else:
        assert only(builder).mend == "Add pipe_barrier(PIPE_V) before line 7."


def test_a_fill_with_an_empty_mask_touches_nothing() -> None:
    """pto-isa#291: an in-place TFILLPAD of a full tile that ends at the end of UB."""
    builder = Builder()
    t = builder.tile("t", 0x20000, 128, 128)
    root = builder.op(V, "TFILLPAD", line=1)
    builder.op(V, "fill", [], [{"start": 0x30000, "mask": [0] * 256}], line=1, parent=root)
    assert t.address + t.nbytes == 0x30000
    assert builder.run() == []


@pytest.mark.parametrize("flag", [False, True])
def test_a_buffer_loaded_again_while_it_is_stored(flag: bool) -> None:
    """PTOAS#706: TSTORE reads a tile, the next load overwrites it."""
    builder = Builder()
    t = builder.tile("t", 0, 1, 64)
    builder.op(MTE3, "TSTORE", [t], [gm(0)], line=1)
    if flag:
        builder.sync(MTE3, MTE2)
    builder.op(MTE2, "TLOAD", [gm(4096)], [t], line=2)
    if flag:
        assert builder.run() == []
    else:
        found = only(builder)
        assert found.code == "R002"
        assert "set_flag(PIPE_MTE3, PIPE_MTE2, EVENT_ID0)" in found.mend


def test_a_barrier_on_all_pipes_ends_every_race() -> None:
    builder = Builder()
    add_kernel(builder, load_flag=False, store_flag=False)
    assert len(builder.run()) == 2
    twin = Builder()
    for pipe, reads, writes in ((MTE2, [], [0]), (V, [0], [512]), (MTE3, [512], [])):
        twin.op(pipe, "op", reads, writes)
        twin.barrier(ALL)
    assert twin.run() == []


@pytest.mark.parametrize(("second", "codes"), [(0xFE0, ["R003"]), (0x1000, [])])
def test_tiles_across_each_other_are_one_finding(second: int, codes: list[str]) -> None:
    """Two loads meet in the block that the tiles share: what helps is to move one, not a barrier."""
    builder = Builder()
    a, b = builder.tile("a", 0, 16, 64), builder.tile("b", second, 16, 64)
    builder.op(MTE2, "TLOAD", [gm(0, 4096)], [a], line=1)
    builder.op(MTE2, "TLOAD", [gm(8192, 4096)], [b], line=2)
    builder.sync(MTE2, V)
    builder.op(V, "TADD", [a, b], [0x8000], line=3)
    found = builder.run()
    assert [d.code for d in found] == codes
    if found:
        assert found[0].mend.startswith("Leave the two apart: the first ends at 0x1000. If the memory is meant")
        assert "a 16x64 f32 at UB 0x0 and b 16x64 f32 at UB 0xfe0 lie across each other" in found[0].notes


@pytest.mark.parametrize(("length", "codes"), [(512, ["R003"]), (256, [])])
def test_a_copy_beyond_its_array_is_one_finding(length: int, codes: list[str]) -> None:
    builder = Builder()
    builder.launch(1)
    for name, start in (("x", 0), ("y", 256)):
        builder.note("local_array", space=int(Space.UB), start=start, size=256, dtype="f32", name=name, launch=1)
    for line, start in enumerate((0, 256), start=1):
        size = length if line == 1 else 256
        builder.op(MTE2, "copy", [gm(8192 * line, size)], [{"start": start, "length": size}], line=line)
    builder.end(1)
    found = builder.run()
    assert [d.code for d in found] == codes
    if found:
        assert "these bytes are beyond x, which ends at 0x100" in found[0].notes
        assert found[0].mend.startswith("Touch less of x, or make it larger.")


def test_one_line_without_columns_tells_no_loop() -> None:
    builder = Builder()
    t = builder.tile("t", 0, 1, 64)
    builder.op(MTE2, "TLOAD", [gm(0)], [t], line=1)
    builder.op(V, "TADD", [t], [512], line=1)
    assert not any("loop" in note for note in only(builder).notes)
