"""TTRI: against NumPy, beyond the valid columns, the steps of A2/A3."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ascsim.machine.trace import Kind, Mode
from harness import Bench


@pytest.mark.parametrize("profile", ("a2a3", "a5", "cpu"))
@pytest.mark.parametrize("kind", ("f32", "f16", "i32", "u16"))
@given(st.integers(1, 12), st.integers(1, 64), st.integers(-80, 80), st.integers(0, 1))
@settings(max_examples=12, deadline=None)
def test_ones_on_one_side_of_a_diagonal(
    profile: str, kind: str, rows: int, cols: int, diagonal: int, upper: int
) -> None:
    bench = Bench(profile)
    dst = bench.tile(kind, 12, 128, np.full((12, 128), 7), valid=(rows, cols))
    bench.issue("TTRI", dst, diagonal, upper)
    row, col = np.arange(rows)[:, None], np.arange(cols)
    ones = col >= row + diagonal if upper else col <= row + diagonal
    assert np.array_equal(bench.read(dst), ones.astype(bench.read(dst).dtype))
    beyond = bench.read(dst, rows, 128)[:, cols:] != 7
    assert bench.findings() == (["E-TTRI-WIDE"] if beyond.any() else [])
    assert profile == "a5" or not beyond.any()
    written = bench.traced(Mode.WRITE)
    assert written.sum() == (rows * cols + beyond.sum()) * dst.dtype.size


def test_a2a3_fills_row_by_row_with_barriers() -> None:
    bench = Bench("a2a3")
    bench.issue("TTRI", bench.tile("f32", 2, 8), -1)
    kinds = [row["kind"] for row in bench.trace().rows[1:] if row["n_access"] or row["kind"] == Kind.BARRIER]
    assert kinds == [Kind.INSTRUCTION, Kind.BARRIER] * 3
