"""TSTORE from L0C: layouts, conversions, sums, what chips look at and what not."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from ascsim.diagnostics import Refused
from ascsim.isa.tile.cube_store import ReluPreMode
from ascsim.isa.tile.transfer import ND, NZ, AtomicType, STPhase
from ascsim.machine.dtypes import dtype
from ascsim.machine.operands import GlobalTensor
from ascsim.machine.trace import Mode
from ascsim.machine.words import CompactMode, Pipe, Space
from cube import read, tile, whole
from harness import Bench

PROFILES = ("a2a3", "a5", "cpu")
CHIPS = ("a2a3", "a5")
BASE = 4096


def view(kind: str, rows: int, cols: int, pitch: int) -> GlobalTensor:
    return GlobalTensor(dtype(kind), BASE, (1, 1, 1, rows, cols), (1, 1, 1, pitch, 1), ND)


def stored(bench: Bench, kind: str, rows: int, cols: int, pitch: int) -> np.ndarray:
    known = dtype(kind)
    held = bench.memory(Space.GM)[BASE : BASE + rows * pitch * known.size].view(known.numpy)
    return held.reshape(rows, pitch)[:, :cols].copy()


@pytest.mark.parametrize("profile", PROFILES)
@pytest.mark.parametrize(("sums", "kind"), [("f32", "f32"), ("f32", "f16"), ("f32", "bf16"), ("i32", "i32")])
def test_the_valid_region_becomes_a_matrix(profile: str, sums: str, kind: str) -> None:
    bench = Bench(profile)
    data = whole((21, 35), sums)
    bench.issue("tstore", view(kind, 21, 35, 40), tile(bench, Space.L0C, sums, 32, 48, data, (21, 35)))
    assert bench.findings() == []
    assert np.array_equal(stored(bench, kind, 21, 35, 40), data.astype(dtype(kind).numpy))
    assert bench.trace().rows[0]["pipe"] == Pipe.FIX
    assert bench.traced(Mode.WRITE, Space.GM).sum() == 21 * 35 * dtype(kind).size


@pytest.mark.parametrize("profile", PROFILES)
@pytest.mark.parametrize(("kind", "wide"), [("f32", 16), ("f32", 8), ("f16", 16)])
def test_boxes_are_stored_as_boxes(profile: str, kind: str, wide: int) -> None:
    bench = Bench(profile)
    data = whole((32, 48), "f32")
    shape = (1, 48 // wide, 2, 16, wide)
    seen = GlobalTensor(dtype(kind), BASE, shape, (1, 32 * wide, 16 * wide, wide, 1), NZ)
    bench.issue("tstore", seen, tile(bench, Space.L0C, "f32", 32, 48, data))
    assert bench.findings() == []
    found = stored(bench, kind, 1, 32 * 48, 32 * 48).reshape(48 // wide, 32, wide)
    assert np.array_equal(found.transpose(1, 0, 2).reshape(32, 48), data)


@pytest.mark.parametrize(
    ("profile", "kind", "expected"),
    [
        ("a2a3", "f16", [65504, -65504, 0, 65504]), ("a5", "f16", [np.inf, -np.inf, np.nan, np.inf]),
        ("cpu", "f16", [np.inf, -np.inf, np.nan, np.inf]), ("a2a3", "bf16", [3.3895314e38, -3.3895314e38, 0, 1e5]),
        ("a5", "bf16", [3.3895314e38, -3.3895314e38, 0, 1e5]), ("cpu", "bf16", [np.inf, -np.inf, np.nan, 1e5]),
    ],
)  # fmt: skip
def test_what_a_narrow_float_does_not_hold(profile: str, kind: str, expected: list[float]) -> None:
    bench = Bench(profile)
    data = np.array([[np.inf, -np.inf, np.nan, 1e5]], np.float32)
    bench.issue("tstore", view(kind, 1, 4, 4), tile(bench, Space.L0C, "f32", 16, 16, data, (1, 4)))
    found = stored(bench, kind, 1, 4, 4)[0].astype(np.float32)
    assert np.allclose(found, expected, rtol=1e-2, equal_nan=True)


def test_conversion_rounds_to_nearest_even() -> None:
    bench = Bench("a2a3")
    data = np.array([[2049, 2051, -2049]], np.float32)
    bench.issue("tstore", view("f16", 1, 3, 3), tile(bench, Space.L0C, "f32", 16, 16, data, (1, 3)))
    assert stored(bench, "f16", 1, 3, 3)[0].tolist() == [2048, 2052, -2048]


@pytest.mark.parametrize("profile", PROFILES)
def test_relu_and_atomic_add(profile: str) -> None:
    bench = Bench(profile)
    data = whole((16, 16), "f32")
    held, seen = tile(bench, Space.L0C, "f32", 16, 16, data), view("f16", 16, 16, 16)
    bench.issue("tstore", seen, held, AtomicType.AtomicAdd, STPhase.Unspecified, ReluPreMode.NormalRelu)
    bench.issue("tstore", seen, held, AtomicType.AtomicAdd)
    assert np.array_equal(stored(bench, "f16", 16, 16, 16), np.maximum(data, 0) + data)
    assert bench.traced(Mode.READ, Space.GM).sum() == 512


@pytest.mark.parametrize("profile", CHIPS)
def test_boxes_of_a_compact_tile_lie_packed(profile: str) -> None:
    bench = Bench(profile)
    data = whole((16, 32), "f32")
    tile(bench, Space.L0C, "f32", 16, 32, data)
    bench.issue("tstore", view("f32", 16, 32, 32), tile(bench, Space.L0C, "f32", 32, 32, valid=(16, 32)))
    assert not np.array_equal(stored(bench, "f32", 16, 32, 32), data)
    compact = tile(bench, Space.L0C, "f32", 32, 32, valid=(16, 32), compact=CompactMode.NORMAL)
    bench.issue("tstore", view("f32", 16, 32, 32), compact)
    assert bench.findings() == []
    assert np.array_equal(stored(bench, "f32", 16, 32, 32), data)


@pytest.mark.parametrize("profile", CHIPS)
def test_outer_dimensions_are_passed_over(profile: str) -> None:
    bench = Bench(profile)
    data = whole((16, 16), "f32")
    seen = GlobalTensor(dtype("f32"), BASE, (1, 1, 2, 8, 16), (1, 1, 400, 16, 1), ND)
    bench.issue("tstore", seen, tile(bench, Space.L0C, "f32", 16, 16, data))
    assert bench.findings() == ["TSTORE-6"]
    assert np.array_equal(stored(bench, "f32", 16, 16, 16), data)


def test_portably_all_dimensions_count() -> None:
    bench = Bench("cpu")
    data = whole((16, 16), "f32")
    seen = GlobalTensor(dtype("f32"), BASE, (1, 1, 2, 8, 16), (1, 1, 400, 16, 1), ND)
    bench.issue("tstore", seen, tile(bench, Space.L0C, "f32", 16, 16, data))
    assert np.array_equal(stored(bench, "f32", 2, 128, 400).reshape(16, 16), data)


def test_a_phase_is_not_implemented() -> None:
    bench = Bench("a5")
    with pytest.raises(Refused, match="follows TMATMUL box by box"):
        bench.issue("tstore", view("f32", 16, 16, 16), tile(bench, Space.L0C, "f32", 16, 16), 0, STPhase.Final)


# To L1


@pytest.mark.parametrize("profile", PROFILES)
@pytest.mark.parametrize("kind", ["f16", "bf16"])
def test_a_result_becomes_a_matrix_in_l1(profile: str, kind: str) -> None:
    bench = Bench(profile)
    data = whole((48, 32), "f32")
    valid = (48, 32) if profile == "cpu" else (37, 20)
    dst = tile(bench, Space.L1, kind, 48, 32, valid=valid)
    bench.issue("tmov", dst, tile(bench, Space.L0C, "f32", 48, 32, data, valid))
    assert bench.findings() == []
    assert np.array_equal(read(bench, dst, 48, 32), data.astype(dtype(kind).numpy)), "whole boxes, and all rows"
    assert bench.trace().rows["pipe"][0] == Pipe.FIX


def test_columns_that_are_not_valid_stay_in_their_boxes() -> None:
    bench = Bench("a2a3")
    dst = tile(bench, Space.L1, "f16", 16, 64, np.full((16, 64), 7))
    dst = replace(dst, valid_cols=33)
    bench.issue("tmov", dst, tile(bench, Space.L0C, "f32", 16, 64, whole((16, 64), "f32"), (16, 33)))
    assert np.array_equal(read(bench, dst, 16, 64)[:, :48], whole((16, 64), "f32")[:, :48])
    assert (read(bench, dst, 16, 64)[:, 48:] == 7).all()


@pytest.mark.parametrize(("profile", "most"), [("a2a3", 65504.0), ("a5", np.inf), ("cpu", np.inf)])
def test_moves_to_l1_convert_as_stores_do(profile: str, most: float) -> None:
    bench = Bench(profile)
    data = np.zeros((16, 16), np.float32)
    data[0, :3] = 1e6, -1e6, 1.0 + 2**-12
    src = tile(bench, Space.L0C, "f32", 16, 16, data)
    dst = tile(bench, Space.L1, "f16", 16, 16)
    bench.issue("tmov", dst, src)
    assert read(bench, dst)[0, :3].tolist() == [most, -most, 1.0]
    bench.issue("tmov", dst, src, ReluPreMode.NormalRelu)
    assert read(bench, dst)[0, :3].tolist() == [most, 0.0, 1.0]


@pytest.mark.parametrize(("kind", "code"), [("f32", "L002"), ("i8", "L002")])
def test_moves_with_a_factor_are_not_there(kind: str, code: str) -> None:
    bench = Bench("a2a3")
    with pytest.raises(Refused) as refusal:
        bench.issue("tmov", tile(bench, Space.L1, kind, 32, 32), tile(bench, Space.L0C, "f32", 32, 32))
    assert refusal.value.diagnostic.code == code
