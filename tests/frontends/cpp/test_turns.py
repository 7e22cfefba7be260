"""Loops of vector functions: a row for the turns of each call, and what the checks and the timing make of it."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ascsim import profiles
from ascsim.checks import Context, clocks, initialisation, noted_sites, races
from ascsim.checks.barriers import unbarred
from ascsim.machine.trace import FOLDED, ROW, Kind, Trace
from ascsim.machine.words import Pipe
from ascsim.timing import schedule
from checks.builder import parts
from frontends.cpp.turns import Call, barrier, calls_of, compute, load, masked, record, store, unfolded

CHIP = profiles.load("a5")


def loop(turns: int, *body: tuple[Call, int]) -> list[Call]:
    """The calls of a loop; each of the body with what its start moves by."""
    return [
        Call(c.what, c.site, c.start + turn * step, c.length, c.vector) for turn in range(turns) for c, step in body
    ]


def copy(turns: int, source: int = 0, target: int = 65536, step: int = 256) -> list[Call]:
    return loop(turns, (load(10, source), step), (compute(11), 0), (store(12, target), step))


def test_a_loop_leaves_the_rows_of_its_body():
    trace = record(copy(200))
    assert len(trace.rows) == 4 and len(trace.accesses) == 2
    body = trace.rows[1:]
    assert body["arg"].tolist() == [200, 200, 200] and (body["flags"] & FOLDED).all()
    assert body["body"].tolist() == [3, 0, 0]
    assert trace.calls.tolist() == [1, 200, 200, 200]
    shapes = trace.shapes[trace.accesses["shape"]]
    assert shapes["n1"].tolist() == [200, 200] and shapes["s1"].tolist() == [256, 256]
    assert trace.accesses["start"].tolist() == [0, 65536]


def test_what_stays_in_one_place_has_one_burst():
    trace = record(loop(50, (load(10, 0), 0), (store(11, 4096), 256)))
    assert trace.calls.tolist() == [1, 50, 50]
    assert trace.accesses["shape"][0] == 0 and trace.shapes["n1"][trace.accesses["shape"][1]] == 50


def test_a_last_turn_may_end_early():
    trace = record(copy(20)[:-1])
    assert trace.calls.tolist() == [1, 20, 20, 19]
    assert calls_of(unfolded(trace)) == copy(20)[:-1]


def test_an_inner_loop_is_folded_each_time():
    calls = [call for outer in range(4) for call in (compute(1), *copy(10, outer * 4096), compute(2))]
    trace = record(calls)
    assert calls_of(unfolded(trace)) == calls
    assert (trace.rows["arg"] == 10).sum() == 12


def test_a_jump_begins_anew():
    calls = [call for outer in range(3) for call in copy(16)]
    trace = record(calls)
    assert calls_of(unfolded(trace)) == calls
    assert trace.calls.max() == 16


def test_loops_alike_share_their_shapes():
    trace = record([call for outer in range(5) for call in (*copy(16, outer * 4096), compute(1))] + [compute(2)])
    assert (trace.calls == 16).sum() == 15 and len(trace.shapes) == 2
    assert set(trace.accesses["shape"].tolist()) == {1}


@pytest.mark.parametrize(
    "calls",
    [
        loop(20, (load(1, 0), 256), (store(2, 0), 256)),  # in place
        loop(20, (load(1, 0), 0), (store(2, 0), 0)),  # a later turn of the load sees what an earlier store left
        loop(20, (load(1, 0), 256), (store(2, 256), 256)),  # and here that of the turn before
        loop(20, (load(1, 0), 256), (store(2, 512), 256)),
        loop(20, (load(1, 256), 256), (store(2, 0), 256)),  # stores follow what was loaded
        loop(20, (load(1, 8192), -256), (store(2, 8192 - 1024), -256)),
        loop(20, (load(1, 0), 256), (store(2, 4096), 128)),  # at different speeds: they meet later
    ],
)
def test_no_row_is_folded_over_what_it_depends_on(calls: list[Call]):
    trace = record(calls)
    assert calls_of(unfolded(trace)) == calls
    assert _order_of_touches(trace) == _order_of_touches(unfolded(trace))


def _order_of_touches(trace: Trace) -> dict[int, list[tuple[int, bool]]]:
    """For each block of 32 bytes the rows (by site) that read or write it, in order; reads among themselves have none."""
    touched: dict[int, list[tuple[int, bool]]] = {}
    for number, access in enumerate(trace.accesses):
        site = int(trace.rows["site"][trace.rows_of(number)])
        shape = trace.shapes[access["shape"]]
        for turn in range(int(shape["n1"])):
            start = int(access["start"]) + turn * int(shape["s1"])
            for block in range(start // 32, (start + int(access["length"]) - 1) // 32 + 1):
                touched.setdefault(block, []).append((site, access["mode"] == 2))
    return {block: _without_order_of_reads(entries) for block, entries in touched.items()}


def _without_order_of_reads(entries: list[tuple[int, bool]]) -> list[tuple[int, bool]]:
    kept: list[tuple[int, bool]] = []
    for entry in entries:
        at = len(kept)
        while at and not entry[1] and not kept[at - 1][1] and kept[at - 1] > entry:
            at -= 1
        if not (at and kept[at - 1] == entry):  # the turns of one row
            kept.insert(at, entry)
    return kept


def test_in_place_and_behind_is_folded():
    assert record(loop(20, (load(1, 0), 256), (store(2, 0), 256))).calls.tolist() == [1, 20, 20]
    assert record(loop(20, (load(1, 256), 256), (store(2, 0), 256))).calls.tolist() == [1, 20, 20]
    ahead = record(
        loop(20, (load(1, 0), 256), (store(2, 2048), 256))
    )  # the eighth turn loads what the first one stored
    assert ahead.calls.tolist() == [1, 8, 8, 8, 8, 4, 4]


@pytest.mark.parametrize(
    "calls",
    [
        loop(20, (load(1, 0), 256), (masked(2, 65536), 256)),
        loop(20, (load(1, 0), 256), (barrier(2), 0), (store(3, 65536), 256)),
        loop(20, (load(1, 0), 16), (compute(2), 0)),  # misaligned in every other turn
    ],
)
def test_some_rows_are_left_alone(calls: list[Call]):
    trace = record(calls)
    assert len(trace.rows) == 1 + len(calls) and not (trace.rows["flags"] & FOLDED).any()


def test_a_body_begins_with_its_loads():
    trace = record(loop(20, (store(1, 65536), 256), (load(2, 0), 256)))
    assert trace.rows["site"][trace.calls > 1].tolist() == [2, 1]


calls_ = st.builds(
    Call,
    st.sampled_from([0, 1, 1, 1, 2, 2, 3, 4]),
    st.integers(1, 5),
    st.integers(0, 24).map(lambda n: n * 128),
    st.sampled_from([32, 128, 256]),
    st.sampled_from([2, 3, 6]),
)
bodies = st.lists(st.tuples(calls_, st.sampled_from([0, 32, 128, 256, 512, -128, -256, 48])), min_size=1, max_size=5)
loops = st.tuples(st.integers(1, 12), bodies, st.integers(0, 3))
programs = st.lists(loops, min_size=1, max_size=3)


def told(program: list[tuple[int, list[tuple[Call, int]], int]]) -> list[Call]:
    """The calls of some loops one after the other, the last of each ending in the middle of a turn."""
    calls = []
    for number, (turns, body, cut) in enumerate(program):
        here = [
            (
                Call(
                    c.what, 100 * number + 10 * i + c.site, 8192 + c.start, c.length * (c.what in (1, 2, 3)), c.vector
                ),
                step,
            )
            for i, (c, step) in enumerate(body)
        ]
        part = loop(turns, *here)
        calls += part[: len(part) - cut] if cut < len(part) else part
    return [Call(3, c.site, c.start, 256, c.vector) if c.what == 3 else _plain(c) for c in calls]


def _plain(call: Call) -> Call:
    return call if call.what in (1, 2) else Call(call.what, call.site)


@settings(deadline=None, max_examples=300)
@given(programs)
def test_all_calls_are_there_in_their_order(program):
    calls = told(program)
    trace = record(calls)
    whole = unfolded(trace)
    assert calls_of(whole) == calls
    assert _order_of_touches(trace) == _order_of_touches(whole)


def _between(trace: Trace, edges: list[tuple[Pipe, int, int, int]]) -> Trace:
    """The vector function with an instruction of another pipe before it and one behind it."""
    ends = np.zeros(1, ROW)
    ends["kind"], ends["pipe"], ends["parent"] = Kind.VF_END, Pipe.V, -1
    other = np.zeros(2, ROW)
    other["pipe"], other["parent"], other["n_access"] = [edge[0] for edge in edges], -1, 1
    other["mnemonic"], other["site"] = 9, [9001, 9002]
    touched = np.zeros(2, trace.accesses.dtype)
    touched["space"] = 1
    for name, column in zip(("mode", "start", "length"), zip(*(edge[1:] for edge in edges), strict=True), strict=True):
        touched[name] = column
    rows = np.concatenate((other[:1], trace.rows, ends, other[1:]))
    accesses = np.concatenate((touched[:1], trace.accesses, touched[1:]))
    return Trace(rows, accesses, trace.masks, trace.notes, trace.shapes)


edges_ = st.tuples(
    st.sampled_from([Pipe.MTE2, Pipe.MTE3]), st.sampled_from([1, 2]), st.integers(0, 400), st.just(64)
).map(lambda e: (e[0], e[1], e[2] * 32, e[3]))


@settings(deadline=None, max_examples=200)
@given(programs, st.lists(edges_, min_size=2, max_size=2), st.booleans())
def test_checks_say_the_same_of_both(program, edges, compile):
    trace = _between(record(told(program)), edges)
    one, other = (Context(t, CHIP, noted_sites(t), compile=compile and None) for t in (trace, unfolded(trace)))
    assert _sites(races.hazards(one)) == _sites(races.hazards(other))
    # Which of several calls of a turn is the first without a barrier may differ, not whether there is one.
    assert bool(_sites(unbarred(one))) == bool(_sites(unbarred(other)))
    reads = [
        {int(t.rows["site"][t.rows_of(n)]) for n in initialisation.unwritten_reads(context)}
        for t, context in ((trace, one), (other.trace, other))
    ]
    assert reads[0] == reads[1]
    for mine, theirs in zip(one.suspects, other.suspects, strict=True):
        assert {int(trace.rows["site"][trace.rows_of(n)]) for n in mine} == {
            int(other.trace.rows["site"][other.trace.rows_of(n)]) for n in theirs
        }


def _sites(hits: clocks.Hits) -> set[tuple[int, ...]]:
    table = hits.table[: int(hits.tally[0])]
    return {tuple(entry) for entry in table[["kind", "later_site", "earlier_site"]].tolist()}


@settings(deadline=None, max_examples=100)
@given(programs)
def test_the_time_is_the_same(program):
    trace = _between(record(told(program)), [(Pipe.MTE2, 2, 0, 64), (Pipe.MTE3, 1, 0, 64)])
    whole = unfolded(trace)
    mine, theirs = schedule(trace, CHIP), schedule(whole, CHIP)
    assert mine.total == theirs.total
    with parts(2):
        assert schedule(trace, CHIP).total == theirs.total
    assert mine.worked.tolist() == theirs.worked.tolist()
    busy = [int((plan.cycles.busy * plan.forms.count).sum()) for plan in (mine, theirs)]
    length = [int(plan.length[plan.track >= len(Pipe)].sum()) for plan in (mine, theirs)]
    assert (busy[0], length[0]) == (busy[1], length[1])
