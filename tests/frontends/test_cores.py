"""Cores that wait for each other, in Python kernels: results, order, deadlock."""

from __future__ import annotations

import numpy as np
import pytest

import ascsim
from ascsim import Pipe
from ascsim.frontends.launch import KernelError, Run

BLOCKS = 4


def exchange(sync) -> ascsim.Kernel:  # type: ignore[no-untyped-def, name-defined]
    """A kernel whose blocks write a row each, synchronise, and read their neighbour's."""

    @ascsim.kernel
    def kernel(x, work, out):
        block, blocks = ascsim.get_block_idx(), ascsim.get_block_num()
        mine, theirs = ascsim.tile("f32", 1, 64), ascsim.tile("f32", 1, 64)
        ascsim.tload(mine, x[block : block + 1])
        ascsim.set_flag(Pipe.MTE2, Pipe.MTE3, 0)
        ascsim.wait_flag(Pipe.MTE2, Pipe.MTE3, 0)
        ascsim.tstore(work[block : block + 1], mine)
        sync(block)
        other = (block + 1) % blocks
        ascsim.tload(theirs, work[other : other + 1])
        ascsim.set_flag(Pipe.MTE2, Pipe.MTE3, 1)
        ascsim.wait_flag(Pipe.MTE2, Pipe.MTE3, 1)
        ascsim.tstore(out[block : block + 1], theirs)

    return kernel


def run(sync, arch: str = "a2a3") -> tuple[Run, np.ndarray]:  # type: ignore[no-untyped-def]
    x = np.arange(BLOCKS * 64, dtype=np.float32).reshape(BLOCKS, 64)
    out = np.zeros_like(x)
    kernel = exchange(sync).on(arch)
    try:
        return kernel[BLOCKS](x, np.zeros_like(x), out), out
    except KernelError as error:
        return error.run, out


def codes(found: Run) -> list[str]:
    return [d.code for d in found.diagnostics]


@pytest.mark.parametrize("arch", ["a2a3", "a5"])
def test_a_barrier_over_all_cores_lets_each_see_what_the_others_wrote(arch: str) -> None:
    found, out = run(lambda block: ascsim.syncall(), arch)
    assert codes(found) == []
    assert np.array_equal(out[:, 0], [64, 128, 192, 0])


def test_without_it_the_last_core_alone_reads_something_and_the_race_is_told() -> None:
    found, _ = run(lambda block: None)
    assert set(codes(found)) == {"R101"}


def test_an_arrival_on_a_pipe_that_has_not_written_orders_nothing() -> None:
    def sync(block: int) -> None:
        ascsim.asc_sync_inter_arrive(Pipe.MTE2, 3)
        ascsim.asc_sync_inter_wait(Pipe.S, 3)

    found, out = run(sync)
    assert set(codes(found)) == {"R101"}
    assert found.diagnostics[0].notes[1] == "no signal between the cores orders the two"
    assert np.array_equal(out[:, 0], [64, 128, 192, 0])  # carried out in order all the same


def test_an_arrival_on_the_pipe_that_writes_does() -> None:
    def sync(block: int) -> None:
        ascsim.asc_sync_inter_arrive(Pipe.MTE3, 3)
        ascsim.asc_sync_inter_wait(Pipe.S, 3)

    assert codes(run(sync)[0]) == []


def test_a_core_that_does_not_arrive_is_a_deadlock_with_all_that_wait() -> None:
    def sync(block: int) -> None:
        if block != 2:
            ascsim.syncall()

    found, _ = run(sync)
    (deadlock,) = [d for d in found.diagnostics if d.code == "S201"]
    assert "3 cores wait" in deadlock.headline
    assert [place.what.split(":")[0] for place in deadlock.places] == ["core 0", "core 1", "core 3"]
    assert "core 0 once, core 1 once, core 3 once; 1 of 4 cores never" in deadlock.notes[0]


def test_signals_left_over_and_too_many_are_told() -> None:
    def once_more(block: int) -> None:
        ascsim.syncall()
        ascsim.asc_sync_inter_arrive(Pipe.MTE3, 3)

    assert codes(run(once_more)[0]) == ["S202"]

    def many(block: int) -> None:
        ascsim.syncall()
        for _ in range(16):
            ascsim.asc_sync_inter_arrive(Pipe.MTE3, 3)
        ascsim.syncall()
        for _ in range(16):
            ascsim.asc_sync_inter_wait(Pipe.S, 3)

    assert "S203" in codes(run(many)[0])


def test_what_a_core_learns_of_itself_by_way_of_another_is_known_to_it() -> None:
    """Core 0 stores, core 1 waits for that and signals back: core 0 may then load what it stored."""

    @ascsim.kernel
    def kernel(out):
        tile = ascsim.tile("f32", 1, 64)
        block = ascsim.get_block_idx()
        if block == 0:
            ascsim.texpands(tile, 1.0)
            ascsim.set_flag(Pipe.V, Pipe.MTE3, 0)
            ascsim.wait_flag(Pipe.V, Pipe.MTE3, 0)
            ascsim.tstore(out, tile)
        ascsim.asc_sync_inter_arrive(Pipe.MTE3, 0)
        ascsim.asc_sync_inter_wait(Pipe.S, 0)
        if block == 0:
            ascsim.tload(tile, out)

    found = kernel[2](np.zeros((1, 64), np.float32))
    assert codes(found) == []


def test_two_runs_leave_the_same_trace() -> None:
    one, other = (run(lambda block: ascsim.syncall())[0].trace for _ in range(2))
    assert one.rows.tobytes() == other.rows.tobytes() and one.accesses.tobytes() == other.accesses.tobytes()
