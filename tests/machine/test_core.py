"""issue(): legality before effects, the trace row, and grouped steps that equal the row-by-row loop."""

import gc
import weakref

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ascsim.diagnostics import Fault, Refused
from ascsim.isa.definition import Bytes, In, MemoryInstruction, Out, Scalar, Sort
from ascsim.machine.core import Group, Step, _PlannedGroup
from ascsim.machine.dtypes import dtype, i32, u8
from ascsim.machine.operands import Pointer
from ascsim.machine.trace import Kind, Mode
from ascsim.machine.words import Pipe, Space
from harness import Bench

COPY = MemoryInstruction(
    "test_copy", semantics=lambda src, n: src, extent=lambda call: {"dst": Bytes(call.n), "src": Bytes(call.n)},
    operands=(Out("dst", Sort.POINTER, u8), In("src", Sort.POINTER, u8), Scalar("n", i32)), variants=({},),
    pipe=Pipe.V, profiles=("a2a3", "a5"), doc="Copy bytes.",
)  # fmt: skip
INCREMENT = MemoryInstruction(
    "test_increment", semantics=lambda src, n: src + np.uint8(1),
    extent=lambda call: {"dst": Bytes(call.n), "src": Bytes(call.n)},
    operands=(Out("dst", Sort.POINTER, u8), In("src", Sort.POINTER, u8), Scalar("n", i32)), variants=({},),
    pipe=Pipe.V, profiles=("a2a3", "a5"), doc="Add one to each byte.",
)  # fmt: skip


def at(offset):
    return Pointer(Space.UB, offset, u8)


def test_refusal_comes_before_any_effect_and_any_row():
    bench = Bench("a2a3")
    dst, src = bench.tile("f32", 4, 64), bench.tile("f16", 4, 64, np.ones((4, 64)))
    before = bench.memory().copy()
    with pytest.raises(Refused) as refusal:
        bench.issue("tadd", dst, src, src)
    assert refusal.value.diagnostic.code == "L003"
    assert np.array_equal(bench.memory(), before)
    assert len(bench.trace().rows) == 0


def test_refusals_are_remembered_and_come_again():
    bench = Bench("a2a3")
    dst, src = bench.tile("f32", 4, 64), bench.tile("f16", 4, 64)
    for _ in range(2):
        with pytest.raises(Refused):
            bench.issue("tadd", dst, src, src)


def test_unassigned_tile_is_refused():
    bench = Bench("a2a3")
    tile = bench.tile("f32", 4, 64)
    with pytest.raises(Refused) as refusal:
        bench.issue("tadd", tile.at(-1), tile, tile)
    assert refusal.value.diagnostic.code == "L010"


def test_row_names_pipe_site_and_accesses():
    bench = Bench("a2a3")
    a, b, c = (bench.tile("f32", 4, 64, valid=(3, 60)) for _ in range(3))
    bench.issue("tadd", c, a, b)
    trace = bench.trace()
    row = trace.rows[0]
    assert (row["pipe"], row["kind"], row["n_access"], row["parent"]) == (Pipe.V, Kind.INSTRUCTION, 3, -1)
    assert trace.mnemonics[int(row["mnemonic"])] == "tadd"
    shapes = trace.shapes[trace.accesses["shape"]]
    columns = (*(trace.accesses[name] for name in ("mode", "start", "length")), shapes["n1"], shapes["s1"])
    modes = set(zip(*(column.tolist() for column in columns), strict=True))
    assert modes == {
        (Mode.WRITE, c.address, 240, 3, 256), (Mode.READ, a.address, 240, 3, 256), (Mode.READ, b.address, 240, 3, 256)
    }  # fmt: skip


def test_access_far_outside_is_a_fault_with_its_row_in_the_trace():
    bench = Bench("a2a3")
    tile = bench.tile("f32", 4, 64)
    with pytest.raises(Fault):
        bench.issue("tadd", tile.at(1 << 24), tile, tile)
    assert len(bench.trace().rows) == 1


def test_overrun_within_the_guard_runs():
    bench = Bench("a2a3")
    capacity = bench.profile.spaces["UB"].capacity
    src = bench.tile("f32", 4, 64, np.ones((4, 64)))
    bench.issue("tadd", src.at(capacity - 512), src, src)
    assert bench.core.view(src.at(capacity - 512).region())[3, 63] == 2


@settings(deadline=None, max_examples=60)
@given(
    rows=st.integers(2, 5), length=st.integers(1, 40), dst=st.integers(0, 300), src=st.integers(0, 300),
    tmp=st.integers(0, 300), dst_stride=st.integers(0, 64), src_stride=st.integers(0, 64), seed=st.integers(0, 99),
)  # fmt: skip
def test_grouped_rows_equal_the_loop(rows, length, dst, src, tmp, dst_stride, src_stride, seed):
    """Whatever overlaps whatever: the memory after the group is the memory after the chip's loop."""
    data = np.random.default_rng(seed).integers(0, 256, 1024, dtype=np.uint8)
    steps = [
        Step(COPY, (at(tmp), at(src), length), rows, (0, src_stride, 0)),
        Step(INCREMENT, (at(tmp), at(tmp), length), rows, (0, 0, 0)),
        Step(COPY, (at(dst), at(tmp), length), rows, (dst_stride, 0, 0)),
    ]
    grouped, looped = Bench("a2a3"), Bench("a2a3")
    for bench in (grouped, looped):
        bench.memory()[:1024] = data
    grouped.machine._run_group(grouped.core, _PlannedGroup(Group(steps, private=(Space.UB, tmp, length))), 1, -1)
    for row in range(rows):
        for step in steps:
            args = tuple(
                a._replace(offset=a.offset + row * s) if s else a for a, s in zip(step.args, step.strides, strict=True)
            )
            looped.machine.issue(looped.core, step.instruction, args, 1)
    assert np.array_equal(grouped.memory()[:1024], looped.memory()[:1024])


def test_independent_rows_are_one_trace_row_a_step():
    bench = Bench("a2a3")
    steps = [
        Step(COPY, (at(0x400), at(0), 32), 4, (0, 64, 0)),
        Step(COPY, (at(0x800), at(0x400), 32), 4, (64, 0, 0)),
    ]
    bench.machine._run_group(bench.core, _PlannedGroup(Group(steps, private=(Space.UB, 0x400, 32))), 1, -1)
    trace = bench.trace()
    assert len(trace.rows) == 2
    assert trace.rows["work"].tolist() == [4, 4]


def test_a_row_has_its_element_type_and_how_many_calls_it_stands_for() -> None:
    bench = Bench("a2a3")
    values = np.zeros((4, 64))
    src, idx = bench.tile("f16", 4, 64, values), bench.tile("u32", 4, 64, values + np.arange(64))
    bench.issue("tsort32", bench.tile("f16", 4, 256), src, idx)
    rows = bench.trace().rows
    written, *steps = rows[rows["pipe"] == Pipe.V]
    assert (written["dtype"], written["arg"], len(steps)) == (dtype("f16").code, 0, 2)
    sort, barrier = steps
    assert (sort["dtype"], sort["work"]) == (dtype("f16").code, 8)
    assert barrier["kind"] == Kind.BARRIER
    assert (sort["arg"], barrier["arg"]) == (4, 4), "one call a row"


@pytest.mark.parametrize("width", [64, 96])
def test_an_expansion_that_ran_before_leaves_the_same_rows_at_its_own_line(width: int) -> None:
    bench = Bench("a2a3")
    random = np.random.default_rng(width)
    src, idx = bench.tile("f32", 4, width), bench.tile("u32", 4, width, np.tile(np.arange(width), (4, 1)))
    dst, other = bench.tile("f32", 4, 2 * width), bench.tile("f32", 4, 2 * width)
    definition = bench.definition("tsort32", 3)
    for turn in range(4):
        values = random.standard_normal((4, width)).astype(np.float32)
        bench.core.view(src.region())[...] = values
        bench.machine.issue(bench.core, definition, (dst, src, idx), turn)
        once = Bench("a2a3")
        once.memory()[:] = bench.memory()
        once.issue("tsort32", other, src, idx)
        assert np.array_equal(bench.read(dst), once.read(other))
        blocks = np.sort(values.reshape(4, -1, 32))[:, :, ::-1].reshape(4, width)
        assert np.array_equal(bench.read(dst)[:, ::2], blocks)
    trace = bench.trace()
    rows, accesses = trace.rows.reshape(4, -1), trace.accesses.reshape(4, -1)
    assert np.array_equal(rows["site"], np.arange(4)[:, None] + np.zeros(rows.shape[1], int))
    assert np.array_equal(
        rows["parent"][:, 1:], np.arange(4)[:, None] * rows.shape[1] + np.zeros(rows.shape[1] - 1, int)
    )
    for name in ("core", "pipe", "kind", "mnemonic", "n_access", "arg", "work", "dtype"):
        assert (rows[name] == rows[name][0]).all()
    assert (accesses == accesses[0]).all()


def test_memories_go_with_the_last_who_holds_them() -> None:
    gc.collect()
    gc.disable()
    try:
        bench = Bench("a5")
        tile = bench.tile("f32", 1, 64)
        for _ in range(3):
            bench.issue("TEXPANDS", tile, 1.0)
        machine, core = weakref.ref(bench.machine), weakref.ref(bench.core)
        del bench
        assert machine() is None and core() is None
    finally:
        gc.enable()
