"""TFILLPAD in L1: what becomes zero and what stays."""

from __future__ import annotations

import numpy as np
import pytest

from ascsim.machine.trace import Mode
from ascsim.machine.words import CompactMode, Pipe, Space
from cube import read, tile
from harness import Bench


@pytest.mark.parametrize("profile", ["a2a3", "a5", "cpu"])
@pytest.mark.parametrize(("kind", "valid"), [("f16", (5, 20)), ("i8", (32, 33)), ("f32", (1, 8)), ("f16", (64, 64))])
def test_rows_below_and_boxes_beside_become_zero(profile: str, kind: str, valid: tuple[int, int]) -> None:
    bench = Bench(profile)
    held = tile(bench, Space.L1, kind, 64, 64, np.full((64, 64), 7), valid)
    bench.issue("tfillpad", held, held)
    wide = -(-valid[1] // (32 // held.dtype.size)) * (32 // held.dtype.size)
    expected = np.zeros((64, 64))
    expected[: valid[0], :wide] = 7
    assert np.array_equal(read(bench, held, 64, 64), expected)
    assert bench.traced(Mode.WRITE, Space.L1).sum() == (expected == 0).sum() * held.dtype.size
    assert bench.trace().rows[0]["pipe"] == Pipe.MTE2


@pytest.mark.parametrize("profile", ["a2a3", "a5"])
def test_rows_alone_up_to_the_next_16(profile: str) -> None:
    bench = Bench(profile)
    held = tile(bench, Space.L1, "f16", 64, 64, np.full((64, 64), 7), (5, 20), compact=CompactMode.ROW_ALIGNED_PADDING)
    bench.issue("tfillpad", held, held)
    found = read(bench, held, 64, 64)
    assert not found[5:16, :32].any() and (found[16:] == 7).all() and (found[:5] == 7).all()
    assert (found[:, 32:] == 7).all()
