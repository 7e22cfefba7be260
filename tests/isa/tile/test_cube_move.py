"""TMOV and TEXTRACT from L1 to L0A, L0B and BT: which elements land where, and how packed."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ascsim.diagnostics import Refused
from ascsim.machine.trace import Mode
from ascsim.machine.words import CompactMode, Pipe, SLayout, Space
from cube import NZ, ZN, ZZ, read, tile
from harness import Bench

PROFILES = ("a2a3", "a5", "cpu")
CHIPS = ("a2a3", "a5")
SIDES = (Space.L0A, Space.L0B)
ROW: dict[str, Any] = {"blayout": 0, "slayout": SLayout.NONE_BOX}


def numbers(rows: int, cols: int) -> np.ndarray:
    return np.arange(rows * cols).reshape(rows, cols) % 100


@pytest.mark.parametrize("profile", PROFILES)
@pytest.mark.parametrize("space", SIDES)
@pytest.mark.parametrize("source", [NZ, ZN])
@pytest.mark.parametrize("kind", ["i8", "f16", "bf16", "f32"])
def test_an_operand_has_the_boxes_of_its_memory(profile: str, space: Space, source: dict[str, Any], kind: str) -> None:
    bench = Bench(profile)
    data = numbers(64, 32)
    src = tile(bench, Space.L1, kind, 64, 32, data, **source)
    dst = tile(bench, space, kind, 64, 32)
    bench.issue("tmov", dst, src)
    assert bench.findings() == []
    assert np.array_equal(read(bench, dst).astype(int), data)
    assert bench.trace().rows[0]["pipe"] == Pipe.MTE1


@given(
    row=st.integers(0, 3), col=st.integers(0, 3), profile=st.sampled_from(PROFILES), space=st.sampled_from(SIDES),
    kind=st.sampled_from(["i8", "f16", "f32"]), turned=st.booleans(),
)  # fmt: skip
@settings(deadline=None, max_examples=40)
def test_a_part_begins_where_it_is_said_to(
    row: int, col: int, profile: str, space: Space, kind: str, turned: bool
) -> None:
    bench = Bench(profile)
    data = numbers(128, 128)
    src = tile(bench, Space.L1, kind, 128, 128, data, **(ZN if turned else NZ))
    dst = tile(bench, space, kind, 32, 32)
    bench.issue("textract", dst, src, 32 * row, 32 * col)
    assert bench.findings() == []
    assert np.array_equal(read(bench, dst).astype(int), data[32 * row :, 32 * col :][:32, :32])


@pytest.mark.parametrize("profile", CHIPS)
def test_chips_move_what_is_not_valid_too_and_only_the_valid_part_counts(profile: str) -> None:
    bench = Bench(profile)
    src = tile(bench, Space.L1, "f16", 32, 32, valid=(5, 20))
    bench.issue("tmov", tile(bench, Space.L0A, "f16", 32, 32, valid=(5, 20)), src)
    assert bench.traced(Mode.WRITE, Space.L0A).sum() == 2048
    whole, part = bench.accesses()[1:]
    assert (whole["unused"], part["unused"]) == (1, 0)
    assert bench.traced(Mode.READ, Space.L1).sum() == 2048


@pytest.mark.parametrize("profile", CHIPS)
@pytest.mark.parametrize("space", SIDES)
@pytest.mark.parametrize("source", [NZ, ZN])
def test_compact_tiles_are_packed(profile: str, space: Space, source: dict[str, Any]) -> None:
    bench = Bench(profile)
    data = numbers(64, 64)
    src = tile(bench, Space.L1, "f16", 64, 64, data, (40, 40), **source)
    bench.issue("tmov", tile(bench, space, "f16", 64, 64, valid=(40, 40), compact=CompactMode.NORMAL), src)
    assert np.array_equal(read(bench, tile(bench, space, "f16", 48, 48)).astype(int), data[:48, :48])
    assert bench.traced(Mode.WRITE, space).sum() == 48 * 48 * 2


@pytest.mark.parametrize(("profile", "name", "packs"), [("a2a3", "tmov", True), ("a5", "tmov", True),
                                                        ("a2a3", "textract", False), ("a5", "textract", True)])  # fmt: skip
def test_bytes_whose_boxes_turn_are_packed_by_some(profile: str, name: str, packs: bool) -> None:
    bench = Bench(profile)
    data = numbers(64, 64)
    src = tile(bench, Space.L1, "i8", 64, 64, data, (64, 20), **NZ)
    bench.issue(name, tile(bench, Space.L0B, "i8", 64, 64, valid=(64, 20)), src)
    packed = tile(bench, Space.L0B, "i8", 64, 32 if packs else 64)
    assert np.array_equal(read(bench, packed, 64, 20).astype(int), data[:, :20])


@pytest.mark.parametrize("profile", CHIPS)
def test_a_part_within_a_box_begins_with_the_box(profile: str) -> None:
    bench = Bench(profile)
    data = numbers(64, 64)
    src = tile(bench, Space.L1, "f16", 64, 64, data)
    dst = tile(bench, Space.L0A, "f16", 16, 16)
    bench.issue("textract", dst, src, 20, 3)
    assert bench.findings() == ["TEXTRACT-4"]
    assert np.array_equal(read(bench, dst).astype(int), data[16:32, :16])


def test_a_part_beyond_src_is_reported_by_chips_and_refused_portably() -> None:
    for profile in CHIPS:
        bench = Bench(profile)
        bench.issue("textract", tile(bench, Space.L0A, "f16", 32, 32), tile(bench, Space.L1, "f16", 32, 32), 16, 0)
        assert bench.findings() == ["TEXTRACT-3"]
    bench = Bench("cpu")
    with pytest.raises(Refused, match="the part ends at row 48"):
        bench.issue("textract", tile(bench, Space.L0A, "f16", 32, 32), tile(bench, Space.L1, "f16", 32, 32), 16, 0)


def test_tmov_of_a2a3_takes_any_boxes_of_a_left_tile_and_textract_does_not() -> None:
    bench = Bench("a2a3")
    data = numbers(32, 32)
    src = tile(bench, Space.L1, "f16", 32, 32, data)
    bench.issue("tmov", tile(bench, Space.L0A, "f16", 32, 32, **NZ), src)
    assert np.array_equal(read(bench, tile(bench, Space.L0A, "f16", 32, 32, **ZZ)).astype(int), data)
    with pytest.raises(Refused, match="not ZZ"):
        bench.issue("textract", tile(bench, Space.L0A, "f16", 32, 32, **NZ), src, 0, 0)
    with pytest.raises(Refused, match="not NZ"):
        other = Bench("a5")
        other.issue("tmov", tile(other, Space.L0A, "f16", 32, 32, **ZZ), tile(other, Space.L1, "f16", 32, 32))


@pytest.mark.parametrize("profile", PROFILES)
@pytest.mark.parametrize("name", ["tmov", "textract"])
def test_a_vector_is_moved_as_it_lies(profile: str, name: str) -> None:
    bench = Bench(profile)
    data = numbers(1, 512)
    src = tile(bench, Space.L1, "f16", 1, 512, data, (1, 300), **ROW)
    dst = tile(bench, Space.L0A, "f16", 1, 512, valid=(1, 300))
    bench.issue(name, dst, src)
    assert bench.findings() == []
    held = bench.memory(Space.L0A)[:600].view(np.float16).astype(int)
    assert np.array_equal(held, data[0, :300])
    assert bench.traced(Mode.WRITE, Space.L0A).sum() == (1024 if profile in CHIPS else 608)


def test_a_part_of_a_vector_begins_at_512_bytes() -> None:
    bench = Bench("a5")
    src = tile(bench, Space.L1, "f16", 1, 512, numbers(1, 512), **ROW)
    dst = tile(bench, Space.L0A, "f16", 1, 256)
    bench.issue("textract", dst, src, 0, 256)
    assert bench.findings() == []
    assert np.array_equal(bench.memory(Space.L0A)[:512].view(np.float16).astype(int), numbers(1, 512)[0, 256:])
    bench.issue("textract", dst, src, 0, 16)
    assert bench.findings() == ["TEXTRACT-4"]
    with pytest.raises(Refused, match="pieces of 512"):
        bench.issue("tmov", tile(bench, Space.L0A, "f16", 1, 128), tile(bench, Space.L1, "f16", 1, 128, **ROW))


# To BT


@pytest.mark.parametrize("profile", PROFILES)
@pytest.mark.parametrize(("kind", "sums"), [("f32", "f32"), ("i32", "i32"), ("f16", "f32")])
def test_a_bias_is_moved_and_widened(profile: str, kind: str, sums: str) -> None:
    bench = Bench(profile)
    data = numbers(1, 64)
    src = tile(bench, Space.L1, kind, 1, 64, data, (1, 50), **ROW)
    dst = tile(bench, Space.BT, sums, 1, 64, valid=(1, 50))
    bench.issue("tmov", dst, src)
    assert bench.findings() == []
    assert np.array_equal(read(bench, dst).astype(int), data[:, :50])
    assert bench.traced(Mode.WRITE, Space.BT).sum() == (64 if profile in CHIPS else 50) * 4


def test_bfloat16_is_a_bias_of_the_a5() -> None:
    bench = Bench("a5")
    src = tile(bench, Space.L1, "bf16", 1, 32, numbers(1, 32), **ROW)
    bench.issue("tmov", tile(bench, Space.BT, "f32", 1, 32), src)
    with pytest.raises(Refused, match="moves bf16 to f32"):
        other = Bench("a2a3")
        other.issue("tmov", tile(other, Space.BT, "f32", 1, 32), tile(other, Space.L1, "bf16", 1, 32, **ROW))


def test_other_ways_are_not_implemented() -> None:
    bench = Bench("a5")
    acc = tile(bench, Space.L0C, "f32", 16, 16)
    with pytest.raises(Refused) as refusal:
        bench.issue("tmov", bench.tile("f32", 16, 16), acc)
    assert refusal.value.diagnostic.code == "L012"
