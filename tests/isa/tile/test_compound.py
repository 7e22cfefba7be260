"""TAXPY, TMULADDDST, TFUSEDMULADD, TSUBRELU, TPRELU, TRSQRT, TADDC and their kin: where each profile rounds."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from ascsim.diagnostics import Refused
from ascsim.machine.dtypes import dtype
from ascsim.machine.trace import Mode
from harness import Bench, Tile

PROFILES = ("a2a3", "a5", "cpu")
ROWS, COLS = 3, 37


def drawn(kind: str, count: int, seed: int = 1) -> list[np.ndarray]:
    """Arrays whose products do not fit the type."""
    rng = np.random.default_rng(seed)
    return [rng.normal(size=(ROWS, COLS)).astype(dtype(kind).numpy) for _ in range(count)]


def placed(bench: Bench, kind: str, arrays: list[np.ndarray]) -> list[Tile]:
    return [bench.tile(kind, ROWS, 48, a, valid=(ROWS, COLS)) for a in arrays]


def once(a: np.ndarray, b: np.ndarray, c: np.ndarray) -> np.ndarray:
    """a * b + c, rounded once, by way of fractions."""
    exact = [
        Fraction(float(x)) * Fraction(float(y)) + Fraction(float(z))
        for x, y, z in zip(a.flat, b.flat, c.flat, strict=True)
    ]
    kind = a.dtype
    found = []
    for value in exact:
        near = kind.type(float(value))
        around = [near, np.nextafter(near, kind.type(np.inf)), np.nextafter(near, kind.type(-np.inf))]
        found.append(min(around, key=lambda n: abs(Fraction(float(n)) - value)))
    return np.array(found, kind).reshape(a.shape)


def fuses(profile: str, kind: str) -> bool:
    return profile == "a5" or (profile == "a2a3" and kind == "f32")


@pytest.mark.parametrize("profile", PROFILES)
@pytest.mark.parametrize("kind", ("f32", "f16"))
def test_products_and_sums(profile: str, kind: str) -> None:
    for name in ("tmuladddst", "tfusedmuladd", "tfusedmuladdrelu"):
        bench = Bench(profile)
        c, a, b = drawn(kind, 3)
        dst, src0, src1 = placed(bench, kind, [c, a, b])
        bench.issue(name, dst, src0, src1)
        terms = (a, b, c) if name == "tmuladddst" else (a, c, b)
        fused = fuses(profile, kind) or (profile == "cpu" and name == "tfusedmuladd")
        want = once(*terms) if fused else terms[0] * terms[1] + terms[2]
        if name.endswith("relu"):
            want = np.where(want > 0, want, 0)
        assert np.array_equal(bench.read(dst), want)
        assert bench.findings() == []


@pytest.mark.parametrize("profile", PROFILES)
def test_axpy(profile: str) -> None:
    for kind, of_src in (("f32", "f32"), ("f16", "f16"), ("f32", "f16")):
        bench = Bench(profile)
        y, x = drawn(kind, 1)[0], drawn(of_src, 2)[1]
        dst, src = placed(bench, kind, [y])[0], placed(bench, of_src, [x])[0]
        bench.issue("taxpy", dst, src, 0.3)
        factor = np.full_like(x, 0.3).astype(y.dtype)
        wide = x.astype(y.dtype)
        want = once(wide, factor, y) if fuses(profile, kind) else wide * factor + y
        assert np.array_equal(bench.read(dst), want)
    with pytest.raises(Refused, match="src has type f32, dst f16"):
        bench.issue("taxpy", *placed(bench, "f16", [y]), *placed(bench, "f32", [x]), 0.3)


def test_axpy_of_other_shapes() -> None:
    for profile, code, changes in (("a2a3", "TAXPY-1", False), ("a5", "TAXPY-1", True)):
        bench = Bench(profile)
        dst, src = bench.tile("f32", 2, 8, np.ones((2, 8))), bench.tile("f32", 2, 8, np.ones((2, 8)), valid=(2, 7))
        bench.issue("taxpy", dst, src, 1)
        assert bench.findings() == [code]
        assert (bench.read(dst) == (2 if changes else 1)).all()


@pytest.mark.parametrize("profile", PROFILES)
def test_differences_above_zero(profile: str) -> None:
    for kind in ("f32", "f16"):
        bench = Bench(profile)
        a, b = drawn(kind, 2)
        a[0, :3], b[0, :3] = [np.nan, 1, 2], [0, 1, np.inf]
        dst, src0, src1 = placed(bench, kind, [a, a, b])
        bench.issue("tsubrelu", dst, src0, src1)
        want = np.where(a - b <= 0, 0, a - b)
        assert np.array_equal(bench.read(dst), want, equal_nan=True)


@pytest.mark.parametrize("profile", PROFILES)
@pytest.mark.parametrize("kind", ("f32", "f16"))
def test_slopes(profile: str, kind: str) -> None:
    bench = Bench(profile)
    a, slope = drawn(kind, 2)
    a[0, :4], slope[0, :4] = [0.0, -0.0, np.nan, np.inf], [-1, 2, 3, 4]
    dst, src0, src1 = placed(bench, kind, [a, a, slope])
    tmp = bench.tile("u8", ROWS + 1, 32)
    bench.issue("tprelu", dst, src0, src1, tmp)
    got = bench.read(dst)
    assert np.array_equal(got, np.where(a > 0, a, a * slope), equal_nan=True)
    assert np.signbit(got[0, 0]) == (profile != "a5") and np.signbit(got[0, 1])
    assert bench.findings() == []
    assert bench.traced(Mode.WRITE)[tmp.address : tmp.address + tmp.nbytes].any() == (profile == "a2a3")


def test_slopes_in_place_and_with_a_small_tmp() -> None:
    bench = Bench("a2a3")
    a, slope = drawn("f32", 2)
    src0, src1 = placed(bench, "f32", [a, slope])
    bench.issue("tprelu", src0, src0, src1, bench.tile("u8", ROWS + 1, 32))
    assert bench.findings() == ["TILE-INPLACE"]
    product = a * slope
    assert np.array_equal(bench.read(src0), product)
    dst = bench.tile("f32", ROWS, 48, valid=(ROWS, COLS))
    bench.issue("tprelu", dst, src0, src1, bench.tile("u8", ROWS, 32))
    assert bench.findings()[1:] == ["TPRELU-2"]


@pytest.mark.parametrize("profile", PROFILES)
@pytest.mark.parametrize("kind", ("f32", "f16"))
@pytest.mark.parametrize("with_tmp", (False, True))
def test_reciprocal_roots(profile: str, kind: str, with_tmp: bool) -> None:
    bench = Bench(profile)
    a = np.abs(drawn(kind, 1)[0])
    a[0, :3] = [0, np.inf, -1]
    dst, src = placed(bench, kind, [a, a])
    tmp = bench.tile(kind, 1, 32 // a.itemsize)
    bench.issue("trsqrt", dst, src, *((tmp,) if with_tmp else ()))
    with np.errstate(all="ignore"):
        exact = (1 / np.sqrt(a.astype(np.float64))).astype(a.dtype)
        twice = (1 / np.sqrt(a).astype(np.float32)).astype(a.dtype)
    in_steps = profile == "a5" or (profile == "a2a3" and with_tmp)
    assert np.array_equal(bench.read(dst), twice if in_steps else exact, equal_nan=True)
    holds = bench.read(tmp)
    assert (holds == 1).all() == (profile == "a2a3" and with_tmp)


def test_subnormals_of_roots_on_the_a5() -> None:
    for precision, want in ((0, np.inf), (1, 1 / np.sqrt(np.float32(1e-39)))):
        bench = Bench("a5")
        src, dst = bench.tile("f32", 1, 8, np.full((1, 8), np.float32(1e-39))), bench.tile("f32", 1, 8)
        bench.issue("trsqrt", dst, src, None, precision)
        assert (bench.read(dst) == want).all()


def test_three_terms_are_for_cpu() -> None:
    exact: dict[str, Any] = {"taddc": lambda a, b, c: (a + b) + c, "tsubc": lambda a, b, c: (a - b) + c}
    for name, function in exact.items():
        for kind in ("f32", "f16", "i32"):
            bench = Bench("cpu")
            arrays = [np.round(a * 100).astype(dtype(kind).numpy) for a in drawn("f32", 3)]
            dst, *sources = placed(bench, kind, [arrays[0], *arrays])
            bench.issue(name, dst, *sources)
            assert np.array_equal(bench.read(dst), function(*arrays))
            bench.issue(name.replace("c", "sc"), dst, sources[0], 3, sources[2])
            three = np.full_like(arrays[0], 3)
            assert np.array_equal(bench.read(dst), function(arrays[0], three, arrays[2]))
    bench = Bench("a5")
    with pytest.raises(Refused, match="not available on a5"):
        bench.issue("taddc", *placed(bench, "f32", drawn("f32", 4)))
