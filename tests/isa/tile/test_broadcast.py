"""TCOLEXPANDADD and its kin: each type and order, which source is the row, what the A2/A3 and the A5 limit."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ascsim.isa import REGISTRY
from ascsim.machine.dtypes import dtype
from ascsim.machine.trace import Mode
from harness import Bench

PROFILES = ("a2a3", "a5", "cpu")
EXACT: dict[str, Any] = {
    "tcolexpandadd": np.add, "tcolexpandsub": np.subtract, "tcolexpandmul": np.multiply, "tcolexpanddiv": np.divide,
    "tcolexpandmax": np.maximum, "tcolexpandmin": np.minimum,
}  # fmt: skip


@pytest.mark.parametrize("profile", PROFILES)
@pytest.mark.parametrize("name", EXACT)
@given(rows=st.integers(1, 9), cols=st.sampled_from([1, 8, 17, 64, 130]), seed=st.integers(0, 99))
@settings(max_examples=8, deadline=None)
def test_each_row_with_the_row(profile: str, name: str, rows: int, cols: int, seed: int) -> None:
    whole = () if name == "tcolexpanddiv" and profile == "a2a3" else ("i32", "i16")
    for kind in ("f32", "f16", *whole):
        drawn = np.random.default_rng(seed)
        a, b = drawn.integers(1, 90, (rows, cols)), drawn.integers(1, 90, (1, cols))
        orders = [(a, b)] if profile == "cpu" or rows == 1 else [(a, b), (b, a)]
        for first, second in orders:
            bench = Bench(profile)
            src0, src1 = (
                bench.tile(kind, len(v), 160, v.astype(dtype(kind).numpy), valid=(len(v), cols))
                for v in (first, second)
            )
            dst = bench.tile(kind, rows, 144, valid=(rows, cols))
            bench.issue(name, dst, src0, src1)
            want = EXACT[name](first.astype(np.float64), second.astype(np.float64))
            stored = want.astype(np.float32).astype(dtype(kind).numpy)
            assert bench.read(dst)[:, :cols].tolist() == stored.tolist(), (kind, len(first))
            assert bench.findings() == []
            assert bench.traced(Mode.WRITE).sum() == rows * cols * dtype(kind).size


def test_the_a5_flushes_subnormal_quotients() -> None:
    definition = REGISTRY.find("tcolexpanddiv")[0]
    for profile, precision, kept in (("a2a3", 0, True), ("a5", 0, False), ("a5", 1, True)):
        bench = Bench(profile)
        src0, dst = bench.tile("f32", 2, 8, np.full((2, 8), 2.0**-100)), bench.tile("f32", 2, 8)
        src1 = bench.tile("f32", 1, 8, np.full((1, 8), 2.0**40))
        bench.machine.issue(bench.core, definition, (dst, src0, src1, precision), 0)
        assert (bench.read(dst) != 0).all() == kept
