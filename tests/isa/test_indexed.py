"""What moves by index leave in the trace."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ascsim.isa.indexed import MOST_RECORDS, NOTHING, bytes_at, put_bytes, touched
from ascsim.machine.trace import Mode
from harness import Bench


def covered(starts: list[int], size: int) -> set[int]:
    found: set[int] = set()
    for region, mask in touched(1, np.array(starts, np.int64), size):
        found |= {region.start + n for n in range(region.length) if mask is None or mask[n]}
    return found


@given(st.lists(st.integers(0, 3000), max_size=400), st.sampled_from((1, 2, 4, 8)))
@settings(max_examples=40, deadline=None)
def test_the_bytes_are_those_of_the_elements(starts: list[int], size: int) -> None:
    assert covered(starts, size) == {start + n for start in starts for n in range(size)}


def test_what_a_row_cannot_hold_stands_in_rows_below_it() -> None:
    bench = Bench("cpu")
    numbers = np.random.default_rng(1).permutation(64 * 64).reshape(64, 64) * 4
    src, idx = bench.tile("f32", 64, 128, valid=(64, 64)), bench.tile("u32", 64, 64, numbers)
    dst = bench.tile("f32", 128, 128)
    bench.issue("TSCATTER", dst, src, idx)
    rows = bench.trace().rows
    assert len(rows) > 1 and set(rows["parent"][1:]) == {0} and len(set(rows["mnemonic"])) == 1
    assert rows["work"][1:].tolist() == [0] * (len(rows) - 1)
    written = np.zeros(dst.nbytes, bool)
    written[(numbers.ravel()[:, None] * 4 + np.arange(4)).ravel()] = True
    assert np.array_equal(bench.traced(Mode.WRITE)[dst.address : dst.address + dst.nbytes], written)


def test_far_apart_the_smallest_gaps_are_filled() -> None:
    starts = [1000 * n for n in range(1400)] + [10_000_000]
    regions = touched(1, np.array(starts), 4)
    assert len(regions) <= MOST_RECORDS
    assert regions[-1][0].start == 10_000_000  # the largest gap of all stays
    bytes_ = covered(starts, 4)
    assert {start + n for start in starts for n in range(4)} <= bytes_


def test_elements_are_read_and_written_in_order() -> None:
    bench = Bench()
    tile = bench.tile("i32", 1, 8, [np.arange(8)])
    starts = tile.address + np.array([4, 8])
    held = bytes_at(bench.core, 1, np.array([*starts, NOTHING]), 4)
    assert held.view(np.int32).ravel().tolist() == [1, 2, 0]
    put_bytes(bench.core, 1, np.array([tile.address, tile.address, NOTHING]), held)
    assert bench.read(tile)[0].tolist() == [2, *range(1, 8)]
    with pytest.raises(ValueError, match="leave a memory"):
        bytes_at(bench.core, 1, np.array([1 << 40]), 4)
