"""TGATHERB: blocks from anywhere, tails, offsets that leave src."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ascsim.machine.trace import Mode
from harness import Bench

PROFILES = ("a2a3", "a5", "cpu")
TYPES = ("f32", "i32", "f16", "bf16", "i16", "i8", "u8")


@pytest.mark.parametrize("profile", PROFILES)
@pytest.mark.parametrize("kind", TYPES)
@given(data=st.data())
@settings(max_examples=8, deadline=None)
def test_blocks_come_from_their_offsets(profile: str, kind: str, data: st.DataObject) -> None:
    bench = Bench(profile)
    bench.memory()[:] = np.random.default_rng(data.draw(st.integers(0, 99))).integers(0, 256, bench.memory().size)
    size = bench.tile(kind, 1, 32).dtype.size
    rows, repeats = data.draw(st.integers(1, 4)), data.draw(st.integers(1, 3))
    cols = 256 // size * repeats
    src = bench.tile(kind, 4, 256 // size)
    dst = bench.tile(kind, rows, cols)
    numbers = np.random.default_rng(data.draw(st.integers(0, 99))).integers(0, 1024 - 32, (rows, 8 * repeats))
    offset = bench.tile("u32", rows, 8 * repeats, numbers)
    held = bench.memory()[src.address : src.address + 1024].copy()
    before = bench.memory().copy()
    bench.issue("TGATHERB", dst, src, offset)
    expected = held[numbers[..., None] + np.arange(32)].reshape(rows, -1)
    assert np.array_equal(bench.memory()[dst.address : dst.address + dst.nbytes].reshape(rows, -1), expected)
    written = bench.traced(Mode.WRITE)
    assert np.array_equal(bench.memory()[~written], before[~written])
    read = bench.traced(Mode.READ)[src.address : src.address + 1024]
    touched = np.zeros(1024, bool)
    touched[numbers[..., None] + np.arange(32)] = True
    assert np.array_equal(read, touched)
    assert bench.findings() == []


def test_the_end_of_a_row_goes_wrong_on_a2a3() -> None:
    bench = Bench("a2a3")
    src = bench.tile("f32", 1, 64, [np.arange(64)])
    dst = bench.tile("f32", 2, 64, valid=(2, 8))
    bench.issue("TGATHERB", dst, src, bench.tile("u32", 2, 16, np.arange(32).reshape(2, 16) * 4, valid=(2, 1)))
    assert bench.findings() == ["E-TGATHERB-TAIL"]
    assert bench.read(dst)[0].tolist() == list(range(8))
    assert bench.read(dst)[1].tolist() == list(range(8, 16))  # offset 8 of row 0, not offset 0 of row 1
    assert bench.traced(Mode.WRITE).sum() == 512


@pytest.mark.parametrize("profile", ("a5", "cpu"))
def test_elsewhere_rows_end_where_they_should(profile: str) -> None:
    bench = Bench(profile)
    src = bench.tile("f32", 1, 64, [np.arange(64)])
    dst = bench.tile("f32", 2, 64, valid=(2, 8))
    bench.issue("TGATHERB", dst, src, bench.tile("u32", 2, 16, np.arange(32).reshape(2, 16) * 4, valid=(2, 1)))
    assert bench.findings() == []
    assert bench.read(dst).tolist() == [list(range(8)), list(range(16, 24))]
    assert bench.traced(Mode.WRITE).sum() == 64


@pytest.mark.parametrize("profile", PROFILES)
def test_offsets_that_leave_src_are_told(profile: str) -> None:
    bench = Bench(profile)
    src, dst = bench.tile("f32", 1, 64), bench.tile("f32", 1, 64, [np.ones(64)])
    bench.issue("TGATHERB", dst, src, bench.tile("u32", 1, 8, [[0, 32, 64, 96, 128, 160, 192, 225]]))
    assert bench.findings() == ["TGATHERB-1"]
    assert bench.read(dst)[0, 56] == (1 if profile == "cpu" else 0)
