"""TMATMUL, TMATMUL_ACC, TMATMUL_BIAS: numbers, sizes, how boxes lie, what the cube does and does not order."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ascsim.machine.operands import Tile
from ascsim.machine.trace import DONE_IN_ORDER, Mode
from ascsim.machine.words import CompactMode, Pipe, Space
from cube import NZ, ZN, read, tile, whole
from harness import Bench

PROFILES = ("a2a3", "a5", "cpu")
CHIPS = ("a2a3", "a5")
TYPES = (("f16", "f32"), ("bf16", "f32"), ("f32", "f32"), ("i8", "i32"))


def up(number: int, unit: int) -> int:
    return -(-number // unit) * unit


def operands(bench: Bench, kind: str, sums: str, m: int, k: int, n: int) -> tuple[Tile, Tile, Tile, np.ndarray]:
    """dst, lhs, rhs, in tiles no larger than their boxes; the exact product."""
    unit = {"i8": 32, "f32": 8}.get(kind, 16)
    a, b = whole((m, k), kind, 1), whole((k, n), kind, 2)
    lhs = tile(bench, Space.L0A, kind, up(m, 16), up(k, unit), a, (m, k))
    rhs = tile(bench, Space.L0B, kind, up(k, unit), up(n, 16), b, (k, n))
    dst = tile(bench, Space.L0C, sums, up(m, 16), up(n, 16), valid=(m, n))
    return dst, lhs, rhs, a.astype(np.float64) @ b.astype(np.float64)


@pytest.mark.parametrize("profile", PROFILES)
@pytest.mark.parametrize(("kind", "sums"), TYPES)
@pytest.mark.parametrize("size", [(16, 32, 16), (40, 50, 60), (1, 33, 17), (5, 75, 11)])
def test_products_are_exact_where_they_can_be(profile: str, kind: str, sums: str, size: tuple[int, int, int]) -> None:
    bench = Bench(profile)
    dst, lhs, rhs, expected = operands(bench, kind, sums, *size)
    bench.issue("tmatmul", dst, lhs, rhs)
    assert bench.findings() == []
    assert np.array_equal(read(bench, dst), expected)


@given(m=st.integers(1, 40), k=st.integers(1, 70), n=st.integers(1, 40), profile=st.sampled_from(PROFILES))
@settings(deadline=None, max_examples=25)
def test_sums_begin_with_what_is_there(m: int, k: int, n: int, profile: str) -> None:
    bench = Bench(profile)
    dst, lhs, rhs, expected = operands(bench, "f16", "f32", m, k, n)
    start = whole((m, n), "f32", 3)
    tile(bench, Space.L0C, "f32", dst.rows, dst.cols, start)
    bench.issue("tmatmul_acc", dst, dst, lhs, rhs)
    bench.issue("tmatmul_acc", dst, None, lhs, rhs)
    assert np.array_equal(read(bench, dst), start + 2 * expected)
    bias = tile(bench, Space.BT, "f32", 1, up(n, 16), whole((1, n), "f32", 4))
    bench.issue("tmatmul_bias", dst, lhs, rhs, bias)
    assert np.array_equal(read(bench, dst), expected + read(bench, bias, 1, n))


def test_integers_wrap_at_32_bits() -> None:
    bench = Bench("a2a3")
    dst, lhs, rhs, expected = operands(bench, "i8", "i32", 16, 32, 16)
    tile(bench, Space.L0C, "i32", 16, 16, np.full((16, 16), 2**31 - 1))
    bench.issue("tmatmul_acc", dst, dst, lhs, rhs)
    wanted = (expected.astype(np.int64) + 2**31 - 1 + 2**31) % 2**32 - 2**31
    assert np.array_equal(read(bench, dst), wanted)
    assert (expected > 0).any()


def test_floats_are_summed_exactly_and_rounded_once() -> None:
    bench = Bench("a5")
    a, b = np.array([[1e8, 1, -1e8, 1]], np.float32), np.ones((4, 1), np.float32)
    lhs, rhs = tile(bench, Space.L0A, "f32", 16, 8, a, (1, 4)), tile(bench, Space.L0B, "f32", 8, 16, b, (4, 1))
    dst = tile(bench, Space.L0C, "f32", 16, 16, valid=(1, 1))
    bench.issue("tmatmul", dst, lhs, rhs)
    assert read(bench, dst)[0, 0] == 2


@pytest.mark.parametrize("kind", ["f8e4m3", "f8e5m2", "hif8"])
def test_a5_multiplies_bytes_that_are_floats(kind: str) -> None:
    bench = Bench("a5")
    a, b = whole((16, 32), kind, 1), whole((32, 16), kind, 2)
    dst = tile(bench, Space.L0C, "f32", 16, 16)
    bench.issue("tmatmul", dst, tile(bench, Space.L0A, kind, 16, 32, a), tile(bench, Space.L0B, kind, 32, 16, b))
    assert np.array_equal(read(bench, dst), a.astype(np.float64) @ b.astype(np.float64))


# How boxes lie


@pytest.mark.parametrize("profile", CHIPS)
def test_chips_take_boxes_to_lie_packed(profile: str) -> None:
    bench = Bench(profile)
    a, b = whole((40, 40), "f16", 1), whole((40, 40), "f16", 2)
    lhs = tile(bench, Space.L0A, "f16", 64, 64, a, (40, 40))
    rhs = tile(bench, Space.L0B, "f16", 64, 64, b, (40, 40))
    dst = tile(bench, Space.L0C, "f32", 48, 48, valid=(40, 40))
    bench.issue("tmatmul", dst, lhs, rhs)
    assert bench.findings() == ["TMATMUL-3"]
    assert not np.array_equal(read(bench, dst), a.astype(np.float32) @ b.astype(np.float32))


@pytest.mark.parametrize("profile", CHIPS)
def test_compact_tiles_lie_so(profile: str) -> None:
    bench = Bench(profile)
    a, b = whole((40, 40), "f16", 1), whole((40, 40), "f16", 2)
    tile(bench, Space.L0A, "f16", 48, 48, a)
    tile(bench, Space.L0B, "f16", 48, 48, b)
    lhs = tile(bench, Space.L0A, "f16", 64, 64, valid=(40, 40), compact=CompactMode.NORMAL)
    rhs = tile(bench, Space.L0B, "f16", 64, 64, valid=(40, 40), compact=CompactMode.NORMAL)
    dst = tile(bench, Space.L0C, "f32", 48, 48, valid=(40, 40))
    bench.issue("tmatmul", dst, lhs, rhs)
    assert bench.findings() == []
    assert np.array_equal(read(bench, dst), a.astype(np.float32) @ b.astype(np.float32))


@pytest.mark.parametrize("profile", CHIPS)
def test_a_result_with_rows_to_spare_is_reported(profile: str) -> None:
    bench = Bench(profile)
    _, lhs, rhs, expected = operands(bench, "f16", "f32", 16, 16, 32)
    bench.issue("tmatmul", tile(bench, Space.L0C, "f32", 32, 32, valid=(16, 32)), lhs, rhs)
    assert bench.findings() == ["TMATMUL-5"]
    assert np.array_equal(read(bench, tile(bench, Space.L0C, "f32", 16, 32)), expected)
    compact = tile(bench, Space.L0C, "f32", 32, 32, valid=(16, 32), compact=CompactMode.NORMAL)
    bench.issue("tmatmul", compact, lhs, rhs)
    assert bench.findings() == ["TMATMUL-5"]


def test_k_aligned_floats_lie_in_rows_of_16_on_a2a3() -> None:
    bench = Bench("a2a3")
    a, b = whole((32, 20), "f32", 1), whole((20, 16), "f32", 2)
    lhs = tile(bench, Space.L0A, "f32", 32, 32, a, (32, 20), k_aligned=True)
    dst = tile(bench, Space.L0C, "f32", 32, 16)
    bench.issue("tmatmul", dst, lhs, tile(bench, Space.L0B, "f32", 24, 16, b, (20, 16)))
    assert bench.findings() == []
    assert np.array_equal(read(bench, dst), a @ b)


def test_one_row_of_boxes_lies_packed_by_itself() -> None:
    bench = Bench("a2a3")
    lhs = tile(bench, Space.L0A, "f16", 16, 64, whole((16, 32), "f16"), (16, 32))
    rhs = tile(bench, Space.L0B, "f16", 64, 16, whole((32, 16), "f16"), (32, 16))
    bench.issue("tmatmul", tile(bench, Space.L0C, "f32", 16, 16), lhs, rhs)
    assert bench.findings() == []


def test_of_bytes_the_left_operand_is_warned_of_alone() -> None:
    bench = Bench("a2a3")
    lhs = tile(bench, Space.L0A, "i8", 32, 96, valid=(32, 64))
    rhs = tile(bench, Space.L0B, "i8", 96, 64, valid=(64, 32))
    bench.issue("tmatmul", tile(bench, Space.L0C, "i32", 32, 32), lhs, rhs)
    assert bench.findings() == ["TMATMUL-4"]


@pytest.mark.parametrize("profile", CHIPS)
def test_whole_boxes_of_the_result_are_written(profile: str) -> None:
    bench = Bench(profile)
    dst, lhs, rhs, _ = operands(bench, "f16", "f32", 5, 16, 3)
    bench.issue("tmatmul", dst, lhs, rhs)
    assert bench.traced(Mode.WRITE, Space.L0C)[:1024].all() and not bench.traced(Mode.WRITE, Space.L0C)[1024:].any()
    assert bench.traced(Mode.READ, Space.L0A).sum() == 512 and bench.traced(Mode.READ, Space.L0B).sum() == 512
    assert not bench.traced(Mode.READ, Space.L0C).any()


@pytest.mark.parametrize(("profile", "codes"), [("a2a3", ["TMATMUL-ACC"]), ("a5", ["TMATMUL-ACC"]), ("cpu", [])])
def test_chips_add_to_dst_wherever_acc_lies(profile: str, codes: list[str]) -> None:
    bench = Bench(profile)
    dst, lhs, rhs, expected = operands(bench, "f16", "f32", 16, 16, 16)
    tile(bench, Space.L0C, "f32", 16, 16, np.full((16, 16), 100.0))
    acc = tile(bench, Space.L0C, "f32", 16, 16, np.full((16, 16), 7.0), at=2048)
    bench.issue("tmatmul_acc", dst, acc, lhs, rhs)
    assert bench.findings() == codes
    assert np.array_equal(read(bench, dst), expected + (100 if codes else 7))


@pytest.mark.parametrize("profile", CHIPS)
def test_nothing_is_done_where_a_size_is_zero(profile: str) -> None:
    bench = Bench(profile)
    dst, _, rhs, _ = operands(bench, "f16", "f32", 16, 16, 16)
    empty = tile(bench, Space.L0A, "f16", 16, 16, valid=(16, 0))
    bench.issue("tmatmul", dst, empty, rhs)
    assert "TMATMUL-1" in bench.findings() and not bench.traced(Mode.WRITE, Space.L0C).any()


# Order and work


@pytest.mark.parametrize(
    ("m", "n", "arg"), [(48, 48, 0), (64, 48, DONE_IN_ORDER), (63, 48, 0), (160, 16, DONE_IN_ORDER)]
)
def test_large_products_need_no_barrier(m: int, n: int, arg: int) -> None:
    bench = Bench("a2a3")
    dst, lhs, rhs, _ = operands(bench, "f16", "f32", m, 16, n)
    bench.issue("tmatmul", dst, lhs, rhs)
    row = bench.trace().rows[0]
    assert (row["pipe"], row["arg"], row["work"]) == (Pipe.M, arg, up(m, 16) // 16 * up(n, 16) // 16)


@pytest.mark.parametrize("profile", PROFILES)
def test_layouts_are_asked_for_but_on_a2a3(profile: str) -> None:
    bench = Bench(profile)
    dst, _, rhs, expected = operands(bench, "f16", "f32", 16, 16, 16)
    odd = tile(bench, Space.L0A, "f16", 16, 16, **ZN)
    if profile == "a2a3":
        bench.issue("tmatmul", dst, odd, rhs)
        assert np.array_equal(read(bench, dst), expected)
    else:
        with pytest.raises(Exception, match="operand lhs is not NZ"):
            bench.issue("tmatmul", dst, odd, rhs)


# A vector by a matrix


@pytest.mark.parametrize("profile", PROFILES)
@pytest.mark.parametrize(("kind", "sums"), TYPES)
def test_a_vector_lies_as_it_is_on_chips(profile: str, kind: str, sums: str) -> None:
    bench = Bench(profile)
    a, b = whole((1, 300), kind, 1), whole((300, 40), kind, 2)
    if profile == "cpu":
        lhs = tile(bench, Space.L0A, kind, 16, 320, a, (1, 300))
    else:
        lhs = tile(bench, Space.L0A, kind, 1, 512, valid=(1, 300), **NZ)
        bench.memory(Space.L0A)[: a.nbytes] = np.ascontiguousarray(a).view(np.uint8).reshape(-1)
    rhs = tile(bench, Space.L0B, kind, 320, 48, b, (300, 40))
    dst = tile(bench, Space.L0C, sums, 16, 48, np.full((16, 48), 3), (1, 40))
    expected = a.astype(np.float64) @ b.astype(np.float64)
    bench.issue("tgemv", dst, lhs, rhs)
    assert bench.findings() == []
    assert np.array_equal(read(bench, dst), expected)
    bench.issue("tgemv_acc", dst, dst, lhs, rhs)
    assert np.array_equal(read(bench, dst), 2 * expected)
    bias = tile(bench, Space.BT, sums, 1, 48, whole((1, 48), sums, 4))
    bench.issue("tgemv_bias", dst, lhs, rhs, bias)
    assert np.array_equal(read(bench, dst), expected + read(bench, bias, 1, 40))
    assert (read(bench, dst, 16, 48)[1:] == 3).all()


@pytest.mark.parametrize("profile", CHIPS)
def test_a_vector_in_boxes_is_read_as_if_it_were_not(profile: str) -> None:
    bench = Bench(profile)
    a, b = whole((1, 32), "f16", 1), whole((32, 16), "f16", 2)
    lhs = tile(bench, Space.L0A, "f16", 16, 32, a, (1, 32))
    dst = tile(bench, Space.L0C, "f32", 16, 16, valid=(1, 16))
    bench.issue("tgemv", dst, lhs, tile(bench, Space.L0B, "f16", 32, 16, b))
    assert bench.findings() == ["TGEMV-4"]
    assert np.array_equal(read(bench, dst), a[:, :16].astype(np.float32) @ b[:16].astype(np.float32))
