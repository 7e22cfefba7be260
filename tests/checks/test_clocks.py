"""The happens-before loop against a naive reference, and its compiled twin against itself."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ascsim import profiles
from ascsim.checks import clocks
from ascsim.checks.races import hazards
from ascsim.machine.native import listed
from ascsim.machine.words import Pipe, Space
from checks.builder import MTE2, MTE3, Builder, S, V, parts
from checks.programs import accesses, build, crowded, programs, synchronised
from checks.reference import Access, Op, Reference

NAMES = {clocks.RAW: "RAW", clocks.WAR: "WAR", clocks.WAW: "WAW"}


def found(builder: Builder, profile: str, repair: bool = True, compile: bool = False) -> list[tuple[str, int, int]]:
    """(kind, later row, earlier row) of the hits, in the order in which they were found."""
    context = builder.context(profile, compile)
    hits = hazards(context, repair)
    entries = hits.table[: hits.tally[0]]
    later, earlier = (context.trace.rows_of(entries[side]).tolist() for side in ("later", "earlier"))
    return list(zip((NAMES[int(kind)] for kind in entries["kind"]), later, earlier, strict=True))


@pytest.mark.parametrize("profile", profiles.NAMES)
@settings(max_examples=100, deadline=None)
@given(ops=programs())
def test_agrees_with_the_reference(profile: str, ops: list[Op]) -> None:
    wanted = Reference(ops, profiles.load(profile).ordered_pipes).newest()
    assert set(found(build(ops), profile, repair=False)) == wanted


@pytest.mark.parametrize("profile", ["a2a3", "a5"])
@settings(max_examples=200, deadline=None)
@given(ops=crowded())
def test_agrees_with_the_reference_in_a_crowd(profile: str, ops: list[Op]) -> None:
    wanted = Reference(ops, profiles.load(profile).ordered_pipes).newest()
    assert set(found(build(ops), profile, repair=False)) == wanted


@pytest.mark.parametrize("profile", ["a2a3", "a5"])
@settings(max_examples=100, deadline=None)
@given(ops=programs())
def test_each_finding_is_a_race_and_mending_them_leaves_none(profile: str, ops: list[Op]) -> None:
    ordered = profiles.load(profile).ordered_pipes
    hits = found(build(ops), profile)
    repairs: dict[int, list[int]] = {}
    for row in sorted({later for _, later, _ in hits}):
        mine = {hit for hit in hits if hit[1] == row}
        assert mine <= Reference(ops, ordered, dict(repairs)).races()
        repairs[row] = [earlier for _, _, earlier in mine]
    assert not Reference(ops, ordered, repairs).races()


@pytest.mark.parametrize("profile", ["a2a3", "a5"])
@settings(max_examples=40, deadline=None)
@given(ops=programs(size=12))
def test_enough_synchronisation_is_silent(profile: str, ops: list[Op]) -> None:
    safe = synchronised(ops, profiles.load(profile).ordered_pipes)
    assert found(build(safe), profile) == []


@settings(max_examples=80, deadline=None)
@given(ops=st.one_of(programs(size=24), crowded()), size=st.integers(1, 8))
def test_compiled_and_plain_agree_and_so_do_parts(ops: list[Op], size: int) -> None:
    for repair in (True, False):
        plain = found(build(ops), "a2a3", repair)
        assert found(build(ops), "a2a3", repair, compile=True) == plain
        with parts(size):
            assert found(build(ops), "a2a3", repair) == plain
            assert found(build(ops), "a2a3", repair, compile=True) == plain


def test_compiled_with_no_flag_and_no_access() -> None:
    builder = Builder()
    builder.barrier(V)
    assert found(builder, "a2a3", compile=True) == []


@settings(max_examples=300, deadline=None)
@given(a=accesses(), b=accesses())
def test_share_a_byte(a: Access, b: Access) -> None:
    fields = dict(a.fields) | {"space": Space.UB}
    other = dict(b.fields) | {"space": Space.UB}
    builder = Builder()
    builder.op(V, "op", [fields, other])
    trace = builder.trace()
    (first, second), shapes = listed(trace.accesses), listed(trace.shapes)
    shares = bool(Access(tuple(fields.items()), False).bytes & Access(tuple(other.items()), False).bytes)
    assert clocks.share_a_byte(first, second, shapes, trace.masks) == shares
    assert clocks.share_a_byte(second, first, shapes, trace.masks) == shares


def overlapping(profile: str, source: int, target: int, between: Any = None, kinds: str = "RAW") -> list[Any]:
    """One operand written and read (or as ``kinds`` says) by two pipes with ``between`` in the middle."""
    builder = Builder()
    first = ([], [0]) if kinds in ("RAW", "WAW") else ([0], [])
    then = ([0], []) if kinds == "RAW" else ([], [0])
    builder.op(source, "first", *first)
    if between:
        between(builder)
    builder.op(target, "second", *then)
    return [hit[0] for hit in found(builder, profile)]


@pytest.mark.parametrize("profile", profiles.NAMES)
@pytest.mark.parametrize("kinds", ["RAW", "WAR", "WAW"])
@pytest.mark.parametrize("source", [p for p in Pipe if p != Pipe.ALL])
@pytest.mark.parametrize("target", [p for p in Pipe if p != Pipe.ALL])
def test_every_pair_of_pipes(profile: str, kinds: str, source: Pipe, target: Pipe) -> None:
    kept = source == target and source.name in profiles.load(profile).ordered_pipes
    assert overlapping(profile, source, target, kinds=kinds) == ([] if kept else [kinds])
    barrier = source if source == target else Pipe.ALL
    assert overlapping(profile, source, target, lambda b: b.barrier(barrier), kinds) == []
    if source != target:
        assert overlapping(profile, source, target, lambda b: b.sync(source, target), kinds) == []
        assert overlapping(profile, source, target, lambda b: b.sync(target, source), kinds) == [kinds]
        back = [kinds] if not kept else []
        assert overlapping(profile, source, target, lambda b: b.barrier(source), kinds) == back


def test_a_flag_carries_what_its_pipe_had_waited_for() -> None:
    builder = Builder()
    builder.op(MTE2, "load", writes=[0])
    builder.sync(MTE2, V)
    builder.sync(V, MTE3)
    builder.op(MTE3, "store", [0])
    assert found(builder, "a2a3") == []


def test_a_flag_that_comes_back_orders_its_own_pipe() -> None:
    builder = Builder()
    builder.op(MTE2, "load", writes=[0])
    builder.sync(MTE2, V)
    builder.sync(V, MTE2)
    builder.op(MTE2, "load", writes=[0])
    assert found(builder, "a2a3") == []


def test_a_set_alone_orders_nothing_on_its_own_pipe() -> None:
    builder = Builder()
    builder.op(MTE2, "load", writes=[0])
    builder.sync(MTE2, V)
    builder.op(MTE2, "load", writes=[0])
    assert [hit[0] for hit in found(builder, "a2a3")] == ["WAW"]


def test_what_the_scalar_pipe_waited_for_orders_what_it_issues() -> None:
    builder = Builder()
    builder.op(MTE2, "load", writes=[0])
    builder.sync(MTE2, S)
    builder.op(V, "add", [0])
    assert found(builder, "a2a3") == []


def test_what_the_scalar_pipe_wrote_needs_a_flag() -> None:
    builder = Builder()
    builder.op(S, "store", writes=[0])
    builder.op(S, "store", writes=[512])
    builder.sync(MTE2, S)
    builder.op(V, "add", [0])
    assert [hit[0] for hit in found(builder, "a2a3")] == ["RAW"]


def test_interleaved_rows_that_share_blocks_but_no_byte() -> None:
    rows = {"length": 16, "n1": 8, "s1": 32}
    builder = Builder()
    builder.op(MTE2, "load", writes=[{"start": 0, **rows}])
    builder.op(V, "add", [{"start": 16, **rows}])
    assert found(builder, "a2a3") == []
    builder.op(V, "add", [{"start": 15, **rows}])
    assert [hit[0] for hit in found(builder, "a2a3")] == ["RAW"]


def test_an_older_conflict_is_not_hidden_by_a_newer_access_to_the_block() -> None:
    builder = Builder()
    builder.op(MTE2, "old", writes=[{"start": 0, "length": 8}])
    builder.op(MTE2, "new", writes=[{"start": 8, "length": 8}])
    builder.op(V, "add", [{"start": 0, "length": 8}])
    assert found(builder, "a2a3") == [("RAW", 2, 0)]


def test_rows_without_operands_hide_nothing() -> None:
    builder = Builder()
    builder.op(V, "old", writes=[{"start": 0, "length": 8}])
    builder.op(MTE2, "load", writes=[1024])
    builder.op(V, "nothing")
    builder.op(V, "new", writes=[{"start": 8, "length": 8}])
    builder.op(MTE3, "store", [{"start": 0, "length": 8}])
    for profile in ("a2a3", "a5"):
        assert found(builder, profile) == [("RAW", 4, 0)]


def test_a_masked_store_touches_its_bytes_only() -> None:
    even = [byte // 4 % 2 == 0 for byte in range(256)]
    odd = [not lane for lane in even]
    builder = Builder()
    builder.op(MTE2, "one", writes=[{"start": 64, "mask": even}])
    builder.op(V, "other", writes=[{"start": 64, "mask": odd}])
    assert found(builder, "a2a3") == []
    builder.op(V, "shifted", writes=[{"start": 68, "mask": odd}])
    assert [hit[0] for hit in found(builder, "a2a3")] == ["WAW"]


def test_launches_do_not_race_and_cores_do_not_share_local_memories() -> None:
    builder = Builder()
    for number in (1, 2):
        for builder.core in (0, 1):
            builder.launch(number, blocks=2)
            builder.op(MTE2, "load", writes=[0])
            builder.end(number)
            builder.op(V, "host", [0])
    assert found(builder, "a2a3") == []


def test_cores_whose_rows_alternate_are_told_apart() -> None:
    builder = Builder()
    for builder.core in (0, 1):
        builder.launch(1, blocks=2)
    for builder.core in (0, 1):
        builder.op(MTE2, "load", writes=[0], line=1)
    for builder.core in (1, 0):
        builder.sync(MTE2, V)
    for builder.core in (0, 1):
        builder.op(V, "add", [0], line=2)
    assert found(builder, "a2a3") == []
    for builder.core in (1, 0):
        builder.op(MTE3, "store", [0], [256], line=3)
    assert [hit[0] for hit in found(builder, "a2a3")] == ["RAW"]


def test_wide_views_of_global_memory() -> None:
    far = 1 << 40
    builder = Builder()
    builder.op(MTE3, "store", writes=[{"space": Space.GM, "start": 0, "length": 32, "n1": 2, "s1": far}])
    builder.op(MTE2, "load", [{"space": Space.GM, "start": 32, "length": 32, "n1": 2, "s1": far}])
    assert found(builder, "a2a3") == []
    builder.op(MTE2, "load", [{"space": Space.GM, "start": far + 16, "length": 1}])
    assert [hit[0] for hit in found(builder, "a2a3")] == ["RAW"]


def test_bytes_far_outside_a_memory_do_no_harm() -> None:
    builder = Builder()
    for pipe in (MTE2, V):
        builder.op(pipe, "op", writes=[{"start": -1000, "length": 64}, {"start": 1 << 40, "length": 64}])
    assert found(builder, "a2a3") == []


def test_a_loop_is_one_entry_with_a_count() -> None:
    builder = Builder()
    for _ in range(50):
        builder.op(MTE2, "load", writes=[0], line=1)
        builder.op(V, "add", [0], line=2)
        builder.barrier(Pipe.ALL, line=3)
    hits = hazards(builder.context("a2a3"))
    assert hits.tally[0] == 1
    assert hits.table[0]["times"] == 50


def test_more_conflicts_than_room() -> None:
    builder = Builder()
    for line in range(1, 5000):
        builder.op(MTE2 if line % 2 else V, "op", writes=[0], line=line)
    hits = hazards(builder.context("a2a3"))
    assert hits.tally[0] == clocks.HITS
    assert hits.tally[0] + hits.tally[1] == 4998


def test_the_budget_of_comparisons_is_kept() -> None:
    builder = Builder()
    for _ in range(20):
        builder.op(MTE2, "load", writes=[{"start": 0, "length": 8}])
    context = builder.context("a2a3")
    hits = clocks.new_hits(budget=5)
    assert hazards(context, hits=hits) is hits
    assert hits.tally[2] == 0
    assert 0 < hits.tally[0] <= 5
