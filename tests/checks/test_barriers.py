"""Stores and loads of vector registers that meet in UB: which barrier orders which, and what needs none."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ascsim.checks import barriers, clocks
from ascsim.checks.barriers import unbarred
from ascsim.diagnostics import Diagnostic
from ascsim.machine.trace import Kind
from ascsim.machine.words import MemoryBarrier
from checks.builder import Builder, V, parts

R1, R2, R3 = 0x102, 0x202, 0x302


def load(builder: Builder, register: int, start: int = 0, length: int = 256, line: int | None = None) -> None:
    builder.op(V, "asc_loadalign", [{"start": start, "length": length, "unused": register}], [], line)


def store(builder: Builder, register: int, start: int = 0, line: int | None = None, **more: Any) -> None:
    builder.op(V, "asc_storealign", [], [{"start": start, "unused": register, **more}], line)


def bar(builder: Builder, mode: MemoryBarrier, line: int | None = None) -> None:
    builder.row(V, Kind.MEM_BAR, "asc_mem_bar", (), line, arg=int(mode))


def found(builder: Builder) -> list[Diagnostic]:
    return builder.run("a5", checks=[barriers.check])


def codes(builder: Builder) -> list[str]:
    return [d.code for d in found(builder)]


@pytest.mark.parametrize("mode", MemoryBarrier)
def test_which_barrier_orders_a_load_behind_a_store(mode: MemoryBarrier) -> None:
    builder = Builder()
    store(builder, R1)
    bar(builder, mode)
    load(builder, R2)
    assert codes(builder) == ([] if mode in (MemoryBarrier.VV_ALL, MemoryBarrier.VST_VLD) else ["R005"])


@pytest.mark.parametrize("mode", MemoryBarrier)
def test_which_barrier_orders_a_store_behind_a_store(mode: MemoryBarrier) -> None:
    builder = Builder()
    store(builder, R1)
    bar(builder, mode)
    store(builder, R2)
    assert codes(builder) == ([] if mode in (MemoryBarrier.VV_ALL, MemoryBarrier.VST_VST) else ["R006"])


def test_what_the_finding_says() -> None:
    builder = Builder()
    builder.note("dialect", name="c_api")
    store(builder, R1, 128, line=3)
    bar(builder, MemoryBarrier.VST_LD, line=4)
    load(builder, R2, 0, line=5)
    (only,) = found(builder)
    assert only.headline == "Potential RAW hazard detected at UB, inside a vector function"
    assert [place.what for place in only.places] == ["asc_loadalign loads", "asc_storealign stores"]
    assert only.notes == (
        "both touch UB 0x80 to 0xff (128 bytes)", "the barrier VST_LD at line 4 does not order the two",
    )  # fmt: skip
    assert only.mend == "Add asc_mem_bar(VST_VLD) before line 5."


def test_one_register_keeps_its_order() -> None:
    builder = Builder()
    store(builder, R1)
    load(builder, R1)
    store(builder, R1)
    assert codes(builder) == []


def test_other_bytes_are_no_conflict() -> None:
    builder = Builder()
    store(builder, R1, 0, mask=[i % 2 for i in range(256)])
    load(builder, R2, 256)
    store(builder, R3, 0, mask=[1 - i % 2 for i in range(256)])
    assert codes(builder) == []


def test_the_end_of_the_function_and_flags_order_everything() -> None:
    for kind in (Kind.VF_END, Kind.VF_BEGIN, Kind.BARRIER, Kind.WAIT_FLAG, Kind.LAUNCH_END):
        builder = Builder()
        store(builder, R1)
        builder.row(V, kind, "edge", (), 0)
        load(builder, R2)
        assert codes(builder) == []


def test_a_loop_is_one_finding_and_what_follows_is_none() -> None:
    builder = Builder()
    for _ in range(1000):
        load(builder, R1, line=1)
        store(builder, R2, line=2)
    (only,) = found(builder)
    assert (only.code, only.count) == ("R005", 999)


def test_a_store_behind_a_load_that_waited_is_behind_what_it_waited_for() -> None:
    builder = Builder()
    store(builder, R1)
    bar(builder, MemoryBarrier.VST_VLD)
    load(builder, R2)
    store(builder, R3)
    assert codes(builder) == []


def test_tile_instructions_and_unknown_registers_are_left_to_others() -> None:
    builder = Builder()
    builder.op(V, "TADD", [0], [0x1000])
    load(builder, R1, 0x1000)
    builder.op(V, "asc_storeunalign", [], [{"start": 0, "unused": 0}])
    load(builder, R1, 0)
    assert codes(builder) == []


@st.composite
def functions(draw: st.DrawFn) -> list[tuple]:
    """A vector function: stores, loads and barriers in a small part of UB."""
    access = st.tuples(
        st.sampled_from(("load", "store")), st.integers(0, 6).map(lambda n: 64 * n), st.sampled_from((32, 64, 256)),
        st.sampled_from((R1, R2, R3)),
    )  # fmt: skip
    modes = st.tuples(st.just("bar"), st.sampled_from(list(MemoryBarrier)))
    return draw(st.lists(st.one_of(access, access, access, modes), min_size=2, max_size=10))


def naive(ops: list[tuple]) -> list[tuple[str, int]]:
    """(kind, later op) of every conflict with the loop's own repairs, by comparing all pairs."""
    hits: list[tuple[str, int]] = []
    for_loads, for_stores = -1, -1  # what is before these is done
    for j, op in enumerate(ops):
        if op[0] == "bar":
            for_loads = j if op[1] in (0, 1) else for_loads
            for_stores = j if op[1] in (0, 3) else for_stores
            continue
        done = for_loads if op[0] == "load" else for_stores
        bytes_ = set(range(op[1], op[1] + op[2]))
        meets = [
            i for i in range(done + 1, j)
            if ops[i][0] == "store" and ops[i][3] != op[3] and bytes_ & set(range(ops[i][1], ops[i][1] + ops[i][2]))
        ]  # fmt: skip
        if meets:
            hits.append(("RAW" if op[0] == "load" else "WAW", j))
            for_loads = for_stores = j - 1
        if op[0] == "load":
            for_stores = max(for_stores, for_loads)
    return hits


def build(ops: list[tuple]) -> Builder:
    builder = Builder()
    for op in ops:
        if op[0] == "bar":
            bar(builder, op[1])
        elif op[0] == "load":
            load(builder, op[3], op[1], op[2])
        else:
            store(builder, op[3], op[1], length=op[2])
    return builder


@settings(max_examples=200, deadline=None)
@given(ops=functions())
def test_agrees_with_all_pairs_compared(ops: list[tuple]) -> None:
    context = build(ops).context("a5", compile=False)
    hits = unbarred(context)
    entries = hits.table[: hits.tally[0]]
    rows = context.trace.rows_of(entries["later"]).tolist()
    kinds = {clocks.RAW: "RAW", clocks.WAW: "WAW"}
    assert list(zip((kinds[int(k)] for k in entries["kind"]), rows, strict=True)) == naive(ops)


@settings(max_examples=30, deadline=None)
@given(ops=functions(), size=st.integers(1, 8))
def test_compiled_and_plain_agree_and_so_do_parts(ops: list[tuple], size: int) -> None:
    plain, compiled = (unbarred(build(ops).context("a5", compile=compile)) for compile in (False, True))
    with parts(size):
        parted = unbarred(build(ops).context("a5", compile=False))
    wanted = plain.table[: plain.tally[0]].tolist()
    assert [each.table[: each.tally[0]].tolist() for each in (compiled, parted)] == [wanted, wanted]
