"""Blocks that run ahead in processes of their own: the same trace, results and findings as one after the other."""

from __future__ import annotations

import ctypes
import os
import threading
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import ascsim
from ascsim import Pipe, profiles
from ascsim.frontends.launch import Run, current_launch, launch
from ascsim.isa.tile.table import Coalesce, ScatterAtomicOp
from ascsim.machine import ahead, jobs
from ascsim.machine.ahead import Ahead, meet, merged
from ascsim.machine.late import choose as choose_late
from ascsim.machine.trace import NEVER, ROW, MemorySink, Table, join_known, moved_note, pack_shape

COLUMNS = 16
pytestmark = pytest.mark.skipif(not hasattr(os, "sched_getaffinity"), reason="blocks run ahead on Linux")


@pytest.fixture(autouse=True)
def all_processors_afterwards() -> Iterator[None]:
    yield
    jobs.choose(None)


@pytest.fixture
def taken(monkeypatch: pytest.MonkeyPatch) -> list[bool]:
    """Of each span that came to its end in its turn, whether it was taken."""
    found: list[bool] = []
    take = Ahead._take

    def spy(self: Ahead, span: Any) -> bool:
        found.append(take(self, span))
        return found[-1]

    monkeypatch.setattr(Ahead, "_take", spy)
    return found


def run(function: Any, blocks: int, processors: int, **arrays: np.ndarray) -> tuple[Run, dict[str, np.ndarray]]:
    """Launch, from the first block on with so many processors."""
    given = {name: array.copy() for name, array in arrays.items()}
    jobs.choose(processors, after=0)
    return launch("k", function, profiles.load("a2a3"), blocks, given, is_closed=True), given


def assert_same(function: Any, blocks: int, processors: tuple[int, ...] = (2, 3, 7), **arrays: np.ndarray) -> Run:
    first, expected = run(function, blocks, 1, **arrays)
    for number in processors:
        other, results = run(function, blocks, number, **arrays)
        for table in ("rows", "accesses", "masks", "shapes"):
            assert np.array_equal(getattr(first.trace, table), getattr(other.trace, table)), table
        assert other.trace.notes == first.trace.notes
        assert other.diagnostics == first.diagnostics
        assert all(np.array_equal(results[name], expected[name]) for name in expected)
    return first


def wait(source: Pipe, target: Pipe) -> None:
    ascsim.set_flag(source, target, 0)
    ascsim.wait_flag(source, target, 0)


def copied(x: Any, out: Any, source: int, target: int) -> None:
    tile = ascsim.tile("f32", 1, COLUMNS, at=0)
    ascsim.tload(tile, x[source : source + 1])
    wait(Pipe.MTE2, Pipe.MTE3)
    ascsim.tstore(out[target : target + 1], tile)


def rows(count: int) -> np.ndarray:
    return np.arange(count * COLUMNS, dtype=np.float32).reshape(count, COLUMNS)


def test_blocks_that_do_not_meet(taken: list[bool]) -> None:
    def each_its_row(x: Any, out: Any) -> None:
        block = ascsim.get_block_idx()
        copied(x, out, block, block)

    found = assert_same(each_its_row, 6, x=rows(6), out=np.zeros((6, COLUMNS), np.float32))
    assert found.ok and taken == [True] * 15
    taken.clear()
    run(each_its_row, 6, 1, x=rows(6), out=rows(6))
    assert taken == []  # one processor: nothing runs ahead


def test_a_block_that_reads_what_the_one_before_it_wrote_is_run_again(taken: list[bool]) -> None:
    def chain(x: Any) -> None:
        block = ascsim.get_block_idx()
        copied(x, x, block, block + 1)

    assert_same(chain, 8, x=rows(9))
    assert False in taken


def test_blocks_that_write_the_same_bytes_leave_those_of_the_last(taken: list[bool]) -> None:
    def same(x: Any, out: Any) -> None:
        copied(x, out, ascsim.get_block_idx(), 0)

    found = assert_same(same, 6, x=rows(6), out=np.zeros((1, COLUMNS), np.float32))
    assert "R101" in [d.code for d in found.diagnostics]
    assert taken == [True] * 15


def test_sums_over_blocks_are_added_in_block_order(taken: list[bool]) -> None:
    def add(x: Any, out: Any) -> None:
        block = ascsim.get_block_idx()
        tile = ascsim.tile("f32", 1, COLUMNS, at=0)
        ascsim.tload(tile, x[block : block + 1])
        wait(Pipe.MTE2, Pipe.MTE3)
        ascsim.tstore(out[0:1], tile, atomic=1)

    assert_same(add, 6, x=rows(6) * np.float32(1e7 / 3), out=np.ones((1, COLUMNS), np.float32))
    assert False in taken


@pytest.mark.parametrize("mode", list(Coalesce))
def test_what_is_scattered_and_added_to_a_table_is_read_first(taken: list[bool], mode: Coalesce) -> None:
    def scattered(x: Any, idx: Any, out: Any) -> None:
        block = ascsim.get_block_idx()
        tile, numbers = ascsim.tile("f32", 1, COLUMNS, at=0), ascsim.tile("i32", 1, COLUMNS, at=256)
        if mode == Coalesce.Row:
            numbers = ascsim.tile("i32", 1, 8, at=256, valid=(1, 1))
        ascsim.tload(tile, x[block : block + 1])
        ascsim.tload(numbers, idx[block : block + 1, : numbers.valid_cols])
        wait(Pipe.MTE2, Pipe.V)
        ascsim.mscatter(out, tile, numbers, mode, ScatterAtomicOp.Add)

    numbers = np.zeros((6, COLUMNS), np.int32)
    numbers[:] = np.arange(COLUMNS) * 2 if mode == Coalesce.Elem else 1
    out = np.ones((4, COLUMNS), np.float32)
    assert_same(scattered, 6, x=rows(6) * np.float32(1e7 / 3), idx=numbers, out=out)
    assert (False in taken) == (mode == Coalesce.Row)  # single elements are not worked out


def test_a_block_that_is_refused_ends_the_launch_where_it_would(taken: list[bool]) -> None:
    def stopped(x: Any, out: Any) -> None:
        block = ascsim.get_block_idx()
        copied(x, out, block, block)
        if block == 3:
            ascsim.set_flag(Pipe.MTE2, Pipe.MTE3, 99)

    found = assert_same(stopped, 6, x=rows(6), out=np.zeros((6, COLUMNS), np.float32))
    assert [d.code for d in found.diagnostics][:1] == ["L006"]
    assert set(found.trace.rows["core"].tolist()) == {0, 1, 2, 3}


def test_blocks_that_signal_each_other_are_not_apart(taken: list[bool]) -> None:
    def meeting(x: Any, out: Any) -> None:
        block = ascsim.get_block_idx()
        copied(x, x, block, block)
        ascsim.syncall()
        copied(x, out, (block + 1) % 4, block)

    assert_same(meeting, 4, x=rows(4), out=np.zeros((4, COLUMNS), np.float32))
    assert taken == []


def test_writes_that_are_in_no_trace_are_not_lost(taken: list[bool]) -> None:
    def untold(x: Any, out: Any) -> None:
        block = ascsim.get_block_idx()
        copied(x, out, block, block)
        memory = current_launch().machine.gm.data
        if block >= 2:
            memory[x.address + block] = 77

    assert_same(untold, 5, x=rows(5), out=np.zeros((5, COLUMNS), np.float32))
    assert taken == [True, False] * 3


def test_a_process_that_dies_is_replaced_by_the_launch_itself(taken: list[bool]) -> None:
    own = os.getpid()

    def dying(x: Any, out: Any) -> None:
        block = ascsim.get_block_idx()
        copied(x, out, block, block)
        if os.getpid() != own and block == 2:
            os._exit(1)

    assert_same(dying, 5, x=rows(5), out=np.zeros((5, COLUMNS), np.float32))
    assert taken == [True] * 3  # block 1, each time


def test_a_process_that_waits_for_ever_is_replaced_too(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ahead, "_LOOK", 0.1)
    monkeypatch.setattr(ahead, "_IDLE", 0.4)
    own = os.getpid()

    def waiting(x: Any, out: Any) -> None:
        block = ascsim.get_block_idx()
        copied(x, out, block, block)
        if os.getpid() != own and block == 2:
            threading.Event().wait()  # as for a lock that a thread of the other process holds

    assert_same(waiting, 5, (2,), x=rows(5), out=np.zeros((5, COLUMNS), np.float32))


def test_what_blocks_print_comes_once_and_in_block_order(capfd: pytest.CaptureFixture[str]) -> None:
    own = os.getpid()

    def talking(x: Any) -> None:
        block = ascsim.get_block_idx()
        copied(x, x, block, block)
        ctypes.CDLL(None).printf(b"block %d\n", block)  # in the buffer of the C library
        os.write(2, f"error {block}\n".encode())
        if os.getpid() != own:
            print(f"told by Python {block}")

    for processors in (1, 3):
        ctypes.CDLL(None).printf(b"before ")
        run(talking, 5, processors, x=rows(5))
        ctypes.CDLL(None).fflush(None)
        told = capfd.readouterr()
        python = [f"told by Python {n}\n" if n and processors > 1 else "" for n in range(5)]
        assert told.out == "before " + "".join(f"block {n}\n{python[n]}" for n in range(5))
        assert told.err == "".join(f"error {n}\n" for n in range(5))


def test_what_only_later_blocks_use_is_noted_where_it_would_be(taken: list[bool]) -> None:
    def growing(x: Any, out: Any) -> None:
        block = ascsim.get_block_idx()
        big = ascsim.tile("f32", 1, COLUMNS, at=64 * (block // 2), name=f"tile{block // 2}")
        part = ascsim.tile("f32", 4, 16, at=1024, valid=(2 + block % 2, 8), name=f"part{block % 3}")
        calls: list[tuple[str, tuple[Any, ...]]] = [
            ("tload", (big, x[0:1])),
            ("set_flag", (Pipe.MTE2, Pipe.V, block % 3)),
        ]
        if block > 2:
            calls += [
                ("tload", (part, x[0:1])),
                ("tadd", (part, part, part)),
                ("trelu" if block > 4 else "tadd", (big, big, big)),
            ]
        for name, args in calls:  # one line: its site is known after the first block
            getattr(ascsim, name)(*args[: 2 if name == "trelu" else 3])

    found = assert_same(growing, 7, x=rows(1), out=np.zeros((1, COLUMNS), np.float32))
    assert taken == [True] * 18
    assert {"trelu", "tadd"} < set(found.trace.mnemonics.values())
    assert len(found.trace.objects) > 5 and len(found.trace.shapes) > 2


def test_a_pipe_that_is_held_back(taken: list[bool]) -> None:
    def late(x: Any, out: Any) -> None:
        block = ascsim.get_block_idx()
        tile = ascsim.tile("f32", 1, COLUMNS, at=0)
        ascsim.tload(tile, x[block : block + 1])
        ascsim.tstore(out[block : block + 1], tile)  # too early

    choose_late(Pipe.MTE2)
    try:
        found = assert_same(late, 5, x=rows(5), out=np.zeros((5, COLUMNS), np.float32))
    finally:
        choose_late(None)
    assert len(found.trace.noted("held")) == 5
    assert True in taken


PROGRAMS = st.lists(
    st.lists(st.tuples(st.sampled_from(("copy", "add")), st.integers(0, 5), st.integers(0, 5)), max_size=3),
    min_size=3,
    max_size=7,
)


@settings(deadline=None, max_examples=25)
@given(PROGRAMS, st.sampled_from((2, 3, 7)))
def test_any_blocks_that_read_and_write_the_same_rows(
    programs: list[list[tuple[str, int, int]]], processors: int
) -> None:
    def kernel(x: Any) -> None:
        for what, source, target in programs[ascsim.get_block_idx()]:
            tile = ascsim.tile("f32", 1, COLUMNS, at=0)
            ascsim.tload(tile, x[source : source + 1])
            wait(Pipe.MTE2, Pipe.MTE3)
            ascsim.tstore(x[target : target + 1], tile, atomic=int(what == "add"))
            wait(Pipe.MTE3, Pipe.MTE2)

    assert_same(kernel, len(programs), (processors,), x=rows(6))


# Its parts

INTERVALS = st.lists(
    st.tuples(st.integers(0, 60), st.integers(0, 9)).map(lambda pair: (pair[0], sum(pair))), max_size=9
)


def as_bytes(intervals: Any) -> set[int]:
    return {byte for low, high in intervals for byte in range(low, high)}


@given(INTERVALS, INTERVALS)
def test_intervals_are_the_bytes_they_stand_for(some: list[tuple[int, int]], others: list[tuple[int, int]]) -> None:
    a, b = (merged(np.array(pairs, np.int64).reshape(-1, 2)) for pairs in (some, others))
    assert as_bytes(a.tolist()) == as_bytes(some)
    assert (a[1:, 0] > a[:-1, 1]).all()
    assert meet(a, b) == bool(as_bytes(some) & as_bytes(others))


@given(INTERVALS, INTERVALS)
def test_ranges_that_lie_in_intervals(some: list[tuple[int, int]], others: list[tuple[int, int]]) -> None:
    intervals = merged(np.array(others, np.int64).reshape(-1, 2))
    ranges = np.array([pair for pair in some if pair[0] < pair[1]], np.int64).reshape(-1, 2)
    found = ahead._are_within(ranges[:, 0], ranges[:, 1], intervals)
    assert found.tolist() == [as_bytes([pair]) <= as_bytes(others) for pair in ranges.tolist()]


@given(INTERVALS)
def test_bytes_of_intervals_are_written_as_they_were_read(pairs: list[tuple[int, int]]) -> None:
    intervals = merged(np.array(pairs, np.int64).reshape(-1, 2))
    memory, copy = np.arange(80, dtype=np.uint8), np.zeros(80, np.uint8)
    content = b"".join(piece.tobytes() for _, piece in ahead._pieces(memory, intervals))

    def read(size: int) -> bytes:
        nonlocal content
        piece, content = content[:size], content[size:]
        return piece

    ahead._write(copy, intervals, read)
    inside = np.zeros(80, bool)
    inside[sorted(as_bytes(pairs))] = True
    assert np.array_equal(copy, np.where(inside, memory, 0))


def test_a_mask_or_shape_that_stands_once_keeps_its_number() -> None:
    records = np.frombuffer(b"bcd", np.uint8)
    known = {b"a": 1, b"c": 2}
    numbers, is_new = join_known(records, {b"b": 2, b"c": 3}, 1, known, 5)  # d is one of many, c is here already
    assert numbers.tolist() == [6, 2, 7] and is_new.tolist() == [True, False, True]
    assert known == {b"a": 1, b"c": 2, b"b": 6}


def test_rows_in_notes_are_numbered_anew() -> None:
    assert moved_note("finding", {"row": 4, "x": 5}, 5, 10) == {"row": 4, "x": 5}
    assert moved_note("finding", {"row": 5}, 5, 10) == {"row": 15}
    assert moved_note("held", {"rows": [4, 5, 6], "until": 7}, 5, 10) == {"rows": [4, 15, 16], "until": 17}
    assert moved_note("held", {"rows": [5], "until": NEVER}, 5, 10)["until"] == NEVER
    assert moved_note("object", {"rows": 9}, 5, 10) == {"rows": 9}  # of a tile


def test_a_diverted_sink_counts_on_in_files_of_its_own(tmp_path: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("ascsim.machine.trace._WINDOW", 64)
    sink = MemorySink()
    first = sink.shape(pack_shape(2, 3))
    sink.append(bytes(32), bytes(64))
    before = sink.counts
    sink.divert(tmp_path, before)
    assert [sink.append(bytes(32), bytes(64)) for _ in range(3)] == [1, 2, 3]
    assert sink.shape(pack_shape(2, 3)) == first and sink.shape(pack_shape(5, 3)) == first + 1
    sink.note("x", {})
    sink.settle()
    assert sink.counts.rows == 4
    sizes = {name: (tmp_path / f"{name}.bin").stat().st_size for name in ("rows", "accesses", "masks", "shapes")}
    assert sizes == {"rows": 96, "accesses": 192, "masks": 0, "shapes": 40}
    assert sink.shapes_of(np.array([0, 1, 2, 3]), tmp_path, before.shapes)["n1"].tolist() == [1, 2, 5, 1]
    other = MemorySink()
    other.extend(Table.ROWS, np.zeros(2, ROW))
    assert other.n_rows == 2
