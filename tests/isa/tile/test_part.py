"""TPARTADD and its kin: parts of either source, what the A2/A3 copy beside, in place, regions that do not fit."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ascsim.machine.dtypes import dtype
from ascsim.machine.trace import Mode
from harness import Bench

PROFILES = ("a2a3", "a5", "cpu")
EXACT: dict[str, Any] = {
    "tpartadd": np.add, "tpartmul": np.multiply, "tpartmax": np.maximum, "tpartmin": np.minimum,
}  # fmt: skip


@pytest.mark.parametrize("profile", PROFILES)
@pytest.mark.parametrize("name", EXACT)
@given(
    rows=st.integers(1, 6), cols=st.sampled_from([1, 9, 16, 70]), less=st.tuples(st.integers(0, 6), st.integers(0, 70)),
    swapped=st.booleans(), same=st.booleans(), seed=st.integers(0, 99),
)  # fmt: skip
@settings(max_examples=20, deadline=None)
def test_parts(
    profile: str, name: str, rows: int, cols: int, less: tuple[int, int], swapped: bool, same: bool, seed: int
) -> None:
    part = max(rows - less[0], 0), max(cols - less[1], 0)
    for kind in ("f32", "f16", "i32", "i16"):
        bench, drawn = Bench(profile), np.random.default_rng(seed)
        a, b = (drawn.integers(-40, 40, (6, 80)) for _ in range(2))
        large = bench.tile(kind, 6, 80, a, valid=(rows, cols))
        small = bench.tile(kind, 6, 80, b, valid=part)
        dst = bench.tile(kind, 6, 80 if same else 96, valid=(rows, cols))
        bench.issue(name, dst, *((small, large) if swapped else (large, small)))
        want = a[:rows, :cols].copy()
        want[: part[0], : part[1]] = EXACT[name](a, b)[: part[0], : part[1]]
        assert np.array_equal(bench.read(dst), want.astype(dtype(kind).numpy))
        assert bench.findings() == []
        written = bench.traced(Mode.WRITE).sum()
        assert written >= rows * cols * dtype(kind).size
        assert profile == "a2a3" or written == rows * cols * dtype(kind).size


def test_whole_rows_are_copied_on_the_a2a3() -> None:
    bench = Bench("a2a3")
    large = bench.tile("f32", 4, 16, np.arange(64).reshape(4, 16), valid=(4, 9))
    small, dst = bench.tile("f32", 4, 16, np.ones((2, 9)), valid=(2, 9)), bench.tile("f32", 4, 16, valid=(4, 9))
    bench.issue("tpartadd", dst, large, small)
    assert np.array_equal(bench.read(dst, 4, 16)[2:], np.arange(32, 64).reshape(2, 16))
    wide = bench.tile("f32", 4, 32, valid=(4, 9))
    bench.issue("tpartadd", wide, large, small)
    assert np.array_equal(bench.read(wide, 4, 32)[2:, :16], np.arange(32, 64).reshape(2, 16))
    assert not bench.read(wide, 4, 32)[:, 16:].any()


def test_in_place_with_fewer_columns() -> None:
    for profile, want, codes in (("a2a3", 6, ["TILE-INPLACE"]), ("a5", 5, []), ("cpu", 5, [])):
        bench = Bench(profile)
        large = bench.tile("i32", 2, 16, np.full((2, 16), 3))
        small = bench.tile("i32", 2, 16, np.full((2, 16), 2), valid=(2, 8))
        bench.issue("tpartadd", bench.tile("i32", 2, 16, at=small.address), large, small)
        assert (bench.read(small) == want).all()
        assert bench.findings() == codes


@pytest.mark.parametrize("profile", PROFILES)
def test_neither_covers_dst(profile: str) -> None:
    bench = Bench(profile)
    src0, src1 = (bench.tile("i32", 4, 16, np.full((4, 16), n), valid=v) for n, v in ((1, (2, 16)), (2, (4, 8))))
    dst = bench.tile("i32", 4, 16, np.full((4, 16), 9))
    bench.issue("tpartadd", dst, src0, src1)
    assert bench.findings() == {"a2a3": ["TPARTADD-1"], "a5": ["TPARTADD-2"], "cpu": []}[profile]
    got = bench.read(dst)
    if profile == "a2a3":
        assert (got == 9).all() and not bench.traced(Mode.WRITE).any()
    else:
        assert (got[:2, :8] == 3).all() and (got[2:, :8] == 2).all()
        assert profile == "a5" or ((got[:2, 8:] == 1).all() and (got[2:, 8:] == 0).all())


def test_64_bits_on_the_a5() -> None:
    bench = Bench("a5")
    a, b = (np.random.default_rng(n).integers(-(2**62), 2**62, (3, 70)) for n in (1, 2))
    src0, src1, dst = bench.tile("i64", 3, 72, a, valid=(3, 70)), bench.tile("i64", 3, 72, b, valid=(2, 5)), bench.tile(
        "i64", 3, 72, valid=(3, 70)
    )  # fmt: skip
    bench.issue("tpartmin", dst, src0, src1)
    want = a.copy()
    want[:2, :5] = np.minimum(a, b)[:2, :5]
    want[:, 64:] = 0
    assert np.array_equal(bench.read(dst), want)
    assert bench.findings() == ["TPARTMIN-3"]
