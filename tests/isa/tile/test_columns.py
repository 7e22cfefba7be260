"""TCOLSUM, TCOLPROD, TCOLMAX, TCOLMIN: each type, the order of additions, what is written beside the result."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ascsim.isa import REGISTRY
from ascsim.machine.dtypes import dtype
from ascsim.machine.trace import Mode
from harness import Bench

PROFILES = ("a2a3", "a5", "cpu")
EXACT = {"tcolsum": np.add, "tcolprod": np.multiply, "tcolmax": np.maximum, "tcolmin": np.minimum}
BINARY = next(d for d in REGISTRY.find("tcolsum") if len(d.inputs) == 4)
PLAIN = next(d for d in REGISTRY.find("tcolsum") if len(d.inputs) == 2)


@pytest.mark.parametrize("profile", PROFILES)
@pytest.mark.parametrize("name", EXACT)
@given(rows=st.integers(1, 9), cols=st.sampled_from([1, 8, 17, 64, 130]), seed=st.integers(0, 99))
@settings(max_examples=10, deadline=None)
def test_whole_numbers(profile: str, name: str, rows: int, cols: int, seed: int) -> None:
    for kind in ("f32", "f16", "i32", "i16") if profile == "a2a3" else ("f32", "bf16", "u16", "i32", "f16"):
        bench = Bench(profile)
        a = np.random.default_rng(seed).integers(1, 3, (rows, cols)).astype(dtype(kind).numpy)
        src, dst = bench.tile(kind, rows, 160, a, valid=(rows, cols)), bench.tile(kind, 1, 160, valid=(1, cols))
        bench.issue(name, dst, src)
        want = EXACT[name].reduce(a.astype(np.float64), axis=0)
        assert bench.read(dst)[0].astype(np.float64).tolist() == want.tolist()
        assert bench.findings() == []
        written = bench.traced(Mode.WRITE).sum()
        size = cols * dtype(kind).size
        assert written == (-(-size // 32) * 32 if profile == "a2a3" else size)


def test_the_order_of_additions() -> None:
    column = np.array([[2048.0], [1.0], [1.0], [1.0]], np.float16).repeat(16, 1)
    for profile, plain, halves in (("a2a3", 2048, 2050), ("a5", 2052, 2050), ("cpu", 2048, 2048)):
        bench = Bench(profile)
        src, dst, tmp = bench.tile("f16", 4, 16, column), bench.tile("f16", 1, 16), bench.tile("f16", 2, 16)
        bench.machine.issue(bench.core, PLAIN, (dst, src), 0)
        assert bench.read(dst)[0, 0] == plain
        bench.machine.issue(bench.core, BINARY, (dst, src, tmp, 1), 0)
        assert bench.read(dst)[0, 0] == halves
        bench.machine.issue(bench.core, BINARY, (dst, src, tmp, 0), 0)
        assert bench.read(dst)[0, 0] == plain


@pytest.mark.parametrize("rows", (2, 3, 5, 7, 8, 13))
def test_sums_of_neighbours_and_what_they_leave_in_tmp(rows: int) -> None:
    a = np.arange(rows * 100, dtype=np.int32).reshape(rows, 100)
    for profile in ("a2a3", "a5"):
        bench = Bench(profile)
        src, dst = bench.tile("i32", rows, 104, a, valid=(rows, 100)), bench.tile("i32", 1, 104, valid=(1, 100))
        tmp = bench.tile("i32", 8, 104, np.full((8, 104), -1))
        bench.machine.issue(bench.core, BINARY, (dst, src, tmp, 1), 0)
        assert bench.read(dst)[0].tolist() == a.sum(0).tolist()
        held = bench.read(tmp)
        assert (held[rows // 2 :] == -1).all()
        assert held[0, 0] == (
            a[:, 0].sum() if profile == "a2a3" else a[:, 64].sum()
        )  # the A5's second part lies over the first
        assert bench.findings() == []


def test_padding_comes_along_on_the_a2a3() -> None:
    bench = Bench("a2a3")
    src = bench.tile("f32", 2, 8, np.arange(16).reshape(2, 8), valid=(2, 3))
    dst = bench.tile("f32", 1, 8, [[-1] * 8], valid=(1, 3))
    bench.issue("tcolmax", dst, src)
    assert bench.read(dst, 1, 8)[0].tolist() == [8, 9, 10, 3, 4, 5, 6, 7]


def test_small_scratch_is_told() -> None:
    bench = Bench("a5")
    src, dst, tmp = bench.tile("f32", 16, 64), bench.tile("f32", 1, 64), bench.tile("f32", 1, 64)
    bench.machine.issue(bench.core, BINARY, (dst, src, tmp, 1), 0)
    assert bench.findings() == ["TCOLSUM-2"]
