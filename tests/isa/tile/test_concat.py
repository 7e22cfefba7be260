"""TCONCAT: rows side by side, whole blocks and the scalar pipe on A2/A3, counted rows."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ascsim.diagnostics import Refused
from ascsim.machine.trace import Mode
from ascsim.machine.words import Pipe
from harness import Bench

PROFILES = ("a2a3", "a5", "cpu")


@pytest.mark.parametrize("profile", PROFILES)
@pytest.mark.parametrize("kind", ("f32", "f16", "i16", "u32"))
@given(data=st.data())
@settings(max_examples=10, deadline=None)
def test_rows_stand_side_by_side(profile: str, kind: str, data: st.DataObject) -> None:
    bench = Bench(profile)
    rows, first, second = (data.draw(st.integers(1, n)) for n in (4, 60, 60))
    src0 = bench.tile(kind, 4, 64, np.arange(rows * first).reshape(rows, first), valid=(rows, first))
    src1 = bench.tile(kind, 4, 64, np.arange(rows * second).reshape(rows, second) + 7, valid=(rows, second))
    dst = bench.tile(kind, 4, 128, valid=(rows, first + second))
    bench.issue("TCONCAT", dst, src0, src1)
    assert np.array_equal(bench.read(dst), np.concatenate([bench.read(src0), bench.read(src1)], axis=1))
    assert bench.findings() == []
    written = bench.traced(Mode.WRITE)
    exact = rows * (first + second) * dst.dtype.size
    assert written.sum() >= exact if profile == "a2a3" else written.sum() == exact
    assert not written[: dst.address].any() and not written[dst.address + dst.nbytes :].any()


@pytest.mark.parametrize(("first", "pipes"), [(16, {Pipe.V}), (15, {Pipe.V, Pipe.S})])
def test_a2a3_needs_whole_blocks_to_stay_on_the_vector_pipe(first: int, pipes: set[int]) -> None:
    bench = Bench("a2a3")
    bench.issue("TCONCAT", bench.tile("f32", 1, 32, valid=(1, first + 3)), bench.tile("f32", 1, 16, valid=(1, first)),
                bench.tile("f32", 1, 16, valid=(1, 3)))  # fmt: skip
    rows = bench.trace().rows
    assert {int(row["pipe"]) for row in rows[1:] if row["n_access"]} == pipes


def test_what_does_not_fit() -> None:
    operands = ("f32", 1, 16), ("f32", 1, 32), ("f32", 1, 32)
    for profile, codes in (("a2a3", ["TCONCAT-2"]), ("a5", ["TCONCAT-2"])):
        bench = Bench(profile)
        bench.issue("TCONCAT", *(bench.tile(*o) for o in operands))
        assert bench.findings() == codes
    bench = Bench("cpu")
    with pytest.raises(Refused, match="64 together"):
        bench.issue("TCONCAT", *(bench.tile(*o) for o in operands))
    bench = Bench("a5")
    with pytest.raises(Refused, match="8-bit index"):
        bench.issue("TCONCAT", bench.tile("u8", 4, 128), bench.tile("u8", 4, 64), bench.tile("u8", 4, 64))


@pytest.mark.parametrize("profile", ("a5", "cpu"))
def test_counts_say_how_much_of_a_row(profile: str) -> None:
    bench = Bench(profile)
    src0 = bench.tile("f32", 2, 16, np.arange(32).reshape(2, 16))
    src1 = bench.tile("f32", 2, 16, np.arange(32).reshape(2, 16) + 100)
    dst = bench.tile("f32", 2, 32)
    counts = bench.tile("i16", 2, 16, [[6], [2]], valid=(2, 1)), bench.tile("i16", 2, 16, [[4], [10]], valid=(2, 1))
    bench.issue("TCONCAT", dst, src0, src1, *counts)
    expected = np.zeros((2, 32))
    expected[0, :5], expected[1, :6] = [0, 1, 2, 100, 101], [16, *range(116, 121)]
    assert np.array_equal(bench.read(dst), expected)
    total = bench.tile("i16", 2, 16, valid=(2, 1))
    bench.issue("TCONCAT", dst, src0, src1, total, *counts)
    assert bench.read(total).ravel().tolist() == [10, 12]


@pytest.mark.parametrize(("profile", "total"), [("a5", 8 + 12), ("cpu", 10 + 13)])
def test_counts_that_are_no_whole_elements(profile: str, total: int) -> None:
    bench = Bench(profile)
    src0, src1 = bench.tile("i32", 1, 8, np.arange(8)), bench.tile("i32", 1, 8, np.arange(10, 18))
    dst, counted = bench.tile("i32", 1, 16), bench.tile("i32", 1, 8, valid=(1, 1))
    counts = [bench.tile("i32", 1, 8, [[n]], valid=(1, 1)) for n in (10, 13)]
    bench.issue("TCONCAT", dst, src0, src1, counted, *counts)
    assert bench.read(dst)[0, :5].tolist() == [0, 1, 10, 11, 12]
    assert bench.read(counted).tolist() == [[total]]


def test_the_a5_stops_at_the_valid_columns_of_dst() -> None:
    bench = Bench("a5")
    src0, src1 = bench.tile("f32", 1, 8, [np.arange(8)]), bench.tile("f32", 1, 8, [np.arange(8)])
    dst, total = bench.tile("f32", 1, 16, valid=(1, 10)), bench.tile("i32", 1, 8, valid=(1, 1))
    counts = [bench.tile("i32", 1, 8, [[32]], valid=(1, 1)) for _ in range(2)]
    bench.issue("TCONCAT", dst, src0, src1, total, *counts)
    assert bench.read(dst, 1, 16)[0].tolist() == [*range(8), 0, 1, *[0] * 6]
    assert bench.read(total)[0, 0] == 40


def test_many_counted_rows_fit_a_row_of_the_trace() -> None:
    bench = Bench("a5")
    src0, src1 = bench.tile("f32", 64, 64, np.ones((64, 64))), bench.tile("f32", 64, 64, np.ones((64, 64)))
    counts = [bench.tile("i16", 64, 16, 2 * np.arange(64)[:, None] % 60 + 2, valid=(64, 1)) for _ in range(2)]
    dst = bench.tile("f32", 64, 128)
    bench.issue("TCONCAT", dst, src0, src1, *counts)
    assert bench.read(dst).sum() == 2 * (bench.read(counts[0]) // 2).sum()
