"""Squeezing, packing, unpacking, histograms: hand-worked values, references by lists, the AR register."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ascsim.machine.dtypes import DTYPES
from ascsim.machine.words import Kept
from harness import Bench, MReg, VReg
from registers import bits, forms, issue, lanes_of, random_mask, register

seeds = st.integers(0, 2**32 - 1)
SQUEEZED = [v["T"].name for v in forms("asc_squeeze")[0].variants]


def padded(values: list[int], count: int) -> list[int]:
    return values + [0] * (count - len(values))


# Squeezing


@settings(deadline=None, max_examples=30)
@given(st.sampled_from(SQUEEZED), seeds)
def test_a_squeeze_keeps_active_lanes_in_order_and_zeroes_the_rest(kind: str, seed: int) -> None:
    source, mask = register(kind, seed), random_mask(seed)
    expected = [int(x) for x, on in zip(bits(source), lanes_of(mask, kind), strict=True) if on]
    result = bits(issue("asc_squeeze", source, mask))
    assert result.tolist() == padded(expected, result.size)


@pytest.mark.parametrize(("kind", "on", "nbytes"), [("f32", 0, 0), ("f32", 1, 256), ("u8", 1, 256), ("f16", 1, 256)])
def test_a_squeeze_of_none_and_of_all(kind: str, on: int, nbytes: int) -> None:
    source, mask = register(kind, 3), MReg(np.full(256, on, np.uint8))
    bench = Bench("a5")
    np.testing.assert_array_equal(bits(bench.issue("asc_squeeze_v2", source, mask)), bits(source) * on)
    assert bench.issue("asc_get_squeeze_status") == nbytes


def test_the_bytes_of_squeezes_add_up_until_they_are_cleared() -> None:
    bench = Bench("a5")
    mask = bench.mask(np.arange(64) % 4 == 0, 4)
    for times in (1, 2, 3):
        bench.issue("asc_squeeze_with_status", register("f32", times), mask)
        assert bench.issue("asc_get_squeeze_status") == 64 * times
    bench.issue("asc_squeeze", register("f32", 9), mask)  # without status: no change
    assert bench.issue("asc_get_ar_spr") == 192
    assert bench.issue("asc_clear_ar_spr") is None
    assert bench.core.state.words[Kept.SQUEEZED] == 0


@settings(deadline=None, max_examples=30)
@given(st.sampled_from(("u8", "i8", "u16", "i16", "u32", "i32")), seeds)
def test_unsqueeze_says_where_an_active_lane_lies_after_a_squeeze(kind: str, seed: int) -> None:
    mask = random_mask(seed)
    places = issue("asc_unsqueeze", mask, result=kind)
    on = lanes_of(mask, kind)
    assert bits(places).tolist() == [int(on[:i].sum()) for i in range(on.size)]
    source = register(kind, seed)
    squeezed = issue("asc_squeeze", source, mask)
    np.testing.assert_array_equal(bits(squeezed)[bits(places)[on]], bits(source)[on])


def test_unsqueeze_ignores_the_last_lane_of_the_mask() -> None:
    result = [issue("asc_unsqueeze", MReg(np.array([*[1] * 255, last], np.uint8)), result="u8") for last in (0, 1)]
    assert result[0].lanes.tolist() == result[1].lanes.tolist() == list(range(256))


# Halves


@pytest.mark.parametrize(("name", "first"), [("asc_pack_to_low", 0), ("asc_pack_to_high", 1)])
@pytest.mark.parametrize(("target", "source"), [("u8", "u16"), ("u16", "u32")])
def test_pack_keeps_the_lower_half_of_each_lane(name: str, first: int, target: str, source: str) -> None:
    given_ = register(source, 5)
    low = bits(given_).astype(DTYPES[target].bits_dtype)
    expected = np.zeros((2, low.size), low.dtype)
    expected[first] = low
    np.testing.assert_array_equal(bits(issue(name, given_, result=target)), expected.reshape(-1))


@pytest.mark.parametrize(("name", "old"), [("asc_pack_to_low", "asc_pack"), ("asc_pack_to_high", "asc_pack_v2")])
def test_the_old_names_of_pack_take_signed_lanes_too(name: str, old: str) -> None:
    lanes = register("i32", 6)
    as_unsigned = VReg(DTYPES["u32"], lanes.data)
    np.testing.assert_array_equal(issue(old, lanes, result="u16").data, issue(name, as_unsigned, result="u16").data)
    assert all(v["S"].kind == "u" for d in forms(name) for v in d.variants if v)


@pytest.mark.parametrize(("target", "source"), [("u16", "u8"), ("i16", "i8"), ("u32", "u16"), ("i32", "i16")])
def test_unpack_widens_half_a_register_by_sign_or_zeros(target: str, source: str) -> None:
    given_ = register(source, 7)
    letter = "s" if source[0] == "i" else "z"
    low, high = (issue(f"v{letter}unpack_{half}", given_, result=target).lanes for half in ("lower", "upper"))
    assert [*low, *high] == given_.lanes.tolist()


def test_masks_are_packed_and_unpacked_by_bits() -> None:
    mask = random_mask(8)
    for half, side in (("low", slice(0, 128)), ("high", slice(128, 256))):
        packed = issue(f"ppack_{half}", mask).data
        np.testing.assert_array_equal(packed[side], mask.data[::2])
        assert packed.sum() == mask.data[::2].sum()
    for half, side in (("lower", slice(0, 128)), ("upper", slice(128, 256))):
        spread = issue(f"punpack_{half}", mask).data
        np.testing.assert_array_equal(spread[::2], mask.data[side])
        assert not spread[1::2].any()


def test_unpacking_a_mask_makes_one_for_lanes_of_twice_the_width() -> None:
    narrow = Bench("a5").mask(np.arange(128) % 3 == 0, 2)
    wide = issue("punpack_upper", narrow)
    np.testing.assert_array_equal(lanes_of(wide, "f32"), np.arange(64, 128) % 3 == 0)


# Histograms


@settings(deadline=None, max_examples=20)
@given(seeds, st.booleans())
def test_histograms_count_the_active_values(seed: int, cumulative: bool) -> None:
    source, mask, before = register("u8", seed), random_mask(seed), register("u16", seed + 1)
    counts = np.bincount(source.lanes[mask.data.astype(bool)], minlength=256)
    counts = np.cumsum(counts) if cumulative else counts
    kind = "cumulative" if cumulative else "frequency"
    for half in (0, 1):
        result = issue(f"asc_{kind}_histogram_bin{half}", before, source, mask).lanes
        expected = (before.lanes.astype(int) + counts[128 * half : 128 * half + 128]) % 65536
        np.testing.assert_array_equal(result, expected)


def test_the_upper_cumulative_half_counts_the_lower_values_too() -> None:
    source = Bench("a5").vreg("u8", [3] * 100 + [200] * 156)
    zero, every = VReg(DTYPES["u16"]), MReg(np.ones(256, np.uint8))
    result = issue("asc_cumulative_histogram_bin1", zero, source, every).lanes
    assert result[[0, 71, 72, 127]].tolist() == [100, 100, 256, 256]
