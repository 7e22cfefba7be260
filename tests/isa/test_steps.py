"""Moves between regions: what they do, what they leave in the trace."""

from __future__ import annotations

import numpy as np

from ascsim.isa.steps import SCALAR_LOOP, VECTOR_DUP, Move, elements
from ascsim.machine.operands import Region
from ascsim.machine.trace import Mode
from ascsim.machine.words import Pipe
from harness import Bench


def run(bench: Bench, step: object) -> None:
    instruction, args = step.instruction, step.args  # type: ignore[attr-defined]
    bench.machine.issue(bench.core, instruction, args, 0)


def test_a_move_keeps_the_order_of_its_dimensions() -> None:
    bench = Bench()
    src, dst = bench.tile("f32", 2, 8, np.arange(16).reshape(2, 8)), bench.tile("f32", 8, 8)
    there, read = elements(dst, 0, ((8, 8), (2, 1))), elements(src, 0, ((8, 1), (2, 8)))
    run(bench, SCALAR_LOOP.step(dst, there, src, read))
    assert np.array_equal(bench.read(dst, 8, 2), bench.read(src).T)
    (row,) = bench.trace().rows
    assert row["pipe"] == Pipe.S and row["work"] == 8
    assert bench.traced(Mode.READ).sum() == bench.traced(Mode.WRITE).sum() == 64


def test_the_last_of_overlapping_bursts_wins() -> None:
    bench = Bench()
    src, dst = bench.tile("i32", 1, 8, [np.arange(8)]), bench.tile("i32", 1, 8)
    run(bench, SCALAR_LOOP.step(dst, elements(dst, 0, ((8, 0),)), src, elements(src, 0, ((8, 1),))))
    assert bench.read(dst)[0].tolist() == [7, *[0] * 7]


def test_a_fill_reads_nothing_and_an_empty_one_does_nothing() -> None:
    bench = Bench()
    dst = bench.tile("i32", 1, 8)
    run(bench, VECTOR_DUP.step(dst, elements(dst, 2, ((3, 1),)), bits=9))
    assert bench.read(dst)[0].tolist() == [0, 0, 9, 9, 9, 0, 0, 0]
    run(bench, VECTOR_DUP.step(dst, Region(dst.space, dst.address, 0, (), np.dtype("u4")), bits=1))
    assert bench.read(dst)[0, 0] == 0
    assert not bench.traced(Mode.READ).any()


def test_reads_that_do_not_count_are_not_in_the_trace() -> None:
    bench = Bench()
    src, dst = bench.tile("i32", 1, 8, [np.arange(8)]), bench.tile("i32", 1, 8)
    quiet = Move("quiet", Pipe.V, counts_reads=False)
    run(bench, quiet.step(dst, dst.region(dtype=np.dtype("u4")), src, src.region(dtype=np.dtype("u4"))))
    assert np.array_equal(bench.read(dst), bench.read(src))
    assert not bench.traced(Mode.READ).any()
