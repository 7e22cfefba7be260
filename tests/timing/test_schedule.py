"""Schedules: pipes, flags, barriers, vector functions, cores and launches, against what a hand works out."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ascsim import profiles, timing
from ascsim.machine.trace import Kind, Trace
from ascsim.machine.words import Pipe, Space
from ascsim.profiles import costs
from ascsim.timing.summary import summarize
from checks.builder import ALL, MTE2, MTE3, Builder, S, V, gm
from cube import tile
from harness import Bench

PLAIN = costs.read("""
[chip]
mhz = 1000
slots = 2
gm_gb_s = 64
issue = 1
queue = 4
flag = 1
barrier = 1
vector_start = 10
dispatch = 2
ports = { load = 2, execute = 1, store = 1 }
vector_bytes = 256
[sources]
issue = "test"
[[cost]]
names = ["long"]
fixed = 5
each = { call = 100 }
source = "test"
[[cost]]
lane = "load"
fixed = 3
each = { call = 1 }
source = "test"
[[cost]]
lane = "execute"
fixed = 4
each = { call = 2 }
source = "test"
[[cost]]
lane = "store"
fixed = 6
each = { call = 1 }
source = "test"
[[cost]]
pipe = "S"
each = { call = 1 }
source = "test"
[[cost]]
route = "GM>UB"
fixed = 20
bytes_a_cycle = 32
source = "test"
[[cost]]
fixed = 5
each = { call = 10 }
source = "guess: test"
""")


def of(builder: Builder, profile: str = "a2a3", **more: Any) -> timing.Schedule:
    """The schedule of a built trace with the plain table."""
    return timing.schedule(builder.trace(), profiles.find(profile), costs=PLAIN, **more)


def spans(schedule: timing.Schedule, *rows: int) -> list[tuple[int, int]]:
    """(start, end) of rows."""
    return [(int(schedule.start[row]), int(schedule.end[row])) for row in rows]


def test_pipes_run_side_by_side_and_issue_takes_its_time() -> None:
    builder = Builder()
    rows = [builder.op(MTE2), builder.op(V), builder.op(MTE3)]
    schedule = of(builder)
    assert spans(schedule, *rows) == [(1, 16), (2, 17), (3, 18)]
    assert schedule.issue.tolist() == [0, 1, 2]
    assert schedule.total == 18


def test_the_next_instruction_overlaps_what_is_fixed_unless_its_pipe_keeps_order() -> None:
    builder = Builder()
    rows = [builder.op(V), builder.op(V)]
    assert spans(of(builder, "a2a3"), *rows) == [(1, 16), (11, 26)]
    assert spans(of(builder, "a5"), *rows) == [(1, 16), (16, 31)]


def test_a_barrier_waits_for_the_whole_of_its_pipe() -> None:
    builder = Builder()
    first, barrier, second = builder.op(V), builder.barrier(V), builder.op(V)
    schedule = of(builder)
    assert spans(schedule, first, barrier, second) == [(1, 16), (16, 17), (17, 32)]
    assert schedule.held[second] == barrier
    assert schedule.idle[second] == 1


def test_a_flag_holds_the_other_pipe_until_the_work_before_it_is_complete() -> None:
    builder = Builder()
    load = builder.op(MTE2, "long")
    placed, waited = builder.set(MTE2, V), builder.wait(MTE2, V)
    add = builder.op(V)
    later = builder.op(MTE2)
    schedule = of(builder)
    assert spans(schedule, load, add) == [(1, 106), (106, 121)]
    assert schedule.end[placed] == 106 and schedule.partner[waited] == placed
    assert schedule.start[later] == 102, "the pipe that sets goes on"


def test_a_wait_of_the_scalar_unit_holds_the_issue() -> None:
    builder = Builder()
    builder.op(MTE2, "long")
    builder.sync(MTE2, S)
    late = builder.op(V)
    schedule = of(builder)
    assert schedule.issue[late] == 106
    assert schedule.start[late] == 107


def test_a_lock_waits_for_the_unlock_before_it() -> None:
    builder = Builder()
    builder.row(MTE2, Kind.LOCK, "lock", arg=3)
    builder.op(MTE2, "long")
    unlock = builder.row(MTE2, Kind.UNLOCK, "unlock", arg=3)
    other = builder.row(V, Kind.LOCK, "lock", arg=2)
    lock = builder.row(V, Kind.LOCK, "lock", arg=3)
    add = builder.op(V)
    schedule = of(builder)
    assert schedule.partner[[lock, other]].tolist() == [unlock, -1]
    assert schedule.start[add] == schedule.end[unlock] == 107
    builder.row(MTE3, Kind.LOCK, "lock", arg=3, pipe2=1)
    free = builder.op(MTE3)
    assert of(builder).start[free] < 20, "a lock that does not hold its pipe back"


def test_a_barrier_on_all_pipes() -> None:
    builder = Builder()
    builder.op(MTE2, "long")
    builder.op(V)
    barrier = builder.barrier(ALL)
    after = builder.op(MTE3)
    schedule = of(builder)
    assert spans(schedule, barrier, after) == [(106, 107), (108, 123)]


def test_a_full_queue_holds_the_issue() -> None:
    builder = Builder()
    rows = [builder.op(V, "long") for _ in range(6)]
    other = builder.op(MTE2)
    schedule = of(builder)
    assert schedule.start[rows].tolist() == [1 + 100 * n for n in range(6)]
    assert schedule.issue[rows].tolist() == [0, 1, 2, 3, 4, 101]
    assert schedule.start[other] == 103


def test_a_vector_function_runs_over_its_lanes() -> None:
    builder = Builder()
    begin = builder.row(V, Kind.VF_BEGIN, "vf")
    loads = [builder.op(V, "vlds", reads=[0]) for _ in range(2)]
    add = builder.op(V, "vadd")
    store = builder.op(V, "vsts", writes=[1024])
    end = builder.row(V, Kind.VF_END, "vf")
    after = builder.op(V)
    schedule = of(builder, "a5")
    assert spans(schedule, *loads) == [(11, 15), (11, 15)], "two ports"
    assert spans(schedule, add, store) == [(15, 21), (21, 28)]
    assert spans(schedule, begin, end) == [(1, 28), (28, 28)]
    assert [timing.TRACKS[n] for n in schedule.track[[*loads, add, store]]] == ["load", "load", "execute", "store"]
    assert schedule.start[after] == 28


def test_a_memory_barrier_holds_every_lane() -> None:
    builder = Builder()
    builder.row(V, Kind.VF_BEGIN, "vf")
    store = builder.op(V, "vsts", writes=[0])
    builder.row(V, Kind.MEM_BAR, "mem_bar")
    load = builder.op(V, "vlds", reads=[0])
    builder.row(V, Kind.VF_END, "vf")
    schedule = of(builder, "a5")
    assert schedule.start[load] == schedule.end[store] == 18


def test_steps_cost_and_their_instruction_spans_them() -> None:
    builder = Builder()
    tile = builder.op(V, "tile")
    steps = [builder.op(V, "step", parent=tile), builder.barrier(V, parent=tile), builder.op(V, "step", parent=tile)]
    schedule = of(builder)
    assert spans(schedule, *steps) == [(1, 16), (16, 17), (17, 32)]
    assert spans(schedule, tile) == [(1, 32)]
    assert schedule.is_work.tolist() == [False, True, False, True]


def test_rows_of_several_calls_pay_for_each_where_a_barrier_parts_them() -> None:
    builder = Builder()
    tile = builder.op(V, "tile")
    step = builder.row(V, Kind.INSTRUCTION, "step", parent=tile, arg=3)
    barrier = builder.row(V, Kind.BARRIER, "pipe_barrier", parent=tile, arg=3)
    schedule = of(builder)
    assert spans(schedule, step, barrier) == [(1, 26), (26, 29)]


def test_launches_follow_each_other_and_blocks_share_the_cores() -> None:
    builder = Builder()
    rows = []
    for number, blocks in ((1, 3), (2, 1)):
        for core in range(blocks):
            builder.core = core
            builder.launch(number, blocks=blocks)
            rows.append(builder.op(V))
            builder.end(number)
    schedule = of(builder)
    assert schedule.start[rows].tolist() == [1, 1, 17, 33], "two cores"
    assert [(core.launch, core.slot, core.begin, core.end) for core in schedule.cores] == [
        (0, 0, 0, 16), (0, 1, 0, 16), (0, 0, 16, 32), (1, 0, 32, 48),
    ]  # fmt: skip
    assert schedule.total == 48


def test_cores_share_the_bandwidth_of_global_memory() -> None:
    def loads(cores: int) -> list[int]:
        builder = Builder()
        rows = []
        for core in range(cores):
            builder.core = core
            builder.launch(1, blocks=cores)
            rows.append(builder.op(MTE2, "load", reads=[gm(4096 * core, 3200)], writes=[{"start": 0, "length": 3200}]))
            builder.end(1)
        schedule = timing.schedule(builder.trace(), profiles.find("a2a3"), costs=replace(PLAIN, slots=8))
        return [int(schedule.end[row] - schedule.start[row]) for row in rows]

    assert loads(1) == [120]
    assert loads(2) == [120] * 2, "64 bytes a cycle are enough for two"
    assert loads(4) == [220] * 4


def test_infinite_bandwidth_on_one_pipe() -> None:
    builder = Builder()
    builder.op(MTE2, "long")
    builder.sync(MTE2, V)
    builder.op(V)
    assert of(builder).total == 121
    assert of(builder, infinite=[Pipe.MTE2]).total == 19


def test_a_wait_without_a_set_does_not_hang() -> None:
    builder = Builder()
    builder.wait(MTE2, V)
    row = builder.op(V)
    assert of(builder).start[row] == 2


def test_no_rows() -> None:
    schedule = of(Builder())
    assert schedule.total == 0
    assert len(schedule.path.rows) == 0


# The public figures, from instruction to cycles


def span_of(bench: Bench, title: str) -> int:
    trace = bench.trace()
    schedule = timing.schedule(trace, bench.profile)
    row = next(i for i, number in enumerate(trace.rows["mnemonic"]) if trace.titles[int(number)] == title)
    return int(schedule.end[row] - schedule.start[row])


@pytest.mark.parametrize(("kind", "shape", "cycles"), [("f32", (64, 64), 152), ("f16", (16, 256), 88)])
def test_tadd_of_the_910b3(kind: str, shape: tuple[int, int], cycles: int) -> None:
    bench = Bench("a2a3")
    bench.issue("tadd", *(bench.tile(kind, *shape, np.zeros(shape)) for _ in range(3)))
    assert span_of(bench, "TADD") == cycles


@pytest.mark.parametrize("blocks", [1, 8, 32, 128])
def test_tsort32_of_the_910b3(blocks: int) -> None:
    bench, cols = Bench("a2a3"), 32 * blocks
    src, idx = bench.tile("f32", 1, cols, np.zeros((1, cols))), bench.tile("u32", 1, cols, np.arange(cols))
    bench.issue("tsort32", bench.tile("f32", 1, 2 * cols), src, idx)
    assert span_of(bench, "TSORT32") == 16 * blocks + 21


@pytest.mark.parametrize(
    ("profile", "kind", "side", "cycles"),
    [
        ("a2a3", "f16", 128, 518), ("a2a3", "f16", 16, 7), ("a2a3", "f32", 128, 2054), ("a2a3", "i8", 128, 262),
        ("a5", "f16", 128, 518), ("a5", "f32", 128, 8198),
    ],
)  # fmt: skip
def test_products(profile: str, kind: str, side: int, cycles: int) -> None:
    """The element type that counts is that of lhs. The 950 multiplies floats 16 by 16 by 1 a cycle."""
    bench = Bench(profile)
    places, kinds = (Space.L0C, Space.L0A, Space.L0B), ("i32" if kind == "i8" else "f32", kind, kind)
    bench.issue("tmatmul", *(tile(bench, s, k, side, side) for s, k in zip(places, kinds, strict=True)))
    assert span_of(bench, "TMATMUL") == cycles
    roof = summarize(timing.schedule(bench.trace(), bench.profile), lambda *_: None).roofline
    assert roof.operations == side**3
    assert roof.peak == side**3 / (cycles - 6)


def test_tadd_of_the_950_by_its_formula() -> None:
    bench = Bench("a5")
    bench.issue("tadd", *(bench.tile("f32", 64, 64, np.zeros((64, 64))) for _ in range(3)))
    assert abs(span_of(bench, "TADD") - (1.2469671 * 64 + 55.073657)) < 2


@pytest.mark.parametrize(("loads", "slope", "start"), [(2, 1.2469671, 55.073657), (1, 1.0589255, 53.140381)])
def test_a_loop_of_registers_comes_near_the_formula_of_the_tile_instruction(
    loads: int, slope: float, start: float
) -> None:
    """TADD loads two operands, TMINS one; each is a vector function of loads, an operation and a store."""
    for repeats in (4, 64):
        builder = Builder()
        begin = builder.row(V, Kind.VF_BEGIN, "vf")
        for n in range(repeats):
            for _ in range(loads):
                builder.op(V, "vlds", reads=[256 * n])
            builder.op(V, "vadd" if loads == 2 else "vmins")
            builder.op(V, "vsts", writes=[65536 + 256 * n])
        builder.row(V, Kind.VF_END, "vf")
        schedule = timing.schedule(builder.trace(), profiles.find("a5"))
        assert int(schedule.end[begin] - schedule.start[begin]) == pytest.approx(slope * repeats + start, rel=0.08)


# Properties


@st.composite
def programs(draw: st.DrawFn) -> Trace:
    """Correctly paired flags, barriers, instructions and vector functions on two cores."""
    builder = Builder()
    for core in range(2):
        builder.core = core
        builder.launch(1, blocks=2)
        waiting: list[tuple[int, int, int]] = []
        for _ in range(draw(st.integers(0, 25))):
            choice = draw(st.integers(0, 9))
            pipe = draw(st.sampled_from([S, V, MTE2, MTE3]))
            if choice < 5:
                builder.op(pipe, draw(st.sampled_from(["op", "long"])))
            elif choice == 5:
                builder.barrier(draw(st.sampled_from([V, MTE2, ALL])))
            elif choice == 6:
                builder.row(V, Kind.VF_BEGIN, "vf")
                for lane in draw(st.lists(st.integers(0, 3), max_size=6)):
                    if lane == 3:
                        builder.row(V, Kind.MEM_BAR, "mem_bar")
                    else:
                        builder.op(V, "r", reads=[0] * (lane == 0), writes=[0] * (lane == 1))
                builder.row(V, Kind.VF_END, "vf")
            elif waiting and choice == 7:
                builder.wait(*waiting.pop(draw(st.integers(0, len(waiting) - 1))))
            else:
                target = draw(st.sampled_from([p for p in (S, V, MTE2, MTE3) if p != pipe]))
                flag = (pipe, target, len(waiting))
                if flag not in waiting:
                    builder.set(*flag)
                    waiting.append(flag)
        for flag in waiting:
            builder.wait(*flag)
        builder.end(1)
    return builder.trace()


@given(trace=programs(), chip=st.sampled_from(["a2a3", "a5"]))
@settings(deadline=None, max_examples=60)
def test_what_holds_of_every_schedule(trace: Trace, chip: str) -> None:
    schedule = timing.schedule(trace, profiles.find(chip), costs=PLAIN)
    kind, track = trace.kind, schedule.track
    for core in range(len(schedule.cores)):
        here = schedule.core == core
        for number in range(len(timing.TRACKS)):
            rows = np.flatnonzero(here & (track == number) & schedule.is_work)
            assert (np.diff(schedule.start[rows]) >= 0).all(), "a track starts its work in order"
    waits = np.flatnonzero((kind == Kind.WAIT_FLAG) & (schedule.partner >= 0))
    waits = waits[schedule.partner[waits] < waits]
    assert (schedule.end[waits] >= schedule.end[schedule.partner[waits]]).all()
    assert (schedule.end >= schedule.start).all()
    path = schedule.path
    assert int((path.end - path.begin).sum()) == schedule.total, "the path explains every cycle"
    assert (path.end[:-1] == path.begin[1:]).all()
    for pipe in (Pipe.V, Pipe.MTE2):
        assert timing.schedule(trace, profiles.find(chip), [pipe], PLAIN).total <= schedule.total


@pytest.mark.slow
@given(trace=programs(), chip=st.sampled_from(["a2a3", "a5"]))
@settings(deadline=None, max_examples=100)
def test_compiled_and_plain_agree(trace: Trace, chip: str) -> None:
    plain, fast = (timing.schedule(trace, profiles.find(chip), costs=PLAIN, compile=way) for way in (False, True))
    for name in ("issue", "start", "end", "idle", "held", "by"):
        assert (getattr(plain, name) == getattr(fast, name)).all(), name
    assert all((a == b).all() for a, b in zip(plain.path, fast.path, strict=True))


def exchange(builder: Builder, blocks: int, rounds: int) -> dict[str, list[int]]:
    """Cores that in turn do long work (each in its own rounds), arrive, and wait for all; core after core."""
    rows: dict[str, list[int]] = {"await": [], "after": []}
    for core in range(blocks):
        builder.core = core
        builder.row(S, Kind.LAUNCH_BEGIN, "", line=0, arg=1)
        for turn in range(rounds):
            builder.op(V, "long" if turn % blocks == core else "short")
            builder.row(V, Kind.ARRIVE, "arrive", arg=turn + 1, pipe2=3)
            rows["await"].append(builder.row(S, Kind.AWAIT, "await", arg=turn + 1, pipe2=3))
        rows["after"].append(builder.op(V))
        builder.row(S, Kind.LAUNCH_END, "", line=0, arg=1)
    return rows


@pytest.mark.parametrize("compile", [False, True])
def test_a_core_waits_for_the_signals_of_others(compile: bool) -> None:
    builder = Builder()
    rows = exchange(builder, 2, 4)
    schedule = of(builder, compile=compile)
    first, second = np.array(rows["await"]).reshape(2, 4)
    assert (schedule.end[first] == schedule.end[second]).all(), "both go on when the last has arrived"
    assert (np.diff(schedule.end[first]) > 100).all(), "one of the two has long work in each round"
    assert schedule.start[rows["after"][0]] == schedule.end[first[-1]] + 1
    lengths = schedule.path.end - schedule.path.begin
    assert lengths.sum() == schedule.total


def test_more_blocks_than_cores_that_wait_for_each_other_have_times_all_the_same() -> None:
    builder = Builder()
    rows = exchange(builder, 3, 2)
    schedule = of(builder)
    assert (schedule.start[rows["after"]] > 0).all()
    assert (schedule.path.end - schedule.path.begin).sum() == schedule.total
