"""TREM, TREMS, TFMOD, TFMODS: exact where quotients are small, each chip's steps, in place, what becomes of int32 sources."""

from __future__ import annotations

import numpy as np
import pytest

from ascsim.diagnostics import Refused
from ascsim.machine.dtypes import dtype
from ascsim.machine.trace import Mode
from harness import Bench

ROWS, COLS = 3, 50
TYPES = {"a2a3": ("f32", "i32"), "a5": ("f32", "f16", "i32", "u32", "i16", "u16", "i64", "u64")}
TYPES["cpu"] = TYPES["a5"]
CASES = [(p, k) for p, kinds in TYPES.items() for k in kinds]


def drawn(kind: str, seed: int = 1) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    low = 0 if kind.startswith("u") else -900
    a = rng.integers(low, 900, (ROWS, COLS)).astype(dtype(kind).numpy)
    b = rng.integers(3, 90, (ROWS, COLS)) * (
        1 if kind.startswith("u") or kind == "i64" else rng.choice([-1, 1], (ROWS, COLS))
    )
    return a, b.astype(a.dtype)


@pytest.mark.parametrize(("profile", "kind"), CASES)
def test_small_quotients_are_exact(profile: str, kind: str) -> None:
    a, b = drawn(kind)
    for name in ("trem", "trems", "tfmod", "tfmods"):
        if name.startswith("tfmod") and (kind.endswith("64") or (profile, kind) == ("a2a3", "i32")):
            continue
        bench = Bench(profile)
        src0, src1, dst = (bench.tile(kind, ROWS, 64, v, valid=(ROWS, COLS)) for v in (a, b, a))
        tmp = (bench.tile(kind, 1, 256),) if name.startswith("trem") else ()
        by = b if not name.endswith("s") else np.full_like(b, 7)
        bench.issue(name, dst, src0, *((7,) if name.endswith("s") else (src1,)), *tmp)
        wide = a.astype(np.float64), by.astype(np.float64)
        truncated = name.startswith("tfmod") or (kind == "i64" and profile == "a5")
        want = np.fmod(*wide) if truncated else wide[0] % wide[1]
        assert np.array_equal(bench.read(dst).astype(np.float64), want)
        assert np.array_equal(bench.read(src0), a)
        warned = name == "trem" and (profile, kind) == ("a2a3", "i32")
        assert bench.findings() == (["TREM-3"] if warned else [])
        if warned:
            assert np.array_equal(bench.read(src1).view(np.float32), b)
        else:
            assert np.array_equal(bench.read(src1), b)


def test_steps_of_floats() -> None:
    a, b = np.float32(1e9), np.float32(0.3)
    for profile in ("a2a3", "a5"):
        bench = Bench(profile)
        src0, src1, dst = (
            bench.tile("f32", 1, 8, np.full((1, 8), a)),
            bench.tile("f32", 1, 8, np.full((1, 8), b)),
            bench.tile("f32", 1, 8),
        )
        bench.issue("tfmod", dst, src0, src1)
        assert (bench.read(dst) == a - np.trunc(a / b) * b).all()
        bench.issue("tfmod", dst, src0, src1, 1)
        exact = np.fmod(a, b)
        assert (bench.read(dst) == exact).all() == (profile == "a5")


def test_half_is_rounded_towards_zero_on_the_a5() -> None:
    bench = Bench("a5")
    a, b = np.float16(1.001), np.float16(300)
    src0, src1, dst = (
        bench.tile("f16", 1, 16, np.full((1, 16), -a)),
        bench.tile("f16", 1, 16, np.full((1, 16), b)),
        bench.tile("f16", 1, 16),
    )
    bench.issue("trem", dst, src0, src1, None)
    left = np.float32(-a) + np.float32(b)
    near = np.float16(left)
    assert (bench.read(dst) == (near if near <= left else np.nextafter(near, np.float16(0)))).all()


def test_corrections_of_trems_on_the_a2a3_look_at_64_columns() -> None:
    x = np.float32(0.1)
    rng = np.random.default_rng(3)
    tries = np.nextafter(rng.integers(1, 3000, 20000).astype(np.float32) * x, np.float32(0))
    left = tries - np.floor(tries / x) * x
    wrong = tries[left * x < 0][0]
    row = np.full((1, 128), 0.25, np.float32)
    row[0, 5], row[0, 70] = wrong, wrong
    bench = Bench("a2a3")
    src, dst = bench.tile("f32", 1, 128, row), bench.tile("f32", 1, 128)
    bench.issue("trems", dst, src, float(x), bench.tile("f32", 1, 128))
    assert bench.findings() == ["TREMS-3"]
    plain = row - np.floor(row / x) * x
    want = plain.copy()
    want[0, [5, 69]] += x
    assert np.array_equal(bench.read(dst), want)


def test_in_place_on_the_a2a3() -> None:
    a, b = drawn("f32")
    for name, at in (("trem", 0), ("tfmod", 1), ("tfmods", 0)):
        bench = Bench("a2a3")
        sources = [bench.tile("f32", ROWS, 64, v, valid=(ROWS, COLS)) for v in (a, b)]
        given = [sources[0], 7] if name == "tfmods" else sources
        bench.issue(name, sources[at], *given, *((bench.tile("f32", 1, 256),) if name == "trem" else ()))
        assert bench.findings() == ["TILE-INPLACE"]
        right = np.fmod(a, 7 if name == "tfmods" else b)
        assert not np.array_equal(bench.read(sources[at]), right)


def test_tmp_of_the_a2a3() -> None:
    bench = Bench("a2a3")
    a, b = drawn("f32")
    dst, src0, src1 = (bench.tile("f32", ROWS, 64, v, valid=(ROWS, COLS)) for v in (a, a, b))
    tmp = bench.tile("f32", 1, 256)
    bench.issue("trem", dst, src0, src1, tmp)
    written = np.flatnonzero(bench.traced(Mode.WRITE)[tmp.address : tmp.address + tmp.nbytes])
    assert np.array_equal(written, np.r_[0 : COLS * 4, 256:512])
    bench.issue("trem", dst, src0, src1, bench.tile("f32", 1, 64))
    assert bench.findings() == ["TREM-2"]
    with pytest.raises(Refused, match="has no tmp"):
        bench.issue("trem", dst, src0, src1)


@pytest.mark.parametrize("profile", ("a5", "cpu"))
def test_by_zero(profile: str) -> None:
    bench = Bench(profile)
    src0, src1, dst = (
        bench.tile("i32", 1, 8, np.full((1, 8), 5)),
        bench.tile("i32", 1, 8, np.zeros((1, 8))),
        bench.tile("i32", 1, 8),
    )
    bench.issue("trem", dst, src0, src1)
    assert not bench.read(dst).any()
