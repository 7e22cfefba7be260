"""TROWEXPAND and TCOLEXPAND: each type and layout, what is written beyond the valid columns, what is refused."""

from __future__ import annotations

import numpy as np
import pytest

from ascsim.diagnostics import Refused
from ascsim.machine.dtypes import dtype
from ascsim.machine.trace import Mode
from ascsim.machine.words import BLayout
from harness import Bench

PROFILES = ("a2a3", "a5", "cpu")
KINDS = ("f32", "f16", "bf16", "i32", "u16", "i8")


@pytest.mark.parametrize("profile", PROFILES)
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(("rows", "cols"), [(1, 1), (5, 31), (9, 64), (3, 300)])
@pytest.mark.parametrize("column", (False, True))
def test_a_number_fills_its_row(profile: str, kind: str, rows: int, cols: int, column: bool) -> None:
    bench = Bench(profile)
    numbers = np.random.default_rng(cols).integers(1, 90, (rows, 1))
    if column:
        src = bench.tile(kind, 32, 1, numbers, valid=(rows, 1), blayout=BLayout.COL_MAJOR)
    else:
        src = bench.tile(kind, rows, 64, numbers, valid=(rows, 1))
    dst = bench.tile(kind, rows, 320, valid=(rows, cols))
    bench.issue("trowexpand", dst, src)
    assert np.array_equal(bench.read(dst).astype(int), np.repeat(numbers, cols, 1))
    assert bench.findings() == []
    more = rows * (cols % 2) if profile == "a2a3" and kind == "i8" else 0
    assert bench.traced(Mode.WRITE).sum() == rows * cols * dtype(kind).size + more


@pytest.mark.parametrize("profile", PROFILES)
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(("rows", "cols"), [(1, 1), (5, 31), (9, 64), (3, 300)])
def test_a_row_fills_all_rows(profile: str, kind: str, rows: int, cols: int) -> None:
    bench = Bench(profile)
    row = np.random.default_rng(cols).integers(1, 90, (1, cols))
    src, dst = bench.tile(kind, 1, 320, row, valid=(1, cols)), bench.tile(kind, rows, 320, valid=(rows, cols))
    bench.issue("tcolexpand", dst, src)
    assert np.array_equal(bench.read(dst).astype(int), np.repeat(row, rows, 0))
    assert bench.findings() == []
    length = cols * dtype(kind).size
    assert bench.traced(Mode.WRITE).sum() == rows * (-(-length // 32) * 32 if profile == "a2a3" else length)


def test_a_row_of_numbers_for_rows_of_a_block_on_the_a2a3() -> None:
    bench = Bench("a2a3")
    src, dst = bench.tile("f16", 1, 32, [range(32)]), bench.tile("f16", 32, 16)
    bench.issue("trowexpand", dst, src)
    assert np.array_equal(bench.read(dst), np.repeat(np.arange(32)[:, None], 16, 1))
    assert bench.findings() == []


def test_64_bits_on_the_a5() -> None:
    for name in ("trowexpand", "tcolexpand"):
        bench = Bench("a5")
        src, dst = (
            bench.tile("i64", 2, 128, np.full((2, 100), 7), valid=(2, 100)),
            bench.tile("i64", 2, 128, valid=(2, 100)),
        )
        bench.issue(name, dst, src)
        assert bench.read(dst).sum() == 2 * 64 * 7
        assert [code[-1] for code in bench.findings()] == ["4" if name == "trowexpand" else "2"]


def test_the_a5_refuses_a_src_whose_type_has_many_valid_columns() -> None:
    bench = Bench("a5")
    with pytest.raises(Refused, match="src has 16 valid columns"):
        bench.issue("trowexpand", bench.tile("f32", 4, 16), bench.tile("f32", 4, 16))
    bench.issue("trowexpand", bench.tile("f32", 4, 16), bench.tile("f32", 4, 16, valid=(4, 3)))


@pytest.mark.parametrize("name", ("trowexpand", "tcolexpand"))
def test_other_shapes(name: str) -> None:
    for profile in PROFILES:
        bench = Bench(profile)
        src = bench.tile("i32", 4, 16, np.full((4, 16), 3), valid=(4, 1) if name == "trowexpand" else (1, 16))
        dst = bench.tile("i32", 4, 16, valid=(3, 16) if name == "trowexpand" else (4, 15))
        if profile == "cpu":
            with pytest.raises(Refused, match="valid"):
                bench.issue(name, dst, src)
            continue
        bench.issue(name, dst, src)
        assert bench.findings() == [f"{name.upper()}-1"]
        assert (bench.read(dst) == 3).all()
