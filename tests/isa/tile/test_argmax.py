"""TROWARGMAX, TCOLARGMAX, TPARTARGMAX and their minima: indices, ties, NaN, the A2/A3's scratch, shapes."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ascsim.diagnostics import Refused
from ascsim.machine.dtypes import dtype
from ascsim.machine.trace import Mode
from harness import Bench

PROFILES = ("a2a3", "a5", "cpu")


def noise(bench: Bench, seed: int = 0) -> None:
    bench.memory()[:] = np.random.default_rng(seed).integers(0, 256, bench.memory().size, np.uint8)


def with_ties(kind: str, rows: int, cols: int, seed: int) -> np.ndarray:
    return np.random.default_rng(seed).integers(0, 9, (rows, cols)).astype(dtype(kind).numpy)


def found(a: np.ndarray, axis: int, name: str) -> np.ndarray:
    wide = a.astype(np.float64)
    return np.argmax(wide, axis) if name.endswith("max") else np.argmin(wide, axis)


@pytest.mark.parametrize("profile", PROFILES)
@pytest.mark.parametrize("name", ("trowargmax", "trowargmin"))
@pytest.mark.parametrize("kind", ("f32", "f16", "i32", "i16"))
@given(rows=st.integers(1, 4), cols=st.sampled_from([1, 7, 63, 64, 65, 128, 129, 200, 700]), seed=st.integers(0, 99))
@settings(max_examples=12, deadline=None)
def test_rows(profile: str, name: str, kind: str, rows: int, cols: int, seed: int) -> None:
    bench = Bench(profile)
    noise(bench, seed)
    a = with_ties(kind, rows, cols, seed)
    src = bench.tile(kind, rows, 704, a, valid=(rows, cols))
    tmp = bench.tile(kind, 4, 704)
    want = found(a, 1, name)
    column = bench.tile("u32", 8, 1, valid=(rows, 1), blayout=1)
    bench.issue(name, column, src, tmp)
    assert bench.read(column).ravel().tolist() == want.tolist()
    wide, value = bench.tile("i32", rows, 16, valid=(rows, 1)), bench.tile(kind, rows, 32, valid=(rows, 1))
    bench.issue(name, value, wide, src, tmp)
    assert bench.read(wide)[:, 0].tolist() == want.tolist()
    assert np.array_equal(bench.read(value)[:, 0], a[np.arange(rows), want])
    assert bench.findings() == []


@pytest.mark.parametrize("cols", (40, 64, 100, 4096, 5000))
def test_what_a_row_leaves_in_tmp_of_the_a2a3(cols: int) -> None:
    bench = Bench("a2a3")
    a = np.random.default_rng(cols).standard_normal((2, cols)).astype(np.float32)
    src, tmp = bench.tile("f32", 2, 5120, a, valid=(2, cols)), bench.tile("f32", 2, 512)
    value, index = bench.tile("f32", 2, 8, valid=(2, 1)), bench.tile("u32", 2, 8, valid=(2, 1))
    bench.issue("trowargmax", value, index, src, tmp)
    held = bench.read(tmp)
    indices = held.view(np.uint32)
    best = a.argmax(1)
    if cols <= 64:
        assert held[0, [0, 2]].tolist() == a.max(1).tolist() and indices[0, [1, 3]].tolist() == best.tolist()
        return
    n1 = -(-cols // 64)
    parts = [a[:, s : s + 64] for s in range(0, cols, 64)]
    places = np.array([p.argmax(1) for p in parts]).T
    if cols <= 4096:
        at = -(-2 * n1 // 8) * 8
        assert np.array_equal(indices[:, :n1], places)
        assert held[:, at].tolist() == a.max(1).tolist()
        assert indices[:, at + 1].tolist() == (best // 64).tolist()
        written = 2 * (2 * n1 + max(n1, 2)) * 4
    else:
        first = -(-n1 // 8) * 8
        last = first + 8
        assert held[:, last].tolist() == a.max(1).tolist()
        assert indices[:, last + 1].tolist() == (best // 4096).tolist()
        written = None
    traced = bench.traced(Mode.WRITE)
    assert written is None or traced[tmp.address : tmp.address + tmp.nbytes].sum() == written
    assert bench.findings() == []


def test_small_scratch_is_told() -> None:
    bench = Bench("a2a3")
    src, tmp, dst = bench.tile("f32", 4, 512), bench.tile("f32", 1, 64), bench.tile("u32", 4, 8, valid=(4, 1))
    bench.issue("trowargmax", dst, src, tmp)
    assert bench.findings() == ["TROWARGMAX-2"]
    columns = bench.tile("u32", 1, 512)
    bench.issue("tcolargmin", columns, src, tmp)
    assert bench.findings() == ["TROWARGMAX-2", "TCOLARGMIN-2"]


def test_nan_in_a_row_of_each_chip() -> None:
    row = np.zeros((1, 192), np.float32)
    row[0, [70, 80, 150]] = [np.nan, 9, 5]
    want = {"a2a3": 70, "a5": 150, "cpu": 80}
    for profile in PROFILES:
        bench = Bench(profile)
        src, tmp, dst = bench.tile("f32", 1, 192, row), bench.tile("f32", 1, 192), bench.tile("u32", 1, 8, valid=(1, 1))
        bench.issue("trowargmax", dst, src, tmp)
        assert bench.read(dst)[0, 0] == want[profile]
    bench = Bench("a5")
    src, value = bench.tile("f32", 1, 64, np.full((1, 64), np.nan)), bench.tile("f32", 1, 8, valid=(1, 1))
    dst, tmp = bench.tile("u32", 1, 8, [[7] * 8], valid=(1, 1)), bench.tile("f32", 1, 64)
    bench.issue("trowargmax", value, dst, src, tmp)
    assert bench.read(value)[0, 0] == -np.inf and bench.read(dst)[0, 0] == 0


@pytest.mark.parametrize("profile", PROFILES)
@pytest.mark.parametrize("name", ("tcolargmax", "tcolargmin"))
@given(rows=st.integers(1, 9), cols=st.sampled_from([1, 15, 64, 70, 128, 200]), seed=st.integers(0, 99))
@settings(max_examples=12, deadline=None)
def test_columns(profile: str, name: str, rows: int, cols: int, seed: int) -> None:
    kinds = {"a2a3": ("f32", "f16"), "a5": ("f32", "f16", "i32", "u16", "i8"), "cpu": ("f32", "i16", "i64")}[profile]
    for kind in kinds:
        bench = Bench(profile)
        noise(bench, seed)
        a = with_ties(kind, rows, cols, seed)
        src, tmp = bench.tile(kind, rows, 256, a, valid=(rows, cols)), bench.tile(kind, 4, 512)
        want = found(a, 0, name)
        index = bench.tile("u32", 1, 256, valid=(1, cols))
        bench.issue(name, index, src, tmp)
        assert bench.read(index)[0].tolist() == want.tolist()
        if kind == "i8":
            continue
        small = dtype(kind).size == 2 and profile != "cpu"
        index, value = (
            bench.tile("i16" if small else "i32", 1, 256, valid=(1, cols)),
            bench.tile(kind, 1, 256, valid=(1, cols)),
        )
        bench.issue(name, value, index, src, tmp)
        assert bench.read(index)[0].tolist() == want.tolist()
        assert np.array_equal(bench.read(value)[0], a[want, np.arange(cols)])
        assert bench.findings() == []


def test_what_columns_leave_in_tmp_of_the_a2a3() -> None:
    bench = Bench("a2a3")
    a = np.random.default_rng(3).standard_normal((5, 100)).astype(np.float16)
    src, tmp = bench.tile("f16", 5, 112, a, valid=(5, 100)), bench.tile("f16", 1, 512, [[-1] * 512])
    dst = bench.tile("i32", 1, 112, valid=(1, 100))
    bench.issue("tcolargmax", dst, src, tmp)
    held = bench.read(tmp)[0]
    assert (held[:100].view(np.int16) == 4).all()
    assert np.array_equal(held[112:212], a.max(0))
    assert np.array_equal(held[224:324], a.argmax(0).astype(np.float16))
    assert (held[324:] == -1).all() and (held[100:112] == -1).all()


def test_indices_through_half_and_unsigned_as_floats_on_the_a2a3() -> None:
    bench = Bench("a2a3")
    a = np.zeros((3000, 16), np.float16)
    a[2049] = 1
    src, tmp = bench.tile("f16", 3000, 16, a), bench.tile("f16", 1, 64)
    dst = bench.tile("i32", 1, 16)
    bench.issue("tcolargmax", dst, src, tmp)
    assert bench.read(dst)[0].tolist() == [2050] * 16
    src = bench.tile("u32", 2, 8, [[1] * 8, [0x80000000] * 8])  # -0.0 as a float
    bench.issue("tcolargmax", bench.tile("u32", 1, 8), src, bench.tile("u32", 1, 64))
    assert bench.findings() == ["TCOLARGMAX-4", "TCOLARGMAX-3"]


def test_after_a_nan_the_last_row_wins_on_the_a2a3() -> None:
    column = np.array([[1.0], [np.nan], [5.0], [0.0]], np.float32).repeat(8, 1)
    for profile, want in (("a2a3", 3), ("a5", 2), ("cpu", 2)):
        bench = Bench(profile)
        src, tmp, dst = bench.tile("f32", 4, 8, column), bench.tile("f32", 1, 64), bench.tile("u32", 1, 8)
        bench.issue("tcolargmax", dst, src, tmp)
        assert bench.read(dst)[0].tolist() == [want] * 8


@pytest.mark.parametrize("profile", PROFILES)
@pytest.mark.parametrize("name", ("tpartargmax", "tpartargmin"))
@given(
    shapes=st.sampled_from([((4, 60),) * 2, ((4, 60), (2, 60)), ((3, 60), (4, 60)), ((4, 60), (4, 33)), ((2, 20), (4, 60))]),
    seed=st.integers(0, 99), kinds=st.sampled_from([("f32", "u32"), ("f16", "i16"), ("f16", "u32")]),
)  # fmt: skip
@settings(max_examples=15, deadline=None)
def test_two_tiles(profile: str, name: str, shapes: Any, seed: int, kinds: Any) -> None:
    bench = Bench(profile)
    kind, index = kinds
    whole = max(shapes)
    (a, b), (ia, ib) = (
        [with_ties(k, *shape, seed + n + more) for n, shape in enumerate(shapes)]
        for k, more in ((kind, 0), (index, 50))
    )
    tiles = [bench.tile(kind, 4, 64, valid=whole)]
    tiles += [bench.tile(kind, 4, 64 + 32 * n, x, valid=x.shape) for n, x in enumerate((a, b))]
    indices = [bench.tile(index, 4, 64, valid=whole), *(bench.tile(index, 4, 64, x, valid=x.shape) for x in (ia, ib))]
    bench.issue(name, *tiles, *indices)
    values, places = bench.read(tiles[0]), bench.read(indices[0])
    for row, col in np.ndindex(whole):
        in_a, in_b = row < a.shape[0] and col < a.shape[1], row < b.shape[0] and col < b.shape[1]
        takes_a = in_a
        if in_a and in_b:
            x, y = (a[row, col], b[row, col]) if name.endswith("max") else (b[row, col], a[row, col])
            takes_a = x > y if profile == "cpu" else x >= y
        want = (a, ia) if takes_a else (b, ib)
        assert (values[row, col], places[row, col]) == (want[0][row, col], want[1][row, col])
    assert bench.findings() == []


def test_two_tiles_of_shapes_that_do_not_fit() -> None:
    for profile in PROFILES:
        bench = Bench(profile)
        dst, a, b = (
            bench.tile("f32", 4, 64, np.full((4, 64), n), valid=(4, c)) for n, c in ((7, 64), (1, 32), (2, 32))
        )
        idx = [bench.tile("u32", 4, 64, valid=(4, t.valid_cols)) for t in (dst, a, b)]
        if profile == "cpu":
            with pytest.raises(Refused, match="one of them must be dst's"):
                bench.issue("tpartargmax", dst, a, b, *idx)
            continue
        bench.issue("tpartargmax", dst, a, b, *idx)
        assert bench.findings() == ["TPARTARGMAX-1"]
        if profile == "a2a3":
            assert (bench.read(dst) == 7).all()


def test_half_with_wide_indices_on_the_a2a3() -> None:
    bench = Bench("a2a3")
    dst, a, b = (bench.tile("f16", 1, 256, np.full((1, 256), n), valid=(1, 200)) for n in (0, 1, 2))
    idx = [bench.tile("u32", 1, 256, np.full((1, 256), n), valid=(1, 200)) for n in (0, 1, 2)]
    bench.issue("tpartargmax", dst, a, b, *idx)
    assert [int(n) for n in bench.read(dst)[0, [0, 63, 64, 127, 128, 199]]] == [2, 2, 0, 0, 2, 2]
    assert bench.read(idx[0])[0, [0, 63, 64, 127, 128, 191, 192, 199]].tolist() == [2, 2, 0, 0, 2, 2, 0, 0]
    assert bench.findings() == ["TPARTARGMAX-2"]


@pytest.mark.parametrize("profile", ["a5", "cpu"])
@pytest.mark.parametrize("name", ["TROWARGMAX", "TCOLARGMIN"])
def test_a_tmp_that_is_not_used_needs_no_address(profile: str, name: str) -> None:
    bench = Bench(profile)
    src, dst = bench.tile("f32", 8, 64, np.arange(512)), bench.tile("u32", 8, 64, valid=(8, 1))
    if name == "TCOLARGMIN":
        dst = bench.tile("u32", 1, 64)
    bench.issue(name, dst, src, bench.tile("f32", 8, 64, at=-1))
    assert (bench.read(dst) == (63 if name == "TROWARGMAX" else 0)).all()
